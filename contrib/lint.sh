#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Checks that need no reviewer: formatting, the short clang-tidy list, shell scripts, SPDX lines, prose and spelling.
# Preset lint is only configured. It uses no precompiled header, so that every file must include the headers it uses.
# usage: contrib/lint.sh [--changed]
# --changed: without the optimised build, and clang-tidy checks only the 25 sources that were changed last.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.cpp' '*.h')
mapfile -t units < <(git ls-files 'src/*.cpp' 'tui/*.cpp' 'tests/*.cpp')
if [ "${1-}" = --changed ]; then
    mapfile -t units < <(git log --format= --name-only --max-count=100 -- 'src/*.cpp' 'tui/*.cpp' 'tests/*.cpp' |
        awk '!seen[$0]++ && !system("test -e " $0) && ++count <= 25')
fi
mapfile -t scripts < <(git ls-files '*.sh' .ci/run contrib/gpuq-node-probe)

missing=$(git ls-files '*.cpp' '*.h' '*.sh' '*.py' '*.cmake' CMakeLists.txt .ci/run |
    xargs grep -L 'SPDX-License-Identifier: GPL-2.0-or-later' || true)
if [ -n "$missing" ]; then
    printf 'lint: no SPDX line: %s\n' "$missing" >&2
    exit 1
fi

clang-format --dry-run --Werror "${sources[@]}"
shellcheck "${scripts[@]}"
if ! prose=$(contrib/prose.py --list); then
    printf '%s\n' "$prose" >&2
    echo "lint: phrases above their limits (TOO MANY): CONTRIBUTING.md suggests others" >&2
    exit 1
fi
if ! names=$(contrib/identifiers.py); then
    printf '%s\n' "$names" >&2
    echo "lint: identifiers with retired words" >&2
    exit 1
fi
codespell src tui man ./*.md contrib tests cmake policies # .codespellrc has the exceptions

# Runs a command and shows its output only if it fails.
quietly() {
    local output
    output=$("$@" 2>&1) || { printf '%s\n' "$output" >&2 && return 1; }
}

quietly cmake --preset lint
quietly cmake --build build/lint --target html
[ ${#units[@]} = 0 ] || printf '%s\0' "${units[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build/lint --quiet 2> >(grep -v 'warnings generated' >&2)
# Slurm 24.11 and 26.05. An archive without these suites is no fault of the sources.
contrib/check-slurm-headers.sh trixie forky || [ $? = 3 ]
if [ "${1-}" != --changed ]; then
    # As a site builds it: some warnings need the optimiser, which preset dev does not use.
    quietly cmake --preset optimised
    quietly cmake --build --preset optimised --parallel "$(nproc)"
    # Everything else is linked as an archive: each shared library would be loaded at every start and needed on the node.
    loaded=$(readelf -d build/optimised/bin/gpuq | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p' |
        grep -vxE 'lib(c|m|slurm)|ld-linux.*' || true)
    if [ -n "$loaded" ]; then
        echo "lint: the release build of gpuq loads $(tr '\n' ' ' <<<"$loaded")" >&2
        exit 1
    fi
fi
echo "lint: ${#sources[@]} sources (${#units[@]} by clang-tidy), ${#scripts[@]} scripts clean"
