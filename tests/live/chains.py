# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with several links for tests, and their program (chain_trainer.py)."""
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
    """Result of an undisturbed training."""
    state = "begin"
    for step in range(1, steps + 1):
        state = hashlib.sha256(f"{state} {step}".encode()).hexdigest()
    return f"final {state}"


class Chain:
    """A run with several links, as recorded in its directory."""

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
        """The program's output by link: where it resumed, and its steps."""
        parts = []
        # The last line of a killed link may be truncated.
        for word, value in re.findall(r"(link|resumed|step) (\d+(?: cause \w+)?)\n", self.log()):
            if word == "link":
                parts.append({"line": f"link {value}", "resumed": 0, "steps": []})
            elif word == "resumed":
                parts[-1]["resumed"] = int(value)
            else:
                parts[-1]["steps"].append(int(value))
        return parts

    def assert_unbroken(self, steps):
        """Checks that every link continues exactly after its checkpoint, and that the result equals an
        undisturbed one."""
        parts = self.steps_done()
        for part in parts:
            assert part["steps"] == list(range(part["resumed"] + 1, part["resumed"] + 1 + len(part["steps"])))
        assert final_state(steps) in self.log().splitlines()
        return parts


def assert_nothing_lost(chain, steps, every):
    """Checks that no link repeats more than one interval plus the time of a save, and that each begins at a
    checkpoint."""
    parts = chain.assert_unbroken(steps)
    best = 0
    for part in parts:
        # One interval and the time of a save (5 steps) may have to be computed again.
        assert part["resumed"] >= best - every - 5, (part["line"], part["resumed"], best)
        assert part["resumed"] % every == 0 or part["resumed"] == steps
        best = max([best, *part["steps"]])
    return parts


def start(person, name, options, *words):
    """Starts a detached run in its own directory."""
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
