# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq show` on trainings while they run: event files over the links of a chain, and their output."""
import json
import os
import pathlib

import pytest

from conftest import wait_for

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=2"])
PYTHON = "/usr/bin/python3"
BENCH = pathlib.Path(__file__).resolve().parents[1] / "bench" / "tfevents"

# Writes a step every 50 ms, and its checkpoint when the stop file appears; its loss becomes NaN at step 60.
TRAINER = """
import os, runpy, struct, sys, time
writer = runpy.run_path("writer.py", run_name="writer")
step = int(open("out/step.txt").read()) if os.path.exists("out/step.txt") else 0
folder = f"logs/version_{os.environ['GPUQ_LINK']}"
os.makedirs(folder)
os.makedirs("out", exist_ok=True)
with open(f"{folder}/events.out.tfevents.{int(time.time())}.n0.{os.getpid()}.0", "wb", buffering=0) as file:
    while step < 100000:
        step += 1
        loss = 1 / step if step < 60 else float("nan")
        file.write(writer["scalar"](time.time(), step, "train/loss", loss))
        print(f"step {step}/100000", flush=True)
        time.sleep(0.05)
        if os.path.exists(os.environ["GPUQ_STOP_FILE"]):
            with open("out/new", "w") as saved:
                saved.write(str(step))
            os.replace("out/new", "out/step.txt")
            time.sleep(1)
            sys.exit(85)
"""
OWN = """
import time
for done in range(1, 1000):
    print(f"=> {done} of 1000 L=0.5 epoch 7/8", flush=True)
    time.sleep(0.1)
"""
SWEEP = """
import sys
rate = float(sys.argv[2])
for step in range(1, 21):
    print(f"step {step}/20 loss {1 / (rate * step):.4f} acc {rate * step / 40:.4f}", flush=True)
"""


@pytest.fixture
def folder(person):
    (person.home / "writer.py").write_text(BENCH.read_text())
    (person.home / "common.py").write_text((BENCH.parent / "common.py").read_text())
    if person.user:
        os.chown(person.home, person.user.pw_uid, person.user.pw_gid)
    return person.home


def shown(person, run):
    done = person.gpuq("show", run, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def start(person, name, program, *options):
    (person.home / f"{name}.py").write_text(program)
    done = person.gpuq("run", "--detach", "-J", name, "-g", 1, "--mem", "64M", *options, "--", PYTHON, f"{name}.py")
    assert done.returncode == 0, done.stderr


def test_event_files_tell_how_it_goes_over_the_links_of_a_chain(person, folder):
    start(person, "events", TRAINER, "-t", "1h", "--link", "30s", "--checkpoint", "out/*.txt")

    def has_lost_its_loss():
        document = shown(person, "events")
        return document["training"] and document["training"]["alarms"] and document

    document = wait_for(has_lost_its_loss, 30, "an alarm")
    training, progress = document["training"], document["progress"]
    assert training["source"].startswith("logs/version_1/events.out.tfevents.")
    assert training["alarms"][0]["code"] == "not_finite"
    (curve,) = training["curves"]
    assert curve["tag"] == "train/loss" and curve["value"] is None and curve["step"] >= 60
    assert progress["unit"] == "step" and progress["total"] == 100000
    assert 1 < progress["steps_per_second"] <= 20
    assert progress["beyond_limit"] > 0, "100,000 steps in 30 s"
    text = person.gpuq("show", "events").stdout
    assert "alarm       train/loss is nan since step 60" in text
    assert "GPU-hours to go" in text and "after" in text

    def is_in_its_second_link():
        later = shown(person, "events")
        assert later["training"], "also between two links"
        return later["training"]["source"].startswith("logs/version_2/") and later

    later = wait_for(is_in_its_second_link, 60, "the second link's events")
    (curve,) = later["training"]["curves"]
    assert curve["points"] > training["curves"][0]["points"], "one curve over both"
    person.gpuq("stop", "events")


def test_a_pattern_of_ones_own_is_heard_on(person, folder):
    start(person, "own", OWN, "-t", "10m", "--progress", r"=> (?P<step>\d+) of (?P<total>\d+) L=(?P<loss>\S+)")
    document = wait_for(lambda: (found := shown(person, "own"))["progress"] and found, 20, "a progress")
    assert document["progress"]["unit"] == "step" and document["progress"]["total"] == 1000
    assert document["training"]["curves"][0]["tag"] == "loss" and document["training"]["source"] is None
    refused = person.gpuq("run", "--progress", "step (", "true")
    assert refused.returncode == 2 and "--progress: 'step (' is not a valid RE2 regular expression" in refused.stderr
    person.gpuq("stop", "own")


def test_compare_shows_which_of_a_sweep_was_best(person, folder):
    (person.home / "sweep.py").write_text(SWEEP)
    for name, arguments in (("slow", ["--lr", "1"]), ("fast", ["--lr", "2", "--amp"])):
        done = person.gpuq("run", "-J", name, "-g", 1, "--mem", "64M", "--", PYTHON, "sweep.py", *arguments)
        assert done.returncode == 0, done.stderr
    assert person.gpuq("run", "-J", "mute", "-g", 2, "--", "true").returncode == 0
    done = person.gpuq("show", "--compare", "slow", "fast", "mute", "--html", "c.html", "--json")
    assert done.returncode == 0, done.stderr
    assert "wrote c.html" in done.stderr
    document = json.loads(done.stdout)
    assert [one["run"]["exit"] for one in document["runs"]] == [0, 0, 0]
    assert [one["has_metrics"] for one in document["runs"]] == [True, True, False]
    settings = {one["name"]: [value["text"] or value["kind"] for value in one["values"]]
                for one in document["settings"]}
    assert settings["--lr"] == ["1", "2", "absent"] and settings["--amp"] == ["absent", "switched", "absent"]
    assert settings["GPUs"] == ["1", "1", "2"] and settings["script"] == ["sweep.py", "sweep.py", "absent"]
    metrics = {one["name"]: one for one in document["metrics"]}
    assert metrics["loss"]["best_run"] == metrics["acc"]["best_run"] == 1
    assert metrics["loss"]["series"][1]["best"] == {"step": 20, "value": 0.025}
    assert metrics["acc"]["series"][0]["last"] == {"step": 20, "value": 0.5}
    assert len(metrics["loss"]["series"][0]["curve"]) == 20 and metrics["loss"]["series"][2] is None
    page = (person.home / "c.html").read_text()
    assert "<h2>loss</h2>" in page and "(fast)</span>" in page
    text = person.gpuq("show", "--compare", "slow", "fast").stdout
    assert "best loss: 0.025 at step 20 in run" in text
