# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects on a run if its client, its terminal or its login dies, stops or leaves."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

import pytest

from chains import time_of
from clusters import environment_of, is_running, run, wait_for
from runs import (PYTHON, all_gpus_taken, digest, is_waiting, nothing_left, processes_of, records,
                  sruns, terminal, the_run, wait_for_handover)

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])

# Duration of the client's stop in seconds; `contrib/soak.sh` uses 60.
STOP_SECONDS = float(os.environ.get("GPUQ_TEST_STOP_SECONDS", "10"))

# Prints `begin`, continues when the file `go` exists, prints a line on stderr, exits with 7.
GATED = ("sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.05; done; "
                     "seq 1 20000; echo warned >&2; exit 7")
GATED_OUT = b"begin\n" + b"".join(b"%d\n" % n for n in range(1, 20001))


@pytest.fixture(autouse=True)
def clean(person):
    yield
    nothing_left(person)


def go(person):
    (person.home / "go").touch()


def check_whole(person, status=7, out=GATED_OUT, err=b"warned\n"):
    """Checks that the run has ended as without any fault, and that every command reports so."""
    record = the_run(person)
    assert record.wait_for_end()["status"] == status, record.ended
    assert record.log("out") == out
    assert record.log("err") == err
    followed = person.gpuq("-Q", "logs", "-f", "last", text=False)
    assert (followed.returncode, followed.stdout, followed.stderr) == (status, out, err)
    assert listed(person) == [(record.key, "ended", status)]


def listed(person):
    """Output of gpuq ls: (key, state, exit status), newest first."""
    answer = json.loads(person.gpuq("ls", "--json").stdout)
    return [(one["key"], one["state"], one["exit"]) for one in answer["runs"] if one["kind"] == "run"]


def begun(client):
    """Waits for the program's first line on a client's stdout."""
    assert client.stdout.readline() == b"begin\n"


def rest_of(client):
    """Exit status and stdout of a client after its first line was read."""
    out, _ = client.communicate(timeout=30)
    return client.returncode, b"begin\n" + out


# SIGKILL

def test_killed_at_any_moment_of_the_start(person):
    """At any moment, either the run was never created or it runs to its end."""
    go(person)
    begin = time.monotonic()
    with person.start("run", "-Q", *GATED) as client:
        begun(client)
        whole = time.monotonic() - begin  # which depends on what else the machine does
        assert rest_of(client) == (7, GATED_OUT)
    for moment in range(20):
        with person.start("run", "-Q", *GATED) as client:
            time.sleep(moment / 20 * whole)
            client.kill()
    def over():
        # slurmctld may read a dead client's submission late: its current state is not sufficient.
        states = {state for _, state, _ in listed(person)}
        return not person.cluster.squeue() and states <= {"ended", "submitting"}
    wait_for(over, 60, "the end of the runs whose clients were killed")
    ended = [record for record in records(person) if record.ended]
    for record in ended:
        assert (record.ended["status"], record.log("out")) == (7, GATED_OUT)
    assert len(ended) > 1, "no client that was killed came so far"


def test_killed_while_it_waits(person):
    with all_gpus_taken(person.cluster):
        with person.start("run", *GATED) as client:
            wait_for(lambda: is_waiting(person.cluster), 10, "the run in the queue")
            wait_for(lambda: the_run(person).job, 10, "the record of its job")
            client.kill()
        assert [state for _, state, _ in listed(person)] == ["waiting"]
        assert is_waiting(person.cluster)
        go(person)
    check_whole(person)


@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_killed_while_output_streams(person, moment):
    with person.start("run", *GATED) as client:
        begun(client)
        if moment == "after it":
            wait_for_handover(person)
        client.kill()
    assert [state for _, state, _ in listed(person)] == ["running"]
    go(person)
    check_whole(person)


