# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq policy tune` on a terminal: it shows its progress, is interrupted, and continues. No Slurm is needed. And with
the jobs of a real slurmdbd."""
import difflib
import json
import os
import pathlib
import pty
import re
import select
import signal
import shutil
import subprocess
import time

import pytest

from clusters import GPUQ, run, running_cluster

POLICY = """version: 1
pools:
  first: {nodes: n1, gpus: 2}         # short runs
  visu: {nodes: v1, gpus: 2}
  main: {nodes: 'n[2-7]', gpus: 2}    # all others
queues:
  fast: {time: 2h, pools: first}
  long: {time: 48h, pools: [main, visu]}
"""
DAY = 24 * 3600
WEEK = 7 * DAY


def jobs():
    """Submission and duration of jobs for which one node is too few for the short ones, on two days of each of six weeks."""
    for at in [week * WEEK + second for week in range(6) for second in range(0, 2 * DAY, 5400)]:
        yield from [(at, 3300)] * 4 + [(at, 36000)] * (at % 16200 == 0)


@pytest.fixture
def site(tmp_path):
    """A directory with a policy, and a trace."""
    (tmp_path / "p.yaml").write_text(POLICY)
    rows = [f"{at},{duration},1" for at, duration in jobs()]
    (tmp_path / "t.csv").write_text("\n".join(["submit_s,duration_s,gpus", *rows]) + "\n")
    return tmp_path


def words(*options):
    return [GPUQ, "policy", "tune", "--trace", "t.csv", "--target", "fast: p95<=5m", *options, "p.yaml"]


def env(site):
    return {**os.environ, "HOME": str(site), "XDG_STATE_HOME": str(site / "state"), "TERM": "xterm"}


def read_until(master, pattern, seconds=60):
    """The output of a terminal up to the first match."""
    text, end = "", time.monotonic() + seconds
    while not re.search(pattern, text):
        assert time.monotonic() < end, text
        if select.select([master], [], [], 0.1)[0]:
            try:
                text += os.read(master, 65536).decode()
            except OSError:  # the terminal is closed
                assert re.search(pattern, text), text
    return text


def test_a_search_is_interrupted_and_continues(site):
    master, slave = pty.openpty()
    with subprocess.Popen(words("--simulations", "5000"), cwd=site, env=env(site), stdin=slave, stdout=slave,
                          stderr=slave, start_new_session=True) as search:
        os.close(slave)
        read_until(master, r"\[[#.]{20}\] [1-9]\d* of 5000 simulations, best: fast p95 ")
        search.send_signal(signal.SIGINT)
        text = read_until(master, r"choice 1 is (not )?recommended|no change is recommended")
        assert "(ended early)" in text
        assert search.wait(30) == 130
    os.close(master)

    done = run(words("--simulations", "60", "--output", "new.yaml"), env(site), cwd=site)
    assert re.search(r"\d+ simulations? known from an earlier search", done.stderr), done.stderr
    assert "[#" not in done.stderr
    assert "+++ p.yaml (choice 1)" in done.stdout
    assert "choice 1 is recommended: in weeks 5 to 6, which the search did not see" in done.stdout, done.stdout
    assert done.returncode == 0, done.stderr

    # The new file is the old one with other numbers, and holds the target.
    new = (site / "new.yaml").read_text()
    assert re.sub(r"\d", "", new.split("#")[1]) == re.sub(r"\d", "", POLICY.split("#")[1])
    assert run([GPUQ, "policy", "check", "new.yaml"], env(site), cwd=site).returncode == 0
    again = run([*words("--simulations", "5")[:-1], "--json", "new.yaml"], env(site), cwd=site)
    document = json.loads(again.stdout)
    assert document["as_it_is"]["unseen"][0] <= 300
    assert document["goals"][0]["goal"] == "fast: p95<=5m"

    # The diff is the one between the two files.
    diff = "".join(difflib.unified_diff(POLICY.splitlines(True), new.splitlines(True), "p.yaml", "p.yaml (choice 1)"))
    assert diff in done.stdout


def accounted_job(cluster, queue):
    job = cluster.slurm("sbatch", "--parsable", "-p", queue, "--gres=gpu:1", "-t", "60", "-o", "/dev/null", "--wrap=true").strip()
    assert cluster.accounted(job)["State"] == "COMPLETED"
    return job


def spread(cluster, short, long):
    """Copies two jobs in slurmdbd's tables, with other times. Returns the number of the copies."""
    command = pathlib.Path(f"/proc/{cluster.pid('mariadbd')}/cmdline").read_text().split("\0")
    socket = next(word.partition("=")[2] for word in command if word.startswith("--socket="))
    begin = int(time.time()) - 6 * WEEK + 3600
    lines = [f"create temporary table job_{job} as select * from local_job_table where id_job = {job};" for job in (short, long)]
    for number, (at, duration) in enumerate(jobs(), 1000):
        job, limit = (short, 60) if duration < 7200 else (long, 720)
        submit = begin + at
        lines.append(f"update job_{job} set job_db_inx = 0, id_job = {number}, timelimit = {limit}, time_submit = {submit}, "
                     f"time_eligible = {submit}, time_start = {submit}, time_end = {submit + duration};"
                     f"insert into local_job_table select * from job_{job};")
    subprocess.run(["mariadb", "--no-defaults", "-u", "root", "-S", socket, "slurm_acct"], input="\n".join(lines), text=True, check=True)
    return len(lines) - 2


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mariadb"), reason="changes the times of jobs in slurmdbd's tables")
def test_the_jobs_of_slurmdbd_are_searched(site):
    with running_cluster(gpus=None, nodes=None, model=None, options=("--policy", str(site / "p.yaml"))) as cluster:
        count = spread(cluster, accounted_job(cluster, "fast"), accounted_job(cluster, "long"))
        assert count > 800

        def tune(*options):
            return run([GPUQ, "policy", "tune", "--target", "fast: p95<=5m", "--simulations", "60", *options, "p.yaml"],
                       {**cluster.env, "XDG_STATE_HOME": str(site / "state")}, cwd=site, timeout=300)

        done = tune("--from-accounting", "6w", "--output", "new.yaml", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        runs = sum(demand["runs"] for demand in found["demands"] if demand["group"] in ("fast", "long"))
        assert count <= runs <= count + 2, found["demands"]
        assert found["recommended"] == 1 and found["as_it_is"]["unseen"][0] > 3600, found
        assert found["choices"][0]["unseen"][0] <= 300, found
        assert "first: {nodes: 'n[1-2]', gpus: 2}" in (site / "new.yaml").read_text()
        day = tune("--from-accounting", "1d")
        assert day.returncode == 2 and "of the last 1 day: shorter than a week" in day.stderr, day.stderr
