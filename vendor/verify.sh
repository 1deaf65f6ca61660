#!/bin/sh
# Compares the vendored files in DIR with the digests that fetch.sh wrote.
#
#     verify.sh DIR
#
# Exits with 0 when all pinned files are there and as they were fetched, with 2 when nothing was vendored, with 1
# otherwise; 1 and 2 come with one line that says why. Silent on success.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

fail() {
    printf 'vendor: %s\n' "$*" >&2
    exit 1
}

[ $# -eq 1 ] || {
    echo 'usage: verify.sh DIR' >&2
    exit 2
}
cd -- "$1" || exit 1

if [ ! -e original ] && [ ! -e SHA256SUMS ]; then
    echo 'vendor: the original is not there' >&2
    exit 2
fi
[ -f SHA256SUMS ] || fail 'SHA256SUMS is missing; fetch the original again'

# Every pinned file has its line, so that a file cannot escape by losing it.
for name in $(sed -n 's/^file //p' "$here/PIN"); do
    file=original/c/$name
    [ -f "$file" ] || fail "$file is missing; fetch the original again"
    digest=$(awk -v file="$file" '$2 == file { print $1 }' SHA256SUMS)
    [ -n "$digest" ] || fail "$file has no line in SHA256SUMS; fetch the original again"
    [ "$(sha256sum <"$file")" = "$digest  -" ] ||
        fail "$file is not the file that was fetched: its SHA-256 differs from SHA256SUMS"
done
