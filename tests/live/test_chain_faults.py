# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with several links under faults: no link resumes from an incomplete checkpoint, none is restarted without need,
no more than one interval and its save is lost, and the result equals that of an undisturbed run."""
import os
import random
import signal
import threading
import time

import pytest

from chains import UNAWARE, assert_nothing_lost, start, trainer
from conftest import Person, is_running, short_folder, wait_for
from faults import of_soak, parent_of

CLUSTER = dict(nodes=2, gpus=16, lines=[
    "KillWait=5",
    "PreemptType=preempt/partition_prio",
    "PreemptMode=CANCEL",
    "PartitionName=urgent Nodes=n1 MaxTime=3:00:00 PriorityTier=100 DefMemPerGPU=64 DefCpuPerGPU=1",
])
EVERY = 10
STEPS = 250
LINK = ["-t", "20", "--link", "14s", "--mem", "64M"]
CHAINS = of_soak(10, 5)
KILLS = of_soak(4, 1)
SEED = int(os.environ.get("GPUQ_SEED", time.time_ns() % 100000))


@pytest.fixture
def home(cluster):
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


def victim(chain, link, kind):
    """The process to kill while the link's program runs, otherwise None."""
    started = chain.events(link, "supervisor_started")
    program = chain.events(link, "program_started")
    if not started or not program or chain.events(link, "ended"):
        return None
    supervisor = started[0]["pid"]
    try:
        pid = {"program": lambda: program[0]["pid"],
               "supervisor": lambda: supervisor,
               "guardian": lambda: parent_of(supervisor),
               "slurmstepd": lambda: parent_of(parent_of(supervisor))}[kind]()
    except OSError:
        return None
    return pid if pid > 1 and is_running(pid) else None


def kill_now_and_then(chain, seed, kinds, done):
    """Kills a part of the current link KILLS times, at random intervals. Starts after the first checkpoint: a program
    that dies without one is not restarted."""
    dice = random.Random(seed)
    killed = 0
    while not chain.events(1, "checkpoint") and not done.is_set():
        done.wait(0.2)
    while killed < KILLS and not done.is_set():
        done.wait(dice.uniform(3, 12))
        kind = dice.choice(kinds)
        pid = victim(chain, max(chain.links() or [1]), kind) or victim(chain, max(max(chain.links() or [1]) - 1, 1), kind)
        if pid:
            os.kill(pid, signal.SIGKILL)
            killed += 1
            print(f"{chain.folder.name}: killed {kind} {pid}")


def test_parts_are_killed_at_random_moments(home, cluster):
    """Prints the seed; GPUQ_SEED repeats a failure."""
    print(f"seed {SEED}")
    kinds = ["program", "supervisor", "guardian", "slurmstepd"]
    chains = [start(home, f"chain-{number}", LINK + UNAWARE,
                    *trainer("--steps", str(STEPS), "--every", str(EVERY), "--folder", "out"))
              for number in range(CHAINS)]
    done = threading.Event()
    killers = [threading.Thread(target=kill_now_and_then,
                                args=(chain, SEED + number, [kinds[number % 4]] if KILLS == 1 else kinds, done))
               for number, chain in enumerate(chains)]
    for killer in killers:
        killer.start()
    try:
        for chain in chains:
            wait_for(lambda chain=chain: chain.show()["state"] == "ended", of_soak(900, 150), f"the end of {chain.folder}")
    finally:
        done.set()
        for killer in killers:
            killer.join()
    for chain in chains:
        show = chain.show()
        if show["exit"] == 0:
            assert_nothing_lost(chain, STEPS, EVERY)
        else: # more crashes than permitted
            assert KILLS > 3 and show["cause"] in ("crashed", "finished"), show
    wait_for(lambda: not cluster.slurm("squeue", "-h", "-t", "PD,R"), 10, "an empty queue")


def test_a_node_that_fails(home, cluster):
    """Slurm takes the node down: the run continues on the other one."""
    chain = start(home, "node", ["-t", "30", "--link", "10m", "--mem", "64M", *UNAWARE],
                  *trainer("--steps", str(STEPS), "--every", str(EVERY), "--folder", "out"))
    node = chain.event(1, "supervisor_started")["host"]
    chain.event(1, "checkpoint")
    cluster.scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        other = chain.event(2, "supervisor_started", 60)["host"]
        assert other != node
        assert chain.ended(1)["cause"] == "node_failed"
        wait_for(lambda: chain.show()["state"] == "ended", 90, "its end")
        parts = assert_nothing_lost(chain, STEPS, EVERY)
        assert parts[1]["line"] == "link 2 cause node"
    finally:
        cluster.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)


def test_a_slurmd_that_is_killed(home, cluster):
    """In the middle of a link, and between the end of a link and the start of the next one."""
    chain = start(home, "slurmd", LINK + UNAWARE,
                  *trainer("--steps", str(STEPS), "--every", str(EVERY), "--folder", "out"))
    for link, moment in ((1, "program_started"), (2, "noticed")):
        node = chain.event(link, "supervisor_started")["host"]
        chain.event(link, moment)
        cluster.signal(f"slurmd-{node}")
        if moment == "noticed":
            chain.ended(link)
        cluster.repair()
    wait_for(lambda: chain.show()["state"] == "ended", 120, "its end")
    assert_nothing_lost(chain, STEPS, EVERY)


def test_preemption_lets_it_save_and_go_on(home, cluster):
    chain = start(home, "preempted", ["-t", "30", "--link", "10m", "--mem", "64M", "--slurm", "-w n1"],
                  *trainer("--aware", "--deaf", "--steps", "300", "--every", "1000"))
    chain.event(1, "program_started")
    time.sleep(2)
    urgent = home.gpuq("run", "-g", 16, "-p", "urgent", "-t", "5", "--mem", "64M", "--", "sleep", "3")
    assert urgent.returncode == 0, urgent.stderr
    ended = chain.ended(1)
    assert (ended["cause"], ended["continues"]) == ("preempted", True)
    wait_for(lambda: chain.show()["state"] == "ended", 120, "its end")
    parts = chain.assert_unbroken(300)
    # The only checkpoints are those made on notice; the second link may be preempted at once as well.
    assert len(parts) > 1
    for before, after in zip(parts, parts[1:]):
        assert after["line"].endswith("cause preempt")
        assert after["resumed"] == before["steps"][-1]


def test_a_controller_that_is_down_when_a_link_ends(home, cluster):
    chain = start(home, "silence", LINK, *trainer("--aware", "--steps", "200", "--every", "1000"))
    chain.event(1, "next_submitted")
    with cluster.stopped("slurmctld"):
        ended = chain.ended(1, 60)
        time.sleep(of_soak(60, 3))
    assert ended["continues"] is True
    wait_for(lambda: chain.show()["state"] == "ended", 120, "its end")
    parts = chain.assert_unbroken(200)
    assert parts[1]["resumed"] == parts[0]["steps"][-1]
