# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm jobs not started by gpuq, in gpuq's verbs, and the latest start of a pending one."""
import json
import os
import re
import time

import pytest

from chains import time_of
from conftest import wait_for
from runs import members_of, nothing_left, told_of, terminal, the_run
from test_lookups import document, rpcs_of, utc

# No backfill during a test: Slurm makes no plan.
CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=3", "MinJobAge=60",
                                                    "SchedulerParameters=batch_sched_delay=0,bf_interval=3600"])
HOSTILE = "evil\x1b[2J\x07name"


@pytest.fixture(autouse=True)
def clean(cluster, person):
    yield
    cluster.slurm("scancel", "-u", "root", check=False)
    nothing_left(person)
    cluster.wait_until_idle()


def sbatch(cluster, *words, script="exec sleep 300", folder="/tmp", output="/dev/null"):
    return cluster.slurm("sbatch", "--parsable", "-D", str(folder), "-o", str(output), *words,
                         "--wrap", script).strip().split(";")[0]


def state(cluster, job, wanted):
    wait_for(lambda: cluster.job(job)["JobState"] == wanted, 30, f"job {job} to be {wanted}")


def listed(person, job, *words):
    """The row of a job in `gpuq ls`, or None."""
    rows = [run for run in document(person, "ls", *words)["runs"] if run["called"] == str(job)]
    assert len(rows) < 2, rows
    return rows[0] if rows else None


def test_are_listed_and_marked(cluster, person):
    job = sbatch(cluster, "-J", HOSTILE, "--gres=gpu:2", "-t", "20")
    state(cluster, job, "RUNNING")
    row = listed(person, job)
    assert (row["kind"], row["key"], row["state"], row["gpus"]) == ("plain", None, "running", 2)
    assert row["time_limit"] == 1200 and row["host"] == "n0"
    table = person.gpuq("ls").stdout
    assert re.search(rf"^ *{job}  evil.*running.*plain$", table, re.M), table
    assert "\x1b" not in table and "KIND" in table
    once = person.gpuq("top", "--once").stdout
    assert re.search(rf"^ *{job}  evil.*plain", once, re.M) and "\x1b" not in once
    cluster.slurm("scancel", job)
    state(cluster, job, "CANCELLED")
    assert listed(person, job)["cause"] == "cancelled"


def test_a_run_is_there_once_and_a_forged_comment_makes_none(cluster, person):
    assert person.gpuq("run", "--detach", "-J", "mine", "--", "sleep", "300").returncode == 0
    run = the_run(person)
    wait_for(lambda: run.job, 20, "its job")
    stranger = "20251124T120000.000Z-0123456789abcdef"
    forged = sbatch(cluster, "-J", "forged", f"--comment=gpuq:{stranger}")
    rows = document(person, "ls")["runs"]
    assert sorted((row["called"], row["kind"]) for row in rows if row["state"] != "ended") == sorted(
        [(str(run.job), "run"), (forged, "plain")])
    assert document(person, "show", forged)["run"]["kind"] == "plain"
    # Without a RUN argument the only active run is meant, regardless of plain jobs.
    assert person.gpuq("stop").returncode == 0
    run.wait_for_end()
    assert cluster.job(forged)["JobState"] in ("RUNNING", "PENDING")


def test_logs_are_read_from_the_files_that_slurm_names(cluster, person):
    folder = person.home / "out"
    folder.mkdir()
    said = sbatch(cluster, "-J", "talk", folder=folder, output="%x-%j-%t.log",
                  script="echo out; echo err >&2; while [ ! -e go ]; do sleep 0.2; done; echo last; exit 3")
    state(cluster, said, "RUNNING")
    wait_for(lambda: person.gpuq("logs", said).stdout == "out\nerr\n", 20, "the first lines")
    with terminal(person, "logs", "-f", "talk") as screen:
        screen.wait_for("err")
        (folder / "go").touch()
        screen.wait_for("last")
        assert screen.status(60) == 3
    done = person.gpuq("logs", "-f", said)
    assert (done.returncode, done.stdout) == (3, "out\nerr\nlast\n"), done.stderr
    apart = sbatch(cluster, "-e", "apart.err", folder=folder, output="apart.out",
                   script="echo out; echo err >&2")
    done = person.gpuq("logs", "-f", apart)
    assert (done.returncode, done.stdout) == (0, "out\n") and "err\n" in done.stderr


