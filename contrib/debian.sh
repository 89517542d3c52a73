# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # $me is set in common.sh
# A separate Debian in the directory $root, created by debootstrap and entered in namespaces. Sourced after common.sh.

# Runs this script again as root with the arguments WORD, and $GPUQ_DEBIAN_ROOT set to ROOT or a new directory. Mounts and
# processes are in namespaces that end with the script, however it ends. A new directory is removed then (after SIGKILL, by
# the next run).
# usage: in_a_debian ROOT|'' WORD...
in_a_debian() {
    local status=0
    given=$1
    shift
    if [ "$(id -u)" != 0 ]; then
        as_root "contrib/$me" "$@"
        exit
    fi
    remove_abandoned_roots
    root=${given:-$(mktemp -d "${TMPDIR:-/tmp}/gpuq-debian.XXXXXX")}
    mkdir -p "$root"
    chmod 755 "$root"
    exec 9>"$root.lock"
    flock -n 9 || fail "$root: in use by another $me"
    set -m # without job control the child, and with it the tests, would ignore SIGINT
    GPUQ_DEBIAN_ROOT=$root setpriv --pdeathsig KILL \
        unshare --mount --propagation private --pid --fork --kill-child "contrib/$me" "$@" </dev/null 9>&- &
    child=$!
    trap - ERR
    trap leave_debian EXIT
    trap 'exit 130' INT TERM HUP
    wait $child || status=$?
    exit $status
}

# shellcheck disable=SC2317 # called by a trap
leave_debian() {
    local try
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    if [ -z "$given" ]; then
        for try in 1 2 3 4 5; do # its processes need a moment to end
            rm -rf --one-file-system "$root" 2>/dev/null && break
            sleep "$try"
        done
    fi
    rm -f "$root.lock"
}

remove_abandoned_roots() {
    local lock
    for lock in "${TMPDIR:-/tmp}"/gpuq-debian.*.lock; do
        if [ -O "$lock" ]; then
            flock -n "$lock" rm -rf --one-file-system "${lock%.lock}" "$lock" || true
        fi
    done
}

# The apt sources of this machine's release, as lines of sources.list.
sources_of_this_machine() {
    local release
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Identifier: Packages' 'Origin: Debian' |
        awk -v release="$release" '$3 ~ "^" release "(-|$)"'
}

# Prints the URL of the archive among the sources on standard input.
archive_in() {
    awk '$3 !~ /-/ && !found { print $2; found = 1 } END { exit !found }' ||
        fail "apt knows no Debian archive of this machine's release: apt-get update"
}

# Creates a minimal Debian SUITE in $root, from the archive that this machine's apt uses.
make_debian() {
    local suite=$1 sources archive file script=/usr/share/debootstrap/scripts/$1
    sources=$(sources_of_this_machine)
    archive=$(archive_in <<<"$sources")
    # The suites use the same script: a debootstrap older than the suite only lacks its name.
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase "$suite" "$root" "$archive" "$script"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/no-sync" # beside other work, waiting for the disk takes minutes
    if grep -q " $suite " <<<"$sources"; then
        echo "$sources" >"$root/etc/apt/sources.list"
    fi
    # This machine's settings for reaching the archive; files that belong to packages are installed with them.
    for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
        if [ -f "$file" ] && ! dpkg-query --search "$file" >/dev/null 2>&1; then
            cp -L "$file" "$root$file"
        fi
    done
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service may start
    chmod 755 "$root/usr/sbin/policy-rc.d"
}

# Runs a command in that Debian, in its own process namespace, which ends with the command.
# The first argument selects the network: `--net` for its own loopback only, `--` for this machine's network.
inside() {
    # Slurm finds no address on a machine that only has 127.0.0.1 (AI_ADDRCONFIG), so add one reserved for documentation.
    # shellcheck disable=SC2016 # for the shell in the new namespaces
    unshare --mount --pid --fork --kill-child --uts --ipc "$1" sh -ec '
        if [ "$1" = --net ]; then
            ip link set lo up
            ip address add 192.0.2.1/32 dev lo
        fi
        shift
        hostname localhost
        mount --bind "$0" "$0" # commands that unshare mounts need / to be a mount point
        mount --rbind /dev "$0/dev"
        mount -t tmpfs tmpfs "$0/dev/shm"
        mount --rbind /sys "$0/sys" # slurmd reads CPUs and cgroups from it
        mount -t proc proc "$0/proc"
        exec chroot "$0" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            ${http_proxy+http_proxy="$http_proxy"} ${https_proxy+https_proxy="$https_proxy"} \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$root" "$@"
}

# Runs a command; prints its output only if it fails.
quietly() {
    local log
    log=$(mktemp)
    "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; rm -f "$log"; false; }
    rm -f "$log"
}
