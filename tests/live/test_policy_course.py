# SPDX-License-Identifier: GPL-2.0-or-later
"""Courses under a policy: at its start the course's users get its nodes and other users do not; after its end all users
get them again.

One course ends at the minute at which another begins, so that a single wait shows both.
"""
import datetime
import os
import time

import pytest

from clusters import GPUQ, Person, run, short_folder
from policies import SCHEDULER, cancel_all, join, running_policy, sbatch, state, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
pools:
  class: {nodes: "c[1-2]", gpus: "k80:2"}
queues:
  batch: {time: 48h, default_time: 10m, pools: class}
fair_share: {shares: {pupils: 1}}
"""
COURSES = """\
courses:
  morning: {{nodes: c1, start: "{morning}", duration: 4m, users: gpuq-ada}}
  noon: {{nodes: c2, start: "{noon}", duration: 4h, repeat: weekly, accounts: pupils}}
"""
EVENING = """\
courses:
  evening: {{nodes: c1, start: "{start}", duration: 20m, users: gpuq-ada}}
"""
# Seconds for the apply and for the checks before noon, in addition to eight times those of an apply now.
SLACK = 15


@pytest.fixture(scope="module")
def ruled(people):
    """Course morning will be ada's; course noon is for account pupils, which ben is a member of."""
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy, lines=("KillWait=1", SCHEDULER)) as cluster:
            join(cluster, people["ben"], "pupils")
            yield cluster


@pytest.fixture(scope="module")
def noon(ruled, tmp_path_factory):
    """Applies both courses. Returns the time at which morning ends and noon begins."""
    file = tmp_path_factory.mktemp("courses") / "policy.yaml"
    file.write_text(POLICY)
    begin = time.monotonic()
    assert run([GPUQ, "policy", "apply", str(file)], env=ruled.env).returncode == 0
    slack = SLACK + 8 * (time.monotonic() - begin)
    soon = datetime.datetime.now() + datetime.timedelta(seconds=slack)
    noon = soon.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
    morning = noon - datetime.timedelta(minutes=4)
    file.write_text(POLICY + COURSES.format(morning=f"{morning:%Y-%m-%dT%H:%M}", noon=f"{noon:%Y-%m-%dT%H:%M}"))
    done = run([GPUQ, "policy", "apply", str(file)], env=ruled.env)
    assert done.returncode == 0, done.stderr
    return noon.timestamp()


def place(cluster, job):
    shown = cluster.job(job)
    return shown["JobState"], shown.get("Reservation"), shown["NodeList"]


def submit(cluster, user, *words):
    job, said = sbatch(cluster, user, "--gres=gpu:1", *words)
    assert job, said
    return job


def test_at_the_hour_a_courses_people_get_its_nodes_and_others_do_not(ruled, people, noon):
    ada, ben, lena = (people[name] for name in ("ada", "ben", "lena"))
    taught = submit(ruled, ada)
    until(ruled, taught, "RUNNING")
    assert place(ruled, taught) == ("RUNNING", "morning", "c1")
    others = {node: submit(ruled, lena, "-w", node) for node in ("c1", "c2")}
    early = submit(ruled, ben)
    ruled.scontrol("reconfigure")
    time.sleep(3)  # a round of scheduling and one of backfill
    for job in (*others.values(), early):
        # c1 has a free GPU, which is ada's; c2 has two, and no job of ten minutes would end before noon.
        assert place(ruled, job) == ("PENDING", None, "")
    assert time.time() < noon, "this machine has become much slower since the fixture"

    time.sleep(noon - time.time() + 0.5)
    pupil = submit(ruled, ben)
    until(ruled, pupil, "RUNNING")
    assert place(ruled, pupil) == ("RUNNING", "noon", "c2")
    until(ruled, taught, "TIMEOUT", 30)  # its course is over
    until(ruled, others["c1"], "RUNNING")
    assert place(ruled, others["c2"]) == ("PENDING", None, "")


def test_a_course_that_is_on_holds_after_a_restart(ruled, people, noon):
    time.sleep(max(0.0, noon - time.time() + 0.5))
    ruled.signal("slurmctld")
    ruled.repair()
    job, said = sbatch(ruled, people["lena"], "--gres=gpu:1", "--reservation=noon")
    assert job is None and "Access denied" in said
    waiting = submit(ruled, people["lena"], "-w", "c2")
    with short_folder() as home:
        os.chown(home, people["ben"].pw_uid, people["ben"].pw_gid)
        ben = Person(ruled, home, people["ben"])
        done = ben.gpuq("run", "-Q", "--", "sh", "-c", "echo $SLURM_JOB_ID")
    until(ruled, done.stdout.strip(), "COMPLETED")  # Slurm completes it after its run has ended
    assert place(ruled, done.stdout.strip()) == ("COMPLETED", "noon", "c2"), done.stderr
    assert state(ruled, waiting) == "PENDING"


