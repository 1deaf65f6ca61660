#!/bin/sh
# Checks `make install` and `make uninstall` in scratch directories, as users meet them.
#
#     check_install.sh
#
# What is where, under every directory variable and with a space in the paths; C and C++ programs by pkg-config,
# shared, static and in between, and by CMake; DESTDIR in no installed file; uninstall leaving what was there before.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 0 ] || usage
root=$(absolute "$c_tests/..")
unset MAKEFLAGS MFLAGS PREFIX DESTDIR LIBDIR INCLUDEDIR PKGCONFIGDIR CMAKEDIR MANDIR

SIZE_LIMIT=$((400 * 1024))
checks=0

passed() {
    checks=$((checks + 1))
}

make_target() { # TARGET [VARIABLE=VALUE...]
    ${MAKE:-make} -s -C "$root" "$@" >"$scratch/output" 2>&1 || {
        cat "$scratch/output" >&2
        fail "make $1 fails"
    }
}

refuses() { # MESSAGE [VARIABLE=VALUE...]
    refuses_message=$1
    shift
    if ${MAKE:-make} -s -C "$root" install "$@" >"$scratch/output" 2>&1; then
        fail "make install takes $*"
    fi
    grep -qF "$refuses_message" "$scratch/output" ||
        fail "make install $* does not say '$refuses_message': $(cat "$scratch/output")"
    passed
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
soversion=${version%%.*}
headers=$(cd "$root/include" && ls ./*.h | sed 's|^\./||')

# Where the files of the install that is looked at are; the defaults of PREFIX.
places() { # PREFIX
    prefix=$1
    libdir=$1/lib
    includedir=$1/include
    pkgconfigdir=$libdir/pkgconfig
    cmakedir=$libdir/cmake
    mandir=$1/share/man
}

# files_are FOLDER [DESTDIR]: exactly these files below FOLDER
files_are() {
    {
        for header in $headers; do echo "$includedir/colibri-sampler/$header"; done
        for file in .a .so ".so.$soversion" ".so.$version"; do echo "$libdir/libcolibri_sampler$file"; done
        for file in '' -dropin; do echo "$pkgconfigdir/colibri-sampler$file.pc"; done
        for file in '' -version; do echo "$cmakedir/colibri-sampler/colibri-sampler-config$file.cmake"; done
        # Only a staged install needs no record of the directories.
        [ -n "${2-}" ] || echo "$cmakedir/colibri-sampler/made-directories"
        echo "$mandir/man3/colibri_sampler.3"
    } | sed "s|^|${2-}|" | sort >"$scratch/expected"
    find "$1" ! -type d | sort >"$scratch/found"
    diff "$scratch/expected" "$scratch/found" >&2 || fail "other files below $1 than expected (<)"
    passed
}

cat >"$scratch/program.c" <<'END_OF_C'
#include <argmax_first.h>
#include <colibri_sampler.h>
#include <qwen36_sample.h>

int main(int argc, char **argv)
{
    float logits[64];
    colibri_params params = colibri_params_default();
    int32_t token;
    int i;

    (void)argv;
    for (i = 0; i < 64; i++)
        logits[i] = i == 42 ? 30.0f * (float)argc : (float)(i % 7);
    srand(1);
    for (i = 0; i < 100; i++)
        if (serve_sample(logits, 64, 0.7f, 0.9f) != 42 || serve_sample_sorted(logits, 64, 0.7f, 0.9f) != 42)
            return 1;
    if (serve_sample(logits, 64, 0.0f, 0.9f) != 42 || argmax_first(logits, 64) != 42)
        return 1;
    if (strcmp(colibri_sampler_version(), COLIBRI_SAMPLER_VERSION) != 0 ||
        colibri_sample(logits, 64, &params, 0.5, NULL, &token, NULL, NULL) != COLIBRI_STATUS_OK || token != 42)
        return 1;
    puts("token 42");
    return 0;
}
END_OF_C
cp "$scratch/program.c" "$scratch/program.cpp"

# Its functions come from the shared library.
is_shared() { # PROGRAM
    readelf -d "$1" | grep NEEDED | grep -qF "[libcolibri_sampler.so.$soversion]"
}

runs() { # PROGRAM WHAT
    [ "$(LD_LIBRARY_PATH=$libdir $RUNNER "$1")" = 'token 42' ] || fail "$2: the program does not run"
    passed
}

flags() { # pkg-config's ARGUMENTS
    PKG_CONFIG_PATH=$pkgconfigdir pkg-config "$@"
}

# by_pkg_config WHAT: one program for each way of linking, with pkg-config alone knowing where things are
by_pkg_config() {
    program=$scratch/program
    # eval: pkg-config quotes its words for a shell, a space in a path for one.
    eval "$CC $CFLAGS -Wall -Wextra -Werror -o '$program' '$scratch/program.c' $(flags --cflags --libs colibri-sampler)" ||
        fail "$1: a C program does not link"
    is_shared "$program" || fail "$1: pkg-config --libs does not give the shared library"
    runs "$program" "$1, C, shared"

    eval "$CXX $CFLAGS -Wall -Wextra -Werror -o '$program' '$scratch/program.cpp' $(flags --cflags --libs colibri-sampler)" ||
        fail "$1: a C++ program does not link"
    is_shared "$program" || fail "$1: pkg-config --libs does not give a C++ program the shared library"
    runs "$program" "$1, C++, shared"

    for how in -static -static-pie; do
        eval "$CC $CFLAGS $how -o '$program' '$scratch/program.c' $(flags --static --cflags --libs colibri-sampler)" ||
            fail "$1: a C program does not link with $how"
        ! readelf -d "$program" | grep -q NEEDED || fail "$1: a program linked $how needs a shared library"
        runs "$program" "$1, C, $how"
    done

    # The archive in a program that is dynamic otherwise.
    eval "$CC $CFLAGS -o '$program' '$scratch/program.c' $(flags --cflags colibri-sampler)" \
        "-Wl,-Bstatic $(flags --libs colibri-sampler) -Wl,-Bdynamic -lm -lpthread -ldl" ||
        fail "$1: a C program does not link with the archive"
    ! is_shared "$program" || fail "$1: the archive is not what was linked"
    runs "$program" "$1, C, archive"
}

mkdir "$scratch/cmake project"
cp "$scratch/program.c" "$scratch/program.cpp" "$scratch/cmake project/"
cat >"$scratch/cmake project/CMakeLists.txt" <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.13)
project(consumer C CXX)
find_package(colibri-sampler ${WANTED} REQUIRED)
find_package(colibri-sampler REQUIRED) # twice does no harm
foreach(kind shared static colibri_sampler)
  add_executable(c_${kind} program.c)
  target_link_libraries(c_${kind} PRIVATE colibri_sampler::${kind})
endforeach()
add_executable(cxx program.cpp)
target_link_libraries(cxx PRIVATE colibri_sampler::colibri_sampler)
END_OF_CMAKE

configure() { # BUILD_FOLDER WANTED_VERSION
    rm -rf "$1"
    cmake -S "$scratch/cmake project" -B "$1" -DWANTED="$2" -DCMAKE_PREFIX_PATH="$prefix" \
        -Dcolibri-sampler_DIR="$cmakedir/colibri-sampler" >"$scratch/output" 2>&1
}

by_cmake() { # WHAT
    build="$scratch/cmake build"
    configure "$build" "$version" && cmake --build "$build" >"$scratch/output" 2>&1 || {
        cat "$scratch/output" >&2
        fail "$1: the CMake project does not build"
    }
    is_shared "$build/c_shared" || fail "$1: colibri_sampler::shared is not"
    ! is_shared "$build/c_static" || fail "$1: colibri_sampler::static is not"
    for program in c_shared c_static c_colibri_sampler cxx; do
        runs "$build/$program" "$1, CMake, $program"
    done
}

# ---- what is installed, and programs built with it

places "$scratch/a prefix"
make_target install PREFIX="$prefix"
files_are "$prefix"
for link in "libcolibri_sampler.so libcolibri_sampler.so.$soversion" \
    "libcolibri_sampler.so.$soversion libcolibri_sampler.so.$version"; do
    [ "$(readlink "$libdir/${link%% *}")" = "${link#* }" ] || fail "${link%% *} is no link to ${link#* }"
done
library=$libdir/libcolibri_sampler.so.$version
readelf -d "$library" | grep SONAME | grep -qF "[libcolibri_sampler.so.$soversion]" ||
    fail "the SONAME is not libcolibri_sampler.so.$soversion"
"$c_tests/check_symbols.sh" "$library" "$includedir/colibri-sampler" >/dev/null
[ -z "$(nm "$library" 2>/dev/null)" ] || fail 'the installed shared library is not stripped'
size=$(wc -c <"$library")
[ "$size" -lt $SIZE_LIMIT ] || fail "the shared library is of $size bytes; the limit is $SIZE_LIMIT"
for module in colibri-sampler colibri-sampler-dropin; do
    [ "$(flags --modversion $module)" = "$version" ] || fail "$module.pc has another version than Cargo.toml"
    flags --validate $module || fail "pkg-config finds fault with $module.pc"
done
mandoc -T lint -W warning "$mandir/man3/colibri_sampler.3" >&2 || fail 'mandoc finds fault with the man page'
passed
by_pkg_config 'PREFIX'
by_cmake 'PREFIX'

for wanted in 9 "$((soversion + 1)).0" "$soversion.999" "$((soversion + 1)).0...$((soversion + 1)).5"; do
    ! configure "$scratch/refused" "$wanted" || fail "the CMake package passes for version $wanted"
done
for wanted in "$soversion" "$version" "$soversion.0...<$((soversion + 1))"; do
    configure "$scratch/taken" "$wanted" || fail "the CMake package does not pass for version $wanted"
done
passed

# Moved as a whole, the CMake package still finds its own.
mv "$prefix" "$scratch/elsewhere"
places "$scratch/elsewhere"
by_cmake 'moved'
mv "$prefix" "$scratch/a prefix"
places "$scratch/a prefix"

# Again over itself, and over another version with the same SONAME.
: >"$libdir/libcolibri_sampler.so.$soversion.0.0-old"
make_target install PREFIX="$prefix/"
make_target uninstall PREFIX="$prefix"
[ ! -e "$prefix" ] || fail "uninstall leaves $(find "$prefix" | tr '\n' ' ')"
passed

# ---- uninstall leaves what others put there, empty directories too

mkdir -p "$libdir/pkgconfig" "$includedir" "$mandir"
echo theirs >"$libdir/pkgconfig/theirs.pc"
before=$(find "$prefix" | sort)
make_target install PREFIX="$prefix"
make_target uninstall PREFIX="$prefix"
[ "$(find "$prefix" | sort)" = "$before" ] || fail 'uninstall does not leave what it found'
make_target uninstall PREFIX="$prefix"
[ "$(find "$prefix" | sort)" = "$before" ] || fail 'a second uninstall takes something away'
rm -r "$prefix"
passed

# ---- every directory variable: none below another, and below PREFIX but elsewhere

variables() { # TARGET
    make_target "$1" PREFIX="$prefix" LIBDIR="$libdir" INCLUDEDIR="$includedir" PKGCONFIGDIR="$pkgconfigdir" \
        CMAKEDIR="$cmakedir" MANDIR="$mandir"
}

for apart in "$scratch/apart" "$scratch/a prefix"; do
    prefix="$scratch/a prefix"
    libdir="$apart/lib 64/here"
    includedir=$apart/c/headers
    pkgconfigdir=$apart/pc
    cmakedir=$apart/share/cmake
    mandir=$apart/doc/man
    variables install
    files_are "$apart"
    [ "$apart" = "$prefix" ] || [ ! -e "$prefix" ] || fail 'with every directory elsewhere there is something in PREFIX'
    by_pkg_config 'directory variables'
    by_cmake 'directory variables'
    variables uninstall
    [ ! -e "$apart" ] || fail "uninstall leaves $(find "$apart" | tr '\n' ' ')"
done

# One alone moves those that are named after it.
places "$scratch/a prefix"
libdir=$prefix/lib64
pkgconfigdir=$libdir/pkgconfig
cmakedir=$libdir/cmake
make_target install PREFIX="$prefix" LIBDIR="$libdir"
files_are "$prefix"
make_target uninstall PREFIX="$prefix" LIBDIR="$libdir"
[ ! -e "$prefix" ] || fail "uninstall with LIBDIR leaves $(find "$prefix" | tr '\n' ' ')"

# ---- DESTDIR: where a package is put together, and nothing else

stage="$scratch/a stage"
places "$scratch/final prefix"
make_target install DESTDIR="$stage" PREFIX="$prefix"
files_are "$stage" "$stage"
! grep -rlF "$stage" "$stage" >&2 || fail 'DESTDIR is inside an installed file'
[ ! -e "$prefix" ] || fail 'with DESTDIR something is in PREFIX itself'
mv "$stage$prefix" "$prefix"
by_pkg_config 'DESTDIR'
by_cmake 'DESTDIR'
mv "$prefix" "$stage$prefix"
make_target uninstall DESTDIR="$stage" PREFIX="$prefix"
[ -z "$(find "$stage" -mindepth 1)" ] || fail "uninstall with DESTDIR leaves $(find "$stage" | tr '\n' ' ')"
places /usr/local
make_target install DESTDIR="$stage"
files_are "$stage" "$stage"
make_target uninstall DESTDIR="$stage"
[ -z "$(find "$stage" -mindepth 1)" ] || fail "uninstall with DESTDIR leaves $(find "$stage" | tr '\n' ' ')"
passed

refuses "PREFIX has to be an absolute path, not 'here'" PREFIX=here
refuses 'LIBDIR has to be an absolute path' PREFIX="$prefix" LIBDIR=lib DESTDIR="$stage"
refuses 'INCLUDEDIR has a character' PREFIX="$prefix" INCLUDEDIR="$scratch/semi;colon" DESTDIR="$stage"
[ -z "$(find "$stage" -mindepth 1)" ] || fail 'a refused install leaves something'

printf 'install: %d checks of files, pkg-config, CMake, DESTDIR and uninstall; shared library stripped %d KB\n' \
    "$checks" $((size / 1024))
