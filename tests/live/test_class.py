# SPDX-License-Identifier: GPL-2.0-or-later
"""policies/teaching.yaml: a class of twenty on five simulated GPUs, a quarter for each, in a reserved hour."""
import collections
import contextlib
import json
import os
import pathlib

import pytest

from clusters import Person, account, run, short_folder, wait_for
from policies import SCHEDULER, cancel_all, join, make_operator, running_policy, sbatch, state, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

TEACHING = pathlib.Path(__file__).resolve().parents[2] / "policies" / "teaching.yaml"
STUDENTS = 20


@pytest.fixture(scope="module")
def students():
    """Twenty for whom there are shares, one more of the class, and one of another class."""
    return [account(f"gpuq-s{number:02}") for number in range(1, STUDENTS + 3)]


@pytest.fixture(scope="module")
def taught(people, students):
    """Ada belongs to staff; gpuq-ops is the operator's account that she uses by sudo."""
    assert students
    ops = account("gpuq-ops")  # before the cluster is up, which adds the users of this machine
    with running_policy(TEACHING, lines=("KillWait=1", SCHEDULER)) as cluster:
        join(cluster, people["ada"], "staff")
        make_operator(cluster, ops)
        yield cluster


@pytest.fixture(autouse=True)
def clean(taught):
    yield
    cancel_all(taught)


@contextlib.contextmanager
def home_of(cluster, user):
    with short_folder() as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        yield Person(cluster, home, user)


def share(cluster, user, *words):
    job, said = sbatch(cluster, user, "--gres=shard:1", *words)
    assert job, said
    return job


def names(users):
    return ",".join(user.pw_name for user in users)


def test_a_class_of_twenty_gets_its_shares_and_the_next_one_waits(taught, people, students):
    ada, ops = people["ada"], account("gpuq-ops")
    late, stranger = students[STUDENTS], students[STUDENTS + 1]
    with contextlib.ExitStack() as stack:
        def person(user):
            return stack.enter_context(home_of(taught, user))

        def reserve(*words):
            return desk.gpuq("reserve", *words, env={"SUDO_UID": str(ada.pw_uid), "SUDO_USER": ada.pw_name})

        desk = person(ops)
        made = reserve("--from", "now", "--for", "30m", "--users", names(students[:STUDENTS + 1]), "--gpus", "5",
                       "--name", "class")
        assert made.returncode == 0, made.stderr
        assert "5 GPUs on desk[1-5]: reserved until" in made.stderr and "and 18 others" in made.stderr

        # Half of them by gpuq, half by plain sbatch; none names the reservation.
        jobs = []
        for number, user in enumerate(students[:STUDENTS]):
            if number % 2:
                jobs.append(share(taught, user))
                continue
            one = person(user)
            started = one.gpuq("run", "--detach", "-g", "shard:1", "--", "sleep", "600")
            assert started.returncode == 0, started.stderr
            jobs.append(json.loads(one.gpuq("ls", "--json").stdout)["runs"][0]["job"])
        for job in jobs:
            until(taught, job, "RUNNING", 60)
        shown = [taught.job(job) for job in jobs]
        assert {one["Reservation"] for one in shown} == {"gpuq:gpuq-ada:class"}
        on = collections.Counter(one["NodeList"] for one in shown)
        assert on == {f"desk{number}": 4 for number in range(1, 6)}
        # A quarter of the memory that comes with a GPU, whether it was requested or not.
        for job in jobs[:2]:
            assert taught.scontrol("show", "job", "-d", job).count(" Mem=6144 ") == 1

        waiting = person(late)
        assert waiting.gpuq("run", "--detach", "-g", "shard:1", "--", "sleep", "600").returncode == 0
        why = wait_for(lambda: (lambda text: "no share of a GPU is free" in text and text)(
            waiting.gpuq("why", "last").stdout), 30, lambda: waiting.gpuq("why", "last").stdout)
        assert "waits: " in why and "by gpuq-ada (class) for" in why
        outside = person(stranger)
        assert outside.gpuq("run", "--detach", "-g", "shard:1", "--", "sleep", "600").returncode == 0
        why = wait_for(lambda: (lambda text: "reservation: 5 GPUs on desk[1-5]" in text and text)(
            outside.gpuq("why", "last").stdout), 30, lambda: outside.gpuq("why", "last").stdout)
        assert "waits: " in why
        free = json.loads(outside.gpuq("free", "--json").stdout)
        desks = next(pool for pool in free["pools"] if pool["shares"])
        assert desks["shares"] == {"kind": "shard", "per_gpu": 4, "total": 20, "free": 0}
        assert [one["name"] for one in free["reservations"] if one["active"]] == ["class"]

        # One share for each; a whole GPU is elsewhere.
        second = share(taught, students[0])
        wait_for(lambda: taught.job(second)["Reason"] == "QOSMaxGRESPerUser", 20, lambda: str(taught.job(second)))
        whole = sbatch(taught, students[0], "--gres=gpu:1")[0]
        until(taught, whole, "RUNNING")
        assert taught.job(whole)["NodeList"].startswith("class")

        # Revoked: the class's jobs end, and the others start.
        assert "add --end-jobs" in reserve("--cancel", "class").stderr
        revoked = reserve("--cancel", "class", "--end-jobs")
        assert revoked.returncode == 0, revoked.stderr
        wait_for(lambda: all(state(taught, job) not in ("RUNNING", "COMPLETING") for job in jobs), 90,
                 "the end of the class")
        for one in (waiting, outside):
            wait_for(lambda one=one: "running" in one.gpuq("ls").stdout, 60, lambda one=one: one.gpuq("why", "last").stdout)


