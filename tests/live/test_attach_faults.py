# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of programs on a terminal: a thousand clients, many size changes, lost relays, no free descriptors."""
import contextlib
import itertools
import os
import pathlib
import re
import resource
import signal
import termios
import time

import pytest

from clusters import command_of, is_running, wait_for
from faults import of_soak
from runs import (PYTHON, nothing_left, processes_of, records, sruns, terminal, the_run, wait_for_handover,
                  words_of)
from terminals import Tmux, a_shell, attached, give_rc, leave, resize, same_page, says, whole_page

CLUSTER = dict(nodes=1, gpus=4, model="k80", lines=["KillWait=2"])


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
        wait_for_handover(person)
        yield screen


def supervisor(person):
    return the_run(person).event("supervisor_started")["pid"]


def on_the_node(person):
    """The node's processes of this run, including zombies."""
    def is_one(pid):
        return command_of(pid) not in ("srun", "bash", "gpuq")
    return sorted((pid, *words_of(pid)[:2]) for pid in processes_of(person) if is_one(pid))


def held_by(pid):
    """Number of descriptors, and memory in kilobytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return len(os.listdir(f"/proc/{pid}/fd")), int(re.search(r"VmRSS:\s*(\d+)", status)[1])


def held_in_peace_by(pid):
    """Number of descriptors once it is steady: without those of helpers and of a hand-over in progress."""
    seen = [held_by(pid)[0]]

    def has_settled():
        seen.append(held_by(pid)[0])
        return len(seen) > 50 and len(set(seen[-50:])) == 1
    wait_for(has_settled, 20, lambda: f"a steady number of descriptors; {seen}")
    return seen[-1]


def modes(screen):
    return termios.tcgetattr(screen.master)


def modes_of_a_new_terminal():
    ours, other = os.openpty()
    try:
        return termios.tcgetattr(other)
    finally:
        os.close(ours)
        os.close(other)


def come_and_go(person, turn):
    """Attaches, gets an answer, and leaves in one of three ways."""
    with attached(person) as screen:
        says(screen, f"echo turn-$(({turn}+1000))", f"turn-{turn + 1000}")
        if turn % 3 == 0:
            os.kill(screen.client(), signal.SIGKILL)
        elif turn % 3 == 1:
            screen.hang_up()
        else:
            assert modes(screen) != modes_of_a_new_terminal(), "it is raw"
            leave(screen)
            assert modes(screen) == modes_of_a_new_terminal()


def test_a_thousand_visitors_leave_nothing_behind(person, shell):
    pid = supervisor(person)
    before = on_the_node(person)
    relays = sruns(person, "relay")
    def alone_again():
        return sruns(person, "relay") == relays and on_the_node(person) == before
    for turn in range(6):
        come_and_go(person, turn)
    wait_for(alone_again, 30, f"the processes of before: {before}")
    descriptors, memory = held_by(pid)
    visits = of_soak(1000, 24)
    for turn in range(visits):
        come_and_go(person, turn)
    wait_for(alone_again, 30, f"the processes of before: {before}")
    wait_for(lambda: held_by(pid)[0] <= descriptors, 10, "the descriptors of before")
    grown = held_by(pid)[1] - memory
    print(f"{visits} visits: {descriptors} descriptors before and after, {grown} KB of memory more")
    assert grown < 1024, f"{visits} visits cost {grown} KB"
    says(shell, "echo still-$((6*7))", "still-42")
    shell.type("exit\r")
    assert shell.status() == 0


SIZES = ("import os, signal, sys, time\n"
         "def tell(*_): os.write(1, b'size %d %d.\\n' % tuple(reversed(os.get_terminal_size())))\n"
         "signal.signal(signal.SIGWINCH, tell)\nprint('up', flush=True)\n"
         "print('typed', sys.stdin.readline().strip() * 2, flush=True)")


def settle(*screens):
    """Waits until each client has passed on all of its sizes: one of now is the program's. A slow client would apply its
    last size after the test's size, which is correct, since the latest one counts."""
    for rows, screen in enumerate(screens, start=10):
        columns = itertools.count(40)

        def is_applied():  # unless a late size of the other client came between
            size, end = next(columns), time.monotonic() + 5
            resize(screen, rows, size)
            while b"size %d %d." % (rows, size) not in screen.screen and time.monotonic() < end:
                screen.read(0.1)
            return time.monotonic() < end
        wait_for(is_applied, 40, "the size of now")


def test_a_storm_of_sizes(person):
    with terminal(person, "run", "--pty", PYTHON, "-c", SIZES) as first:
        first.wait_for("up")
        wait_for_handover(person)
        with terminal(person, "attach") as second:
            second.wait_for("up")
            for number in range(of_soak(2000, 300)):
                resize((first, second)[number % 2], 20 + number % 30, 60 + number % 71)
                first.read()
                second.read()
                time.sleep(0.002)
            settle(first, second)
            resize(first, 41, 113)
            first.wait_for("size 41 113.")
            second.wait_for("size 41 113.")
            resize(second, 19, 61)
            first.wait_for("size 19 61.")
            first.type("x\r")
            first.wait_for("typed xx")
            assert (first.status(), second.status()) == (0, 0)


