#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the unit and contract tests with the address and undefined-behaviour sanitizers (preset coverage) and prints the
# part of each module's lines that they execute; fails below the floors of contrib/coverage.py.
# usage: contrib/coverage.sh [--build | --live [PYTEST-OPTION...]]
# --build: only builds. --live: adds the live suite, run by the programs of this build.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
jobs=$(nproc)
built=build/coverage

step "building (preset coverage)"
cmake --preset coverage >/dev/null
cmake --build --preset coverage --parallel "$jobs"
if [ "${1-}" = --build ]; then
    exit
fi
find $built -name '*.gcda' -delete

failed=()
unit_tests coverage || failed+=("unit")

if [ "${1-}" = --live ]; then
    shift
    step "running the live suite"
    chmod -R a+rwX $built # processes of other users count too
    GPUQ_BIN=$PWD/$built/bin /usr/bin/python3 -m pytest tests/live --timeout 1800 -q -n "$((jobs + 1))" --dist loadfile \
        -o cache_dir="$PWD/build/pytest" "$@" || failed+=("live")
fi

step "counting lines"
gcovr --root . --object-directory $built --filter 'src/' --filter 'tui/' --gcov-ignore-parse-errors --json-summary -j "$jobs" \
    $built >$built/coverage.json 2>$built/gcovr.log || fail "gcovr failed: see $built/gcovr.log"
contrib/coverage.py $built/coverage.json || failed+=("coverage")
if [ ${#failed[@]} != 0 ]; then
    fail "failed: ${failed[*]}"
fi
