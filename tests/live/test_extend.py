# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq extend by the rule of a policy: an ordinary user's running run gets more time from the policy's helper, through sudo."""
import contextlib
import json
import os
import pathlib
import time

import pytest

from chains import Chain
from clusters import Person, account, run, short_folder, wait_for
from policies import SCHEDULER, cancel_all, make_operator, running_policy, sbatch, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
helper: gpuq-ops
help_desk: {users: gpuq-cyd, may: [stop, extend, see]}
pools:
  a: {nodes: "c[1-2]", gpus: "k80:2"}
queues:
  batch: {time: 2h, default_time: 10m, pools: a, extend: {by: 1h, times: 2, if: nobody_waits}}
  saves: {time: 30m, default_time: 10m, pools: a, chain: {links: 9}, extend: {by: 1h, times: 2, if: save_known}}
  long: {time: 1h, default_time: 10m, pools: a, chain: {links: 9}, extend: {by: 1h, times: 2, if: nobody_waits | save_known}}
"""
# Saves once there is a file `go`, and leaves when it is told to.
SAVER = """#!/bin/sh
trap 'exit 85' USR1
until [ -e go ]; do sleep 0.1; done
echo state >"$GPUQ_CHECKPOINT_DIR/.tmp"
mv "$GPUQ_CHECKPOINT_DIR/.tmp" "$GPUQ_CHECKPOINT_DIR/1"
while :; do sleep 0.1; done
"""


@contextlib.contextmanager
def sudoers(binary):
    """The lines of gpuq-extend(1) and gpuq-stop(1) for operators; the cluster's slurm.conf is not in /etc."""
    file = pathlib.Path(f"/etc/sudoers.d/gpuq-test-{os.getpid()}")
    file.write_text('Defaults:gpuq-ada,gpuq-cyd env_keep += "SLURM_CONF"\n'
                    f"gpuq-ada,gpuq-cyd ALL=(gpuq-ops) NOPASSWD: {binary} --quiet extend *, {binary} extend *, "
                    f"{binary} stop *, {binary} show *, {binary} why *\n")
    file.chmod(0o440)
    try:
        yield
    finally:
        file.unlink()


@pytest.fixture(scope="module")
def ruled(people):
    assert people
    helper = account("gpuq-ops")  # before the cluster is up, which adds the users of this machine
    account("gpuq-cyd")
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy, lines=("KillWait=1", SCHEDULER)) as cluster:
            make_operator(cluster, helper)
            yield cluster


@pytest.fixture
def ada(ruled, people):
    with short_folder() as home:
        os.chown(home, people["ada"].pw_uid, people["ada"].pw_gid)
        yield Person(ruled, home, people["ada"])
        cancel_all(ruled)


def begun(ada, name):
    """A run of ada's that runs. Returns its job."""
    done = ada.gpuq("run", "--detach", "-p", "batch", "-t", "30m", "-J", name, "--", "sleep", "600")
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
        assert too_long.returncode == 121 and "by at most 1 h at a time (applied.yaml:7)" in too_long.stderr, too_long.stderr
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


def saver(ada, queue):
    """A run of ada's in links of a minute, of the program above; its first link runs."""
    program = ada.home / "saver"
    program.write_text(SAVER)
    program.chmod(0o755)
    done = ada.gpuq("run", "--detach", "-p", queue, "-t", "3h", "--link", "1m", "-J", "saver", "--", program)
    assert done.returncode == 0, done.stderr
    chain = Chain(ada, "saver")
    chain.event(1, "program_started")
    return chain


def test_a_link_gets_more_time_once_it_has_saved(ruled, ada):
    with sudoers(ruled.binary):
        chain = saver(ada, "saves")
        started = chain.event(1, "supervisor_started")
        early = ada.gpuq("extend", "--link", "saver", "1h")
        assert early.returncode == 121, early.stderr
        assert "only after its program has saved a checkpoint (applied.yaml:8): no checkpoint" in early.stderr, early.stderr
        assert limit(ada, chain.job(1)) == "00:01:00"
        (ada.home / "go").touch()
        chain.event(1, "checkpoint")
        done = ada.gpuq("extend", "--link", "saver", "1h")
        assert done.returncode == 0 and "link 1 of run" in done.stderr and "has 1 h 1 min, was 1 min" in done.stderr, done.stderr
        assert limit(ada, chain.job(1)) == "01:01:00"
        end = chain.event(1, "limit_changed", 20)["to"]
        assert end == started["to"] + 3600
        file = pathlib.Path(chain.folder) / "link-1" / "deadline"
        assert wait_for(lambda: file.exists() and file.read_text(), 10) == f"{end}\n"
        # Beyond the end that it had, when the program would have been told to leave.
        wait_for(lambda: time.time() > started["to"] + 2, 90)
        assert not chain.events(1, "noticed") and ruled.job(chain.job(1))["JobState"] == "RUNNING"
        again = ada.gpuq("extend", "--link", "saver", "90m")
        assert again.returncode == 121 and "by at most 1 h at a time (applied.yaml:8)" in again.stderr, again.stderr