def reset_by_the_peer():
    """A socket that delivers five bytes and then an error, without an end of file."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        ours = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    peer.sendall(b"hello")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return ours, peer


@pytest.mark.parametrize("kind", ["reset", "directory"])
def test_input_that_cannot_be_read_is_never_an_end_of_file(person, tmp_path, kind):
    seen = tmp_path / "seen"
    program = ["sh", "-c", f"cat >/dev/null; echo an end >{seen}"]
    if kind == "directory":
        done = person.gpuq("run", *program, stdin=os.open("/", os.O_RDONLY))
    else:
        ours, peer = reset_by_the_peer()
        with ours, person.start("run", *program, stdin=ours) as client:
            wait_for(lambda: records(person) and the_run(person).event("program_started"), 20)
            peer.close()
            client.wait(20)
            done = subprocess.CompletedProcess([], client.returncode,
                                               stderr=client.stderr.read().decode())
    assert done.returncode == 125 and "standard input can't be read: " in done.stderr
    left = time.time()
    assert the_run(person).wait_for_end()["cause"] == "input_lost"
    assert time_of(the_run(person).ended) - left < 15, "it does not wait for a client: none could continue it"
    assert not seen.exists()


def test_a_run_whose_client_leaves_in_the_middle_of_its_input_ends(person):
    with person.start("run", "cat", stdin=subprocess.PIPE) as client:
        client.stdin.write(b"one\n")
        assert client.stdout.read(4) == b"one\n"
        client.stdout.close()
        client.stdin.write(b"two\n")
        assert client.wait(20) == 128 + signal.SIGPIPE
        assert b"ends because its input was cut off" in client.stderr.read()
    the_run(person).wait_for_end(60)
    assert the_run(person).ended["cause"] == "input_lost"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("lines", [100_000, 3_000_000])  # the second is more than a client buffers
def test_a_client_whose_output_nobody_takes_obeys_after_the_end(person, lines, number):
    with person.start("run", "seq", "1", lines) as client:
        wait_for(lambda: records(person) and the_run(person).ended, 20)
        client.send_signal(number)
        assert client.wait(10) == 128 + number


def test_piped_input_that_breaks_off_is_never_an_end_of_file(person):
    program = ("import sys\nprint('begin', flush=True)\n"
               "for line in sys.stdin: print('got', line, end='', flush=True)\n"
               "print('end of input', flush=True)")
    with person.start("run", PYTHON, "-c", program, stdin=subprocess.PIPE) as client:
        begun(client)
        client.stdin.write(b"half of it\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"got half of it\n"
        client.kill()
    record = the_run(person)
    ended = record.wait_for_end(40)
    assert ended["cause"] == "input_lost"
    assert ended["status"] != 0
    assert record.log() == b"begin\ngot half of it\n"


# HUP, TERM

@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_the_terminal_is_closed(person, moment):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        client = screen.client()
        if moment == "after it":
            wait_for_handover(person)
        screen.hang_up()
        wait_for(lambda: not is_running(client), 10, "the client's end")
    go(person)
    check_whole(person)


@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_a_closed_terminal_is_no_end_of_input(person, moment):
    # The TERM of stop may reach cat before the shell, which must not print its end in that case.
    program = "echo begin; cat && { echo end of input; exit 7; }; sleep 60"
    with terminal(person, "run", "sh", "-c", program) as screen:
        screen.wait_for("begin")
        client = screen.client()
        if moment == "after it":
            wait_for_handover(person)
        screen.hang_up()
        wait_for(lambda: not is_running(client), 10, "the client's end")
    record = the_run(person)
    stopped = person.gpuq("stop", str(record.job))
    assert stopped.returncode == 0, stopped.stderr
    assert record.wait_for_end()["status"] == 123
    assert record.log() == b"begin\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_on_a_terminal_HUP_and_TERM_detach(person, number):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        os.kill(screen.client(), number)
        assert screen.status() == 129
        assert f"gpuq attach {the_run(person).job}" in screen.screen.decode()
    assert not sruns(person, "run"), "an srun that somebody could kill is left"
    go(person)
    check_whole(person)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["before the hand-over", "after it", "into a relay that dies"])
def test_without_a_terminal_INT_and_TERM_are_the_programs(person, number, moment):
    # A handler of Python's would wait until the end of a pause() that has just begun.
    program = (f"import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
               f"print('begin', flush=True)\nsignal.sigwait([{int(number)}])\nprint('caught')\nsys.exit(42)")
    with person.start("run", PYTHON, "-c", program) as client:
        begun(client)
        if moment != "before the hand-over":
            wait_for_handover(person)
        dying = sruns(person, "relay") if moment == "into a relay that dies" else []
        for pid in dying:
            os.kill(pid, signal.SIGSTOP)
        client.send_signal(number)
        time.sleep(0.5 if dying else 0)
        for pid in dying:
            os.kill(pid, signal.SIGKILL)
        assert client.wait(20) == 42
        assert client.stdout.read() == b"caught\n"
    check_whole(person, 42, b"begin\ncaught\n", b"")


def test_nohup_is_respected(person):
    with terminal(person, "run", *GATED, before="trap '' HUP;") as screen:
        screen.wait_for("begin")
        client = screen.client()
        os.kill(client, signal.SIGHUP)
        go(person)
        screen.wait_for("20000")
        assert screen.status() == 7
    check_whole(person)


# Ctrl-C

def test_ctrl_c_once_detaches(person):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        pressed = time.monotonic()
        screen.type("\x03")
        screen.wait_for("press Ctrl-C again to stop the run; detaching otherwise")
        assert screen.status() == 130
        assert time.monotonic() - pressed >= 2
    go(person)
    check_whole(person)


@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_ctrl_c_twice_stops_the_run(person, moment):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        if moment == "after it":
            wait_for_handover(person)
        screen.type("\x03")
        screen.wait_for("again to stop")
        screen.type("\x03")
        assert screen.status() == 123
        assert "stopped by" in screen.screen.decode()
    check_whole(person, 123, b"begin\n", b"")


def test_ctrl_c_while_waiting_withdraws(person):
    with all_gpus_taken(person.cluster):
        with terminal(person, "run", *GATED) as screen:
            screen.wait_for("waiting")
            screen.type("\x03")
            assert screen.status() == 130
            screen.wait_for("withdrawn")
        wait_for(lambda: not is_waiting(person.cluster), 10, "the withdrawal")
        ((_, state, status),) = listed(person)
        assert (state, status) == ("ended", 130)


# STOP

def test_a_client_that_is_stopped_for_long_loses_nothing(person):
    """The program does not wait for the client and ends; the client then prints the complete output."""
    size = 100_000_000
    program = ("import os, sys\nfor n in range(%d // 100): os.write(1, b'%%099d\\n' %% n)\n"
               "sys.exit(7)" % size)
    expected = digest(b"".join(b"%099d\n" % n for n in range(size // 100)))
    with open(person.home / "shown", "wb") as shown:
        with person.start("run", PYTHON, "-c", program, stdout=shown) as client:
            wait_for(lambda: os.fstat(shown.fileno()).st_size > 0, 20, "the first output")
            client.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            the_run(person).wait_for_end(60)
            wait_for(lambda: time.monotonic() - stopped > STOP_SECONDS, STOP_SECONDS + 1)
            wait_for(lambda: not person.cluster.squeue(), 20, "a free GPU despite the client")
            client.send_signal(signal.SIGCONT)
            assert client.wait(60) == 7, client.stderr.read()
    assert digest((person.home / "shown").read_bytes()) == expected
    assert digest(the_run(person).log()) == expected


@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_a_pager_that_is_not_read_on_keeps_no_gpu(person, moment):
    wait = "while [ ! -e go ]; do sleep 0.05; done;" if moment == "after it" else ""
    program = f"echo begin; {wait} seq 1 2000000; exit 7"
    with person.start("run", "sh", "-c", program) as client:
        begun(client)
        if wait:
            wait_for_handover(person)
            go(person)
        the_run(person).wait_for_end()
        wait_for(lambda: not person.cluster.squeue(), 20, "a free GPU despite the pager")
        out, _ = client.communicate(timeout=30)
        assert client.returncode == 7
        assert out == b"".join(b"%d\n" % n for n in range(1, 2000001))


def test_a_client_that_is_stopped_while_the_program_goes_on_catches_up(person):
    program = ("import os, time\nn = 0\nwhile not os.path.exists('go'):\n"
               "    os.write(1, b'%099d\\n' % n); n += 1\nos._exit(7)")
    with open(person.home / "shown", "wb") as shown:
        with person.start("run", PYTHON, "-c", program, stdout=shown) as client:
            wait_for(lambda: os.fstat(shown.fileno()).st_size > 0, 20, "the first output")
            wait_for_handover(person)
            client.send_signal(signal.SIGSTOP)
            before = len(the_run(person).log())
            wait_for(lambda: len(the_run(person).log()) > before + (32 << 20), 30,
                     "a program that does not wait for its client")
            client.send_signal(signal.SIGCONT)
            go(person)
            assert client.wait(60) == 7, client.stderr.read()
    shown = (person.home / "shown").read_bytes()
    assert len(shown) > 32 << 20
    assert digest(the_run(person).log()) == digest(shown)


# The login

def of_the_login(screen):
    """The processes reached by a hang-up, a logout or a kill by session or terminal."""
    def facts(pid):
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(words[1]), int(words[3]), int(words[4])  # parent, session, tty
    found, grown = {screen.leader}, True
    while grown:
        grown = False
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                parent, session, its_tty = facts(int(name))
                is_one = parent in found or session == screen.leader or its_tty == screen.tty
                if is_one and int(name) not in found:
                    found.add(int(name))
                    grown = True
    return found


def with_all_that_was_reparented(screen):
    """The processes that systemd kills with KillUserProcesses: all that started in the login, wherever they
    are now. Processes of a job started in slurmd."""
    def in_a_job(pid):
        return "SLURM_PROCID" in environment_of(pid)
    return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if environment_of(pid).get("LOGIN") == str(screen.login) and not in_a_job(pid)}


def end_login(screen, of_it):
    """Sends TERM to all, and KILL to the remaining ones after a delay, as systemd does."""
    victims = of_it(screen)
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        victims |= of_it(screen)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        end = time.monotonic() + patience
        while any(is_running(pid) for pid in victims) and time.monotonic() < end:
            screen.read(0.02)
    assert not any(is_running(pid) for pid in victims)


@pytest.mark.parametrize("moment", ["before the hand-over", "after it"])
def test_all_processes_of_the_login_die(person, moment):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        if moment == "after it":
            wait_for_handover(person)
        end_login(screen, of_the_login)
    go(person)
    check_whole(person)


def test_everything_that_began_in_the_login_dies(person):
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        wait_for_handover(person)
        assert sruns(person, "relay")[0] in with_all_that_was_reparented(screen)
        end_login(screen, with_all_that_was_reparented)
    go(person)
    check_whole(person)


def test_everything_that_began_in_the_login_dies_before_the_hand_over(person):
    """The step's srun ends its step with it (facts: srun alive and sent TERM): the run may be lost, but is
    then reported as lost, and no GPU stays allocated."""
    with terminal(person, "run", *GATED) as screen:
        screen.wait_for("begin")
        end_login(screen, with_all_that_was_reparented)
    go(person)
    # Either the client was in time, or the next command frees the leftovers.
    def over():
        ((_, state, status),) = listed(person)
        return state == "ended" and status
    status = wait_for(over, 60, "an end that gpuq ls knows")
    assert status == 7 or the_run(person).ended["cause"] == "lost"


def test_a_run_that_fails_early_keeps_its_first_srun(person):
    """So that its node takes the next job at once: slurmstepd looks for an srun that is gone for three seconds."""
    del person.env["GPUQ_HANDOVER"]
    with person.start("run", *GATED) as client:
        begun(client)
        time.sleep(3)
        assert sruns(person, "run") and not sruns(person, "relay") and not sruns(person, "guard")
        go(person)
        assert rest_of(client) == (7, GATED_OUT)


# Output that cannot be written

def test_a_closed_pipe_ends_the_client_not_the_run(person):
    done = through_shell(person, '"$gpuq" run "$@" | head -1', *GATED)
    assert done.stdout == "begin\n"
    assert all("queue" in line for line in done.stderr.splitlines()), "it leaves quietly"
    check_whole(person)


def test_a_full_device_ends_the_client_not_the_run(person):
    done = through_shell(person, '"$gpuq" run "$@" >/dev/full', *GATED)
    assert done.returncode == 125
    assert "No space left on device" in done.stderr
    check_whole(person)


def test_a_full_device_is_an_error_of_every_command(person):
    for words in ("--help", "help run", "ls", "free"):
        done = run(["sh", "-c", f'"$gpuq" {words} >/dev/full'], env={**person.env, "gpuq": person.cluster.binary},
                   user=person.user, cwd=person.home)
        assert (done.returncode, "standard output: " in done.stderr) == (125, True), (words, done)
        done = run(["bash", "-c", f'set -o pipefail; "$gpuq" {words} | true'], user=person.user, cwd=person.home,
                   env={**person.env, "gpuq": person.cluster.binary})
        assert (done.returncode, done.stderr) == (0, ""), (words, done)


def through_shell(person, line, *words):
    """Runs a line with sh, in which "$gpuq" is the program; creates `go` while it runs."""
    with contextlib.ExitStack() as stack:
        child = stack.enter_context(subprocess.Popen(
            ["sh", "-c", line, "sh", *words], env={**person.env, "gpuq": person.cluster.binary},
            cwd=person.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True))
        wait_for(lambda: records(person) and the_run(person).log() == b"begin\n", 20, "the start")
        go(person)
        out, err = child.communicate(timeout=30)
        return subprocess.CompletedProcess(line, child.returncode, out, err)


# Connections

@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_relay_is_killed_while_output_streams(person, number):
    program = ("import os, time\nn = 0\nwhile not os.path.exists('go'):\n"
               "    os.write(1, b'%d\\n' % n); n += 1; time.sleep(0.0002)\nos._exit(7)")
    with open(person.home / "shown", "wb") as shown:
        with person.start("run", PYTHON, "-c", program, stdout=shown) as client:
            for _ in range(3):
                wait_for(lambda: sruns(person, "relay") and not sruns(person, "run"), 20, "a relay")
                relays = sruns(person, "relay")
                before = os.fstat(shown.fileno()).st_size
                for pid in relays:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                wait_for(lambda: not set(relays) & set(sruns(person, "relay")), 10)
                wait_for(lambda: os.fstat(shown.fileno()).st_size > before + 1000, 20,
                         "more output on another way")
            go(person)
            assert client.wait(30) == 7, client.stderr.read()
    out = (person.home / "shown").read_bytes()
    assert out == b"".join(b"%d\n" % n for n in range(out.count(b"\n")))
    check_whole(person, 7, out, b"")


def test_the_first_srun_is_killed_while_output_streams(person):
    with person.start("run", *GATED) as client:
        begun(client)
        for pid in sruns(person, "run"):
            os.kill(pid, signal.SIGSTOP)
        for pid in sruns(person, "run"):
            os.kill(pid, signal.SIGKILL)
        go(person)
        assert rest_of(client) == (7, GATED_OUT)
    check_whole(person)


def test_a_second_terminal_follows_the_same_bytes(person):
    with person.start("run", *GATED) as client:
        begun(client)
        with person.start("-Q", "logs", "-f", "last") as follower:
            begun(follower)
            go(person)
            out, err = follower.communicate(timeout=30)
            assert (follower.returncode, b"begin\n" + out, err) == (7, GATED_OUT, b"warned\n")
        assert rest_of(client) == (7, GATED_OUT)
    check_whole(person)


# Terminals

def test_what_is_typed_reaches_the_program(person):
    with terminal(person, "run", "-Q", "sh", "-c", "while read line; do echo \"got $line\"; done; "
                  "echo over; exit 7") as screen:
        screen.type("hello\n")
        screen.wait_for("got hello")
        wait_for_handover(person)
        screen.type("again\n")
        screen.wait_for("got again")
        screen.type("\x04")
        screen.wait_for("over")
        assert screen.status() == 7
    check_whole(person, 7, b"got hello\ngot again\nover\n", b"")


def test_in_the_background_of_a_terminal_it_does_not_stop(person):
    with terminal(person, "run", *GATED, background=True) as screen:
        screen.wait_for("begin")
        screen.type("not for it\n")
        wait_for_handover(person)
        go(person)
        screen.wait_for("20000")
        assert screen.status() == 7
    check_whole(person)


def test_a_copy_of_the_log_is_whole_whoever_kills_its_writer(person):
    """logs -f --to, killed 15 times at any moment while 20 MB are written; then the reverse."""
    program = ("import sys, time\n"
               "for n in range(20):\n"
               "    sys.stdout.write(''.join(f'{n} {i} ' + 'x' * 90 + '\\n' for i in range(10000)))\n"
               "    sys.stdout.flush(); sys.stderr.write(f'{n}\\n'); time.sleep(0.25)\n")
    with person.start("run", "--gpus", "1", "--", PYTHON, "-c", program,
                      stdout=subprocess.DEVNULL) as client:
        the_run(person)
        for round in range(15):
            with person.start("logs", "-f", "--to", "copy", "last") as follower:
                time.sleep(0.15 + 0.013 * round)
                follower.kill()
        followed = person.gpuq("logs", "-f", "--to", "copy", "last", timeout=60)
        assert followed.returncode == 0, followed.stderr
        assert client.wait(30) == 0
    copy = (person.home / "copy").read_bytes()
    assert f"copy holds {len(copy)} bytes of the log" in followed.stderr
    record = the_run(person)
    assert len(copy) == len(record.log("out")) + len(record.log("err"))
    both = person.gpuq("logs", "last", text=False, capture_output=False,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert digest(both.stdout) == digest(copy)
    (person.home / "copy").write_bytes(b"something else")
    refused = person.gpuq("logs", "--to", "copy", "last")
    assert refused.returncode == 2 and "not the beginning" in refused.stderr
    assert (person.home / "copy").read_bytes() == b"something else"
