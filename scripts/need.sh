#!/bin/sh
# need.sh TOOL... [-- COMMAND...]
#
# What a check needs: libclang, valgrind, qemu-x86_64, g++, cmake, rustfmt,
# clippy, cargo-fuzz, cargo-mutants. A tool that is missing is installed where
# that may be done without asking (apt-get as root or by a sudo that wants no
# password, rustup, cargo); elsewhere the one command that would do it is named.
#
# With COMMAND, it is run when all tools are there; when one may not be
# installed here, a line says that it was not run, and that is no failure.
# Without, every missing tool is one. An installation that fails always is.
set -u

have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    ldconfig -p 2>/dev/null | grep -q 'libclang[-.0-9]*\.so' && return 0
    for lib in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang[-.]*.so* \
        /usr/lib64/libclang.so* /usr/lib64/llvm*/lib*/libclang.so* /usr/local/lib/libclang.so*; do
        case $lib in *libclang-cpp*) continue ;; esac
        [ -e "$lib" ] && return 0
    done
    return 1
}

have() {
    case $1 in
    libclang) have_libclang ;;
    rustfmt) cargo fmt --version ;;
    clippy) cargo clippy --version ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# libclang alone and not all of libclang-dev: the release's default version.
libclang_package() {
    package=$(apt-cache depends libclang-dev 2>/dev/null |
        sed -n 's/.*Depends: libclang-\([0-9][0-9]*\)-dev$/libclang1-\1/p' | head -n 1)
    echo "${package:-libclang-dev}"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_apt() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || sudo -n true >/dev/null 2>&1
}

# The same by that name for apt-get, dnf and pacman.
package_of() {
    case $1 in
    qemu-x86_64) echo qemu-user ;;
    *) echo "$1" ;;
    esac
}

updated=
apt_install() {
    [ -n "$updated" ] || as_root apt-get -qq update >/dev/null
    updated=1
    package=$(package_of "$1")
    [ "$1" != libclang ] || package=$(libclang_package)
    echo "installing $package"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -y --no-install-recommends install "$package" >/dev/null
}

name_the_command() {
    case $1 in
    rustfmt | clippy) echo "rustup component add $1" ;;
    cargo-*) echo "cargo install --locked $1" ;;
    libclang)
        if command -v dnf >/dev/null 2>&1; then
            echo "sudo dnf install clang-libs"
        elif command -v pacman >/dev/null 2>&1; then
            echo "sudo pacman -S clang"
        else
            echo "sudo apt-get install libclang-dev"
        fi
        ;;
    *)
        package=$(package_of "$1")
        if command -v dnf >/dev/null 2>&1; then
            echo "sudo dnf install $package" | sed 's/ g++$/ gcc-c++/; s/ pkg-config$/ pkgconf-pkg-config/'
        elif command -v pacman >/dev/null 2>&1; then
            echo "sudo pacman -S $package" | sed 's/ g++$/ gcc/; s/ pkg-config$/ pkgconf/'
        else
            echo "sudo apt-get install $package"
        fi
        ;;
    esac
}

may_install() {
    case $1 in
    rustfmt | clippy) command -v rustup >/dev/null 2>&1 ;;
    cargo-*) true ;;
    *) can_apt ;;
    esac
}

install() {
    case $1 in
    rustfmt | clippy) rustup -q component add "$1" ;;
    cargo-*) cargo install --quiet --locked "$1" ;;
    *) apt_install "$1" ;;
    esac
} >&2 </dev/null

missing=
while [ $# -gt 0 ]; do
    tool=$1
    shift
    [ "$tool" != -- ] || break
    have "$tool" && continue
    if may_install "$tool"; then
        install "$tool"
        have "$tool" && continue
        echo "$tool is missing and could not be installed: $(name_the_command "$tool")" >&2
        exit 1
    fi
    missing="${missing:+$missing; }$tool is missing: $(name_the_command "$tool")"
done
if [ -z "$missing" ]; then
    [ $# -eq 0 ] || exec "$@"
elif [ $# -gt 0 ]; then
    echo "not run, $missing"
else
    echo "$missing" >&2
    exit 1
fi
