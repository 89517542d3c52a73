# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq run under the policy in force: chains where a queue allows them, within its limits."""
import json
import pathlib

import pytest

from chains import start, trainer
from clusters import Person, running_cluster, short_folder, wait_for

POLICY = """version: 1
pools:
  first: {nodes: "n[1-2]", gpus: "k80:2"}
queues:
  calibration: {time: 2h, default_time: 1m, pools: first}
  long: {time: 48h, default_time: 24h, pools: first, chain: {links: 3, gpu_hours: 100, credentials: hold}}
  week: {time: 100h, pools: first, through: gpuq}
"""


@pytest.fixture(scope="module")
def ruled():
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        lines = ("KillWait=5", "SchedulerParameters=batch_sched_delay=0,bf_interval=2,bf_continue,"
                               "bf_one_resv_per_job,preempt_youngest_first")
        with running_cluster(gpus=None, nodes=None, model=None, lines=lines,
                             options=("--policy", policy)) as cluster:
            yield cluster


@pytest.fixture
def home(ruled):
    with short_folder() as home:
        yield Person(ruled, home, ruled.as_user)


def test_a_run_without_a_time_begins_short_and_goes_on_until_it_is_done(home, ruled):
    chain = start(home, "endless", ["--mem", "64M"], *trainer("--aware", "--steps", "620", "--every", "1000"))
    request = json.loads((pathlib.Path(chain.folder) / "run.json").read_text())["request"]
    assert request["chain"]["first_link_seconds"] == 60
    assert request["chain"]["link_seconds"] == 48 * 3600
    assert request["chain"]["max_links"] == 3

    def shown(link):
        return ruled.slurm("squeue", "-h", "-j", chain.job(link), "-o", "%P %l")

    chain.event(1, "program_started")
    assert shown(1).split() == ["calibration", "1:00"]
    chain.event(2, "program_started", 90)
    assert shown(2).split() == ["long", "2-00:00:00"]
    wait_for(lambda: chain.show()["state"] == "ended", 60, "its end")
    assert chain.show()["exit"] == 0
    parts = chain.assert_unbroken(620)
    assert len(parts) == 2 and parts[1]["resumed"] == parts[0]["steps"][-1]


@pytest.mark.parametrize("options, said", [
    (["-t", "7d", "-p", "calibration"], "in long a run can continue beyond that: -p long"),
    (["-t", "7d", "--max-links", "4"], "--max-links: at most 3 in queue long (its policy)"),
    (["-t", "7d", "--gpu-hours", "101"], "--gpu-hours: at most 100 in queue long (its policy)"),
    (["-t", "7d", "--credentials", "run"], "--credentials: hold or fail in queue long (its policy)"),
])
def test_what_the_policy_does_not_allow_is_refused_with_the_way_out(home, options, said):
    done = home.gpuq("run", "--detach", *options, "--mem", "64M", "--", *trainer("--aware"))
    assert done.returncode == 121
    assert said in done.stderr
    assert not home.run_dirs()


def test_a_dry_run_says_what_the_policy_says(home):
    done = home.gpuq("run", "--dry-run", "-t", "1h", "--", "sleep", "1")
    assert done.returncode == 0 and done.stdout.startswith("#!")
    assert "gpuq: queue:         calibration" in done.stderr
    done = home.gpuq("run", "--dry-run", "-g", "a100:1", "--", "sleep", "1")
    assert done.returncode == 121 and not done.stdout
    assert "the policy has this refused" in done.stderr and "a100" in done.stderr


def test_a_queue_for_runs_of_gpuq_takes_no_others(home, ruled):
    plain = ["-p", "week", "--gres=gpu:1", "-t", "5", "--mem=64M"]
    with pytest.raises(AssertionError, match=r"queue week takes runs of gpuq only: gpuq run, gpuq shell \(policy.yaml:7\)"):
        ruled.slurm("sbatch", *plain, "--wrap", "sleep 1")
    done = home.gpuq("run", "-p", "week", "-t", "5", "--mem", "64M", "--", "sh", "-c", "echo $SLURM_JOB_PARTITION")
    assert (done.returncode, done.stdout) == (0, "week\n"), done.stderr
    queued = home.gpuq("run", "--detach", "-p", "week", "-t", "5", "--mem", "64M", "--", "true")
    assert queued.returncode == 0, queued.stderr
    assert home.gpuq("logs", "-f", "last").returncode == 0


def test_explain_and_why_speak_of_the_policy_in_force(home):
    said = home.gpuq("policy", "explain", "-t", "3h")
    assert said.returncode == 0, said.stderr
    assert "long" in said.stdout and ":6)" in said.stdout
    # Both nodes are full: the third run waits.
    for name in ("one", "two", "three"):
        done = home.gpuq("run", "--detach", "-J", name, "-g", 2, "-t", "5", "--mem", "64M", "--", "sleep", "60")
        assert done.returncode == 0, done.stderr
    said = wait_for(lambda: (text := home.gpuq("why", "three").stdout) and "policy for such a run" in text and text, 20, "its wait")
    assert "  queue:         calibration" in said
    assert "at most 2 h" in said
    for name in ("one", "two", "three"):
        home.gpuq("stop", name)
