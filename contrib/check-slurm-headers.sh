#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compiles src/slurm against the headers of other Slurm releases, without linking.
# usage: contrib/check-slurm-headers.sh SUITE|DIR...
# SUITE: a Debian suite such as trixie, whose libslurm-dev is downloaded from the archive that this machine's apt uses.
# DIR (with a slash): contains slurm/slurm.h, slurm/slurmdb.h, ... It can be a Slurm source tree: a missing
# slurm/slurm_version.h is generated in a temporary directory from slurm_version.h.in and the release in META (or in
# SLURM_RELEASE, such as 23.11.4).
# Exits with 1 if something does not compile, else with 3 if a package could not be downloaded.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
. contrib/debian.sh
[ $# -gt 0 ] || fail "which Slurm? Give a Debian suite or a directory with slurm/slurm.h"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Unpacks SUITE's libslurm-dev below $work/SUITE. apt uses an index of its own there.
download() {
    local dir=$work/$1 archive options
    archive=$(sources_of_this_machine | archive_in) || return
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    echo "deb $archive $1 main" >"$dir/sources.list"
    options=(-qq -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=
             -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Acquire::Languages=none)
    apt-get "${options[@]}" update && (cd "$dir" && apt-get "${options[@]}" download libslurm-dev) &&
        dpkg-deb --extract "$dir"/libslurm-dev_*.deb "$dir"
}

release_of() {
    if [ -n "${SLURM_RELEASE:-}" ]; then
        echo "$SLURM_RELEASE"
    else
        awk '$1 == "Version:" { print $2; exit }' "$1/META"
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
missing=0
for dir in "$@"; do
    if [[ $dir != */* ]]; then
        if ! download "$dir"; then
            echo "UNKNOWN $dir (its libslurm-dev could not be downloaded)"
            missing=3
            continue
        fi
        dir=$work/$dir/usr/include
    fi
    rm -rf "$work/slurm"
    headers_of "$dir"
    number=$(sed -n 's/^#define SLURM_VERSION_NUMBER *//p' "$work/slurm/slurm_version.h")
    verdict=ok
    for source in src/slurm/*.cpp; do
        "${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -isystem "$work" -Isrc \
            "$source" || { verdict=FAILED; failed=1; }
    done
    echo "$verdict ${dir#"$work"/} ($number)"
done
exit $((failed ? 1 : missing))
