# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster under a policy: limits that Slurm itself enforces, for plain sbatch as for gpuq.

Several users take part, so these tests require root.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from chains import PYTHON, TRAINER, UNAWARE, Chain
from clusters import Person, run, running_cluster, short_folder, wait_for
from policies import cancel_all, join, running_policy, sbatch, state, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
pools:
  calib: {nodes: c1, gpus: "k80:4"}
  lab: {nodes: l1, gpus: "k80:4", owner: lab, lend: {grace: 15s}}
  main: {nodes: m1, gpus: "v100:4"}
  spare: {nodes: s1, gpus: "k80:4"}
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
    pools: [lab, spare]
    limits: {user: {gpus: 4}}
    allow: {users: [gpuq-ada, gpuq-ben]}
    chain: {links: 10}
  long:
    time: 48h
    pools: main
    per_gpu: {cpus: 2, memory: 1G}
    limits: {user: {gpus: 2}}
fair_share: {half_life: 1h}
"""
GRACE = 15


@pytest.fixture(scope="module")
def ruled(people):
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy) as cluster:
            join(cluster, people["lena"], "lab")
            yield cluster


@pytest.fixture(autouse=True)
def clean(request):
    yield
    if "ruled" in request.fixturenames:
        cancel_all(request.getfixturevalue("ruled"))


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
                  ["--gpus-per-node=5"], ["--ntasks-per-gpu=1", "-n", "5"]):
        job, said = sbatch(ruled, people["ada"], "-p", "calibration", "-t", "1:00:00", *words)
        assert job is None and "gives a job at most 4 GPUs" in said, words
    # An inner partition leads to its queue and is no way around it; nor is a QOS.
    job, _ = sbatch(ruled, people["ada"], "-p", "calibration-more", "-t", "1:00:00", "--gres=gpu:1")
    assert ruled.job(job)["Partition"] in ("calibration", "calibration,calibration-more")
    job, said = sbatch(ruled, people["ada"], "-p", "calibration-more", "-t", "3:00:00", "--gres=gpu:1")
    assert job is None and "at most 2 h" in said
    job, said = sbatch(ruled, people["ada"], "-q", "normal", "-p", "long", "-t", "1:00:00", "--gres=gpu:1")
    assert job is None and "leave --qos out" in said


def test_no_job_of_several_parts_walks_around_a_limit(ruled, people):
    for words in (("--gres=gpu:4", ":", "--gres=gpu:4"),
                  ("-p", "calibration", "--gres=gpu:1", ":", "-p", "long", "-n1")):
        job, said = sbatch(ruled, people["ada"], "-t", "1:00:00", *words)
        assert job is None and "a heterogeneous job" in said


def test_no_job_holds_what_other_peoples_gpus_need(ruled, people):
    ada = people["ada"]
    common = ("-p", "long", "-t", "1:00:00", "--begin=now+1hour")
    for word in ("-c3", "-n3", "--ntasks-per-node=3", "--cpus-per-gpu=3", "--mincpus=3", "--ntasks-per-gpu=3", "--mem=0", "--mem=2G",
                 "--mem-per-gpu=2G", "--mem-per-cpu=1G"):
        job, said = sbatch(ruled, ada, *common, "--gres=gpu:1", word)
        assert job is None and "gives 2 CPUs and 1 GiB with each GPU, and no more (policy.yaml:" in said, word
    for word in ("--exclusive", "--exclusive=user"):
        job, said = sbatch(ruled, ada, *common, "--gres=gpu:1", word)
        assert job is None and "a whole node only with all of its GPUs" in said, word
    job, said = sbatch(ruled, ada, *common, "-c2")
    assert job is None and "queue long is for jobs with GPUs" in said
    job, said = sbatch(ruled, ada, *common, "--gres=gpu:1", "-c2", "--mem=1G")
    assert job, said
    for change, refused in (("NumCPUs=8", True), ("MinCPUsNode=8", True), ("MinMemoryNode=4096", True),
                            ("MinMemoryNode=0", True), ("MinMemoryNode=512", False), ("NumCPUs=1", False)):
        answer = run(["scontrol", "update", f"jobid={job}", change], env=ruled.env, user=ada)
        assert (answer.returncode != 0) == refused, (change, answer.stderr)


def test_a_hard_limit_binds_whatever_is_free(ruled, people):
    jobs = [sbatch(ruled, people["ada"], "-p", "long", "--gres=gpu:1")[0] for _ in range(3)]
    until(ruled, jobs[0], "RUNNING")
    until(ruled, jobs[1], "RUNNING")
    wait_for(lambda: ruled.job(jobs[2])["Reason"] == "QOSMaxGRESPerUser", 20, lambda: ruled.job(jobs[2]))
    time.sleep(3)  # two rounds of backfill
    assert state(ruled, jobs[2]) == "PENDING"


def beyond_the_soft_limit(ruled, people):
    """ada's third GPU is hers at once because no job waits; the GPU freed later goes to ben, who came last."""
    ada, ben = people["ada"], people["ben"]
    mine = [sbatch(ruled, ada, "-t", "60", "--gres=gpu:1")[0] for _ in range(6)]
    for job in mine[:4]:
        until(ruled, job, "RUNNING")
    assert [state(ruled, job) for job in mine[4:]] == ["PENDING"] * 2
    other, _ = sbatch(ruled, ben, "-t", "60", "--gres=gpu:1")
    time.sleep(3)
    assert state(ruled, other) == "PENDING"
    ruled.slurm("scancel", mine[3])  # one of the jobs beyond the two
    until(ruled, other, "RUNNING")
    assert [state(ruled, job) for job in mine[4:]] == ["PENDING"] * 2
    ruled.slurm("scancel", *mine, other)
    wait_for(lambda: not any("k80" in text for text in ruled.used_gpus()), 60, ruled.used_gpus)


