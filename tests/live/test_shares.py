# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of a GPU (gres/shard): two runs on one GPU, the third waits; what free, why, show and usage report."""
import contextlib
import json
import re

from clusters import wait_for
from runs import records

CLUSTER = dict(nodes=1, gpus=1, model=None, options=("--shards", 2), lines=("KillWait=5",))


@contextlib.contextmanager
def held_shares(person, count):
    """Detached runs, each of which requests a share. Yields their job IDs; stops them at the end."""
    jobs = []
    try:
        for _ in range(count):
            known = len(records(person))
            done = person.gpuq("run", "--detach", "-t", "10", "-g", "shard:1", "--", "sleep", "600")
            assert done.returncode == 0, done.stderr
            assert "1 of 2 shards of a GPU for 10 min" in done.stderr
            jobs.append(wait_for(lambda: records(person)[known].job, 20, "a job"))
        yield [str(job) for job in jobs]
    finally:
        for job in jobs:
            person.gpuq("stop", str(job))


def shown(person, job):
    return json.loads(person.gpuq("show", job, "--json").stdout)["run"]


def free(person):
    return json.loads(person.gpuq("free", "--json").stdout)["pools"][0]


def until(person, job, state):
    wait_for(lambda: shown(person, job)["state"] == state, 30, lambda: f"{state}: {shown(person, job)}")


def test_two_runs_share_a_gpu_and_a_third_waits(cluster, person):
    whole = free(person)
    assert whole["free"] == 1
    assert whole["shares"] == {"kind": "shard", "per_gpu": 2, "total": 2, "free": 2}
    with held_shares(person, 2) as (one, other):
        until(person, one, "running")
        until(person, other, "running")
        for job in (one, other):
            detail = cluster.scontrol("show", "job", "-d", job)
            assert "GRES=shard:1(" in detail  # (IDX:0), or from 24.11 on (1/2)
        assert shown(person, one)["gpu_share"] == {"kind": "shard", "parts": 1, "per_gpu": 2}
        # Half of a GPU's cores and memory: by Slurm's own defaults, a job would get those of no GPU.
        queue = cluster.scontrol("show", "partition", "calibration")
        cpus, memory = map(int, re.search(r"DefCpuPerGPU=(\d+),DefMemPerGPU=(\d+)", queue).groups())
        assert int(cluster.job(one)["NumCPUs"]) == cpus // 2 > 1
        assert cluster.scontrol("show", "job", "-d", one).count(f" Mem={memory // 2} ") == 1

        shared = wait_for(lambda: free(person)["shares"]["free"] == 0 and free(person), 20, "no free share")
        assert (shared["free"], shared["in_use"], shared["total"]) == (0, 1, 1)
        assert "no: 1 in use" in person.gpuq("free").stdout
        released = json.loads(person.gpuq("free", "--next", "--json").stdout)["next"]
        assert [(each["share"], each["gpus"]) for each in released] == [({"kind": "shard", "parts": 1}, 0),
                                                                       ({"kind": "shard", "parts": 1}, 1)]
        refused = person.gpuq("run", "--max-wait", "0", "-g", "1", "--", "true")
        assert refused.returncode != 0  # the GPU is in use, though no job holds it as a whole

        with held_shares(person, 1) as (third,):
            wait_for(lambda: "no share of a GPU is free" in person.gpuq("why", third).stdout, 20,
                     lambda: person.gpuq("why", third).stdout)
            assert shown(person, third)["state"] == "waiting"
            why = json.loads(person.gpuq("why", third, "--json").stdout)["run"]
            assert why["expected_start"] is not None
            person.gpuq("stop", one)
            until(person, third, "running")
    cluster.wait_until_idle()


def test_what_no_gpu_has_is_refused_before_slurm_is_asked(cluster, person):
    before = cluster.rpcs().get("REQUEST_SUBMIT_BATCH_JOB", 0)
    for gpus, reason in (("shard:3", "a GPU in queue calibration has 2 shards"),
                         ("mps:50", "no GPU in queue calibration has shares of this kind (mps)"),
                         ("mig:1g.5gb", "a node of queue calibration has 1 generic")):
        done = person.gpuq("run", "--detach", "-g", gpus, "--", "true")
        assert done.returncode == 121, done.stderr
        assert reason in done.stderr
    assert not person.run_dirs()
    assert cluster.rpcs().get("REQUEST_SUBMIT_BATCH_JOB", 0) == before


def test_usage_counts_the_fraction_of_a_gpu(cluster, person):
    def gpu_seconds():
        return json.loads(person.gpuq("usage", "--from", "1h", "--json").stdout)["total"]["gpu_seconds"]
    before = gpu_seconds()
    done = person.gpuq("run", "-g", "shard:1", "--", "sleep", "4")
    assert done.returncode == 0, done.stderr
    job = str(records(person)[-1].job)
    elapsed = int(cluster.accounted(job, fields=("JobIDRaw", "ElapsedRaw"))["ElapsedRaw"])
    assert elapsed >= 4
    # Half a GPU: whole GPUs would count all seconds, and no GPU none.
    wait_for(lambda: gpu_seconds() - before == elapsed // 2, 10, lambda: f"half of {elapsed} s: {before}, then {gpu_seconds()}")
    again = person.gpuq("again", job, "--dry-run")
    assert "1 of 2 shards of a GPU" in again.stderr
    assert "#SBATCH --gres=shard:1\n" in again.stdout
