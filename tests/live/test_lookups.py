# SPDX-License-Identifier: GPL-2.0-or-later
"""Queries: free, why, show, ls and usage on a real Slurm."""
import json
import os
import pwd
import re
import time

import pytest

from conftest import wait_for
from runs import all_gpus_taken, is_waiting, members_of, nothing_left, terminal, told_of

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=3", "MinJobAge=2"])


@pytest.fixture(autouse=True)
def clean(cluster, person):
    yield
    cluster.slurm("scancel", "-u", "root", check=False)
    nothing_left(person)
    cluster.wait_until_idle()


def document(person, *words):
    done = person.gpuq(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_gpuq_json_tells_of_is_printed(cluster, person):
    begun = person.gpuq("sweep", "--detach", "-J", "cal", "--workers", "1", "--over", "n=1,2", "sleep", "60")
    assert begun.returncode == 0, begun.stderr
    assert person.gpuq("top", "--once").returncode == 0  # the expected start is based on its queries
    for section, words in (
            (r"gpuq run \-\-dry\-run", ("run", "--dry-run", "-t", "5", "true")),
            (r"gpuq run \-\-detach", ("run", "--detach", "-t", "5", "--", "sleep", "60")),
            (r"gpuq stop", ("stop", "last", "cal", "nosuch")),
            (r"gpuq cluster env", ("cluster", "env", "--dir", cluster.dir)),
            (r"gpuq cluster status", ("cluster", "status", "--dir", cluster.dir))):
        done = person.gpuq("--json", *words)
        assert members_of(json.loads(done.stdout)) == told_of(section), (words, done.stdout, done.stderr)
    told = json.loads(person.gpuq("cluster", "status", "--json", "--dir", person.home / "nothing").stdout)
    assert members_of(told) | {"name", "pid", "running", "state", "gpus"} == told_of("gpuq cluster status")


def rpcs_of(cluster, action):
    """RPCs to the controller caused by `action`, without those of daemons and sdiag."""
    before = cluster.rpcs()
    result = action()
    after = cluster.rpcs()
    counts = {name: count - before.get(name, 0) for name, count in after.items()}
    own = ("REQUEST_STATS_INFO", "REQUEST_PING", "MESSAGE_", "REQUEST_COMPLETE", "REQUEST_STEP",
           "REQUEST_PERSIST", "ACCOUNTING_")
    return result, {name: count for name, count in counts.items()
                    if count and not name.startswith(own)}


def waiting_run(cluster, person, *options):
    """Job ID of a run that is in the queue."""
    done = person.gpuq("run", "--detach", *options, "sleep", "300")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: is_waiting(cluster), 20, "a pending job")
    return document(person, "ls")["runs"][0]["job"]


