# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm allocates what the policy checks: no request gets more CPUs or memory than come with its GPUs,
on nodes whose cores have two threads.

Several users take part, so these tests require root.
"""
import os
import random
import re
import time

import pytest

from clusters import run, short_folder, wait_for
from faults import SOAK
from policies import cancel_all, running_policy, sbatch

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

CPUS, MEMORY = 4, 4096  # per GPU; MiB
POLICY = f"""\
version: 1
pools:
  all: {{nodes: "c[1-4]", gpus: "k80:4", threads_per_core: 2}}
queues:
  long:
    time: 48h
    default_time: 1h
    pools: all
    per_gpu: {{cpus: {CPUS}, memory: {MEMORY // 1024}G}}
"""

# Each would get more than its share, or might on partly used nodes.
REFUSED = """\
-g1 -c 4 --threads-per-core=1
-g1 --threads-per-core=1
-g1 -c 4 --hint=nomultithread
-g1 -c 4 --hint=compute_bound
-g1 -c 4 --hint=memory_bound
-g1 -B *:*:1 -c 4
-g1 -n 4 --ntasks-per-core=1
-g1 --ntasks-per-node=4 --ntasks-per-core=1
-g1 --ntasks-per-gpu=4 --threads-per-core=1
-g1 --cpus-per-gpu=4 --threads-per-core=1
-g1 --mincpus=4 --threads-per-core=1
-g1 -n 3 -c 1 --mem-per-cpu=1300M
-g1 -c 1 --mem-per-cpu=4G
-g1 -c 4 --threads-per-core=1 --mem-per-cpu=1G
--gpus=2 -n 2 -c 3 --threads-per-core=1
--gpus=4 -N 4 -n 4 -c 1 --mem-per-cpu=4G
--gpus=4 -N 1-4 --mem=16G
--gpus=4 --mem=16G
--gpus=4 --mincpus=16
--gpus=4 --gpus-per-node=1 --mem=16G
--gpus-per-task=1 -n 4 --mem=16G --ntasks-per-node=1
--gpus=4 -N 2
--gpus=4 -N 2 -n 7
--gpus=4 -N 2 --cpus-per-gpu=4
--gpus=4 -n 2 --ntasks-per-node=1
--gpus=5
--gpus=6 -N 1-3
--gpus-per-task=1 -n 5
--gpus-per-task=1 -n 4 -N 2
--gpus=2 -N 1 -n 2 -c 4 --ntasks-per-node=3
-g1 --ntasks-per-core=1
-g1 --cpus-per-gpu=4 --ntasks-per-core=1
-g1 --mincpus=4 -c 1 --ntasks-per-core=1
--gpus=2 -N 2 --ntasks-per-node=1"""

# Slurm gives other GPUs than the policy would count, or more CPUs.
COUNTED_OTHERWISE = """\
--gres=gpu:3,gpu:1 -c 16
--gres=gpu:k80:3,gpu:k80:1 --mem=16G
--gpus-per-node=3 --gres=gpu:1 -n 16
--gpus-per-socket=1 --sockets-per-node=1 --gpus=4 -n 16
--gpus=3 --gres=gpu:1 -n 2 -O
--gres=gpu:1 -N 2 --gres-flags=enforce-binding
--gres=gpu:1 -N 1 -c 4 --gres-flags=enforce-binding"""

# Typical requests; Slurm's allocations for these are checked.
ACCEPTED = """\
-g1
-g1 -c 4
-g1 -c 3
-g1 -n 4
-g1 -c 2 --threads-per-core=1
-g1 -c 2 --hint=nomultithread
-g1 -n 2 --ntasks-per-core=1 -c 1
-g1 -c 4 --hint=multithread
-g1 -c 4 --ntasks-per-core=1
--gpus=8 -N 2 --ntasks-per-node=4
-g1 --mem=4G
-g1 -c 4 --mem-per-cpu=1G
-g1 --mem-per-gpu=4G -N 1-2
-g1 -N 1-4 --mem=4G
-g1 -n 4 --ntasks-per-node=1
--gpus=2 -n 2 -c 3
--gpus=2 --mem-per-gpu=4G
--gpus=4 -N 1 --mem=16G
--gpus=4 -N 2 -c 4
--gpus=4 -N 2 --cpus-per-gpu=2
--gpus=4 -N 2 --gpus-per-node=2
--gpus=4 -N 4
--gpus=8 -N 2
--ntasks-per-gpu=1 -n 5
--gpus-per-socket=1 --sockets-per-node=1 -N 2
--gpus=4 -N 4 -n 4 -c 4 --mem=4G
--gpus-per-task=1 -n 2 -N 2 --mem=4G
--gpus=1 --mem=4G"""


def words_of(line):
    return line.replace("-g1", "--gres=gpu:1").split()


@pytest.fixture(scope="module")
def ruled():
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy) as cluster:
            yield cluster
            cancel_all(cluster)


def mebibytes(text):
    number, unit = re.fullmatch(r"([0-9.]+)([MGT]?)", text).groups()
    return float(number) * {"": 1, "M": 1, "G": 1024, "T": 1024 ** 2}[unit]


def allocated(cluster, job):
    """GPUs, CPUs and memory in MiB of a running job."""
    wait_for(lambda: cluster.job(job)["JobState"] == "RUNNING", 30,
             lambda: f"job {job} runs; it is {cluster.job(job)}")
    facts = cluster.job(job)
    tres = dict(item.split("=", 1) for item in (facts.get("AllocTRES") or facts["TRES"]).split(","))
    return int(tres.get("gres/gpu", 0)), int(tres["cpu"]), mebibytes(tres["mem"])


@pytest.mark.parametrize("line", REFUSED.splitlines())
def test_no_way_of_asking_gets_more_than_the_share(ruled, people, line):
    job, said = sbatch(ruled, people["ada"], "-t", "60", "-p", "long", *words_of(line))
    assert job is None, allocated(ruled, job)
    assert "gives 4 CPUs and 4 GiB with each GPU" in said


@pytest.mark.parametrize("line", COUNTED_OTHERWISE.splitlines())
def test_gpus_are_counted_as_slurm_counts_them(ruled, people, line):
    job, said = sbatch(ruled, people["ada"], "-t", "60", "-p", "long", *words_of(line))
    assert job is None, allocated(ruled, job)
    reason = "leave it out" if "enforce-binding" in line else "Slurm may count these GPUs differently from the policy"
    assert reason in said or "mutually exclusive" in said  # sbatch of 26.05


@pytest.mark.parametrize("line", ACCEPTED.splitlines())
def test_what_is_accepted_gets_its_share_at_most(ruled, people, line):
    job, said = sbatch(ruled, people["ada"], "-t", "60", "-p", "long", *words_of(line))
    assert job, said
    gpus, cpus, memory = allocated(ruled, job)
    assert cpus <= CPUS * gpus and memory <= MEMORY * gpus
    ruled.slurm("scancel", job)
    wait_for(lambda: job not in [one for one, _, _ in ruled.squeue()], 30, lambda: f"job {job} is gone")


# Options for random requests: the probability of each line, and its choices.
GPUS = """--gres=gpu:1 --gres=gpu:k80:2 --gres=gpu:3 --gpus=1 --gpus=2 --gpus=k80:3 --gpus=5 --gpus-per-node=2
--gpus-per-task=1 --gpus-per-task=2 --gpus-per-socket=1 --ntasks-per-gpu=1 --ntasks-per-gpu=2""".split()
OTHERS = """\
15 --gpus=2 --gpus=4 --gpus-per-node=2 --gres=gpu:1 --ntasks-per-gpu=1 --gpus-per-task=1
35 -N1 -N2 -N3 -N1-2 -N1-4 -N2-4
50 -n1 -n2 -n3 -n4 -n5 -n6 -n8
30 -c1 -c2 -c3 -c4
10 --cpus-per-gpu=0 --cpus-per-gpu=1 --cpus-per-gpu=3 --cpus-per-gpu=4
35 --mem=1G --mem=4G --mem=0 --mem-per-cpu=1G --mem-per-cpu=2G --mem-per-cpu=0 --mem-per-gpu=4G --mem-per-gpu=0
20 --threads-per-core=1 --threads-per-core=2 --hint=nomultithread --hint=compute_bound --hint=multithread
10 --ntasks-per-core=1 --ntasks-per-core=2
10 --ntasks-per-node=1 --ntasks-per-node=2 --ntasks-per-node=3
10 --ntasks-per-socket=1 --ntasks-per-socket=2
10 --sockets-per-node=1 --sockets-per-node=2
10 -B1:1:1 -B1:2:2 -B2:4:1 -B*:2:2 -B*:*:2
10 --mincpus=1 --mincpus=4 --mincpus=6
10 --spread-job --use-min-nodes -O
10 --exclusive --exclusive=user -s --contiguous
10 -wc1 -wc1,c2 -wc[1-4] -xc1
10 -mcyclic -mplane=2 -mblock:block -mcyclic:cyclic,Pack
5 -S1 --thread-spec=1 --gres-flags=disable-binding --gres-flags=enforce-binding"""


def random_request(dice):
    words = [dice.choice(GPUS)]
    for line in OTHERS.splitlines():
        percent, *choices = line.split()
        if dice.randrange(100) < int(percent):
            words.append(dice.choice(choices))
    return words


def test_no_random_request_gets_more_than_the_share(ruled, people):
    seed = time.time_ns() if SOAK else 7
    dice = random.Random(seed)
    started, held = 0, []
    for _ in range(600 if SOAK else 60):
        words = random_request(dice)
        job, _ = sbatch(ruled, people["ada"], "-t", "60", "-p", "long", *words)
        if job is None:
            continue
        held.append(job)
        end = time.monotonic() + 2
        while ruled.job(job)["JobState"] == "PENDING" and time.monotonic() < end:
            time.sleep(0.05)
        facts = ruled.job(job)
        assert not facts["Reason"].startswith("JobHeld"), (seed, words, facts)
        if facts["JobState"] == "PENDING":
            ruled.slurm("scancel", job)  # not possible beside the others
            continue
        started += 1
        gpus, cpus, memory = allocated(ruled, job)
        all_of_nodes = gpus == 4 * int(ruled.job(job)["NumNodes"])
        assert all_of_nodes or (cpus <= CPUS * gpus and memory <= MEMORY * gpus), (seed, words, gpus, cpus, memory)
        if len(held) > dice.choice((0, 0, 1, 3)):  # on nodes that are free, and on partly used ones
            ruled.slurm("scancel", *held)
            held.clear()
    cancel_all(ruled)
    assert started > 5


@pytest.mark.parametrize("options, change, refused", [
    ("-g1 -c 4", "ReqThreads=1", True),
    ("-g1 -n 2 -c 1 --threads-per-core=1", "NumTasks=4", True),
    ("-g1 -c 2 --threads-per-core=1", "NumCPUs=4", True),
    ("--gpus=2 --mem=8G -N 1", "NumNodes=1-2", True),
    ("-g1 -c 4", "NumCPUs=2", False),
    ("-g1 -c 4", "TimeLimit=30", False),
    ("-g1 -c 2 --threads-per-core=1", "TimeLimit=30", False),
])
def test_no_change_of_a_waiting_job_gets_more_either(ruled, people, options, change, refused):
    ada = people["ada"]
    job, said = sbatch(ruled, ada, "-t", "60", "-p", "long", "--begin=now+1hour", *words_of(options))
    assert job, said
    answer = run(["scontrol", "update", f"jobid={job}", change], env=ruled.env, user=ada)
    assert (answer.returncode != 0) == refused, answer.stderr
    ruled.slurm("scancel", job)
