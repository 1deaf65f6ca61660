#!/bin/sh
# Checks what the shared library exports, and its SONAME.
#
#     check_symbols.sh LIBRARY INCLUDE_DIR
#
# The four names of the C surface, and beside them only names that begin with colibri_ and stand in a header.
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 2 ] || usage 'LIBRARY INCLUDE_DIR'
library=$1
[ -f "$library" ] || fail "$library: no such file"
include_dir=$(absolute "$2")

SURFACE='argmax_first sample_prob_desc serve_sample serve_sample_sorted'
SONAME=libcolibri_sampler.so.0

nm -D --defined-only "$library" >"$scratch/nm" || fail "nm cannot read $library"
# A version, should there be one, is not part of the name.
awk '{ sub(/@.*/, "", $NF); print $NF }' "$scratch/nm" | sort -u >"$scratch/exported"

# Comments may speak of anything: only declarations count.
for header in "$include_dir"/*.h; do
    $CC -E -P -I "$include_dir" "$header" || fail "$CC cannot read $header"
done >"$scratch/declarations"

declared() {
    grep -Eq "(^|[^A-Za-z0-9_])$1[[:space:]]*\(" "$scratch/declarations"
}

for name in $SURFACE; do
    grep -qx "$name" "$scratch/exported" || fail "$library does not export $name"
    declared "$name" || fail "$name stands in no header"
done
others=0
for name in $(cat "$scratch/exported"); do
    case " $SURFACE " in *" $name "*) continue ;; esac
    case $name in
        colibri_*) declared "$name" || fail "$library exports $name, which stands in no header" ;;
        *) fail "$library exports $name, which is no part of its surface" ;;
    esac
    others=$((others + 1))
done

soname=$(LC_ALL=C readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$soname" = $SONAME ] || fail "the SONAME of $library is '$soname', not $SONAME"

printf 'symbols: %s, %s of colibri_; SONAME %s\n' "$SURFACE" "$others" "$SONAME"
