#!/bin/sh
# linking.sh TARGET_DIR
#
# Runs the lines of README.md that link the library into a C engine, on a
# stand-in of one: a Makefile that takes EXTRA_CFLAGS and EXTRA_LDFLAGS, before
# its objects or after them, and two sources that include a header of their own
# under the original's name.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "linking: $*" >&2
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
readme=$PWD/README.md

# What the README calls $SAMPLER, wherever cargo's folder is.
SAMPLER=$scratch/sampler
mkdir "$SAMPLER" "$scratch/engine"
ln -s "$PWD/include" "$SAMPLER/include"
ln -s "$(cd "$1" && pwd)" "$SAMPLER/target"
export SAMPLER
unset MAKEFLAGS MFLAGS

cd "$scratch/engine"
cat >qwen36_sample.h <<'END'
#ifndef QWEN36_SAMPLE_H
#define QWEN36_SAMPLE_H
#include <stdio.h>
#include <stdlib.h>
#include "argmax_first.h"
static int serve_sample(const float *lo, int V, float temp, float top_p)
{
    return lo[0] > 9 && temp > top_p ? V : -7;
}
#endif
END
cat >argmax_first.h <<'END'
#ifndef ARGMAX_FIRST_H
#define ARGMAX_FIRST_H
static int argmax_first(const float *x, int n) { return x[0] > 9 ? n : -7; }
#endif
END
cat >serve.c <<'END'
#include "qwen36_sample.h"
int greedy(const float *lo, int V);
int main(void)
{
    float lo[] = {0, 1, 5, 5};
    printf("%d %d\n", serve_sample(lo, 4, 0.01f, 0.4f), greedy(lo, 4));
    return 0;
}
END
cat >greedy.c <<'END'
#include "argmax_first.h"
int greedy(const float *lo, int V);
int greedy(const float *lo, int V) { return argmax_first(lo, V); }
END
cat >Makefile <<'END'
CFLAGS = -O3 -Wall -Wno-unused-function -Werror $(EXTRA_CFLAGS)
ifdef LIBRARIES_FIRST
engine: serve.o greedy.o
	$(CC) -Wl,--as-needed $(EXTRA_LDFLAGS) -o $@ serve.o greedy.o
else
engine: serve.o greedy.o
	$(CC) -o $@ serve.o greedy.o $(EXTRA_LDFLAGS)
endif
clean:
	rm -f engine *.o
.PHONY: clean
END

# The block of the README that begins with this comment.
block() {
    awk -v first="# $1" '
        inside && /^```/ { exit }
        inside { print }
        $0 == first { inside = 1 }
    ' "$readme" >"$scratch/block"
    [ -s "$scratch/block" ] || fail "README.md has no block that begins with '# $1'"
    sh -eu "$scratch/block" >"$scratch/output" 2>&1 || {
        cat "$scratch/output" >&2
        fail "README.md, $1: does not build"
    }
}

# expect OUTPUT WHAT: what the engine prints tells whose sampler it has.
expect() {
    printed=$(./engine) || fail "$2: the program does not run"
    [ "$printed" = "$1" ] || fail "$2: printed '$printed', expected '$1'"
}

has() {
    nm engine | grep -q " $1 serve_sample\$" || fail "$2: nm shows no '$1 serve_sample'"
}

block undo
expect '-7 -7' 'before'
for LIBRARIES_FIRST in '' 1; do
    export LIBRARIES_FIRST
    where=${LIBRARIES_FIRST:+before the objects}
    where=${where:-behind the objects}
    block statically
    expect '2 2' "statically, $where"
    has T "statically, $where"
    block dynamically
    expect '2 2' "dynamically, $where"
    has U "dynamically, $where"
    block undo
    expect '-7 -7' "undone, $where"
done

# What the README says of sources that ask for more of the C library.
cat >gnu.c <<'END'
#define _GNU_SOURCE
#include <string.h>
const char *last(const char *text);
const char *last(const char *text) { return memrchr(text, '/', strlen(text)); }
END
gnu() {
    ${CC:-cc} -Wall -Werror "$@" -include "$SAMPLER/include/qwen36_sample.h" -c gnu.c 2>"$scratch/output"
}
gnu -D_GNU_SOURCE= || {
    cat "$scratch/output" >&2
    fail "-D_GNU_SOURCE= does not help a source that begins with it"
}
if gnu; then
    fail "a source that begins with _GNU_SOURCE needs no help: README.md says it does"
fi

echo "linking: README.md's lines work, statically and dynamically, before and behind the objects, and undone"