def test_free_asks_for_queues_and_nodes_once(cluster, person):
    found, rpcs = rpcs_of(cluster, lambda: document(person, "free"))
    assert rpcs == {"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1, "REQUEST_RESERVATION_INFO": 1}
    assert found["free_now"] is True and found["next"] is None
    assert found["pools"] == [{"model": "k80", "queues": ["calibration", "gpu"], "total": 8,
                               "free": 8, "in_use": 0, "down": 0, "blocked": 0,
                               "most_on_one_node": 4, "shares": None}]
    first = person.gpuq("free").stdout.splitlines()[0]
    assert first == "yes: 8 k80 in queue calibration (up to 2 h), at most 4 on one node"


def test_free_next_follows_the_limits_of_running_jobs(cluster, person):
    with all_gpus_taken(cluster) as jobs:
        cluster.scontrol("update", f"jobid={jobs[1]}", "timelimit=30")
        waiting = waiting_run(cluster, person, "-g", "2")
        found, rpcs = rpcs_of(cluster, lambda: document(person, "free", "--next"))
        assert rpcs == {"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1,
                        "REQUEST_RESERVATION_INFO": 1, "REQUEST_JOB_INFO": 1}
        assert found["free_now"] is False
        assert [one["job"] for one in found["next"]] == [int(jobs[1]), int(jobs[0])]
        assert [(one["gpus"], one["model"]) for one in found["next"]] == [(4, "k80")] * 2
        ends = cluster.job(jobs[1])["EndTime"]
        assert found["next"][0]["at"].startswith(utc(cluster, ends))
        assert found["waiting"] == {"jobs": 1, "gpus": 2}
        text = person.gpuq("free", "--next").stdout
        assert text.startswith("no: 8 in use; the next: 4 k80 by ")
        assert person.gpuq("stop", waiting).returncode == 0


def utc(cluster, local):
    """Slurm's local time in the form of gpuq's JSON."""
    return cluster.slurm("date", "-u", "-d", local, "+%Y-%m-%dT%H:%M:%S").strip()


def test_free_counts_what_is_down(cluster, person):
    cluster.scontrol("update", "nodename=n1", "state=drain", "reason=test")
    try:
        pool = document(person, "free")["pools"][0]
        assert (pool["total"], pool["free"], pool["down"]) == (8, 4, 4)
    finally:
        cluster.scontrol("update", "nodename=n1", "state=resume")


def test_free_says_that_slurm_is_silent(cluster, person):
    with cluster.stopped("slurmctld"):
        done = person.gpuq("free")
    assert done.returncode == 120 and done.stdout == "" and "Slurm" in done.stderr


def test_why_tells_the_place_and_what_holds_a_run(cluster, person):
    with all_gpus_taken(cluster):
        first = waiting_run(cluster, person, "-g", "4", "-J", "first")
        second = waiting_run(cluster, person, "-g", "4", "-J", "second")
        wait_for(lambda: cluster.job(second)["Reason"] == "Priority", 30, "a reason")
        told, rpcs = rpcs_of(cluster, lambda: document(person, "why", second))
        assert rpcs == {"REQUEST_JOB_USER_INFO": 1, "REQUEST_JOB_INFO": 1,
                        "REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1,
                        "REQUEST_RESERVATION_INFO": 1}
        assert told["run"]["reason"] == "Priority"
        assert told["reason_text"] == "others are before you"
        assert (told["ahead"], told["position"]) == (1, 2)
        assert document(person, "why", first)["position"] == 1
        cluster.scontrol("uhold", str(first))
        held = person.gpuq("why", first).stdout
        assert "held by you" in held and "not in line yet" in held and f"scontrol release {first}" in held
        # A held run is not ahead of any other.
        assert document(person, "why", second)["position"] == 1
        for job in (first, second):
            assert person.gpuq("stop", job).returncode == 0


def test_why_has_the_start_of_the_backfill_plan(cluster, person):
    with all_gpus_taken(cluster):
        job = waiting_run(cluster, person, "-g", "4", "-t", "10m")
        wait_for(lambda: document(person, "why", job)["expected_start_basis"] == "backfill", 60,
                 "a plan of Slurm's, in place of the estimate")
        start = cluster.job(job)["StartTime"]
        assert document(person, "why", job)["run"]["expected_start"].startswith(utc(cluster, start))
        assert "by Slurm's backfill plan" in person.gpuq("why", job).stdout
        assert person.gpuq("stop", job).returncode == 0


def test_why_of_a_run_that_does_not_wait(cluster, person):
    assert person.gpuq("run", "-J", "short", "true").returncode == 0
    told = person.gpuq("why", "short").stdout
    assert "does not wait: it has ended" in told
    assert document(person, "why", "short")["waits"] is False


def test_show_tells_what_happened(cluster, person):
    assert person.gpuq("run", "-J", "seen", "--env", "TOKEN=hunter2", "sh", "-c",
                       "echo 12345; exit 3", env={"MY_SECRET": "hunter3"}).returncode == 3
    told = document(person, "show", "seen")
    assert (told["run"]["exit"], told["run"]["cause"]) == (3, "finished")
    assert (told["out_bytes"], told["err_bytes"]) == (6, 0)
    assert "MY_SECRET" in told["request"]["environment_names"]
    assert told["request"]["env_names"] == ["TOKEN"]
    assert told["journal"][-1]["text"] == "it ended with status 3"
    text = person.gpuq("show", "seen").stdout
    assert "ended with status 3" in text and "standard output 6 bytes" in text
    assert "hunter" not in text + json.dumps(told)


def test_a_run_that_slurm_forgot_is_known_from_accounting(cluster, person):
    """Its supervisor could not write: only slurmdbd knows how it ended."""
    job = None
    with all_gpus_taken(cluster):
        job = waiting_run(cluster, person, "-g", "1", "-J", "gone")
        cluster.slurm("scancel", str(job))
    cluster.accounted(job)
    wait_for(lambda: "Invalid job id" in cluster.slurm("scontrol", "show", "job", str(job),
                                                       check=False) or not cluster.slurm(
        "scontrol", "-o", "show", "job", str(job), check=False), 60, "Slurm to forget the job")
    told = document(person, "show", "gone")
    assert told["run"]["state"] == "ended" and told["run"]["cause"] == "cancelled"
    assert document(person, "ls")["runs"][0]["cause"] == "cancelled"


@pytest.mark.parametrize("width", [40, 80, 300])
def test_tables_fit_and_ids_stay_whole(cluster, person, width):
    name = "a-run-with-a-name-that-is-long-" + "x" * 40
    assert person.gpuq("run", "-J", name, "true").returncode == 0
    job = document(person, "ls")["runs"][0]["job"]
    with terminal(person, "ls", before=f"stty cols {width};") as screen:
        assert screen.status() == 0
    lines = screen.screen.decode().replace("\r", "").split("\n<status")[0].splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines if line.strip()]
    assert all(len(line) <= width for line in plain), plain
    assert str(job) in [line.split()[0] for line in plain]
    assert "\x1b[" in screen.screen.decode()
    with terminal(person, "ls", before=f"export NO_COLOR=1; stty cols {width};") as screen:
        assert screen.status() == 0
    assert "\x1b[" not in screen.screen.decode()


