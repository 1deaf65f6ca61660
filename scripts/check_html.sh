#!/bin/sh
# check_html.sh REPLAY...: the words of the command
#
# The page of `replay --html` for a small dump, opened in headless Chromium at
# several draws: the token that it shows is the one in the replay's JSON.
# BROWSER names another Chromium; without one a line says so, which is no failure.
set -u

fail() {
    printf 'check-html: %s\n' "$*" >&2
    exit 1
}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM

# 300 tokens in 64 steps of an eighth below 0, with ties: enough for a margin
# bucket, and for tokens outside the nucleus. As little-endian floats, -k / 8.
awk 'BEGIN {
    for (i = 0; i < 300; i++) {
        k = (i * 37 + 5) % 64
        if (k == 0) { printf "\\000\\000\\000\\000"; continue }
        exponent = -3
        for (mantissa = k; mantissa >= 2; mantissa /= 2) exponent++
        fraction = (mantissa - 1) * 128          # the seven bits on top are enough
        biased = exponent + 127
        printf "\\000\\000\\%03o\\%03o", (biased % 2) * 128 + fraction, 128 + int(biased / 2)
    }
}' >"$scratch/octal"
# shellcheck disable=SC2059 # the octal escapes are the format
printf "$(cat "$scratch/octal")" >"$scratch/dump.f32"

page=$scratch/page.html
"$@" "$scratch/dump.f32" --vocab 300 --temperature 0.7 --top-p 0.9 --html "$page" --json >"$scratch/json" ||
    fail "the replay failed: $(cat "$scratch/json")"
[ "$(wc -c <"$page")" -lt 2000000 ] || fail "the page has 2 MB or more"
# All that it needs is in it: no address but the name of SVG.
! sed 's,http://www.w3.org/2000/svg,,' "$page" | grep -n '[a-z]*://\|src=\|href=\|@import\|url([^#]' ||
    fail "the page asks for something that is not in it"

browser=${BROWSER:-}
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name")
done
if [ -z "$browser" ]; then
    echo "html: page written and self-contained; not run in a browser: no Chromium here (apt-get install chromium)"
    exit 0
fi

# The replay's draws and tokens, a line each.
grep -o '"raw_draw":[0-9]*,"token":[0-9]*' "$scratch/json" | tr -c '0-9\n' ' ' >"$scratch/picks"
compared=0
while read -r draw token; do
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$scratch/profile" --virtual-time-budget=2000 --dump-dom \
        "file://$page#draw=$draw" >"$scratch/dom" 2>"$scratch/browser" </dev/null ||
        fail "$browser: $(tail -n 1 "$scratch/browser")"
    shown=$(sed -n 's/.*<strong id="token">\([^<]*\)<.*/\1/p' "$scratch/dom")
    [ "$shown" = "$token" ] || fail "draw $draw: the page shows token '$shown', the replay's is $token"
    compared=$((compared + 1))
done <"$scratch/picks"
[ "$compared" -ge 3 ] || fail "only $compared draws compared"
echo "html: page self-contained, $compared draws in $(basename "$browser") show the replay's tokens"
