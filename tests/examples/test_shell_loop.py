# SPDX-License-Identifier: GPL-2.0-or-later
"""train.sh, the example that is not a training: stopped or killed at any point, it ends with the same file."""
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "contrib" / "examples" / "train.sh"
STEPS = 5


def run(folder, *wrapper, resume=None, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUQ_")}
    environment |= {"GPUQ_CHECKPOINT_DIR": str(folder), "STEPS": str(STEPS), "SECONDS_PER_STEP": "0"}
    environment |= {k: str(v) for k, v in variables.items()}
    if resume:
        environment["GPUQ_RESUME_FROM"] = str(resume)
    return subprocess.run([*wrapper, SCRIPT], env=environment, capture_output=True, text=True, timeout=50)


def checkpoints(folder):
    found = sorted(folder.glob("*.count"))
    for path in found:  # each must be complete
        assert path.read_text() == f"{int(path.stem[len('step-'):])}\n"
    return found


def finish(folder):
    found = checkpoints(folder)
    done = run(folder, resume=found[-1] if found else None)
    assert (done.returncode, done.stderr) == (0, "")
    return {path.name: path.read_text() for path in checkpoints(folder)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return finish(tmp_path_factory.mktemp("undisturbed"))


def test_counts_to_its_end(undisturbed, tmp_path):
    done = run(tmp_path)
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"step {n}/{STEPS}" for n in range(1, STEPS + 1)])
    assert undisturbed == {f"step-00000{n}.count": f"{n}\n" for n in (STEPS - 2, STEPS - 1, STEPS)}


def test_stopped_after_every_step_it_ends_with_the_same_files(undisturbed, tmp_path):
    stop, newest = tmp_path / "stop", None
    stop.touch()
    for step in range(1, STEPS):
        done = run(tmp_path, resume=newest, GPUQ_STOP_FILE=stop)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (85, "saved; leaving as asked"), done
        newest = checkpoints(tmp_path)[-1]
        assert newest.name == f"step-00000{step}.count"
    assert run(tmp_path, resume=newest, GPUQ_STOP_FILE=stop).returncode == 0
    assert {path.name: path.read_text() for path in checkpoints(tmp_path)} == undisturbed


KILLER = """#!/bin/sh
read -r calls <"$COUNTER"
echo $((calls + 1)) >"$COUNTER"
if [ "$calls" = "$KILL_AT" ]; then
    kill -KILL $PPID
    exit
fi
PATH=/usr/bin:/bin
exec "${0##*/}" "$@"
"""


def test_killed_before_any_of_its_commands_it_ends_with_the_same_files(undisturbed, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sleep", "sync", "mv", "rm"):
        (tools / name).write_text(KILLER)
        (tools / name).chmod(0o755)
    counter, killed, whole = tmp_path / "counter", 0, set()
    while True:
        folder = tmp_path / str(killed)
        counter.write_text("0\n")
        done = run(folder, COUNTER=counter, KILL_AT=killed, PATH=f"{tools}:/usr/bin:/bin")
        whole.add(len(checkpoints(folder)))
        if done.returncode == 0:
            break
        assert done.returncode == -9
        assert undisturbed.items() <= finish(folder).items()  # one superfluous old checkpoint may remain
        killed += 1
    assert killed == 6 * STEPS and whole == {0, 1, 2, 3, 4}


def test_asked_to_save_it_goes_on(undisturbed, tmp_path):
    save = tmp_path / "save"
    save.touch()
    assert run(tmp_path, GPUQ_SAVE_FILE=save).returncode == 0
    assert not save.exists()
