# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with idle GPUs in a queue that reclaims them, with a driver simulated by the tests."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from chains import time_of
from clusters import BUILT, Person, running_cluster, short_folder, wait_for
from runs import PYTHON, Record, nothing_left

AFTER, WARN = 30, 10
POLICY = f"""version: 1
pools:
  first: {{nodes: n1, gpus: "k80:8"}}
queues:
  calibration:
    time: 2h
    pools: first
    idle: {{after: {AFTER}s, warn: {WARN}s, start: 0s, max_per_hour: 2}}
    chain: {{links: 3}}
  patient: {{time: 4h, pools: first}}
"""
UNUSED = "gpus=8\ntotal=12240658432 used=0 util=0 power=30000 temp=31 sm=324 mem=324\n"
SLEEPS = (PYTHON, "-c", "import time; print('on', flush=True); time.sleep(300)")
SAVES = (PYTHON, "-c", """
import signal, sys, time
def save(*_):
    open('saved', 'w').write('all')
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
print('on', flush=True)
time.sleep(300)
""")
PRINTS = (PYTHON, "-c", "import time\nfor i in range(300): print(i, flush=True); time.sleep(5)")
COMPUTES = (PYTHON, "-c", """
import time
while True:
    end = time.process_time() + 0.9
    while time.process_time() < end:
        pass
    time.sleep(6)
""")


@pytest.fixture(scope="module")
def ruled():
    with short_folder() as folder:
        (folder / "policy.yaml").write_text(POLICY)
        with running_cluster(gpus=None, nodes=None, model=None,
                             options=("--policy", folder / "policy.yaml")) as cluster:
            yield cluster


@pytest.fixture
def driver():
    """Simulates a driver. Returns the variables to add to a run's environment."""
    with short_folder() as folder:
        shutil.copytree(BUILT / "fake_nvml_new", folder / "new")
        (folder / "new").chmod(0o755)

        def play(name, rules):
            (folder / name).write_text(rules)
            return {"LD_LIBRARY_PATH": str(folder / "new"), "GPUQ_FAKE_NVML": str(folder / name)}
        yield play


def shown(person, name):
    return json.loads(person.gpuq("show", name, "--json").stdout)


def running(person, *names):
    """Waits until the runs with these names are running."""
    def look():
        runs = json.loads(person.gpuq("ls", "--json").stdout or "{}").get("runs", [])
        return {run["name"] for run in runs if run["state"] == "running"} >= set(names)
    wait_for(look, 30, f"the start of {names}")


