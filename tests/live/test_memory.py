# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that the kernel kills for lack of memory under a program that continues."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import Cluster, Person, running_cluster, short_folder, wait_for
from faults import Run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="cgroups are root's")

HUNGRY = "x = b'x' * (2 << 30)"
# The program outlives its child: it waits for the child, and then for a file.
OUTLIVES = f"""
import os, pathlib, subprocess, sys, time
print(subprocess.run([sys.executable, "-c", {HUNGRY!r}]).returncode, flush=True)
while len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def confined():
    options = ["--cgroups", "on", "--node-name", f"om{os.getpid()}-"]
    with short_folder() as top:
        probe = Cluster(top / "c")
        done = probe.cluster("up", "--gpus", "1", *options, check=False)
        probe.cluster("down", "--purge", check=False)
        if "can not use the cgroups" in done.stderr:
            pytest.skip("no usable cgroups here")
    with running_cluster(nodes=2, gpus=1, options=options) as cluster:
        yield cluster


@pytest.fixture
def home(confined):
    with short_folder() as home:
        yield Person(confined, home, confined.as_user)


def shown(person, job):
    return json.loads(person.gpuq("show", "--json", job).stdout)


def test_a_killed_child_under_a_program_that_ends_well(home):
    done = home.gpuq("run", "--mem", "300M", "--", sys.executable, "-c", OUTLIVES)
    assert (done.returncode, done.stdout) == (0, "-9\n"), done.stderr
    assert "ended with status 0: the kernel killed 1 of its processes for memory" in done.stderr
    run = Run.newest(home)
    assert (run.ended["status"], run.ended["cause"]) == (0, "finished")
    assert [(event["to"], event["host"][-1]) for event in run.events("memory_kill")] == [(1, "0")]
    document = shown(home, run.job)
    assert document["memory_kills"] == 1
    assert "the kernel killed 1 of its processes for memory" in home.gpuq("show", run.job).stdout
    assert "for memory" in home.gpuq("logs", "-f", run.job).stderr
    quiet = home.gpuq("run", "-Q", "--mem", "300M", "--", sys.executable, "-c", OUTLIVES)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_it_is_told_while_the_program_runs(home):
    with home.start("run", "--mem", "300M", "--", sys.executable, "-c", OUTLIVES, "go") as client:
        run = Run.newest(home)
        run.event("memory_kill")
        assert shown(home, run.job)["memory_kills"] == 1
        assert "the kernel killed 1 of its processes for memory" in home.gpuq("show", run.job).stdout
        (home.home / "go").touch()
        out, said = client.communicate(timeout=30)
    assert (client.returncode, out) == (0, b"-9\n"), said
    assert b"the kernel killed 1 of its processes for memory (" in said


def test_a_program_below_a_shell_counts_as_the_program(home):
    done = home.gpuq("run", "--mem", "300M", "--", "sh", "-c", f'{sys.executable} -c "{HUNGRY}"; exit $?')
    assert done.returncode == 137, done.stderr
    assert Run.newest(home).ended["cause"] == "memory"


def test_a_killed_child_of_a_rank_on_another_node(home):
    program = f'test $NODE_RANK = 0 || {sys.executable} -c "{HUNGRY}"; true'
    done = home.gpuq("run", "-N", "2", "--mem", "300M", "--", "sh", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "the kernel killed 1 of its processes for memory" in done.stderr
    run = Run.newest(home)
    assert [(event["to"], event["host"][-1]) for event in run.events("memory_kill")] == [(1, "1")]
    assert shown(home, run.job)["memory_kills"] == 1


def test_what_ranks_of_one_node_have_seen_is_counted_once(home):
    hungry = f'{sys.executable} -c "{HUNGRY}"; touch done'
    program = f"if test $RANK = 1; then {hungry}; else until test -e done; do sleep 0.1; done; fi; true"
    done = home.gpuq("run", "--tasks-per-node", "2", "--mem", "300M", "--", "sh", "-c", program)
    run = Run.newest(home)
    assert sum(event["to"] for event in run.events("memory_kill")) == 1, done.stderr
    assert shown(home, run.job)["memory_kills"] == 1


def test_a_rank_that_is_killed_ends_the_run_with_its_cause(home):
    program = f'[ $SLURM_PROCID = 1 ] && exec {sys.executable} -c "{HUNGRY}"; exec sleep 600'
    done = home.gpuq("run", "--tasks-per-node", "2", "--mem", "300M", "--", "sh", "-c", program)
    run = Run.newest(home)
    assert (done.returncode, run.ended["cause"]) == (137, "memory"), done.stderr
    assert "the kernel killed the program" in done.stderr and "rank 1" in done.stderr, done.stderr


def test_where_nothing_was_killed_that_is_known(home):
    done = home.gpuq("run", "--mem", "300M", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137
    run = Run.newest(home)
    assert run.ended["cause"] == "crashed"
    assert shown(home, run.job)["memory_kills"] == 0


@contextlib.contextmanager
def small_cgroup():
    """A private cgroup outside Slurm's: a process killed in it belongs to no job."""
    unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
    top = pathlib.Path("/sys/fs/cgroup" if unified.exists() else "/sys/fs/cgroup/memory")
    group = top / f"gpuq-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / ("memory.max" if unified.exists() else "memory.limit_in_bytes")).write_text("50000000")
        yield group
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), 10, "an empty cgroup")
        group.rmdir()


def test_without_a_memory_cgroup_it_is_unknown_whose_process_was_killed():
    with running_cluster(nodes=1, gpus=1) as cluster, short_folder() as folder, small_cgroup() as group:
        person = Person(cluster, folder, cluster.as_user)
        calm = person.gpuq("run", "--", "true")
        assert (calm.returncode, "memory" in calm.stderr) == (0, False), calm.stderr
        assert shown(person, Run.newest(person).job)["memory_kills"] is None
        wait = "while test ! -e go; do sleep 0.05; done"
        with person.start("run", "--", "sh", "-c", wait) as client:
            Run(person, wait_for(lambda: person.run_dirs()[1:], 20)[0]).event("program_started")
            enter = f'echo $$ > {group}/cgroup.procs; exec {sys.executable} -c "{HUNGRY}"'
            assert subprocess.run(["sh", "-c", enter], check=False).returncode == -9
            (person.home / "go").touch()
            _, said = client.communicate(timeout=30)
    assert client.returncode == 0
    assert b"1 process on its node for memory, possibly not of this run" in said
