# SPDX-License-Identifier: GPL-2.0-or-later
"""A run with several links on two nodes: tasks on the second node are notified like those on the
first.

Both nodes are this machine. Each supervisor ignores the processes of the other node, so a notice
on the second node was sent by the step there."""
import collections
import pathlib
import time

import pytest

from chains import PYTHON, start, time_of
from conftest import Person, short_folder, wait_for
from runs import processes_of

CLUSTER = dict(nodes=2, gpus=4, lines=["KillWait=5"])
RANK = str(pathlib.Path(__file__).with_name("chain_rank.py"))
WIDE = ["-N", "2", "-t", "10", "--restart-from-scratch"]
LINK = ["--link", "20s"]
NODES = {"0": "n0", "1": "n1"}


@pytest.fixture(scope="module")
def home(cluster):
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


@pytest.fixture(scope="module")
def chains(home, cluster):
    """In `hear` both tasks handle the signal, in `deaf` the second one does not; `stop` saves and
    ends."""
    stop = start(home, "stop", WIDE + ["--link", "5m"], PYTHON, RANK)
    wait_for(lambda: len(said(home, "stop")["ready"]) == 2, 30, "both tasks of stop")
    begin = time.monotonic()
    cluster.slurm("srun", f"--jobid={stop.job(1)}", "--overlap", "-N2", "-n2", "true")
    step = time.monotonic() - begin
    requests = cluster.rpcs()
    assert home.gpuq("stop", "--checkpoint", stop.job(1)).returncode == 0
    stop.ended(1)
    # The notices of the others, which begin now, would be counted too.
    return {"stop": stop, "requests": (requests, cluster.rpcs()), "seconds of a step": step,
            "hear": start(home, "hear", WIDE + LINK, PYTHON, RANK),
            "deaf": start(home, "deaf", [*WIDE, *LINK, "--env", "DEAF_RANK=1"], PYTHON, RANK)}


def said(person, name):
    """Records of the tasks: {word: {task: [(time, node), ...]}}."""
    words = collections.defaultdict(lambda: collections.defaultdict(list))
    path = person.home / name / "said"
    for line in path.read_text().splitlines() if path.exists() else []:
        word, task, time, node = line.split()
        words[word][task].append((float(time), node))
    return words


def assert_told(home, chains, name, listeners):
    """Checks that each listener was notified once, on its own node, within two seconds and the time that Slurm needs for
    a step, and that all tasks exited normally."""
    chain = chains[name]
    noticed_at = time_of(chain.event(1, "noticed"))
    words = said(home, name)
    assert {task: [node for _, node in told] for task, told in words["told"].items()} == \
        {task: [NODES[task]] for task in listeners}
    delays = {task: round(told[0][0] - noticed_at, 3) for task, told in words["told"].items()}
    print(f"{name}: told after {delays}")
    assert all(delay < 2 + 2 * chains["seconds of a step"] for delay in delays.values())
    assert set(words["left"]) == {"0", "1"}, "nobody was killed by the notice"
    assert not chain.events(1, "notice_failed")


@pytest.mark.parametrize("name, listeners", [("hear", {"0", "1"}), ("deaf", {"0"})])
def test_the_tasks_on_both_nodes_are_told_and_go_on_in_the_next_link(name, listeners, chains, home):
    chain = chains[name]
    ended = chain.ended(2, 90)
    assert (ended["status"], ended.get("continues", False)) == (0, False)
    assert chain.event(1, "noticed")["detail"] == "limit"
    assert chain.ended(1)["continues"] is True
    assert_told(home, chains, name, listeners)
    again = said(home, name)["ready"]
    assert {task: [node for _, node in twice] for task, twice in again.items()} == \
        {task: [node, node] for task, node in NODES.items()}
    wait_for(lambda: chain.links() == [1, 2], 20, "no link but these two")


def test_a_stop_that_lets_it_save_reaches_both_nodes(chains, home):
    chain = chains["stop"]
    ended = chain.ended(1)
    assert (ended["status"], ended["cause"]) == (123, "stopped")
    assert_told(home, chains, "stop", {"0", "1"})
    before, after = chains["requests"]
    made = "REQUEST_JOB_STEP_CREATE"
    assert after[made] - before[made] == 1, "one step for the notice"


def test_nothing_is_left(chains, home, cluster):
    for name in ("hear", "deaf"):
        chains[name].ended(2, 90)
    wait_for(lambda: not cluster.squeue() and not processes_of(home), 30, "an end of all")
