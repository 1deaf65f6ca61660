#!/bin/sh
# Runs the original's own test, unmodified, against the library.
#
#     check_upstream.sh LIB_DIR INCLUDE_DIR VENDOR_DIR
#
# The test asks for "../qwen36_sample.h": it is copied to where that is our header. Linked with the static and with the
# shared library. Without the vendored files it says so and does nothing.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 3 ] || usage 'LIB_DIR INCLUDE_DIR VENDOR_DIR'
lib_dir=$(absolute "$1")
include_dir=$(absolute "$2")
vendor_dir=$3

status=0
"$c_tests/../vendor/verify.sh" "$vendor_dir" 2>"$scratch/why" || status=$?
if [ $status -eq 2 ]; then
    echo 'upstream: not run, the original is not there (make vendor COLIBRI=PATH brings it)'
    exit 0
fi
[ $status -eq 0 ] || fail "not run: $(cat "$scratch/why")"

mkdir "$scratch/tests"
cp "$include_dir/qwen36_sample.h" "$include_dir/argmax_first.h" "$scratch/"
test=$scratch/tests/test_qwen36_sample.c
cp "$vendor_dir/original/c/tests/test_qwen36_sample.c" "$test"

for link in static shared; do
    # What the preprocessor read must be our headers, and no others of these names.
    build_with $link "$lib_dir" "$scratch/upstream-$link" "$test" -fno-builtin-expf -MMD -MF "$scratch/read"
    grep -q 'qwen36_sample\.h' "$scratch/read" || fail "the original's test does not include qwen36_sample.h"
    if grep -F 'original/c/' "$scratch/read" >/dev/null; then
        fail "the original's test was built with the original's header"
    fi
    run_with "$scratch/upstream-$link" >"$scratch/output" 2>&1 || {
        cat "$scratch/output" >&2
        fail "the original's test fails with the $link library"
    }
    printf "upstream, %s library: the original's test passes: %s\n" $link "$(tail -n 1 "$scratch/output")"
done
