# SPDX-License-Identifier: GPL-2.0-or-later
"""Clusters made by `gpuq cluster up`, and the operations that tests need on them.

GPUQ_BIN names the directory of the programs under test; the default is the build directory of preset dev.
"""
import atexit
import contextlib
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST_USER = "gpuq-test"
BUILT = pathlib.Path(os.environ.get("GPUQ_BIN", ROOT / "build" / "dev" / "bin")).resolve()


def programs():
    """The directory of gpuq and gpuq-supervisor; a copy if other users could not access it."""
    if os.geteuid() != 0 or all(folder.stat().st_mode & stat.S_IXOTH for folder in BUILT.parents):
        return BUILT
    copy = pathlib.Path(tempfile.mkdtemp(prefix="gq-bin-", dir="/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for program in BUILT.glob("gpuq*"):
        shutil.copy2(program, copy)
    return copy


BIN = programs()
GPUQ = str(BIN / "gpuq")
# Limits of waits are for an idle machine and multiplied by this, because four clusters on two cores starve each other.
# They only detect a hang: a test about time measures it.
PATIENCE = 4


def wait_for(condition, seconds=30.0, what=None):
    """Waits for a true value of condition() and returns it; fails the test on a timeout. `what` is the
    description for the message: a string, or a function that returns one."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            words = what() if callable(what) else what or getattr(condition, "__name__", condition)
            pytest.fail(f"not within {seconds} s: {words}")
        time.sleep(0.02)


def environment_of(pid):
    """Environment of a process: NAME -> value. Empty if the process is gone or belongs to another user."""
    try:
        raw = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    return dict(item.split("=", 1) for item in os.fsdecode(raw).split("\0") if "=" in item)


def is_running(pid):
    """True unless the process is gone or a zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def processes(predicate):
    """Pids, other than this one, for which predicate(pid) holds."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and is_running(pid) and predicate(pid)]


class Cluster:
    """A cluster in its own directory."""

    def __init__(self, directory, binary=GPUQ, as_user=None):
        self.dir = pathlib.Path(directory)
        self.conf = self.dir / "slurm.conf"
        self.binary = binary
        self.as_user = as_user
        self.env = {**plain_environment(), "SLURM_CONF": str(self.conf)}
        if as_user:
            self.env.update(HOME=as_user.pw_dir, USER=as_user.pw_name, LOGNAME=as_user.pw_name)

    # Start and stop

    def cluster(self, action, *options, check=True, timeout=90):
        """Runs gpuq cluster ACTION --dir ..."""
        done = run([self.binary, "cluster", action, "--dir", str(self.dir), *options], env=self.env,
                   user=self.as_user, timeout=timeout)
        assert not check or done.returncode == 0, done.stderr
        return done

    def up(self, gpus=4, nodes=1, model="k80", lines=(), options=()):
        words = [*options]
        for name, value in (("--gpus", gpus), ("--nodes", nodes), ("--model", model)):
            words += [name, value] if value else []
        for line in lines:
            words += ["--slurm-conf", line]
        return self.cluster("up", *map(str, words))

    def down(self, *options):
        return self.cluster("down", *options)

    def status(self):
        return json.loads(self.cluster("status", "--json", check=False).stdout)

    def pid(self, daemon):
        """Pid of munged, mariadbd, slurmdbd, slurmctld, slurmd-n0 ..."""
        return next(one["pid"] for one in self.status()["daemons"] if one["name"] == daemon)

    def signal(self, daemon, number=signal.SIGKILL):
        """Signals one daemon. For KILL, waits until it has exited."""
        pid = self.pid(daemon)
        os.kill(pid, number)
        if number == signal.SIGKILL:
            wait_for(lambda: not is_running(pid), 10, f"the end of {daemon}")
        return pid

    @contextlib.contextmanager
    def stopped(self, daemon):
        """The daemon does not respond inside the block (SIGSTOP)."""
        pid = self.signal(daemon, signal.SIGSTOP)
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGCONT)

    def repair(self):
        """Starts killed daemons again."""
        return self.cluster("up")

    # Slurm's own commands

    def slurm(self, *words, check=True, timeout=30, user=None):
        done = run([str(word) for word in words], env=self.env, user=user or self.as_user,
                   timeout=timeout)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def scontrol(self, *words):
        return self.slurm("scontrol", *words)

    def squeue(self, *words):
        """Tuples (job id, state, name); with -t all, ended jobs too."""
        text = self.slurm("squeue", "-h", "-o", "%A|%T|%j", *words)
        return [tuple(line.split("|", 2)) for line in text.splitlines()]

    def job(self, job_id):
        """Output of scontrol show job as a dict."""
        return dict(re.findall(r"(\S+?)=(\S*)", self.scontrol("show", "job", str(job_id))))

    def sacct(self, *words, fields=("JobIDRaw", "State", "ExitCode")):
        """Allocations recorded by slurmdbd, one dict each."""
        text = self.slurm("sacct", "-n", "-P", "-X", "-a", "-o", ",".join(fields), *words)
        return [dict(zip(fields, line.split("|"))) for line in text.splitlines()]

    def accounted(self, job_id, fields=("JobIDRaw", "State", "ExitCode"), seconds=20):
        """The record of an ended job. Waits, since slurmdbd learns of the end with a delay."""
        def ended():
            rows = [row for row in self.sacct("-j", str(job_id), fields=(*fields, "State", "End"))
                    if row["End"] != "Unknown"]
            return rows and rows[0]
        return wait_for(ended, seconds, f"accounting of job {job_id}")

    def rpcs(self):
        """Counts of the controller's RPCs by type, from sdiag."""
        text = self.slurm("sdiag")
        part = text.partition("by message type")[2].partition("by user")[0]
        return {name: int(count) for name, count in
                re.findall(r"^\s+(\w+)\s+\(\s*\d+\) count:(\d+)", part, re.M)}

    # Leftovers

    def daemons(self):
        """Pids of munged, mariadbd and Slurm's daemons, including those of a failed start."""
        return [pid for pid in self.all_processes()
                if command_of(pid).startswith(("slurm", "munged", "mariadbd"))]

    def state_value(self, key):
        """Every value of a key in the state file."""
        text = (self.dir / "cluster.state").read_text()
        return re.findall(rf"^{key} (.*)$", text, re.M)

    def job_processes(self):
        """Processes of this cluster's jobs, including daemonised ones, and its slurmstepds."""
        def belongs(pid):
            variables = environment_of(pid)
            return variables.get("SLURM_CONF") == str(self.conf) and (
                "SLURMD_NODENAME" in variables or command_of(pid) == "slurmstepd")
        return processes(belongs)

    def all_processes(self):
        """All processes with this cluster in their environment, including clients."""
        return processes(lambda pid: environment_of(pid).get("SLURM_CONF") == str(self.conf))

    def wait_until_idle(self, seconds=60):
        """Waits until no allocation and no process of a job is left and every GPU is free. A restarted
        slurmctld counts a node's GPUs correctly only after the node has registered with it."""
        def busy():
            return self.squeue() or self.job_processes() or self.used_gpus()
        def left():
            return self.squeue() or [(pid, command_of(pid)) for pid in self.job_processes()] or self.used_gpus()
        wait_for(lambda: not busy(), seconds, lambda: f"an idle cluster; last: {left()}")

    def used_gpus(self):
        """GPUs in use according to sinfo: a string per node with a count above 0."""
        used = self.slurm("sinfo", "-h", "-N", "-O", "GresUsed:100").split()
        return [text for text in used if re.search(r"gpu(:\w+)?:[1-9]", text)]


def plain_environment():
    """This process's environment without variables that would select another cluster or state directory."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SALLOC", "SRUN", "GPUQ", "SQUEUE", "SACCT",
                                    "XDG_"))}
    kept["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    kept["LC_ALL"] = "C.UTF-8"
    # As if the nodes were other machines: relays carry the traffic (test_direct.py: without relays).
    kept["GPUQ_DIRECT"] = "no"
    kept["GPUQ_HANDOVER"] = "2s"  # so that tests need not wait for it
    return kept


def as_kwargs(user):
    """Options with which subprocess switches to a user; only root can do so."""
    if user is None or user.pw_uid == os.geteuid():
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def account(name):
    """The test account with this name; only root can create one."""
    for _ in range(2):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
        # Another worker may be faster: then the second lookup finds the account.
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=False,
                       capture_output=True)
    return pwd.getpwnam(name)


def run(words, env, user=None, timeout=60, **options):
    options = {"text": True, "capture_output": True, "stdin": subprocess.DEVNULL, "cwd": "/tmp",
               **options}
    if "input" in options:
        del options["stdin"]
    return subprocess.run(words, env=env, timeout=timeout * PATIENCE, check=False, **as_kwargs(user), **options)


class Child(subprocess.Popen):
    """A process whose end is waited for as by wait_for()."""

    def wait(self, timeout=None):
        return super().wait(timeout and timeout * PATIENCE)

    def communicate(self, input=None, timeout=None):
        return super().communicate(input, timeout and timeout * PATIENCE)


class Person:
    """A user with a home, a state directory and gpuq on a cluster."""

    def __init__(self, cluster, home, user=None):
        self.cluster = cluster
        self.home = pathlib.Path(home)
        self.state = self.home / "state"
        self.user = user
        self.env = {**cluster.env, "HOME": str(home), "XDG_STATE_HOME": str(self.state),
                    "XDG_CONFIG_HOME": str(self.home / "config")}

    def gpuq(self, *words, timeout=60, env=None, **options):
        """Runs gpuq to its end. Returns a CompletedProcess with text (text=False: bytes)."""
        return run([self.cluster.binary, *map(str, words)], env={**self.env, **(env or {})},
                   user=self.user, timeout=timeout, **{"cwd": self.home, **options})

    @contextlib.contextmanager
    def start(self, *words, env=None, **options):
        """A running gpuq with pipes, killed at the end of the block if necessary."""
        options = {"cwd": self.home, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "start_new_session": True, "bufsize": 0,
                   **options}
        child = Child([self.cluster.binary, *map(str, words)], env={**self.env, **(env or {})}, **as_kwargs(self.user),
                      **options)
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
            child.wait(10)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()

    def run_dirs(self):
        """Directories of this user's runs, oldest first."""
        runs = self.state / "gpuq" / "runs"
        return sorted(runs.iterdir()) if runs.exists() else []


def free_port(address="127.0.0.1"):
    """A free port that the kernel gives to no connection in the meantime: below its range for these."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, lowest)
        with contextlib.suppress(OSError), socket.create_server(
                (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
            return port


@contextlib.contextmanager
def short_folder():
    """A directory with a short path, for sockets, that all users may traverse."""
    folder = tempfile.mkdtemp(prefix="gq-", dir="/tmp")
    os.chmod(folder, 0o755)
    try:
        yield pathlib.Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_cluster(gpus=4, nodes=2, model="k80", lines=("KillWait=5",), options=(), as_user=None):
    with short_folder() as folder:
        home = folder / "c"
        home.mkdir(mode=0o755)
        if as_user:
            os.chown(home, as_user.pw_uid, as_user.pw_gid)
        cluster = Cluster(home, as_user=as_user)
        try:
            cluster.up(gpus=gpus, nodes=nodes, model=model, lines=lines, options=options)
            yield cluster
        finally:
            # A failed test may have left a daemon stopped.
            for pid in cluster.all_processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
            cluster.cluster("down", "--purge", check=False)
            left = cluster.daemons()
            assert not left, f"left behind: {[(pid, command_of(pid)) for pid in left]}"
