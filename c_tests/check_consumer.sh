#!/bin/sh
# Checks the drop-in on a program that looks like an engine's serving code, c_tests/consumer.
#
#     check_consumer.sh
#
# It is built with the header in its own folder, and then, without a change of source, with what pkg-config says of
# colibri-sampler-dropin: the transcripts are the same, byte for byte.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 0 ] || usage
unset MAKEFLAGS MFLAGS PREFIX DESTDIR LIBDIR INCLUDEDIR PKGCONFIGDIR CMAKEDIR MANDIR LIBRARIES_FIRST
export CC

# With a space, since pkg-config's quoting has to last through a Makefile.
prefix="$scratch/a prefix"
${MAKE:-make} -s -C "$c_tests/.." install PREFIX="$prefix" >"$scratch/output" 2>&1 || {
    cat "$scratch/output" >&2
    fail 'make install fails'
}
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export LD_LIBRARY_PATH="$prefix/lib"

# The links to the stand-in's headers become files: an engine's own.
cp -RL "$c_tests/consumer" "$scratch/engine"
cd "$scratch/engine"
sources=$(cat ./*.[ch] Makefile | sha256sum)

build() { # WHAT [VARIABLE=VALUE...]
    build_what=$1
    shift
    ${MAKE:-make} -s clean
    ${MAKE:-make} -s CFLAGS="$CFLAGS" "$@" 2>"$scratch/output" || {
        cat "$scratch/output" >&2
        fail "$build_what: does not build"
    }
}

# Whose sampler the engine has: nm shows T out of an archive, U of a shared library, and neither with its own header,
# whose static function may have been inlined.
sampler_is() { # T|U|own WHAT
    found=$(nm engine | sed -n 's/.* \([TU]\) serve_sample$/\1/p')
    [ "${found:-own}" = "$1" ] || fail "$2: nm shows '${found:-own}' for serve_sample, expected '$1'"
}

# Many tokens of a small vocabulary, and some of a large one.
transcript() { # NAME
    for size in '2048 48' '50257 1'; do
        # Two words.
        $RUNNER ./engine $size || fail "$1: the program fails"
    done >"$scratch/$1"
}

build 'own header'
sampler_is own 'own header'
transcript own
tokens=$(awk '/ tokens$/ { sum += $1 } END { print sum }' "$scratch/own")
distinct=$(sort -u "$scratch/own" | wc -l)
[ "$tokens" -ge 10000 ] && [ "$distinct" -ge 2000 ] || fail "only $tokens tokens, $distinct different lines"

cflags=$(pkg-config --cflags colibri-sampler-dropin)
built=0
for first in '' 1; do
    where=${first:+before the objects}
    where=${where:-behind the objects}
    for how in shared static archive; do
        case $how in
        shared) kind=U libs=$(pkg-config --libs colibri-sampler-dropin) ;;
        static) kind=T libs="-static $(pkg-config --static --libs colibri-sampler-dropin)" ;;
        archive) kind=T libs=$(pkg-config --variable=static_libs colibri-sampler-dropin) ;;
        esac
        build "$how, $where" EXTRA_CFLAGS="$cflags" EXTRA_LDFLAGS="$libs" LIBRARIES_FIRST=$first
        sampler_is $kind "$how, $where"
        transcript other
        cmp "$scratch/own" "$scratch/other" >&2 || {
            diff "$scratch/own" "$scratch/other" | head -n 10 >&2
            fail "$how, $where: another transcript than with its own header"
        }
        built=$((built + 1))
    done
done

build 'undone'
sampler_is own 'undone'
[ "$sources" = "$(cat ./*.[ch] Makefile | sha256sum)" ] || fail 'the sources are not what they were'

printf 'consumer: %d tokens, the same transcript as with its own header in all %d ways of linking\n' "$tokens" "$built"
