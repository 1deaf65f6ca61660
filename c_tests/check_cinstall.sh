#!/bin/sh
# Checks that `cargo cinstall` installs the library too, for who packages with cargo-c.
#
#     check_cinstall.sh TOOLS_DIR
#
# Where cargo-c is not there, the last version that this Rust builds is put into TOOLS_DIR: some six minutes, which is
# why `make check` leaves this out.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 1 ] || usage 'TOOLS_DIR'
root=$(absolute "$c_tests/..")
unset MAKEFLAGS MFLAGS PREFIX DESTDIR LIBDIR INCLUDEDIR PKGCONFIGDIR
cargo=${CARGO:-cargo}

CARGO_C=0.10.24+cargo-0.98.0
mkdir -p "$1"
PATH=$(absolute "$1")/bin:$PATH
command -v cargo-cinstall >/dev/null ||
    $cargo install --quiet --locked --debug --root "$1" --version "$CARGO_C" cargo-c >&2 ||
    fail "cargo-c $CARGO_C does not install"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
soversion=${version%%.*}

# No space in it: what cargo-c writes into a .pc file is not quoted.
prefix=$scratch/prefix
libdir=$prefix/lib
(cd "$root" && $cargo cinstall --release --prefix "$prefix" --libdir "$libdir") >"$scratch/output" 2>&1 || {
    cat "$scratch/output" >&2
    fail 'cargo cinstall fails'
}

for header in "$root"/include/*.h; do
    cmp "$header" "$prefix/include/colibri-sampler/${header##*/}" || fail "${header##*/} is not installed"
done
[ "$(readlink -f "$libdir/libcolibri_sampler.so.$soversion")" = "$libdir/libcolibri_sampler.so.$version" ] ||
    fail "libcolibri_sampler.so.$soversion does not lead to libcolibri_sampler.so.$version"
readelf -d "$libdir/libcolibri_sampler.so" | grep SONAME | grep -qF "[libcolibri_sampler.so.$soversion]" ||
    fail "the SONAME is not libcolibri_sampler.so.$soversion"
"$c_tests/check_symbols.sh" "$libdir/libcolibri_sampler.so" "$root/include" >/dev/null

cat >"$scratch/program.c" <<'END_OF_C'
#include <qwen36_sample.h>

int main(void)
{
    volatile float low = -1.0f;
    float logits[] = {low, 20.0f, low};

    printf("%d\n", serve_sample(logits, 3, 0.7f, 0.9f));
    return 0;
}
END_OF_C
export PKG_CONFIG_PATH="$libdir/pkgconfig"
[ "$(pkg-config --modversion colibri-sampler)" = "$version" ] || fail 'colibri-sampler.pc has another version'
$CC $CFLAGS -o "$scratch/program" "$scratch/program.c" $(pkg-config --cflags --libs colibri-sampler) || fail 'a C program does not link'
readelf -d "$scratch/program" | grep NEEDED | grep -qF "[libcolibri_sampler.so.$soversion]" ||
    fail 'pkg-config does not give the shared library'
[ "$(LD_LIBRARY_PATH=$libdir "$scratch/program")" = 1 ] || fail 'a C program does not run'
$CC $CFLAGS -static -I "$prefix/include/colibri-sampler" -o "$scratch/program" "$scratch/program.c" \
    "$libdir/libcolibri_sampler.a" $SYSTEM_LIBS || fail 'a C program does not link statically'
[ "$("$scratch/program")" = 1 ] || fail 'a static C program does not run'

printf 'cinstall: headers, libraries under their version names and colibri-sampler.pc, by cargo-c\n'
