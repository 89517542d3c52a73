# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs on a terminal of their own, and returning to runs: gpuq shell, run --pty, attach."""
import contextlib
import os
import re
import signal
import subprocess

import pytest

from clusters import wait_for
from runs import (PYTHON, all_gpus_taken, digest, is_waiting, nothing_left, records, terminal, the_run,
                  wait_for_handover)
from terminals import (BASH, COOKED, Tmux, a_shell, answer, attached, give_rc, in_front, leave, local_flags,
                       resize, same_page, says, whole_page)

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])


@pytest.fixture(autouse=True)
def clean(person):
    give_rc(person)
    yield
    if any(record.ended is None for record in records(person)):
        person.gpuq("stop", "last")
    nothing_left(person)


@pytest.fixture
def shell(person):
    with a_shell(person) as screen:
        yield screen


def test_a_login_shell_on_a_gpu(person):
    person.env["SHELL"] = "/bin/bash"
    with terminal(person, "shell", "-t", "10") as screen:
        screen.wait_for("Enter ~ d detaches")
        says(screen, "shopt -q login_shell && echo gpu-$CUDA_VISIBLE_DEVICES-$((40+2))", "gpu-0-42")
        says(screen, "tty; stty size", "24 80")
        screen.type("exit 7\r")
        assert screen.status() == 7
        assert local_flags(screen) == COOKED
    record = the_run(person)
    assert record.run["request"]["pty"] == {"rows": 24, "columns": 80, "shell": True}
    assert b"gpu-0-42" in record.log("out") and record.log("err") == b""


def test_size_keys_and_job_control(person, shell):
    assert local_flags(shell) == 0
    resize(shell, 50, 132)
    says(shell, "stty size", "50 132")
    shell.type("sleep 300\r")
    in_front(person, "sleep")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    says(shell, "kill %1; wait; echo gone-$?", "gone-")
    shell.type("sleep 300\r")
    in_front(person, "sleep")
    shell.type("\x03")
    says(shell, "echo status-$?", "status-130")
    says(shell, "printf 'gr\\xc3\\xb6\\xc3\\x9fe-%d\\n' 5", "größe-5")
    wait_for_handover(person)
    says(shell, "stty size; echo $((6*7))", "42")
    assert "50 132" in shell.screen.decode()
    shell.type("exit\r")
    assert shell.status() == 0


def test_detach_and_come_back(person, shell):
    says(shell, "secret=$((123*2)); echo set", "set\r\n")
    leave(shell)
    assert f"gpuq attach {the_run(person).job}" in shell.screen.decode()
    with attached(person) as screen:
        assert b"set\r\n" in screen.screen  # the last lines
        says(screen, "echo secret-$secret", "secret-246")
        screen.type("exit 9\r")
        assert screen.status() == 9


@pytest.mark.parametrize("way", ["killed", "killed before the hand-over", "closed", "told"])
def test_lost_clients(person, shell, way):
    if way != "killed before the hand-over":
        wait_for_handover(person)
    says(shell, "kept=$((7*11)); echo $kept", "77")
    if way == "closed":
        shell.hang_up()
    elif way == "told":
        os.kill(shell.client(), signal.SIGTERM)
        assert shell.status() == 129
        assert local_flags(shell) == COOKED
    else:
        os.kill(shell.client(), signal.SIGKILL)
    with attached(person) as screen:
        says(screen, "echo kept-$kept", "kept-77")
        screen.type("exit\r")
        assert screen.status() == 0


@pytest.mark.parametrize("program", ["vim -u NONE -i NONE", "less"])
def test_full_screen_programs_are_drawn_anew(person, folder_of_tmux, program):
    text = person.home / "text"
    text.write_text("".join(f"line {n} größe\n" for n in range(500)))
    tmux = folder_of_tmux
    tmux.start(person, "run", "--pty", *program.split(), str(text))
    tmux.wait_for("line 5")
    tmux.keys("100G" if "vim" in program else "100g")
    tmux.wait_for("line 99 größe")
    before = wait_for(lambda: whole_page(tmux.screen()), 10, "a page that has been drawn")
    os.kill(tmux.client(person), signal.SIGKILL)
    tmux.stop()
    tmux.start(person, "attach")
    tmux.wait_for("line 99 größe")
    same_page(tmux, before)
    tmux.keys(":q!" if "vim" in program else "q", "Enter")
    the_run(person).wait_for_end()
    tmux.wait_for("left with 0")


@pytest.fixture
def folder_of_tmux(person):
    tmux = Tmux(person.home)
    yield tmux
    tmux.stop()


def test_a_second_one_mirrors_and_take_sends_the_others_away(person, shell):
    wait_for_handover(person)  # after which the first one's size would be that of the program again
    with attached(person) as second:
        resize(second, 30, 70)
        says(second, "echo both-$((1+1)); stty size", "30 70")
        shell.wait_for("both-2")
        says(shell, "echo from-first-$((1+2))", "from-first-3")
        second.wait_for("from-first-3")
        with attached(person, "--take") as third:
            assert shell.status() == 129 and second.status() == 129
            assert b"--take" in shell.screen
            assert local_flags(shell) == COOKED
            says(third, "echo alone-$((2+2))", "alone-4")
            third.type("exit\r")
            assert third.status() == 0


def test_a_paste_of_100_kilobytes(person):
    program = ("import sys,tty,hashlib\ntty.setraw(0)\nprint('up',flush=True)\n"
               "data=sys.stdin.buffer.read(100000)\nprint(hashlib.sha256(data).hexdigest(),flush=True)")
    text = "".join(f"größe {n} ~d\r~d" for n in range(9000)).encode()[:100000]
    with terminal(person, "run", "--pty", PYTHON, "-c", program) as screen:
        screen.wait_for("up")
        os.set_blocking(screen.master, True)
        sent = 0
        while sent < len(text):
            sent += os.write(screen.master, text[sent:sent + 4000])
        screen.wait_for(digest(text))
        assert screen.status() == 0


