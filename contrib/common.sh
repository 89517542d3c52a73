# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Common functions of the scripts in this directory, which source this file.

me=$(basename "$0")
doing="starting"

# Prints the next step with the time since the start; a failure message names it.
steps=()
step() {
    doing=$1
    steps+=("$(printf '%s: %d:%02d %s' "$me" $((SECONDS / 60)) $((SECONDS % 60)) "$1")")
    printf '%s\n' "${steps[-1]}" >&2
}

fail() {
    trap - ERR
    printf '%s: %s\n' "$me" "$1" >&2
    exit 1
}

explain_failure() {
    local status=$1 line=$2
    printf '%s: failed (status %s, line %s) while %s\n' "$me" "$status" "$line" "$doing" >&2
}
trap 'explain_failure $? $LINENO' ERR

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "this needs root, and there is no sudo: run it as root once"
    fi
}
