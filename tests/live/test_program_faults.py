# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that behave in every possible way: their exit status, their output, and nothing left
behind."""
import hashlib
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from conftest import GPUQ, command_of, environment_of, is_running, processes, wait_for
from faults import (Run, assert_counted, assert_nothing_left, counting, kill, leave_to_soak, of_soak,
                    read_available)
from runs import in_sacct

CLUSTER = dict(nodes=1, gpus=8, lines=["KillWait=5"])
PYTHON = sys.executable
MIB = 1 << 20

# Blocks that differ, so that a lost or doubled one is detected.
BLOCKS = """
import hashlib, sys
total = hashlib.md5()
for number in range({blocks}):
    block = (b'%015d\\n' % number) * 65536
    total.update(block)
    sys.stdout.buffer.write(block)
sys.stdout.buffer.flush()
print(total.hexdigest(), file=sys.stderr)
"""

DAEMONS = """
import os, sys, time
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        if number == 1:
            os.chdir('/')
            null = os.open('/dev/null', os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
        with open(sys.argv[1], 'a') as pids:
            pids.write('%d\\n' % os.getpid())
        time.sleep(1000)
while not os.path.exists(sys.argv[1]) or len(open(sys.argv[1]).readlines()) < 3:
    time.sleep(0.01)
"""


def md5(path):
    total = hashlib.md5()
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            total.update(piece)
    return total.hexdigest()


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_left(cluster)


def run_in(mode, person, *words, **options):
    """`gpuq run` with free GPUs, or as a batch job followed by a client."""
    return person.gpuq("run", *(["--after", person.done] if mode == "batch" else []), "--", *words,
                       **options)


@pytest.fixture(params=["now", "batch"])
def mode(request, person):
    if request.param == "batch":
        # --after a run that succeeded: never immediate, and with hardly any wait.
        assert person.gpuq("run", "-J", "first", "true").returncode == 0
        person.done = Run.newest(person).job
    return request.param


@pytest.mark.parametrize("words, status", [
    (["true"], 0),
    (["sh", "-c", "exit 1"], 1),
    (["sh", "-c", "exit 85"], 85),
    (["sh", "-c", "exit 137"], 137),
    (["sh", "-c", "kill -SEGV $$"], 139),
    (["sh", "-c", "kill -KILL $$"], 137),
])
def test_the_status_is_the_programs_own(cluster, person, words, status):
    done = person.gpuq("run", "--", *words)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    run = Run.newest(person)
    assert run.ended["status"] == status
    state = "COMPLETED" if status == 0 else "FAILED"
    assert cluster.accounted(run.job)["State"] == state
    assert cluster.accounted(run.job)["ExitCode"] in in_sacct(status)


def test_the_status_of_a_batch_job_is_the_programs_own(cluster, person):
    for status in (0, 85, 137):
        assert person.gpuq("run", "--detach", "sh", "-c", f"exit {status}").returncode == 0
        run = Run.newest(person)
        assert run.ended["status"] == status
        assert cluster.accounted(run.job)["ExitCode"] in in_sacct(status)


def test_daemons_are_gone_after_the_run(mode, cluster, person):
    pids = person.home / "pids"
    done = run_in(mode, person, PYTHON, "-c", DAEMONS, str(pids))
    assert done.returncode == 0, done.stderr
    # The allocation is free only after they are gone: this is not a race.
    left = [int(line) for line in pids.read_text().split()]
    assert len(left) == 3
    assert not any(is_running(pid) for pid in left)


def test_nul_and_invalid_utf8_pass_unchanged(mode, person):
    text = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 99 + b'\\xff\\xfe\\x00'); " \
           "sys.stderr.buffer.write(b'\\x00\\xc3\\x28\\xed\\xa0\\x80')"
    done = run_in(mode, person, PYTHON, "-c", text, text=False)
    assert done.returncode == 0
    assert done.stdout == bytes(range(256)) * 99 + b"\xff\xfe\x00"
    assert b"\x00\xc3\x28\xed\xa0\x80" in done.stderr
    run = Run.newest(person)
    assert run.output() == done.stdout
    assert run.output("err") == b"\x00\xc3\x28\xed\xa0\x80"


def test_a_gibibyte_is_whole(mode, person):
    leave_to_soak(unless=mode == "batch")
    blocks = of_soak(1024, 256)
    program = BLOCKS.format(blocks=blocks)
    with open(person.home / "out", "wb") as out:
        done = run_in(mode, person, PYTHON, "-c", program, stdout=out, stderr=subprocess.PIPE,
                      capture_output=False, timeout=of_soak(300, 120))
    assert done.returncode == 0, done.stderr
    run = Run.newest(person)
    expected = run.output("err").decode().strip()
    assert (person.home / "out").stat().st_size == blocks * MIB
    assert md5(person.home / "out") == expected
    assert md5(run.link / "out.log") == expected


def test_one_line_of_200_mb_is_whole(person):
    program = "import sys\nfor i in range(200): sys.stdout.write('x' * 1000000)\nprint()"
    with open(person.home / "out", "wb") as out:
        done = person.gpuq("run", "--", PYTHON, "-c", program, stdout=out, stderr=subprocess.PIPE,
                           capture_output=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (person.home / "out").stat().st_size == 200 * 1000000 + 1
    run = Run.newest(person)
    assert md5(run.link / "out.log") == md5(person.home / "out")
    # The excerpt of the last lines in the journal and on stderr stays small.
    assert len(done.stderr) < 4096
    assert (run.link / "journal.jsonl").stat().st_size < 8192


def test_a_gpu_without_memory_is_named(person):
    program = "print('x'); raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"
    done = person.gpuq("run", "--", PYTHON, "-c", program)
    assert done.returncode == 1
    assert Run.newest(person).ended["cause"] == "gpu_memory"
    said = [line for line in done.stderr.splitlines() if line.startswith("gpuq: ")]
    assert any("memory" in line and "GPU" in line for line in said), said


def test_a_killed_program_is_137(mode, person):
    words = ["--after", person.done] if mode == "batch" else []
    with person.start("run", *words, "--", *counting(1000, 0.05)) as client:
        first = read_available(client.stdout, size=20)
        run = Run.newest(person)
        kill(run.program)
        rest, said = client.communicate(timeout=20)
    assert client.returncode == 137, said
    assert_counted((first + rest).decode())
    assert run.output() == first + rest
    assert run.ended["cause"] == "crashed"


STUBBORN = "trap 'echo not me' TERM INT; echo ready; while true; do sleep 0.1; done"


class Terminal:
    """A client on a controlling terminal that the test types on."""

    def __init__(self, person, *words):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(person.home)
            os.execve(person.cluster.binary, [GPUQ, *map(str, words)], person.env)
        self.pid = pid
        self.seen = b""

    def read_until(self, text, seconds=20):
        os.set_blocking(self.fd, False)

        def there():
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                pass
            return text.encode() in self.seen
        wait_for(there, seconds, f"{text} in {self.seen}")

    def type(self, text):
        os.write(self.fd, text)

    def wait(self, seconds):
        def ended():
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                pass
            pid, self.status = os.waitpid(self.pid, os.WNOHANG)
            return pid == self.pid
        wait_for(ended, seconds, f"the end of the client; {self.seen}")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(self.status)


def test_ctrl_c_twice_ends_a_program_that_ignores_term(person):
    terminal = Terminal(person, "run", "--", "sh", "-c", STUBBORN)
    terminal.read_until("ready")
    terminal.type(b"\x03")
    terminal.read_until("again to stop the run")
    terminal.type(b"\x03")
    begin = time.monotonic()
    assert terminal.wait(20) == 123
    assert 8 < time.monotonic() - begin < 14
    assert b"not me" in terminal.seen
    assert Run.newest(person).ended["cause"] == "stopped"


def test_stop_ends_a_program_that_ignores_term(mode, person):
    words = ["--after", person.done] if mode == "batch" else []
    with person.start("run", *words, "--", "sh", "-c", STUBBORN) as client:
        read_available(client.stdout, size=6)
        run = Run.newest(person)
        begin = time.monotonic()
        done = person.gpuq("stop", run.job)
        assert done.returncode == 0, done.stderr
        _, said = client.communicate(timeout=30)
        assert time.monotonic() - begin < 15
    assert client.returncode == 123, said
    assert run.ended["cause"] == "stopped"


def test_a_program_that_closes_its_output_runs_on(person):
    done = person.gpuq("run", "--", "sh", "-c", "echo a; exec >&- 2>&-; sleep 1; exit 4")
    assert (done.returncode, done.stdout) == (4, "a\n")


@pytest.mark.parametrize("how", of_soak(["now", "--detach"], ["now"]))
def test_scancel_by_hand(how, cluster, person):
    if how == "now":
        with person.start("run", "--", *counting(1000, 0.05)) as client:
            first = read_available(client.stdout, size=20)
            run = Run.newest(person)
            cluster.slurm("scancel", run.job)
            rest, said = client.communicate(timeout=30)
        assert client.returncode == 123, said
        assert_counted((first + rest).decode())
        assert run.output() == first + rest
    else:
        assert person.gpuq("run", how, "--", *counting(1000, 0.05)).returncode == 0
        run = Run.newest(person)
        run.written(20)
        cluster.slurm("scancel", run.job)
    assert run.ended["status"] == 123
    assert run.ended["cause"] == "cancelled"
    assert cluster.accounted(run.job)["State"].startswith("CANCELLED")


def test_scancel_by_hand_while_waiting(cluster, person):
    with person.start("run", "-g", 8, "--", "sleep", "60") as holder:
        held = Run.newest(person)
        held.event("program_started")
        with person.start("run", "--", "echo", "never") as client:
            wait_for(lambda: len(person.run_dirs()) == 2, 10, "the second run")
            waiting = Run.newest(person)
            job = waiting.job
            wait_for(lambda: b"waiting" in read_available(client.stderr), 10, "the wait")
            cluster.slurm("scancel", job)
            out, said = client.communicate(timeout=30)
        assert client.returncode == 123, said
        assert out == b""
        cluster.slurm("scancel", held.job)
        holder.communicate(timeout=30)


def test_scancel_with_a_signal_of_ones_own_reaches_the_program(cluster, person):
    text = "trap 'echo usr1; exit 5' USR1; echo ready; while true; do sleep 0.05; done"
    with person.start("run", "--", "sh", "-c", text) as client:
        read_available(client.stdout, size=6)
        run = Run.newest(person)
        cluster.slurm("scancel", "-s", "USR1", run.job)
        out, said = client.communicate(timeout=30)
    assert (client.returncode, out) == (5, b"usr1\n"), said
