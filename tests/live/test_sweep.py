# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq sweep`: many tries of a program in a few jobs, each run once, whatever happens to the workers."""
import collections
import contextlib
import csv
import datetime
import io
import json
import os
import pathlib
import random
import signal
import time

import pytest

from clusters import Person, short_folder, wait_for
from faults import of_soak
from runs import processes_of, the_run, words_of

CLUSTER = dict(nodes=2, gpus=2, lines=["KillWait=5"])

# Prints a loss that depends on its parameters. A second instance of a try at the same time leaves a mark.
TRAIN = """
import fcntl, os, sys, time
lr, seconds = float(sys.argv[1]), float(sys.argv[2])
lock = open(f"lock-{os.environ['GPUQ_TRY']}", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open("twice", "w").close()
for step in range(1, 11):
    print(f"step {step}/10 loss {lr + 1 / step:.4f}", flush=True)
    time.sleep(seconds / 10)
with open("done", "a") as done:
    done.write(os.environ["GPUQ_TRY"] + "\\n")
sys.exit(3 if lr > 5 else 0)
"""


def handles_interrupts(pid):
    """Blocked, to be read from a descriptor, or caught."""
    masks = pathlib.Path(f"/proc/{pid}/status").read_text()
    return any(int(line.split()[1], 16) & 1 << signal.SIGINT - 1 for line in masks.splitlines()
               if line.startswith(("SigBlk", "SigCgt")))


@pytest.fixture
def person(person):
    """At the end of each test the workers of its sweeps release their GPUs."""
    yield person
    wait_for(lambda: not any("-w" in name for _, _, name in person.cluster.squeue()), 20,
             lambda: f"the GPUs of all workers are released: {person.cluster.squeue()}")


@pytest.fixture
def train(person):
    (person.home / "train.py").write_text(TRAIN)


def sweep(person, *words, **options):
    return person.gpuq("sweep", *words, **options)


def shown(person, name):
    done = person.gpuq("show", name, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["sweep"]


def ended(person, name, seconds=60):
    wait_for(lambda: shown(person, name)["state"] in ("ended", "stopped", "stalled"), seconds,
             lambda: f"the end of {name}: {shown(person, name)}")
    return shown(person, name)


def done_tries(person):
    path = person.home / "done"
    return sorted(int(line) for line in path.read_text().split()) if path.exists() else []


def test_all_combinations_are_tried_once_and_ranked(person, train):
    done = sweep(person, "-J", "cal", "--over", "lr=3,1,2,9", "--over", "pause=0.1,0.3", "train.py", "{lr}", "{pause}")
    assert done.returncode == 1, done.stderr  # two tries fail
    wait_for(lambda: not person.cluster.squeue(), 5, "free GPUs")
    last = max(datetime.datetime.fromisoformat(one["ended"].replace("Z", "+00:00")) for one in shown(person, "cal")["tries"])
    assert time.time() - last.timestamp() < 5, "the workers hold their GPUs"
    assert done_tries(person) == list(range(1, 9))
    assert "sweep cal: 6 of 8 tries done, 2 failed; best loss 1.1 (try 3: lr=1 pause=0.1)" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0][:4] == ["TRY", "STATE", "lr", "pause"] and rows[1][:4] == ["3", "done", "1", "0.1"]
    document = shown(person, "cal")
    assert (document["state"], document["best_try"], document["succeeded"], document["failed"]) == ("ended", 3, 6, 2)
    assert [one["status"] for one in document["tries"]] == [0, 0, 0, 0, 0, 0, 3, 3]
    assert all(one["attempts"] == 1 for one in document["tries"])
    log = person.gpuq("logs", "cal/5").stdout.splitlines()
    assert log == [f"step {step}/10 loss {2 + 1 / step:.4f}" for step in range(1, 11)]
    assert "values       lr=2 pause=0.3" in person.gpuq("show", "cal/6").stdout
    listed = json.loads(person.gpuq("ls", "--json").stdout)
    assert [one["name"] for one in listed["sweeps"]] == ["cal"] and listed["runs"] == []
    columns = person.gpuq("ls", "--no-header", "--columns", "id,name")
    assert (columns.returncode, columns.stdout.splitlines()[0].strip()) == (0, "cal"), columns.stderr
    assert person.gpuq("ls", "--columns", "tries").returncode == 2  # not of runs
    rows = list(csv.DictReader(io.StringIO(sweep(person, "export", "cal").stdout)))
    assert [row["lr"] for row in rows] == ["3", "3", "1", "1", "2", "2", "9", "9"]
    assert person.gpuq("wait", "cal").returncode == 1
    # Those that failed, once more.
    again = sweep(person, "retry", "cal")
    assert again.returncode == 1 and done_tries(person) == [1, 2, 3, 4, 5, 6, 7, 7, 8, 8]
    assert [one["attempts"] for one in shown(person, "cal")["tries"]] == [1] * 6 + [2] * 2


