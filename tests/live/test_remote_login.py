# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host` on a host that asks questions at login (a second factor, a password), and when a key agent or a shared
connection that made questions unnecessary is gone."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from clusters import short_folder, wait_for
from faults import assert_counted, of_soak
from logins import login_host
from runs import Terminal, nothing_left, the_run
from terminals import COOKED, Tmux, local_flags, same_page, whole_page, without_own_lines

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
METHODS = {"second factor": ["AuthenticationMethods publickey,keyboard-interactive", "KbdInteractiveAuthentication yes"],
           "password": ["AuthenticationMethods password", "PasswordAuthentication yes"]}

# Prints numbered lines, and each key received in hexadecimal.
PROGRAM = """
import os, select, sys, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
n = 0
while True:
    if select.select([0], [], [], 0.02)[0]:
        keys = os.read(0, 4096)
        os.write(1, b"".join(b"<%02x>" % key for key in keys))
        if b"q" in keys:
            break
    n += 1
    os.write(1, b"line %d\\r\\n" % n)
"""


@pytest.fixture
def folder():
    if os.geteuid() != 0:
        pytest.skip("a PAM service of its own needs root")
    with short_folder() as one:
        yield one


class Codes:
    """A PAM service that accepts one code and records all codes given."""

    def __init__(self, folder):
        self.tried, self.right, pam = folder / "tried", "code-7", folder / "pam"
        pam.mkdir()
        check = folder / "check"
        check.write_text(f"#!/bin/sh\ncode=$(tr -d '\\0')\necho \"$code\" >>{self.tried}\n[ \"$code\" = {self.right} ]\n")
        check.chmod(0o755)
        (pam / "sshd").write_text(f"auth required pam_exec.so quiet expose_authtok {check}\n"
                                  "auth required pam_permit.so\naccount required pam_permit.so\n"
                                  "session required pam_permit.so\n")
        self.around = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                       f'mount --bind {pam} /etc/pam.d && exec "$@"', "sh"]

    def given(self):
        return self.tried.read_text().split() if self.tried.exists() else []


@contextlib.contextmanager
def guarded(person, folder, method="second factor", **options):
    codes = Codes(folder)
    with login_host(person, folder, around=codes.around,
                    server=["UsePAM yes", "PermitRootLogin yes", "MaxAuthTries 20", *METHODS[method]], **options) as login:
        login.codes = codes
        yield login
        for pid in login.sessions():  # they wait for a client that will not return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        nothing_left(person)


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login):
        self.home = login.folder
        self.env = login.env
        self.cluster = login.person.cluster


@contextlib.contextmanager
def terminal(login, *words, **options):
    with contextlib.closing(Terminal(Laptop(login), "--host", "login", *words, **options)) as screen:
        wait_for(lambda: screen.read(0.1) and b"assword:" in screen.screen, 30, "the first question")
        screen.type(login.codes.right + "\r")
        yield screen


def without_own(screen):
    """The program's output, without its echo of keys."""
    text = without_own_lines(screen.screen.partition(b"ready\r\n")[2] or screen.screen)  # attach may begin later
    return re.sub(rb"\x1b\\|\x1b\[\?2026l|<[0-9a-f]{2}>", b"", text)


def numbered(text):
    return [int(number) for number in re.findall(rb"line (\d+)\r\n", text)]


def cut_and_answer(login, screen, cuts_before):
    """Cuts the connection and logs in again: asked only after Enter, and once."""
    seen = len(screen.screen)

    def since():
        return screen.screen[seen:]
    login.cut()
    wait_for(lambda: screen.read(0.05) and b"Enter tries" in since(), 20, lambda: f"a line: {since()}")
    assert b"asks: " not in since()
    screen.type("\r")
    wait_for(lambda: screen.read(0.05) and b"login asks: " in since(), 20, lambda: f"a question: {since()}")
    assert login.codes.given() == [login.codes.right] * (cuts_before + 1)  # none before the answer
    screen.type(login.codes.right + "\r")