def test_words_of_gpuq_keep_their_lines(person, shell):
    wait_for_handover(person)
    shell.screen = b""
    shell.type("\r~?")
    shell.wait_for("types ~")
    assert re.search(rb"\r\ngpuq: Enter ~ d detaches[^\n]*\r\n", shell.screen)
    shell.type("exit\r")
    assert shell.status() == 0


def test_needs_a_terminal(person):
    done = person.gpuq("run", "--pty", "true", stdin=subprocess.DEVNULL)
    assert (done.returncode, "not a terminal" in done.stderr) == (2, True)


def test_a_detached_shell_waits_for_its_owner(person):
    person.gpuq("run", "--pty", "--detach", *BASH)
    wait_for(lambda: the_run(person).event("program_started"), 30, "the shell")
    with attached(person) as screen:
        # For a moment the program sees another size, so that it redraws everything.
        wait_for(lambda: b"24 80" in answer(screen, "stty size"), 10, "the size of this terminal")
        screen.type("exit 3\r")
        assert screen.status() == 3


# Runs without a terminal

# Prints numbers until the file `go` exists.
COUNTING = (PYTHON, "-uc", "import itertools,os,sys,time\nfor n in itertools.count():\n"
            "    print(n)\n    if os.path.exists('go'): sys.exit(7)\n    time.sleep(0.02)")


def numbers(data):
    return [int(line) for line in data.split()]


def test_goes_on_at_the_first_byte_not_yet_shown(person):
    with person.start("run", *COUNTING) as first:
        wait_for(lambda: the_run(person).log().count(b"\n") > 50, 20, "output")
        first.send_signal(signal.SIGHUP)
        shown, _ = first.communicate(timeout=20)
        assert first.returncode == 129
    with person.start("attach") as second:
        wait_for(lambda: the_run(person).log().count(b"\n") > numbers(shown)[-1] + 100, 20, "more")
        second.send_signal(signal.SIGTERM)
        more, _ = second.communicate(timeout=20)
        assert second.returncode == 129
    with person.start("attach") as third:
        begun = third.stdout.read(1)
        (person.home / "go").touch()
        rest, _ = third.communicate(timeout=20)
        assert third.returncode == 7
    assert shown + more + begun + rest == the_run(person).log()


def test_after_a_client_that_was_killed_nothing_is_missing(person):
    with person.start("run", *COUNTING) as first:
        wait_for(lambda: the_run(person).log().count(b"\n") > 20, 20, "output")
        wait_for_handover(person)
        first.kill()
    (person.home / "go").touch()
    the_run(person).wait_for_end()
    done = person.gpuq("attach", "-Q", text=False)
    assert (done.returncode, done.stdout) == (7, the_run(person).log())


def test_of_a_run_that_has_ended_the_rest_is_shown(person):
    with person.start("run", "sh", "-c", "echo one; sleep 3; echo two; exit 5") as first:
        assert first.stdout.readline() == b"one\n"
        first.send_signal(signal.SIGHUP)
        assert first.wait(20) == 129
    the_run(person).wait_for_end()
    for expected in (b"two\n", b""):
        done = person.gpuq("-Q", "attach", "last", text=False)
        assert (done.returncode, done.stdout) == (5, expected)


def test_input_and_signals_are_those_of_who_started_it(person):
    with person.start("run", "sh", "-c", "read a; echo got $a; read b; echo then $b",
                      stdin=subprocess.PIPE) as first:
        wait_for(lambda: the_run(person).event("program_started"), 20, "the program")
        with person.start("attach", stdin=subprocess.PIPE) as other:
            other.stdin.write(b"not mine\n")
            other.stdin.flush()
            assert b"is ignored" in other.stderr.readline()
            first.stdin.write(b"mine\n")
            first.stdin.flush()
            assert other.stdout.readline() == b"got mine\n"
            other.send_signal(signal.SIGINT)
            assert other.wait(20) == 130
        first.stdin.write(b"this\n")
        first.stdin.flush()
        out, _ = first.communicate(timeout=20)
        assert (first.returncode, out) == (0, b"got mine\nthen this\n")


def test_ten_at_once(person):
    with contextlib.ExitStack() as everybody:
        first = everybody.enter_context(person.start("run", *COUNTING))
        wait_for(lambda: the_run(person).log().count(b"\n") > 20, 20, "output")
        others = [everybody.enter_context(person.start("-Q", "attach", "last")) for _ in range(10)]
        for other in others:
            assert other.stdout.readline() == b"0\n"
        for other in others[:3]:
            other.kill()
        (person.home / "go").touch()
        out, _ = first.communicate(timeout=20)
        assert out == the_run(person).log()
        for other in others[3:]:
            data, _ = other.communicate(timeout=20)
            assert (other.returncode, b"0\n" + data) == (7, out)


def test_a_waiting_run_is_waited_for(person):
    with contextlib.ExitStack() as until_the_end:
        with all_gpus_taken(person.cluster):
            person.gpuq("run", "--detach", "sh", "-c", "echo here; exit 6")
            wait_for(lambda: is_waiting(person.cluster), 10, "the run in the queue")
            other = until_the_end.enter_context(person.start("attach"))
            assert b"waiting" in other.stderr.readline()
        out, _ = other.communicate(timeout=60)
        assert (other.returncode, out) == (6, b"here\n")


def test_without_any_run(person):
    done = person.gpuq("attach")
    assert (done.returncode, "no run yet" in done.stderr) == (2, True)
