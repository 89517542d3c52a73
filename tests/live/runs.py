# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers for tests of runs: records on disk, leftovers, terminals."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import termios
import time
import uuid

from clusters import PATIENCE, command_of, environment_of, processes, wait_for

PYTHON = "/usr/bin/python3"
TIOCGPTN = 0x80045430  # from ioctl_tty(2); termios has no name for it


class Record:
    """The directory of one run."""

    def __init__(self, folder):
        self.dir = pathlib.Path(folder)
        self.key = self.dir.name

    def _json(self, name):
        path = self.dir / name
        return json.loads(path.read_text()) if path.exists() else None

    @property
    def run(self):
        return self._json("run.json")

    @property
    def job(self):
        """ID of the Slurm job, or None if there is none yet."""
        link = self._json("link-1/job.json")
        return link and link["job"]

    @property
    def journal(self):
        path = self.dir / "link-1" / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def event(self, name):
        """The journal's first event with this name, or None."""
        return next((one for one in self.journal if one["event"] == name), None)

    @property
    def ended(self):
        """How the run ended: {"status", "cause", ...}, or None."""
        return self.event("ended") or self._json("ended.json")

    @property
    def end_of_run(self):
        """The end as recorded by a client or a later link, or None."""
        return self._json("ended.json")

    def wait_for_end(self, seconds=30):
        return wait_for(lambda: self.ended, seconds, f"the end of run {self.key}")

    def log(self, stream="out"):
        path = self.dir / "link-1" / f"{stream}.log"
        return path.read_bytes() if path.exists() else b""


def records(person):
    """A user's runs, oldest first."""
    return [Record(folder) for folder in person.run_dirs()]


def the_run(person, seconds=20):
    """The only run of this user, as soon as it is on disk."""
    found = wait_for(lambda: records(person), seconds, "a run on disk")
    assert len(found) == 1
    return found[0]


def processes_of(person):
    """All processes of this user: clients, sruns, supervisors, programs."""
    state = str(person.state)
    return processes(lambda pid: environment_of(pid).get("XDG_STATE_HOME") == state)


