#!/bin/sh
# The C programs under AddressSanitizer and UndefinedBehaviorSanitizer, with a static library that AddressSanitizer is
# built into as well (by the C compiler's runtime), so that its reads are watched and not only the program's.
#
#     check_sanitizers.sh TARGET_DIR INCLUDE_DIR
#
# TARGET_DIR is where cargo builds that library. AddressSanitizer knows AVX-512 loads too, masked ones included: on a
# CPU that has it those kernels are watched. (None was at hand so far.)
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 2 ] || usage 'TARGET_DIR INCLUDE_DIR'
target_dir=$1
include_dir=$(absolute "$2")

sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all'
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
if ! $CC $sanitizers -o "$scratch/empty" "$scratch/empty.c" 2>/dev/null || ! "$scratch/empty" 2>/dev/null; then
    echo "sanitizers: not run, $CC makes no program with AddressSanitizer that runs here"
    exit 0
fi

# Named, since cargo would otherwise build its build scripts with the sanitizer too. The flag for it is unstable.
target=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address -Zexternal-clangrt' "${CARGO:-cargo}" rustc --quiet --release --lib \
    --crate-type staticlib --target "$target" --target-dir "$target_dir" || fail 'the library does not build'
lib_dir=$target_dir/$target/release

# A leak is an error too: of the program itself at its end.
export ASAN_OPTIONS=detect_leaks=1
check() { # WITH SOURCE [ARGUMENTS...]
    with=$1
    shift
    CC=$CC CFLAGS="-O1 -g $sanitizers" LINKS=static WITH=$with \
        "$c_tests/check_program.sh" "$lib_dir" "$include_dir" "$@"
}
check '' "$c_tests/regression.c" 3000
check "$c_tests/calls.c $c_tests/reference.c" "$c_tests/bounds.c" 3
COLIBRI_SAMPLER_TIER=portable check "$c_tests/calls.c $c_tests/reference.c" "$c_tests/bounds.c" 5
check "$c_tests/child.c" "$c_tests/exits.c"
check '' "$c_tests/own_rand.c" "$c_tests/../tests/cases/fallback_683.txt"
check '' "$c_tests/api.c"
