#!/bin/sh
# planted.sh DIR [PATTERN]: plants each fault of scripts/planted.txt, or those on
# lines that match, in a copy of the tree in DIR, one at a time, and runs what
# has to fail. Green when each of them fails, and all pass without a fault.
set -u
cd "$(dirname "$0")/.." || exit 1

mkdir -p "$1" || exit 1
out=$(cd "$1" && pwd)
pattern=${2:-.}
tree=$out/tree
rm -rf "$tree"
mkdir -p "$tree" || exit 1
git ls-files -z | xargs -0 cp --parents -t "$tree" || exit 1
cd "$tree" || exit 1
export CARGO_TARGET_DIR="$out/target" NEXTEST_PROFILE=mutants

# run CHECK: the tests of a selection, or a make target.
run() {
    case $1 in
    make*) make --no-print-directory "${1#make }" ;;
    *) "${CARGO:-cargo}" nextest run $1 ;;
    esac >"$out/log" 2>&1 </dev/null
}

# plant FILE FROM TO: fails unless FROM stands in the file exactly once.
plant() {
    FROM=$2 TO=$3 awk '
        { text = text $0 "\n" }
        END {
            from = ENVIRON["FROM"]; to = ENVIRON["TO"]
            gsub(/\\n/, "\n", from); gsub(/\\n/, "\n", to)
            at = index(text, from)
            rest = substr(text, at + length(from))
            if (at == 0 || index(rest, from)) exit 1
            printf "%s%s%s", substr(text, 1, at - 1), to, rest
        }
    ' "$1" >"$out/mutated" && cp "$out/mutated" "$1"
}

grep -v '^#' scripts/planted.txt | grep -e "$pattern" >"$out/faults"
cut -f 1 "$out/faults" | sort -u | while read -r check; do
    run "$check" || {
        cat "$out/log" >&2
        echo "planted: without a fault, $check fails" >&2
        exit 1
    }
done || exit 1

tab=$(printf '\t')
planted=0 unseen=0
while IFS=$tab read -r check file from to; do
    cp "$file" "$out/original"
    plant "$file" "$from" "$to" || {
        echo "planted: $file: not there once: $from" >&2
        exit 1
    }
    planted=$((planted + 1))
    if run "$check"; then
        unseen=$((unseen + 1))
        echo "NOT SEEN by $check: $file: $from -> $to"
    elif grep -q 'could not compile' "$out/log"; then
        unseen=$((unseen + 1))
        echo "does not compile: $file: $from -> $to"
    fi
    cp "$out/original" "$file"
done <"$out/faults"
echo "$planted faults planted by hand, $unseen not seen"
[ $unseen -eq 0 ]
