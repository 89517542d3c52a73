# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps under a policy with a queue of their own: it caps them, and they give way to other runs."""
import json
import time

import pytest

from clusters import Person, short_folder, wait_for
from policies import running_policy, sbatch

# The section, and a queue with rules of its own.
POLICIES = {"section": """version: 1
pools:
  all: {nodes: n1, gpus: "k80:4"}
queues:
  debug: {time: 1h, pools: all, limits: {job: {gpus: 1}}}
  runs: {time: 2h, default_time: 2h, pools: all}
sweeps: {max_workers: 4, max_share: 75%, grace: 10s}
""", "queue": """version: 1
pools:
  all: {nodes: n1, gpus: "k80:4", owner: runs, lend: {grace: 10s}}
queues:
  runs: {time: 2h, default_time: 1h, pools: all}
  sweeps: {time: 2h, default_time: 1h, pools: all, through: sweep, limits: {user: {jobs: 3}}, chain: {links: 20}}
"""}
# A step every half second, saved; on the notice it leaves. `steps` has a line for each step, with the number of the try.
TRAIN = """\
import json, os, pathlib, sys, time
saved = pathlib.Path(os.environ["GPUQ_CHECKPOINT_DIR"]) / "state.json"
step = json.loads(saved.read_text())["step"] if saved.exists() else 0
while step < 16:
    step += 1
    with open("steps", "a") as steps:
        steps.write(f"{os.environ['GPUQ_TRY']} {step}\\n")
    new = saved.with_suffix(".new")
    new.write_text(json.dumps({"step": step}))
    new.rename(saved)
    print(f"step {step} loss {1 / step}", flush=True)
    time.sleep(0.5)
    if os.path.exists(os.environ["GPUQ_STOP_FILE"]):
        sys.exit(85)
"""


@pytest.fixture(scope="module", params=POLICIES)
def ruled(request):
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICIES[request.param])
        with running_policy(policy) as cluster:
            yield cluster


@pytest.fixture
def home(ruled):
    with short_folder() as home:
        yield Person(ruled, home, ruled.as_user)


def workers(ruled, state="RUNNING"):
    return [line for line in ruled.slurm("squeue", "-h", "-t", state, "-p", "sweeps", "-o", "%i %k").splitlines() if ":sweep" in line]


def test_sweeps_are_capped_and_give_way(ruled, home):
    (home.home / "train.py").write_text(TRAIN)
    done = home.gpuq("sweep", "--detach", "-J", "cal", "--workers", "4", "--over", "n=1..9", "train.py")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: len(workers(ruled)) == 3, 30, "three workers")
    # jobs: 3. Running workers have their next links in the queue already.
    assert len([line for line in workers(ruled, "PENDING") if ":2:" not in line]) == 1
    wait_for(lambda: (home.home / "steps").exists() and len((home.home / "steps").read_text().splitlines()) > 9, 30, "steps")

    begin = time.monotonic()
    done = home.gpuq("run", "-p", "runs", "-g", "4", "-t", "10m", "sh", "-c", "sleep 3", timeout=90)
    assert done.returncode == 0, done.stderr
    # The programs leave on the notice, before the grace and Slurm's check every 30 s are over.
    assert time.monotonic() - begin < 10 + 30 + 5 + 3 + 5

    wait_for(lambda: json.loads(home.gpuq("show", "cal", "--json").stdout)["sweep"]["state"] == "ended", 180, "its end")
    shown = json.loads(home.gpuq("show", "cal", "--json").stdout)["sweep"]
    assert [one["status"] for one in shown["tries"]] == [0] * 9
    assert sum(one["attempts"] > 1 for one in shown["tries"]) == 3
    steps = (home.home / "steps").read_text().splitlines()
    assert sorted(steps) == sorted(f"{n} {step}" for n in range(1, 10) for step in range(1, 17))  # each once


def test_other_queues_refuse_workers_and_this_one_other_jobs(ruled, home):
    (home.home / "train.py").write_text(TRAIN)
    done = home.gpuq("sweep", "--detach", "-p", "runs", "--over", "n=1,2", "train.py")
    assert done.returncode == 121 and "no workers of sweeps, which use queue sweeps" in done.stderr, done.stderr
    done = home.gpuq("run", "--detach", "-p", "sweeps", "true")
    assert done.returncode == 121 and "takes workers of gpuq sweep only" in done.stderr, done.stderr
    job, refusal = sbatch(ruled, None, "-p", "sweeps", "-t", "10", "--gres=gpu:1")
    assert job is None and "takes workers of gpuq sweep only" in refusal
