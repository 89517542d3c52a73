#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""train.py in PyTorch: handwritten digits, a checkpoint after each epoch, stopped and continued by gpuq.

    gpuq run -t 2h contrib/examples/train_torch.py
    ./train_torch.py --resume checkpoints/epoch-0007.pt                    the same by hand, without gpuq

Copy save(), load() and the lines in main() that read GPUQ_*. On one machine the same seed gives the
same network to the last bit, however often it was stopped; on a GPU too, as far as PyTorch can.
"""
import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS may add in another order

import torch
from sklearn.datasets import load_digits

CONTINUE_ME = 85  # exit status: saved; gpuq may start me again from my checkpoint


def save(folder, epoch, model, optimizer, shuffler):
    """A whole checkpoint under its name, or none: a kill or a full disk leaves the last one alone."""
    path = folder / f"epoch-{epoch:04d}.pt"
    unfinished = path.with_suffix(".tmp")
    with open(unfinished, "wb") as file:
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "shuffler": shuffler.get_state()}, file)
        file.flush()
        os.fsync(file.fileno())  # the bytes are on disk before the name is
    os.replace(unfinished, path)
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    for old in sorted(folder.glob("epoch-*.pt"))[:-3]:
        old.unlink()


def load(path, model, optimizer, shuffler):
    checkpoint = torch.load(path, map_location="cpu")  # saved on a GPU, perhaps continued without one
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    shuffler.set_state(checkpoint["shuffler"])  # shuffles go on where they were
    return checkpoint["epoch"]


def train_one_epoch(model, optimizer, x, y, shuffler, batch=32):
    losses = []
    for chosen in torch.randperm(len(x), generator=shuffler).to(x.device).split(batch):
        loss = torch.nn.functional.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


def accuracy_of(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", metavar="FILE", default=os.environ.get("GPUQ_RESUME_FROM"))
    parser.add_argument("--seconds-per-epoch", type=float, default=0, help="at least so long, to have something to watch")
    args = parser.parse_args()

    # What gpuq says; without gpuq every one of them has a harmless value.
    folder = Path(os.environ.get("GPUQ_CHECKPOINT_DIR", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    stop_file = os.environ.get("GPUQ_STOP_FILE", "")
    save_file = os.environ.get("GPUQ_SAVE_FILE", "")
    deadline = float(os.environ.get("GPUQ_DEADLINE", "inf"))

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("GPU:", os.environ.get("CUDA_VISIBLE_DEVICES") or "none", "computing on:", device, flush=True)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # so small a network gains nothing from more
    torch.manual_seed(args.seed)

    x, y = (torch.from_numpy(a).to(device) for a in load_digits(return_X_y=True))
    x = x.float() / 16
    split = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).to(device)  # the same for every seed
    train, test = split[:1400], split[1400:]

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    shuffler = torch.Generator().manual_seed(args.seed)
    done = 0
    if args.resume:
        done = load(args.resume, model, optimizer, shuffler)
        print(f"going on after epoch {done} from {args.resume}", flush=True)

    slowest = 0
    for epoch in range(done + 1, args.epochs + 1):
        started = time.monotonic()
        loss = train_one_epoch(model, optimizer, x[train], y[train], shuffler)
        accuracy = accuracy_of(model, x[test], y[test])
        time.sleep(max(0, args.seconds_per_epoch - (time.monotonic() - started)))
        print(f"epoch {epoch}/{args.epochs} loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)

        save(folder, epoch, model, optimizer, shuffler)
        if os.path.exists(save_file):
            os.unlink(save_file)  # asked to save: done just now
        slowest = max(slowest, time.monotonic() - started)
        out_of_time = time.time() + 1.5 * slowest > deadline
        if epoch < args.epochs and (os.path.exists(stop_file) or out_of_time):
            print("saved; leaving", "before the time is over" if out_of_time else "as asked", flush=True)
            sys.exit(CONTINUE_ME)


if __name__ == "__main__":
    main()
