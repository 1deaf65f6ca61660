#!/bin/sh
# check.sh LOG_DIR STEP...
#
# Runs `make check-STEP` for each, all of them whatever fails, and prints a line
# or two for each: what it prints on stdout. The whole output of a step that
# fails is shown; V=1 shows all of it. A line with "not run" in it marks a step
# that this machine could not take; it counts as neither.
set -u
cd "$(dirname "$0")/.." || exit 1

logs=$1
shift
mkdir -p "$logs" || exit 1

passed=0 failed=0 left_out=0

# report MARK STEP SECONDS FILE: the first line beside the step's name, the
# others below it.
report() {
    sed "s/^$2: //" "$4" | awk -v mark="$1" -v step="$2" -v seconds="$3s" '
        NR == 1 { printf "%-7s %5s  %-10s  %s\n", mark, seconds, step, $0 }
        NR > 1 { printf "%27s%s\n", "", $0 }
        END { if (NR == 0) printf "%-7s %5s  %s\n", mark, seconds, step }
    '
}

for step; do
    log=$logs/$step
    start=$(date +%s)
    if [ "${V:-}" = 1 ]; then
        printf '\n== %s\n' "$step"
        { ${MAKE:-make} --no-print-directory "check-$step"; echo $? >"$log.status"; } | tee "$log"
    else
        ${MAKE:-make} --no-print-directory "check-$step" >"$log" 2>"$log.err" </dev/null
        echo $? >"$log.status"
    fi
    seconds=$(($(date +%s) - start))
    if [ "$(cat "$log.status")" != 0 ]; then
        failed=$((failed + 1))
        report FAILED "$step" $seconds /dev/null
        [ "${V:-}" = 1 ] || cat "$log" "$log.err"
    elif grep -q 'not run,' "$log"; then
        left_out=$((left_out + 1))
        report 'not run' "$step" $seconds "$log"
    else
        passed=$((passed + 1))
        [ "${V:-}" = 1 ] || report ok "$step" $seconds "$log"
    fi
done

[ $left_out -eq 0 ] || echo "$left_out not run"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
