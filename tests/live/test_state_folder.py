# SPDX-License-Identifier: GPL-2.0-or-later
"""The state directory full, read-only or removed: the program continues, and its client gets the
complete output."""
import contextlib
import json
import os
import shutil
import subprocess

import pytest

from clusters import Person
from conftest import processes, short_folder, wait_for
from faults import (Run, assert_counted, assert_nothing_left, counting, read_available)

CLUSTER = dict(nodes=1, gpus=8, lines=["KillWait=5"])


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_left(cluster)


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


def test_a_removed_log_is_not_an_empty_one(person):
    assert person.gpuq("run", "echo", "hi").returncode == 0
    log = Run.newest(person).folder / "link-1/out.log"
    assert person.gpuq("logs", "last").stdout == "hi\n"
    log.unlink()
    done = person.gpuq("logs", "last")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"the log is gone: {log}" in done.stderr


@pytest.fixture
def small(cluster):
    """A user with a state directory on a file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    with short_folder() as home:
        one = Person(cluster, home, cluster.as_user)
        one.state.mkdir()
        mount("-t", "tmpfs", "-o", "size=1m,mode=0700", "none", one.state)
        try:
            yield one
        finally:
            # A process of a failed test may still use it.
            subprocess.run(["umount", "-l", str(one.state)], check=True)


@pytest.fixture
def failing(cluster):
    """A user with a state directory that can become read-only under open files, as after an
    error."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system that fails")
    with short_folder() as home:
        one = Person(cluster, home, cluster.as_user)
        image = home / "image"
        with open(image, "wb") as file:
            file.truncate(8 << 20)
        one.state.mkdir()
        made = subprocess.run(["mke2fs", "-q", "-t", "ext4", str(image)], check=False) if \
            shutil.which("mke2fs") else None
        if not made or made.returncode != 0 or subprocess.run(
                ["mount", "-o", "loop", str(image), str(one.state)], check=False,
                capture_output=True).returncode != 0:
            pytest.skip("no ext4 on a loop device on this machine")
        try:
            yield one, lambda: mount("-o", "remount,abort", one.state)
        finally:
            subprocess.run(["umount", "-l", str(one.state)], check=True)


