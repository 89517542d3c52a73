# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that Slurm ends: at the time limit, for a job of higher priority, for their memory."""
import pathlib
import sys

import pytest

from conftest import wait_for
from faults import Run, assert_counted, assert_nothing_left, counting, read_available

CLUSTER = dict(nodes=1, gpus=4, lines=[
    "KillWait=5",
    "PreemptType=preempt/partition_prio",
    "PreemptMode=CANCEL",
    "PartitionName=urgent Nodes=ALL MaxTime=3:00:00 PriorityTier=100 DefMemPerGPU=1024 "
    "DefCpuPerGPU=1",
])


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_left(cluster)


def test_the_time_limit(cluster, person):
    """Slurm checks twice a minute, so this takes a minute and a half: all kinds in parallel."""
    program = counting(100000, 0.1)
    saving = ["sh", "-c", "trap 'echo saved; exit 85' TERM; echo ready; while true; do sleep 0.1; done"]
    with person.start("run", "-t", "1", "-J", "now", "--", *program) as now, \
            person.start("run", "-t", "1", "-J", "saves", "--", *saving) as saves:
        assert person.gpuq("run", "-t", "1", "-J", "detached", "--detach", "--", *program).returncode == 0
        out, said = now.communicate(timeout=150)
        saved, saved_said = saves.communicate(timeout=60)
    assert now.returncode == 124, said
    assert_counted(out.decode())
    said = said.decode()
    assert any("time limit" in line for line in said.splitlines() if line.startswith("gpuq: ")), said
    # A program that exits in time keeps its own status.
    assert (saves.returncode, saved) == (85, b"ready\nsaved\n"), saved_said
    runs = {folder: Run(person, folder) for folder in person.run_dirs()}
    # The one that started last may have to wait for Slurm's next check.
    endings = [run.event("ended", 60) for run in runs.values()]
    causes = sorted((ending["cause"], ending["status"]) for ending in endings)
    assert causes == [("time_limit", 85), ("time_limit", 124), ("time_limit", 124)]
    for run in runs.values():
        assert cluster.accounted(run.job)["State"] == "TIMEOUT"


@pytest.mark.parametrize("how", ["now", "detach"])
def test_preemption(how, cluster, person):
    program = counting(100000, 0.02)
    if how == "detach":
        assert person.gpuq("run", "-g", 4, "--detach", "--", *program).returncode == 0
        run = Run.newest(person)
        run.written(7)
        urgent = person.gpuq("run", "-g", 4, "-p", "urgent", "--", "echo", "urgent")
    else:
        with person.start("run", "-g", 4, "--", *program) as client:
            first = read_available(client.stdout, size=7)
            run = Run.newest(person)
            urgent = person.gpuq("run", "-g", 4, "-p", "urgent", "--", "echo", "urgent")
            rest, said = client.communicate(timeout=30)
        assert client.returncode == 119, said
        assert_counted((first + rest).decode())
        assert run.output() == first + rest
    assert (urgent.returncode, urgent.stdout) == (0, "urgent\n"), urgent.stderr
    assert run.ended["status"] == 119
    assert run.ended["cause"] == "preempted"
    assert cluster.accounted(run.job)["State"] == "PREEMPTED"


def confines_memory(cluster):
    return "cgroup" in pathlib.Path(cluster.conf).read_text().split("TaskPlugin=")[1].split("\n")[0]


def test_memory(cluster, person):
    if not confines_memory(cluster):
        pytest.skip("no cgroups on this machine: jobs keep to their memory by agreement only")
    program = "import sys; print('ready', flush=True); x = b'x' * (2 << 30); print(len(x))"
    done = person.gpuq("run", "--mem", "256M", "--", sys.executable, "-c", program)
    assert done.returncode == 137, done.stderr
    assert done.stdout == "ready\n"
    run = Run.newest(person)
    assert run.ended["cause"] == "memory"
    assert "memory" in done.stderr
    wait_for(lambda: not cluster.squeue(), 30, "an empty queue")
