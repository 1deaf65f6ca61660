#!/bin/sh
# mutants.sh DIR [ARGUMENTS...]: cargo-mutants over src/, with what it finds in DIR.
# Arguments are cargo-mutants': `--file src/draw.rs` takes one file alone. Green
# when each mutant is caught, or is one of those that docs/mutants.md argues.
#
# Some 1,400 mutants: hours.
set -u
cd "$(dirname "$0")/.." || exit 1

out=$1
shift
list=docs/mutants.md

# What no test can run here.
grep -qs avx512vl /proc/cpuinfo || set -- --exclude src/kernels/avx512.rs "$@"

mkdir -p "$out" || exit 1
NEXTEST_PROFILE=mutants "${CARGO:-cargo}" mutants --output "$out" --colors never --no-shuffle "$@"
status=$?
# 2: some were missed; 3: some ran into the time limit, which is to be caught.
case $status in 0 | 2 | 3) ;; *) exit $status ;; esac

# A mutant without its line and column, as the list has them: they move.
found=$out/mutants.out
sed 's/:[0-9]*:[0-9]*: /: /' "$found/missed.txt" | sort | uniq -c |
    awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print n "\t" $0 }' >"$out/missed"
awk '/^[0-9]+ src\// { n = $1; sub(/^[0-9]+ /, ""); print n "\t" $0 }' $list |
    awk -F '\t' '
        NR == FNR { argued[$2] = $1; next }
        $1 + 0 > argued[$2] + 0 { print "not caught: " $2 " (" $1 ", argued " argued[$2] + 0 ")"; bad += 1 }
        { missed += $1 }
        END { printf "%d missed, %s\n", missed, bad ? bad " kinds of them not argued" : "each argued"; exit bad > 0 }
    ' - "$out/missed" >"$out/verdict"
verdict=$?
printf '%d caught, %d ran too long, %d do not compile; ' \
    "$(wc -l <"$found/caught.txt")" "$(wc -l <"$found/timeout.txt")" "$(wc -l <"$found/unviable.txt")"
tail -n 1 "$out/verdict"
sed '$d' "$out/verdict"
exit $verdict