def words_for(login, way, folder):
    """The arguments of a client on a terminal, for `way`. PROGRAM is what it shows; for logs, numbered lines."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    if way == "run":
        return "run", "--pty", sys.executable, program
    if way == "attach":
        assert login.person.gpuq("run", "--detach", "--pty", sys.executable, program).returncode == 0
        return "attach", "last"
    if way == "logs":
        script = "i=0; while [ ! -e enough ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
        assert login.person.gpuq("run", "--detach", "sh", "-c", script).returncode == 0
        return "logs", "-f", "--to", login.folder / "copy", "last"
    return "shell", "-t", "10"


@pytest.mark.parametrize("way, method", [("run", "second factor"), ("attach", "second factor"), ("shell", "second factor"),
                                         ("run", "password")])
def test_cuts_of_a_terminal_and_a_question_for_each(person, folder, way, method):
    cuts = of_soak(20, 3)
    with guarded(person, folder, method) as login:
        with terminal(login, *words_for(login, way, folder)) as screen:
            if way == "shell":
                screen.wait_for("# ", 30)
                screen.type(f"exec {sys.executable} {folder}/program.py\r")
            screen.wait_for("\r\nline ", 30)
            keys = "abcdefghijklmnoprstuvwxyz"[:cuts]
            for i, key in enumerate(keys):
                seen = len(screen.screen)
                cut_and_answer(login, screen, i)
                wait_for(lambda: screen.read(0.05) and b"\r\nline " in screen.screen[seen:].rpartition(b"asks: ")[2], 20,
                         lambda: f"more of the program: {screen.screen[seen:]}")
                screen.type(key)
                wait_for(lambda: screen.read(0.05) and b"<%02x>" % ord(key) in screen.screen[seen:], 20, "a key")
            screen.type("q")
            assert screen.status() == 0 and local_flags(screen) == COOKED
            assert screen.screen.count(b"login asks: ") == cuts
            assert login.codes.right.encode() not in screen.screen.partition(b"line ")[2]
            lines = numbered(without_own(screen))
            first = lines[0] if way == "attach" else 1  # attach begins with the screen as it is by then
            assert lines == list(range(first, first + len(lines)))
            typed = bytes(int(key, 16) for key in re.findall(rb"<([0-9a-f]{2})>", screen.screen))
            assert typed == keys.encode() + b"q"
        assert login.codes.given() == [login.codes.right] * (cuts + 1)


def test_cuts_of_a_copy_of_a_log_and_a_question_for_each(person, folder):
    """Not in raw mode: the terminal keeps the shell's modes, and keys are discarded."""
    cuts = of_soak(20, 3)
    with guarded(person, folder) as login:
        copy = login.folder / "copy"
        with terminal(login, *words_for(login, "logs", folder)) as screen:
            for i in range(cuts):
                wait_for(lambda: copy.exists() and copy.stat().st_size > 100, 20, "a log")
                screen.type("\r")
                cut_and_answer(login, screen, i)
                size = copy.stat().st_size
                wait_for(lambda: copy.stat().st_size > size + 100, 20, "more of the log")
                assert local_flags(screen) == COOKED
            (person.home / "enough").touch()
            assert screen.status() == 0 and screen.screen.count(b"login asks: ") == cuts
            assert_counted(copy.read_text())
        assert login.codes.given() == [login.codes.right] * (cuts + 1)


@pytest.mark.parametrize("program", ["vim -u NONE -i NONE", "less"])
def test_a_full_screen_program_is_redrawn_after_the_question(person, folder, program):
    text = person.home / "text"
    text.write_text("".join(f"line {n} größe\n" for n in range(500)))
    tmux = Tmux(folder)
    with guarded(person, folder) as login:
        try:
            tmux.start(Laptop(login), "--host", "login", "run", "--pty", *program.split(), str(text))
            tmux.wait_for("assword:")
            tmux.keys(login.codes.right, "Enter")
            tmux.wait_for("line 5")
            tmux.keys("100G" if "vim" in program else "100g")
            tmux.wait_for("line 99 größe")
            before = wait_for(lambda: whole_page(tmux.screen()), 10, "a page that has been drawn")
            for i in range(3):
                login.cut()
                tmux.wait_for("Enter tries")
                tmux.keys("Enter")
                tmux.wait_for("login asks: ")
                tmux.keys(login.codes.right, "Enter")
                # The page above the question is unchanged: only the answer's arrival shows that the login goes on.
                wait_for(lambda: len(login.codes.given()) == i + 2, 20, "an answer")
                same_page(tmux, before)
                wait_for(lambda: "asks: " not in "\n".join(tmux.screen()), 10, lambda: f"no question: {tmux.screen()}")

            def left():
                """What is typed before the session is connected again is discarded."""
                tmux.keys(":q!" if "vim" in program else "q", "Enter")
                time.sleep(0.5)
                return "left with 0" in "\n".join(tmux.screen())
            wait_for(left, 20, lambda: f"the end of {program}: {tmux.screen()}")
            tmux.wait_for("restored")
        finally:
            tmux.stop()
        assert login.codes.given() == [login.codes.right] * 4


