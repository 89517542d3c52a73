# SPDX-License-Identifier: GPL-2.0-or-later
"""A site's installation made from the build directory under test: `cmake --install` into a home, and the Debian
package. contrib/package-test.sh does the same with a release build and a complete Debian."""
import os
import pathlib
import re
import subprocess

import pytest

from clusters import (BUILT, ROOT, Cluster, Person, environment_of, plain_environment, run,
                      short_folder)
from runs import PYTHON

BUILD = BUILT.parent
HOME, PACKAGE = "cmake --install", "package"
ZSH = {HOME: "site-functions", PACKAGE: "vendor-completions"}  # searched by Debian's zsh

pytestmark = pytest.mark.skipif(not (BUILD / "CPackConfig.cmake").exists(),
                                reason=f"{BUILD} is no build folder")


def done(*words, **options):
    answer = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=300, check=False,
                            **options)
    assert answer.returncode == 0, f"{words}: {answer.stdout}{answer.stderr}"
    return answer.stdout


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture(scope="module")
def package():
    """The .deb of this build directory."""
    with short_folder() as folder:
        done("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", folder, cwd=BUILD)
        (deb,) = folder.glob("*.deb")
        yield deb


@pytest.fixture(scope="module", params=[HOME, PACKAGE])
def installed(request):
    """The kind of installation, and the directory that received bin, libexec and share."""
    with short_folder() as top:
        if request.param == HOME:
            prefix = top / "home" / ".local"
            done("cmake", "--install", BUILD, "--prefix", prefix)
        else:
            prefix = top / "usr"
            done("dpkg-deb", "-x", request.getfixturevalue("package"), top)
        yield request.param, prefix


def test_a_training_runs_from_where_it_is_installed(installed, plain_user):
    prefix = installed[1]
    with short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        cluster = Cluster(home / "c", prefix / "bin" / "gpuq", as_user=plain_user)
        try:
            cluster.up()
            slurmd = environment_of(cluster.pid("slurmd-n0"))
            assert slurmd["LD_PRELOAD"] == str(prefix / "libexec" / "gpuq" / "gpuq-loopback.so")
            train = prefix / "share" / "doc" / "gpuq" / "examples" / "train.py"
            ran = Person(cluster, home, plain_user).gpuq("run", "-t", "2h", PYTHON, train, "--epochs", 3)
            assert (ran.returncode, len(re.findall(r"^epoch \d/3 loss ", ran.stdout, re.M))) == (0, 3), ran
        finally:
            cluster.cluster("down", "--purge", check=False)
        assert not cluster.daemons()


def test_man_and_completion_are_found_from_there(installed):
    origin, prefix = installed
    env = {**plain_environment(), "PATH": f"{prefix}/bin:/usr/bin:/bin"}
    for page in ("gpuq", "gpuq-run", "gpuq-files", "gpuq-adoption", "gpuq-chain", "gpuq-tutorial"):
        path = run(["man", "-w", page], env).stdout.strip()
        assert path.startswith(f"{prefix}/share/man/man") and pathlib.Path(path).exists()
    complete = 'source "$0" && complete -p gpuq'
    script = prefix / "share" / "bash-completion" / "completions" / "gpuq"
    assert "gpuq" in run(["bash", "-c", complete, str(script)], env).stdout
    assert (prefix / "share" / "fish" / "vendor_completions.d" / "gpuq.fish").stat().st_size > 0
    assert (prefix / "share" / "zsh" / ZSH[origin] / "_gpuq").stat().st_size > 0


def test_the_timer_of_the_public_page_is_installed(installed):
    lib = installed[1] / "lib"
    assert "User=gpuq-site\n" in (lib / "systemd" / "system" / "gpuq-site.service").read_text()
    assert (lib / "systemd" / "system" / "gpuq-site.timer").exists()
    assert "\nu gpuq-site " in (lib / "sysusers.d" / "gpuq-site.conf").read_text()


def test_the_package_says_nothing_of_the_machine_that_made_it(package, tmp_path):
    done("dpkg-deb", "-R", package, tmp_path)
    for name in files_below(tmp_path):
        content = (tmp_path / name).read_bytes()
        assert str(ROOT).encode() not in content and str(BUILD).encode() not in content, name


def test_the_package_names_the_libraries_it_needs(package):
    needed = done("dpkg-deb", "-f", package, "Depends")
    assert "libc6 (>=" in needed and "libslurm" in needed


def test_package_and_spec_are_of_one_version(package):
    spec = re.search(r"^Version: *(\S+)", (ROOT / "contrib" / "gpuq.spec").read_text(), re.M)[1]
    assert done("dpkg-deb", "-f", package, "Version").strip() == f"{spec}-1"


def test_the_spec_asks_for_what_the_build_needs():
    """By Enterprise Linux's names of the Debian packages."""
    names = {"g++": "gcc-c++", "libcli11-dev": "cli11-devel", "libfmt-dev": "fmt-devel", "libncurses-dev": "ncurses-devel",
             "libre2-dev": "re2-devel", "nettle-dev": "nettle-devel", "libslurm-dev": "slurm-devel",
             "libspdlog-dev": "spdlog-devel", "libssh-dev": "libssh-devel", "libyaml-cpp-dev": "yaml-cpp-devel",
             "liblua5.1-0-dev": "lua-devel", "nlohmann-json3-dev": "json-devel", "zlib1g-dev": "zlib-devel"}
    needed = (ROOT / "contrib" / "packages.txt").read_text().split("# to build\n")[1].split("\n\n")[0].split()
    asked = re.findall(r"BuildRequires: *([\w.+-]+)", (ROOT / "contrib" / "gpuq.spec").read_text())
    assert [name for name in needed if name != "git" and names.get(name, name) not in asked] == []


def test_lintian_finds_nothing_that_is_not_explained(package, plain_user):
    # As an ordinary user: run by root, lintian warns about itself.
    answer = run(["lintian", "--fail-on", "error,warning,info", "--suppress-tags",
                  "hardening-no-fortify-functions,unused-override", str(package)],  # a debug build has no such library
                 plain_environment(), plain_user, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only")
def test_removing_the_package_leaves_no_file(package):
    with short_folder() as root:
        (root / "var" / "lib" / "dpkg" / "info").mkdir(parents=True)
        (root / "var" / "lib" / "dpkg" / "updates").mkdir()
        (root / "var" / "lib" / "dpkg" / "status").touch()
        dpkg = ["dpkg", f"--root={root}", "--log=/dev/null", "--force-depends"]
        done(*dpkg, "--install", package)
        assert (root / "usr" / "bin" / "gpuq").exists()
        done(*dpkg, "--remove", "gpuq")
        assert [name for name in files_below(root) if not name.startswith("var/lib/dpkg/")] == []
