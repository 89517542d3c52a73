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

# The unit and contract tests of PRESET. They spend half of their time waiting, so there are two
# at once for each core; as with the live suite, only a test that also fails alone counts, the others are reported.
unit_tests() {
    step "running unit and contract tests"
    ctest --preset "$1" --label-exclude live --parallel "$((2 * $(nproc)))" && return
    step "once more, one after the other, the unit tests that have failed"
    ctest --preset "$1" --rerun-failed || return
    step "unit tests: some passed only when tried again alone, see above"
}
