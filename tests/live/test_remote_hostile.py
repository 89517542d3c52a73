# SPDX-License-Identifier: GPL-2.0-or-later
"""A login host whose ssh server breaks the protocol, floods its client or falls silent, and one with the smallest windows
and packets that the protocol permits. By both transports; gpuq must end with an error, or work, and print nothing
unsanitised."""
import contextlib
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import paramiko
import pytest

from clusters import environment_of, processes, wait_for
from faults import COUNTING, leave_to_soak
from hostile import ESCAPE, STAGES, TRANSPORTS, Server, begun, gpuq, host, serve, silent_at, terminal
from runs import nothing_left, words_of
from terminals import COOKED, local_flags, without_own_lines

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])


def endless_lines(_, client):
    while True:
        client.sendall(b"welcome\x1b]0;owned\x07 to this host\r\n" * 1000)


def endless_line(_, client):
    client.sendall(b"SSH-2.0-")
    while True:
        client.sendall(b"x" * 65536)


def nonsense(_, client):
    client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    while True:
        client.sendall(os.urandom(4096))


def closes_at_once(_, client):
    client.close()


def no_command(host, client):
    """The channel is closed as soon as the command is accepted, without an exit status."""
    server = Server()
    transport = begun(host, client, server)
    channel = transport.accept(20)
    server.command.wait(20)
    channel.close()
    time.sleep(20)


def packets_of_size_0(host, client):
    def prepare(transport):
        transport._sanitize_packet_size = lambda size: size
        transport.default_max_packet_size = 0
    channels = [begun(host, client, Server(), prepare).accept(20)]
    host.over.wait()
    del channels


def goodbye_with_escapes(host, client):
    server = Server()
    transport = begun(host, client, server)
    transport.accept(20)
    message = paramiko.Message()
    message.add_byte(b"\x01")
    message.add_int(2)
    message.add_string(ESCAPE + "goodbye")
    message.add_string("en")
    transport._send_user_message(message)
    time.sleep(0.5)
    client.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("serve", [endless_lines, endless_line, nonsense, closes_at_once, no_command,
                                   goodbye_with_escapes], ids=lambda serve: serve.__name__)
def test_a_server_that_breaks_the_protocol(person, transport, serve):
    with host(transport, serve) as one:
        done, seconds = gpuq(person.cluster.binary, one, "ls")
        assert done.returncode in (120, 121) and done.stdout == b"", done
        assert len(done.stderr) < 2000 and seconds < 35, (seconds, done.stderr)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_opens_channels(person, transport):
    answers = []

    def serve(host, client):
        server = Server()
        transport = begun(host, client, server)
        channel = transport.accept(20)  # closed without a reference
        server.command.wait(20)
        for kind in ("forwarded-tcpip", "x11", "auth-agent@openssh.com", "session", "nonsense"):
            try:
                transport.open_channel(kind, ("localhost", 1), ("localhost", 2), timeout=5)
            except paramiko.ChannelException as refusal:
                answers.append(refusal.code)
        channel.close()
        client.close()
    with host(transport, serve) as one:
        gpuq(person.cluster.binary, one, "ls")
    assert len(answers) == 5, answers


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_that_waits_for_a_confirmation_elsewhere(person, transport):
    """ConnectTimeout does not limit the answers within a login: the user may have to confirm it on a phone."""
    server = Server()

    def slowly(*_):
        time.sleep(2.5)
        return paramiko.AUTH_SUCCESSFUL
    server.check_auth_publickey = slowly

    def serve(host, client):
        channel = begun(host, client, server).accept(20)
        server.command.wait(20)
        channel.close()
        client.close()
    with host(transport, serve) as one:
        config = one.folder / "ssh_config"
        config.write_text(config.read_text() + " ConnectTimeout 1\n")
        done, _ = gpuq(person.cluster.binary, one, "ls")
        assert server.command.is_set() and len(one.open) == 1, done


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_question_without_an_end(person, transport):
    server = Server("keyboard-interactive", [(ESCAPE + "code" + "x" * (100 << 10), False)])
    with host(transport, lambda host, client: begun(host, client, server).join(60)) as one, terminal(person, one) as screen:
        wait_for(lambda: screen.read(0.1) and b"code" in screen.screen, 30, "the question")
        assert b"\x1b]0;" not in screen.screen and b"\x1b[2J" not in screen.screen  # ssh prints it by vis(3)
        if transport == "libssh":
            assert len(screen.screen) < 9000
        screen.type("\x03")
        assert screen.status() == 130


def test_questions_without_an_end(person):
    server = Server("keyboard-interactive", [(f"question {i}: ", False) for i in range(100)])
    with host("libssh", lambda host, client: begun(host, client, server).join(60)) as one, terminal(person, one) as screen:
        for i in range(30):
            wait_for(lambda: screen.read(0.1) and b"question %d: " % i in screen.screen, 30, f"question {i}")
            screen.type("answer\r")
        assert screen.status() == 121
        assert b"question 30" not in screen.screen and server.rounds == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_flood_before_the_login(person, transport):
    server = Server(banner=(ESCAPE + "line\r\n") * 1000)
    with host(transport, lambda host, client: begun(host, client, server).join(60)) as one, terminal(person, one) as screen:
        wait_for(lambda: screen.read(0.1) and server.command.is_set(), 30, "a session")
        screen.type("\x03")
        assert screen.status() == 130
        assert b"\x1b]0;" not in screen.screen and len(screen.screen) < 60000


