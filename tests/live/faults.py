# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of faults: runs to break, and the conditions that must hold afterwards."""
import contextlib
import json
import os
import pathlib
import signal
import threading
import time

import pytest

from conftest import command_of, environment_of, is_running, processes, wait_for

# contrib/soak.sh uses full lengths and counts; CI has a time budget.
SOAK = bool(os.environ.get("GPUQ_SOAK"))


def of_soak(full, short):
    return full if SOAK else short


def leave_to_soak(unless):
    """Skips a slow repetition, unless it is the one that CI runs too."""
    if not SOAK and not unless:
        pytest.skip("a repetition, run by contrib/soak.sh")


DAEMONS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmscriptd", "slurmd")

# Numbered lines, so that missing, duplicate or misplaced ones are detected.
COUNTING = """
i=0
while [ $i -lt {lines} ]; do
    i=$((i + 1)); echo line $i
    {pause}
done
"""


def counting(lines, pause=0.1, then="exit 0"):
    """A program that prints numbered lines, one every `pause` seconds."""
    return ["sh", "-c", COUNTING.format(lines=lines, pause=f"sleep {pause}" if pause else ":") + then]


def assert_counted(text, lines=None):
    """Checks that the lines are complete and in order, and that there are `lines` of them, if given."""
    seen = text.splitlines()
    assert seen == [f"line {number}" for number in range(1, len(seen) + 1)], text[-2000:]
    assert text == "" or text.endswith("\n")
    if lines is not None:
        assert len(seen) == lines


class Run:
    """A run, as recorded in its directory."""

    def __init__(self, person, folder):
        self.person = person
        self.cluster = person.cluster
        self.folder = pathlib.Path(folder)
        self.link = self.folder / "link-1"

    @classmethod
    def newest(cls, person, seconds=15):
        folders = wait_for(person.run_dirs, seconds, "a folder of a run")
        return cls(person, folders[-1])

    def events(self, kind=None):
        """Events of the journal; a truncated last line is ignored."""
        try:
            lines = (self.link / "journal.jsonl").read_text().splitlines(keepends=True)
        except OSError:
            return []
        every = [json.loads(line) for line in lines if line.endswith("\n")]
        return [one for one in every if kind is None or one["event"] == kind]

    def event(self, kind, seconds=20):
        return wait_for(lambda: self.events(kind), seconds, f"{kind} in {self.link}/journal")[0]

    @property
    def ended(self):
        """The ending, from the run's files."""
        return self.event("ended", 30)

    @property
    def job(self):
        return wait_for(lambda: self._job(), 15, f"the job of {self.folder}")

    def _job(self):
        with contextlib.suppress(OSError, ValueError):
            return int(json.loads((self.link / "job.json").read_text())["job"])
        started = self.events("supervisor_started")
        return started and started[0].get("job")

    def output(self, stream="out"):
        return (self.link / f"{stream}.log").read_bytes()

    def written(self, size=1, seconds=20):
        """Waits until the log has at least `size` bytes."""
        log = self.link / "out.log"
        return wait_for(lambda: log.exists() and log.stat().st_size >= size, seconds, f"{size} bytes in {log}")

    # Processes of the run

    @property
    def supervisor(self):
        return self.event("supervisor_started")["pid"]

    @property
    def guardian(self):
        return parent_of(self.supervisor)

    @property
    def program(self):
        return self.event("program_started")["pid"]

    @property
    def slurmstepd(self):
        """Pid of the slurmstepd of the supervisor's step."""
        pid = parent_of(self.guardian)
        assert command_of(pid) == "slurmstepd", command_of(pid)
        return pid

    def processes(self):
        return processes(lambda pid: environment_of(pid).get("GPUQ_RUN_ID") == self.folder.name)

    def steps(self):
        """IDs of the job's steps, as shown by squeue."""
        text = self.cluster.slurm("squeue", "-h", "-s", "-o", "%i", "-j", self.job, check=False)
        return text.split()

    def handed_over(self, seconds=15):
        """Waits until the relay and the guard carry the run: the first srun is gone."""
        def ready():
            steps = self.steps()
            sruns = processes(lambda pid: command_of(pid) == "srun" and
                              str(self.folder.name) in command_line_of(pid))
            words = [command_line_of(pid) for pid in sruns]
            return (len(steps) >= 3 and any(" relay " in word for word in words)
                    and not any(" run " in word or " guard " in word for word in words))
        return wait_for(ready, seconds, f"the hand-over of {self.folder.name}")


def parent_of(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(text.rpartition(")")[2].split()[1])


def command_line_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    if number == signal.SIGKILL:
        wait_for(lambda: not is_running(pid), 10, f"the end of {pid}")


def running_job(cluster, job):
    return any(one == str(job) and state in ("RUNNING", "COMPLETING", "PENDING")
               for one, state, _ in cluster.squeue())


def assert_nothing_left(cluster, seconds=60):
    """Checks that no allocation, GPU or process is left except the daemons. Leftovers are removed, so that
    only the test that left them fails."""
    def left():
        return [pid for pid in cluster.all_processes() if command_of(pid) not in DAEMONS]
    try:
        cluster.wait_until_idle(seconds)
        end = time.monotonic() + 20
        while left() and time.monotonic() < end:
            time.sleep(0.05)
        assert not left(), [(pid, command_line_of(pid)) for pid in left()]
    finally:
        for job, _, _ in cluster.squeue():
            cluster.slurm("scancel", job, check=False)
        for pid in left():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not cluster.squeue(), 30, "an empty queue after the tidying")


def read_available(stream, seconds=20, size=1):
    """Reads at least `size` bytes from a client's pipe."""
    os.set_blocking(stream.fileno(), False)
    got = b""

    def more():
        nonlocal got
        piece = stream.read()
        got += piece or b""
        return len(got) >= size
    wait_for(more, seconds, "output of the client")
    os.set_blocking(stream.fileno(), True)
    return got


class Beside(threading.Thread):
    """Runs a gpuq to its end, in parallel with others."""

    def __init__(self, person, *words, timeout=150):
        super().__init__()
        self.person, self.words, self.timeout = person, words, timeout
        self.status = None
        self.out = self.said = ""
        self.start()

    def run(self):
        done = self.person.gpuq(*self.words, timeout=self.timeout)
        self.status, self.out, self.said = done.returncode, done.stdout, done.stderr
