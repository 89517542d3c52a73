# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole nodes and slurmds die at random moments under several runs with several links. Each run resumes from its
newest valid checkpoint and ends like an undisturbed one."""
import contextlib
import os
import random
import signal
import time

import pytest

from chains import UNAWARE, assert_nothing_lost, start, trainer
from conftest import Person, is_running, short_folder, wait_for
from faults import of_soak, parent_of

CLUSTER = dict(nodes=3, gpus=4, lines=["KillWait=5"])
EVERY = 10
STEPS = of_soak(2000, 250)
CHAINS = of_soak(6, 3)
OUTAGES = of_soak(12, 2)
SEED = int(os.environ.get("GPUQ_SEED", time.time_ns() % 100000))


@pytest.fixture
def home(cluster):
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


def running_on(chains, node):
    """For each chain whose current link runs on the node: the chain, and its processes from slurmstepd down."""
    for chain in chains:
        link = max(chain.links() or [1])
        for number in (link, link - 1):
            started = chain.events(number, "supervisor_started") if number else []
            if not started or started[0]["host"] != node or chain.events(number, "ended"):
                continue
            pids = [started[0]["pid"], *(one["pid"] for one in chain.events(number, "program_started"))]
            with contextlib.suppress(OSError):
                guardian = parent_of(started[0]["pid"])
                pids = [parent_of(guardian), guardian, *pids]
            yield chain, [pid for pid in pids if pid > 1 and is_running(pid)]


def lose_node(cluster, chains, node):
    """Simulates a power failure: kills all processes, parents first so that none can report. Slurm learns of it from
    the site's monitoring, and the node returns a little later. Returns the number of runs affected."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        cluster.signal(f"slurmd-{node}")
    lost = list(running_on(chains, node))
    for _, pids in lost:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    cluster.scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=power")
    time.sleep(1)
    cluster.repair()
    # Refused if the returned slurmd has already done this.
    cluster.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
    return len(lost)


def lose_slurmd(cluster, chains, node):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        cluster.signal(f"slurmd-{node}")
    time.sleep(1)
    cluster.repair()
    return sum(1 for _ in running_on(chains, node))


def test_nodes_and_slurmds_die_at_random_moments(home, cluster):
    """Prints the seed; GPUQ_SEED repeats a failure."""
    print(f"seed {SEED}")
    dice = random.Random(SEED)
    link = ["-t", str(of_soak(360, 45)), "--link", "14s", "--mem", "64M"]
    chains = [start(home, f"chain-{number}", link + UNAWARE,
                    *trainer("--steps", str(STEPS), "--every", str(EVERY), "--folder", "out"))
              for number in range(CHAINS)]
    for chain in chains:
        chain.event(1, "checkpoint")
    outages = [lose_node, lose_slurmd] * (OUTAGES // 2)
    dice.shuffle(outages)
    for outage in outages:
        time.sleep(dice.uniform(1, 6))
        nodes = [f"n{number}" for number in range(CLUSTER["nodes"])]
        node = dice.choice([name for name in nodes if any(running_on(chains, name))] or nodes)
        print(f"{outage.__name__} {node}: {outage(cluster, chains, node)} runs", flush=True)
    for chain in chains:
        wait_for(lambda chain=chain: chain.show()["state"] == "ended", of_soak(900, 150), f"the end of {chain.folder}")
    for chain in chains:
        assert chain.show()["exit"] == 0, chain.show()
        assert_nothing_lost(chain, STEPS, EVERY)
    wait_for(lambda: not cluster.slurm("squeue", "-h", "-t", "PD,R"), 10, "an empty queue")
