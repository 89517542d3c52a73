# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq rehearse on programs that are ready for a long run, and on ones that are not."""
import json
import os
import pathlib
import signal

import pytest

from conftest import Person, short_folder, wait_for
from runs import members_of, told_of

CLUSTER = dict(nodes=1, gpus=8, lines=["KillWait=5"])
PYTHON = "/usr/bin/python3"

# Unaware of gpuq; saves every 20 steps.
PLAIN = """
import os, sys, time, zipfile
os.makedirs("out", exist_ok=True)
step = int(zipfile.ZipFile(sys.argv[2]).read("step")) if sys.argv[1:2] == ["--resume"] else 0
while True:
    step += 1
    print("step", step, flush=True)
    time.sleep(0.05)
    if step % 20 == 0:
        with zipfile.ZipFile("out/.new", "w") as file:
            file.writestr("step", str(step))
        os.replace("out/.new", f"out/{NAME}.zip")
"""
# Saves only on USR1.
LISTENS = """
import os, signal, sys, time, zipfile
os.makedirs("out", exist_ok=True)
step = int(zipfile.ZipFile(sys.argv[2]).read("step")) if sys.argv[1:2] == ["--resume"] else 0
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
while True:
    step += 1
    time.sleep(0.05)
    if told:
        with zipfile.ZipFile("out/.new", "w") as file:
            file.writestr("step", str(step))
        os.replace("out/.new", f"out/step-{step}.zip")
        sys.exit(85)
"""
CHECKPOINT = ["--checkpoint", "out/*.zip"]
RESUME = ["--resume-args", "--resume {}"]
NUMBERED = PLAIN.replace("{NAME}", "step-{step}")
CASES = {
    "plain": (NUMBERED, CHECKPOINT + RESUME),
    "listens": (LISTENS, CHECKPOINT + RESUME),
    "forgets": (NUMBERED, CHECKPOINT),
    "unnumbered": (PLAIN.replace("{NAME}", "last"), CHECKPOINT + RESUME),
    "silent": ("import time; time.sleep(300)", CHECKPOINT),
    "short": ("print('done')", CHECKPOINT),
}
WITHIN = {"listens": 2}  # minutes; it runs undisturbed for a sixth of that three times


@pytest.fixture(scope="module")
def reports(cluster):
    """Runs all cases in parallel. Returns exit status, report and stderr by name."""
    with short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        clients = {}
        for name, (program, options) in CASES.items():
            folder = pathlib.Path(home) / name
            folder.mkdir()
            (folder / "train.py").write_text(program)
            if person.user:
                os.chown(folder, person.user.pw_uid, person.user.pw_gid)
            clients[name] = person.start("rehearse", "--json", "--within", WITHIN.get(name, 1), "-J", name, "--mem", "64M", *options,
                                         "--", PYTHON, "train.py", cwd=folder)
        with clients["plain"] as a, clients["listens"] as b, clients["forgets"] as c, \
                clients["unnumbered"] as d, clients["silent"] as e, clients["short"] as f:
            reports = {}
            for name, client in zip(CASES, (a, b, c, d, e, f)):
                out, said = client.communicate(timeout=200)
                reports[name] = (client.returncode, json.loads(out or "{}"), said.decode())
        yield reports
        wait_for(lambda: not cluster.squeue(), 20, "an empty queue")


def levels(report):
    return {one["check"]: one["level"] for one in report["checks"]}


def test_a_program_that_saves_and_resumes_passes(reports):
    status, report, said = reports["plain"]
    assert status == 0, (report, said)
    found = levels(report)
    assert {found[check] for check in ("start", "checkpoint", "resume", "kill", "loss")} == {"ok"}
    assert found["notice"] == "warning", "nobody listens"
    assert report["problems"] == 0 and report["save_seconds"] is None
    assert 0.5 < report["interval_seconds"] < 5 and report["lost_seconds"] < 5
    assert "SIGKILL" in said and "asked to save and stop" in said
    assert members_of(report) == told_of("gpuq rehearse")


def test_a_program_that_listens_passes(reports):
    status, report, said = reports["listens"]
    assert status == 0, (report, said)
    found = levels(report)
    assert {found[check] for check in ("start", "notice", "checkpoint", "resume", "kill")} == {"ok"}
    assert found["loss"] == "warning", "it saves only when it is told"
    assert report["save_seconds"] < 5 and report["advised_interval_seconds"] > 60
    assert report["lost_seconds"] > 1


def test_a_program_that_does_not_load_its_checkpoint_fails(reports):
    status, report, said = reports["forgets"]
    assert status == 1, said
    assert levels(report)["resume"] == "problem"
    remedy, = (one["remedy"] for one in report["checks"] if one["check"] == "resume")
    assert "--resume-args" in remedy


def test_a_program_whose_checkpoints_have_no_number_is_judged_by_its_output(reports):
    status, report, said = reports["unnumbered"]
    assert status == 0, (report, said)
    assert (levels(report)["resume"], levels(report)["kill"]) == ("ok", "ok")


def test_a_program_that_never_saves_fails(reports):
    status, report, said = reports["silent"]
    assert status == 1, said
    assert levels(report)["notice"] == "problem"


def test_a_program_that_leaves_at_once_fails(reports):
    status, report, said = reports["short"]
    assert status == 1, said
    assert levels(report) == {"start": "problem"}


@pytest.mark.parametrize("moment", ["while it is submitted", "while it runs"])
def test_ctrl_c_leaves_nothing_behind(cluster, reports, moment):
    with short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        with person.start("rehearse", *CHECKPOINT, "--", "sleep", "300") as client:
            wait_for(person.run_dirs, 30, "a run on disk")
            if moment == "while it runs":
                wait_for(lambda: cluster.slurm("squeue", "-h", "-t", "R"), 30, "a running job")
            client.send_signal(signal.SIGINT)
            assert client.wait(timeout=60) == 130, client.stderr.read()
        wait_for(lambda: not cluster.squeue(), 30, "an empty queue")
