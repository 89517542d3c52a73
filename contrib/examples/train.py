#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Learns handwritten digits with a small network in numpy; a checkpoint after each epoch.

    gpuq run -t 2h contrib/examples/train.py     gpuq sets where to save, when to stop and where to resume
    ./train.py --resume checkpoints/epoch-0007.npz                         the same by hand, without gpuq

Copy save(), load() and the lines in main() that read GPUQ_* into your own program. The same seed gives
the same network to the last bit, no matter how often the program was stopped.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

CONTINUE_ME = 85  # exit status: saved; gpuq may start the program again from its checkpoint


def save(folder, epoch, params, velocity, rng):
    """Saves atomically: a kill or a full disk leaves the previous checkpoint intact."""
    path = folder / f"epoch-{epoch:04d}.npz"
    arrays = {f"param-{i}": p for i, p in enumerate(params)} | {f"velocity-{i}": v for i, v in enumerate(velocity)}
    unfinished = path.with_suffix(".tmp")
    with open(unfinished, "wb") as file:
        np.savez(file, epoch=epoch, rng=json.dumps(rng.bit_generator.state), **arrays)
        file.flush()
        os.fsync(file.fileno())  # the data must be on disk before the name
    os.replace(unfinished, path)
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    for old in sorted(folder.glob("epoch-*.npz"))[:-3]:
        old.unlink()


def load(path, params, velocity, rng):
    with np.load(path) as checkpoint:
        for i in range(len(params)):
            params[i][:] = checkpoint[f"param-{i}"]
            velocity[i][:] = checkpoint[f"velocity-{i}"]
        rng.bit_generator.state = json.loads(str(checkpoint["rng"]))  # continues the sequence of shuffles
        return int(checkpoint["epoch"])


def forward(params, x):
    w1, b1, w2, b2 = params
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    exp = np.exp(scores)
    return hidden, exp / exp.sum(axis=1, keepdims=True)


def step(params, velocity, x, y, rate=0.05, momentum=0.9):
    """One step of gradient descent on a batch; returns its loss."""
    hidden, probability = forward(params, x)
    d_scores = probability.copy()
    d_scores[np.arange(len(y)), y] -= 1
    d_scores /= len(y)
    d_hidden = (d_scores @ params[2].T) * (hidden > 0)
    gradients = [x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_scores, d_scores.sum(axis=0)]
    for p, v, g in zip(params, velocity, gradients):
        v *= momentum
        v -= rate * g
        p += v
    return -np.log(probability[np.arange(len(y)), y] + 1e-12).mean()


def train_one_epoch(params, velocity, x, y, rng, batch=32):
    order = rng.permutation(len(x))
    batches = [order[i:i + batch] for i in range(0, len(x), batch)]
    return np.mean([step(params, velocity, x[b], y[b]) for b in batches])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", metavar="FILE", default=os.environ.get("GPUQ_RESUME_FROM"))
    parser.add_argument("--seconds-per-epoch", type=float, default=0, help="minimum duration of an epoch, for demonstrations")
    args = parser.parse_args()

    # Set by gpuq; without gpuq each variable has a harmless default.
    folder = Path(os.environ.get("GPUQ_CHECKPOINT_DIR", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    stop_file = os.environ.get("GPUQ_STOP_FILE", "")
    save_file = os.environ.get("GPUQ_SAVE_FILE", "")
    deadline = float(os.environ.get("GPUQ_DEADLINE", "inf"))
    print("GPU:", os.environ.get("CUDA_VISIBLE_DEVICES") or "none", flush=True)

    x, y = load_digits(return_X_y=True)
    x = x / 16
    train, test = np.split(np.random.default_rng(0).permutation(len(x)), [1400])  # the same for every seed

    rng = np.random.default_rng(args.seed)
    params = [rng.normal(0, 0.15, (64, 64)), np.zeros(64), rng.normal(0, 0.15, (64, 10)), np.zeros(10)]
    velocity = [np.zeros_like(p) for p in params]
    done = 0
    if args.resume:
        done = load(args.resume, params, velocity, rng)
        print(f"continuing after epoch {done} from {args.resume}", flush=True)

    slowest = 0
    for epoch in range(done + 1, args.epochs + 1):
        started = time.monotonic()
        loss = train_one_epoch(params, velocity, x[train], y[train], rng)
        accuracy = (forward(params, x[test])[1].argmax(axis=1) == y[test]).mean()
        time.sleep(max(0, args.seconds_per_epoch - (time.monotonic() - started)))
        print(f"epoch {epoch}/{args.epochs} loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)

        save(folder, epoch, params, velocity, rng)
        if os.path.exists(save_file):
            os.unlink(save_file)  # the requested save is done
        slowest = max(slowest, time.monotonic() - started)
        out_of_time = time.time() + 1.5 * slowest > deadline
        if epoch < args.epochs and (os.path.exists(stop_file) or out_of_time):
            print("saved; leaving", "before the time is over" if out_of_time else "as asked", flush=True)
            sys.exit(CONTINUE_ME)


if __name__ == "__main__":
    main()
