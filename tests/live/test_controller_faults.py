# SPDX-License-Identifier: GPL-2.0-or-later
"""slurmctld and slurmdbd stop or die: while a run is submitted, pending, running and ending."""
import contextlib
import signal
import time

import pytest

from conftest import is_running, wait_for
from faults import (Beside, Run, assert_counted, assert_nothing_left, counting, leave_to_soak, of_soak,
                    read_available)

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
OUTAGE = of_soak(60, 15)


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_left(cluster, 90)


@contextlib.contextmanager
def outage(cluster, how, daemon="slurmctld"):
    """The daemon does not respond inside the block."""
    if how == "stopped":
        with cluster.stopped(daemon):
            yield
    else:
        # Ended as by systemd. After a SIGKILL within five seconds of a start, Slurm itself would
        # forget the job: it saves its state no more often than that.
        pid = cluster.signal(daemon, signal.SIGTERM)
        wait_for(lambda: not is_running(pid), 20, f"the end of {daemon}")
        try:
            yield
        finally:
            cluster.repair()


def pass_time(seconds):
    """An outage lasts for a given time: there is no condition to wait for."""
    time.sleep(seconds)


@pytest.fixture(params=["stopped", "ended"])
def how(request):
    return request.param


def test_an_outage_during_the_run(how, cluster, person):
    """The outage begins before the hand-over, which must be retried."""
    lines = 20 * (OUTAGE + 6)
    with person.start("run", "--", *counting(lines, 0.05, then="exit 3")) as now, \
            person.start("run", "--", *counting(lines, 0.05, then="exit 4")) as other:
        first = [read_available(client.stdout, size=7) for client in (now, other)]
        with outage(cluster, how):
            pass_time(OUTAGE)
        outs = [client.communicate(timeout=60)[0] for client in (now, other)]
    assert (now.returncode, other.returncode) in ((3, 4), (4, 3))
    for begin, rest in zip(first, outs):
        assert_counted((begin + rest).decode(), lines)


def test_an_outage_during_a_batch_run(how, cluster, person):
    lines = 20 * (OUTAGE + 6)
    assert person.gpuq("run", "true").returncode == 0
    after = Run.newest(person).job
    with person.start("run", "--after", after, "--", *counting(lines, 0.05, then="exit 3")) as one:
        first = read_available(one.stdout, size=7)
        with outage(cluster, how):
            pass_time(OUTAGE)
        rest, said = one.communicate(timeout=60)
    assert one.returncode == 3, said
    assert_counted((first + rest).decode(), lines)


@pytest.mark.parametrize("age", of_soak(["young", "old", "batch"], ["young", "batch"]))
def test_the_program_ends_during_an_outage(how, age, cluster, person):
    leave_to_soak(unless=(how, age) in (("stopped", "batch"), ("ended", "young")))
    words = []
    if age == "batch":
        assert person.gpuq("run", "true").returncode == 0
        words = ["--after", Run.newest(person).job]
    go = person.home / "go"
    text = f"echo ready; while ! test -e {go}; do sleep 0.05; done; echo end; exit 5"
    with person.start("run", *words, "--", "sh", "-c", text) as client:
        first = read_available(client.stdout, size=6)
        run = Run.newest(person)
        if age == "old":
            run.handed_over()
        with outage(cluster, how):
            go.touch()
            begin = time.monotonic()
            rest, said = client.communicate(timeout=OUTAGE + 40)
            took = time.monotonic() - begin
            pass_time(max(0.0, OUTAGE - took))
    assert client.returncode == 5, said
    assert first + rest == b"ready\nend\n"
    # The user's client needs no controller.
    assert took < 10, said
    # Slurm 26.05 reports the end of a step again only after 60 s.
    wait_for(lambda: not cluster.squeue(), 120, "an empty queue")
    assert cluster.accounted(run.job)["ExitCode"] == "5:0"


def test_an_outage_while_waiting(how, cluster, person):
    with person.start("run", "-g", "4", "-J", "holder", "--", "sleep", str(OUTAGE + 5)) as holder:
        Run.newest(person).event("program_started")
        with person.start("run", "--", *counting(50, 0.01, then="exit 6")) as client:
            wait_for(lambda: b"waiting" in read_available(client.stderr), 20, "the wait")
            with outage(cluster, how):
                pass_time(OUTAGE)
            out, said = client.communicate(timeout=OUTAGE + 60)
        assert client.returncode == 6, said
        assert_counted(out.decode(), 50)
        holder.communicate(timeout=60)
        assert holder.returncode == 0


def test_submitted_during_an_outage_there_is_exactly_one_job(how, cluster, person):
    """For an immediate allocation and for a batch job."""
    ran = person.home / "ran"
    program = ["sh", "-c", f"echo $GPUQ_RUN_ID >>{ran}; echo done; exit 7"]
    with outage(cluster, how):
        now = Beside(person, "run", "--", *program)
        batch = Beside(person, "run", "--detach", "--", *program)
        pass_time(15)
    now.join()
    batch.join()
    assert (now.status, now.out) == (7, "done\n"), now.said
    assert batch.status == 0, batch.said
    runs = [Run(person, folder) for folder in person.run_dirs()]
    assert [run.ended["status"] for run in runs] == [7, 7]
    wait_for(lambda: not cluster.squeue(), 30, "an empty queue")
    assert sorted(ran.read_text().split()) == [run.folder.name for run in runs]


def test_down_for_longer_than_patience(how, cluster, person):
    leave_to_soak(unless=how == "stopped")
    ran = person.home / "ran"
    program = ["sh", "-c", f"echo $GPUQ_RUN_ID >>{ran}"]
    begin = time.monotonic()
    with outage(cluster, how):
        clients = [Beside(person, "run", *words, "--", *program) for words in ([], ["--detach"])]
        for client in clients:
            client.join()
    assert [client.status for client in clients] == [120, 120], [client.said for client in clients]
    assert 55 < time.monotonic() - begin < 120

    def quiet():
        # Requests that slurmctld now finds in its sockets are ended by the next command.
        person.gpuq("ls")
        return not cluster.squeue()
    wait_for(quiet, 90, "an empty queue")
    assert not ran.exists()


def test_slurmdbd_down_during_a_run_and_at_its_end(how, cluster, person):
    go = person.home / "go"
    text = f"echo ready; while ! test -e {go}; do sleep 0.05; done; exit 5"
    with person.start("run", "--", "sh", "-c", text) as client:
        read_available(client.stdout, size=6)
        run = Run.newest(person)
        with outage(cluster, how, "slurmdbd"):
            run.handed_over()
            go.touch()
            _, said = client.communicate(timeout=20)
            assert client.returncode == 5, said
            # A complete run without slurmdbd.
            done = person.gpuq("run", "--", "sh", "-c", "echo out; exit 9")
            assert (done.returncode, done.stdout) == (9, "out\n"), done.stderr
            wait_for(lambda: not cluster.squeue(), 60, "an empty queue")
            other = Run.newest(person)
    assert cluster.accounted(run.job, seconds=60)["ExitCode"] == "5:0"
    assert cluster.accounted(other.job, seconds=60)["ExitCode"] == "9:0"