def test_tries_are_added_and_stopped(person, train):
    done = sweep(person, "--detach", "--workers", "1", "-J", "cal", "--over", "lr=1,2", "--over", "pause=60", "train.py",
                 "{lr}", "{pause}")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: shown(person, "cal")["tries"][0]["state"] == "running", 30, "a try")
    assert person.gpuq("logs", "cal").returncode == 2  # which try?
    with person.start("wait", "cal", env={"GPUQ_READONLY": "1"}) as client:
        wait_for(lambda: handles_interrupts(client.pid), 10, "its signals")
        for _ in range(2):  # a second one would stop the sweep if it were gpuq sweep
            client.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert client.wait(10) == 130 and b"stopping" not in client.stderr.read()
    stopped = json.loads(person.gpuq("stop", "cal/1", "--json").stdout)
    assert [(one["name"], one["try"], one["outcome"]) for one in stopped["sweeps"]] == [("cal", 1, "stopping")]
    wait_for(lambda: shown(person, "cal")["tries"][1]["state"] == "running", 30, "the next try")
    assert shown(person, "cal")["tries"][0]["end"] == "stopped"
    wrong = sweep(person, "add", "--detach", "cal", "--over", "lr=7")
    assert wrong.returncode == 2 and "the parameters lr, pause" in wrong.stderr
    assert sweep(person, "add", "--detach", "cal", "--over", "pause=0.1", "--over", "lr=3", "--workers",
                 "1").returncode == 0
    assert person.gpuq("stop", "cal").returncode == 0
    state = ended(person, "cal")
    assert state["state"] == "stopped" and state["tries"][2]["attempts"] == 0
    assert sweep(person, "retry", "--detach", "cal", "3").returncode == 0  # its last worker may still be ending
    waited = person.gpuq("wait", "cal/3")
    assert (waited.returncode, waited.stderr[:10]) == (0, "gpuq: try "), waited.stderr
    assert person.gpuq("wait", "cal").returncode == 1
    assert done_tries(person) == [3]
    again = person.gpuq("again", "cal/3")
    assert again.returncode == 0 and again.stdout.splitlines()[-1].startswith("step 10/10"), again.stderr
    assert done_tries(person) == [3, 3]
    assert shown(person, "cal")["tries"][1]["end"] == "stopped"


def test_workers_die_at_random_moments(person, train):
    """Each try has one result, and never ran twice at the same time."""
    tries = of_soak(100, 24)
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    done = sweep(person, "--detach", "--workers", "3", "-J", "cal", "-t", "60", "--over", f"n=1..{tries}", "train.py", "0.{n}",
                 "0.4")
    assert done.returncode == 0, done.stderr
    for _ in range(of_soak(15, 4)):
        time.sleep(chance.uniform(0.5, 2))
        victims = [pid for pid in processes_of(person) if words_of(pid)[1:2] == [chance.choice(["work", "run"])]]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
    state = ended(person, "cal", 150)
    for _ in range(3):
        # A try whose workers were lost twice is run again only on request.
        if state["state"] == "stalled" or "lost" in [one["end"] for one in state["tries"]]:
            assert sweep(person, "retry", "--detach", "cal").returncode == 0
            state = ended(person, "cal", 150)
    assert not (person.home / "twice").exists()
    assert state["state"] == "ended" and [one["end"] for one in state["tries"]] == ["finished"] * tries, state
    counts = collections.Counter(done_tries(person))
    assert sorted(counts) == list(range(1, tries + 1))
    # A program whose worker was killed right after its end is run again.
    assert all(counts[one["try"]] <= one["attempts"] for one in state["tries"])


