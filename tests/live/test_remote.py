# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host`: verbs on a login host over a real ssh connection, which is broken in every possible way."""
import contextlib
import fcntl
import hashlib
import os
import random
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

import peers
from clusters import BIN, short_folder, wait_for
from logins import login_host
from runs import Terminal, nothing_left, the_run

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])


@pytest.fixture
def login(person):
    with short_folder() as folder, login_host(person, folder) as one:
        yield one
        wait_for(lambda: not one.sessions(), 20, lambda: f"nothing left there: {one.sessions()}")
        nothing_left(person)


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login):
        self.home = login.folder
        self.env = login.env
        self.cluster = login.person.cluster


@contextlib.contextmanager
def terminal(login, *words, **options):
    one = Terminal(Laptop(login), "--host", "login", *words, **options)
    try:
        yield one
    finally:
        one.close()


def test_a_run_is_there_what_it_is_here(login):
    data = random.Random(1).randbytes(3 << 20)
    done = login.gpuq("run", "sh", "-c", "cat; echo oops >&2; exit 7", input=data)
    assert done.returncode == 7, done.stderr
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert "\noops\n" in "\n" + done.stderr
    assert done.stderr.startswith("gpuq: on login: current directory ~; paths refer to that host\n")
    assert login.person.gpuq("ls", "--all", "--json").stdout == login.gpuq("ls", "--all", "--json").stdout.decode()


def test_the_client_for_a_machine_without_slurm(login):
    client = BIN / "gpuq-client"
    assert "libslurm" not in subprocess.run(["ldd", client], capture_output=True, text=True, check=True).stdout

    def run(*words):
        return subprocess.run([client, *words], env=login.env, capture_output=True, stdin=subprocess.DEVNULL,
                              text=True, timeout=60, check=False)

    done = run("--host", "login", "-Q", "run", "sh", "-c", "echo hello; exit 5")
    assert (done.returncode, done.stdout, done.stderr) == (5, "hello\n", "")
    assert run("--host", "login", "logs", "last").stdout == "hello\n"
    done = run("free")
    assert done.returncode != 0 and "without Slurm: name a login host with --host" in done.stderr
    assert run("run", "true").returncode == done.returncode
    assert run("help", "run").returncode == 0


