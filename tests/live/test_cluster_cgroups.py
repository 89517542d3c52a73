# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster comes up with any cgroups of the host, and reports in one line if they do not confine its jobs."""
import os
import re

import pytest

from clusters import run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")

NONE = "umount -R -l /sys/fs/cgroup"
LAYOUTS = {
    "as here": ("true", r".*"),
    "absent": (NONE, "no cgroups are mounted at /sys/fs/cgroup"),
    "v2": (f"{NONE}; mount -t cgroup2 none /sys/fs/cgroup",
           r"v1 hierarchies are mounted beside cgroup v2|cgroup v2 without the cpuset and memory controllers|no systemd here.*"),
    "v2 read-only": (f"{NONE}; mount -t cgroup2 -o ro none /sys/fs/cgroup",
                     r"v1 hierarchies.*|cgroup v2 without.*|/sys/fs/cgroup can't be written, as in a container"),
    "empty": (f"{NONE}; mount -t tmpfs none /sys/fs/cgroup", "no cgroups are mounted at /sys/fs/cgroup"),
    "v1 read-only": (f"{NONE}; mount -t tmpfs none /sys/fs/cgroup; cd /sys/fs/cgroup; mkdir memory freezer devices systemd; "
                     "for i in memory freezer devices; do mount -t tmpfs -o ro none $i; done; cd /tmp",
                     "freezer, memory and devices below /sys/fs/cgroup can't be written"),
}


def up(folder, mount, *options):
    """Runs `gpuq cluster up` on a host with these cgroups."""
    words = [folder.binary, "cluster", "up", "--dir", str(folder.dir), "--gpus", "1", *options]
    return run(["unshare", "-m", "sh", "-c", f'{{ {mount}; }} >&2; exec "$@"', "sh", *words], env=folder.env)


@pytest.mark.parametrize("mount, reason", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_it_comes_up(folder, mount, reason):
    done = up(folder, mount)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "not confined" in line]
    assert len(lines) == 1, done.stderr
    said = re.search(r"not confined by cgroups \((.*)\): their memory limits", lines[0]).group(1)
    assert re.fullmatch(f"{reason}|--cgroups on does it", said), said
    assert folder.slurm("srun", "--gres=gpu:1", "--mem=50", "echo", "hello") == "hello\n"


@pytest.mark.parametrize("mount, reason", [LAYOUTS[name] for name in ("absent", "v2 read-only", "v1 read-only")],
                         ids=["absent", "v2 read-only", "v1 read-only"])
def test_asked_for_where_they_can_not_be_it_says_why(folder, mount, reason):
    done = up(folder, mount, "--cgroups", "on")
    assert done.returncode == 2
    assert re.search(reason, done.stderr), done.stderr
    assert not folder.daemons()
