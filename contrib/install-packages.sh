#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the missing Debian packages of contrib/packages.txt. Starts no system daemon and changes no file in
# /etc/slurm.
# usage: contrib/install-packages.sh [--tests | PACKAGE...]     PACKAGE: install these instead
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh

case "${1-}" in
--tests) ;;
-*) fail "usage: contrib/install-packages.sh [--tests | PACKAGE...]" ;;
esac

wanted() {
    case "${1-}" in
    '') sed '/^# for contrib\/test\.sh$/,$d' contrib/packages.txt ;;
    --tests) cat contrib/packages.txt ;;
    *) printf '%s\n' "$@" ;;
    esac | sed 's/#.*//' | awk 'NF { print $1 }'
}

is_installed() {
    # shellcheck disable=SC2016 # a variable of dpkg-query
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

command -v dpkg-query >/dev/null || fail "this is no Debian: install what contrib/packages.txt names by hand"

missing=()
for package in $(wanted "$@"); do
    is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
    step "all packages are installed"
    exit 0
fi

# During package installation, invoke-rc.d runs this file, which forbids starting services.
policy=/usr/sbin/policy-rc.d
saved=$policy.before-gpuq
mark='# by gpuq contrib/install-packages.sh'

restore_policy() {
    if grep -qsF "$mark" "$policy"; then
        as_root rm -f "$policy"
    fi
    if [ -e "$saved" ] || [ -L "$saved" ]; then
        as_root mv -f "$saved" "$policy"
    fi
}

deny_services() {
    restore_policy # left by a killed run of this script
    if [ -e "$policy" ] || [ -L "$policy" ]; then
        as_root mv "$policy" "$saved"
    fi
    # 101: action not allowed.
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

step "installing ${missing[*]}"
trap restore_policy EXIT
trap 'exit 130' INT TERM HUP
deny_services
apt update || step "the package lists could not be refreshed; trying with those that are here"
apt install --no-install-recommends "${missing[@]}"
step "installed ${#missing[@]} packages; no service was started"
