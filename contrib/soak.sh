#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests that take too long for CI: the live suite with full durations and counts (a minute of outage, 1 GiB of
# output, two hundred runs at once), the tests with threads under the thread sanitizer, all benchmarks, the package in a fresh
# Debian, README's commands on bare Debian systems, all tests on the releases that CI does not cover, and the checks that CI leaves
# out for lack of time. Run it before a release, on an otherwise idle machine: seven hours on two cores.
# usage: contrib/soak.sh [-n ROUNDS] [PART...]
# parts: analysis live threads bench package setup suites (default: all)
# ROUNDS: number of repetitions of the live suite, to find sporadic failures. Prints a summary line for each part.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
jobs=$(nproc)

rounds=1
while getopts n: option; do
    case $option in
    n) rounds=$OPTARG ;;
    *) fail "usage: contrib/soak.sh [-n ROUNDS] [PART...]" ;;
    esac
done
shift $((OPTIND - 1))
parts=("$@")
[ ${#parts[@]} != 0 ] || parts=(analysis live threads bench package setup suites)

results=()
failed=0
# Runs one part; the others run even if it fails.
# shellcheck disable=SC2317 # called through functions
attempt() {
    local what=$1 begin=$SECONDS outcome=passed
    shift
    step "$what"
    "$@" || { outcome=FAILED && failed=1; }
    results+=("$(printf '%-30s %-6s %5s s' "$what" "$outcome" $((SECONDS - begin)))")
}

# shellcheck disable=SC2317
build() {
    cmake --preset "$@" >/dev/null && cmake --build --preset "$1" --parallel "$jobs"
}

# What CI does only in part: its time is limited.
analysis() {
    attempt "build: asan" build asan
    attempt "unit tests: asan" unit_tests asan
    attempt "unit tests with line counters" contrib/coverage.sh
    attempt "style" contrib/lint.sh
    attempt "fuzzing" contrib/fuzz.sh 300
}

live() {
    local round
    attempt "build: dev" build dev
    for ((round = 1; round <= rounds; round++)); do
        attempt "live suite, round $round" env GPUQ_SOAK=1 GPUQ_TEST_STOP_SECONDS=60 \
            /usr/bin/python3 -m pytest tests/live tests/examples -n "$((jobs + 1))" --dist loadfile \
            --timeout 1800 --durations 5 -q
    done
    # test_remote_transport.py uses both; the others use libssh in most cases (`auto`).
    attempt "live suite, --host by OpenSSH" env GPUQ_SOAK=1 GPUQ_TRANSPORT=openssh \
        /usr/bin/python3 -m pytest tests/live/test_remote*.py tests/live/test_forward.py -n "$((jobs + 1))" \
        --dist loadfile --timeout 1800 -q
}

threads() {
    attempt "build: tsan" build tsan
    attempt "tests with threads: tsan" ctest --preset tsan --parallel "$jobs"
}

bench() {
    local subject
    attempt "build: release" build release
    for subject in tests/bench/*; do
        if [ -x "$subject" ]; then
            attempt "bench: ${subject##*/}" "$subject"
        fi
    done
}

package() {
    attempt "package, in a fresh Debian" contrib/package-test.sh
}

setup() {
    local suite
    for suite in bookworm trixie forky; do
        attempt "quickstart, bare $suite" contrib/live-on.sh --quickstart "$suite"
        attempt "README's Install, bare $suite" contrib/live-on.sh --install "$suite"
    done
}

suites() {
    local suite
    for suite in trixie forky; do
        attempt "tests on $suite" contrib/live-on.sh "$suite"
    done
}

contrib/install-packages.sh --tests
for part in "${parts[@]}"; do
    case $part in
    analysis) analysis ;;
    live) live ;;
    threads) threads ;;
    bench) bench ;;
    package) package ;;
    setup) setup ;;
    suites) suites ;;
    *) fail "no part named '$part': analysis, live, threads, bench, package, setup, suites" ;;
    esac
done
printf '\n'
printf 'soak.sh: %s\n' "${results[@]}"
exit "$failed"
