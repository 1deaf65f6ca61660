#!/bin/sh
# Checks the headers as a C or C++ program sees them.
#
#     check_headers.sh INCLUDE_DIR
#
# Each header compiles alone, and twice over, in every supported language without a warning; forced in, it makes a
# header of the same name in the includer's own folder a no-op; qwen36_sample.h brings what its users rely on.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 1 ] || usage 'INCLUDE_DIR'
include_dir=$(absolute "$1")

WARNINGS='-Wall -Wextra -Wpedantic -Werror'

# gcc and g++ are asked for by name: the promise names them. clang where it is installed.
compilers=
for compiler in gcc clang; do
    if command -v $compiler >/dev/null; then compilers="$compilers $compiler"; fi
done
cxx_compilers=
for compiler in g++ clang++; do
    if command -v $compiler >/dev/null; then cxx_compilers="$cxx_compilers $compiler"; fi
done
case $compilers in *gcc*) ;; *) fail 'gcc is not installed' ;; esac
case $cxx_compilers in *g++*) ;; *) fail 'g++ is not installed' ;; esac

# compile COMPILER LANGUAGE SOURCE WHAT [COMPILER ARGUMENTS...]
compile() {
    compile_as=$1 compile_std=$2 compile_source=$3 compile_what=$4
    shift 4
    $compile_as -std="$compile_std" $WARNINGS "$@" -c -o "$scratch/object.o" "$compile_source" ||
        fail "$compile_what: $compile_as -std=$compile_std does not take it"
}

# A source in both languages: $scratch/NAME.c and $scratch/NAME.cpp, from stdin.
write_source() { # NAME
    cat >"$scratch/$1.c"
    cp "$scratch/$1.c" "$scratch/$1.cpp"
}

# every_language NAME WHAT [COMPILER ARGUMENTS...]
every_language() {
    every_name=$1 every_what=$2
    shift 2
    for compiler in $compilers; do
        for std in c99 c11 c17; do
            compile $compiler $std "$scratch/$every_name.c" "$every_what" "$@"
        done
    done
    for compiler in $cxx_compilers; do
        compile $compiler c++17 "$scratch/$every_name.cpp" "$every_what" "$@"
    done
}

for header in "$include_dir"/*.h; do
    [ -f "$header" ] || fail "no headers in $include_dir"
    name=$(basename "$header")
    printf '#include "%s"\n#include "%s"\n' "$name" "$name" | write_source alone
    every_language alone "$name alone" -I "$include_dir"
done

# The whole promised surface, through qwen36_sample.h, with nothing else included.
write_source surface <<'END'
#include "qwen36_sample.h"
#if !defined(QWEN36_SAMPLE_H) || !defined(ARGMAX_FIRST_H)
#error "a guard of the original is not defined"
#endif
typedef int comparator(const void *, const void *);
typedef int sampler(const float *, int, float, float);
typedef int argmax(const float *, int);
int everything(const float *logits, int count);
int everything(const float *logits, int count)
{
    comparator *compare = sample_prob_desc;
    sampler *samplers[2];
    argmax *first = argmax_first;
    SampleProb pair[2];
    uint32_t bits;

    samplers[0] = serve_sample;
    samplers[1] = serve_sample_sorted;
    pair[0].p = expf(logits[0]);
    pair[0].id = 0;
    pair[1] = pair[0];
    memcpy(&bits, &pair[1].p, sizeof bits);
    qsort(pair, 2, sizeof pair[0], compare);
    if (bits == 0)
        fprintf(stderr, "%d\n", rand());
    return samplers[0](logits, count, 1.0f, 0.9f) + samplers[1](logits, count, 1.0f, 0.9f) + first(logits, count);
}
END
every_language surface 'the surface of qwen36_sample.h' -I "$include_dir"
for compiler in $cxx_compilers; do
    compile $compiler c++17 "$scratch/surface.cpp" 'the surface of qwen36_sample.h' -I "$include_dir"
    for symbol in sample_prob_desc serve_sample serve_sample_sorted argmax_first; do
        nm -u "$scratch/object.o" | grep -q " $symbol\$" || fail "$symbol is not extern \"C\" for $compiler"
    done
done

# A program whose own folder has headers of the same names: stand-ins for the original, that must not be read.
theirs="$scratch/their folder"
mkdir "$theirs"
for name in qwen36_sample argmax_first; do
    guard=$(printf '%s_H' "$name" | tr '[:lower:]' '[:upper:]')
    printf '#ifndef %s\n#define %s\n#error "the header in the includer'"'"'s folder was read"\n#endif\n' \
        "$guard" "$guard" >"$theirs/$name.h"
done
cp "$scratch/surface.c" "$scratch/surface.cpp" "$theirs/"
printf '#include "argmax_first.h"\nint f(const float *x, int n);\nint f(const float *x, int n) { return argmax_first(x, n); }\n' >"$theirs/argmax.c"
for compiler in $compilers; do
    # Without the forced include the stand-ins are found: the test has teeth.
    for source in surface argmax; do
        if $compiler -I "$include_dir" -fsyntax-only "$theirs/$source.c" 2>/dev/null; then
            fail "$compiler did not read the header in the includer's own folder; the forced include is not tested"
        fi
    done
    for std in c99 c11 c17; do
        compile $compiler $std "$theirs/surface.c" 'qwen36_sample.h forced in' -include "$include_dir/qwen36_sample.h"
        compile $compiler $std "$theirs/argmax.c" 'qwen36_sample.h forced in' -include "$include_dir/qwen36_sample.h"
        compile $compiler $std "$theirs/argmax.c" 'argmax_first.h forced in' -include "$include_dir/argmax_first.h"
    done
done
for compiler in $cxx_compilers; do
    compile $compiler c++17 "$theirs/surface.cpp" 'qwen36_sample.h forced in' -include "$include_dir/qwen36_sample.h"
done

printf 'headers: %s as C99, C11, C17 and C++17, alone and forced in, with%s%s\n' \
    "$(cd "$include_dir" && echo *.h)" "$compilers" "$cxx_compilers"
