#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian package as a site meets it: builds it (preset release), asks lintian, installs it with what it
# recommends and suggests into a fresh Debian of its own (debootstrap, from this machine's own sources of
# packages), runs the quickstart's training there on a cluster, and removes it without a trace.
# Needs root or sudo, and 2 GB in /tmp; nothing stays on this machine. Ten minutes on two cores.
# usage: contrib/package-test.sh [DEB]     DEB: this package, instead of building one
set -Eeuo pipefail
deb=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
. contrib/common.sh

build_package() {
    cmake --preset release -DGPUQ_TESTS=OFF >/dev/null
    cmake --build --preset release --parallel "$(nproc)"
    rm -f build/release/gpuq_*.deb
    (cd build/release && cpack -G DEB)
    deb=$(echo "$PWD"/build/release/gpuq_*.deb)
}

# Where apt has this machine's release from: the address and the release's name.
source_of_packages() {
    local release
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Identifier: Packages' 'Component: main' |
        awk -v release="$release" '$2 == release { print; exit }'
}

make_debian() {
    local address release
    read -r address release < <(source_of_packages) || fail "apt names no source of packages for this release"
    debootstrap --variant=minbase "$release" "$root" "$address"
    rm "$root/etc/apt/sources.list"
    cp -rL /etc/apt/sources.list* /etc/apt/apt.conf* "$root/etc/apt/"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service may start
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys" # slurmd reads of CPUs and cgroups there
}

# Runs a command in that Debian. It sees no process but its own; what it leaves running ends with it.
# The first word is how it sees the network: `--net`, its own loopback only, or `--`, as this machine does.
inside() {
    # Slurm finds no address on a machine whose only one is 127.0.0.1 (AI_ADDRCONFIG): one for documentation.
    # shellcheck disable=SC2016 # for the shell in the new namespaces
    unshare --mount --pid --fork --kill-child --uts --ipc "$1" sh -ec '
        if [ "$1" = --net ]; then
            ip link set lo up
            ip address add 192.0.2.1/32 dev lo
        fi
        shift
        hostname localhost
        mount -t proc proc "$0/proc"
        exec chroot "$0" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$root" "$@"
}

install_package() {
    local words apt=(apt-get -q -y -o Dpkg::Use-Pty=0)
    words=$(dpkg-deb -f "$deb" Recommends Suggests | sed 's/^[A-Za-z]*: //' | tr -d ',')
    cp "$deb" "$root/tmp/package.deb"
    inside -- "${apt[@]}" update
    # shellcheck disable=SC2086 # a word for each package
    inside -- "${apt[@]}" install --no-install-recommends /tmp/package.deb man-db $words
}

# Runs a command; shows what it said only when it fails.
quietly() {
    "$@" >"$root.log" 2>&1 || { tail -n 40 "$root.log" >&2; false; }
}

if [ "${GPUQ_PACKAGE_TEST-}" != as-root ]; then
    if [ -z "$deb" ]; then
        step "building the package (preset release)"
        build_package
    fi
    step "asking lintian about ${deb##*/}"
    lintian --allow-root --fail-on error,warning "$deb"
    # A mount namespace of its own: whatever happens, what is mounted goes with the script.
    as_root unshare --mount --propagation private env GPUQ_PACKAGE_TEST=as-root "contrib/$me" "$deb" || exit
    exit
fi

root=$(mktemp -d /tmp/gpuq-package.XXXXXX)
chmod 755 "$root"
trap 'umount -R "$root/dev" "$root/sys" 2>/dev/null || true; rm -rf --one-file-system "$root" "$root.log"' EXIT
step "making a fresh Debian"
quietly make_debian

step "installing the package there, with what it recommends and suggests"
quietly install_package

step "looking for the manual and the completion"
inside --net man -w gpuq gpuq-run gpuq-files gpuq-chain
for file in bash-completion/completions/gpuq fish/vendor_completions.d/gpuq.fish zsh/vendor-completions/_gpuq; do
    [ -s "$root/usr/share/$file" ] || fail "the package did not bring /usr/share/$file"
done

step "running a training there"
inside --net sh -exc '
    gpuq cluster up --gpus 4 --model k80
    cd /usr/share/doc/gpuq/examples
    gpuq run -t 2h train.py
    gpuq ls --all
    gpuq cluster down --purge'

step "removing the package"
inside --net dpkg -r gpuq
rm -r "$root/root/.local/state/gpuq" # the run: a person's own files stay
left=$(cd "$root" && find . -xdev -path '*gpuq*' ! -type d)
[ -z "$left" ] || fail "left behind: $left"
step "it installs, runs a training and goes without a trace"
