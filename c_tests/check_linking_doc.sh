#!/bin/sh
# Checks that who follows docs/linking.md, or the linking lines of README.md, gets a linked program.
#
#     check_linking_doc.sh TARGET_DIR
#
# Every sh block of docs/linking.md is run in its order, in one shell, in a home folder made for it, where
# ~/colibri/c is c_tests/consumer; a text block behind one is what it prints. A block that begins with "# statically",
# "# dynamically" or "# undo" links that engine, and its sampler is looked at.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 1 ] || usage 'TARGET_DIR'
root=$(absolute "$c_tests/..")
target=$(absolute "$1")
unset MAKEFLAGS MFLAGS PREFIX DESTDIR LIBDIR INCLUDEDIR PKGCONFIGDIR CMAKEDIR MANDIR

# Another home, but the same cargo.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
export HOME="$scratch/home"
mkdir -p "$HOME/colibri"
cp -RL "$c_tests/consumer" "$HOME/colibri/c"
engine="$HOME/colibri/c/engine"

# What the documents call $SAMPLER, wherever cargo's folder is. It keeps its place from run to run: cargo builds the
# crate for the Rust program once.
sampler="$target/linking doc/sampler"
rm -rf "$sampler"
mkdir -p "$sampler"
for entry in "$root"/*; do
    [ "$entry" = "$root/target" ] || ln -s "$entry" "$sampler/"
done
ln -s "$target" "$sampler/target"

# blocks FILE FOLDER: N.sh for the Nth sh block, N.text for what it prints, if that is told
blocks() {
    mkdir "$2"
    awk -v folder="$2" '
        /^```sh$/ { file = folder "/" sprintf("%02d", ++n) ".sh"; printf "" >file; next }
        /^```text$/ { file = folder "/" sprintf("%02d", n) ".text"; next }
        /^```/ { if (file == "") { print "a block that is neither sh nor text: line " NR >"/dev/stderr"; bad = 1 }; file = ""; next }
        file != "" { print >file }
        END { exit bad }
    ' "$1"
}

# Whose sampler the engine has: nm shows T out of an archive, U of a shared library, neither with its own header.
sampler_is() { # T|U|own WHAT
    found=$(nm "$engine" | sed -n 's/.* \([TU]\) serve_sample$/\1/p')
    [ "${found:-own}" = "$1" ] || fail "$2: nm shows '${found:-own}' for serve_sample, expected '$1'"
    "$engine" 256 1 >"$scratch/transcript" || fail "$2: the engine does not run"
    [ -f "$scratch/own" ] || cp "$scratch/transcript" "$scratch/own"
    cmp -s "$scratch/own" "$scratch/transcript" || fail "$2: another transcript than with its own header"
}

engines=0
look_at() { # BLOCK WHAT
    case $(head -n 1 "$1") in
    '# statically') sampler_is T "$2" ;;
    '# dynamically') sampler_is U "$2" ;;
    '# undo') sampler_is own "$2" ;;
    *) return 0 ;;
    esac
    engines=$((engines + 1))
}

# Its own sampler first: what the other transcripts are compared with.
(cd "$HOME/colibri/c" && ${MAKE:-make} -s)
sampler_is own 'before'

# ---- README.md: the short form, with each habit of a Makefile

blocks "$root/README.md" "$scratch/readme" 2>/dev/null || :
cd "$HOME/colibri/c"
SAMPLER=$sampler
export SAMPLER
for LIBRARIES_FIRST in '' 1; do
    export LIBRARIES_FIRST
    where="README.md, libraries ${LIBRARIES_FIRST:+before}${LIBRARIES_FIRST:-behind}"
    where=${where%1}
    looked_at=
    for block in "$scratch"/readme/*.sh; do
        case $(head -n 1 "$block") in
        '# statically' | '# undo')
            sh -eu "$block" >"$scratch/output" 2>&1 || {
                cat "$scratch/output" >&2
                fail "$where the objects: does not build"
            }
            look_at "$block" "$where the objects"
            looked_at=$looked_at$(head -n 1 "$block")
            ;;
        esac
    done
    [ "$looked_at" = '# statically# undo' ] || fail 'README.md has not the blocks "# statically" and "# undo"'
done
unset LIBRARIES_FIRST SAMPLER

# ---- docs/linking.md, from the first line to the last

blocks "$root/docs/linking.md" "$scratch/doc" || fail 'docs/linking.md has a block that would not be run'
cd "$root"
running=
trap '[ -z "$running" ] || { cat "$scratch/errors"; echo "$check: $running: fails"; } >&2; rm -rf "$scratch"' EXIT
count=0 printed=0
for block in "$scratch"/doc/*.sh; do
    title="docs/linking.md, block $((count + 1)) ($(head -n 1 "$block"))"
    # In this shell, as its reader's: what a block exports and where it goes is there for the next one.
    # Not under || or if, where set -e would overlook all but its last command: the trap says what failed.
    running="$title"
    . "$block" >"$scratch/output" 2>"$scratch/errors"
    running=
    if [ -f "${block%.sh}.text" ]; then
        diff "${block%.sh}.text" "$scratch/output" >&2 || fail "$title: prints something else (>) than it says (<)"
        printed=$((printed + 1))
    fi
    look_at "$block" "$title"
    count=$((count + 1))
    if [ $count = 1 ]; then
        # Installed out of cargo's folder; a program of the reader's has its own.
        [ "$SAMPLER" = "$root" ] || fail "$title: does not set SAMPLER"
        SAMPLER=$sampler
        export CARGO_TARGET_DIR="$target/linking doc/target"
    fi
done
[ -z "$(find "$HOME/.local" 2>/dev/null)" ] || fail "the last block leaves $(find "$HOME/.local" | tr '\n' ' ')"

# What it says of sources that ask for more of the C library.
cd "$scratch"
cat >gnu.c <<'END_OF_C'
#define _GNU_SOURCE
#include <string.h>
const char *last(const char *text);
const char *last(const char *text) { return memrchr(text, '/', strlen(text)); }
END_OF_C
gnu() {
    $CC -Wall -Werror "$@" -include "$root/include/qwen36_sample.h" -c gnu.c 2>"$scratch/errors"
}
gnu -D_GNU_SOURCE= || fail "-D_GNU_SOURCE= does not help a source that begins with it: $(cat "$scratch/errors")"
! gnu || fail 'a source that begins with _GNU_SOURCE needs no help: docs/linking.md says it does'

printf 'linking: %d blocks of docs/linking.md run, %d outputs as printed there; %d engines linked or undone, README.md among them\n' \
    "$count" "$printed" "$engines"
