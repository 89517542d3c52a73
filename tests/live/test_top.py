# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq top on a real Slurm and a real terminal."""
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import wait_for
from clusters import is_running
from runs import all_gpus_taken, nothing_left, processes_of, terminal, the_run, words_of
from terminals import Tmux, local_flags, COOKED
from test_lookups import rpcs_of

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=3", "MinJobAge=60"])
TRIES = 'for i in 1 2 3; do echo "step $i/3 loss: $(($1 + 4 - i))"; done; [ "$1" != 9 ] || sleep 300'
COUNTING = ["sh", "-c", "n=0; while :; do n=$((n+1)); echo step $n; sleep 0.1; done"]


@pytest.fixture(autouse=True)
def clean(cluster, person):
    yield
    cluster.slurm("scancel", "-u", "root", check=False)
    nothing_left(person)
    cluster.wait_until_idle()


@pytest.fixture(name="tmux")
def _tmux(person):
    tmux = Tmux(person.home)
    yield tmux
    tmux.stop()


def start(person, name, *program):
    done = person.gpuq("run", "--detach", "-t", "10m", "-J", name, "--", *program)
    assert done.returncode == 0, done.stderr


def test_a_person_sees_stops_and_starts_runs(person, tmux):
    start(person, "train", *COUNTING)
    run = the_run(person)
    tmux.start(person, "top")
    tmux.wait_for("runs on n0")
    tmux.keys("r")
    tmux.wait_for("7 k80 in queue calibration")
    tmux.keys("Enter")
    tmux.wait_for("stdout of run")
    seen = wait_for(lambda: [line for line in tmux.screen() if "step " in line], 10, "the log")
    wait_for(lambda: seen[-1] not in tmux.screen(), 10, "the log to go on")
    tmux.keys("]")
    tmux.wait_for("processors")
    tmux.keys("]", "]", "]")
    tmux.wait_for("the program started")
    tmux.keys("Escape", "x")
    tmux.wait_for(f"stop run {run.job} (train), 1 GPU, running for ")
    tmux.paste("y\nxy")
    tmux.keys("C-c")
    tmux.wait_for("nothing done")
    tmux.paste("xy")
    tmux.wait_for("pasted text is ignored")
    assert run.ended is None
    tmux.keys("x")
    tmux.wait_for("y/N")
    tmux.keys("y")
    run.wait_for_end()
    tmux.wait_for("was stopped by")
    tmux.keys("+")
    tmux.keys("-l", "--", "-J 'a b' -t 5m -- sh -c 'echo \"$0\" said' quoted")
    tmux.keys("Enter")
    tmux.wait_for("(a b)  Log")  # selected
    tmux.keys("q")
    tmux.wait_for("left with 0")
    tmux.wait_for("restored")
    newest = json.loads(person.gpuq("ls", "--json").stdout)["runs"][0]
    assert newest["name"] == "a b"
    person.gpuq("logs", "-f", str(newest["job"]))
    assert person.gpuq("logs", str(newest["job"])).stdout == "quoted said\n"


def test_events_execute_the_command_for_notices(person, tmux):
    """That of gpuq top, also while a command has the terminal, and that of gpuq wait; both may hang."""
    told = person.home / "told"
    tell = person.home / "tell"
    tell.write_text(f"#!/bin/sh\necho \"$GPUQ_NOTICE_EVENT|$GPUQ_NOTICE_RUN|$1|$GPUQ_NOTICE_TEXT\" >>{told}\nsleep 2\n")
    tell.chmod(0o755)
    person.env["GPUQ_NOTIFY"] = f"{tell} {{text}}"
    person.env["PAGER"] = "sh -c 'cat; echo in the pager; read line </dev/tty'"
    start(person, "bad", "sh", "-c", "until [ -e go ]; do sleep 0.1; done; exit 3")
    run = the_run(person)
    tmux.start(person, "top")
    tmux.wait_for("runs on n0")
    tmux.keys("v")
    tmux.wait_for("in the pager")
    with person.start("wait", "bad") as waiting:
        time.sleep(3)  # it reports only the ends of runs that it has seen running
        (person.home / "go").touch()
        assert waiting.wait(30) == 3, "not that of the command"
    def ends():
        return [line for line in told.read_text().splitlines() if not line.startswith("start|")] if told.exists() else []
    lines = wait_for(lambda: len(ends()) == 2 and ends(), 30, lambda: f"both notices: {told.read_text()}")
    text = f"run {run.job} (bad) ended with status 3"
    assert f"failure|{run.job}|{text}|{text}" in lines, "of gpuq wait"
    other = next(line for line in lines if text not in line)
    assert other.startswith(f"failure|{run.job}|run {run.job} (bad): "), "of gpuq top"
    tmux.keys("Enter")
    tmux.wait_for(f"run {run.job} (bad): ")
    tmux.keys("q")
    tmux.wait_for("left with 0")
    wait_for(lambda: not any(str(tell) in words_of(pid) for pid in processes_of(person)), 20, "the commands to end")
    assert ends() == lines, "once"