def test_a_soft_limit_binds_only_while_others_wait(ruled, people):
    beyond_the_soft_limit(ruled, people)


def test_one_job_may_be_beyond_the_soft_limit(ruled, people):
    """Three GPUs with a soft limit of two: the job runs because no other job waits, no matter how it is requested."""
    job, said = sbatch(ruled, people["ada"], "-t", "60", "--gres=gpu:3")
    assert job, said
    until(ruled, job, "RUNNING")
    ruled.slurm("scancel", job)
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        done = Person(ruled, home, people["ada"]).gpuq("run", "-t", "1h", "-g", "4", "--", "echo", "four")
        assert done.stdout == "four\n", done.stderr
    for words, part in ((["-p", "calibration", "--gres=gpu:5"], "queue calibration gives a job at most 4 GPUs"),
                        (["-p", "long", "--gres=gpu:3"], "queue long gives a job at most 2 GPUs")):
        job, said = sbatch(ruled, people["ada"], "-t", "60", *words)
        assert job is None and part in said, said


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
    # Without a memory request, a job may get more by default than its next queue allows.
    job, _ = sbatch(ruled, ada, "-t", "60", "--gres=gpu:1", "--mem=512M", "--begin=now+1hour")

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


def guest_of(person, name, options, *words):
    """Arguments for a run of 250 steps in links of ten minutes, on all of the laboratory's GPUs."""
    script = person.home / "trainer.py"  # where ada may read it
    shutil.copy(TRAINER, script)
    return ["-J", name, "-p", "guest", "-t", "30m", "-g", "4", *options, "--",
            PYTHON, script, "--steps", "250", "--every", "5", *words]


def taken_back(ruled, people, chain):
    """The owner takes the node of the chain's first link. Returns the time this took."""
    chain.event(1, "checkpoint", 30)
    assert ruled.job(chain.job(1))["NodeList"] == "l1"
    begin = time.monotonic()
    owner, said = sbatch(ruled, people["lena"], "-t", "10:00:00", "--gres=gpu:4")
    assert owner, said
    until(ruled, owner, "RUNNING", 90)
    took = time.monotonic() - begin
    chain.event(2, "resumed", 60)
    assert ruled.job(chain.job(2))["NodeList"] == "s1"
    ended = chain.ended(2, 60)
    assert ended["cause"] == "finished" and ended["status"] == 0
    assert state(ruled, owner) == "RUNNING"
    return took