@pytest.mark.parametrize("phase", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_a_course_that_begins_with_its_policy_is_known_at_once(ruled, people, tmp_path, phase):
    """slurmctld's Lua does not see changes made in the same second as another reservation's change: an apply may end at
    any time within a second."""
    cancel_all(ruled)  # Slurm does not remove a reservation in use
    now = datetime.datetime.now().replace(second=0, microsecond=0)
    file = tmp_path / "policy.yaml"
    for text in (POLICY, POLICY + EVENING.format(start=f"{now:%Y-%m-%dT%H:%M}")):
        file.write_text(text)
        time.sleep((phase - time.time()) % 1)
        done = run([GPUQ, "policy", "apply", str(file)], env=ruled.env)
        assert done.returncode == 0, done.stderr
    job = submit(ruled, people["ada"])
    until(ruled, job, "RUNNING")
    assert place(ruled, job) == ("RUNNING", "evening", "c1")


def test_a_course_that_jobs_run_in_stays_until_they_have_ended(ruled, people, tmp_path):
    cancel_all(ruled)
    file = tmp_path / "policy.yaml"

    def apply(text):
        file.write_text(text)
        return run([GPUQ, "policy", "apply", str(file)], env=ruled.env)

    now = datetime.datetime.now().replace(second=0, microsecond=0)
    done = apply(POLICY + EVENING.format(start=f"{now:%Y-%m-%dT%H:%M}"))
    assert done.returncode == 0, done.stderr
    job = submit(ruled, people["ada"])
    until(ruled, job, "RUNNING")
    refused = apply(POLICY)
    assert refused.returncode != 0
    assert "scancel --reservation=evening" in refused.stderr and "the previous state is restored" in refused.stderr
    assert place(ruled, job) == ("RUNNING", "evening", "c1")
    ruled.slurm("scancel", "--reservation=evening")
    until(ruled, job, "CANCELLED")
    done = apply(POLICY)
    assert done.returncode == 0, done.stderr


def test_a_course_whose_nodes_are_busy_says_by_whom_and_until_when(ruled, people, tmp_path):
    cancel_all(ruled)
    file = tmp_path / "policy.yaml"

    def apply(text):
        file.write_text(text)
        return run([GPUQ, "policy", "apply", str(file)], env=ruled.env)

    assert apply(POLICY).returncode == 0
    job = submit(ruled, people["lena"], "-w", "c1", "-t", "60")
    until(ruled, job, "RUNNING")
    end = ruled.job(job)["EndTime"]
    now = datetime.datetime.now().replace(second=0, microsecond=0)
    refused = apply(POLICY + EVENING.format(start=f"{now:%Y-%m-%dT%H:%M}"))
    assert refused.returncode == 121
    assert f"job {job} of {people['lena'].pw_name} on c1 may run until {end}" in refused.stderr
    assert f"apply again after {end}" in refused.stderr and "the previous state is restored" in refused.stderr
    assert state(ruled, job) == "RUNNING"
    ruled.slurm("scancel", job)
    until(ruled, job, "CANCELLED")
    done = apply(POLICY + EVENING.format(start=f"{now:%Y-%m-%dT%H:%M}"))
    assert done.returncode == 0, done.stderr


def test_a_course_that_is_on_is_changed_where_it_stands(ruled, people, tmp_path):
    cancel_all(ruled)
    file = tmp_path / "policy.yaml"

    def apply(text):
        file.write_text(text)
        return run([GPUQ, "policy", "apply", str(file)], env=ruled.env)

    def reservation(name):
        shown = ruled.scontrol("-o", "show", "reservation", name)
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    assert apply(POLICY).returncode == 0
    # It began half an hour ago, and Slurm accepts no start in the past: it is active for the remaining time.
    begin = datetime.datetime.now().replace(second=0, microsecond=0) - datetime.timedelta(minutes=30)
    evening = EVENING.format(start=f"{begin:%Y-%m-%dT%H:%M}").replace("20m", "2h")
    done = apply(POLICY + evening)
    assert done.returncode == 0, done.stderr
    job = submit(ruled, people["ada"])
    until(ruled, job, "RUNNING")
    assert place(ruled, job) == ("RUNNING", "evening", "c1")
    began = reservation("evening")["StartTime"]

    # More users and another node, while a job runs in it.
    done = apply(POLICY + evening.replace("gpuq-ada", "[gpuq-ada, gpuq-lena]").replace("c1", '"c[1-2]"'))
    assert done.returncode == 0, done.stderr
    now = reservation("evening")
    assert (now["Users"], now["Nodes"], now["StartTime"]) == ("gpuq-ada,gpuq-lena", "c[1-2]", began)
    assert run([GPUQ, "policy", "drift"], env=ruled.env).returncode == 0
    assert place(ruled, job) == ("RUNNING", "evening", "c1")
    ruled.slurm("scancel", job)
    until(ruled, job, "CANCELLED")
    assert apply(POLICY + evening).returncode == 0

    # It cannot be moved to a node with a job: it stays active, unchanged.
    guest = submit(ruled, people["lena"], "-w", "c2", "-t", "60")
    until(ruled, guest, "RUNNING")
    soon = datetime.datetime.now() + datetime.timedelta(minutes=5)
    moved = EVENING.format(start=f"{soon:%Y-%m-%dT%H:%M}").replace("c1", "c2")
    refused = apply(POLICY + moved)
    assert refused.returncode == 121
    assert f"job {guest} of" in refused.stderr and "the previous state is restored" in refused.stderr
    assert (reservation("evening")["Nodes"], reservation("evening")["State"]) == ("c1", "ACTIVE")
    assert run([GPUQ, "policy", "drift"], env=ruled.env).returncode == 0
    job = submit(ruled, people["ada"])
    until(ruled, job, "RUNNING")
    assert place(ruled, job) == ("RUNNING", "evening", "c1")
    cancel_all(ruled)
