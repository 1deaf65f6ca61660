#!/bin/sh
# Checks the way by which the original comes in, on a git repository made here with the stand-ins of standin/.
#
#     check_vendor.sh LIB_DIR INCLUDE_DIR
#
# Fetching (what it takes and what it refuses), the digests, the compile-time comparison of signatures in original.c,
# and that check_upstream.sh really runs the test, both ways, against the library. The real vendor/ is not touched.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 2 ] || usage 'LIB_DIR INCLUDE_DIR'
lib_dir=$(absolute "$1")
include_dir=$(absolute "$2")
vendor=$(absolute "$c_tests/../vendor")

# Git as on any machine: no hook's repository, no user's settings, and none of this repository's either.
unset $(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES="$scratch"
export GIT_AUTHOR_NAME=check GIT_AUTHOR_EMAIL=check@localhost
export GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost

checks=0
passed() {
    checks=$((checks + 1))
}

# refuses WORDS COMMAND...: it fails, with one line that has these words in it
refuses() {
    words=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then
        fail "accepted, and should have been refused for '$words': $*"
    fi
    [ "$(wc -l <"$scratch/output")" -eq 1 ] && grep -qF -- "$words" "$scratch/output" ||
        fail "refused, but not with one line that says '$words': $(cat "$scratch/output")"
    passed
}

clone="$scratch/their clone"
into="$scratch/the vendor folder"

commit() { # MESSAGE
    git -C "$clone" add -A
    git -C "$clone" commit -q -m "$1"
    git -C "$clone" rev-parse HEAD
}

fetch() { # REVISION
    "$vendor/fetch.sh" "$clone" --revision "$1" --into "$into"
}

# Everything in the vendor folder, to see that a refusal changes nothing.
state() {
    (cd "$into" && find . -type f -exec sha256sum {} + | sort)
}

# ---- a repository like theirs: four revisions, the last one checked out and dirty

mkdir "$clone"
git -C "$clone" init -q
mkdir "$clone/other"
cp -R "$c_tests/standin/c" "$clone/c"
echo 'not a part of c/' >"$clone/other/qwen36_sample.h"
good=$(commit 'as it should be')

rm "$clone/c/argmax_first.h"
without_file=$(commit 'a file less')

cp "$c_tests/standin/c/argmax_first.h" "$clone/c/"
sed 's/ serve_sample(const float \*lo, int V, float temp/ serve_sample(const float *lo, int V, double temp/' "$c_tests/standin/c/qwen36_sample.h" \
    >"$clone/c/qwen36_sample.h"
changed_signature=$(commit 'another signature')

rm "$clone/c/qwen36_sample.h"
ln -s ../other/qwen36_sample.h "$clone/c/qwen36_sample.h"
symlink=$(commit 'a link in place of a file')

mkdir "$clone/c/nested"
git -C "$clone" mv c/argmax_first.h c/nested/argmax_first.h
cp "$c_tests/standin/c/qwen36_sample.h" "$clone/c/nested/"
rm "$clone/c/qwen36_sample.h"
moved=$(commit 'moved below c/')

cp "$clone/c/nested/argmax_first.h" "$clone/c/tests/"
twice=$(commit 'twice below c/')
echo 'a change that is not committed' >>"$clone/c/tests/test_qwen36_sample.c"

# ---- nothing vendored

"$c_tests/check_upstream.sh" "$lib_dir" "$include_dir" "$scratch" >"$scratch/output" ||
    fail 'check_upstream.sh fails where there is no original'
grep -q 'not run' "$scratch/output" || fail 'check_upstream.sh does not say that it did not run'
passed
refuses 'the original is not there' "$vendor/verify.sh" "$scratch"

# ---- fetching

before=$(cd "$clone" && find . -type f -exec sha256sum {} + | sort)
fetch "$good" >"$scratch/output" || fail 'fetch.sh refuses a good revision'
[ "$before" = "$(cd "$clone" && find . -type f -exec sha256sum {} + | sort)" ] || fail 'fetch.sh touched the clone'
for name in qwen36_sample.h argmax_first.h tests/test_qwen36_sample.c; do
    cmp -s "$c_tests/standin/c/$name" "$into/original/c/$name" || fail "fetch.sh did not bring $name as committed"
done
[ "$(cd "$into" && sha256sum original/c/qwen36_sample.h)" = "$(sed -n 1p "$into/SHA256SUMS")" ] ||
    fail 'SHA256SUMS does not hold the digest of qwen36_sample.h'
"$vendor/verify.sh" "$into" || fail 'verify.sh refuses what was just fetched'
passed

good_state=$(state)
missing=0000000000000000000000000000000000000001
refuses "lacks the revision $missing" fetch $missing
refuses 'lacks the file argmax_first.h' fetch "$without_file"
refuses 'lacks the file qwen36_sample.h' fetch "$symlink"
refuses 'several files argmax_first.h' fetch "$twice"
mkdir "$scratch/no clone"
refuses 'is not a git repository' "$vendor/fetch.sh" "$scratch/no clone" --into "$into"
refuses 'no such folder' "$vendor/fetch.sh" "$scratch/nowhere" --into "$into"
# The pinned revision is what is fetched when none is given; this clone cannot have it.
refuses "lacks the revision $(sed -n 's/^revision //p' "$vendor/PIN")" "$vendor/fetch.sh" "$clone" --into "$into"
[ "$(state)" = "$good_state" ] || fail 'a refused fetch changed what was vendored before'
passed

# An object that does not hash to its id is refused: git's ids are what is trusted.
cp -R "$clone" "$scratch/damaged clone"
blob=$(git -C "$clone" rev-parse "$good:c/argmax_first.h")
other=$(git -C "$clone" rev-parse "$good:other/qwen36_sample.h")
objects="$scratch/damaged clone/.git/objects"
chmod -R u+w "$objects"
cp "$objects/$(echo "$other" | cut -c1-2)/$(echo "$other" | cut -c3-)" \
    "$objects/$(echo "$blob" | cut -c1-2)/$(echo "$blob" | cut -c3-)"
refuses 'argmax_first.h' "$vendor/fetch.sh" "$scratch/damaged clone" --revision "$good" --into "$into"
# Nor does a replacement in the clone count.
git -C "$clone" replace "$blob" "$other"
fetch "$good" >/dev/null || fail 'fetch.sh refuses a clone with a replaced object'
[ "$(state)" = "$good_state" ] || fail 'fetch.sh took a replacement for the object that the tree names'
git -C "$clone" replace -d "$blob" >/dev/null
passed

# Another place below c/ will do, and so will a bare clone.
git clone -q --bare "$clone" "$scratch/bare"
"$vendor/fetch.sh" "$scratch/bare" --revision "$moved" --into "$scratch/moved" >/dev/null ||
    fail 'fetch.sh does not find a file by its name below c/'
(cd "$scratch/moved" && find . -type f -name '*.[ch]' -exec sha256sum {} + | sort) >"$scratch/moved.sums"
(cd "$into" && find . -type f -name '*.[ch]' -exec sha256sum {} + | sort) | cmp -s - "$scratch/moved.sums" ||
    fail 'fetch.sh brought other files from another place below c/'
passed

# ---- the digests

file=original/c/argmax_first.h
cp "$into/$file" "$scratch/kept"
echo '/* tampered */' >>"$into/$file"
refuses "$file" "$vendor/verify.sh" "$into"
refuses "$file" "$c_tests/check_upstream.sh" "$lib_dir" "$include_dir" "$into"
rm "$into/$file"
refuses "$file is missing" "$vendor/verify.sh" "$into"
cp "$scratch/kept" "$into/$file"
mv "$into/SHA256SUMS" "$scratch/sums"
refuses 'SHA256SUMS is missing' "$vendor/verify.sh" "$into"
grep -v argmax_first "$scratch/sums" >"$into/SHA256SUMS"
refuses "$file has no line" "$vendor/verify.sh" "$into"
mv "$scratch/sums" "$into/SHA256SUMS"
"$vendor/verify.sh" "$into" || fail 'verify.sh refuses the restored files'
passed

# ---- never committed

mkdir "$scratch/a repository"
cp "$vendor/.gitignore" "$vendor/PIN" "$scratch/a repository/"
cp -R "$into/original" "$into/SHA256SUMS" "$scratch/a repository/"
git -C "$scratch/a repository" init -q
git -C "$scratch/a repository" add -A
[ "$(git -C "$scratch/a repository" ls-files | tr '\n' ' ')" = '.gitignore PIN ' ] ||
    fail 'git would commit what was vendored'
passed

# ---- signatures

# compile_original VENDOR_DIR
compile_original() {
    LC_ALL=C $CC $CFLAGS -std=c11 -Wall -Wextra -fno-builtin-expf -I "$1/original/c" -c -o "$scratch/original.o" \
        "$c_tests/original.c" 2>"$scratch/errors"
}

compile_original "$into" || fail "original.c does not compile with the stand-in: $(cat "$scratch/errors")"
build_with static "$lib_dir" "$scratch/agrees" "$c_tests/original_agrees.c" \
    -std=gnu11 -fno-builtin-expf -I "$include_dir" "$scratch/original.o"
run_with "$scratch/agrees" >"$scratch/output" || fail 'the stand-in and the library differ'
passed

# differs NAME SED_SCRIPT FILE: with this change original.c does not compile, and an error names NAME
differs() {
    rm -rf "$scratch/changed"
    cp -R "$into" "$scratch/changed"
    sed "$2" "$into/original/c/$3" >"$scratch/changed/original/c/$3"
    if compile_original "$scratch/changed"; then
        fail "original.c compiles although $1 differs"
    fi
    grep 'error' "$scratch/errors" | grep -F "$1: " | grep -q 'differs between the original and ours' ||
        fail "original.c does not name $1: $(cat "$scratch/errors")"
    passed
}

fetch "$changed_signature" >/dev/null || fail 'fetch.sh refuses the revision with the changed signature'
if compile_original "$into"; then
    fail 'original.c compiles although serve_sample differs'
fi
grep -q 'serve_sample: signature differs between' "$scratch/errors" ||
    fail "original.c does not name serve_sample: $(cat "$scratch/errors")"
fetch "$good" >/dev/null
[ "$(state)" = "$good_state" ] || fail 'fetching the good revision again gave something else'
passed
differs serve_sample_sorted 's/serve_sample_sorted(const float \*lo/serve_sample_sorted(float *lo/' qwen36_sample.h
differs serve_sample 's/static int serve_sample(/static long serve_sample(/' qwen36_sample.h
differs sample_prob_desc 's/sample_prob_desc(const void \*a/sample_prob_desc(const SampleProb *a/' qwen36_sample.h
differs argmax_first 's/argmax_first(const float \*x, int n)/argmax_first(const float *x, unsigned n)/' argmax_first.h
differs SampleProb.p 's/^    float p;/    double p;/' qwen36_sample.h
differs SampleProb.id 's/^    int id;/    int flags; int id;/' qwen36_sample.h
differs SampleProb 's/^    int id;/    int id; int flags;/' qwen36_sample.h

# ---- the original's own test

"$c_tests/check_upstream.sh" "$lib_dir" "$include_dir" "$into" >"$scratch/output" ||
    fail "check_upstream.sh fails with the stand-in's test"
for link in static shared; do
    grep -q "$link library: .*stand-in test passed" "$scratch/output" ||
        fail "check_upstream.sh did not run the test with the $link library"
done
passed

# It is the library that is tested: with one that is wrong, either way, the test fails.
wrong="$scratch/wrong library"
mkdir "$wrong"
cat >"$scratch/wrong.c" <<'END'
int sample_prob_desc(const void *a, const void *b) { return a > b; }
int argmax_first(const float *x, int n) { return x[0] > 0 ? n - 1 : 0; }
int serve_sample(const float *lo, int V, float temp, float top_p) { return lo[0] > temp + top_p ? V : 0; }
int serve_sample_sorted(const float *lo, int V, float temp, float top_p) { return serve_sample(lo, V, temp, top_p); }
END
$CC -fPIC -c -o "$scratch/wrong.o" "$scratch/wrong.c"
for link in static shared; do
    rm -f "$wrong"/*
    cp "$lib_dir/libcolibri_sampler.a" "$lib_dir/libcolibri_sampler.so" "$wrong/"
    if [ $link = static ]; then
        rm "$wrong/libcolibri_sampler.a"
        ar rc "$wrong/libcolibri_sampler.a" "$scratch/wrong.o"
    else
        $CC -shared -Wl,-soname,libcolibri_sampler.so.0 -o "$wrong/libcolibri_sampler.so" "$scratch/wrong.o"
    fi
    if "$c_tests/check_upstream.sh" "$wrong" "$include_dir" "$into" >"$scratch/output" 2>&1; then
        fail "check_upstream.sh passes with a wrong $link library"
    fi
    grep -q "the original's test fails with the $link library" "$scratch/output" ||
        fail "check_upstream.sh does not say that the $link library failed: $(cat "$scratch/output")"
    passed
done

printf 'vendor: %s checks of fetching, digests, signatures and the upstream test, with stand-ins\n' "$checks"