@pytest.mark.parametrize("kind, begin, other", [("unset VTE_VERSION", "\x1b]9;", b"\x1b]777;"),
                                                ("export VTE_VERSION=7006", "\x1b]777;notify;gpuq;", b"\x1b]9;")])
def test_the_end_of_a_run_rings_the_bell_and_notifies_the_desktop(person, kind, begin, other):
    start(person, "bad;", "sh", "-c", "until [ -e go ]; do sleep 0.1; done; exit 3")
    run = the_run(person)
    with terminal(person, "top", before=f"export TERM=xterm-256color; {kind};") as screen:
        screen.wait_for("runs on n0")
        (person.home / "go").touch()
        notice = f"{begin}run {run.job} (bad,): "  # a semicolon would end the text
        screen.wait_for(notice, 30)
        screen.type("q")
        assert screen.status() == 0
    before, _, text = screen.screen.partition(notice.encode())
    assert text.partition(b"\x1b\\\a")[0].endswith(b"failed"), text[:200]
    assert notice.encode() not in text and other not in before + text, "once"


def test_the_times_of_lines_in_a_log(person, tmux):
    start(person, "train", *COUNTING)
    tmux.start(person, "top")
    tmux.wait_for("runs on n0")
    tmux.keys("Enter")
    tmux.wait_for("stdout of run")
    tmux.keys("t")
    shown = wait_for(lambda: [line for line in tmux.screen() if re.search(r"\d\d-\d\d \d\d:\d\d:\d\d step ", line)],
                     10, lambda: f"times: {tmux.screen()}")
    month, day, hour, minute, second = map(int, re.findall(r"\d+", shown[0])[:5])
    now = datetime.datetime.now()
    then = now.replace(month=month, day=day, hour=hour, minute=minute, second=second, microsecond=0)
    assert datetime.timedelta(0) <= now - then < datetime.timedelta(seconds=40)
    tmux.keys("q")
    tmux.wait_for("left with 0")


def test_runs_are_compared_started_again_and_stopped_together(person, tmux):
    for rate in ("0.1", "0.3"):
        start(person, f"try-{rate}", "sh", "-c", 'for i in 1 2 3; do echo "step $i loss: $1"; done; sleep 300', "try", rate)
    tmux.start(person, "top")
    wait_for(lambda: "\n".join(tmux.screen()).count(" running ") >= 2, 20, "both to run")
    tmux.keys("-l", "--", "/try-")  # not the jobs of the tests before, which Slurm still has
    tmux.keys("Enter")
    tmux.wait_for("2 of ")
    tmux.keys("g", "Space", "Space", "c")
    tmux.wait_for("SETTING")
    tmux.wait_for("loss 0.3")
    tmux.keys("Escape")
    tmux.wait_for("2 marked")
    tmux.keys("x")
    tmux.wait_for("stop 2 runs:")
    tmux.keys("y")
    wait_for(lambda: "\n".join(tmux.screen()).count(" stopped ") >= 2, 40, lambda: f"both to end: {tmux.screen()}")
    tmux.keys("A")
    tmux.wait_for("would start try-0.")
    tmux.keys("C-u")
    tmux.keys("-l", "--", "-J once-more -- true")
    tmux.keys("Enter")
    tmux.wait_for("once-more")
    tmux.keys(":")
    tmux.keys("-l", "--", "sto")
    tmux.keys("Tab")
    tmux.wait_for(":gpuq stop ")
    tmux.keys("C-c", "C-c")  # the first one cancels the line
    tmux.wait_for("left with 0")


