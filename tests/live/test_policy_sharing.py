# SPDX-License-Identifier: GPL-2.0-or-later
"""Fair share under a policy: the past orders who waits, accounts have their parts, use is forgotten.

Slurm counts use each minute (PriorityCalcPeriod has no less) and when slurmctld starts: a restart
stands for the minute here, and shows that nothing of it is lost.
"""
import collections
import math
import os
import pathlib
import signal
import time

import pytest

from clusters import is_running, short_folder, wait_for
from policies import cancel_all, join, running_policy, sbatch, state, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

HALF_LIFE = 60
POLICY = f"""\
version: 1
gpus:
  k80: {{weight: 100}}
pools:
  all: {{nodes: n1, gpus: "k80:3"}}
queues:
  batch: {{time: 48h, pools: all}}
fair_share:
  half_life: {HALF_LIFE}s
  shares: {{biology: 1, physics: 20}}
"""
BURN = 8

Use = collections.namedtuple("Use", "charged rank")


@pytest.fixture(scope="module")
def ruled(people):
    """ada and ben are biologists, lena is the physicist."""
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy) as cluster:
            for name, account in (("ada", "biology"), ("ben", "biology"), ("lena", "physics")):
                join(cluster, people[name], account)
            yield cluster


@pytest.fixture(autouse=True)
def clean(ruled):
    yield
    cancel_all(ruled)


def uses(cluster):
    """user -> Use in their own accounts."""
    shown = cluster.slurm("sshare", "-a", "-n", "-P", "-o", "account,user,rawusage,fairshare")
    rows = [line.strip().split("|") for line in shown.splitlines()]
    return {user.removeprefix("gpuq-"): Use(int(charged), float(rank))
            for account, user, charged, rank in rows if account.strip() in ("biology", "physics") and user}


def count(cluster):
    """What has been used since the last time is counted; when that was, in seconds since boot."""
    pid = cluster.signal("slurmctld", signal.SIGTERM)
    wait_for(lambda: not is_running(pid), 20, "the end of slurmctld")
    cluster.repair()
    stat = pathlib.Path(f"/proc/{cluster.pid('slurmctld')}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")  # its start


def use_up(cluster, users, **gpus):
    """Each user so many GPUs for the same time."""
    jobs = [sbatch(cluster, users[name], f"--gres=gpu:{number}")[0] for name, number in gpus.items()]
    for job in jobs:
        until(cluster, job, "RUNNING")
    time.sleep(BURN)
    cluster.slurm("scancel", *jobs)
    cluster.wait_until_idle()


def test_who_used_less_goes_first_and_an_account_has_its_part(ruled, people):
    """Of biology's one share ada used some and ben none; lena used most, of physics' twenty."""
    use_up(ruled, people, ada=1, lena=2)
    first = count(ruled)
    before = uses(ruled)
    assert before["lena"].charged > 1.5 * before["ada"].charged > 50 * BURN, before  # k80 weighs 100
    assert before["ben"].charged == 0, before
    assert before["lena"].rank > before["ben"].rank > before["ada"].rank, before

    full = [sbatch(ruled, people["ben"], "-A", "default", "--gres=gpu:1")[0] for _ in range(3)]
    for job in full:
        until(ruled, job, "RUNNING")
    # In the order in which they would start if nobody looked at the past.
    waiting = {name: sbatch(ruled, people[name], "--gres=gpu:1")[0] for name in ("ada", "ben", "lena")}
    order = []
    for job in full:
        ruled.slurm("scancel", job)
        started = lambda: [name for name, one in waiting.items()
                           if name not in order and state(ruled, one) == "RUNNING"]
        order += wait_for(started, 20, "the next one")
    assert order == ["lena", "ben", "ada"]
    ruled.slurm("scancel", *waiting.values())
    ruled.wait_until_idle()  # a slurmstepd that finds no slurmctld asks again for minutes

    # Nothing was added to ada's since.
    passed = count(ruled) - first
    after = uses(ruled)
    forgotten = HALF_LIFE * math.log2(before["ada"].charged / after["ada"].charged)
    assert abs(forgotten - passed) < 3, (before, after, forgotten, passed)