def test_a_try_continues_in_the_next_link_from_its_checkpoint(person):
    (person.home / "long.py").write_text("""
import os, sys, time
folder = os.environ["GPUQ_CHECKPOINT_DIR"]
start = os.environ.get("GPUQ_RESUME_FROM")
step = int(open(start).read()) if start else 0
print("from", step, os.environ["GPUQ_RUN_ID"][-2:], flush=True)
while step < 300:
    if os.path.exists(os.environ["GPUQ_STOP_FILE"]):
        with open(folder + "/new", "w") as file:
            file.write(str(step))
        os.rename(folder + "/new", f"{folder}/step-{step}.txt")
        sys.exit(85)
    step += 1
    time.sleep(0.1)
print("at", step, flush=True)
""")
    done = sweep(person, "-J", "cal", "--workers", "1", "-t", "3", "--link", "20s", "--over", "n=1", "long.py", "{n}",
                 timeout=150)
    assert done.returncode == 0, done.stderr
    log = person.gpuq("logs", "cal/1").stdout.split()
    assert log[:3] == ["from", "0", "-1"] and log[-2:] == ["at", "300"]
    assert log[3] == "from" and int(log[4]) > 0
    only = shown(person, "cal")["tries"][0]
    assert only["attempts"] >= 2 and only["end"] == "finished"


# Its loss falls towards its parameter. It saves when asked, unless the parameter is 4. A program that contains the name of
# the stop file would get more time to save.
SAVING = """
import os, sys, time
best = float(sys.argv[1])
folder = os.environ["GPUQ_CHECKPOINT_DIR"]
start = os.environ.get("GPUQ_RESUME_FROM")
step = int(open(start).read()) if start else 0
steps = 40 if best < 4 else 400
print("from", step, flush=True)
while step < steps:
    step += 1
    print(f"step {step}/{steps} loss {best + 1 / step:.4f}", flush=True)
    time.sleep(0.1)
    if os.path.exists(os.environ["GPUQ_STOP" + "_FILE"]) and best < 4:
        with open(folder + "/new", "w") as file:
            file.write(str(step))
        os.rename(folder + "/new", f"{folder}/step-{step}.txt")
        sys.exit(85)
"""


def test_losers_are_stopped_early_and_can_continue(person):
    (person.home / "saving.py").write_text(SAVING)
    done = sweep(person, "-J", "cal", "--workers", "1", "--metric", "loss:min", "--stop-early", "asha:eta=2,min=10", "--over",
                 "n=1,2,4", "saving.py", "{n}")
    assert done.returncode == 0 and "1 of 3 tries done, 2 stopped early; best loss 1.025" in done.stderr, done.stderr
    state = shown(person, "cal")
    first, *losers = state["tries"]
    assert (state["stop_early"], state["stopped_early"], state["best_try"]) == ("asha:eta=2,min=10", 2, 1)
    assert (first["end"], first["stopped_early"]) == ("finished", None)
    assert [(one["end"], one["status"]) for one in losers] == [("stopped_early", 85), ("stopped_early", 143)], losers
    assert losers[0]["stopped_early"] == dict(rung=1, step=10, value=2.1, threshold=1.1, compared=1)
    assert losers[1]["stopped_early"] == dict(rung=1, step=10, value=4.1, threshold=2.1, compared=2)
    assert all(len(list(folder.iterdir())) <= 10 for folder in (person.state / "gpuq/sweeps").glob("*/tries/*"))
    assert sweep(person, "retry", "cal").returncode == 2  # none has failed
    again = sweep(person, "retry", "cal/2")
    assert again.returncode == 0, again.stderr
    log = [line.split() for line in person.gpuq("logs", "cal/2").stdout.splitlines()]
    starts = [int(words[1]) for words in log if words[0] == "from"]
    assert len(starts) == 2 and 10 <= starts[1] < 40 and log[-1][1] == "40/40"
    assert [one["end"] for one in shown(person, "cal")["tries"]] == ["finished", "finished", "stopped_early"]


# Its loss is in an event file only; all tries write to the same directory.
SILENT = """
import os, runpy, socket, sys, time
writer = runpy.run_path("writer.py", run_name="writer")
best = float(sys.argv[1])
os.makedirs("logs", exist_ok=True)
with open(f"logs/events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.0", "wb", buffering=0) as file:
    for step in range(1, 41):
        file.write(writer["scalar"](time.time(), step, "train/loss", best + 1 / step))
        time.sleep(0.1)
"""


