#!/bin/sh
# fuzz.sh SECONDS TARGET_DIR: libFuzzer on each target of fuzz/, the seconds
# shared out evenly, and a line for each: what it executed and found. The corpus
# stays in fuzz/corpus and is gone on with.
#
# A finding is fixed, and pinned as a case in tests/cases/reports.txt.
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=$1
target_dir=$2
targets='serve_sample serve_sample_sorted argmax_first sampler'
case $seconds in '' | *[!0-9]*) seconds=0 ;; esac
each=$((seconds / 4))
[ $each -gt 0 ] || {
    echo "fuzz: SECONDS=$1: a whole number, 4 at least" >&2
    exit 2
}

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0
for target in $targets; do
    corpus=fuzz/corpus/$target
    mkdir -p "$corpus" || exit 1
    SEEDS=$PWD/$corpus "${CARGO:-cargo}" test --quiet --test fuzz write_seeds -- --ignored >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
    # cargo-fuzz wants flags that only a nightly compiler takes, or a stable one
    # that is told to. Without AddressSanitizer, which sees little in safe code
    # and makes it six times slower: `make check-sanitizers` has that.
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$target_dir/fuzz \
        "${CARGO:-cargo}" fuzz run --sanitizer none "$target" "$corpus" -- \
        -max_total_time=$each -max_len=2048 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 >"$log" 2>&1
    status=$?
    awk -v target="$target" -v status=$status '
        /^Done / { seconds = $5 }
        / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") covered = $(i + 1) }
        /number_of_executed_units/ { executed = $2 }
        END {
            printf "%-20s %9d inputs in %4d s, %5d edges covered, %s\n", target, executed, seconds, covered,
                status ? "A FINDING" : "no finding"
        }
    ' "$log"
    if [ $status -ne 0 ]; then
        failed=1
        tail -n 40 "$log" >&2
    fi
done
exit $failed
