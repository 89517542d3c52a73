#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A rank of a torch.distributed program: adds up all ranks, and waits until the file `go` exists."""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
words = [os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")]
sys.stdout.write(f"met {' '.join(words)} {int(total)}\n")  # a single write: the ranks share a pipe
sys.stdout.flush()
while len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
dist.barrier()
