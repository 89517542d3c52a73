# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers for tests of programs on a terminal: shells with a known prompt, keys, sizes, a real terminal."""
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
    """Sets the prompt of BASH."""
    (person.home / "rc").write_text("PS1='ready> '\n")


def resize(screen, rows, columns):
    fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def local_flags(screen):
    return termios.tcgetattr(screen.master)[3] & COOKED


def without_own_lines(shown):
    """The program's output: gpuq's own lines are drawn between a saved and a restored cursor."""
    return re.sub(rb"\x1b7.*?\x1b8", b"", shown, flags=re.DOTALL)


def says(screen, command, answer, seconds=20):
    """Types a command and waits for its answer, which must not be part of the command's echo."""
    screen.screen = b""
    screen.type(command + "\r")
    screen.wait_for(answer, seconds)


def answer(screen, command):
    """Types a command at a prompt. Returns all output up to the next prompt."""
    screen.screen = b""
    screen.type(command + "\r")
    screen.wait_for("ready> ")
    return screen.screen


def in_front(person, command):
    """Waits until the terminal's program has started `command`, which then gets the keys."""
    wait_for(lambda: any(command_of(pid) == command for pid in processes_of(person)), 10, command)


def leave(screen):
    """Detaches with keys at a prompt."""
    screen.type("\r~d")
    assert screen.status() == 130
    assert local_flags(screen) == COOKED


@contextlib.contextmanager
def attached(person, *words):
    """Attaches and waits for the prompt `ready> `."""
    with terminal(person, "attach", *words) as screen:
        screen.wait_for("ready> ")
        yield screen


@contextlib.contextmanager
def a_shell(person):
    """Starts `gpuq run --pty` and waits for its prompt."""
    with terminal(person, "run", "--pty", *BASH) as screen:
        screen.wait_for("ready> ")
        yield screen


def whole_page(screen):
    """Line numbers of a page, or None if it is not drawn completely; the last line belongs to the program."""
    words = [re.fullmatch(r"line (\d+) größe", line) for line in screen[:-1]]
    numbers = [int(word[1]) for word in words if word]
    whole = len(numbers) == len(words) and numbers == list(range(numbers[0], numbers[0] + len(words)))
    return numbers if whole else None


def same_page(tmux, before):
    """Waits until the page is redrawn completely."""
    try:
        wait_for(lambda: whole_page(tmux.screen()) == before, 20, "the same page")
    except BaseException:
        print(before, *tmux.screen(), sep="\n")
        raise


class Tmux:
    """A real terminal emulator: its screen shows the same as a user's terminal."""

    def __init__(self, folder):
        self.folder = folder
        self.words = []

    def start(self, person, *words):
        """Starts gpuq, and prints its exit status and whether the terminal settings were restored."""
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

    def paste(self, text):
        """As a terminal does: marked as pasted if the program has requested that."""
        subprocess.run([*self.words, "set-buffer", text], check=True)
        subprocess.run([*self.words, "paste-buffer", "-p"], check=True)

    def screen(self):
        done = subprocess.run([*self.words, "capture-pane", "-p"], check=True, capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done.stdout.splitlines()

    def wait_for(self, text):
        wait_for(lambda: text in "\n".join(self.screen()), 20, lambda: f"{text} on the screen: {self.screen()}")

    def client(self, person):
        return next(pid for pid in processes_of(person) if os.readlink(f"/proc/{pid}/exe") == person.cluster.binary)
