#!/bin/sh
# Other CPUs than this one: without AVX2, and with AVX2 but no AVX-512, both by qemu-user; and glibc's expf for CPUs
# without FMA, on this one.
#
#     check_cpus.sh LIB_DIR INCLUDE_DIR
#
# The emulator forks no process in which threads run, so forks.c is left out there, and it is slow at loading libraries.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 2 ] || usage 'LIB_DIR INCLUDE_DIR'
[ "$(uname -m)" = x86_64 ] || {
    echo "not run, the emulated CPUs are x86-64 and this one is $(uname -m)"
    exit 0
}
lib_dir=$(absolute "$1")
include_dir=$(absolute "$2")
cd "$c_tests/.."

unset RUNNER LINKS WITH
draws='c_tests/reference.c c_tests/draws.c'

# emulated NAME MODEL FEATURES TIER EXPF: the CPU has these features and draws by that tier's kernels alone, whose names
# qemu writes down as it translates them; then the programs.
emulated() {
    build_with static "$lib_dir" "$scratch/cpu" c_tests/cpu.c -I "$include_dir"
    features=$(qemu-x86_64 -cpu "$2" -d in_asm -D "$scratch/log" "$scratch/cpu") ||
        fail "the first draw on the emulated $1 fails"
    [ "$features" = "$3" ] || fail "the emulated $1 has $features, not $3"
    tiers=$(sed -n 's/^IN: .*kernels[0-9]*\(PORTABLE\|AVX2\|AVX512\)[0-9].*/\1/p' "$scratch/log" | sort -u | xargs)
    [ "$tiers" = "$4" ] || fail "$1: drawn by the kernels of '$tiers', not of $4"
    (
        export RUNNER="qemu-x86_64 -cpu $2"
        program regression.c 3000
        export LINKS=static WITH="$draws"
        program threads.c 700 10
        program modes.c default
        export WITH="$draws $($CC -print-file-name=crtfastmath.o)"
        program modes.c flushed
    ) >"$scratch/lines"
    report "$1 ($features; kernels $tiers)" "$5"
}

program() {
    source=$1
    shift
    c_tests/check_program.sh "$lib_dir" "$include_dir" "c_tests/$source" "$@"
}

# report WHAT EXPF: the lines of the programs, each of which names the expf that it saw or none.
report() {
    ! sed -n 's/.*(expf: \(.*\))$/\1/p' "$scratch/lines" | grep -qvx "$2" || fail "$1: expf is not the $2 one"
    grep -q "(expf: $2)" "$scratch/lines" || fail "$1: no program says which expf it saw"
    sed "s/^/$1: /" "$scratch/lines"
}

# Features that qemu lacks are taken out of the model, or it would warn in each process.
emulated Nehalem Nehalem 'avx2 0, fma 0, avx512f 0' PORTABLE separate
emulated Haswell Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid 'avx2 1, fma 1, avx512f 0' AVX2 fused

GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4 LINKS=static \
    c_tests/check_surroundings.sh "$lib_dir" "$include_dir" 3000 >"$scratch/lines"
report 'expf without FMA' separate