def sessions(person):
    """Pids of gpuq's processes on the host besides runs."""
    return processes(lambda pid: len(words_of(pid)) > 1 and words_of(pid)[1] == "serve" and
                     environment_of(pid).get("XDG_STATE_HOME") == str(person.state))


@contextlib.contextmanager
def served(person, transport, prepare=lambda transport: None, then=None, abandoned=False):
    """A host that serves gpuq. `then`: the server from the second connection on. `abandoned`: the sessions wait for a
    client that will not return."""
    def serve_one(host, client):
        if then and len(host.open) > 1:
            then(host, client)
        else:
            serve(person, host, client, prepare)
    with host(transport, serve_one) as one:
        one.env["GPUQ_REMOTE"] = str(person.cluster.binary)
        yield one
    for pid in sessions(person) if abandoned else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not sessions(person), 20, "nothing left there")


def small_window(size):
    def prepare(transport):
        transport._sanitize_window_size = lambda wanted: wanted
        transport.default_window_size = size
    return prepare


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_smallest_windows_and_a_key_exchange_every_64_KiB(person, transport):
    def prepare(transport):
        small_window(2000)(transport)
        transport._sanitize_packet_size = lambda size: size
        transport.default_max_packet_size = 1000
        transport.packetizer.REKEY_BYTES = 64 << 10
    with served(person, transport, prepare) as one:
        data = os.urandom(1 << 20)
        done, _ = gpuq(person.cluster.binary, one, "-Q", "run", "sh", "-c", "cat; exit 7", limit=120, input=data)
        assert done.returncode == 7 and done.stdout == data, done.stderr
    nothing_left(person)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_window_that_stays_0(person, transport):
    """The first bytes are on the command line: a short command needs no window. A longer one can be left."""
    with served(person, transport, small_window(0), abandoned=True) as one:
        done, seconds = gpuq(person.cluster.binary, one, "ls")
        assert done.returncode == 0 and seconds < 15, (seconds, done)
        with terminal(person, one, "run", "--pty", "true") as screen:
            wait_for(lambda: screen.read(0.1) and b"reconnecting" in screen.screen, 30, lambda: f"silence: {screen.screen}")
            screen.type("\x03")
            assert screen.status(5) == 130 and local_flags(screen) == COOKED
    nothing_left(person)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_window_that_is_used_up(person, transport):
    """The host does not adjust it: the connection is dead for gpuq, and the next one continues at the byte."""
    def prepare(transport):
        small_window(800)(transport)
        send = transport.packetizer.send_message
        adjustment = b"\x5d"  # SSH_MSG_CHANNEL_WINDOW_ADJUST
        transport.packetizer.send_message = lambda message: message.asbytes()[:1] == adjustment or send(message)
    count = 80
    script = f"stty raw -echo; echo ready; exec head -c {count * len('<00>')}"
    with served(person, transport, prepare) as one, terminal(person, one, "run", "--pty", "sh", "-c", script) as screen:
        screen.wait_for("ready", 30)
        for i in range(count):
            screen.type(f"<{i:02}>")
            screen.read(0.05)
        assert screen.status(60) == 0 and local_flags(screen) == COOKED
        assert re.findall(rb"<(\d\d)>", without_own_lines(screen.screen)) == [b"%02d" % i for i in range(count)]
        assert len(one.open) > 1
    nothing_left(person)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_another_host_key_at_a_later_key_exchange(person, transport):
    """OpenSSH ends the connection. libssh accepts the key: only the host to which it is connected can exchange keys."""
    leave_to_soak(unless=transport == "openssh")
    sent = []

    def renegotiate(transport):
        with contextlib.suppress(EOFError, paramiko.SSHException):
            transport.renegotiate_keys()

    def prepare(transport):
        send = transport.packetizer.send_message

        def count(message):
            sent.append(len(message.asbytes()))
            if sum(sent) > 300_000:
                sent.clear()
                transport.add_server_key(paramiko.RSAKey.generate(2048))
                threading.Thread(target=renegotiate, args=(transport,), daemon=True).start()
            send(message)
        transport.packetizer.send_message = count
    with served(person, transport, prepare) as one:
        done, seconds = gpuq(person.cluster.binary, one, "-Q", "run", "sh", "-c", "seq 100000; sleep 1; exit 7", limit=90)
        assert done.returncode == 7 and done.stdout.split() == [b"%d" % n for n in range(1, 100001)], done.stderr
        assert seconds < 80 and (transport == "libssh" or len(one.open) > 1)
    nothing_left(person)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_falls_silent(person, transport):
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(16) as pool:
        servers = {stage: silent_at(stage) for stage in STAGES} | {"packets of size 0": packets_of_size_0}
        clients = {stage: pool.submit(gpuq, person.cluster.binary, stack.enter_context(host(transport, serve)), "ls", limit=60)
                   for stage, serve in servers.items()}
        ends = {stage: each.result() for stage, each in clients.items()}
    for stage, (done, seconds) in ends.items():
        assert done.returncode == 120 and done.stdout == b"" and seconds < 40, (stage, seconds, done)
        assert len(done.stderr) < 500, done.stderr


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_leaving_a_server_that_falls_silent(person, transport):
    """On a terminal a login may take any time, but Ctrl-C ends it at once."""
    reached = {stage: threading.Event() for stage in STAGES}
    with contextlib.ExitStack() as stack:
        hosts = {stage: stack.enter_context(host(transport, silent_at(stage, reached[stage]))) for stage in STAGES}
        screens = {stage: stack.enter_context(terminal(person, one)) for stage, one in hosts.items()}
        for stage, screen in screens.items():
            leave_once_reached(stage, reached[stage], screen)


