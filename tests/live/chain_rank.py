#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of a training. On USR1 it records the notice, waits for a second one, saves (rank 0) and
exits."""
import os
import pathlib
import signal
import time
import zipfile

RANK = os.environ["SLURM_PROCID"]
DEAF = os.environ.get("DEAF_RANK") == RANK


def say(text):
    with open("said", "a") as file:
        file.write(f"{text} {RANK} {time.time()} {os.environ['SLURMD_NODENAME']}\n")


def save():
    folder = pathlib.Path(os.environ["GPUQ_CHECKPOINT_DIR"])
    with zipfile.ZipFile(folder / "new", "w") as file:
        file.writestr("weights", os.urandom(1000))
    os.replace(folder / "new", folder / "step-1.zip")


def main():
    told = []
    if not DEAF:
        signal.signal(signal.SIGUSR1, lambda *_: told.append(say("told")))
    say("ready")
    if os.environ["GPUQ_LINK"] != "1":
        return
    stop = pathlib.Path(os.environ["GPUQ_STOP_FILE"])
    while not (stop.exists() if DEAF else told):
        time.sleep(0.05)
    time.sleep(1)  # by now srun would have forwarded a signal
    if RANK == "0":
        save()
    say("left")


main()