def test_idle_gpus_are_taken_back_and_no_others(ruled, driver):
    unused = driver("unused", UNUSED)
    hung = driver("hung", UNUSED + "after=3 call=UtilizationRates hang=600\n")
    mig = driver("mig", UNUSED + "call=UtilizationRates err=3\n")
    with short_folder() as home, contextlib.ExitStack() as stack:
        person = Person(ruled, home, ruled.as_user)
        runs = {name: stack.enter_context(person.start("run", "-J", name, *options, "--", *program,
                                                       env=environment))
                for name, program, environment, options in (
                    ("saves", SAVES, unused, ()),
                    ("exempt", SLEEPS, unused, ()),
                    ("prints", PRINTS, unused, ()),
                    ("computes", COMPUTES, unused, ()),
                    ("hangs", SLEEPS, hung, ()),
                    ("divided", SLEEPS, mig, ()),
                    ("patient", SLEEPS, unused, ("-p", "patient")))}
        try:
            running(person, *runs)
            done = person.gpuq("exempt", "exempt", "--reason", "waits for a microscope", "--json")
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["takes_idle_gpus_back"] is True
            warned = wait_for(lambda: shown(person, "saves")["idle"]["finding"], 40, "a warning")
            assert warned["state"] == "warned" and warned["queue"] == "calibration"
            assert warned["left_seconds"] == pytest.approx(WARN, abs=1)

            def counts_down():
                """Whether the remaining time has decreased; together with the time already idle it must equal the
                rule's time."""
                told = re.search(r"  idle        its GPUs were unused for (\d+) s; released in (\d+) s unless it works\n",
                                 person.gpuq("show", "saves").stdout)
                unused, left = map(int, told.groups())
                assert AFTER - 2 <= unused + left <= AFTER + 2
                return left <= WARN - 3
            wait_for(counts_down, WARN - 1, "less to be left")
            out, err = runs["saves"].communicate(timeout=40)
            assert runs["saves"].returncode == 123
            whole = shown(person, "saves")
            record = Record(whole["folder"])
            assert AFTER <= time_of(record.event("ended")) - time_of(record.event("program_started")) < AFTER + 15
            assert b"its GPUs are released in 10 s unless it works; gpuq exempt " in err
            assert re.search(b"was released: its GPUs were unused for 3[0-9] s\n", err)
            assert (home / "saved").read_text() == "all"
            key = shown(person, "hangs")["run"]["key"]
            (log,) = home.rglob(f"{key}/link-1/supervisor.log")
            assert re.search(r" warning sampler\[\d+\] samples: the GPU driver has not answered for 4 s\n", log.read_text())
            finding = whole["idle"]["finding"]
            assert finding["state"] == "released" and finding["unused_seconds"] >= AFTER
            assert finding["sample_count"] >= 25 and finding["missing_seconds"] <= 1
            assert whole["run"]["exit"] == 123
            link = pathlib.Path(whole["folder"]) / "link-1"
            (samples,) = link.glob("samples-*")
            again = subprocess.run([BUILT / "replay_idle", samples, link / "idle.json"],
                                   capture_output=True, text=True)
            assert again.returncode == 0, again.stdout + again.stderr
            # The others were idle for at least as long.
            time.sleep(8)
            for name in ("exempt", "prints", "computes", "hangs", "divided", "patient"):
                assert runs[name].poll() is None, (name, runs[name].stderr.read())
                finding = shown(person, name)["idle"]["finding"]
                assert finding is None or (name, finding["state"]) == ("exempt", "exempt"), (name, finding)
            exempt = shown(person, "exempt")["idle"]
            assert exempt["exemption"]["reason"] == "waits for a microscope"
            assert exempt["finding"]["state"] == "exempt"
            assert "microscope" in person.gpuq("show", "exempt").stdout
        finally:
            for name in runs:
                person.gpuq("stop", name)
            for run in runs.values():
                run.communicate(timeout=30)
        nothing_left(person)


def test_a_user_loses_no_more_runs_in_an_hour_than_the_policy_says(ruled, driver):
    unused = driver("unused", UNUSED)
    with short_folder() as home, contextlib.ExitStack() as stack:
        person = Person(ruled, home, ruled.as_user)
        runs = [stack.enter_context(person.start("run", "-J", f"run{i}", "--", *SLEEPS, env=unused))
                for i in range(3)]
        try:
            running(person, "run0", "run1", "run2")
            wait_for(lambda: sum(run.poll() is not None for run in runs) == 2, 60, "two releases")
            time.sleep(3)
            left = [i for i, run in enumerate(runs) if run.poll() is None]
            assert len(left) == 1
            finding = shown(person, f"run{left[0]}")["idle"]["finding"]
            assert finding["state"] == "put_off"
        finally:
            for i, run in enumerate(runs):
                person.gpuq("stop", f"run{i}")
                run.communicate(timeout=30)
        nothing_left(person)


def test_a_chain_that_is_released_is_over(ruled, driver):
    unused = driver("unused", UNUSED)
    with short_folder() as home:
        person = Person(ruled, home, ruled.as_user)
        with person.start("run", "-J", "chain", "-p", "calibration", "-t", "5h", "--checkpoint",
                          "saved*", "--", *SAVES, env=unused) as run:
            out, err = run.communicate(timeout=70)
            assert run.returncode == 123, err
        assert b"gpuq resume" in err
        whole = shown(person, "chain")
        assert whole["run"]["state"] == "ended" and whole["run"]["cause"] == "stopped"
        assert whole["idle"]["finding"]["state"] == "released"
        assert (home / "saved").read_text() == "all"
        wait_for(lambda: not ruled.squeue(), 30, "the withdrawal of its next link")
        nothing_left(person)
