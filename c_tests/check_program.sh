#!/bin/sh
# Builds a C program of this folder with the static and with the shared library, and runs both.
#
#     check_program.sh LIB_DIR INCLUDE_DIR SOURCE [ARGUMENTS...]
#
# WITH names further sources, such as c_tests/reference.c, for a program that compares; LINKS=static, or shared, leaves
# the other library out.
# A program prints one line when all is well; each is printed again with the program's name and the kind of link.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -ge 3 ] || usage 'LIB_DIR INCLUDE_DIR SOURCE [ARGUMENTS...]'
lib_dir=$(absolute "$1")
include_dir=$(absolute "$2")
source=$3
shift 3
program=$(basename "$source" .c)

for link in ${LINKS-static shared}; do
    build_with $link "$lib_dir" "$scratch/$program-$link" "$source" \
        -std=gnu11 -Wall -Wextra -Wpedantic -Werror -fno-builtin-expf -I "$include_dir" ${WITH-}
    run_with "$scratch/$program-$link" "$@" >"$scratch/output" || {
        cat "$scratch/output" >&2
        fail "$program, $link library: failed"
    }
    sed "s/^/$program, $link library: /" "$scratch/output"
done
