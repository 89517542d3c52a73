#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""train.py in PyTorch: handwritten digits, a checkpoint after each epoch, stopped and continued by gpuq.

    gpuq run -t 2h contrib/examples/train_torch.py
    ./train_torch.py --resume checkpoints/epoch-0007.pt                    the same by hand, without gpuq

Requires gpuq.py in the same directory. Copy that file, save(), load() and the lines in main() that use gpuq. On one
machine the same seed gives the same network to the last bit, no matter how often the program was stopped; on a GPU
too, as far as PyTorch allows.
"""
import argparse
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # otherwise the order of additions in cuBLAS may vary

import torch
from sklearn.datasets import load_digits

import gpuq


def save(folder, epoch, model, optimizer, shuffler):
    """Saves atomically: a kill or a full disk leaves the previous checkpoint intact."""
    with gpuq.atomic(folder / f"epoch-{epoch:04d}.pt") as file:
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "shuffler": shuffler.get_state()}, file)
    for old in sorted(folder.glob("epoch-*.pt"))[:-3]:
        old.unlink()


def load(path, model, optimizer, shuffler):
    checkpoint = torch.load(path, map_location="cpu")  # a checkpoint saved on a GPU may be loaded without one
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    shuffler.set_state(checkpoint["shuffler"])  # continues the sequence of shuffles
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
    parser.add_argument("--resume", metavar="FILE", default=gpuq.resume_from())
    parser.add_argument("--seconds-per-epoch", type=float, default=0, help="minimum duration of an epoch, for demonstrations")
    args = parser.parse_args()

    folder = gpuq.checkpoint_dir()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("GPU:", os.environ.get("CUDA_VISIBLE_DEVICES") or "none", "computing on:", device, flush=True)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # a small network gains nothing from more threads
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
        print(f"continuing after epoch {done} from {args.resume}", flush=True)

    def save_after(epoch):
        save(folder, epoch, model, optimizer, shuffler)

    for epoch in gpuq.epochs(args.epochs, start=done, save=save_after):
        started = time.monotonic()
        loss = train_one_epoch(model, optimizer, x[train], y[train], shuffler)
        accuracy = accuracy_of(model, x[test], y[test])
        time.sleep(max(0, args.seconds_per_epoch - (time.monotonic() - started)))
        print(f"epoch {epoch + 1}/{args.epochs} loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