def test_a_metric_in_event_files_is_compared(person):
    bench = pathlib.Path(__file__).parents[1] / "bench"
    (person.home / "writer.py").write_text((bench / "tfevents").read_text())
    (person.home / "common.py").write_text((bench / "common.py").read_text())
    (person.home / "silent.py").write_text(SILENT)
    done = sweep(person, "-J", "cal", "--workers", "1", "--metric", "loss:min", "--stop-early", "asha:eta=2,min=10", "--over",
                 "n=1,2", "silent.py", "{n}")
    assert done.returncode == 0 and "1 of 2 tries done, 1 stopped early; best loss 1.025" in done.stderr, done.stderr
    best, loser = shown(person, "cal")["tries"]
    assert (best["best"], best["best_step"]) == (pytest.approx(1.025), 40)
    assert loser["end"] == "stopped_early" and loser["stopped_early"]["step"] == 10, loser
    assert loser["stopped_early"]["value"] == pytest.approx(2.1)


def test_tries_are_proposed_from_the_results_of_others(person):
    """By the program in contrib/python; then by one that fails."""
    search = pathlib.Path(__file__).parents[2] / "contrib/python/propose_search.py"
    done = sweep(person, "-J", "cal", "--workers", "2", "--propose", f"python3 '{search}'", "--tries", "14", "--over", "x=-4.0..4.0",
                 "--metric", "loss:min", "--", "awk", "-v", "x={x}", 'BEGIN { print "step 1 loss", x * x + 1 }')
    assert done.returncode == 0, done.stderr
    state = shown(person, "cal")
    assert (state["state"], state["succeeded"], state["proposals"]["open"]) == ("ended", 14, False)
    values = [float(one["values"]["x"]) for one in state["tries"]]
    assert len(set(values)) == 14 and all(-4 <= value <= 4 for value in values)
    assert state["tries"][state["best_try"] - 1]["best"] == min(one["best"] for one in state["tries"])
    (person.home / "two.py").write_text(
        "import sys\nlines = sys.stdin.readlines()\n"
        "sys.exit('no more ideas') if len(lines) == 2 else print('{\"n\": %d}' % len(lines))\n")
    done = sweep(person, "-J", "fails", "--workers", "1", "--propose", "python3 two.py", "--over", "n=0..9", "--", "true", "{n}")
    assert done.returncode == 1 and "no more proposals: python3: exit status 1" in done.stderr, done.stderr
    state = shown(person, "fails")
    assert [one["values"]["n"] for one in state["tries"]] == ["0", "1"]
    assert state["proposals"]["failure"] == "python3: exit status 1" and state["state"] == "ended"
    assert any("no more ideas" in path.read_text() for path in (person.state / "gpuq/runs").glob("*/link-1/err.log"))


def test_workers_die_while_tries_are_proposed(person, train):
    """All tries are proposed and run, none twice at the same time."""
    (person.home / "count.py").write_text(
        "import sys, time\nlines = sys.stdin.readlines()\ntime.sleep(0.3)\nprint('{\"n\": %d}' % len(lines))\n")
    done = sweep(person, "--detach", "--workers", "3", "-J", "cal", "-t", "60", "--propose", "python3 count.py", "--tries", "12",
                 "--over", "n=0..99", "train.py", "0.{n}", "0.4")
    assert done.returncode == 0, done.stderr
    for _ in range(4):
        time.sleep(random.uniform(0.3, 1.5))
        victims = [pid for pid in processes_of(person) if words_of(pid)[1:2] == ["work"]]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(victims), signal.SIGKILL)
    state = ended(person, "cal", 90)
    for _ in range(3):
        if state["state"] == "stalled":
            assert sweep(person, "retry", "--detach", "cal").returncode == 0
            state = ended(person, "cal", 90)
    assert not (person.home / "twice").exists()
    assert state["state"] == "ended" and state["proposals"]["failure"] is None, state
    assert [one["values"]["n"] for one in state["tries"]] == [str(n) for n in range(12)]
    # A try whose workers were killed twice is given up at its third attempt.
    assert all(one["end"] == "finished" or (one["end"], one["attempts"]) == ("lost", 3) for one in state["tries"]), state


def test_a_proposing_program_may_wait_for_all_results(person):
    """It proposes two tries at a time, and nothing while they run."""
    (person.home / "rounds.py").write_text("""
import json, sys, time
results = [json.loads(line) for line in sys.stdin]
time.sleep(0.2)
with open("asked", "a") as log:
    print(len(results), file=log)
if all(one["state"] == "ended" for one in results) and len(results) < 6:
    for n in range(2):
        print(json.dumps({"n": len(results) + n}))
""")
    done = sweep(person, "-J", "cal", "--workers", "2", "--propose", "python3 rounds.py", "--over", "n=0..9", "--", "sh", "-c",
                 "sleep 0.$1; echo $1 >>ran", "-", "{n}")
    assert done.returncode == 0, done.stderr
    state = shown(person, "cal")
    assert [one["values"]["n"] for one in state["tries"]] == list("012345") and state["state"] == "ended"
    assert sorted((person.home / "ran").read_text().split()) == list("012345")  # each once
    asked = [int(word) for word in (person.home / "asked").read_text().split()]
    assert asked == sorted(asked) and len(asked) < 20, asked


