# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of programs on a terminal share: shells with a known prompt, keys, sizes, a real terminal."""
import contextlib
import fcntl
import os
import re
import struct
import subprocess
import termios

from clusters import command_of, wait_for
from runs import processes_of, terminal

BASH = ("bash", "--rcfile", "rc", "-i")
COOKED = termios.ICANON | termios.ECHO | termios.ISIG


def give_rc(person):
    """The prompt of BASH."""
    (person.home / "rc").write_text("PS1='ready> '\n")


def resize(screen, rows, columns):
    fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def local_flags(screen):
    return termios.tcgetattr(screen.master)[3] & COOKED


def says(screen, command, answer, seconds=20):
    """Types a command; waits for its answer, which the command's own echo must not hold."""
    screen.screen = b""
    screen.type(command + "\r")
    screen.wait_for(answer, seconds)


def answer(screen, command):
    """Types a command at a prompt; all that came until the next one."""
    screen.screen = b""
    screen.type(command + "\r")
    screen.wait_for("ready> ")
    return screen.screen


def in_front(person, command):
    """Until the terminal's program has started `command`: what is typed is for it."""
    wait_for(lambda: any(command_of(pid) == command for pid in processes_of(person)), 10, command)


def leave(screen):
    """By keys, at a prompt."""
    screen.type("\r~d")
    assert screen.status() == 130
    assert local_flags(screen) == COOKED


@contextlib.contextmanager
def attached(person, *words):
    """At a prompt: `ready> ` has been drawn."""
    with terminal(person, "attach", *words) as screen:
        screen.wait_for("ready> ")
        yield screen


@contextlib.contextmanager
def a_shell(person):
    """`gpuq run --pty`, at its prompt."""
    with terminal(person, "run", "--pty", *BASH) as screen:
        screen.wait_for("ready> ")
        yield screen


def whole_page(screen):
    """The numbers of a page's lines, when all of them have been drawn; the last line is the program's."""
    words = [re.fullmatch(r"line (\d+) größe", line) for line in screen[:-1]]
    numbers = [int(word[1]) for word in words if word]
    whole = len(numbers) == len(words) and numbers == list(range(numbers[0], numbers[0] + len(words)))
    return numbers if whole else None


def same_page(tmux, before):
    """All of it has been drawn again."""
    try:
        wait_for(lambda: whole_page(tmux.screen()) == before, 20, "the same page")
    except BaseException:
        print(before, *tmux.screen(), sep="\n")
        raise


class Tmux:
    """A real terminal emulator: what is on its screen is what a person sees."""

    def __init__(self, folder):
        self.folder = folder
        self.words = []

    def start(self, person, *words):
        """A program of gpuq's, and what its terminal is like before and after it."""
        self.words = ["tmux", "-S", str(self.folder / f"tmux-{len(os.listdir(self.folder))}"), "-f", "/dev/null"]
        script = 'before=$(stty -g); "$@"; echo left with $?; ' \
                 '[ "$before" = "$(stty -g)" ] && echo restored; sleep 60'
        subprocess.run([*self.words, "new-session", "-d", "-x", "80", "-y", "24", "bash", "-c", script, "bash",
                        person.cluster.binary, *words], check=True, cwd=person.home,
                       env={**person.env, "TERM": "xterm", "LC_ALL": "C.UTF-8"})

    def stop(self):
        if self.words:
            subprocess.run([*self.words, "kill-server"], check=False, capture_output=True)

    def keys(self, *keys):
        subprocess.run([*self.words, "send-keys", *keys], check=True)

    def screen(self):
        done = subprocess.run([*self.words, "capture-pane", "-p"], check=True, capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done.stdout.splitlines()

    def wait_for(self, text):
        wait_for(lambda: text in "\n".join(self.screen()), 20, lambda: f"{text} on the screen: {self.screen()}")

    def client(self, person):
        return next(pid for pid in processes_of(person) if os.readlink(f"/proc/{pid}/exe") == person.cluster.binary)