def test_what_is_typed_is_the_programs_or_nobodys_and_no_answer(person, folder):
    with guarded(person, folder) as login:
        with terminal(login, "run", "--pty", sys.executable, "-c", PROGRAM) as screen:
            screen.wait_for("line 3\r\n", 30)
            frozen = login.freeze()
            screen.type("kept\r")  # before the loss is detected
            screen.wait_for("Enter tries", 30)
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            screen.type_until_read("blindly\r")  # for the program, and ended by Enter: not for gpuq
            time.sleep(1.2)
            assert b"login asks: " not in screen.screen
            screen.type("\rlost\r")
            screen.wait_for("login asks: ", 20)
            assert login.codes.given() == [login.codes.right]
            screen.type("wrong\x7f\x7f\x15" + "no\r")
            screen.wait_for("refused the login: Enter tries again", 20)
            assert login.codes.given() == [login.codes.right, "no"]
            time.sleep(0.5)
            assert login.codes.given() == [login.codes.right, "no"]  # once
            screen.screen = screen.screen.replace(b"login asks: ", b"")
            screen.type("\r")
            screen.wait_for("login asks: ", 20)
            screen.type("\x1b[200~" + login.codes.right + "\x1b[201~\r")  # pasted
            wait_for(lambda: screen.read(0.1) and b"<6b><65><70><74><0d>" in re.sub(rb"\r\n|line \d+", b"", screen.screen), 20,
                     lambda: f"what was typed first: {screen.screen[-500:]}")
            screen.type("q")
            assert screen.status() == 0
            typed = bytes(int(key, 16) for key in re.findall(rb"<([0-9a-f]{2})>", screen.screen))
            assert typed == b"kept\rq"


def test_ctrl_c_at_the_question_and_at_the_wait(person, folder):
    with guarded(person, folder) as login:
        with terminal(login, "run", "--pty", sys.executable, "-c", PROGRAM) as screen:
            screen.wait_for("line 3\r\n", 30)
            login.cut()
            screen.wait_for("Enter tries", 20)
            screen.type("\r")
            screen.wait_for("login asks: ", 20)
            screen.screen = b""
            screen.type("half\x03")
            screen.wait_for("Enter tries again", 20)
            screen.screen = b""
            screen.type("\x03")
            assert screen.status() == 130
            assert f"gpuq --host login attach {the_run(person).job}" in screen.screen.decode()
            assert local_flags(screen) == COOKED
        assert login.codes.given() == [login.codes.right]
        assert not the_run(person).ended
        assert person.gpuq("stop", "last").returncode == 0


def agent(folder):
    done = subprocess.run(["ssh-agent", "-s", "-a", str(folder / "agent")], check=True, capture_output=True, text=True)
    return int(re.search(r"SSH_AGENT_PID=(\d+)", done.stdout)[1])


def test_without_a_terminal_it_waits_for_a_key(person):
    """The agent's key has expired; once it is back, the session continues at its byte."""
    with short_folder() as folder, login_host(person, folder) as login:
        pid = agent(folder)
        try:
            login.env["SSH_AUTH_SOCK"] = str(folder / "agent")
            hidden = folder / "hidden"
            (folder / "user_key").rename(hidden)

            def add(*words):
                subprocess.run(["ssh-add", "-q", *words], env=login.env, check=True, stdin=subprocess.DEVNULL)
            add(str(hidden))
            script = "i=0; while [ ! -e enough ]; do i=$((i+1)); echo line $i; sleep 0.05; done; exit 7"
            errors = folder / "errors"
            with errors.open("wb") as err, (folder / "out").open("wb") as out, login.begin(
                    "run", "sh", "-c", script, stdout=out, stderr=err) as child:
                wait_for(lambda: (folder / "out").read_bytes().count(b"\n") > 3, 30, "the run")
                for outage in (1, 2):
                    add("-D")
                    login.cut()
                    wait_for(lambda: errors.read_bytes().count(b"needs an interactive login") == outage, 20, lambda: errors.read_bytes())
                    assert child.poll() is None
                    size = (folder / "out").stat().st_size
                    add(str(hidden))
                    wait_for(lambda: (folder / "out").stat().st_size > size + 50, 30, lambda: errors.read_bytes())
                (person.home / "enough").touch()
                assert child.wait(30) == 7
            lines = (folder / "out").read_text().splitlines()
            assert lines == [f"line {i}" for i in range(1, len(lines) + 1)]
            assert errors.read_bytes().count(b"needs an interactive login") == 2  # once for each outage
            # The session ends if no key comes back.
            with login.begin("run", "sh", "-c", "echo begun; exec sleep 600", env={"GPUQ_HOST_PATIENCE": "3s"}) as child:
                assert child.stdout.readline() == b"begun\n"
                add("-D")
                login.cut()
                assert child.wait(20) == 121
                said = child.stderr.read().decode()
                assert "no login succeeded within 3 s" in said and "attach" in said
            assert person.gpuq("stop", "last").returncode == 0
        finally:
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not login.sessions(), 20, lambda: f"nothing left there: {login.sessions()}")
        nothing_left(person)
