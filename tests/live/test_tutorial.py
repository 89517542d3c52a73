# SPDX-License-Identifier: GPL-2.0-or-later
"""man/gpuq-tutorial.7, executed as a reader executes it: every command in order, on a cluster that its first command
starts. The text after a command gives the keys to press, the text to type and the exit status if it is not 0; other text
in quotation marks is expected in the output."""
import re
import shlex

import pytest

from clusters import BIN, ROOT, Person, run, short_folder
from runs import terminal

PAGE = ROOT / "man" / "gpuq-tutorial.7"
ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": "", r"\(lq": "“", r"\(rq": "”"}
ACTION = re.compile(r"[Pp]ress (Ctrl-C twice|Ctrl-C|Enter ~ d|q)|[Tt]ype “(.*?)”")
STATUS = re.compile(r"exit status is (\d+)")
PROMPT = "ready> "


class Step:
    """A command and the text after it."""

    def __init__(self, command, text):
        self.command = command
        self.actions = [(match[1], match[2]) for match in ACTION.finditer(text)]
        self.status = int((STATUS.search(text) or [0, 0])[1])
        self.output = re.findall("“(.*?)”", re.sub("[Tt]ype “.*?”", "", text))


def plain(roff):
    text = re.sub(r"\\(-|e|&|\(lq|\(rq)", lambda match: ESCAPES[match[0]], roff)
    assert "\\" not in text.replace("\\\n", ""), text
    return text


def steps():
    body = PAGE.read_text().partition(".SH STEPS\n")[2].partition("\n.SH ")[0]
    blocks = re.findall(r"^\.EX\n(.*?)^\.EE\n(.*?)(?=^\.EX|\Z)", body, re.M | re.S)
    return [Step(plain(command), plain(re.sub(r"^\.\w+ ?", "", text, flags=re.M)).replace("\n", " "))
            for command, text in blocks]


@pytest.fixture
def reader(folder):
    """A user with a home and no cluster yet."""
    with short_folder() as home:
        one = Person(folder, home)
        one.env |= {"PATH": f"{BIN}:{one.env['PATH']}", "SHELL": "/bin/bash"}
        (home / ".bash_profile").write_text(f"PS1='{PROMPT}'\n")
        yield one


def at_the_prompt(reader, directory, command):
    """Status, output and the new current directory of a command without keys."""
    place = reader.home / "place"
    script = f"cd {directory}\n{command}\nstatus=$?; pwd >{place}; exit $status"
    done = run(["bash", "-c", script], reader.env, timeout=120)
    return done.returncode, done.stdout + done.stderr, place.read_text().strip()


def on_a_terminal(reader, directory, step):
    """Status and output of a command that reacts to keys."""
    words = shlex.split(step.command)
    assert words.pop(0) == "gpuq"
    ready = PROMPT if "shell" in words else "quit" if "top" in words else "epoch "
    shown = b""
    with terminal(reader, *words, before=f"cd {directory};") as screen:
        for key, text in step.actions:
            screen.wait_for(ready, 60)
            shown, screen.screen = shown + screen.screen, b""
            if text:
                screen.type(text + "\r")
            elif key == "Enter ~ d":
                screen.type("\r~d")
            elif key == "q":
                screen.type("q")
            else:
                screen.type("\x03")
            if key == "Ctrl-C twice":
                screen.wait_for("gpuq: ")
                screen.type("\x03")
        status = screen.status()
        return status, (shown + screen.screen).decode(errors="replace")


def here(command, cluster):
    """The command with the paths of this test: the cluster's directory, the examples of the source tree."""
    command = re.sub(r"^gpuq cluster (up|down)", rf"\g<0> --dir {cluster.dir}", command)
    return command.replace("/usr/share/doc/gpuq/examples/", f"{ROOT}/contrib/examples/")


def test_every_step_of_the_tutorial(reader):
    directory = reader.home
    for step in steps():
        if step.actions:
            status, output = on_a_terminal(reader, directory, step)
        else:
            status, output, directory = at_the_prompt(reader, directory, here(step.command, reader.cluster))
        assert status == step.status, f"{step.command}{output}"
        for text in step.output:
            assert text in output, f"{step.command}{output}"
    assert not reader.cluster.daemons()


def test_the_tutorial_uses_the_verbs_that_a_beginner_needs():
    used = {verb for step in steps() for verb in re.findall(r"gpuq ([a-z]+)", step.command)}
    assert used >= {"run", "ls", "logs", "attach", "stop", "why", "show", "free", "resume", "shell", "top", "cluster"}
    assert {130, 127, 1, 123} <= {step.status for step in steps()}
