# SPDX-License-Identifier: GPL-2.0-or-later
"""The log of commands (-v, GPUQ_LOG) and of the processes in a job."""
import io
import re
import tarfile

from runs import the_run

CLUSTER = dict(nodes=1, gpus=2)
SECRET = "hf_0123456789abcdefghijklmnopqrstuvwx"


def log_of(person):
    return the_run(person).dir / "link-1" / "supervisor.log"


def test_nothing_is_logged_unless_requested(person):
    done = person.gpuq("run", "-t", "2m", "sh", "-c", "echo out")
    assert done.returncode == 0 and done.stdout == "out\n"
    assert not re.search(r"(debug|info) ", done.stderr), done.stderr
    assert not log_of(person).exists()


def test_each_request_to_slurm_with_its_duration(person):
    person.cluster.wait_until_idle()  # The outputs are compared.
    quiet = person.gpuq("-v", "free")
    loud = person.gpuq("free", "-vv")
    assert "slurm: " not in quiet.stderr
    assert re.search(r"gpuq: [0-9:.]+ debug slurm: nodes: [0-9.]+ ms\n", loud.stderr), loud.stderr
    assert loud.stdout == person.gpuq("free").stdout


def test_a_failed_request_is_logged_with_its_reason(person, cluster):
    with cluster.stopped("slurmctld"):
        done = person.gpuq("free", "-vv")
    assert re.search(r"debug slurm: partitions: [0-9.]+ ms\n", done.stderr), done.stderr
    assert re.search(r"debug slurm: can't ask Slurm for its partitions: code \d+ \(.*timed out", done.stderr), done.stderr


def test_a_part_alone(person):
    done = person.gpuq("free", env={"GPUQ_LOG": "off,slurm=debug"})
    assert "debug slurm: " in done.stderr and "command: " not in done.stderr


def test_a_level_that_is_unknown_stops_nothing(person):
    done = person.gpuq("free", env={"GPUQ_LOG": "loud"})
    assert done.returncode == 0
    assert "GPUQ_LOG: unknown level 'loud'" in done.stderr


def test_sampler_and_ranks_log_into_the_file_of_the_run(person):
    done = person.gpuq("run", "-t", "2m", "--tasks-per-node", "2", "--", "sleep", "2", env={"GPUQ_LOG": "debug"})
    assert done.returncode == 0, done.stderr
    text = log_of(person).read_text()
    for process in ("supervisor", "sampler", "rank-0", "rank-1"):
        assert f" {process}[" in text, text


def test_the_processes_of_a_job_log_without_secrets(person):
    done = person.gpuq("run", "-t", "2m", "--env", f"HF_TOKEN={SECRET}", "sh", "-c", "echo secret output $HF_TOKEN",
                       env={"GPUQ_LOG": "trace"})
    assert done.returncode == 0
    text = log_of(person).read_text()
    assert log_of(person).stat().st_mode & 0o777 == 0o600
    assert re.search(r"Z info supervisor\[\d+\] supervisor: journal: .*\"event\":\"program_started\"", text), text
    assert SECRET not in text and "secret output" not in text
    assert SECRET not in done.stderr
    archive = person.gpuq("report", "-o", "-", "last", text=False).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        name = next(name for name in tar.getnames() if name.endswith("link-1/supervisor.log"))
        assert b"journal" in tar.extractfile(name).read()
