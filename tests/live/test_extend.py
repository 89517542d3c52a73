# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq extend by the rule of a policy: an ordinary user's running run gets more time from the policy's helper, through sudo."""
import contextlib
import os
import pathlib

import pytest

from clusters import Person, account, run, short_folder, wait_for
from policies import SCHEDULER, cancel_all, make_operator, running_policy, sbatch, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
helper: gpuq-ops
pools:
  a: {nodes: "c[1-2]", gpus: "k80:2"}
queues:
  batch: {time: 2h, default_time: 10m, pools: a, extend: {by: 1h, times: 2, if: nobody_waits}}
"""


@contextlib.contextmanager
def sudoers(binary):
    """What gpuq-extend(1) tells operators to write; the cluster's slurm.conf is not in /etc."""
    file = pathlib.Path(f"/etc/sudoers.d/gpuq-test-{os.getpid()}")
    file.write_text('Defaults:gpuq-ada env_keep += "SLURM_CONF"\n'
                    f"gpuq-ada ALL=(gpuq-ops) NOPASSWD: {binary} --quiet extend *, {binary} extend *\n")
    file.chmod(0o440)
    try:
        yield
    finally:
        file.unlink()


@pytest.fixture(scope="module")
def ruled(people):
    assert people
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy, lines=("KillWait=1", SCHEDULER)) as cluster:
            make_operator(cluster, account("gpuq-ops"))
            yield cluster


@pytest.fixture
def ada(ruled, people):
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        yield Person(ruled, home, people["ada"])
        cancel_all(ruled)


def begun(ada, name):
    """A run of ada's that runs. Returns its job."""
    done = ada.gpuq("run", "--detach", "-t", "30m", "-J", name, "--", "sleep", "600")
    assert done.returncode == 0, done.stderr
    job = wait_for(lambda: [job for job, state, _ in ada.cluster.squeue() if state == "RUNNING"], 20)[-1]
    return job


def limit(ada, job):
    return ada.cluster.job(job)["TimeLimit"]


def test_a_running_run_gets_more_time_within_the_rule(ruled, ada, people):
    with sudoers(ruled.binary):
        job = begun(ada, "train")
        before = ruled.rpcs()
        done = ada.gpuq("extend", "train", "1h")
        assert done.returncode == 0, done.stderr
        assert f"run {job} (train) has 1 h 30 min, was 30 min" in done.stderr
        assert limit(ada, job) == "01:30:00"
        used = {name: count - before.get(name, 0) for name, count in ruled.rpcs().items()}
        assert used.get("REQUEST_JOB_INFO", 0) <= 1 and used.get("REQUEST_RESERVATION_INFO", 0) <= 1, used
        too_long = ada.gpuq("extend", "train", "2h")
        assert too_long.returncode == 121 and "by at most 1 h at a time (applied.yaml:6)" in too_long.stderr, too_long.stderr
        again = run(["sudo", "-n", "-u", "gpuq-ops", ruled.binary, "extend", job, "1h"], env=ruled.env, user=people["ada"])
        assert again.returncode == 0 and f"job {job} has 2 h 30 min, was 1 h 30 min" in again.stderr, again.stderr
        beyond = ada.gpuq("extend", "train", "1h")
        assert beyond.returncode == 0, beyond.stderr
        third = ada.gpuq("extend", "train", "1h")
        assert third.returncode == 121 and "to at most 4 h" in third.stderr, third.stderr
        assert limit(ada, job) == "03:30:00"
        # Slurm lets the helper change nothing else, and nothing beyond the rule.
        for words in (["timelimit=5:00:00"], ["timelimit=4:00:00", "numcpus=64"]):
            assert run(["scontrol", "update", f"jobid={job}", *words], env=ruled.env, user=account("gpuq-ops")).returncode != 0, words
        assert run(["scontrol", "update", f"jobid={job}", "timelimit=4:00:00"], env=ruled.env, user=people["ada"]).returncode != 0


def test_not_while_another_user_waits(ruled, ada, people):
    with sudoers(ruled.binary):
        job = begun(ada, "held")
        sbatch(ruled, people["ada"], "-N2", "--gres=gpu:1", "-t", "10")
        own = ada.gpuq("extend", "held", "1m")
        assert own.returncode == 0, own.stderr
        waiting, said = sbatch(ruled, people["ben"], "-N2", "--gres=gpu:2", "-t", "10")
        assert waiting, said
        wait_for(lambda: ruled.job(waiting)["Reason"] in ("Resources", "Priority"), 20, lambda: ruled.job(waiting))
        done = ada.gpuq("extend", "held", "1m")
        assert done.returncode == 121 and f"job {waiting} does" in done.stderr, done.stderr
        assert limit(ada, job) == "00:31:00"


def test_the_jobs_of_others_are_not_extended(ruled, ada, people):
    with sudoers(ruled.binary):
        job, said = sbatch(ruled, people["ben"], "--gres=gpu:1", "-t", "10")
        assert job, said
        until(ruled, job, "RUNNING")
        done = run(["sudo", "-n", "-u", "gpuq-ops", ruled.binary, "extend", job, "10m"], env=ruled.env, user=people["ada"])
        assert done.returncode == 121 and "is not yours" in done.stderr, done.stderr
        assert limit(ada, job) == "00:10:00"


def test_without_the_line_in_sudoers_it_is_named(ada):
    job = begun(ada, "alone")
    done = ada.gpuq("extend", "alone", "1h")
    assert done.returncode == 121 and "sudoers lacks the line of gpuq-extend(1)" in done.stderr, done.stderr
    assert limit(ada, job) == "00:30:00"
