# SPDX-License-Identifier: GPL-2.0-or-later
"""Fair share under a policy: past use orders pending jobs, accounts have their shares, use decays.

Slurm counts use every minute (the minimum of PriorityCalcPeriod) and when slurmctld starts: here a
restart replaces the minute, and shows that nothing is lost.
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
    """ada and ben belong to account biology, lena to physics."""
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
    """user -> Use, in the users' own accounts."""
    shown = cluster.slurm("sshare", "-a", "-n", "-P", "-o", "account,user,rawusage,fairshare")
    rows = [line.strip().split("|") for line in shown.splitlines()]
    return {user.removeprefix("gpuq-"): Use(int(charged), float(rank))
            for account, user, charged, rank in rows if account.strip() in ("biology", "physics") and user}


def count(cluster):
    """Makes Slurm count the use since the last time. Returns the time of counting in seconds since
    boot."""
    pid = cluster.signal("slurmctld", signal.SIGTERM)
    wait_for(lambda: not is_running(pid), 20, "the end of slurmctld")
    cluster.repair()
    stat = pathlib.Path(f"/proc/{cluster.pid('slurmctld')}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")  # its start


def use_up(cluster, users, **gpus):
    """Lets each user use the given number of GPUs for the same time."""
    jobs = [sbatch(cluster, users[name], f"--gres=gpu:{number}")[0] for name, number in gpus.items()]
    for job in jobs:
        until(cluster, job, "RUNNING")
    time.sleep(BURN)
    cluster.slurm("scancel", *jobs)
    cluster.wait_until_idle()


def test_who_used_less_goes_first_and_an_account_has_its_part(ruled, people):
    """ada has used some of biology's one share, ben none; lena has used most, of physics' twenty
    shares."""
    use_up(ruled, people, ada=1, lena=2)
    first = count(ruled)
    before = uses(ruled)
    assert before["lena"].charged > 1.5 * before["ada"].charged > 50 * BURN, before  # k80 weighs 100
    assert before["ben"].charged == 0, before
    assert before["lena"].rank > before["ben"].rank > before["ada"].rank, before

    full = [sbatch(ruled, people["ben"], "-A", "default", "--gres=gpu:1")[0] for _ in range(3)]
    for job in full:
        until(ruled, job, "RUNNING")
    # In the order in which they would start without past use.
    waiting = {name: sbatch(ruled, people[name], "--gres=gpu:1")[0] for name in ("ada", "ben", "lena")}
    order = []
    for job in full:
        ruled.slurm("scancel", job)
        started = lambda: [name for name, one in waiting.items()
                           if name not in order and state(ruled, one) == "RUNNING"]
        order += wait_for(started, 20, "the next one")
    assert order == ["lena", "ben", "ada"]
    ruled.slurm("scancel", *waiting.values())
    ruled.wait_until_idle()  # a slurmstepd that does not reach slurmctld retries for minutes

    # ada's use has not grown since.
    passed = count(ruled) - first
    after = uses(ruled)
    forgotten = HALF_LIFE * math.log2(before["ada"].charged / after["ada"].charged)
    assert abs(forgotten - passed) < 3, (before, after, forgotten, passed)