def fill(path):
    """Fills the file system to the last byte."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def writers(folder):
    """Processes with a file open below `folder`."""
    found = []
    for pid in processes(lambda pid: True):
        with contextlib.suppress(OSError):
            names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            found += [pid for name in names if name.startswith(str(folder))]
    return found


def said_lines(said):
    return [line for line in said.decode().splitlines() if line.startswith("gpuq: ")]


# Two times 3 MiB of numbered lines, with a pause in between for the hand-over.
MUCH = ["sh", "-c", "seq -f 'line %.0f of many and many' 100000; sleep 3; "
        "seq -f 'line %.0f of many and many' 100000; exit 7"]
MUCH_SAYS = "".join(f"line {number} of many and many\n" for number in range(1, 100001)).encode() * 2


def test_full_while_running(small):
    with small.start("run", "--", *MUCH) as client:
        out, said = client.communicate(timeout=60)
    assert client.returncode == 7, said
    assert out == MUCH_SAYS
    assert any("log" in line and "not" in line for line in said_lines(said)), said
    run = Run.newest(small)
    # The record contains the exit status and the missing parts of the log.
    assert run.ended["status"] == 7
    lost = run.events("log_lost")
    assert lost and all(one["stream"] == "out" for one in lost)
    kept = run.output()
    for one in lost:
        assert 0 <= one["from"] < one["to"] <= len(MUCH_SAYS)
    assert kept[:lost[0]["from"]] == MUCH_SAYS[:lost[0]["from"]]
    listed = small.gpuq("ls", "--all")
    assert listed.returncode == 0 and str(run.job) in listed.stdout


def test_full_and_freed_again(small):
    """Lost output leaves a gap of known size, and later output is at its correct offset."""
    text = "seq -f 'a%05.0f' 2000; until test -e full; do sleep 0.1; done; " \
           "seq -f 'b%05.0f' 2000; until test -e freed; do sleep 0.1; done; sleep 6; " \
           "seq -f 'c%05.0f' 2000; exit 3"
    expected = "".join(f"{letter}{number:05}\n" for letter in "abc" for number in range(1, 2001))
    with small.start("run", "--", "sh", "-c", text) as client:
        run = Run.newest(small)
        run.written(2000 * 7)
        fill(small.state / "filler")
        (small.home / "full").touch()
        out = read_available(client.stdout, size=4000 * 7)
        mount("-o", "remount,size=4m", small.state)
        (small.home / "freed").touch()
        rest, said = client.communicate(timeout=60)
    assert client.returncode == 3, said
    assert (out + rest).decode() == expected
    lost = run.events("log_lost")
    kept = run.output()
    assert len(kept) == len(expected)
    whole = 0
    for begin, end in [(one["from"], one["to"]) for one in lost] + [(len(kept), len(kept))]:
        assert kept[whole:begin] == expected[whole:begin].encode()
        whole = end
    assert lost


def test_full_from_the_start(small):
    """No request is sent to Slurm for a run that cannot be recorded."""
    fill(small.state / "filler")
    done = small.gpuq("run", "--", "echo", "never")
    assert done.returncode == 125, done.stderr
    assert done.stdout == ""
    assert "No space left" in done.stderr and str(small.state) in done.stderr
    assert not small.cluster.squeue()


@pytest.mark.parametrize("age", ["young", "old", "detached"])
def test_read_only_while_running(age, failing):
    person, make_read_only = failing
    text = "echo ready; until test -e go; do sleep 0.1; done; seq -f 'line %.0f' 1000; exit 7"
    words = ["--detach"] if age == "detached" else []
    with person.start("run", *words, "--", "sh", "-c", text) as client:
        run = Run.newest(person)
        run.written(6)
        if age == "old":
            run.handed_over()
        make_read_only()
        (person.home / "go").touch()
        out, said = client.communicate(timeout=60)
    wait_for(lambda: not person.cluster.squeue(), 60, "an empty queue")
    assert person.cluster.accounted(run.job)["ExitCode"] == "7:0"
    if age != "detached":
        assert client.returncode == 7, said
        assert out.startswith(b"ready\n")
        assert_counted(out.decode().removeprefix("ready\n"), 1000)
    # Slurm knows the ending if the directory does not: it is reported as soon as the last heartbeat
    # is old.
    def told():
        return [one["exit"] for one in json.loads(person.gpuq("ls", "--json").stdout)["runs"]
                if one["kind"] == "run"]
    wait_for(lambda: told() == [7], 30, "the status in gpuq ls")


def made_read_only(folder):
    try:
        mount("-o", "remount,ro", folder)
    except subprocess.CalledProcessError:
        return False # busy
    return True


def test_read_only_before_the_job_starts(small):
    """Slurm itself cannot write the log of the batch script, and never starts it."""
    cluster = small.cluster
    with small.start("run", "-g", 8, "--", "sleep", "1000") as holder:
        held = Run.newest(small)
        held.event("program_started")
        with small.start("run", "--", "echo", "never") as client:
            wait_for(lambda: b"waiting" in read_available(client.stderr), 20, "the wait")
            # Otherwise the job would begin, and its script write, before the directory is
            # read-only.
            cluster.scontrol("update", "nodename=n0", "state=drain", "reason=test")
            holder.kill()
            cluster.slurm("scancel", held.job)
            try:
                # A poll by the client may write between the two.
                wait_for(lambda: not writers(small.state) and made_read_only(small.state), 20,
                         "a folder without writers")
            finally:
                cluster.scontrol("update", "nodename=n0", "state=resume")
            out, said = client.communicate(timeout=60)
            mount("-o", "remount,rw", small.state)
    assert client.returncode == 125, said
    assert out == b""
    assert b"state directory" in said


def test_read_only_from_the_start(small):
    small.gpuq("ls")
    mount("-o", "remount,ro", small.state)
    done = small.gpuq("run", "--", "echo", "never")
    mount("-o", "remount,rw", small.state)
    assert done.returncode == 125, done.stderr
    assert done.stdout == ""
    assert "Read-only" in done.stderr
    assert not small.cluster.squeue()


@pytest.mark.parametrize("age", ["young", "old"])
def test_removed_while_running(age, person):
    go = person.home / "go"
    text = f"echo ready; while ! test -e {go}; do sleep 0.1; done; seq -f 'line %.0f' 1000; exit 7"
    with person.start("run", "--", "sh", "-c", text) as client:
        read_available(client.stdout, size=6)
        run = Run.newest(person)
        run.written(6)
        if age == "old":
            run.handed_over()
        shutil.rmtree(person.state)
        go.touch()
        out, said = client.communicate(timeout=60)
    assert client.returncode == 7, said
    assert_counted(out.decode(), 1000)


def test_removed_while_running_without_a_client(cluster, person):
    go = person.home / "go"
    text = f"echo ready; while ! test -e {go}; do sleep 0.1; done; exit 7"
    assert person.gpuq("run", "--detach", "--", "sh", "-c", text).returncode == 0
    run = Run.newest(person)
    job = run.job
    run.written(6)
    shutil.rmtree(person.state)
    go.touch()
    wait_for(lambda: not cluster.squeue(), 60, "an empty queue")
    assert cluster.accounted(job)["ExitCode"] == "7:0"


def test_removed_while_waiting(cluster, person):
    """The node finds no run: the job fails at once, and no empty run is created."""
    with person.start("run", "-g", "8", "--", "sleep", "60") as holder:
        held = Run.newest(person)
        held.event("program_started")
        assert person.gpuq("run", "--detach", "--", "echo", "never").returncode == 0
        job = Run.newest(person).job
        shutil.rmtree(person.state)
        cluster.slurm("scancel", cluster.squeue("-t", "R")[0][0])
        holder.communicate(timeout=60)
    # Slurm itself cannot open the log of the batch script; newer releases create the directories for it, and start
    # the supervisor, which claims the link before it finds no run.
    assert cluster.accounted(job, seconds=40)["State"] == "FAILED"
    assert {path.name for path in person.state.rglob("*") if path.is_file()} <= {"slurm.log", "claim", "secret"}
