#!/bin/sh
# install.sh install LIB_DIR
# install.sh uninstall
#
# What `make install` and `make uninstall` do, from one list of files. The
# directories are in the environment: PREFIX, LIBDIR, INCLUDEDIR, PKGCONFIGDIR,
# CMAKEDIR, MANDIR; and DESTDIR, which stands before each of them on the disk
# and in no installed file. STRIP= (empty) leaves the symbols in the shared
# library.
set -eu
umask 022
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

fail() {
    printf 'install: %s\n' "$*" >&2
    exit 1
}

# An absolute path without doubled or trailing slashes, and without what would
# mean something in a .pc or a CMake file.
directory() { # NAME VALUE
    case $2 in
    /*) ;;
    *) fail "$1 has to be an absolute path, not '$2'" ;;
    esac
    case $2 in
    *[\"\'\`\$\\\#\;\&\|\(\)@]* | *'
'*) fail "$1 has a character that pkg-config or CMake would not take: $2" ;;
    esac
    printf '%s' "$2" | sed 's|//*|/|g; s|\(.\)/$|\1|'
}

PREFIX=$(directory PREFIX "$PREFIX")
LIBDIR=$(directory LIBDIR "$LIBDIR")
INCLUDEDIR=$(directory INCLUDEDIR "$INCLUDEDIR")
PKGCONFIGDIR=$(directory PKGCONFIGDIR "$PKGCONFIGDIR")
CMAKEDIR=$(directory CMAKEDIR "$CMAKEDIR")
MANDIR=$(directory MANDIR "$MANDIR")
DESTDIR=${DESTDIR:-}
case $DESTDIR in '' | /*) ;; *) DESTDIR=$PWD/$DESTDIR ;; esac

VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
[ -n "$VERSION" ] || fail 'Cargo.toml has no version'
SOVERSION=${VERSION%%.*}

headers=$INCLUDEDIR/colibri-sampler
cmake=$CMAKEDIR/colibri-sampler
name=libcolibri_sampler
# Without DESTDIR, the directories that were not there before, so that
# uninstall leaves those that were. A package has no use for it.
made=$cmake/made-directories

# Every directory that gets a file, and those above it, the lowest first.
directories() {
    for leaf in "$headers" "$LIBDIR" "$PKGCONFIGDIR" "$cmake" "$MANDIR/man3"; do
        while [ "$leaf" != / ] && [ -n "$leaf" ]; do
            printf '%s\n' "$leaf"
            leaf=${leaf%/*}
        done
    done | LC_ALL=C sort -ru
}

# Below PREFIX a path is said by the prefix, so that what was installed can be
# moved as a whole.
below_prefix() { # PATH
    case $1 in
    */../* | */.. | */./*) printf '%s' "$1" ;;
    "${PREFIX%/}"/*) printf '${%s}%s' "$2" "${1#"${PREFIX%/}"}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# From the CMake package up to PREFIX, if it is above.
cmake_prefix() {
    case $(below_prefix "$cmake" prefix) in
    '${prefix}'*) printf '${CMAKE_CURRENT_LIST_DIR}%s' \
        "$(printf '%s' "${cmake#"${PREFIX%/}"}" | sed 's|/[^/]*|/..|g')" ;;
    *) printf '%s' "$PREFIX" ;;
    esac
}

fill() { # TEMPLATE FILE
    sed -e "s|@VERSION@|$VERSION|g" \
        -e "s|@SOVERSION@|$SOVERSION|g" \
        -e "s|@PREFIX@|$PREFIX|g" \
        -e "s|@PC_LIBDIR@|$(below_prefix "$LIBDIR" prefix)|g" \
        -e "s|@PC_INCLUDEDIR@|$(below_prefix "$INCLUDEDIR" prefix)|g" \
        -e "s|@CMAKE_PREFIX@|$(cmake_prefix)|g" \
        -e "s|@CMAKE_LIBDIR@|$(below_prefix "$LIBDIR" _colibri_sampler_prefix)|g" \
        -e "s|@CMAKE_INCLUDEDIR@|$(below_prefix "$INCLUDEDIR" _colibri_sampler_prefix)|g" \
        "$root/packaging/$1" >"$filled"
    put 644 "$filled" "$2"
}

# install unlinks first: a library that a program has mapped is not written to.
put() { # MODE FILE TARGET
    install -m "$1" "$2" "$DESTDIR$3"
}

install_all() {
    lib_dir=$1
    filled=$(mktemp)
    trap 'rm -f "$filled"' EXIT
    new=
    if [ -z "$DESTDIR" ]; then
        new=$(directories | while IFS= read -r path; do [ -d "$path" ] || printf '%s\n' "$path"; done)
    fi
    for path in "$headers" "$LIBDIR" "$PKGCONFIGDIR" "$cmake" "$MANDIR/man3"; do
        mkdir -p "$DESTDIR$path"
    done
    if [ -z "$DESTDIR" ]; then
        touch "$made"
        { cat "$made"; printf '%s\n' "$new"; } | LC_ALL=C sort -ru >"$filled"
        put 644 "$filled" "$made"
    fi

    for header in "$root"/include/*.h; do
        put 644 "$header" "$headers/${header##*/}"
    done
    put 644 "$lib_dir/$name.a" "$LIBDIR/$name.a"
    put 755 "$lib_dir/$name.so" "$LIBDIR/$name.so.$VERSION"
    [ -z "${STRIP-strip}" ] || ${STRIP-strip} --strip-unneeded "$DESTDIR$LIBDIR/$name.so.$VERSION"
    ln -sf "$name.so.$VERSION" "$DESTDIR$LIBDIR/$name.so.$SOVERSION"
    ln -sf "$name.so.$SOVERSION" "$DESTDIR$LIBDIR/$name.so"
    fill colibri-sampler.pc.in "$PKGCONFIGDIR/colibri-sampler.pc"
    fill colibri-sampler-dropin.pc.in "$PKGCONFIGDIR/colibri-sampler-dropin.pc"
    fill colibri-sampler-config.cmake.in "$cmake/colibri-sampler-config.cmake"
    fill colibri-sampler-config-version.cmake.in "$cmake/colibri-sampler-config-version.cmake"
    put 644 "$root/docs/man/colibri_sampler.3" "$MANDIR/man3/colibri_sampler.3"
}

