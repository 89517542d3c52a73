#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds and tests gpuq on another release of Debian: unit and contract tests and the live suite, with that release's
# compiler, libraries and Slurm, in a root directory that debootstrap creates from this machine's package archive. The tests
# run in their own process namespace with only a loopback network. Needs root or sudo and 8 GB; an hour on two cores.
# usage: contrib/live-on.sh [--root DIR] SUITE [PYTEST-OPTION...]      for example: trixie -k shell
#        contrib/live-on.sh [--root DIR] --quickstart|--install SUITE
#   SUITE          bookworm (Debian 12), trixie (13) or forky (14)
#   --root DIR     the root directory, kept and reused with its packages and build (default: one in $TMPDIR, removed)
#   --quickstart   run README's first command in a bare root, with this machine's network, instead of the tests
#   --install      run the commands of README's section "Install", exactly as printed, likewise
set -Eeuo pipefail
here=$PWD
cd "$(dirname "$0")/.."
. contrib/common.sh
. contrib/debian.sh
usage="usage: contrib/live-on.sh [--root DIR] [--quickstart|--install] SUITE [PYTEST-OPTION...]"

given='' what=tests options=()
while [ $# != 0 ]; do
    case $1 in
    --root)
        given=$(cd "$here" && realpath -m -- "${2:?$usage}")
        options+=(--root "$given")
        shift 2
        ;;
    --quickstart | --install)
        what=${1#--}
        options+=("$1")
        shift
        ;;
    *) break ;;
    esac
done
suite=${1-}
case $suite in
bookworm | trixie | forky) shift ;;
*) fail "$usage" ;;
esac

root=${GPUQ_DEBIAN_ROOT-}
if [ -z "$root" ]; then
    contrib/install-packages.sh debootstrap iproute2
    in_a_debian "$given" "${options[@]}" "$suite" "$@"
fi

# Location of the source tree in the root. A test checks that no file of the package contains this path.
tree=/usr/src/gpuq

# Copies the working tree, including uncommitted changes; an existing build is kept. Files with another content get a new
# time, since they may be older than that build; the others keep theirs, so that they are not compiled again.
copy_tree() {
    local new=$root$tree.new file
    rm -rf "$new"
    mkdir -p "$new" "$root$tree"
    find "$root/tmp" -mindepth 1 -delete
    git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
        tar --create --null --ignore-failed-read --files-from - 2>/dev/null | tar --extract --touch --no-same-owner --directory "$new"
    find "$root$tree" -mindepth 1 -path "$root$tree/build" -prune -o -type f -printf '%P\0' |
        while IFS= read -r -d '' file; do
            if cmp -s "$root$tree/$file" "$new/$file"; then
                touch --reference "$root$tree/$file" "$new/$file"
            fi
        done
    if [ -d "$root$tree/build" ]; then
        mv "$root$tree/build" "$new"
    fi
    rm -rf "${root:?}$tree"
    mv "$new" "$root$tree"
}

in_tree() {
    local network=$1
    shift
    # shellcheck disable=SC2016 # for the shell inside
    inside "$network" sh -c 'cd "$0" && exec "$@"' "$tree" "$@"
}

run_tests() {
    step "installing what the tests need on $suite"
    quietly in_tree -- contrib/install-packages.sh --tests
    step "building and testing on $suite"
    # No debugging takes place in the root, and symbols take a sixth of the compile time.
    in_tree --net env GPUQ_CMAKE="${GPUQ_CMAKE--DCMAKE_CXX_FLAGS_DEBUG=}" contrib/test.sh --no-style "$@"
}

run_quickstart() {
    step "contrib/quickstart.sh on a bare $suite"
    without_warnings in_tree -- contrib/quickstart.sh
}

# The commands are taken from README, so that exactly these are tested. A comment follows after two spaces.
install_commands() {
    awk '/^## / { here = $2 == "Install" } here && sub(/^    /, "") { sub(/  .*/, ""); print }' README.md
}

run_install() {
    local commands
    commands=$(install_commands)
    step "README's \"Install\" on a bare $suite"
    without_warnings in_tree -- bash -exc "$commands"
    step "a training by what was installed"
    # shellcheck disable=SC2016 # for the shell inside
    inside --net sh -exc '
        [ "$(~/.local/bin/gpuq --version)" = "$(/usr/bin/gpuq --version)" ]
        # As stated in README: libslurm and the C library, nothing else.
        ! readelf -d ~/.local/bin/gpuq ~/.local/libexec/gpuq/gpuq-supervisor | grep NEEDED |
            grep -vE "\[(libslurm|libc|libm|libdl|libutil|libresolv|libpthread|ld-linux[^.]*)\.so"
        PATH=~/.local/bin:/usr/bin:/bin:/usr/sbin:/sbin
        gpuq cluster up --gpus 4 --model k80
        gpuq run -t 2h ~/.local/share/doc/gpuq/examples/train.py
        gpuq cluster down --purge'
}

# Runs a command and fails if it prints a warning of a compiler, a linker or CMake. Debian's slurm package makes
# useradd print one.
without_warnings() {
    local log=$root/tmp/output
    "$@" 2>&1 | tee "$log"
    if grep -niE '(^|[^-])warning[ :]' "$log" | grep -v ':useradd warning: ' >&2; then
        fail "it ends well, but with the warnings above"
    fi
}

mark=$root/root/.gpuq-live-on
if [ -e "$mark" ]; then
    [ "$(cat "$mark")" = "$suite" ] || fail "$root is a root of $(cat "$mark")"
else
    [ -z "$(ls -A "$root")" ] || fail "$root is not empty, and not a root that this script made"
    step "making a minimal Debian: $suite"
    quietly make_debian "$suite"
    echo "$suite" >"$mark"
fi
copy_tree
"run_$what" "$@"
step "done on $suite"
