# SPDX-License-Identifier: GPL-2.0-or-later
"""Many runs in parallel: each ends with its status and its complete output, whether it had to wait or
not."""
import re
import time

import pytest

from clusters import running_cluster
from faults import Beside, Run, assert_nothing_left, of_soak

RUNS = of_soak(200, 60)
NODES = of_soak(4, 2)
PROGRAM = "for i in 1 2 3 4 5; do echo {number} $i $GPUQ_RUN_ID; done; sleep 1; echo end; exit {status}"


def run_many(person, count, gpus=1):
    """Starts all runs at once, each with its own exit status. Returns the clients, and the seconds
    until the last one ended."""
    begin = time.monotonic()
    clients = [Beside(person, "run", "-J", f"many-{number}", "-g", gpus, "--", "sh", "-c",
                      PROGRAM.format(number=number, status=number % 100), timeout=540)
               for number in range(count)]
    for client in clients:
        client.join()
    return clients, time.monotonic() - begin


def assert_all_whole(person, clients):
    wrong = [(number, client.status, client.out, client.said) for number, client in enumerate(clients)
             if client.status != number % 100 or not re.fullmatch(
                 "".join(rf"{number} {i} (\S+)\n" for i in range(1, 6)) + "end\n", client.out)]
    assert not wrong, (len(wrong), wrong[:3])
    # Each is a separate run, and ran once.
    keys = {client.out.split()[2] for client in clients}
    assert keys == {folder.name for folder in person.run_dirs()}
    jobs = [Run(person, folder).job for folder in person.run_dirs()]
    assert len(set(jobs)) == len(clients)
    listed = person.gpuq("ls", "--all", "--no-header").stdout
    assert all(re.search(rf"\b{job}\b", listed) for job in jobs)


def test_all_at_once_with_a_gpu_for_each(person_of_many):
    clients, seconds = run_many(person_of_many, RUNS)
    print(f"{RUNS} runs in {seconds:.1f} s")
    assert_all_whole(person_of_many, clients)


@pytest.fixture
def person_of_many(cluster, person):
    yield person
    assert_nothing_left(cluster)


CLUSTER = dict(nodes=NODES, gpus=64, lines=["KillWait=5"])


def test_more_than_there_are_gpus(person_of_many):
    """Twenty runs that need more GPUs than the cluster has: a few must wait for the others."""
    clients, seconds = run_many(person_of_many, 20, gpus=64 * NODES // 8 if NODES <= 8 else 64)
    print(f"20 runs in {seconds:.1f} s")
    assert_all_whole(person_of_many, clients)
    assert any("waiting" in client.said for client in clients)
