# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on the node: the supervisor, its guardian, slurmstepd, slurmd or the node itself dies."""
import contextlib
import os
import signal
import time

import pytest

from conftest import is_running, wait_for
from faults import (Run, assert_counted, assert_nothing_left, counting, kill, parent_of,
                    read_available)

CLUSTER = dict(nodes=1, gpus=8, lines=["KillWait=5"])

# A run before and after the hand-over from srun to relay and guard, a batch job with a client, and one
# without.
AGES = ["young", "old", "batch", "detached"]


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_left(cluster)


class Watched:
    """A run, and its client if it has one."""

    def __init__(self, age, person, *program):
        self.age = age
        self.person = person
        self.program = program
        self.client = None
        self.seen = b""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        words = []
        if self.age == "batch":
            assert self.person.gpuq("run", "true").returncode == 0
            words = ["--after", Run.newest(self.person).job]
        if self.age == "detached":
            assert self.person.gpuq("run", "--detach", "--", *self.program).returncode == 0
        else:
            self.client = self.stack.enter_context(
                self.person.start("run", *words, "--", *self.program))
            self.seen = read_available(self.client.stdout, size=7)
        self.run = Run.newest(self.person)
        self.run.written(7)
        if self.age == "old":
            self.run.handed_over()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def assert_ends(self, status, cause=None, lines=None, seconds=60):
        """Checks the exit status in all places, and the complete output written before."""
        if self.client:
            out, said = self.client.communicate(timeout=seconds)
            assert self.client.returncode == status, said.decode()
            assert_counted((self.seen + out).decode(), lines)
            log = self.run.output()
            if status == 119: # shown output may not have been written, or vice versa: at most one line
                shown = self.seen + out
                assert log[:len(shown)] == shown[:len(log)] and abs(len(log) - len(shown)) < 20
            else:
                assert log == self.seen + out
        else:
            self.run.event("ended", seconds)
            assert_counted(self.run.output().decode(), lines)
        if cause:
            assert self.run.ended["cause"] == cause
            assert self.run.ended["status"] == status


def bring_back(cluster):
    """A node that is down returns automatically when slurmd registers (ReturnToService=2)."""
    cluster.slurm("scontrol", "update", "nodename=n0", "state=resume", check=False)
    # idle*: it has not responded yet, and a run that needs it is queued
    wait_for(lambda: set(cluster.slurm("sinfo", "-h", "-o", "%t").split()) == {"idle"}, 60, "an idle node")


@pytest.fixture(params=AGES)
def age(request):
    return request.param


FOR_EVER = counting(100000, 0.02)
SIX_SECONDS = counting(300, 0.02, then="exit 7")


def test_a_killed_supervisor(age, cluster, person):
    with Watched(age, person, *FOR_EVER) as watched:
        kill(watched.run.supervisor)
        begin = time.monotonic()
        watched.assert_ends(119, "lost")
        wait_for(lambda: not cluster.squeue(), 60, "an empty queue")
        assert time.monotonic() - begin < 20
    assert cluster.accounted(watched.run.job)["ExitCode"] == "119:0"


def test_a_killed_guardian(age, person):
    with Watched(age, person, *FOR_EVER) as watched:
        kill(watched.run.guardian)
        watched.assert_ends(119, "lost")


def test_supervisor_and_guardian_killed_at_once(age, person):
    with Watched(age, person, *FOR_EVER) as watched:
        pids = [watched.run.guardian, watched.run.supervisor]
        program = watched.run.program
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # Slurm may be as fast
                kill(pid)
        wait_for(lambda: not is_running(program), 10, "the end of the program")
        if watched.client:
            watched.assert_ends(119)


@pytest.mark.parametrize("age", ["young", "old"])
def test_a_cancelled_step(age, cluster, person):
    with Watched(age, person, *FOR_EVER) as watched:
        program = watched.run.program
        cluster.slurm("scancel", f"{watched.run.job}.0")
        watched.assert_ends(119)
        wait_for(lambda: not is_running(program), 10, "the end of the program")
        wait_for(lambda: not cluster.squeue(), 60, "an empty queue")


def test_a_killed_slurmstepd(age, cluster, person):
    with Watched(age, person, *SIX_SECONDS) as watched:
        kill(watched.run.slurmstepd)
        watched.assert_ends(7, "finished", lines=300)


def test_a_killed_slurmd(age, cluster, person):
    with Watched(age, person, *SIX_SECONDS) as watched:
        cluster.signal("slurmd-n0")
        try:
            watched.assert_ends(7, "finished", lines=300)
        finally:
            cluster.repair()


def test_a_run_on_a_node_whose_slurmd_has_just_died(cluster, person):
    cluster.signal("slurmd-n0")
    try:
        done = person.gpuq("run", "echo", "hi", timeout=60)
        assert (done.returncode, done.stdout) == (125, ""), done.stderr
        last = done.stderr.splitlines()[-1]
        assert "could not be started: srun: error: " in last and "^J" not in last, done.stderr
    finally:
        cluster.repair()


def test_slurmd_is_started_again_during_the_run(age, cluster, person):
    with Watched(age, person, *SIX_SECONDS) as watched:
        cluster.signal("slurmd-n0")
        cluster.repair()
        watched.assert_ends(7, "finished", lines=300)


def test_a_node_set_down(age, cluster, person):
    with Watched(age, person, *FOR_EVER) as watched:
        cluster.scontrol("update", "nodename=n0", "state=down", "reason=test")
        try:
            watched.assert_ends(119, "node_failed")
        finally:
            bring_back(cluster)
    assert cluster.accounted(watched.run.job)["State"] == "NODE_FAIL"


def test_a_drained_node_changes_nothing(cluster, person):
    with Watched("old", person, *SIX_SECONDS) as watched:
        cluster.scontrol("update", "nodename=n0", "state=drain", "reason=test")
        try:
            watched.assert_ends(7, "finished", lines=300)
        finally:
            bring_back(cluster)