# Other versions under the same SONAME went in from here too.
uninstall_all() {
    for header in "$root"/include/*.h; do
        rm -f "$DESTDIR$headers/${header##*/}"
    done
    rm -f "$DESTDIR$LIBDIR/$name.a" "$DESTDIR$LIBDIR/$name.so" "$DESTDIR$LIBDIR/$name.so.$SOVERSION" \
        "$DESTDIR$LIBDIR/$name.so.$SOVERSION".* \
        "$DESTDIR$PKGCONFIGDIR/colibri-sampler.pc" "$DESTDIR$PKGCONFIGDIR/colibri-sampler-dropin.pc" \
        "$DESTDIR$cmake/colibri-sampler-config.cmake" "$DESTDIR$cmake/colibri-sampler-config-version.cmake" \
        "$DESTDIR$MANDIR/man3/colibri_sampler.3"
    if [ -n "$DESTDIR" ]; then
        empty=$(directories)
    else
        empty=$(cat "$made" 2>/dev/null || printf '%s\n%s\n' "$headers" "$cmake")
        rm -f "$made"
    fi
    printf '%s\n' "$empty" | while IFS= read -r path; do
        [ ! -d "$DESTDIR$path" ] || rmdir "$DESTDIR$path" 2>/dev/null || :
    done
}

case ${1-} in
install) install_all "$2" ;;
uninstall) uninstall_all ;;
*) fail 'install LIB_DIR, or uninstall' ;;
esac