def test_slurm_and_the_script_hold_a_student_to_one_share(taught, students):
    user = students[0]
    for words, reason in ((("--gres=shard:2",), "at most 1 share of a GPU"),
                          (("--gres=shard:1", "-N", "2"), "only as --gres=shard:N on one node"),
                          (("--gres=shard:1", "-c", "3"), "8 CPUs and 24 GiB with each GPU"),
                          (("--gres=shard:1", "--mem=7G"), "8 CPUs and 24 GiB with each GPU"),
                          (("--gres=shard:1", "--mem=0"), "8 CPUs and 24 GiB with each GPU"),
                          (("--gres=shard:1", "--exclusive"), "lessons"),
                          (("-p", "exercises", "--gres=shard:1"), "whole GPUs only"),
                          (("-p", "lessons", "--gres=gpu:1"), "only shares of GPUs")):
        job, said = sbatch(taught, user, *words)
        assert job is None and reason in said, (words, said)
    fine, _ = sbatch(taught, user, "--gres=shard:1", "-c", "2", "--mem=6G")
    until(taught, fine, "RUNNING")
    # A waiting job cannot be raised past the limit.
    second = share(taught, user)
    raised = run(["scontrol", "update", f"jobid={second}", "gres=shard:4"], env=taught.env, user=user)
    assert raised.returncode != 0
    limits = taught.slurm("sacctmgr", "-nP", "show", "qos", "gpuq_lessons", "format=maxtrespu")
    assert limits.strip() == "gres/shard=1"


def test_gpuq_chooses_the_queue_that_gives_shares_or_whole_gpus(taught, students):
    with home_of(taught, students[0]) as person:
        share_of = person.gpuq("run", "--dry-run", "-g", "shard:1", "--", "true")
        assert "#SBATCH --partition=lessons\n" in share_of.stdout and "#SBATCH --cpus-per-task=2\n" in share_of.stdout
        assert "for 1 h in queue lessons" in share_of.stderr
        whole = person.gpuq("run", "--dry-run", "--", "true")
        assert "lessons" not in whole.stdout and "#SBATCH --partition=exercises" in whole.stdout


def test_explain_and_drift_know_shares(taught, students):
    with home_of(taught, students[0]) as person:
        text = person.gpuq("policy", "explain", "-g", "shard:1", "-t", "1h").stdout
    assert "lessons" in text and "at most 1 shares of GPUs at a time" in text
    done = run([taught.binary, "policy", "drift"], env=taught.env)
    assert done.returncode == 0, done.stdout + done.stderr
