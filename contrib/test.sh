#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The complete check for a change: installs packages, builds the programs (preset dev) and runs the examples and the live
# suite on real Slurm clusters started for them. In the time that these leave idle it builds the unit and contract tests
# with sanitizers and line counters (preset coverage), checks style (clang-tidy: the sources of the last commits) and runs the
# fuzz targets for 20 seconds each; the unit and contract tests run afterwards, by contrib/coverage.sh. On a machine that needs
# more than k_slow seconds for the first build all of that would take two hours: there the unit and contract tests are of
# preset dev. `contrib/soak.sh analysis` does all of it for all sources; tests with full durations and counts are there too.
# usage: contrib/test.sh [--no-style] [PYTEST-OPTION...]   (for the live suite, e.g. -k stale)
# --no-style: without sanitizers, counters, style and fuzzing, which need the tools of Debian 12: everything is of preset
# dev, and unit and contract tests run before the live suite.
# GPUQ_CMAKE: an additional argument for cmake.
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

failed=()
step "building (preset dev: every warning an error)"
cmake --preset dev ${GPUQ_CMAKE:+"$GPUQ_CMAKE"} >/dev/null
k_slow=360
begin=$SECONDS
if [ $style = yes ]; then
    cmake --build --preset dev --parallel "$jobs" --target live_programs
else
    cmake --build --preset dev --parallel "$jobs"
fi
slow=$([ $((SECONDS - begin)) -gt $k_slow ] && echo yes || echo no)
if [ $style = no ]; then
    unit_tests dev || failed+=("unit")
fi

# Runs a command in the background at idle priority, once the process `after` (if any) has ended, with its output in
# build/NAME.log; its id is then in $helper. It gets a session of its own with the least weight: with autogroups
# (sched(7)), the kernel shares the cores between sessions first, and idle priority only counts within one.
helpers=()
in_idle_time() {
    local name=$1 after=$2
    shift 2
    {
        while [ -n "$after" ] && kill -0 "$after" 2>/dev/null; do sleep 1; done
        # shellcheck disable=SC2016 # expanded by the inner shell
        exec setsid sh -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"' sh "$@"
    } >"build/$name.log" 2>&1 &
    helper=$!
    helpers+=("$helper")
}
end_helpers() {
    local each
    for each in "${helpers[@]}"; do
        kill -- "-$each" 2>/dev/null || kill "$each" 2>/dev/null || true
    done
}
trap end_helpers EXIT

step "running the live suite on real clusters"
if [ $style = yes ] && [ "$slow" = yes ]; then
    step "and, in the time that it leaves idle: building unit and contract tests, checking style"
    step "this machine is slow: sanitizers, line counters and fuzzing are left to contrib/soak.sh"
    in_idle_time unit "" cmake --build --preset dev --parallel "$jobs"
elif [ $style = yes ]; then
    step "and, in the time that it leaves idle: building with sanitizers, checking style, fuzzing"
    in_idle_time coverage "" contrib/coverage.sh --build
fi
if [ $style = yes ]; then
    build=$helper
    in_idle_time lint "$build" contrib/lint.sh --changed
    lint=$helper
fi
if [ $style = yes ] && [ "$slow" != yes ]; then
    in_idle_time fuzz "$lint" contrib/fuzz.sh 20
    fuzz=$helper
fi
# The files are started in this order: the longest first, or one worker would be left with it at the end.
tests=(tests/examples tests/live)
for word in "$@"; do
    case $word in tests/*) tests=() ;; esac # run these instead
done
live() {
    # Interrupted, pytest lists the failures so far.
    timeout --signal INT --kill-after 60 60m \
        /usr/bin/python3 -m pytest "${tests[@]}" --timeout 600 -q -o cache_dir="$PWD/build/pytest" "$@"
}
# Live tests mostly wait, so use two workers for each core.
outcome=0
live -n "$((2 * jobs))" --dist loadfile --durations 20 "$@" || outcome=$?
if [ $outcome = 124 ]; then
    failed+=("live: not finished after an hour")
elif [ $outcome != 0 ]; then
    # Four clusters on two cores can starve each other: only tests that also fail alone count, the others are reported below.
    step "once more, one after the other, what has failed"
    flaky="passed only when tried again alone, see above"
    live --last-failed --last-failed-no-failures none --exitfirst "$@" 2>&1 | tee build/live.log || failed+=("live") flaky=
fi

if [ $style = yes ] && [ "$slow" = yes ]; then
    if wait "$build"; then
        unit_tests dev || failed+=("unit")
    else
        failed+=("build of the unit tests")
        tail -n 50 build/unit.log
    fi
elif [ $style = yes ]; then
    if wait "$build"; then
        contrib/coverage.sh || failed+=("unit")
    else
        failed+=("build with sanitizers")
        tail -n 50 build/coverage.log
    fi
fi
if [ $style = yes ]; then
    step "waiting for the style check and the fuzz targets"
    wait "$lint" || failed+=("lint")
    cat build/lint.log
fi
if [ -n "${fuzz:-}" ]; then
    wait "$fuzz" || failed+=("fuzz")
    tail -n 20 build/fuzz.log
fi

if [ -n "${flaky:-}" ]; then
    step "live tests: some $flaky"
fi
if [[ " ${failed[*]} " == *" live "* ]]; then
    tail -n 60 build/live.log # at the end, where a CI that keeps the last lines keeps them
fi
printf '%s\n' "${steps[@]}" # again: a CI may keep only the last lines
step "done"
if [ ${#failed[@]} != 0 ]; then
    fail "failed: ${failed[*]}"
fi
