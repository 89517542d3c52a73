#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Takes a fresh Debian 12, 13 or 14 to a training on a GPU slot of a real Slurm: installs packages, builds gpuq,
# starts a cluster and runs contrib/examples/train.py through gpuq. Safe to repeat.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
gpuq=$PWD/build/release/bin/gpuq

step "looking for the Debian packages it needs"
contrib/install-packages.sh

step "building (preset release)"
cmake --preset release >build-quickstart.log 2>&1 || { tail -n 20 build-quickstart.log >&2; false; }
rm -f build-quickstart.log
cmake --build --preset release --parallel "$(nproc)"

# An installed Slurm remains gpuq's default; the new cluster must then be selected explicitly.
choice=()
if [ -e /etc/slurm/slurm.conf ] || [ -n "${SLURM_CONF-}" ]; then
    choice=(--cluster local)
fi

step "bringing a cluster up"
if "$gpuq" cluster env >/dev/null 2>&1; then
    printf '%s: one is up already\n' "$me" >&2
elif [ -c /dev/nvidia0 ]; then
    "$gpuq" cluster up
else
    printf '%s: no NVIDIA GPU on this machine: the cluster gets four simulated ones\n' "$me" >&2
    "$gpuq" cluster up --gpus 4 --model k80
fi

option=${choice[*]:+ ${choice[*]}}
step "running: gpuq run$option -t 2h contrib/examples/train.py"
# The example requires Debian's Python and its modules, even if another Python comes first in PATH.
PATH=/usr/bin:$PATH "$gpuq" run "${choice[@]}" -t 2h contrib/examples/train.py

cat >&2 <<EOF

That was a real Slurm job. What to type next:

    export PATH=$PWD/build/release/bin:\$PATH
    gpuq run$option -t 2h contrib/examples/train.py      and close the terminal while it runs
    gpuq ls$option --all                                 your runs
    gpuq logs$option -f last                             its output, from the first byte, in any terminal
    gpuq stop$option last                                end it
    gpuq cluster status                           the cluster; 'gpuq cluster down' ends it
EOF
