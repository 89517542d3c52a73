#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples train well, and stopping or killing them at any point does not change the result."""
import collections
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: /usr/bin/python3 -m pytest, python3-numpy")
pytest.importorskip("sklearn", reason="scikit-learn is missing: python3-sklearn")

EXAMPLES = Path(__file__).resolve().parents[2] / "contrib" / "examples"
EPOCHS = 5


class Example:
    def __init__(self, script, suffix):
        self.script, self.suffix = EXAMPLES / script, suffix

    def start(self, folder, *args, resume=None, wrapper=(), limit=None, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUQ_")}
        environment |= {"GPUQ_CHECKPOINT_DIR": str(folder)} | {k: str(v) for k, v in variables.items()}
        if resume:
            environment["GPUQ_RESUME_FROM"] = str(resume)
        return subprocess.Popen([*wrapper, sys.executable, self.script, f"--epochs={EPOCHS}", *args], text=True,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)

    def run(self, folder, *args, **options):
        process = self.start(folder, *args, **options)
        out, err = process.communicate(timeout=300)  # importing PyTorch alone takes seconds on a busy machine
        return process.returncode, out, err

    def checkpoints(self, folder):
        return sorted(Path(folder).glob(f"epoch-*.{self.suffix}"))

    def content(self, path):
        """The full content of a checkpoint in a form that compares bit by bit; raises if it is incomplete."""
        if self.suffix == "npz":
            with np.load(path) as checkpoint:
                return {name: (checkpoint[name].dtype.str, checkpoint[name].tobytes()) for name in checkpoint.files}
        import torch
        return plain(torch.load(path, map_location="cpu"))

    def result(self, folder):
        return self.content(self.checkpoints(folder)[-1])


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.numpy().tobytes() if hasattr(value, "numpy") else value


@pytest.fixture(scope="module", params=["train.py", "train_torch.py"])
def example(request):
    if request.param == "train_torch.py":
        pytest.importorskip("torch", reason="PyTorch is missing: python3-torch")
        return Example(request.param, "pt")
    return Example(request.param, "npz")


@pytest.fixture(scope="module")
def undisturbed(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    begin = time.monotonic()
    status, out, err = example.run(folder)
    assert status == 0, err
    example.seconds = time.monotonic() - begin
    return example.result(folder)


def finish(example, folder):
    """Resumes from the newest checkpoint and runs to the end, as gpuq would."""
    found = example.checkpoints(folder)
    for path in found:
        example.content(path)  # every file with a checkpoint's name is complete
    status, out, err = example.run(folder, resume=found[-1] if found else None)
    assert status == 0, err
    return example.result(folder)


def test_learns_digits_and_says_so_each_epoch(example, tmp_path):
    status, out, err = example.run(tmp_path, "--epochs=40", CUDA_VISIBLE_DEVICES=3)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"GPU: 3\b", lines[0])
    epochs = [re.fullmatch(r"epoch (\d+)/40 loss (\d+\.\d{4}) accuracy ([01]\.\d{3})", line) for line in lines[1:]]
    assert [int(e[1]) for e in epochs] == list(range(1, 41))
    assert float(epochs[-1][2]) < float(epochs[0][2]) / 10
    assert float(epochs[-1][3]) >= 0.95


def test_another_seed_gives_another_network(example, undisturbed, tmp_path):
    assert example.run(tmp_path / "same", "--seed=0")[0] == 0
    assert example.run(tmp_path / "other", "--seed=1")[0] == 0
    assert example.result(tmp_path / "same") == undisturbed
    assert example.result(tmp_path / "other") != undisturbed


def test_stopped_after_every_epoch_it_ends_with_the_same_network(example, undisturbed, tmp_path):
    stop = tmp_path / "stop"
    stop.touch()  # present from the beginning: each start trains one epoch
    newest = None
    for epoch in range(1, EPOCHS):
        status, out, err = example.run(tmp_path, resume=newest, GPUQ_STOP_FILE=stop)
        assert (status, out.splitlines()[-1]) == (85, "saved; leaving as asked"), err
        newest = example.checkpoints(tmp_path)[-1]
        assert newest.stem == f"epoch-{epoch:04d}"
    assert example.run(tmp_path, resume=newest, GPUQ_STOP_FILE=stop)[0] == 0
    assert example.result(tmp_path) == undisturbed


def test_killed_after_any_epoch_it_ends_with_the_same_network(example, undisturbed, tmp_path):
    for epoch in range(1, EPOCHS + 1):
        folder = tmp_path / str(epoch)
        process = example.start(folder)
        for line in process.stdout:
            if line.startswith(f"epoch {epoch}/"):
                process.kill()  # about when it saves
                break
        process.communicate()
        assert finish(example, folder) == undisturbed


@pytest.mark.parametrize("call", ["fsync", "rename", "unlink"])
def test_killed_inside_the_save_it_leaves_no_half_checkpoint(example, undisturbed, tmp_path, call):
    if example.suffix == "pt" and call != "rename" and not os.environ.get("GPUQ_SOAK"):
        pytest.skip("a repetition, run by contrib/soak.sh")
    whole = 0
    log = tmp_path / "calls"
    # Some releases of torch also make these calls before the first save: the last one is certainly inside a save.
    assert example.run(tmp_path / "counted", wrapper=("strace", "-f", "-qq", "-o", str(log), "-e", f"trace={call}"))[0] == 0
    calls = collections.Counter(line.split()[0] for line in log.read_text().splitlines() if f" {call}(" in line)
    for time_called in (1, 3, max(calls.values())):
        folder = tmp_path / str(time_called)
        killer = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
                  "-e", f"inject={call}:signal=KILL:when={time_called}")
        status, out, err = example.run(folder, wrapper=killer)
        assert status in (-9, 137), err
        whole += len(example.checkpoints(folder))
        assert finish(example, folder) == undisturbed
    assert whole > 0


def test_asked_to_save_it_saves_and_goes_on(example, undisturbed, tmp_path):
    save = tmp_path / "save"
    save.touch()
    assert example.run(tmp_path, GPUQ_SAVE_FILE=save)[0] == 0
    assert not save.exists()  # so that another save can be requested
    assert example.result(tmp_path) == undisturbed


def test_leaves_before_its_time_is_over(example, undisturbed, tmp_path):
    folder = tmp_path / "run"
    # Three epochs, two if the start takes twice as long as before.
    epoch = max(3, example.seconds)
    deadline = time.time() + example.seconds + 3 * epoch
    status, out, err = example.run(folder, f"--seconds-per-epoch={epoch}", GPUQ_DEADLINE=deadline)
    assert (status, out.splitlines()[-1]) == (85, "saved; leaving before the time is over"), err
    # The checkpoint is saved by then; PyTorch's own exit takes a second on a busy machine.
    assert os.stat(example.checkpoints(folder)[-1]).st_mtime < deadline
    assert finish(example, folder) == undisturbed


def test_a_full_disk_ends_it_and_keeps_the_last_checkpoint(example, undisturbed, tmp_path):
    stop = tmp_path / "stop"
    stop.touch()
    assert example.run(tmp_path, GPUQ_STOP_FILE=stop)[0] == 85
    before = example.checkpoints(tmp_path)
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    status, out, err = example.run(tmp_path, resume=before[-1], limit=full)
    assert status not in (0, 85) and err
    assert example.checkpoints(tmp_path) == before
    assert finish(example, tmp_path) == undisturbed


def test_a_finished_one_has_nothing_to_do(example, undisturbed, tmp_path):
    finish(example, tmp_path)
    assert finish(example, tmp_path) == undisturbed


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", *sys.argv[1:]]))
