# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of several links as tests see them, and a program for them (chain_trainer.py)."""
import hashlib
import json
import os
import pathlib
import re
from datetime import datetime

from clusters import wait_for

PYTHON = "/usr/bin/python3"
TRAINER = str(pathlib.Path(__file__).with_name("chain_trainer.py"))
UNAWARE = ["--checkpoint", "out/*.zip", "--resume-args", "--resume {}"]


def final_state(steps):
    """Of a training that nothing disturbs."""
    state = "begin"
    for step in range(1, steps + 1):
        state = hashlib.sha256(f"{state} {step}".encode()).hexdigest()
    return f"final {state}"


class Chain:
    """A run of several links as its folder tells it."""

    def __init__(self, person, name):
        self.person = person
        self.folder = wait_for(lambda: next(
            (one for one in person.run_dirs() if self._name(one) == name), None), 20, f"run {name}")

    @staticmethod
    def _name(folder):
        path = pathlib.Path(folder) / "run.json"
        return json.loads(path.read_text())["request"]["name"] if path.exists() else None

    def events(self, link, kind=None):
        path = pathlib.Path(self.folder) / f"link-{link}" / "journal.jsonl"
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        every = [json.loads(line) for line in lines]
        return [one for one in every if kind is None or one["event"] == kind]

    def event(self, link, kind, seconds=60):
        return wait_for(lambda: self.events(link, kind), seconds,
                        f"{kind} in link {link} of {self.folder}")[0]

    def ended(self, link, seconds=60):
        return self.event(link, "ended", seconds)

    def job(self, link, seconds=30):
        path = pathlib.Path(self.folder) / f"link-{link}" / "job.json"
        return wait_for(lambda: path.exists() and json.loads(path.read_text())["job"], seconds, str(path))

    def links(self):
        names = (one.name for one in pathlib.Path(self.folder).iterdir())
        return sorted(int(name[5:]) for name in names if re.fullmatch(r"link-\d+", name))

    def log(self):
        return self.person.gpuq("logs", self.job(1)).stdout

    def show(self):
        return json.loads(self.person.gpuq("show", "--json", self.job(1)).stdout)["run"]

    def steps_done(self):
        """What the program printed, link after link; each link begins where a checkpoint was."""
        parts = []
        # The last line of a link that was killed may be torn.
        for word, value in re.findall(r"(link|resumed|step) (\d+(?: cause \w+)?)\n", self.log()):
            if word == "link":
                parts.append({"line": f"link {value}", "resumed": 0, "steps": []})
            elif word == "resumed":
                parts[-1]["resumed"] = int(value)
            else:
                parts[-1]["steps"].append(int(value))
        return parts

    def assert_unbroken(self, steps):
        """Every link begins right after what it resumed from, and the end is that of an undisturbed one."""
        parts = self.steps_done()
        for part in parts:
            assert part["steps"] == list(range(part["resumed"] + 1, part["resumed"] + 1 + len(part["steps"])))
        assert final_state(steps) in self.log().splitlines()
        return parts


def assert_nothing_lost(chain, steps, every):
    """No link computes again more than one interval and what a save takes, and each begins at a checkpoint."""
    parts = chain.assert_unbroken(steps)
    best = 0
    for part in parts:
        # Of what was computed, one interval and what a save takes (5 steps) may have to be done again.
        assert part["resumed"] >= best - every - 5, (part["line"], part["resumed"], best)
        assert part["resumed"] % every == 0 or part["resumed"] == steps
        best = max([best, *part["steps"]])
    return parts


def start(person, name, options, *words):
    """Detached, in a folder of its own."""
    folder = pathlib.Path(person.home) / name
    folder.mkdir()
    if person.user:
        os.chown(folder, person.user.pw_uid, person.user.pw_gid)
    done = person.gpuq("run", "--detach", "-J", name, *options, "--", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Chain(person, name)


def trainer(*words):
    return [PYTHON, TRAINER, *words]


def time_of(event):
    return datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp()
