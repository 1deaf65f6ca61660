#!/bin/sh
# Other CPUs than this one: without AVX2, also where there is FMA, and with AVX2 but no AVX-512, all by qemu-user; and
# glibc's expf for CPUs without FMA, on this one.
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

# features MODEL: what the CPU has, and the kernels that it draws by, whose names qemu writes down as it translates them.
features() {
    [ -e "$scratch/cpu" ] || build_with static "$lib_dir" "$scratch/cpu" c_tests/cpu.c -I "$include_dir"
    features=$(qemu-x86_64 -cpu "$1" -d in_asm -D "$scratch/log" "$scratch/cpu") || fail "the first draw on $1 fails"
    tiers=$(sed -n 's/^IN: .*kernels[0-9]*\(PORTABLE\|AVX2\|AVX512\)[0-9].*/\1/p' "$scratch/log" | sort -u | xargs)
    echo "$features; kernels $tiers"
}

# emulated NAME MODEL FEATURES: the CPU has these features and draws by these kernels alone.
emulated() {
    found=$(features "$2")
    [ "$found" = "$3" ] || fail "the emulated $1 has $found, not $3"
}

# programs NAME MODEL EXPF
programs() {
    (
        export RUNNER="qemu-x86_64 -cpu $2"
        program regression.c 3000
        export LINKS=static WITH="$draws"
        program threads.c 700 10
        program modes.c default
        export WITH="$draws $($CC -print-file-name=crtfastmath.o)"
        program modes.c flushed
    ) >"$scratch/lines"
    report "$1 ($found)" "$3"
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

# Features that qemu lacks are taken out of the models, or it would warn in each process.
haswell=Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid
piledriver=Opteron_G5,-fma4,-xop,-svm,-3dnowprefetch,-misalignsse,-tbm

emulated Piledriver "$piledriver" 'avx2 0, fma 1, avx512f 0; kernels PORTABLE'
echo 'Piledriver (avx2 0, fma 1; kernels PORTABLE): the first draw'
emulated Nehalem Nehalem 'avx2 0, fma 0, avx512f 0; kernels PORTABLE'
programs Nehalem Nehalem separate
emulated Haswell "$haswell" 'avx2 1, fma 1, avx512f 0; kernels AVX2'
programs Haswell "$haswell" fused

GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4 LINKS=static \
    c_tests/check_surroundings.sh "$lib_dir" "$include_dir" 3000 >"$scratch/lines"
report 'expf without FMA' separate