@contextlib.contextmanager
def few_descriptors(pid, count):
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_a_supervisor_without_descriptors_says_so(person, shell):
    pid = supervisor(person)
    with contextlib.ExitStack() as everybody:
        everybody.enter_context(few_descriptors(pid, held_in_peace_by(pid) + 4))
        refused, let_in = None, []
        while not refused and len(let_in) < 10:
            screen = everybody.enter_context(terminal(person, "attach"))
            wait_for(lambda: not screen.read(0.1) or b"ready> " in screen.screen or b"<status" in screen.screen, 20,
                     lambda screen=screen: f"an answer in {screen.screen}, {len(let_in)} others; {held_by(pid)}")
            if b"<status" in screen.screen:
                refused = screen
            else:
                let_in.append(screen)
        assert let_in and refused
        assert refused.status() == 120
        assert b"has no file descriptor left (ulimit -n). Try again when one has detached" in \
            refused.screen.replace(b"\r\n", b"")
        assert modes(refused) == modes_of_a_new_terminal()
        for number, screen in enumerate([shell, *let_in]):
            says(screen, f"echo goes-on-$(({number}+100))", f"goes-on-{number + 100}")
        assert b"goes-on-100" in the_run(person).log()
        cpu_before = cpu_of(pid)
        says(shell, "sleep 1; echo slept-$((1+1))", "slept-2")
        assert cpu_of(pid) - cpu_before < 0.3, "nothing spins"
        full = held_by(pid)[0]
        leave(let_in[-1])
        for_each = 3 if person.env["GPUQ_DIRECT"] == "no" else 1  # a relay passes on its two streams too
        wait_for(lambda: held_by(pid)[0] <= full - for_each, 20, lambda: f"less than {full} descriptors; {held_by(pid)}")
        with attached(person) as screen:  # one client has left: another is admitted
            says(screen, "echo room-$((2+2))", "room-4")
            leave(screen)
    with attached(person) as screen:
        says(screen, "echo again-$((3+3))", "again-6")
        screen.type("exit\r")
        assert screen.status() == 0


def cpu_of(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def vim(person):
    """vim on a real terminal, in the middle of a text."""
    text = person.home / "text"
    text.write_text("".join(f"line {n} größe\n" for n in range(500)))
    tmux = Tmux(person.home)
    tmux.start(person, "run", "--pty", "vim", "-u", "NONE", "-i", "NONE", str(text))
    try:
        tmux.wait_for("line 5")
        tmux.keys("100G")
        tmux.wait_for("line 99 größe")
        tmux.page = wait_for(lambda: whole_page(tmux.screen()), 20, "a page of vim's")
        wait_for_handover(person)
        yield tmux
    finally:
        tmux.stop()


def relays_on_the_node(person):
    return [pid for pid in processes_of(person) if "relay" in words_of(pid) and command_of(pid) != "srun"]


@pytest.mark.parametrize("where", ["srun", "node"])
def test_a_relay_is_killed_in_the_middle_of_vim(person, vim, where):
    for turn in range(2):
        relays = sruns(person, "relay") if where == "srun" else relays_on_the_node(person)
        for pid in relays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        vim.keys("j")  # typed while no relay runs: kept
        wait_for(lambda: not any(map(is_running, relays)), 10, "the relay's end")
        wait_for(lambda: relays_on_the_node(person), 20, "another relay")
        same_page(vim, vim.page)
        vim.keys("i", f"word{turn}", "Escape")
        vim.wait_for(f"word{turn}")
        vim.keys("u")
        vim.page = wait_for(lambda: whole_page(vim.screen()), 10, "the page without the word")
    vim.keys("i", "last", "Escape", ":wq", "Enter")
    vim.wait_for("left with 0")
    vim.wait_for("restored")
    lines = (person.home / "text").read_text().splitlines()
    assert [line for line in lines if "last" in line] == [lines[101]], "both keys have come"


def test_told_to_go_in_the_middle_of_vim_the_terminal_is_as_before(person, vim):
    os.kill(vim.client(person), signal.SIGTERM)
    vim.wait_for("left with 129")
    vim.wait_for("restored")
    assert "line 99" not in "\n".join(vim.screen()), "back from the other screen"
    vim.stop()
    vim.start(person, "attach")
    same_page(vim, vim.page)
    vim.keys(":q!", "Enter")
    vim.wait_for("left with 0")
    vim.wait_for("restored")


def test_the_window_is_closed_in_the_middle_of_vim(person, vim):
    client = vim.client(person)
    vim.stop()
    wait_for(lambda: not is_running(client), 10, "the client's end")
    wait_for(lambda: not sruns(person, "relay"), 10, "the relay's end")
    vim.start(person, "attach")
    same_page(vim, vim.page)
    vim.keys(":q!", "Enter")
    vim.wait_for("left with 0")