def sreport_gpu_seconds(cluster):
    """sreport's GPU-seconds by user, after a roll-up that includes the current hour."""
    hour = int(time.time()) // 3600 * 3600
    stamp = [time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))
             for at in (hour - 3600, hour + 3600)]
    cluster.slurm("sacctmgr", "-i", "rollup", *stamp, timeout=60)
    # In the first half of an hour, sreport omits that hour: its clock is set ahead here.
    text = cluster.slurm("faketime", "-f", "+3600s", "sreport", "-n", "-P", "-t", "seconds", "-T", "gres/gpu", "cluster",
                         "AccountUtilizationByUser", f"start={stamp[0]}", f"end={stamp[1]}",
                         "format=account,login,used")
    return {(account, login): int(used) for account, login, used in
            (line.split("|") for line in text.splitlines()) if login}


def test_usage_is_what_sreport_says(cluster, person):
    """Several jobs, shared nodes, an array, a requeued job."""
    def sbatch(*words):
        return cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", *words).strip()

    jobs = [sbatch("--gres=gpu:1", "--wrap", "sleep 6"), sbatch("--gres=gpu:k80:3", "--wrap", "sleep 4"),
            sbatch("--array=1-3", "--gres=gpu:1", "--wrap", "sleep 3"),
            sbatch("-p", "gpu", "--gres=gpu:2", "-N2", "--wrap", "sleep 3")]
    again = sbatch("--requeue", "--gres=gpu:1", "--wrap", "sleep 3")
    wait_for(lambda: cluster.job(again)["JobState"] == "RUNNING", 60, "the job to requeue")
    time.sleep(2)
    cluster.scontrol("requeue", again)
    # A requeued job has a delay of two minutes.
    wait_for(lambda: cluster.job(again)["JobState"] == "PENDING", 30, "the requeued job")
    cluster.scontrol("update", f"jobid={again}", "StartTime=now")
    cluster.wait_until_idle(180)

    def all_are_accounted():
        # Both attempts of the requeued job, three tasks of the array, three jobs; and jobs of earlier tests, which
        # would still be counting.
        ends = cluster.sacct("-D", "-S", "now-2hours", fields=("JobID", "End"))
        ours = [row for row in ends if row["JobID"].split("_")[0] in (*jobs, again)]
        return len(ours) == 8 and all(row["End"] != "Unknown" for row in ends)
    wait_for(all_are_accounted, 30, "slurmdbd to have it all")
    user = pwd.getpwuid(os.geteuid()).pw_name
    told = document(person, "usage", "--from", "2h", "--user", user, "--by", "user,queue")
    assert told["total"]["gpu_seconds"] >= 6 + 12 + 9 + 12 + 3

    said = {}

    def sreport_agrees():
        # If slurmdbd runs its own roll-up, it does not start another.
        said.update(sreport_gpu_seconds(cluster))
        expected = sum(seconds for (_, login), seconds in said.items() if login == user)
        return abs(told["total"]["gpu_seconds"] - expected) <= expected * 0.001
    try:
        wait_for(sreport_agrees, 60)
    except pytest.fail.Exception:
        jobs = cluster.slurm("sacct", "-X", "-D", "-P", "-S", "now-2hours", "-o",
                             "JobIDRaw,AssocID,User,Start,End,Elapsed,AllocTRES,State")
        pytest.fail(f"gpuq usage says {told}\nsreport says {said}\nsacct says\n{jobs}")
    assert {row["queue"] for row in told["rows"]} == {"calibration", "gpu"}
    assert sum(row["gpu_seconds"] for row in told["rows"]) == told["total"]["gpu_seconds"]
    csv = person.gpuq("usage", "--from", "2h", "--csv").stdout.splitlines()
    assert csv[0].startswith("user,jobs,gpu_seconds,busy_gpu_seconds,")
    assert csv[1].split(",")[2] == str(told["total"]["gpu_seconds"])


@pytest.mark.parametrize("words", [("--user", "nosuch"), ("--account", "nosuch")])
def test_usage_of_nobody_is_refused(cluster, person, words):
    done = person.gpuq("usage", *words)
    assert done.returncode not in (0, 120) and not done.stdout
    assert "nosuch" in done.stderr


def test_usage_without_slurmdbd_says_so(cluster, person):
    with cluster.stopped("slurmdbd"):
        done = person.gpuq("usage", timeout=90)
    assert done.returncode == 120 and "accounting" in done.stderr
