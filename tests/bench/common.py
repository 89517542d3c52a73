# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the benchmarks: a private cluster, measurements in random order, and the output format.

A benchmark prints one line per figure, `NAME VALUE GOAL` (`-`: no goal, for comparison), and remarks after `#`.
It exits with 0 for any figures, and with 1 if it could not measure. GPUQ names the program to measure.
"""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CannotMeasure(Exception):
    """A missing prerequisite or a failure; leads to exit status 1."""


def main(bench):
    """Runs bench() as the main program."""
    sys.stdout.reconfigure(line_buffering=True)
    # A killed benchmark shuts its cluster down too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        bench()
    except CannotMeasure as problem:
        sys.exit(f"{Path(sys.argv[0]).name}: {problem}")


def figure(name, value, goal="-"):
    print(name, f"{value:.2f}" if isinstance(value, float) else value, goal)


def remark(text):
    print("#", text)


def percentile(values, percent):
    """The smallest value not exceeded by at least this percentage of the values."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def gpuq():
    """The gpuq to measure: $GPUQ, or this tree's release build, or its dev build."""
    chosen = os.environ.get("GPUQ")
    for path in [Path(chosen)] if chosen else [ROOT / "build" / p / "bin" / "gpuq" for p in ("release", "dev")]:
        if os.access(path, os.X_OK):
            return str(path.resolve())
    raise CannotMeasure("no gpuq: build it (cmake --preset release && cmake --build --preset release) or set GPUQ")


def built(program):
    """Builds a program of the tests, optimised, in a separate build directory."""
    folder = ROOT / "build" / "bench"
    for words in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"],
                  ["cmake", "--build", folder, "--target", program]):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotMeasure(f"`{' '.join(map(str, words))}`: {done.stdout[-500:]}{done.stderr[-500:]}")
    return folder / "bin" / program


def wait_for(condition, what, seconds=60):
    """Waits for a true value of condition() and returns it."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise CannotMeasure(f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return value


def run(words, **options):
    """Runs a command that must succeed. Returns its output."""
    try:
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60, **options)
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"`{' '.join(map(str, words))}` did not end in 60 s") from None
    if done.returncode != 0:
        raise CannotMeasure(f"`{' '.join(map(str, words))}` exited with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def in_fair_turns(rounds, *measures):
    """Calls each measure once per round, in changing order. Returns a list of results per measure."""
    order = random.Random(1)
    results = [[] for _ in measures]
    for _ in range(rounds):
        for i in order.sample(range(len(measures)), len(measures)):
            results[i].append(measures[i]())
    return results


class Cluster:
    """A private Slurm cluster, and the environment for using it with gpuq and Slurm's commands."""

    def __init__(self, folder):
        self.gpuq = gpuq()
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        hidden = ("GPUQ", "SLURM", "SBATCH", "SALLOC", "SQUEUE", "XDG_")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        self.env |= {"SLURM_CONF": str(folder / "cluster" / "slurm.conf"),
                     "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}

    def cluster(self, action, *options):
        return run([self.gpuq, "cluster", action, "--dir", self.folder / "cluster", *options], env=self.env)

    def run(self, *words, **options):
        return run(words, env=self.env, **options)

    def popen(self, *words, **options):
        return subprocess.Popen(list(map(str, words)), env=self.env, cwd=self.scratch, **options)

    def idle(self):
        """Waits until no job occupies a node, so that the next start is not delayed."""
        def free():
            return not self.run("squeue", "-h", "-o", "%T", "--states=PD,CF,R,S,CG").strip() \
                and set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}
        wait_for(free, "an idle cluster")

    def rpcs(self):
        """RPCs handled by slurmctld so far: message type -> (count, total microseconds).

        Reports of its own daemons and this query are left out."""
        daemons = {"REQUEST_STATS_INFO", "MESSAGE_NODE_REGISTRATION_STATUS", "MESSAGE_EPILOG_COMPLETE",
                   "REQUEST_COMPLETE_PROLOG", "ACCOUNTING_UPDATE_MSG", "ACCOUNTING_REGISTER_CTLD", "REQUEST_PING"}
        by_type = self.run("sdiag").split("by message type")[1].split("by user")[0]
        rows = re.findall(r"(\w+)\s+\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)", by_type)
        return {name: (int(count), int(spent)) for name, count, spent in rows if name not in daemons}


def rpcs_between(before, after):
    """RPCs in between: message type -> (count, microseconds)."""
    asked = {name: (count - before.get(name, (0, 0))[0], spent - before.get(name, (0, 0))[1])
             for name, (count, spent) in after.items()}
    return {name: figures for name, figures in asked.items() if figures[0]}


def told(rpcs):
    return ", ".join(f"{count} {name}" for name, (count, _) in sorted(rpcs.items())) or "none"


@contextlib.contextmanager
def a_cluster(gpus=4, nodes=1, lines=()):
    """A cluster with Slurm's default scheduling, which is up while the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="gpuq-bench-"))
    folder.chmod(0o755)  # other users' jobs need access
    options = ["--gpus", gpus, "--nodes", nodes, "--model", "k80"]
    for line in ("SchedulerParameters=batch_sched_delay=3", *lines):
        options += ["--slurm-conf", line]
    cluster = Cluster(folder)
    try:
        cluster.cluster("up", *options)
        cluster.idle()
        yield cluster
    finally:
        subprocess.run([cluster.gpuq, "cluster", "down", "--purge", "--dir", folder / "cluster"],
                       env=cluster.env, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