def test_logs_say_what_there_is_instead_of_a_file(cluster, person):
    nothing = sbatch(cluster)
    done = person.gpuq("logs", nothing)
    assert done.returncode == 2 and "/dev/null: nothing is kept" in done.stderr
    away = sbatch(cluster, output=person.home / "away.log")
    state(cluster, away, "RUNNING")
    wait_for((person.home / "away.log").exists, 20, "the file")
    (person.home / "away.log").unlink()
    done = person.gpuq("logs", away)
    assert done.returncode == 2 and "is not on this host" in done.stderr and "srun --overlap" in done.stderr
    (person.home / "away.log").symlink_to("/etc/hostname")
    done = person.gpuq("logs", away)
    assert done.returncode != 0 and done.stdout == "" and "symbolic link" in done.stderr
    (person.home / "away.log").unlink()
    os.mkfifo(person.home / "away.log")
    done = person.gpuq("logs", away, timeout=20)
    assert done.returncode != 0 and done.stdout == "" and "not a regular file" in done.stderr


def test_stop_cancels_jobs_and_parts_of_arrays(cluster, person):
    array = sbatch(cluster, "--array=1-6%2", "-J", "many")
    wait_for(lambda: len([job for job in cluster.squeue() if job[1] == "RUNNING"]) == 2, 30, "two tasks")
    assert {f"{array}_1", f"{array}_2", f"{array}_[3-6%2]"} <= {
        run["called"] for run in document(person, "ls")["runs"]}
    done = person.gpuq("stop", f"{array}_1")
    assert done.returncode == 0 and f"stopping job {array}_1 (many)" in done.stderr, done.stderr
    state(cluster, f"{array}_1", "CANCELLED")
    done = person.gpuq("stop", f"{array}_5", "--json")
    assert [one["outcome"] for one in json.loads(done.stdout)["runs"]] == ["withdrawn"]
    assert json.loads(done.stdout)["runs"][0]["kind"] == "plain"
    assert person.gpuq("stop", array).returncode == 0
    wait_for(lambda: not cluster.squeue(), 30, "the array to go")
    assert "has ended already" in person.gpuq("stop", f"{array}_1").stderr
    one = sbatch(cluster, "-J", "single")
    two = sbatch(cluster, "-J", "twin")
    three = sbatch(cluster, "-J", "twin")
    assert person.gpuq("stop", "single").returncode == 0
    state(cluster, one, "CANCELLED")
    done = person.gpuq("stop", "twin")
    assert done.returncode == 2 and two in done.stderr and three in done.stderr
    assert person.gpuq("stop", "--checkpoint", two).returncode == 2
    state(cluster, two, "RUNNING")


def test_show_has_what_slurm_has(cluster, person):
    job = sbatch(cluster, "--gres=gpu:k80:1", "-c", "2", "-t", "20", "--comment=mine",
                 output=person.home / "%j.out", folder=person.home)
    state(cluster, job, "RUNNING")
    told = document(person, "show", job)
    assert told["output"] == str(person.home / f"{job}.out") == told["error_output"]
    assert (told["cpus"], told["node_list"], told["comment"]) == (2, "n0", "mine")
    assert told["work_dir"] == str(person.home)
    assert members_of({**told, "run": None}) == told_of("gpuq show of a plain job")
    text = person.gpuq("show", job).stdout
    assert "a plain Slurm job: gpuq did not start it" in text and "20 min" in text