def test_a_folder_and_errors_of_the_verb(login):
    (login.person.home / "work").mkdir()
    done = login.gpuq("-Q", "run", "pwd")
    assert (done.returncode, done.stdout.decode().strip(), done.stderr) == (0, str(login.person.home), "")
    child = subprocess.run([login.person.cluster.binary, "--host", "login:work", "-Q", "run", "pwd"], env=login.env,
                           capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert child.stdout.decode().strip() == str(login.person.home / "work")
    done = login.gpuq("show", "nosuch")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "nosuch" in done.stderr
    done = login.gpuq("--forward", "0", "run", "--detach", "true")
    assert (done.returncode, "combined with --detach" in done.stderr) == (2, True), done.stderr
    assert login.gpuq("ls", "-a", "--json").stdout.count(b'"kind": "run"') == 2  # those above


def test_what_can_not_start_is_refused_on_the_login_host(login):
    done = login.gpuq("run", "--detach", "./nosuch.sh")
    assert (done.returncode, done.stdout) == (127, b"")
    assert "./nosuch.sh: not found" in done.stderr
    assert login.gpuq("ls", "-a", "--json").stdout.count(b'"kind": "run"') == 0


def test_no_stdin_leaves_that_of_this_machine_alone(login):
    loop = 'while read -r x; do "$gpuq" --host login -Q run -n -- echo got $x; done'
    done = subprocess.run(["sh", "-c", f"printf '1\\n2\\n' | {loop}"], capture_output=True, check=False,
                          env={**login.env, "gpuq": str(login.person.cluster.binary)})
    assert (done.stdout, done.stderr) == (b"got 1\ngot 2\n", b"")


def test_a_copy_that_was_refused_is_not_called_one(login):
    assert login.gpuq("-Q", "run", "-J", "small", "echo", "hello").returncode == 0
    other = login.folder / "other"
    other.write_text("something else\n")
    for words in (("--to", other, "small"), ("--to", login.folder / "new", "nosuch")):
        refused = login.gpuq("logs", *words)
        assert (refused.returncode, "bytes of the log" in refused.stderr) == (2, False), refused.stderr
    assert other.read_text() == "something else\n"
    assert not (login.folder / "new").exists()
    copied = login.gpuq("logs", "--to", login.folder / "copy", "small")
    assert (copied.returncode, "holds 6 bytes" in copied.stderr) == (0, True), copied.stderr


def test_input_that_the_program_did_not_read_can_be_read_again(login):
    (login.folder / "list").write_text("1\n2\n3\n")
    for words, shown in (("run -Q -- echo got $x", "got {}\n"), ("run -Q sh -c true", ""), ("clean --yes", None),
                         ("policy check nosuch.yaml", None)):
        script = f"while read -r x; do {login.person.cluster.binary} --host login {words}; echo $x; done <{login.folder}/list"
        done = subprocess.run(["sh", "-c", script], env=login.env, capture_output=True, text=True, check=False)
        if shown is None:
            assert [line for line in done.stdout.splitlines() if line in "123"] == ["1", "2", "3"], done
        else:
            assert done.stdout == "".join(shown.format(number) + f"{number}\n" for number in (1, 2, 3)), done
        assert "standard input" not in done.stderr, words
    piped = f"printf '1\\n2\\n' | {login.person.cluster.binary} --host login run sleep 1"
    done = subprocess.run(["sh", "-c", piped], env=login.env, capture_output=True, text=True, check=False)
    assert "gpuq: 4 bytes of standard input were sent to login, where nothing read them: </dev/null" in done.stderr


def test_input_stays_with_its_reader(login):
    """`while read` around a command that does not read keeps its lines."""
    for words in ("ls", "run --detach true", "attach last", "resume last"):
        script = f"printf 'a\\nb\\nc\\n' | while read x; do {login.person.cluster.binary} --host login {words} >/dev/null; " \
                 "echo $x; done"
        done = subprocess.run(["sh", "-c", script], env=login.env, capture_output=True, check=False)
        assert done.stdout == b"a\nb\nc\n", words


def test_a_run_over_drops_is_the_same_bytes(login):
    """20 drops of two kinds, with input and output at the same time."""
    data = random.Random(2).randbytes(8 << 20)
    rate = 1 << 20  # per second
    with login.begin("run", "cat", stdin=subprocess.PIPE) as child:
        out = []
        os.set_blocking(child.stdout.fileno(), False)
        os.set_blocking(child.stdin.fileno(), False)
        sent, begin, drops = 0, time.monotonic(), 0
        next_drop = begin + 1.5
        while True:
            now = time.monotonic()
            # The last byte is sent after the last drop, no matter how long these take.
            most = min(len(data) - (drops < 20), int((now - begin) * rate))
            with contextlib.suppress(BlockingIOError):
                if sent < most:
                    sent += os.write(child.stdin.fileno(), data[sent:most])
            if sent == len(data) and not child.stdin.closed:
                child.stdin.close()
                break
            with contextlib.suppress(BlockingIOError):
                if piece := os.read(child.stdout.fileno(), 1 << 20):
                    out.append(piece)
            if now > next_drop and drops < 20:
                if drops == 10:
                    login.silence()
                    next_drop = now + 18  # dead after 15 s of silence
                else:
                    login.cut()
                    next_drop = now + 0.35
                drops += 1
                if drops == 11:
                    begin += 16  # the time lost meanwhile
            time.sleep(0.005)
        os.set_blocking(child.stdout.fileno(), True)
        out.append(child.stdout.read())
        assert child.wait(60) == 0
    assert hashlib.sha256(b"".join(out)).digest() == hashlib.sha256(data).digest()
    assert drops == 20


def test_a_shell_over_a_frozen_network(login):
    with terminal(login, "run", "--pty", "bash", "--norc", "-i") as screen:
        screen.type("PS1='ready''> '\r")
        screen.wait_for("ready> ", 30)
        screen.type("echo $((6*7))\r")
        screen.wait_for("42")
        frozen = login.freeze()
        screen.screen = b""
        begin = time.monotonic()
        screen.wait_for("reconnecting", 6)
        assert time.monotonic() - begin < 4.5
        screen.type("echo $((6*9))\r")
        screen.wait_for("54")
        assert screen.screen.count(b"54") == 1
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        screen.screen = b""
        wait_for(lambda: (screen.type("stty size\r"), time.sleep(0.3), screen.read(0.1),
                          b"40 100" in screen.screen)[-1], 10, "the new size")
        screen.type("exit 5\r")
        assert screen.status() == 5


def test_a_signal_into_a_connection_that_is_dead_arrives(login):
    """Exactly once, over the next connection, and well before a dead connection is detected by its silence."""
    program = "trap 'echo got; n=$((n+1))' USR1 INT; echo begun; while [ -z $n ]; do sleep 0.1; done; sleep 2; exit $((40+n))"
    with login.begin("run", "sh", "-c", program) as child:
        wait_for(lambda: (os.read(child.stdout.fileno(), 100), True)[1], 30, "its output")
        frozen = login.freeze()
        time.sleep(0.5)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
        assert (out, child.returncode) == (b"got\n", 41), errors
        assert time.monotonic() - begin < 12, errors
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_top_is_drawn_and_left(login):
    with terminal(login, "top") as screen:
        screen.wait_for("GPU", 20)
        screen.type("q")
        assert screen.status() == 0


def test_top_over_a_drop(login):
    """The state is shown on the screen, and nothing of it in a file that stderr is."""
    with terminal(login, "top", before="2>errors") as screen:
        screen.wait_for("GPU", 20)
        login.cut(stop=True)
        screen.screen = b""
        screen.wait_for("reconnecting", 10)
        screen.screen = b""
        login.start()
        screen.wait_for("GPU", 20)  # redrawn over the message
        screen.type("q")
        assert screen.status() == 0
    assert (login.folder / "errors").read_bytes() == b""


def test_ctrl_c_while_reconnecting_leaves_the_run_alone(login):
    with terminal(login, "run", "sh", "-c", "echo begun; exec sleep 600") as screen:
        screen.wait_for("begun", 30)
        login.cut(stop=True)
        screen.wait_for("reconnecting", 10)
        screen.type("\x03")
        assert screen.status() == 130
        assert b"continues" in screen.screen
    login.start()
    assert not the_run(login.person).ended
    assert login.gpuq("stop", "last").returncode == 0
    end_of_verbs(login)


def end_of_verbs(login):
    """Kills the sessions that wait for a client that will not return."""
    for pid in login.sessions():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_killed_client_leaves_nothing_after_its_patience(login):
    with login.begin("run", "sh", "-c", "echo begun; exec sleep 600", env={"GPUQ_HOST_PATIENCE": "2s"}) as child:
        assert child.stdout.readline() == b"begun\n"
        child.kill()
        child.wait()
        assert login.sessions()
        wait_for(lambda: not login.sessions(), 15, lambda: f"the end of the session: {login.sessions()}")
    assert not the_run(login.person).ended  # the run continues
    assert login.person.gpuq("stop", "last").returncode == 0


@pytest.mark.parametrize("way", ["killed", "cut, then told to go", "cut, and its patience passes"])
def test_attach_goes_on_where_the_laptop_stopped(login, way):
    """Output printed on the host that never arrived counts as not shown."""
    script = ("i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; echo error $i >&2; sleep 0.05; done; exit 3")
    patience = "2s" if "patience" in way else "60s"
    with login.begin("run", "sh", "-c", script, env={"GPUQ_HOST_PATIENCE": patience}) as child:
        shown = b""
        while b"line 40\n" not in shown:
            shown += os.read(child.stdout.fileno(), 4096)
        if way == "killed":
            child.kill()
        else:
            login.cut(stop=True)
            time.sleep(4 if "patience" in way else 1)
            child.send_signal(signal.SIGTERM)
            child.wait(30)
            login.start()
        shown += child.stdout.read()
        errors = child.stderr.read()
        child.wait(30)
    time.sleep(12)  # longer than the interval of the records of shown output
    (login.person.home / "go").touch()
    the_run(login.person).wait_for_end()
    with login.begin("-Q", "attach", "last") as other:
        rest, rest_of_errors = other.communicate(timeout=60)
        assert other.returncode == 3
    log = the_run(login.person).log()
    assert rest and log.endswith(rest) and len(shown) + len(rest) >= len(log), "nothing is missing"
    errors = re.sub(rb"gpuq: [^\n]*\n", b"", errors)
    log = the_run(login.person).log("err")
    assert log.endswith(rest_of_errors) and len(errors) + len(rest_of_errors) >= len(log)
    end_of_verbs(login)


def test_a_session_that_was_killed_is_gone_on_with(login):
    """As after a reboot of the login host, or if another host responds: continues at the exact byte. The same for its
    log, also on a terminal."""
    script = ("i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo line $i; echo error $i >&2; [ $((i % 100)) = 0 ] && "
              "sleep 0.1; done; exit 3")
    with login.begin("run", "sh", "-c", script) as child:
        text = child.stdout.read(1)
        with login.begin("logs", "-f", "last") as log, terminal(login, "logs", "-f", "last") as screen:
            while b"line 1200\n" not in text:
                text += os.read(child.stdout.fileno(), 4096)
            of_log = log.stdout.read(1)
            screen.wait_for("line 1000\r\n")
            end_of_verbs(login)
            text += child.stdout.read()
            errors = child.stderr.read()
            assert child.wait(60) == 3
            of_log += log.stdout.read()
            errors_of_log = log.stderr.read()
            assert (log.wait(60), screen.status()) == (3, 3)
    lines = [b"%s %d\n" % (word, i) for i in range(1, 4001) for word in (b"line", b"error")]
    assert text == of_log == b"".join(lines[0::2])
    # gpuq's own messages are among the lines, and do not count.
    assert b"whole log: gpuq --host login logs " in errors
    for each in (errors, errors_of_log):
        assert re.sub(rb"gpuq: [^\n]*\n", b"", each) == b"".join(lines[1::2])
    shown = re.sub(rb"gpuq: [^\n]*\n", b"", screen.screen.replace(b"\r", b""))
    for word, begin in ((b"line", 0), (b"error", 1)):
        assert b"".join(re.findall(rb"%s \d+\n" % word, shown)) == b"".join(lines[begin::2])


def test_ssh_of_the_laptop_goes_into_a_run_over_a_cut(login):
    assert login.person.gpuq("run", "-g", "1", "--detach", "sleep", "600").returncode == 0
    record = the_run(login.person)
    wait_for(lambda: record.job and record.event("program_started"), 20, "the run")
    made = login.gpuq("connect", "--config", "last")
    assert made.returncode == 0, made.stderr
    config = login.folder / "run_config"
    config.write_bytes(made.stdout)
    # The run's key replaces one in ~/.ssh/authorized_keys, which the test must not change.
    ssh = ["ssh", "-F", str(config), "-i", str(record.dir / "connect" / "identity"), "gpuq-last"]
    script = "echo $GPUQ_RUN_ID; read word; echo got $word; exit 5"
    with subprocess.Popen([*ssh, script], env=login.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout.readline().decode().strip() == record.key
        login.cut()
        child.stdin.write(b"hello\n")
        out, err = child.communicate(timeout=40)
        assert (child.returncode, out) == (5, b"got hello\n"), err
    # An editor on the laptop.
    (login.folder / "bin").mkdir()
    editor = login.folder / "bin" / "code"
    editor.write_text('#!/bin/sh\necho "$@"\n')
    editor.chmod(0o755)
    config = login.folder / "editors_config"
    done = login.gpuq("code", "--ssh-config", config, "-y", "last", "/data",
                      env={"PATH": f"{editor.parent}:{login.env['PATH']}"})
    assert done.returncode == 0 and f"--remote ssh-remote+gpuq-{record.job} /data\n" in done.stderr, done.stderr
    ssh = ["ssh", "-F", str(config), "-i", str(record.dir / "connect" / "identity"), f"gpuq-{record.job}", "echo $GPUQ_RUN_ID"]
    assert subprocess.run(ssh, env=login.env, capture_output=True, timeout=40).stdout.decode().strip() == record.key
    assert login.person.gpuq("stop", "last").returncode == 0
    record.wait_for_end()


@contextlib.contextmanager
def a_way_into_a_run(login):
    assert login.person.gpuq("run", "-g", "1", "--detach", "sleep", "600").returncode == 0
    record = the_run(login.person)
    wait_for(lambda: record.job and record.event("program_started"), 20, "the run")
    config = login.folder / "run_config"
    config.write_bytes(login.gpuq("connect", "--config", "last").stdout)
    errors = login.folder / "errors"
    with errors.open("wb") as stderr, subprocess.Popen(
            ["ssh", "-F", str(config), "-i", str(record.dir / "connect" / "identity"), "gpuq-last", "cat"], env=login.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, bufsize=0) as child:
        def passes(word):
            child.stdin.write(word + b"\n")
            assert child.stdout.readline() == word + b"\n", errors.read_text()
        try:
            yield passes, errors
        finally:
            child.kill()
    assert login.person.gpuq("stop", "last").returncode == 0
    record.wait_for_end()


def test_a_proxy_command_is_silent_over_short_losses_and_says_one_line_of_a_long_one(login):
    with a_way_into_a_run(login) as (passes, errors):
        for number in range(8):
            passes(b"word %d" % number)
            login.cut()
        passes(b"last word")
        assert errors.read_bytes() == b""
        login.cut(stop=True)
        wait_for(lambda: b"reconnecting" in errors.read_bytes(), 30, "a line")
        login.start()
        passes(b"after it")
        login.cut()
        passes(b"the end")
        assert errors.read_bytes().count(b"\n") == 1, errors.read_bytes()


def test_a_copied_log_is_silent_over_short_losses(login):
    """As from cron, which mails all output."""
    done = login.person.gpuq("run", "--detach", "--gpus", "1", "sh", "-c",
                             "while [ ! -e enough ]; do echo line; sleep 0.05; done")
    assert done.returncode == 0, done.stderr
    copy = login.folder / "copy"
    with login.begin("logs", "-f", "--to", str(copy), "last") as child:
        for _ in range(8):
            size = copy.stat().st_size if copy.exists() else 0
            wait_for(lambda: copy.exists() and copy.stat().st_size > size, 20, "more of the log")
            login.cut()
        (login.person.home / "enough").touch()
        assert child.wait(60) == 0
        words = child.stderr.read().decode()
    assert words.endswith(f"gpuq: {copy} holds {copy.stat().st_size} bytes of the log\n")
    assert "connect" not in words, words


def test_a_changed_host_key_is_a_hard_stop(login):
    login.trust("other_key")
    done = login.gpuq("ls")
    assert (done.returncode, done.stdout) == (121, b"")
    assert "the host key of login has changed (in" in done.stderr
    login.trust("host_key")
    with login.begin("run", "sh", "-c", "echo begun; exec sleep 600", env={"GPUQ_HOST_PATIENCE": "1s"}) as child:
        assert child.stdout.readline() == b"begun\n"
        login.cut(stop=True)
        login.start("other_key")
        assert child.wait(20) == 121
        assert "has changed" in child.stderr.read().decode()
    assert login.person.gpuq("stop", "last").returncode == 0


@pytest.mark.parametrize("told, after, words", [
    ("", "\\033]0;owned\\007 0123456789abcdef", "is not gpuq"),
    ("\\035gpuq-serve\\035\\n", "\\101\\377\\377\\377\\377AAAA", ""),
    ("\\035gpuq-serve\\035\\n", "\\102\\012\\000\\000\\000\\000\\001\\000\\000\\000\\000\\000\\000\\000x", "expected Hello"),
], ids=["a greeting without an end", "a Hello of 4 GiB", "output before Hello"])
def test_a_hostile_server(login, told, after, words):
    """The server sends arbitrary data without end: the result is an error, without a byte of it on the terminal and
    without much memory."""
    server = login.folder / "server"
    server.write_text(f"#!/bin/sh\nprintf '{told}'\nwhile printf '{after}' 2>/dev/null; do :; done\n")
    server.chmod(0o755)
    login.inside = ["prlimit", f"--data={48 << 20}"]
    with login.begin("ls", env={"GPUQ_SSH": str(server)}) as child:
        out, errors = child.communicate(timeout=40)
    errors = errors.decode()
    assert child.returncode == 125 and out == b"", errors
    assert words in errors and "login" in errors and "\x1b" not in errors and "\a" not in errors


EVIL = b"Match exec \"touch %s\"\n    User root\n"


def test_lines_for_ssh_are_not_the_hosts(login):
    """`connect --config` on a host that prints lines of its own: only lines built on the laptop are printed."""
    owned = login.folder / "owned"
    evil = EVIL.replace(b"%s", str(owned).encode())

    def asked(data, *words):
        return login.gpuq("connect", "--config", *words, "last",
                          env={"GPUQ_SSH": peers.peer(login.folder, peers.MARKER + peers.hello() + data)})
    printed = peers.output(0, 0, evil) + peers.ssh_target() + peers.ended(0, len(evil))
    done = asked(printed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == (
        f"# gpuq: run 7; valid while it runs\nHost gpuq-7 gpuq-last\n    User ada\n"
        f"    ProxyCommand {login.person.cluster.binary} --host login connect {peers.KEY}\n"
        f"    HostKeyAlias gpuq-{peers.KEY}\n    UpdateHostKeys no\n"
        "    # Needs a key listed in ~/.ssh/authorized_keys on that host.\n"
        "    # The host is authenticated already: gpuq connects through the login host.\n"
        "    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n")
    config = login.folder / "made"
    for data in (peers.output(0, 0, evil) + peers.ended(0, len(evil)),  # no SshTarget
                 peers.output(0, 0, evil) + peers.ended(1, len(evil)),
                 peers.ssh_target(user="ada\n" + evil.decode()) + peers.ended(),
                 peers.ssh_target(user="-oProxyCommand=id") + peers.ended(),
                 peers.ssh_target(key=peers.KEY + "\n" + evil.decode()) + peers.ended(),
                 peers.ssh_target(key="$(touch owned)") + peers.ended()):
        done = asked(data)
        assert (done.returncode != 0, done.stdout) == (True, b""), data
    config.write_bytes(asked(printed).stdout)
    subprocess.run(["ssh", "-F", config, "-G", "elsewhere"], capture_output=True, check=True)
    assert not owned.exists()
    done = asked(printed, "--an-option-of-tomorrow")
    assert (done.returncode, done.stdout) == (2, b"")
    done = login.gpuq("cluster", "env", env={"GPUQ_SSH": peers.peer(login.folder, peers.MARKER + peers.hello() + printed)})
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("data", [
    peers.failure(3, "\x1b]0;owned\a\u202e" + "x" * 5000),
    peers.following("-oProxyCommand=id"),
    peers.following("../../../.ssh/config"),
    peers.ended(256),
    peers.ssh_target(),
    peers.stream_gone(0, "\x1b[2J"),
    peers.frame(peers.DIAL, b"\0" * 8),
    peers.frame(peers.START, b"\0" * 64),
    peers.frame(peers.BEAT, b"\xff" * 8),
    peers.frame(peers.SIGNAL_TAKEN, b"\1" * 8),
], ids=["failure", "following an option", "following a path", "exit", "ssh target", "stream", "dial", "start", "beat",
        "signals"])
def test_a_frame_of_a_hostile_server(login, data):
    """Invalid frames give an error in one line of bounded length, without a byte of them on the terminal."""
    done = login.gpuq("ls", env={"GPUQ_SSH": peers.peer(login.folder, peers.MARKER + peers.hello() + data)})
    assert done.returncode not in (0, 256), done
    assert done.stdout == b"" and done.stderr.startswith(("gpuq: login: ", "gpuq: protocol error from gpuq on login: ")), done.stderr
    assert len(done.stderr) < 1000 and done.stderr.count("\n") == 1 and not set("\x1b\a\u202e") & set(done.stderr)


def test_a_hostile_server_writes_only_lines_to_the_terminal(login):
    """They print lines: colours pass, but nothing that moves the cursor, sets the window title or queries the
    terminal."""
    evil = b"\x1b]0;owned\a\x1b[2J\x1b[6n\x9b2J\x1bPq\x1b\\\x1b[31mred\x1b[0m\n"
    data = peers.output(0, 0, evil) + peers.output(1, 0, evil) + peers.ended(0, len(evil), len(evil))
    login.env["GPUQ_SSH"] = peers.peer(login.folder, peers.MARKER + peers.hello() + data)
    for words in (["ls"], ["wait", "last"], ["sweep", "x"], ["run", "--detach", "x"]):
        with terminal(login, *words) as screen:
            assert screen.status() == 0
            assert screen.screen.count(b"\x1b[31mred\x1b[0m\r\n") == 2, words
            for part in (b"\x1b]", b"\x1b[2J", b"\x1b[6n", b"\x9b", b"\x1bP", b"\a"):
                assert part not in screen.screen, screen.screen


def test_a_short_verb_takes_no_round_trip_more_than_ssh(login):
    """The round trip is so long that the machine's load hardly matters."""
    round_trip = 0.6

    def seconds(words):
        begin = time.monotonic()
        subprocess.run(words, env=login.env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return time.monotonic() - begin
    login.proxy.delay = round_trip / 2
    ours, theirs = zip(*[(seconds([login.person.cluster.binary, "--host", "login", "ls", "--json"]),
                          seconds(["ssh", "-F", login.folder / "ssh_config", "login", "true"])) for _ in range(2)])
    login.proxy.delay = 0.0
    assert min(ours) < min(theirs) + 0.7 * round_trip, (ours, theirs)


def test_what_stands_between_is_named(login):
    done = login.gpuq("ls", env={"GPUQ_REMOTE": "/nonexistent/gpuq"})
    assert (done.returncode, done.stdout) == (127, b"")
    assert "GPUQ_REMOTE" in done.stderr
    (login.folder / "known_hosts").write_text("")
    done = login.gpuq("ls")
    assert done.returncode == 121
    assert "is not known on this machine" in done.stderr
    login.trust("host_key")
    (login.folder / "user_key.pub").write_text("")
    done = login.gpuq("ls")
    assert done.returncode == 121
    assert "refused the login" in done.stderr
    login.stop()
    done = login.gpuq("ls")
    assert done.returncode == 120
    login.start()
    done = subprocess.run([login.person.cluster.binary, "--host", "-oProxyCommand=x", "ls"], env=login.env,
                          capture_output=True, check=False)
    assert done.returncode == 2


# 10 MB/s, until the file `enough` exists.
WRITER = ("import os, sys, time\n"
          "n, begin = 0, time.monotonic()\n"
          "while not os.path.exists('enough'):\n"
          "    sys.stdout.write(''.join(f'{n} {i} ' + 'x' * 90 + '\\n' for i in range(10000)))\n"
          "    sys.stdout.flush(); sys.stderr.write(f'{n}\\n'); n += 1\n"
          "    time.sleep(max(0, begin + n / 10 - time.monotonic()))\n")
# A freeze and a silence last 15 s each, and the output of that time must be transferred too.
DROPS = ["cut", "client", "session"] * 2 + ["freeze", "silence"]
if os.environ.get("GPUQ_SOAK"):
    DROPS = random.Random(6).sample(["cut", "client", "session"] * 60 + ["freeze", "silence"] * 10, 200)


def test_a_copy_of_the_log_over_everything_that_breaks(login):
    """logs -f --to at 10 MB/s: connections cut, frozen or silenced, the session on the host killed, the laptop's gpuq
    killed."""
    done = login.person.gpuq("run", "--detach", "--gpus", "1", "--", "python3", "-c", WRITER)
    assert done.returncode == 0, done.stderr
    copy = login.folder / "copy"

    def grows():
        size = copy.stat().st_size if copy.exists() else 0
        wait_for(lambda: copy.exists() and copy.stat().st_size > size + (1 << 20), 30, "more of the log")
    with contextlib.ExitStack() as stack:
        child = stack.enter_context(login.begin("logs", "-f", "--to", str(copy), "last"))
        for kind in DROPS:
            grows()
            frozen = []
            if kind == "client":
                child.kill()
                child.wait()
                child = stack.enter_context(login.begin("logs", "-f", "--to", str(copy), "last"))
            elif kind == "session":
                end_of_verbs(login)
            elif kind == "cut":
                login.cut()
            elif kind == "freeze":
                frozen = login.freeze()
            else:
                login.silence()
            time.sleep(random.random() / 2)
            grows()
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        (login.person.home / "enough").touch()
        assert child.wait(120) == 0, child.stderr.read()
        words = child.stderr.read().decode()
    assert f"{copy} holds {copy.stat().st_size} bytes of the log" in words
    with login.person.start("logs", "last", stderr=subprocess.STDOUT) as both, copy.open("rb") as ours:
        assert hashlib.file_digest(both.stdout, "sha256").digest() == hashlib.file_digest(ours, "sha256").digest()
    end_of_verbs(login)
    copy.write_text("mine")
    refused = login.gpuq("logs", "--to", str(copy), "last")
    assert refused.returncode == 2 and "not the beginning" in refused.stderr
    assert copy.read_text() == "mine"
