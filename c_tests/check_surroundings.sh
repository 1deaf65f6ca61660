#!/bin/sh
# The library in the surroundings that C programs bring: threads, forks, copies of the library, floating-point modes.
#
#     check_surroundings.sh LIB_DIR INCLUDE_DIR [LARGEST_VOCAB]
#
# LINKS is as for check_program.sh.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -ge 2 ] || usage 'LIB_DIR INCLUDE_DIR [LARGEST_VOCAB]'
lib_dir=$(absolute "$1")
include_dir=$(absolute "$2")
largest=${3-}
cd "$c_tests/.."

draws='c_tests/reference.c c_tests/draws.c'
with=$draws
links=${LINKS-static shared}

# program SOURCE [ARGUMENTS...]
program() {
    source=$1
    shift
    LINKS=$links WITH=$with c_tests/check_program.sh "$lib_dir" "$include_dir" "c_tests/$source" "$@"
}

program threads.c $largest
program forks.c
program modes.c default
# What gcc adds to a program that is linked with -ffast-math; here to one that is compiled without.
if [ "$(uname -m)" = x86_64 ]; then
    with="$draws $($CC -print-file-name=crtfastmath.o)"
    program modes.c flushed
else
    echo 'modes, subnormals flushed since the start: on x86-64 only'
fi
# It loads the shared library itself.
with=$draws
links=static
program copies.c "$lib_dir/libcolibri_sampler.so" $largest