@pytest.mark.parametrize("verb", [("attach",), ("extend", "1h"), ("save",), ("resume",), ("connect", "--config"),
                                  ("profile",), ("report",), ("keepalive",), ("exempt", "--reason", "x")])
def test_verbs_that_need_a_supervisor_say_what_to_use(cluster, person, verb):
    job = sbatch(cluster)
    words = ("extend", job, verb[1]) if verb[0] == "extend" else (verb[0], job, *verb[1:])
    done = person.gpuq(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert "is a plain Slurm job" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_jobs_of_salloc_and_het_jobs(cluster, person):
    shell = cluster.slurm("salloc", "-J", "alloc", "--no-shell", "--gres=gpu:1", "-t", "10", check=False)
    row = wait_for(lambda: [one for one in document(person, "ls")["runs"] if one["name"] == "alloc"], 20,
                   f"the allocation {shell}")[0]
    assert row["kind"] == "plain"
    done = person.gpuq("logs", str(row["job"]))
    assert done.returncode == 2 and "srun or salloc" in done.stderr
    assert person.gpuq("stop", "alloc").returncode == 0
    het = cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "-J", "het", "-n1", ":", "-n1", "--wrap",
                        "exec sleep 300").strip()
    parts = wait_for(lambda: [one["called"] for one in document(person, "ls")["runs"] if one["name"] == "het" or
                              one["called"].startswith(f"{het}+")], 20, "its components")
    assert f"{het}+0" in parts
    assert document(person, "show", het)["run"]["called"] == f"{het}+0"
    assert person.gpuq("stop", het).returncode == 0


def test_a_run_starts_after_a_plain_job(cluster, person):
    job = sbatch(cluster, "-J", "first", script="sleep 2")
    done = person.gpuq("run", "--after", "first", "-t", "5", "--", "echo", "after", timeout=90)
    assert (done.returncode, done.stdout) == (0, "after\n"), done.stderr
    assert cluster.job(job)["JobState"] == "COMPLETED"


def test_the_list_asks_within_its_allowance(cluster, person):
    sbatch(cluster)
    _, rpcs = rpcs_of(cluster, lambda: document(person, "ls"))
    assert rpcs == {"REQUEST_JOB_USER_INFO": 1}
    began = time.monotonic()
    _, rpcs = rpcs_of(cluster, lambda: [document(person, "ls") for _ in range(40)])
    spent = time.monotonic() - began
    assert sum(rpcs.values()) <= 11 + spent / 5, rpcs
    # Followers of runs send no requests.
    assert person.gpuq("run", "--detach", "--", "sleep", "20").returncode == 0
    run = the_run(person)
    wait_for(lambda: run.event("program_started"), 20, "the program")
    _, rpcs = rpcs_of(cluster, lambda: [person.gpuq("logs", str(run.job)) for _ in range(5)])
    assert rpcs == {}


def test_without_a_controller_the_runs_are_there_and_plain_jobs_unknown(cluster, person):
    assert person.gpuq("run", "--detach", "--", "sleep", "300").returncode == 0
    run = the_run(person)
    wait_for(lambda: run.event("program_started"), 20, "the program")
    job = sbatch(cluster)
    with cluster.stopped("slurmctld"):
        done = person.gpuq("ls", "--json", "-vv")
        waited = [float(ms) for ms in re.findall(r" debug slurm: [^:\n]*: ([0-9.]+) ms\n", done.stderr)]
        assert 0 < sum(waited) < 8000, done.stderr
        told = json.loads(done.stdout)
        assert [row["job"] for row in told["runs"] if row["kind"] == "run"] == [run.job]
        assert "plain_jobs_unknown" in [one["code"] for one in told["warnings"]]
        done = person.gpuq("ls", "-vv")
        assert " debug slurm: " not in done.stderr, "it is left alone for a while"
        assert "plain Slurm jobs unknown" in done.stderr and str(run.job) in done.stdout
        assert person.gpuq("why", "nosuchname").returncode == 120
    wait_for(lambda: listed(person, job), 60, "the plain job again")