def leave_once_reached(stage, reached, screen):
    wait_for(lambda: screen.read(0.05) and reached.is_set(), 40, lambda: f"stage {stage}: {screen.screen}")
    time.sleep(0.3)
    screen.type("\x03")
    assert screen.status(5) == 130 and local_flags(screen) == COOKED, stage


@contextlib.contextmanager
def numbers_of_a_run(person):
    done = person.gpuq("run", "--detach", "sh", "-c", COUNTING.format(lines=6000, pause="sleep 0.1"))
    assert done.returncode == 0, done.stderr
    yield
    assert person.gpuq("stop", "last").returncode == 0
    nothing_left(person)


@contextlib.contextmanager
def interrupted(person, transport, then):
    """A terminal that shows a log, after a cut. `then`: the server that answers from now on."""
    with served(person, transport, then=then, abandoned=True) as one, terminal(person, one, "logs", "-f", "last") as screen:
        screen.wait_for("line 3\r\n", 30)
        one.cut()
        yield one, screen


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_is_silent_after_a_cut(person, transport):
    leave_to_soak(unless=transport == "libssh")
    with numbers_of_a_run(person), contextlib.ExitStack() as stack:
        reached = {stage: threading.Event() for stage in STAGES}
        screens = [stack.enter_context(interrupted(person, transport, silent_at(stage, reached[stage]))) for stage in STAGES]
        for stage, (one, screen) in zip(STAGES, screens):
            wait_for(lambda: screen.read(0.1) and len(one.open) > 2, 60, f"another attempt at stage {stage}")
            assert b"reconnecting" in screen.screen
            leave_once_reached(stage, reached[stage], screen)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_that_falls_silent(person, transport):
    leave_to_soak(unless=transport == "libssh")

    def prepare(transport):
        send, sent = transport.packetizer.send_message, []

        def until_much_was_sent(message):
            sent.append(len(message.asbytes()))
            if sum(sent) < 50_000:
                send(message)
        transport.packetizer.send_message = until_much_was_sent
    silent = threading.Event()

    def once(transport):
        if not silent.is_set():
            silent.set()
            prepare(transport)
    with served(person, transport, once) as one:
        done, seconds = gpuq(person.cluster.binary, one, "-Q", "run", "sh", "-c", "seq 100000; exit 7", limit=90)
        assert done.returncode == 7 and done.stdout.split() == [b"%d" % n for n in range(1, 100001)], done.stderr
        assert len(one.open) == 2 and seconds < 60
    nothing_left(person)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_question_of_1_MiB(person, transport):
    """More than either side accepts in a packet."""
    server = Server("keyboard-interactive", [(ESCAPE + "x" * (1 << 20), False)])
    with host(transport, lambda host, client: begun(host, client, server).join(60)) as one, terminal(person, one) as screen:
        assert screen.status(30) in (120, 121)
        assert len(screen.screen) < 5000 and b"\x1b" not in screen.screen


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [10, 100 << 10, 1 << 20])
def test_1000_questions_after_a_cut(person, transport, size):
    """Each in a round of its own. gpuq answers none by itself, and stops asking at the tenth."""
    server = Server("keyboard-interactive", [(ESCAPE + "x" * size, False)])

    def ask(host, client):
        begun(host, client, server).join(60)
    with numbers_of_a_run(person), interrupted(person, transport, ask) as (_, screen):
        screen.wait_for("Enter tries", 20)
        assert server.rounds == 0
        begin = len(screen.screen)
        screen.type("\r")
        for _ in range(1000):
            question = len(screen.screen)
            wait_for(lambda: screen.read(0.1) and (b"asks: " in screen.screen[question:] or b"again" in screen.screen[question:]),
                     30, lambda: f"a question or the end of them: {screen.screen[begin:]}")
            if b"again" in screen.screen[question:]:
                break
            screen.type("answer\r")
        is_too_long = size > 100 << 10
        assert (server.rounds, screen.screen.count(b"asks: ")) == ((1, 0) if is_too_long else (11, 10))
        assert b"\x1b]0;" not in screen.screen and b"\x1b[2J" not in screen.screen and len(screen.screen) - begin < 20000
        screen.type("\x03")
        assert screen.status(5) == 130 and local_flags(screen) == COOKED
