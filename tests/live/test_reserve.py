# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq reserve: a teacher without rights in Slurm reserves nodes through an operator's account, as sudo would run it."""
import contextlib
import json
import os

import pytest

from clusters import Person, account, short_folder, wait_for
from policies import SCHEDULER, cancel_all, make_operator, running_policy, sbatch, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
pools:
  class: {nodes: "c[1-3]", gpus: "k80:2"}
queues:
  batch: {time: 2h, default_time: 10m, pools: class}
reserve: {users: gpuq-ada, ahead: 2d, longest: 4h, most: 4}
"""
CLASS = ("--from", "now", "--for", "30m", "--users", "gpuq-ben", "--name", "ml")


@pytest.fixture(scope="module")
def ruled(people):
    """Ada teaches ben; the policy names her, and Slurm gives her no right. gpuq-ops is an operator."""
    assert people
    ops = account("gpuq-ops")
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy, lines=("KillWait=1", SCHEDULER)) as cluster:
            make_operator(cluster, ops)
            yield cluster


@contextlib.contextmanager
def home_of(cluster, user):
    with short_folder() as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        yield Person(cluster, home, user)


@pytest.fixture
def ops(ruled):
    with home_of(ruled, account("gpuq-ops")) as person:
        yield person
        cancel_all(ruled)
        for one in listed(person):
            ruled.scontrol("delete", f"reservationname={one['slurm_name']}")


def as_sudo(person, caller, *words, **options):
    """Runs gpuq as `person` with the variables that sudo sets for its caller."""
    return person.gpuq("reserve", *words, env={"SUDO_UID": str(caller.pw_uid), "SUDO_USER": caller.pw_name}, **options)


def listed(person):
    return json.loads(person.gpuq("reserve", "--json").stdout)["reservations"]


def place(cluster, job):
    shown = cluster.job(job)
    return shown["JobState"], shown.get("Reservation")


def submit(cluster, user, *words):
    job, said = sbatch(cluster, user, "--gres=gpu:1", *words)
    assert job, said
    return job


def test_slurm_refuses_a_teacher_who_is_no_operator(ruled, people, ops):
    with home_of(ruled, people["ada"]) as ada:
        refused = ada.gpuq("reserve", *CLASS, "--gpus", "2")
    assert refused.returncode == 121
    assert "Slurm lets only its operators" in refused.stderr
    # Not even a coordinator of the class's account.
    ruled.slurm("sacctmgr", "-i", "add", "coordinator", "account=default", "names=gpuq-ada")
    with home_of(ruled, people["ada"]) as ada:
        assert ada.gpuq("reserve", *CLASS, "--gpus", "2").returncode == 121
    assert listed(ops) == []


def test_a_class_runs_on_its_nodes_and_others_wait_until_it_is_revoked(ruled, people, ops):
    ada, ben, lena = (people[name] for name in ("ada", "ben", "lena"))
    made = as_sudo(ops, ada, *CLASS, "--gpus", "3")
    assert made.returncode == 0, made.stderr
    assert "4 GPUs on c[1-2]: reserved until" in made.stderr and "by gpuq-ada (ml) for gpuq-ben" in made.stderr
    one, = listed(ops)
    assert (one["maker"], one["name"], one["gpus"], one["active"]) == ("gpuq-ada", "ml", 4, True)
    assert one["nodes"] == ["c1", "c2"] and one["users"] == ["gpuq-ben"]

    inside = submit(ruled, ben)  # no flag: job_submit.lua finds the reservation
    until(ruled, inside, "RUNNING")
    assert place(ruled, inside) == ("RUNNING", "gpuq:gpuq-ada:ml")
    outside = submit(ruled, lena)
    until(ruled, outside, "RUNNING")
    assert ruled.job(outside)["NodeList"] == "c3"
    with home_of(ruled, ben) as member:  # whose jobs may use the reserved ones
        assert json.loads(member.gpuq("free", "--json").stdout)["pools"][0]["blocked"] == 0
    with home_of(ruled, lena) as person:
        free = person.gpuq("free").stdout
        assert "yes: 1 k80" in free and "by gpuq-ada (ml) for gpuq-ben" in free
        document = json.loads(person.gpuq("free", "--json").stdout)
        assert document["pools"][0]["blocked"] == 3 and document["reservations"][0]["name"] == "ml"
        person.gpuq("run", "--detach", "-N", "2", "--", "sleep", "600")
        why = wait_for(lambda: (lambda text: "reservation: 4 GPUs on c[1-2]: reserved until" in text and text)(
            person.gpuq("why", "last").stdout), 20, "the reservation in why")
        assert "waits: " in why
        top = json.loads(person.gpuq("top", "--json").stdout)
        assert [one["name"] for one in top["reservations"]] == ["ml"]

        # Others than the maker cannot revoke it by sudo; jobs in it end only if she says so.
        assert "was made by gpuq-ada" in as_sudo(ops, ben, "--cancel", "ml").stderr
        refused = as_sudo(ops, ada, "--cancel", "ml")
        assert refused.returncode == 121 and "add --end-jobs" in refused.stderr
        assert place(ruled, inside) == ("RUNNING", "gpuq:gpuq-ada:ml")
        revoked = as_sudo(ops, ada, "--cancel", "ml", "--end-jobs")
        assert revoked.returncode == 0, revoked.stderr
        wait_for(lambda: "running" in person.gpuq("ls").stdout, 60, "lena's run on the freed nodes")
    wait_for(lambda: ruled.job(inside)["JobState"] not in ("RUNNING", "COMPLETING"), 70, "the end of ben's job")


def test_the_policy_limits_a_caller_of_sudo(ruled, people, ops):
    ada = people["ada"]
    many = as_sudo(ops, ada, *CLASS, "--gpus", "5")
    assert many.returncode == 121 and "at most 4 GPUs may be reserved at the same time" in many.stderr
    assert "applied.yaml:6" in many.stderr
    long = as_sudo(ops, ada, "--from", "1h", "--for", "5h", "--users", "gpuq-ben", "--gpus", "2")
    assert "a reservation lasts at most 4 h" in long.stderr
    far = as_sudo(ops, ada, "--from", "3d", "--for", "1h", "--users", "gpuq-ben", "--gpus", "2")
    assert "begins at most 2 days ahead" in far.stderr
    other = as_sudo(ops, people["lena"], *CLASS, "--gpus", "2")
    assert other.returncode == 121 and "only users gpuq-ada may reserve GPUs" in other.stderr
    unknown = as_sudo(ops, ada, "--from", "1h", "--for", "1h", "--users", "gpuq-no-such", "--gpus", "2")
    assert unknown.returncode == 2 and "--users: this host knows no user 'gpuq-no-such'" in unknown.stderr
    assert listed(ops) == []


def test_a_later_reservation_is_seen_and_removed_by_an_operator(ruled, people, ops):
    made = as_sudo(ops, people["ada"], "--from", "20m", "--for", "1h", "--users", "gpuq-ben", "--gpus", "2",
                   "--name", "later")
    assert made.returncode == 0, made.stderr
    # Jobs that would run into it do not start on its node.
    long = [submit(ruled, people["lena"], "-t", "60") for _ in range(5)]
    for job in long[:4]:
        until(ruled, job, "RUNNING")
    with home_of(ruled, people["lena"]) as person:
        why = wait_for(lambda: (lambda text: "reservation: 2 GPUs on" in text and text)(
            person.gpuq("why", long[4]).stdout), 20, "the reservation in why")
        assert "reserved from" in why
    removed = ops.gpuq("reserve", "--cancel", "gpuq-ada:later")  # an operator, without sudo
    assert removed.returncode == 0, removed.stderr
    until(ruled, long[4], "RUNNING")
