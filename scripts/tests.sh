#!/bin/sh
# The Rust tests, and their figures: how many passed, and each line in which a
# test says how many draws it compared ("0 different") or what this host or the
# lack of the original kept it from.
set -u
cd "$(dirname "$0")/.." || exit 1

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
"${CARGO:-cargo}" test --quiet --no-fail-fast -- --show-output >"$output" || {
    cat "$output" >&2
    exit 1
}
cat "$output" >&2
awk '
    /^test result: ok\. / { passed += $4; ignored += $8 }
    /^[a-z][a-z ]*: .*(0 different|not on this host)/ { lines[++n] = $0 }
    # Behind the test, a test may name a tier or a path.
    /^[a-z][a-z ]*: .*0 different/ && match($0, /: [0-9]+ draws /) {
        draws += substr($0, RSTART + 2)
    }
    /^[a-z][a-z ]*: .*original is not in vendor/ { no_original = 1 }
    END {
        printf "%d tests%s, %d scripted draws compared with the C code, 0 different\n", \
            passed, (ignored ? " (" ignored " ignored)" : ""), draws
        for (i = 1; i <= n; i++) print lines[i]
        # A campaign that stopped running or telling must not pass unseen.
        if (draws < 200000) {
            print "fewer than 200000 draws compared"
            exit 1
        }
        if (no_original) print "the original is not in vendor/: not compared with it"
    }
' "$output"
