#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the Debian package: builds it (preset release), runs lintian, installs it with its recommended and
# suggested packages into a fresh Debian (debootstrap, using this machine's package sources), runs the
# quickstart's training on a cluster in it, removes the package and checks that no file is left. Before that, the same
# with the package gpuq-client (preset client) in the bare Debian: its commands run on a login host, over ssh.
# Needs root or sudo, and 2 GB in /tmp; leaves nothing on this machine. Fifteen minutes on two cores.
# usage: contrib/package-test.sh [DEB CLIENT-DEB]     test these packages instead of building them
set -Eeuo pipefail
deb=${1:+$(realpath "$1")}
client=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
. contrib/common.sh
. contrib/debian.sh

# Builds the package of a preset; prints its path.
build_package() {
    cmake --preset "$1" >/dev/null
    cmake --build --preset "$1" --parallel "$(nproc)" >&2
    rm -f "build/$1"/gpuq*.deb
    (cd "build/$1" && cpack -G DEB) >&2
    echo "$PWD/build/$1"/gpuq*.deb
}

apt=(apt-get -q -y -o Dpkg::Use-Pty=0)
install_client() {
    cp "$client" "$root/tmp/client.deb"
    inside -- "${apt[@]}" update
    inside -- "${apt[@]}" install --no-install-recommends /tmp/client.deb
}

install_package() {
    local words
    words=$(dpkg-deb -f "$deb" Recommends Suggests | sed 's/^[A-Za-z]*: //' | tr -d ',')
    cp "$deb" "$root/tmp/package.deb"
    # shellcheck disable=SC2086 # one argument per package
    inside -- "${apt[@]}" install --no-install-recommends /tmp/package.deb man-db $words
}

root=${GPUQ_DEBIAN_ROOT-}
if [ -z "$root" ]; then
    if [ -z "$client" ]; then
        step "building the packages (presets release and client)"
        deb=$(build_package release)
        client=$(build_package client)
    fi
    step "asking lintian about ${deb##*/} and ${client##*/}"
    lintian --allow-root --fail-on error,warning "$deb" "$client"
    in_a_debian '' "$deb" "$client"
fi

step "making a fresh Debian"
quietly make_debian "$(. /etc/os-release && echo "$VERSION_CODENAME")"

nothing_left() {
    local left
    left=$(cd "$root" && find . -xdev -path '*gpuq*' ! -path './tmp/*' ! -path './opt/*' ! -type d)
    [ -z "$left" ] || fail "left behind: $left"
}

step "installing the client in it"
quietly install_client
# shellcheck disable=SC2016 # for the shell inside
inside --net sh -exc '
    gpuq --version
    ! dpkg-query -W "libslurm*" 2>/dev/null
    gpuq free 2>&1 | grep "without Slurm: name a login host with --host"
    [ -s /usr/share/man/man1/gpuq-run.1.gz ]
    cp /usr/bin/gpuq /opt/gpuq-client
    dpkg -r gpuq-client'
nothing_left

step "installing the package in it, with recommended and suggested packages"
quietly install_package

step "looking for the manual and the completion"
inside --net man -w gpuq gpuq-run gpuq-files gpuq-adoption gpuq-chain gpuq-tutorial
for file in bash-completion/completions/gpuq fish/vendor_completions.d/gpuq.fish zsh/vendor-completions/_gpuq; do
    [ -s "$root/usr/share/$file" ] || fail "the package did not bring /usr/share/$file"
done

step "running a training in it"
# shellcheck disable=SC2016
inside --net sh -exc '
    gpuq cluster up --gpus 4 --model k80
    cd /usr/share/doc/gpuq/examples
    gpuq run -t 2h train.py
    gpuq ls --all
    mkdir -p /run/sshd ~/.ssh
    ssh-keygen -q -t ed25519 -N "" -f ~/.ssh/id_ed25519
    cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys
    /usr/sbin/sshd -o ListenAddress=127.0.0.1
    GPUQ_SSH="ssh -o StrictHostKeyChecking=accept-new" /opt/gpuq-client --host 127.0.0.1 run -t 10m -- \
        sh -c "echo from the client: \$SLURM_JOB_ID" | grep "from the client: [0-9]"
    gpuq cluster down --purge'

step "removing the package"
inside --net dpkg -r gpuq
rm -r "$root/root/.local/state/gpuq" # the run: a user's files are kept by dpkg
nothing_left
step "it installs, runs a training and goes without a trace"