def test_the_gpu_hours_of_a_sweep_are_not_exceeded(person, train):
    """A minute of GPU time: about 30 s of two workers."""
    done = sweep(person, "-J", "cal", "--workers", "2", "--gpu-hours", "0.0167", "--over", "n=1..20", "train.py", "0.{n}", "8",
                 timeout=90)
    assert done.returncode == 123 and "has used its" in done.stderr, done.stderr
    state = shown(person, "cal")
    assert state["state"] == "spent" and 60 <= 3600 * state["gpu_hours"] < 60 + 2 * 15, state
    assert state["succeeded"] >= 4 and state["waiting"] > 0
    assert sweep(person, "retry", "cal").returncode == 121
    wait_for(lambda: shown(person, "cal")["workers"] == 0, 30, "no worker")


def test_tries_side_by_side_share_a_gpu_and_no_port(person):
    program = 'echo "$CUDA_VISIBLE_DEVICES $MASTER_PORT $GPUQ_PARAM_n"; sleep 2; echo metric=$GPUQ_PARAM_n'
    (person.home / "setup.sh").write_text('echo once >>"$HOME/sourced"\n')
    done = sweep(person, "-J", "cal", "--source", "setup.sh", "--workers", "1", "--per-gpu", "3", "--metric", "metric:max", "--over", "n=1..6", "sh", "-c",
                 program)
    assert done.returncode == 0, done.stderr
    assert "no {n} in the program's arguments" in done.stderr
    lines = [person.gpuq("logs", f"cal/{n}").stdout.split() for n in range(1, 7)]
    assert len({words[0] for words in lines}) == 1
    assert (person.home / "sourced").read_text() == "once\n"  # by the worker, not by each try
    assert len({words[1] for words in lines[:3]}) == 3
    assert [words[2] for words in lines] == [str(n) for n in range(1, 7)]
    tries = shown(person, "cal")["tries"]
    assert max(one["began"] for one in tries[:3]) < min(one["ended"] for one in tries[:3])
    assert shown(person, "cal")["best_try"] in (6, None)


def test_a_program_that_always_asks_to_be_continued_ends(person):
    """Exit status 85 without a notice: while it saves, it is continued."""
    program = ('echo attempt; n=$(ls "$GPUQ_CHECKPOINT_DIR" | wc -l); [ $n -ge $GPUQ_PARAM_most ] || '
               '{ sleep 0.1; echo "{}" >"$GPUQ_CHECKPOINT_DIR/$n.json"; }; exit 85')
    done = sweep(person, "-J", "cal", "--workers", "1", "--over", "most=0,2", "sh", "-c", program)
    assert done.returncode == 1, done.stderr
    tries = shown(person, "cal")["tries"]
    assert [(one["end"], one["status"]) for one in tries] == [("finished", 85)] * 2
    assert [person.gpuq("logs", f"cal/{n}").stdout.count("attempt") for n in (1, 2)] == [1, 3]
    worker = the_run(person)
    assert "it has saved no new checkpoint" in (worker.dir / "link-1" / "out.log").read_text()


