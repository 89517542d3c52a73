#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Compiles src/slurm against the headers of other Slurm releases, without linking.
#
#   contrib/check-slurm-headers.sh DIR...     each DIR contains slurm/slurm.h, slurm/slurmdb.h, ...
#
# DIR can be a Slurm source tree: a missing slurm/slurm_version.h is generated in a temporary directory
# from slurm_version.h.in and the release in META (or in SLURM_RELEASE, such as 23.11.4).
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release_of() {
    if [ -n "${SLURM_RELEASE:-}" ]; then
        echo "$SLURM_RELEASE"
    else
        sed -n 's/^[[:space:]]*Version:[[:space:]]*\([0-9.]*\).*/\1/p' "$1/META" | head -n 1
    fi
}

# Copies the headers of DIR to $work, with a version header.
headers_of() {
    mkdir -p "$work/slurm"
    cp "$1"/slurm/*.h "$work/slurm/"
    [ -f "$work/slurm/slurm_version.h" ] && return
    number=$(release_of "$1" | awk -F. '{ printf "0x%02x%02x%02x", $1, $2, $3 }')
    sed "s/^#undef SLURM_VERSION_NUMBER.*/#define SLURM_VERSION_NUMBER $number/" \
        "$1/slurm/slurm_version.h.in" > "$work/slurm/slurm_version.h"
}

failed=0
for dir in "$@"; do
    rm -rf "$work/slurm"
    headers_of "$dir"
    number=$(sed -n 's/^#define SLURM_VERSION_NUMBER *//p' "$work/slurm/slurm_version.h")
    verdict=ok
    for source in src/slurm/*.cpp; do
        "${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -isystem "$work" -Isrc \
            "$source" || { verdict=FAILED; failed=1; }
    done
    echo "$verdict $dir ($number)"
done
exit $failed
