#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Everything that has to be true: installs packages, builds preset dev, runs every test: unit and
# contract tests, then the examples and the live suite on real Slurm clusters of its own, and in the time that these
# leave idle checks style and runs the fuzz targets, a minute each.
# The full lengths and counts are in contrib/soak.sh.
# usage: contrib/test.sh [--no-style] [PYTEST-OPTION...]   (for the live suite, e.g. -k stale)
# --no-style: no style check and no fuzzing, whose tools are Debian 12's.
# GPUQ_CMAKE: one more word for cmake.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
jobs=$(nproc)
style=yes
if [ "${1-}" = --no-style ]; then
    style=no
    shift
fi

step "looking for the Debian packages it needs"
contrib/install-packages.sh --tests

step "building (preset dev: every warning an error)"
cmake --preset dev ${GPUQ_CMAKE:+"$GPUQ_CMAKE"} >/dev/null
cmake --build --preset dev --parallel "$jobs"

failed=()
step "running unit and contract tests"
# Half of what they take is waiting.
ctest --preset dev --label-exclude live --parallel "$((2 * jobs))" || failed+=("unit")

step "running the live suite on real clusters"
if [ $style = yes ]; then
    step "and, in the time that it leaves idle, checking style and fuzzing"
    chrt --idle 0 contrib/lint.sh >build/lint.log 2>&1 &
    lint=$!
    (while kill -0 $lint 2>/dev/null; do sleep 1; done && exec chrt --idle 0 contrib/fuzz.sh 60) >build/fuzz.log 2>&1 &
    fuzz=$!
fi
tests=(tests/live tests/examples)
for word in "$@"; do
    case $word in tests/*) tests=() ;; esac # these instead
done
live() {
    timeout 45m /usr/bin/python3 -m pytest "${tests[@]}" --timeout 600 -q -o cache_dir="$PWD/build/pytest" "$@"
}
# Most of a live test is waiting: one more than there are cores.
if ! live -n "$((jobs + 1))" --dist loadfile --durations 5 "$@"; then
    # Three clusters on two cores starve each other at times: what fails by itself too is red, the rest is told below.
    step "once more, one after the other, what has failed"
    flaky="passed only when tried again alone, see above"
    live --last-failed --last-failed-no-failures none --exitfirst "$@" || failed+=("live") flaky=
fi

if [ $style = yes ]; then
    step "waiting for the style check and the fuzz targets"
    wait "$lint" || failed+=("lint")
    cat build/lint.log
    wait "$fuzz" || failed+=("fuzz")
    tail -n 20 build/fuzz.log
fi

if [ -n "${flaky:-}" ]; then
    step "live tests: some $flaky"
fi
if [ ${#failed[@]} != 0 ]; then
    fail "failed: ${failed[*]}"
fi
