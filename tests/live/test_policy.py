# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster under a policy: what Slurm itself holds, against plain sbatch as against gpuq.

Several users take part, so these tests are root's.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import time

import pytest

from chains import PYTHON, TRAINER, UNAWARE, Chain
from clusters import Person, run, running_cluster, short_folder, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
pools:
  calib: {nodes: c1, gpus: "k80:4"}
  lab: {nodes: l1, gpus: "k80:4", owner: lab, lend: {grace: 4s}}
  main: {nodes: m1, gpus: "v100:4"}
queues:
  lab:
    time: 48h
    pools: lab
    allow: {accounts: lab, ask: Lena}
  calibration:
    time: 2h
    default_time: 10m
    pools: calib
    limits: {user: {soft_gpus: 2, queued: 8}, job: {gpus: 4}}
  guest:
    time: 10m
    pools: lab
    limits: {user: {gpus: 4}}
    allow: {users: [gpuq-ada, gpuq-ben]}
    chain: {links: 10}
  long:
    time: 48h
    pools: main
    limits: {user: {gpus: 2}}
fair_share: {half_life: 1h}
"""


def account(name):
    for _ in range(2):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=False,
                           capture_output=True)
    return pwd.getpwnam(name)


@pytest.fixture(scope="module")
def people():
    return {name: account(f"gpuq-{name}") for name in ("ada", "ben", "lena")}


@pytest.fixture(scope="module")
def ruled(people, request):
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(request.param if hasattr(request, "param") else POLICY)
        with running_policy(policy) as cluster:
            cluster.slurm("sacctmgr", "-i", "add", "user", "gpuq-lena", "account=lab")
            cluster.slurm("sacctmgr", "-i", "modify", "user", "gpuq-lena", "set", "defaultaccount=lab")
            yield cluster


def running_policy(policy, lines=("KillWait=5", "SchedulerParameters=batch_sched_delay=0,bf_interval=2,"
                                  "bf_continue,bf_one_resv_per_job,preempt_youngest_first,default_queue_depth=1000")):
    return running_cluster(gpus=None, nodes=None, model=None, lines=lines, options=("--policy", policy))


@pytest.fixture(autouse=True)
def clean(request):
    yield
    if "ruled" in request.fixturenames:
        cluster = request.getfixturevalue("ruled")
        jobs = [job for job, _, _ in cluster.squeue()]
        if jobs:
            cluster.slurm("scancel", *jobs, check=False)
        cluster.wait_until_idle()


def sbatch(cluster, user, *words, sleep=600):
    """(job id or None, what sbatch said)."""
    done = run(["sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", f"sleep {sleep}"], env=cluster.env,
               user=user)
    return (done.stdout.strip() or None), done.stderr


def state(cluster, job):
    return cluster.job(job)["JobState"]


def until(cluster, job, wanted, seconds=20):
    return wait_for(lambda: state(cluster, job) == wanted, seconds,
                    lambda: f"job {job} {wanted}; it is {cluster.job(job)}")


def test_a_time_leads_to_a_queue_or_nowhere(ruled, people):
    ada = people["ada"]
    job, _ = sbatch(ruled, ada, "-t", "2:00:00", "--gres=gpu:1")
    assert ruled.job(job)["QOS"] == "gpuq_calibration"
    job, _ = sbatch(ruled, ada, "-t", "3:00:00", "--gpus=1")
    assert ruled.job(job)["Partition"] == "long"
    job, said = sbatch(ruled, ada, "-t", "49:00:00", "--gres=gpu:1")
    assert job is None and "queue long takes at most 2 days a job (policy.yaml:" in said
    job, said = sbatch(ruled, ada, "--gres=gpu:1")
    assert ruled.job(job)["TimeLimit"] == "00:10:00"
    assert "queue calibration ends the job after 10 min" in said


def test_no_spelling_walks_around_a_limit(ruled, people):
    for words in (["--gres=gpu:5"], ["--gpus=5"], ["--gpus-per-task=1", "-n", "5"], ["--gres=gpu:k80:5"],
                  ["--gpus-per-node=5"]):
        job, said = sbatch(ruled, people["ada"], "-p", "calibration", "-t", "1:00:00", *words)
        assert job is None and "gives a job at most 4 GPUs" in said, words
    # An inner partition is a door to its queue, no way around it; nor is a QOS.
    job, _ = sbatch(ruled, people["ada"], "-p", "calibration-more", "-t", "1:00:00", "--gres=gpu:1")
    assert ruled.job(job)["Partition"] in ("calibration", "calibration,calibration-more")
    job, said = sbatch(ruled, people["ada"], "-p", "calibration-more", "-t", "3:00:00", "--gres=gpu:1")
    assert job is None and "at most 2 h" in said
    job, said = sbatch(ruled, people["ada"], "-q", "normal", "-p", "long", "-t", "1:00:00", "--gres=gpu:1")
    assert job is None and "leave --qos out" in said


def test_a_hard_limit_binds_whatever_is_free(ruled, people):
    jobs = [sbatch(ruled, people["ada"], "-p", "long", "--gres=gpu:1")[0] for _ in range(3)]
    until(ruled, jobs[0], "RUNNING")
    until(ruled, jobs[1], "RUNNING")
    time.sleep(3)  # two rounds of backfill
    assert state(ruled, jobs[2]) == "PENDING" and ruled.job(jobs[2])["Reason"] == "QOSMaxGRESPerUser"


def test_a_soft_limit_binds_only_while_others_wait(ruled, people):
    ada, ben = people["ada"], people["ben"]
    mine = [sbatch(ruled, ada, "-t", "60", "--gres=gpu:1")[0] for _ in range(6)]
    for job in mine[:4]:
        until(ruled, job, "RUNNING")  # nobody else wants them
    assert [state(ruled, job) for job in mine[4:]] == ["PENDING"] * 2
    other, _ = sbatch(ruled, ben, "-t", "60", "--gres=gpu:1")
    time.sleep(3)
    assert state(ruled, other) == "PENDING"
    ruled.slurm("scancel", mine[3])  # one of those beyond two: the next is ben's, who came last
    until(ruled, other, "RUNNING")
    assert [state(ruled, job) for job in mine[4:]] == ["PENDING"] * 2


def test_gpuq_meets_the_same_rules(ruled, people):
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        ada = Person(ruled, home, people["ada"])
        runs = []
        for _ in range(3):
            done = ada.gpuq("run", "--detach", "-t", "30m", "--", "sleep", "600")
            assert done.returncode == 0, done.stderr
            runs.append(done)
        wait_for(lambda: [one[1] for one in ruled.squeue()].count("RUNNING") == 3, 20, ruled.squeue)
        now = ada.gpuq("run", "-t", "30m", "--", "echo", "at once")
        assert now.stdout == "at once\n" and now.returncode == 0, now.stderr
        refused = ada.gpuq("run", "--detach", "-t", "30m", "-p", "calibration", "-g", "5", "--", "true")
        assert refused.returncode == 121, refused.stderr


def test_who_is_not_on_the_list_is_told_whom_to_ask(ruled, people):
    job, said = sbatch(ruled, people["ben"], "-p", "lab", "-t", "1:00:00", "--gres=gpu:1")
    assert job is None and "queue lab is for accounts lab only; ask Lena" in said
    job, said = sbatch(ruled, people["ben"], "-A", "lab", "-p", "lab", "-t", "1:00:00", "--gres=gpu:1")
    assert job is None, "an account one is not in"
    job, _ = sbatch(ruled, people["lena"], "-p", "lab", "-t", "1:00:00", "--gres=gpu:1")
    until(ruled, job, "RUNNING")


def test_no_limit_is_raised_after_submission(ruled, people):
    ada = people["ada"]
    job, _ = sbatch(ruled, ada, "-t", "60", "--gres=gpu:1", "--begin=now+1hour")

    def change(words, user=ada):
        return run(["scontrol", "update", f"jobid={job}", words], env=ruled.env, user=user)

    assert change("timelimit=10:00:00").returncode != 0
    assert change("timelimit=+300").returncode != 0
    assert change("partition=lab").returncode != 0
    assert change("qos=gpuq_long").returncode != 0
    assert ruled.job(job)["TimeLimit"] == "01:00:00"
    assert change("timelimit=30").returncode == 0
    assert change("partition=long").returncode == 0
    assert ruled.job(job)["QOS"] == "gpuq_long"
    assert change("timelimit=10:00:00").returncode == 0, "what its new queue takes"
    assert change("timelimit=100:00:00", user=None).returncode == 0, "root may"


def test_a_lent_node_goes_back_and_its_guest_goes_on_elsewhere(ruled, people):
    """The guest of gpuq saves, leaves, and its next link runs when there is room again."""
    ada = people["ada"]
    with short_folder() as home:
        os.chown(home, ada.pw_uid, ada.pw_gid)
        person = Person(ruled, home, ada)
        trainer = home / "trainer.py"  # where ada may read it
        shutil.copy(TRAINER, trainer)
        done = person.gpuq("run", "--detach", "-J", "guest", "-p", "guest", "-t", "30m", "-g", "4",
                           *UNAWARE,
                           PYTHON, trainer, "--steps", "900", "--every", "5", "--folder", "out")
        assert done.returncode == 0, done.stderr
        chain = Chain(person, "guest")
        chain.event(1, "checkpoint", 30)
        begin = time.monotonic()
        owner, _ = sbatch(ruled, people["lena"], "-t", "10:00:00", "--gres=gpu:4", sleep=5)
        until(ruled, owner, "RUNNING", 60)
        # Grace, Slurm's look each 30 s, KillWait and a little: `gpuq policy check` says this bound.
        assert time.monotonic() - begin < 4 + 30 + 5 + 5
        ended = chain.ended(1)
        assert ended["continues"], ended
        saved = wait_for(lambda: chain.events(2, "resumed"), 90, lambda: ruled.squeue())[0]
        assert saved["detail"], saved


def test_all_of_it_holds_after_a_restart(ruled, people):
    def still():
        for words, part in ((["-t", "49:00:00"], "at most 2 days"), (["-p", "lab"], "ask Lena")):
            job, said = sbatch(ruled, people["ada"], *words, "--gres=gpu:1")
            assert job is None and part in said
        job, _ = sbatch(ruled, people["ada"], "-t", "60", "--gres=gpu:1")
        assert ruled.job(job)["QOS"] == "gpuq_calibration"
        until(ruled, job, "RUNNING")
        ruled.slurm("scancel", job)

    ruled.scontrol("reconfigure")
    still()
    ruled.signal("slurmctld")
    ruled.repair()
    still()
    tiers = dict(re.findall(r"PartitionName=(\S+).*?PriorityTier=(\d+)", ruled.scontrol("show", "partition"), re.S))
    assert tiers == {"lab": "60", "calibration": "40", "calibration-more": "20", "guest": "40", "long": "40"}


def test_a_second_up_keeps_the_policy_and_another_one_is_refused(ruled, people, tmp_path):
    assert "is up already" in ruled.cluster("up").stderr
    other = tmp_path / "other.yaml"
    other.write_text(POLICY.replace("time: 2h", "time: 1h"))
    done = ruled.cluster("up", "--policy", str(other), check=False)
    assert done.returncode == 2 and "gpuq cluster down" in done.stderr


@pytest.mark.parametrize("name", ["minimal", "workstation", "criann", "teaching"])
def test_the_shipped_policies_start(name, people):
    """Each on nodes as it says; its first queue takes a job, and its limits are there."""
    shipped = pathlib.Path(__file__).resolve().parents[2] / "policies" / f"{name}.yaml"
    alike = ("--gpus", "4", "--nodes", "1") if name in ("minimal", "workstation") else ()
    with running_cluster(gpus=None, nodes=None, model=None, lines=(),
                         options=("--policy", str(shipped), *alike)) as cluster:
        job, said = sbatch(cluster, people["ada"], "-t", "20", "--gres=gpu:1", sleep=60)
        assert job, said
        until(cluster, job, "RUNNING", 30)
        assert cluster.job(job)["QOS"].startswith("gpuq_")


def test_gpuq_asks_for_the_queues_and_the_policy_chooses(ruled, people):
    """lab and guest hold ten minutes too: who may not use them is given the first that takes it."""
    with short_folder() as home:
        os.chown(home, people["ben"].pw_uid, people["ben"].pw_gid)
        ben = Person(ruled, home, people["ben"])
        for time_limit, queue in (("2h", "calibration"), ("10h", "long")):
            done = ben.gpuq("run", "-t", time_limit, "--", "sh", "-c", "echo $SLURM_JOB_PARTITION")
            assert done.stdout.split(",")[0].strip() == queue, done.stderr
        free = json.loads(ben.gpuq("free", "--json").stdout)
        names = {row["name"] for row in free["queues"]}
        assert names == {"lab", "calibration", "guest", "long"}, free