def words_of(pid):
    """The command line of a process; empty if the process is gone."""
    try:
        return os.fsdecode(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except OSError:
        return []


def sruns(person, kind):
    """The sruns that carry a step's streams: of the supervisor itself ("run"), "relay", "guard"."""
    def is_one(pid):
        return command_of(pid) == "srun" and kind in words_of(pid)
    return [pid for pid in processes_of(person) if is_one(pid)]


def wait_for_handover(person, seconds=20):
    """Waits until the relay, or a socket on the node, has taken over from the step's own srun, and the guard
    runs."""
    relayed = person.env["GPUQ_DIRECT"] == "no"
    def guarded():
        return any("guard" in words_of(pid) and command_of(pid) != "srun" for pid in processes_of(person))
    wait_for(lambda: (sruns(person, "relay") if relayed else guarded()) and not sruns(person, "run") and
             not sruns(person, "guard"), seconds, "the hand-over to a relay")


def told_of(section):
    """Members documented in a section of gpuq-json(5)."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "man" / "gpuq-json.5").read_text()
    text = re.search(rf"^\.SS {re.escape(section)}\n(.*?)^\.S[SH] ", page, re.M | re.S).group(1)
    return set(re.findall(r"^\.TP\n\.B (.*)", text, re.M))


def members_of(document):
    """Members of a document at any depth, without the schema's."""
    if isinstance(document, list):
        return set().union(*map(members_of, document))
    return set().union(*({name} | members_of(one) for name, one in document.items())) - {"schema"} if isinstance(
        document, dict) else set()


def read_document(stream):
    """The JSON document that a command prints before it goes on."""
    text = ""
    while line := stream.readline():
        text += line if isinstance(line, str) else line.decode()
        if text.endswith("\n}\n"):
            return json.loads(text)
    raise AssertionError(f"no document: {text}")


def in_sacct(status):
    """Exit codes that sacct(1) may show: before Slurm 26.05, 128 is subtracted from a status of 128 or more."""
    return (f"{status}:0", f"{status - 128 if status >= 128 else status}:0")


def nothing_left(person, seconds=60):
    """Waits until no job, no process of this user and no process of a job is left. Slurm needs some time to end a
    step with an unreachable srun."""
    def clean():
        return (not person.cluster.squeue() and not processes_of(person) and
                not person.cluster.job_processes())
    try:
        wait_for(clean, seconds, "an end without anything left behind")
    except BaseException:
        for pid in processes_of(person) + person.cluster.job_processes():
            print("left behind:", pid, command_of(pid), words_of(pid))
        print(person.cluster.squeue())
        end_all(person)
        raise


def end_all(person):
    """After a failure: ends all processes and jobs, so that the next test is not affected."""
    for pid in processes_of(person):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for job in person.cluster.squeue():
        person.cluster.slurm("scancel", job[0], check=False)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Terminal:
    """A pseudo-terminal with a login: a session leader (bash) that runs one command and then prints its exit
    status. `screen` holds all output."""

    def __init__(self, person, *words, before="", background=False):
        self.screen = b""
        self.login = uuid.uuid4()
        command = '"$@" & wait $!' if background else '"$@"'
        options = ["-m"] if background else []  # job control, as at a prompt
        line = f'{before} {command}; printf "\\n<status %s>\\n" $?'
        pid, self.master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.chdir(person.home)
            os.execve("/bin/bash", ["bash", *options, "-c", line, "bash", person.cluster.binary,
                                    *map(str, words)],
                      {**person.env, "TERM": "xterm", "LOGIN": str(self.login)})
        self.leader = pid
        self.path = f"/dev/pts/{struct.unpack('I', fcntl.ioctl(self.master, TIOCGPTN, bytes(4)))[0]}"
        self.tty = os.stat(self.path).st_rdev  # as in /proc/PID/stat
        os.set_blocking(self.master, False)
        self.ended = False

    def read(self, seconds=0.0):
        """Reads the available output. False at the end of the terminal."""
        if self.master is None or not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.screen += data
        return bool(data)

    def wait_for(self, text, seconds=20):
        end = time.monotonic() + seconds * PATIENCE
        while text.encode() not in self.screen:
            alive = self.read(0.1)
            assert text.encode() in self.screen or (alive and time.monotonic() < end), \
                f"no {text!r} on the screen: {self.screen[-2000:]!r}"

    def type(self, keys):
        os.write(self.master, keys.encode())

    def type_until_read(self, keys):
        """Types, and waits until a program has read it all, which must not be in cooked mode."""
        self.type(keys)
        with open(os.open(self.path, os.O_RDWR | os.O_NOCTTY), "rb", buffering=0) as tty:
            wait_for(lambda: fcntl.ioctl(tty, termios.FIONREAD, bytes(4)) == bytes(4), 20, "keys to be read")

    def status(self, seconds=20):
        """Waits for the command's exit status and returns it."""
        self.wait_for("<status ", seconds)
        self.wait_for(">", seconds)
        return int(self.screen.rpartition(b"<status ")[2].partition(b">")[0])

    def client(self):
        """The pid of gpuq itself: the only child of the session leader."""
        def child():
            text = pathlib.Path(f"/proc/{self.leader}/task/{self.leader}/children").read_text()
            return [int(word) for word in text.split()]
        return wait_for(child, 10, "the client")[0]

    def hang_up(self):
        """Closes the window."""
        if self.master is not None:
            os.close(self.master)
            self.master = None

    def close(self):
        self.hang_up()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.leader, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.leader, 0)


@contextlib.contextmanager
def terminal(person, *words, **options):
    one = Terminal(person, *words, **options)
    try:
        yield one
    finally:
        one.close()


@contextlib.contextmanager
def all_gpus_taken(cluster, nodes=2, gpus=4):
    """Occupies all GPUs, so that nothing can start inside the block. Yields the jobs that hold them."""
    jobs = [cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", f"--gres=gpu:{gpus}", "--wrap",
                          "exec sleep 300").strip() for _ in range(nodes)]
    try:
        wait_for(lambda: [job[1] for job in cluster.squeue()] == ["RUNNING"] * nodes, 30,
                 "a full cluster")
        yield jobs
    finally:
        cluster.slurm("scancel", *jobs)


def is_waiting(cluster):
    return "PENDING" in [job[1] for job in cluster.squeue()]
