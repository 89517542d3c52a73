#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the Debian package: builds it (preset release), runs lintian, installs it with its recommended and
# suggested packages into a fresh Debian (debootstrap, using this machine's package sources), runs the
# quickstart's training on a cluster in it, removes the package and checks that no file is left.
# Needs root or sudo, and 2 GB in /tmp; leaves nothing on this machine. Ten minutes on two cores.
# usage: contrib/package-test.sh [DEB]     DEB: test this package instead of building one
set -Eeuo pipefail
deb=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
. contrib/common.sh
. contrib/debian.sh

build_package() {
    cmake --preset release >/dev/null
    cmake --build --preset release --parallel "$(nproc)"
    rm -f build/release/gpuq_*.deb
    (cd build/release && cpack -G DEB)
    deb=$(echo "$PWD"/build/release/gpuq_*.deb)
}

install_package() {
    local words apt=(apt-get -q -y -o Dpkg::Use-Pty=0)
    words=$(dpkg-deb -f "$deb" Recommends Suggests | sed 's/^[A-Za-z]*: //' | tr -d ',')
    cp "$deb" "$root/tmp/package.deb"
    inside -- "${apt[@]}" update
    # shellcheck disable=SC2086 # one argument per package
    inside -- "${apt[@]}" install --no-install-recommends /tmp/package.deb man-db $words
}

root=${GPUQ_DEBIAN_ROOT-}
if [ -z "$root" ]; then
    if [ -z "$deb" ]; then
        step "building the package (preset release)"
        build_package
    fi
    step "asking lintian about ${deb##*/}"
    lintian --allow-root --fail-on error,warning "$deb"
    in_a_debian '' "$deb"
fi

step "making a fresh Debian"
quietly make_debian "$(. /etc/os-release && echo "$VERSION_CODENAME")"

step "installing the package in it, with recommended and suggested packages"
quietly install_package

step "looking for the manual and the completion"
inside --net man -w gpuq gpuq-run gpuq-files gpuq-adoption gpuq-chain gpuq-tutorial
for file in bash-completion/completions/gpuq fish/vendor_completions.d/gpuq.fish zsh/vendor-completions/_gpuq; do
    [ -s "$root/usr/share/$file" ] || fail "the package did not bring /usr/share/$file"
done

step "running a training in it"
inside --net sh -exc '
    gpuq cluster up --gpus 4 --model k80
    cd /usr/share/doc/gpuq/examples
    gpuq run -t 2h train.py
    gpuq ls --all
    gpuq cluster down --purge'

step "removing the package"
inside --net dpkg -r gpuq
rm -r "$root/root/.local/state/gpuq" # the run: a user's files are kept by dpkg
left=$(cd "$root" && find . -xdev -path '*gpuq*' ! -type d)
[ -z "$left" ] || fail "left behind: $left"
step "it installs, runs a training and goes without a trace"