def test_a_run_is_started_through_the_form(person, tmux):
    project = person.home / "project"
    project.mkdir()
    (project / "train.py").write_text("import os\nprint('ran in', os.getcwd())\n")
    (person.home / "other.py").write_text("")
    tmux.start(person, "top")
    tmux.wait_for("k80 8 of 8 free")
    tmux.keys("+", "BTab", "BTab", "BTab")
    tmux.keys("-l", "--", "pro")
    tmux.keys("Tab")
    tmux.wait_for("directory  project/_")
    tmux.keys("Up", "Up", "Up", "Up", "Up")
    tmux.keys("-l", "--", "t")
    tmux.keys("Tab")
    tmux.wait_for("command    train.py _")
    tmux.keys("Tab")
    tmux.wait_for("GPUs       _")  # it is found meanwhile that nothing can be completed
    tmux.keys("Tab")
    tmux.keys("-l", "--", "9d")
    tmux.wait_for("2 h")  # the limit of the queue
    tmux.keys("C-u")
    tmux.keys("-l", "--", "5m")
    tmux.wait_for("would start train.py: ")
    tmux.wait_for("starts at once: 8 k80 were free ")
    tmux.keys("Down")
    tmux.wait_for("calibration")
    tmux.keys("-l", "--", "cal")
    tmux.keys("Tab")
    tmux.wait_for("queue      calibration_")
    tmux.keys("Down")
    tmux.keys("-l", "--", "my form")
    tmux.keys("Enter")
    tmux.wait_for("(my form)  Log")
    tmux.keys("q")
    tmux.wait_for("left with 0")
    run = the_run(person)
    run.wait_for_end()
    assert run.run["request"]["name"] == "my form" and run.run["request"]["queue"] == "calibration"
    assert run.log().decode() == f"ran in {project}\n"


def test_a_sweep_and_its_tries(person, tmux):
    done = person.gpuq("sweep", "--detach", "--workers", "1", "-t", "10m", "-J", "scan", "--over", "lr=3,1,9", "--", "sh",
                       "-c", TRIES, "try", "{lr}")
    assert done.returncode == 0, done.stderr
    tmux.start(person, "top")
    tmux.wait_for("2 Runs")
    tmux.keys("-l", "--", "/scan")  # not the jobs of the tests before, which Slurm still has
    tmux.keys("Enter", "g")
    tmux.wait_for("2/3 done, 1")
    assert not [line for line in tmux.screen() if "scan-w1" in line]
    tmux.keys("Right")
    tmux.wait_for("scan-w1")
    tmux.keys("Left", "Enter")
    tmux.wait_for("2 of 3 tries done, 1 running")
    tmux.wait_for("best loss over lr")
    first = next(line for line in tmux.screen() if "✓" in line)
    assert first.split()[1:6] == ["✓", "1", "2", "done", "1"]  # rank, try, state, lr
    tmux.keys("Space", "Space", "c")
    tmux.wait_for("Compare")
    tmux.wait_for("scan/2 loss 2")
    tmux.keys("Escape", "g", "Enter")
    tmux.wait_for("output of try scan/2 (lr=1)")
    tmux.wait_for("step 3/3 loss: 2")
    tmux.keys("Escape", "Escape", "G", "x")
    tmux.wait_for("stop try scan/3 (lr=9), running?")
    tmux.keys("y")
    tmux.wait_for("2 of 3 tries done, 1 stopped")
    tmux.keys("q")
    tmux.wait_for("left with 0")


def test_the_mouse(person):
    for name in ("wheel-first", "wheel-second"):
        start(person, name, *COUNTING)
    with terminal(person, "top") as screen:
        screen.wait_for("(wheel-second)")
        screen.type("/wheel\r")  # not the jobs of the tests before, which Slurm still has
        screen.type("\x1b[<65;10;8M")  # the wheel, over the list: three rows, or to its end
        screen.type("\x0c")  # draws everything
        screen.wait_for("(wheel-first)")
        screen.type("q")
        assert screen.status() == 0
        assert b"\x1b[?1006;1000l" in screen.screen and b"\x1b[?2004l" in screen.screen


