#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for a training: each step hashes the state, so a step that is lost or repeated changes the result."""
import argparse
import hashlib
import os
import pathlib
import signal
import sys
import time
import zipfile


def save(folder, step, state):
    """Writes a zip, like torch.save and numpy.savez, that appears under its name atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:04d}.zip"
    unfinished = path.with_suffix(".tmp")
    with zipfile.ZipFile(unfinished, "w") as file:
        file.writestr("state", f"{step} {state}")
        file.writestr("weights", os.urandom(200_000))
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    for old in sorted(folder.glob("step-*.zip"))[:-4]:
        old.unlink()


def load(path):
    with zipfile.ZipFile(path) as file:
        step, state = file.read("state").decode().split()
    return int(step), state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.1)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--folder")
    parser.add_argument("--resume")
    parser.add_argument("--aware", action="store_true", help="looks at gpuq's variables")
    parser.add_argument("--crash-at", type=int, help="exits with 7 at this step, once")
    parser.add_argument("--deaf", action="store_true", help="takes no notice of TERM, which Slurm may send to all")
    args = parser.parse_args()
    if args.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    resume = args.resume or (args.aware and os.environ.get("GPUQ_RESUME_FROM"))
    folder = pathlib.Path(args.folder or os.environ["GPUQ_CHECKPOINT_DIR"])
    stop = os.environ.get("GPUQ_STOP_FILE", "") if args.aware else ""

    step, state = 0, "begin"
    print(f"link {os.environ.get('GPUQ_LINK')} cause {os.environ.get('GPUQ_CAUSE')}", flush=True)
    if resume:
        step, state = load(resume)
        print(f"resumed {step}", flush=True)
    while step < args.steps:
        step += 1
        state = hashlib.sha256(f"{state} {step}".encode()).hexdigest()
        print(f"step {step}", flush=True)
        time.sleep(args.pause)
        told = stop and os.path.exists(stop)
        if step % args.every == 0 or told or step == args.steps:
            save(folder, step, state)
        if told and step < args.steps:
            print("leaving as told", flush=True)
            sys.exit(85)
        crashed = folder / "crashed"
        if args.crash_at == step and not crashed.exists():
            crashed.touch()
            print("crashing", flush=True)
            sys.exit(7)
    print(f"final {state}", flush=True)


if __name__ == "__main__":
    main()
