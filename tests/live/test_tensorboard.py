# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq tensorboard, with a stand-in for TensorBoard (tensorboard_stand_in)."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.request

import pytest

from clusters import account, as_kwargs, free_port, processes, short_folder, wait_for
from logins import login_host
from runs import words_of

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=2"])
STAND_IN = pathlib.Path(__file__).resolve().parent / "tensorboard_stand_in"
# Writes an event file, and another one in a second directory as soon as it may.
PROGRAM = """
mkdir -p logs && printf first > logs/events.out.tfevents.$(date +%s).n0.1.0
until [ -e more ]; do sleep 0.1; done
mkdir -p logs/validation && printf second > logs/validation/events.out.tfevents.$(date +%s).n0.1.1
sleep $1
"""


@pytest.fixture
def environment():
    return {"PYTHONPATH": str(STAND_IN), "PYTHONDONTWRITEBYTECODE": "1"}


def train(person, name, seconds):
    """A run in a directory of its own."""
    folder = person.home / name
    folder.mkdir()
    (folder / "train.sh").write_text(PROGRAM)
    done = person.gpuq("run", "--detach", "-J", name, "-t", "10", "--", "sh", "train.sh", seconds, cwd=folder)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: list(folder.glob("logs/events*")), 30, f"the event file of {name}")
    return folder


def may_write_more(folder):
    (folder / "more").touch()
    wait_for(lambda: list(folder.glob("logs/validation/events*")), 30, "the second event file")


def boards():
    """Processes of TensorBoard, its gate, and gpuq's at this end."""
    def is_board(pid):
        words = words_of(pid)  # read once: the process may end
        return (any("serve.py" in word for word in words[:2]) or "tensorboard" in words[1:4] or
                len(words) > 2 and words[2].startswith("gpuq-tensorboard-"))

    return processes(is_board)


@contextlib.contextmanager
def board(start, *words, env):
    """The port of the page, while gpuq runs."""
    port = free_port()
    with start("tensorboard", "--port", str(port), *words, env=env) as child:
        line = child.stdout.readline().decode()
        assert line == f"http://localhost:{port}/\n", line + child.stderr.read().decode()
        yield port, child
        assert child.poll() is None, child.stderr.read().decode()
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 130
    wait_for(lambda: not boards(), 20, lambda: f"the end of {[words_of(pid) for pid in boards()]}")


def page(port):
    """The event files and their sizes."""
    with urllib.request.urlopen(f"http://localhost:{port}/", timeout=30) as answer:
        return json.load(answer)


def sizes(files):
    """`RUN/directory`: bytes; without ids and names of files."""
    return {re.sub(r"^\S+ \((\w+)\)/(.*)/events\.[^/]*$", r"\1/\2", name): size for name, size in files.items()}


def test_shows_the_event_files_of_running_and_ended_runs(person, environment):
    old = train(person, "old", "0")
    may_write_more(old)
    person.gpuq("wait", "old")
    new = train(person, "new", "600")
    (new / "logs" / "events.out.tfevents.1500000000.n0.1.0").write_text("of an earlier program")
    assert person.gpuq("run", "--detach", "-J", "quiet", "-t", "10", "--", "sleep", "600").returncode == 0
    with board(person.start, "quiet", "old", "new", env=environment) as (port, _):
        assert sizes(page(port)) == {"old/logs": 5, "old/logs/validation": 6, "new/logs": 5}
        person.gpuq("stop", "quiet")  # it has written none
        person.gpuq("wait", "quiet")
        may_write_more(new)
        wait_for(lambda: sizes(page(port)).get("new/logs/validation") == 6, 20, lambda: str(page(port)))
        # What another user of this machine can do: neither the page nor the socket is open to them.
        code = f"import urllib.request\nurllib.request.urlopen('http://localhost:{port}/', timeout=10)"
        if os.geteuid() == 0:
            done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=False,
                                  **as_kwargs(account("gpuq-ben")))
            assert done.returncode != 0 and "first" not in done.stdout
        served, = processes(lambda pid: any("serve.py" in word for word in words_of(pid)[:2]))
        folder = pathlib.Path(words_of(served)[1]).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        tcp = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
        assert f"pid={served}," not in tcp
    assert not folder.exists()
    assert list(old.glob("logs/events*"))  # the links were removed, not the files
    person.gpuq("stop", "new")


def test_a_killed_command_is_started_again(person, environment):
    def carriers():
        return processes(lambda pid: "--carry" in words_of(pid) and "killed" in words_of(pid))

    def is_shown():
        with contextlib.suppress(OSError, ValueError):
            return sizes(page(port)) == {"killed/logs": 5}
        return False

    train(person, "killed", "600")
    with board(person.start, "killed", env=environment) as (port, _):
        killed, = carriers()
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: carriers() not in ([], [killed]), 20, "another command")
        wait_for(is_shown, 30, "the page again")
    person.gpuq("stop", "killed")


def test_without_tensorboard_or_event_files_it_says_so(person, environment):
    done = person.gpuq("run", "--", "true")
    assert done.returncode == 0
    none = person.gpuq("tensorboard", "last", env=environment)
    assert none.returncode == 2 and "has written no event files of TensorBoard" in none.stderr
    train(person, "some", "600")
    missing = person.gpuq("tensorboard", "some", env={"PYTHONPATH": "/nonexistent"})
    assert missing.returncode == 127
    assert "TensorBoard: not found" in missing.stderr and "pip install tensorboard" in missing.stderr
    assert person.gpuq("tensorboard").returncode == 2
    assert person.gpuq("tensorboard", "no-such-run", env=environment).returncode == 2
    person.gpuq("stop", "some")
    wait_for(lambda: not boards(), 20, lambda: f"the end of {[words_of(pid) for pid in boards()]}")


def test_on_the_laptop(person, environment):
    train(person, "far", "600")
    with short_folder() as folder, login_host(person, folder, there=environment) as login:
        with board(login.begin, "far", env=None) as (port, _):
            assert sizes(page(port)) == {"far/logs": 5}
    person.gpuq("stop", "far")