def test_why_tells_by_when_the_first_in_line_starts(cluster, person):
    """As in the live trials: four running jobs with known ends, and no plan by Slurm."""
    ends = {sbatch(cluster, "--gres=gpu:2", "-t", str(minutes)): minutes for minutes in (40, 10, 20, 30)}
    for job in ends:
        state(cluster, job, "RUNNING")
    first = next(job for job, minutes in ends.items() if minutes == 10)
    done = person.gpuq("run", "--detach", "-g", "2", "-t", "15m", "-J", "next", "--", "sleep", "1")
    assert done.returncode == 0
    told = wait_for(lambda: (lambda one: one if one["run"]["reason"] == "Resources" else None)(
        document(person, "why", "next")), 30, "a reason")
    assert told["expected_start_basis"] == "limits" == told["run"]["expected_start_basis"]
    assert told["run"]["expected_start_after"] == int(first)
    assert told["run"]["expected_start"].startswith(utc(cluster, cluster.job(first)["EndTime"])[:16])
    line = next(line for line in person.gpuq("why", "next").stdout.splitlines() if "expected start" in line)
    assert f"at the latest, when job {first} reaches its time limit" in line
    plain = sbatch(cluster, "--gres=gpu:4", "-t", "5", "-J", "behind")
    told = document(person, "why", plain)
    assert told["run"]["kind"] == "plain" and told["ahead"] == 1 and told["expected_start_basis"] == "limits"
    own = {one["job"]: one for one in document(person, "free", "--next")["own_waiting"]}
    assert own[int(plain)]["expected_start_basis"] == "limits"
    top = document(person, "top")["runs"]
    assert "limits" in [one["run"]["expected_start_basis"] for one in top]
    # From the response that top has stored.
    assert listed(person, plain)["expected_start_basis"] == "limits"
    rows = [one["run"] for one in top if one["run"]["state"] == "waiting"]
    rows += [listed(person, plain), document(person, "show", plain)["run"], document(person, "show", "next")["run"]]
    assert len(rows) == 5 and all(row["start_p50"] <= row["start_p90"] for row in rows)
    assert "; by " in person.gpuq("ls").stdout
    cluster.scontrol("update", f"jobid={first}", "timelimit=UNLIMITED")
    for job, minutes in ends.items():
        cluster.scontrol("update", f"jobid={job}", "timelimit=UNLIMITED")
    told = document(person, "why", plain)
    assert told["expected_start_basis"] is None and "has no time limit" in told["expected_start_unknown"]


def test_a_waiting_client_tells_by_when_it_starts(cluster, person):
    for _ in range(2):
        sbatch(cluster, "--gres=gpu:4", "-t", "10")
    wait_for(lambda: [job[1] for job in cluster.squeue()] == ["RUNNING"] * 2, 30, "a full cluster")
    with terminal(person, "run", "-t", "5m", "--", "true") as screen:
        screen.wait_for("at the latest", 60)
        screen.type("\x03")
        assert screen.status() == 130


def test_the_parts_of_top_are_of_one_moment(cluster, person):
    """As seen in a live trial: `8 free, 0 mine` above two own running runs."""
    before = document(person, "top", "--once")
    assert before["pools"][0]["mine"] == 0
    for _ in range(2):
        assert person.gpuq("run", "--detach", "-g", "2", "--", "sleep", "300").returncode == 0

    def both_run():
        one = document(person, "top", "--once")
        runs = [run["run"]["state"] for run in one["runs"] if run["run"]["kind"] == "run"]
        return one if runs == ["running"] * 2 else None
    now = wait_for(both_run, 20, "two runs")
    since = time_of({"at": now["asked_at"]}) - time_of({"at": before["asked_at"]})
    assert since == 0 or since >= 15, "Slurm was not asked again"
    assert (now["pools"][0]["mine"], now["pools"][0]["free"]) == (4, 4)
    text = person.gpuq("top", "--once").stdout
    assert "4 k80" in text.splitlines()[1]
