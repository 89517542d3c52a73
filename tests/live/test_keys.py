# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys and modes of a terminal with programs that request another encoding: gpuq's own keys are recognised in each one,
and modes set by a program are reset when its client leaves and set again for the next one."""
import contextlib
import os
import signal
import sys

import pytest

from clusters import short_folder, wait_for
from logins import login_host
from runs import Terminal, nothing_left, terminal
from terminals import COOKED, local_flags

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])

# Writes its argument, and then the input of each read in hexadecimal.
PROGRAM = ("import os, sys, tty; tty.setraw(0); os.write(1, bytes.fromhex(sys.argv[1]) + b'ready ')\n"
           "while (keys := os.read(0, 4096)) and b'q' not in keys: os.write(1, b'<' + keys.hex().encode() + b'>')\n")


def program(modes):
    return [sys.executable, "-c", PROGRAM, modes.encode().hex()]


# The sequence that sets the encoding; Enter, ~, d and Ctrl-C as a terminal then sends them; the sequence that resets
# it.
ENCODINGS = {
    "legacy": ("", "\r", "~", "d", "\x03", ""),
    "modifyOtherKeys 2": ("\x1b[>4;2m", "\r", "~", "d", "\x1b[27;5;99~", "\x1b[>4m"),
    "formatOtherKeys": ("\x1b[>4;1f\x1b[>4;2m", "\r", "~", "d", "\x1b[99;5u", "\x1b[>4f\x1b[>4m"),
    "kitty 1": ("\x1b[>1u", "\r", "~", "d", "\x1b[99;5u", "\x1b[<u"),
    "kitty 8": ("\x1b[=8u", "\x1b[13u", "\x1b[57441;2u\x1b[96;2u", "\x1b[100u", "\x1b[99;5u", "\x1b[=0u"),
    "kitty 31": ("\x1b[>31u", "\x1b[13u\x1b[13;1:3u", "\x1b[57441;2u\x1b[96:126;2;126u\x1b[96;2:3u\x1b[57441;1:3u",
                 "\x1b[100;;100u", "\x1b[57442;5u\x1b[99;5u", "\x1b[<u"),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_detaches_and_comes_back(person, name):
    on, enter, tilde, d, interrupt, off = ENCODINGS[name]
    with terminal(person, "run", "--pty", *program(on)) as screen:
        screen.wait_for("ready ")
        screen.type(interrupt)  # the program's own
        screen.wait_for(f"<{interrupt.encode().hex()}>")
        screen.type(enter)
        screen.type(tilde)
        screen.screen = b""
        screen.type(d)
        assert screen.status() == 130
        assert screen.screen.count(off.encode()) >= 1 and local_flags(screen) == COOKED
    with terminal(person, "attach") as screen:
        screen.wait_for(on or "ready")
        wait_for(lambda: local_flags(screen) == 0, 10, "the terminal lent")
        for key in enter + tilde + d:  # even if it arrives byte by byte
            screen.type(key)
        assert screen.status() == 130
        assert off.encode() in screen.screen
    assert person.gpuq("stop", "last").returncode == 0
    nothing_left(person)


def test_what_is_switched_on_is_off_after_a_crash_of_the_client(person):
    on, off = "\x1b[?1049h\x1b[>5u\x1b(0\x1b[?2026h", b"\x1b[?2026l\x1b[<u\x1b[?1049l\x1b(B"
    with terminal(person, "run", "--pty", *program(on)) as screen:
        screen.wait_for("ready ")
        os.kill(screen.client(), signal.SIGSEGV)
        screen.wait_for("<status 139>")
        assert off in screen.screen and local_flags(screen) == COOKED
    assert person.gpuq("stop", "last").returncode == 0
    nothing_left(person)


def test_what_is_switched_on_is_off_after_a_program_that_was_killed(person):
    with terminal(person, "run", "--pty", "sh", "-c", r"printf '\033[>31u\033[5 q\033[?1002;1006h\033]11;red\007'; kill -9 $$") as screen:
        assert screen.status() == 137
        assert b"\x1b[?1002l\x1b[?1006l\x1b[<u\x1b[0 q\x1b]111\x07" in screen.screen
    nothing_left(person)


def test_vim_is_left_in_the_middle(person):
    with terminal(person, "run", "--pty", "vim", "-u", "NONE", "-N", "--cmd", "set t_Co=256", "x") as screen:
        screen.wait_for("\x1b[>4;2m")
        screen.wait_for("~")
        screen.type("\r")
        screen.type("~")
        screen.type("d")
        assert screen.status() == 130
        tail = screen.screen[screen.screen.rindex(b"\x1b[>4m"):]
        assert b"\x1b[>4;2m" not in tail and b"\x1b[?1049l" in screen.screen
    assert person.gpuq("stop", "last").returncode == 0
    nothing_left(person)


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login):
        self.home = login.folder
        self.env = login.env
        self.cluster = login.person.cluster


@pytest.mark.parametrize("name", ENCODINGS)
def test_ctrl_c_leaves_while_reconnecting(person, name):
    on, _, _, _, interrupt, off = ENCODINGS[name]
    with short_folder() as folder, login_host(person, folder) as login:
        with contextlib.closing(Terminal(Laptop(login), "--host", "login", "run", "--pty", *program(on))) as screen:
            screen.wait_for("ready ", 30)
            login.cut(stop=True)
            screen.wait_for("reconnecting", 10)
            screen.screen = b""
            screen.type(interrupt)
            assert screen.status() == 130
            assert b"Back to it" in screen.screen and off.encode() in screen.screen
            assert local_flags(screen) == COOKED
        login.start()
        assert person.gpuq("stop", "last").returncode == 0
        for pid in login.sessions():  # it waits for a client that will not return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not login.sessions(), 20, lambda: f"nothing left there: {login.sessions()}")
        nothing_left(person)
