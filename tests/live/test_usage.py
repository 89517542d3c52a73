# SPDX-License-Identifier: GPL-2.0-or-later
"""The GPU use that runs record at their end, and its evaluation by `gpuq usage`."""
import contextlib
import json
import re
import shutil
import time

import pytest

from clusters import BUILT, short_folder, wait_for
from runs import PYTHON, the_run

# Slurm's default: a note not written by then is lost with its job, and a busy machine has needed more than 5 s.
CLUSTER = dict(nodes=1, gpus=2, lines=["KillWait=30"])
TESLA = "gpus=2\ntotal=12240658432 used=10952166604 util=87 power=143000 temp=61 sm=875 mem=2505\n"
NOTE = re.compile(r"(gpuq:[^ ]+) busy=(\d+) idle=(\d+) unknown=(\d+)")


@pytest.fixture
def driver():
    """Variables to add to a run's environment for a driver that simulates TESLA."""
    with short_folder() as folder:
        shutil.copytree(BUILT / "fake_nvml_new", folder / "new")
        (folder / "new").chmod(0o755)
        (folder / "scenario").write_text(TESLA)
        yield {"LD_LIBRARY_PATH": str(folder / "new"),
               "GPUQ_FAKE_NVML": str(folder / "scenario")}


def sleep(seconds):
    return PYTHON, "-c", f"import time; time.sleep({seconds})"


def comment_of(cluster, job):
    row = cluster.accounted(job, fields=("JobIDRaw", "Comment", "Elapsed", "ElapsedRaw"))
    return row["Comment"], int(row["ElapsedRaw"])


def noted(cluster, job):
    """Waits for the note, which may be written a moment after the end."""
    found = wait_for(lambda: NOTE.fullmatch(comment_of(cluster, job)[0]), 10,
                     lambda: f"a note, not {comment_of(cluster, job)[0]}")
    return [int(number) for number in found.groups()[1:]], comment_of(cluster, job)[1]


def usage(person, *words):
    done = person.gpuq("usage", "--from", "1h", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", ["here", "detached"])
def test_a_run_notes_what_its_gpus_did(cluster, person, driver, how):
    before = usage(person)["total"]
    rpcs = cluster.rpcs().get("REQUEST_UPDATE_JOB", 0)
    words = ("run", "--gpus", "2", *(["--detach"] if how == "detached" else []), "--", *sleep(6))
    done = person.gpuq(*words, env=driver)
    assert done.returncode == 0, done.stderr
    the_run(person).wait_for_end()
    cluster.wait_until_idle()
    job = the_run(person).job
    (busy, idle, unknown), elapsed = noted(cluster, job)
    assert cluster.rpcs().get("REQUEST_UPDATE_JOB", 0) == rpcs + 1
    # For two GPUs, in seconds; Slurm also counts the moments before and after.
    assert 2 * (elapsed - 3) <= busy + idle + unknown <= 2 * elapsed + 2
    assert busy >= 4 and idle >= 1 and busy > idle
    told = usage(person)["total"]
    for document in (told, before):
        assert (document["busy_gpu_seconds"] + document["idle_gpu_seconds"] +
                document["unknown_gpu_seconds"] == document["gpu_seconds"])
    assert told["busy_gpu_seconds"] == before["busy_gpu_seconds"] + busy
    assert told["idle_gpu_seconds"] == before["idle_gpu_seconds"] + idle
    assert told["gpu_seconds"] == before["gpu_seconds"] + 2 * elapsed


@pytest.mark.parametrize("pause", [0, 1.5])
def test_a_run_that_slurm_has_ended_has_its_note_in_the_record(cluster, person, driver, pause):
    """slurmctld changes no comment of a job that it considers over: slurmdbd does, once it has learned of the end."""
    with person.start("run", "--", *sleep(60), env=driver) as child:
        wait_for(lambda: the_run(person).event("program_started"), 40, "the program")
        time.sleep(5)
        with cluster.stopped("slurmdbd") if pause else contextlib.nullcontext():
            assert person.gpuq("stop", "last").returncode == 0
            time.sleep(pause)
        child.wait(20)
    the_run(person).wait_for_end()
    cluster.wait_until_idle()
    (busy, idle, unknown), elapsed = noted(cluster, the_run(person).job)
    assert busy >= 2 and busy + idle + unknown <= elapsed + 2


def test_a_short_run_and_one_without_a_driver_note_nothing(cluster, person, driver):
    rpcs = cluster.rpcs().get("REQUEST_UPDATE_JOB", 0)
    assert person.gpuq("run", "--", *sleep(0.2), env=driver).returncode == 0
    first = the_run(person).job
    cluster.wait_until_idle()
    assert re.fullmatch(r"gpuq:\S+", comment_of(cluster, first)[0])
    shutil.rmtree(person.state / "gpuq" / "runs")
    assert person.gpuq("run", "--", *sleep(4)).returncode == 0
    cluster.wait_until_idle()
    assert re.fullmatch(r"gpuq:\S+", comment_of(cluster, the_run(person).job)[0])
    assert cluster.rpcs().get("REQUEST_UPDATE_JOB", 0) == rpcs


def test_a_dead_controller_holds_up_no_end(cluster, person, driver):
    """The note is lost, and the run ends normally."""
    with person.start("run", "--", *sleep(5), env=driver) as child:
        wait_for(lambda: person.run_dirs() and the_run(person).job, 20, "the job")
        time.sleep(2)
        with cluster.stopped("slurmctld"):
            begin = time.monotonic()
            assert child.wait(20) == 0
            assert time.monotonic() - begin < 10
            the_run(person).wait_for_end()
    cluster.wait_until_idle()


POLICY = """version: 1
pools:
  all: {nodes: ALL, gpus: "k80:2"}
queues:
  calibration: {time: 2h, pools: all, wait: {p95: 1m, max: 1m}}
"""


def test_a_missed_wait_is_an_exit_status_and_a_metric(cluster, person):
    """A job that waits longer than the policy's target misses the target before it starts."""
    (person.home / "policy.yaml").write_text(POLICY)

    def targets(*words):
        return person.gpuq("usage", "--targets", "--policy", "policy.yaml", *words)

    assert person.gpuq("run", "--", "true").returncode == 0
    cluster.accounted(the_run(person).job)
    done = targets()
    assert done.returncode == 0, done.stderr
    (queue,) = json.loads(targets("--json").stdout)["queues"]
    assert queue["jobs"] >= 1 and queue["p95_seconds"] is None
    assert {one["figure"]: one["met"] for one in queue["targets"]}["max"] is True

    withdrawn = json.loads(targets("--json").stdout)["withdrawn"]
    jobs = [cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:2", "-t", "10",
                          "--wrap", "sleep 300").strip() for _ in range(2)]
    try:
        wait_for(lambda: json.loads(targets("--json").stdout)["queues"][0]["waiting"] == 1, 30)
        assert targets().returncode == 0
        time.sleep(61)
        missed = targets()
        assert missed.returncode == 1, missed.stderr
        assert "MISSED" in missed.stdout and ">= 1 min" in missed.stdout
        assert "1 job still waits" in missed.stderr
        metrics = targets("--prometheus")
        assert metrics.returncode == 1
        line = 'gpuq_queue_wait_target_met{queue="calibration",quantile="1"} 0'
        assert line in metrics.stdout.splitlines()
    finally:
        for job in reversed(jobs):
            cluster.slurm("scancel", job)
    cluster.accounted(jobs[1])
    assert json.loads(targets("--json").stdout)["withdrawn"] == withdrawn + 1
    assert targets().returncode == 0
    cluster.wait_until_idle()
