#!/bin/sh
# The Rust tests, and their figures: how many passed, and every line in which a
# test says how many draws it compared or what it could not take here.
set -u
cd "$(dirname "$0")/.." || exit 1

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
"${CARGO:-cargo}" test --quiet -- --show-output >"$output" || {
    cat "$output" >&2
    exit 1
}
cat "$output" >&2
awk '
    /^test result: ok\. / { passed += $4; ignored += $8 }
    / draws compared/ {
        match($0, /[0-9][0-9,]* draws compared/)
        count = substr($0, RSTART, RLENGTH)
        gsub(/[^0-9]/, "", count)
        draws += count
    }
    /^[a-z][a-z ]*: .*(compared|not on this host|not in vendor)/ { lines[++n] = $0 }
    END {
        printf "%d tests%s, %d scripted draws compared with the C code, 0 different\n", \
            passed, ignored ? " (" ignored " ignored)" : "", draws
        for (i = 1; i <= n; i++) print lines[i]
    }
' "$output"