def test_a_lent_node_goes_back_and_its_guest_loses_nothing(ruled, people):
    """The guest is notified at once, saves, exits within the grace time, and resumes elsewhere from its last step."""
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        ada = Person(ruled, home, people["ada"])
        # Slurm's TERM reaches the program too, because this Slurm identifies its processes by their parents.
        with ada.start("run", *map(str, guest_of(ada, "told", [], "--aware", "--deaf")),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            chain = Chain(ada, "told")
            assert taken_back(ruled, people, chain) < GRACE
            assert chain.events(1, "noticed")[0]["detail"] == "preempted"
            assert chain.ended(1)["status"] == 85
            first, second = chain.assert_unbroken(250)
            assert second["line"] == "link 2 cause preempt"
            assert second["resumed"] == first["steps"][-1]


def test_a_lent_node_goes_back_whatever_its_guest_does(ruled, people):
    """A batch job unaware of gpuq loses the work after its last checkpoint."""
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        ada = Person(ruled, home, people["ada"])
        done = ada.gpuq("run", "--detach", *guest_of(ada, "deaf", UNAWARE, "--folder", "out"))
        assert done.returncode == 0, done.stderr
        chain = Chain(ada, "deaf")
        # Grace time, Slurm's check every 30 s, KillWait and a little more: the bound printed by `gpuq policy check`.
        assert taken_back(ruled, people, chain) < GRACE + 30 + 5 + 5
        assert chain.ended(1)["cause"] == "preempted"
        first, second = chain.assert_unbroken(250)
        assert second["line"] == "link 2 cause preempt"
        assert first["steps"][-1] - second["resumed"] <= 2 * 5, "the last of its checkpoints, or that before it"


def test_all_of_it_holds_after_a_restart(ruled, people):
    ada = people["ada"]
    hard = [sbatch(ruled, ada, "-p", "long", "--gres=gpu:1")[0] for _ in range(3)]
    for job in hard[:2]:
        until(ruled, job, "RUNNING")
    later, _ = sbatch(ruled, ada, "-t", "60", "--gres=gpu:1", "--begin=now+1hour")

    def still():
        for words, part in ((["-t", "49:00:00", "--gres=gpu:1"], "at most 2 days"),
                            (["-p", "lab", "--gres=gpu:1"], "ask Lena"),
                            (["-p", "calibration", "--gres=gpu:k80:5"], "at most 4 GPUs"),
                            (["-p", "long", "--gpus=v100:3"], "at most 2 GPUs")):
            job, said = sbatch(ruled, ada, *words)
            assert job is None and part in said, (words, said)
        job, _ = sbatch(ruled, people["lena"], "-p", "lab", "-t", "60", "--gres=gpu:1")
        until(ruled, job, "RUNNING")
        ruled.slurm("scancel", job)
        done = run(["scontrol", "update", f"jobid={later}", "timelimit=10:00:00"], env=ruled.env, user=ada)
        assert done.returncode != 0 and ruled.job(later)["TimeLimit"] == "01:00:00"
        assert ruled.job(later)["QOS"] == "gpuq_calibration"
        beyond_the_soft_limit(ruled, people)
        assert state(ruled, hard[2]) == "PENDING" and ruled.job(hard[2])["Reason"] == "QOSMaxGRESPerUser"

    ruled.scontrol("reconfigure")
    still()
    # A killed slurmctld forgets everything that it has not saved.
    change = time.time()
    ruled.scontrol("update", f"jobid={later}", "name=later")
    saved = ruled.dir / "state" / "job_state"  # missing for a moment while slurmctld replaces it
    wait_for(lambda: saved.exists() and saved.stat().st_mtime > change, 30, "a written state")
    ruled.signal("slurmctld")
    ruled.repair()
    still()
    tiers = dict(re.findall(r"PartitionName=(\S+).*?PriorityTier=(\d+)", ruled.scontrol("show", "partition"), re.S))
    assert tiers == {"lab": "60", "calibration": "40", "calibration-more": "20", "guest": "40", "guest-spare": "39",
                     "long": "40"}


def test_a_second_up_keeps_the_policy_and_another_one_is_refused(ruled, people, tmp_path):
    assert "is up already" in ruled.cluster("up").stderr
    other = tmp_path / "other.yaml"
    other.write_text(POLICY.replace("time: 2h", "time: 1h"))
    done = ruled.cluster("up", "--policy", str(other), check=False)
    assert done.returncode == 2 and "gpuq cluster down" in done.stderr


@pytest.mark.parametrize("name", ["minimal", "workstation", "criann", "teaching", "nights"])
def test_the_shipped_policies_start(name, people):
    """Each on the nodes that it names; its first queue accepts a job under its QOS."""
    shipped = pathlib.Path(__file__).resolve().parents[2] / "policies" / f"{name}.yaml"
    alike = ("--gpus", "4", "--nodes", "1") if name in ("minimal", "workstation") else ()
    with running_cluster(gpus=None, nodes=None, model=None, lines=(),
                         options=("--policy", str(shipped), *alike)) as cluster:
        job, said = sbatch(cluster, people["ada"], "-t", "20", "--gres=gpu:1", sleep=60)
        assert job, said
        until(cluster, job, "RUNNING", 30)
        assert cluster.job(job)["QOS"].startswith("gpuq_")


def test_gpuq_asks_for_the_queues_and_the_policy_chooses(ruled, people):
    """lab also fits these time limits, but ben has no access to it: the job gets the first queue that accepts it."""
    with short_folder() as home:
        os.chown(home, people["ben"].pw_uid, people["ben"].pw_gid)
        ben = Person(ruled, home, people["ben"])
        for time_limit, queue in (("2h", "calibration"), ("10h", "long")):
            done = ben.gpuq("run", "-t", time_limit, "--", "sh", "-c", "echo $SLURM_JOB_PARTITION")
            assert done.stdout.split(",")[0].strip() == queue, done.stderr
        free = json.loads(ben.gpuq("free", "--json").stdout)
        names = {row["name"] for row in free["queues"]}
        assert names == {"lab", "calibration", "guest", "long"}, free