def has_direct_colours():
    """Whether this machine knows a terminal with 24-bit colours."""
    return subprocess.run(["infocmp", "xterm-direct"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("theme, gradients", [("256", b"38;5;"), ("truecolor", b"38:2:"), ("16", None), ("256; export NO_COLOR=1", None)])
def test_the_theme(person, theme, gradients):
    start(person, "train", "sh", "-c", "for i in 1 2 3 4; do echo step $i loss: 0.$i; done; sleep 300")
    with terminal(person, "top", before=f"export TERM=xterm-256color GPUQ_THEME={theme};") as screen:
        screen.wait_for("loss 0.4")
        screen.type("q")
        assert screen.status() == 0
        found = {sequence for sequence in (b"38;5;", b"38:2:") if sequence in screen.screen}
        if theme == "truecolor" and not has_direct_colours():
            gradients = b"38;5;"
        assert found == ({gradients} if gradients else set())


def test_why_a_run_waits_and_its_place(cluster, person, tmux):
    with all_gpus_taken(cluster):
        start(person, "first", "sleep", "300")
        start(person, "second", "sleep", "300")
        tmux.start(person, "top")
        tmux.wait_for("1 job before it")
        tmux.keys("j")
        tmux.wait_for("it is the next")
        tmux.keys("C-c")
        tmux.wait_for("left with 0")
    runs = json.loads(person.gpuq("ls", "--json").stdout)["runs"]
    assert len([run for run in runs if run["kind"] == "run"]) == 2  # Ctrl-C affected neither of them


def test_several_ask_slurm_as_often_as_one(cluster, person):
    def watch():
        with contextlib.ExitStack() as stack:
            screens = [stack.enter_context(terminal(person, "top")) for _ in range(4)]
            for screen in screens:
                screen.wait_for("k80")
            for screen in screens:
                screen.type("q")
                assert screen.status() == 0
    def once():
        printed = person.gpuq("top", "--once")
        assert printed.returncode == 0 and "k80" in printed.stdout
    first = {"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1, "REQUEST_JOB_USER_INFO": 1}
    whole = {"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1, "REQUEST_JOB_INFO": 1, "REQUEST_RESERVATION_INFO": 1}
    both = {name: first.get(name, 0) + whole.get(name, 0) for name in first | whole}
    begin = time.monotonic()
    _, rpcs = rpcs_of(cluster, watch)
    # The jobs of all users are queried a few seconds later, and nodes every half a minute; four terminals need that long
    # on a busy machine.
    again = int((time.monotonic() - begin) / 30)
    assert all(count <= both.get(name, 0) + again for name, count in rpcs.items()), rpcs
    wait_for(lambda: rpcs_of(cluster, once)[1] == {}, 20, "data that is recent enough")


def test_a_silent_controller_is_said_and_nothing_is_lost(cluster, person, tmux):
    start(person, "train", *COUNTING)
    the_run(person)
    tmux.start(person, "top")
    tmux.wait_for("runs on n0")
    tmux.wait_for("7 of 8 free")
    with cluster.stopped("slurmctld"):
        tmux.keys("r")
        tmux.keys("Enter")
        tmux.wait_for("step ")
        tmux.keys("Escape")
        tmux.wait_for("k80")
    tmux.keys("q")
    tmux.wait_for("left with 0")


def test_a_closed_window_leaves_no_process(person):
    with terminal(person, "top") as screen:
        screen.wait_for("k80")
        client = screen.client()
        screen.hang_up()
        wait_for(lambda: not is_running(client), 10, "gpuq top to go")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_the_terminal_is_given_back_by_whoever_dies(person, number):
    with terminal(person, "top") as screen:
        screen.wait_for("k80")
        assert local_flags(screen) != COOKED
        os.kill(screen.client(), number)
        assert screen.status() == 128 + number
        assert local_flags(screen) == COOKED
        assert b"\x1b[?1049l" in screen.screen and b"\x1b[?2004l" in screen.screen


def test_terminals_that_it_can_not_draw_on(person):
    done = person.gpuq("top", stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "gpuq top --once" in done.stderr
    with terminal(person, "top", before="TERM=nosuch") as screen:
        assert screen.status() == 2
        assert b"'nosuch'" in screen.screen
    with terminal(person, "top", before="export TERM=linux LC_ALL=C.UTF-8;") as screen:
        screen.wait_for("k80")  # the font of this console has letters and no charts
        screen.type("q")
        assert screen.status() == 0
        drawn = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\)0|\x0f", b"", screen.screen)
        assert b"+= 2 Runs ==" in drawn and not re.search(rb"[\x80-\xff]", drawn), drawn


def test_sizes_come_and_go(person, tmux):
    person.env |= {"LINES": "24", "COLUMNS": "80"}  # as by resize(1): they are not followed
    start(person, "train", *COUNTING)
    the_run(person)
    tmux.start(person, "top")
    tmux.wait_for("runs on n0")
    for columns, rows in ((1, 1), (300, 100), (40, 10), (2, 50), (120, 1), (80, 24)):
        subprocess.run([*tmux.words, "resize-window", "-x", str(columns), "-y", str(rows)], check=True)
        if columns == 300:
            tmux.wait_for("stdout of run")  # below the list
            tmux.wait_for("│step ")
    tmux.wait_for("Enter open")
    tmux.wait_for("runs on n0")
    tmux.keys("q")
    tmux.wait_for("restored")
