# Sourced by the checks of this folder. They take CC, CXX, CFLAGS and RUNNER (words put before a program, such as
# "valgrind -q") from the environment, print one line when all is well, and one that says what is wrong.

CC=${CC:-cc}
CXX=${CXX:-c++}
CFLAGS=${CFLAGS--O2}
RUNNER=${RUNNER-}

check=$(basename "$0" .sh)
c_tests=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

fail() {
    printf '%s: %s\n' "$check" "$*" >&2
    exit 1
}

usage() {
    printf 'usage: %s %s\n' "$0" "$*" >&2
    exit 2
}

absolute() { # FOLDER
    CDPATH='' cd -- "$1" 2>/dev/null && pwd || fail "$1: no such folder"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM

# What a program needs from the C library beside ours.
SYSTEM_LIBS='-lm -lpthread -ldl'

# Links one source with the library: build_with static|shared LIB_DIR PROGRAM SOURCE [COMPILER ARGUMENTS...]
# A shared program is run by run_with, which shows it the library under its SONAME.
build_with() ( # a subshell: its variables are its own
    link=$1 lib_dir=$2 program=$3 source=$4
    shift 4
    if [ "$link" = static ]; then
        library=$lib_dir/libcolibri_sampler.a
    else
        library=$lib_dir/libcolibri_sampler.so
    fi
    [ -f "$library" ] || fail "$library: no such file"
    # CFLAGS and the libraries are lists of words.
    $CC $CFLAGS "$@" -o "$program" "$source" "$library" $SYSTEM_LIBS ||
        fail "$source does not build with the $link library"
    if [ "$link" = shared ]; then
        mkdir -p "$scratch/lib"
        ln -sf "$library" "$scratch/lib/libcolibri_sampler.so.0"
        ln -sf "$library" "$scratch/lib/libcolibri_sampler.so"
    fi
)

# run_with PROGRAM [ARGUMENTS...]
run_with() {
    LD_LIBRARY_PATH=$scratch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} $RUNNER "$@"
}
