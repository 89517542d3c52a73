# SPDX-License-Identifier: GPL-2.0-or-later
"""A real training in PyTorch with six or more links gives the loss curve and the network of an uninterrupted one."""
import os
import shutil
import subprocess

import pytest

from conftest import Person, short_folder
from faults import SOAK

CLUSTER = dict(nodes=1, gpus=1)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EPOCHS = 150
TRAIN = ["/usr/bin/python3", "train_torch.py", "--epochs", EPOCHS]
SAME = """
import sys, torch
one, other = (torch.load(path)["model"] for path in sys.argv[1:])
sys.exit(not all(torch.equal(one[name], other[name]) for name in one))
"""


def curve(text):
    return [line for line in text.splitlines() if line.startswith("epoch ")]


@pytest.mark.skipif(not SOAK, reason="takes three minutes: contrib/soak.sh")
def test_a_pytorch_training_through_six_links(cluster):
    with short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        for file in ("examples/train_torch.py", "python/gpuq.py"):
            shutil.copy(os.path.join(ROOT, "contrib", file), home)
        done = person.gpuq("run", "-t", 10, "--link", "30s", "--mem", "1G", "--", *TRAIN, "--seconds-per-epoch", 0.9,
                           timeout=400)
        assert done.returncode == 0, done.stderr
        folder, = person.run_dirs()
        assert len(list(folder.glob("link-*/journal.jsonl"))) >= 6
        plain = home / "plain"
        plain.mkdir()
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GPUQ_", "SLURM_"))}
        unbroken = subprocess.run([*map(str, TRAIN[:1]), str(home / "train_torch.py"), *map(str, TRAIN[2:])], cwd=plain,
                                  env=env, text=True, capture_output=True, check=True)
        assert curve(done.stdout) == curve(unbroken.stdout) and len(curve(done.stdout)) == EPOCHS
        last = f"checkpoints/epoch-{EPOCHS:04d}.pt"
        subprocess.run([TRAIN[0], "-c", SAME, str(folder / last), str(plain / last)], check=True)