def test_a_saved_link_gets_more_time_although_another_user_waits(ruled, ada, people):
    with sudoers(ruled.binary):
        chain = saver(ada, "long")
        waiting, said = sbatch(ruled, people["ben"], "-p", "batch", "-N2", "--gres=gpu:2", "-t", "10")
        assert waiting, said
        wait_for(lambda: ruled.job(waiting)["Reason"] in ("Resources", "Priority"), 20, lambda: ruled.job(waiting))
        early = ada.gpuq("extend", "--link", "saver", "1h")
        assert early.returncode == 121 and f"(applied.yaml:9): job {waiting} does, and no checkpoint" in early.stderr, early.stderr
        (ada.home / "go").touch()
        chain.event(1, "checkpoint")
        done = ada.gpuq("extend", "--link", "saver", "1h")
        assert done.returncode == 0, done.stderr
        assert limit(ada, chain.job(1)) == "01:01:00"


def test_the_jobs_of_others_are_not_extended(ruled, ada, people):
    with sudoers(ruled.binary):
        job, said = sbatch(ruled, people["ben"], "--gres=gpu:1", "-t", "10")
        assert job, said
        until(ruled, job, "RUNNING")
        done = run(["sudo", "-n", "-u", "gpuq-ops", ruled.binary, "extend", job, "10m"], env=ruled.env, user=people["ada"])
        assert done.returncode == 121 and "is not yours" in done.stderr, done.stderr
        assert limit(ada, job) == "00:10:00"


def test_the_help_desk_acts_on_the_jobs_of_others_and_leaves_a_line(ruled, ada, people):
    cyd = account("gpuq-cyd")
    ops = account("gpuq-ops")
    audit = pathlib.Path(ops.pw_dir) / ".local/state/gpuq/audit.log"
    with sudoers(ruled.binary), short_folder() as home:
        os.chown(home, cyd.pw_uid, cyd.pw_gid)
        desk = Person(ruled, home, cyd)
        job = begun(ada, "train")
        done = desk.gpuq("extend", "--json", job, "1h")
        assert done.returncode == 0 and f"job {job} has 1 h 30 min, was 30 min" in done.stderr, done.stderr
        assert json.loads(done.stdout)["time_limit"] == 5400, done.stdout
        assert limit(ada, job) == "01:30:00"
        too_long = desk.gpuq("extend", job, "5h")
        assert too_long.returncode == 121 and "by at most 1 h at a time" in too_long.stderr, too_long.stderr
        # ada is no member, by gpuq or by sudo.
        other, said = sbatch(ruled, people["ben"], "--gres=gpu:1", "-t", "10")
        assert other, said
        until(ruled, other, "RUNNING")
        seen = desk.gpuq("show", "--json", other)
        assert seen.returncode == 0 and json.loads(seen.stdout)["run"]["job"] == int(other), seen
        assert "is running" in desk.gpuq("why", other).stdout
        unseen = run(["sudo", "-n", "-u", "gpuq-ops", ruled.binary, "show", other], env=ruled.env, user=people["ada"])
        assert unseen.returncode == 121 and "does not let gpuq-ada see" in unseen.stderr and not unseen.stdout, unseen
        assert ada.gpuq("stop", other).returncode in (2, 119, 121)
        by_sudo = run(["sudo", "-n", "-u", "gpuq-ops", ruled.binary, "stop", other], env=ruled.env, user=people["ada"])
        assert by_sudo.returncode == 121 and "does not let gpuq-ada stop the jobs of others" in by_sudo.stderr, by_sudo
        assert ruled.job(other)["JobState"] == "RUNNING"
        done = desk.gpuq("stop", "--json", other)
        assert done.returncode == 0, done.stderr
        assert [(one["job"], one["outcome"]) for one in json.loads(done.stdout)["runs"]] == [(int(other), "stopping")], done.stdout
        wait_for(lambda: ruled.job(other)["JobState"] == "CANCELLED", 20)
    lines = audit.read_text().splitlines()
    wanted = [f"for gpuq-cyd of the help desk: extend by 1 h job {job} (train) of uid {people['ada'].pw_uid}",
              f"for gpuq-cyd of the help desk: show job {other} (wrap) of uid {people['ben'].pw_uid}",
              f"for gpuq-cyd of the help desk: why job {other} (wrap) of uid {people['ben'].pw_uid}",
              f"for gpuq-cyd of the help desk: stop job {other} (wrap) of uid {people['ben'].pw_uid}"]
    assert [line.partition("gpuq-ops: ")[2] for line in lines[-4:]] == wanted, lines
    assert audit.stat().st_mode & 0o777 == 0o600


def test_without_the_line_in_sudoers_it_is_named(ada):
    job = begun(ada, "alone")
    done = ada.gpuq("extend", "alone", "1h")
    assert done.returncode == 121 and "sudoers lacks the line of gpuq-extend(1)" in done.stderr, done.stderr
    assert limit(ada, job) == "00:30:00"