def test_a_sweep_grows_and_its_waiting_worker_leaves_with_the_last_try(person):
    """No gpuq process runs on the login host. The third worker waits for the GPUs of a lost one."""
    (person.home / "until.sh").write_text('while [ ! -e "$HOME/go" ]; do sleep 0.2; done\necho $1 >>done\n')
    done = sweep(person, "--detach", "-J", "cal", "-g", "2", "--over", "n=1..60", "sh", "until.sh", "{n}")
    assert done.returncode == 0 and "60 tries, 2 workers" in done.stderr, done.stderr

    def workers():
        return {name: state for _, state, name in person.cluster.squeue()}
    wait_for(lambda: workers() == {"cal-w1": "RUNNING", "cal-w2": "RUNNING", "cal-w3": "PENDING"}, 30,
             lambda: f"a third worker: {workers()}")
    os.kill(next(pid for pid in processes_of(person) if words_of(pid)[1:2] == ["work"]), signal.SIGKILL)
    wait_for(lambda: workers().get("cal-w3") == "RUNNING", 20, lambda: f"its start: {workers()}")
    (person.home / "go").touch()
    wait_for(lambda: len(done_tries(person)) == 60, 30, "all tries")
    wait_for(lambda: not person.cluster.squeue(), 10, lambda: f"an empty queue: {person.cluster.squeue()}")
    assert done_tries(person) == list(range(1, 61))
    assert shown(person, "cal")["workers"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")
def test_a_sweep_gives_way_to_another_user(person, people):
    """It has all GPUs, and its third worker waits before the other user's run."""
    done = sweep(person, "--detach", "-J", "cal", "-g", "2", "--over", "n=1..200", "sleep", "3")
    assert done.returncode == 0, done.stderr

    def workers():
        return {name: state for _, state, name in person.cluster.squeue() if name.startswith("cal-")}
    wait_for(lambda: workers() == {"cal-w1": "RUNNING", "cal-w2": "RUNNING", "cal-w3": "PENDING"}, 40,
             lambda: f"a third worker: {workers()}")
    with short_folder() as home:
        os.chown(home, people["ben"].pw_uid, people["ben"].pw_gid)
        other = Person(person.cluster, home, people["ben"])
        done = other.gpuq("run", "-g", "1", "-t", "5m", "echo", "started", timeout=120)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    left = workers()
    assert "cal-w3" not in left and len(left) <= 1, left
    state = shown(person, "cal")
    assert (state["state"], state["failed"], state["stopped"]) == ("running", 0, 0), state
    assert all(one["attempts"] == 1 for one in state["tries"] if one["state"] == "ended")
    person.gpuq("stop", "cal")


def test_wrong_sweeps_leave_nothing(person, train):
    for words, text in ((["train.py"], "--over NAME=VALUES"), (["--over", "lr=1,1", "train.py"], "'1' is there twice"),
                        (["--over", "lr=0.1..0.5", "train.py"], "--random N"), (["--over", "lr=1"], "missing program"),
                        (["--over", "lr=1", "{lr}"], "can't depend on a parameter"),
                        (["--over", "lr=1", "missing.py"], "not found"), (["retry", "none"], "no sweep 'none'"),
                        (["--over", "lr=1", "-p", "none", "train.py"], "none"), (["--from", "none.csv", "train.py"], "none.csv")):
        done = sweep(person, *words)
        assert done.returncode != 0 and text in done.stderr, (words, done.stderr)
    assert not (person.state / "gpuq/sweeps").exists() or os.listdir(person.state / "gpuq/sweeps") == []
    plan = sweep(person, "--dry-run", "--over", "lr=1,2", "train.py", "{lr}", "a b")
    assert plan.stdout.splitlines() == ["   1  train.py 1 'a b'", "   2  train.py 2 'a b'"]


def test_a_budget_holds_for_runs_sweeps_and_what_they_start(person, train):
    person.env["GPUQ_BUDGET"] = "agent:0.5"

    def budget():
        return json.loads(person.gpuq("usage", "--budget", "--json").stdout)

    refused = person.gpuq("run", "--detach", "-t", "40m", "true")
    assert refused.returncode == 121 and "this could use 0.667" in refused.stderr, refused.stderr
    assert person.gpuq("run", "--detach", "-t", "20m", "-J", "first", "sleep", "300").returncode == 0
    assert (budget()["gpu_hours_reserved"], budget()["gpu_hours_used"]) == (pytest.approx(1 / 3, abs=0.01), 0)
    person.env["GPUQ_BUDGET"] = "agent:50"  # by a child that wants more
    assert person.gpuq("run", "--detach", "-t", "20m", "true").returncode == 121
    assert budget()["gpu_hours_limit"] == 0.5
    swept = sweep(person, "-J", "cal", "--over", "lr=1,2", "--over", "pause=0.1", "train.py", "{lr}", "{pause}")
    assert swept.returncode == 0 and "the 0.167 GPU-hours that budget agent has left" in swept.stderr, swept.stderr
    wait_for(lambda: 0 < budget()["gpu_hours_used"] < 0.02, 30, "the use of the sweep")
    person.gpuq("stop", "first")
    wait_for(lambda: budget()["gpu_hours_reserved"] == 0, 30, "the end of the run")
    # A program in a run is under the budget of its run.
    inside = person.gpuq("run", "-t", "10m", person.cluster.binary, "run", "--detach", "-t", "25m", "true")
    assert inside.returncode == 121 and "budget agent" in inside.stderr, inside.stderr
