#!/bin/sh
# Takes the original's files out of a git clone of Colibri at exactly the pinned revision.
#
#     fetch.sh CLONE [--revision REV] [--into DIR]
#
# Writes DIR/original/c/... and DIR/SHA256SUMS (DIR is this script's folder unless given). All or nothing: what was
# there before stays until every file has been taken and checked. The clone is only read.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

fail() {
    printf 'vendor: %s\n' "$*" >&2
    exit 1
}

usage() {
    echo 'usage: fetch.sh CLONE [--revision REV] [--into DIR]' >&2
    exit 2
}

clone=
into=$here
revision=$(sed -n 's/^revision //p' "$here/PIN")
while [ $# -gt 0 ]; do
    case $1 in
        --revision | --into)
            [ $# -ge 2 ] || usage
            if [ "$1" = --into ]; then into=$2; else revision=$2; fi
            shift
            ;;
        -*) usage ;;
        *)
            [ -z "$clone" ] || usage
            clone=$1
            ;;
    esac
    shift
done
[ -n "$clone" ] || usage
[ -d "$clone" ] || fail "$clone: no such folder"
command -v git >/dev/null || fail 'git is not installed'

# Called from a git hook, git would look at the hook's repository and not at the clone.
unset $(git rev-parse --local-env-vars)
# An object is what its id says: no replacement objects, and nothing fetched into a partial clone.
export GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0

in_clone() {
    git -C "$clone" "$@"
}

why=$(in_clone rev-parse --git-dir 2>&1 >/dev/null) ||
    fail "$clone is not a git repository that git will read ($(printf '%s' "$why" | sed 1q))"
commit=$(in_clone rev-parse --quiet --verify "$revision^{commit}" 2>/dev/null) ||
    fail "$clone lacks the revision $revision"

mkdir -p -- "$into"
staging=$(mktemp -d "$into/.staging.XXXXXX")
trap 'rm -rf "$staging"' EXIT
trap 'exit 130' HUP INT TERM

# The object's content, if it hashes to its id.
take() { # TYPE ID WHAT
    in_clone cat-file "$1" "$2" >"$staging/object" 2>/dev/null || fail "$clone lacks $3 of revision $revision"
    [ "$(in_clone hash-object -t "$1" --stdin <"$staging/object" 2>/dev/null)" = "$2" ] ||
        fail "$3 in $clone is damaged: it does not hash to its id $2"
}

take commit "$commit" "the commit"
tree=$(in_clone rev-parse --quiet --verify "$commit^{tree}")
take tree "$tree" "the tree"

# The whole tree's listing with ids; c/ and what lies below it.
in_clone ls-tree --full-tree -r -t "$commit" -- c/ >"$staging/listing" 2>/dev/null ||
    fail "$clone lacks a tree of revision $revision"
[ -s "$staging/listing" ] || fail "revision $revision in $clone has no folder c/"

tab=$(printf '\t')

# Finds an entry by its full path: its id, or nothing.
id_of() { # TYPE PATH
    awk -F "$tab" -v type="$1" -v path="$2" '
        $2 == path { split($1, entry, " "); if (entry[2] == type && entry[1] != "120000") print entry[3] }
    ' "$staging/listing"
}

# Finds a file by its name below c/, at its own place first: its path, or nothing, or several lines.
path_of() { # NAME
    awk -F "$tab" -v name="$1" '
        { split($1, entry, " ") }
        entry[2] != "blob" || entry[1] == "120000" { next }
        $2 == "c/" name { exact = $2 }
        length($2) > length(name) && substr($2, length($2) - length(name)) == "/" name { found = found $2 "\n" }
        END { printf "%s", exact ? exact "\n" : found }
    ' "$staging/listing"
}

sed -n 's/^file //p' "$here/PIN" >"$staging/names"
while IFS= read -r name; do
    path=$(path_of "$name")
    case $path in
        '') fail "revision $revision in $clone lacks the file $name below c/" ;;
        *"
"*) fail "revision $revision in $clone has several files $name below c/" ;;
    esac
    folder=$(dirname "$path")
    while [ "$folder" != . ]; do
        take tree "$(id_of tree "$folder")" "the folder $folder"
        folder=$(dirname "$folder")
    done
    take blob "$(id_of blob "$path")" "the file $path"
    mkdir -p "$staging/original/c/$(dirname "$name")"
    mv "$staging/object" "$staging/original/c/$name"
    (cd "$staging" && sha256sum "original/c/$name") >>"$staging/SHA256SUMS"
done <"$staging/names"

# The swap. Without SHA256SUMS nothing counts as vendored, so it goes first and comes last.
trap '' HUP INT TERM
rm -f "$into/SHA256SUMS"
rm -rf "$into/original"
mv "$staging/original" "$into/original"
mv "$staging/SHA256SUMS" "$into/SHA256SUMS"
printf 'vendor: %s files of revision %s in %s\n' "$(wc -l <"$into/SHA256SUMS" | tr -d ' ')" "$commit" "$into/original"
