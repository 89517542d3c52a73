# SPDX-License-Identifier: GPL-2.0-or-later
"""A login host whose ssh server breaks the protocol or floods its client, and one with the smallest windows and packets
that the protocol permits. By both transports; gpuq must end with an error, or work, and print nothing unsanitised."""
import contextlib
import logging
import os
import socket
import subprocess
import threading
import time

import paramiko
import pytest

from clusters import environment_of, plain_environment, processes, short_folder, wait_for
from runs import Terminal, nothing_left, words_of

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
TRANSPORTS = ["libssh", "openssh"]
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class Host:
    """Accepts connections in threads; `serve(socket)` is the server."""

    def __init__(self, folder, transport, serve):
        self.folder, self.serve = folder, serve
        self.key = paramiko.RSAKey.generate(2048)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        (folder / "known_hosts").write_text(f"login {self.key.get_name()} {self.key.get_base64()}\n")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "user_key"], check=True)
        (folder / "ssh_config").write_text(
            f"Host login\n HostName 127.0.0.1\n Port {self.port}\n IdentityFile {folder}/user_key\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {folder}/known_hosts\n HostKeyAlias login\n GSSAPIAuthentication no\n")
        self.env = {name: value for name, value in plain_environment().items() if name != "LC_ALL"}
        self.env |= {"HOME": str(folder), "GPUQ_SSH": f"ssh -F {folder}/ssh_config", "GPUQ_TRANSPORT": transport}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self.serve(self, client)

    def close(self):
        self.listener.close()
        for each in self.open:
            each.close()


@contextlib.contextmanager
def host(transport, serve):
    with short_folder() as folder:
        one = Host(folder, transport, serve)
        try:
            yield one
        finally:
            one.close()


def gpuq(binary, host, *words, limit=40, **options):
    begin = time.monotonic()
    done = subprocess.run([binary, "--host", "login", *words], env=host.env, capture_output=True, timeout=limit, check=False,
                          cwd=host.folder, **({} if "input" in options else {"stdin": subprocess.DEVNULL}), **options)
    assert done.returncode >= 0, done
    assert b"\x1b" not in done.stderr, done.stderr
    return done, time.monotonic() - begin


class Server(paramiko.ServerInterface):
    """Lets everyone in."""

    def __init__(self, methods="publickey", questions=(), banner=None):
        self.methods, self.questions, self.banner = methods, questions, banner
        self.rounds = 0
        self.command = threading.Event()

    def get_banner(self):
        return (self.banner, "en") if self.banner else (None, None)

    def get_allowed_auths(self, _):
        return self.methods

    def check_auth_publickey(self, *_):
        return paramiko.AUTH_SUCCESSFUL if "publickey" in self.methods else paramiko.AUTH_FAILED

    def _query(self):
        self.rounds += 1
        return paramiko.server.InteractiveQuery("", "", *self.questions)

    def check_auth_interactive(self, *_):
        return self._query()

    def check_auth_interactive_response(self, _):
        return self._query()

    def check_channel_request(self, *_):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, *_):
        self.command.set()
        return True


def begun(host, client, server, prepare=lambda transport: None):
    """A Transport whose session has begun."""
    transport = paramiko.Transport(client)
    transport.add_server_key(host.key)
    prepare(transport)
    transport.start_server(server=server)
    return transport


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
        transport._sanitize_packet_size = lambda size: size or 0
        transport.default_max_packet_size = 0
    server = Server()
    begun(host, client, server, prepare).accept(20)
    server.command.wait(10)
    client.close()


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


def another_key_later(host, client):
    """Another host key at the second key exchange."""
    server = Server()
    transport = begun(host, client, server)
    transport.accept(20)
    server.command.wait(20)
    transport.server_key_dict[host.key.get_name()] = paramiko.RSAKey.generate(2048)
    transport.renegotiate_keys()
    time.sleep(0.5)
    client.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("serve", [endless_lines, endless_line, nonsense, closes_at_once, no_command, packets_of_size_0,
                                   goodbye_with_escapes, another_key_later], ids=lambda serve: serve.__name__)
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


@contextlib.contextmanager
def terminal(person, host):
    class Laptop:
        home, env, cluster = host.folder, host.env, person.cluster
    with contextlib.closing(Terminal(Laptop, "--host", "login", "ls")) as one:
        yield one


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_question_without_an_end(person, transport):
    server = Server("keyboard-interactive", [(ESCAPE + "code" + "x" * (100 << 10), False)])
    with host(transport, lambda host, client: begun(host, client, server).join(60)) as one, terminal(person, one) as screen:
        wait_for(lambda: screen.read(0.1) and b"code" in screen.screen, 30, "the question")
        if transport == "libssh":  # ssh prints it as it is
            assert b"\x1b]0;" not in screen.screen and b"\x1b[2J" not in screen.screen and len(screen.screen) < 9000
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


def bridge(channel, program, env):
    """Connects the channel to a process."""
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0) as process:
        def up():
            with contextlib.suppress(OSError):
                while data := channel.recv(700):
                    process.stdin.write(data)
                process.stdin.close()
        threading.Thread(target=up, daemon=True).start()
        while data := process.stdout.read(4000):
            channel.sendall(data)
        channel.send_exit_status(process.wait())
        channel.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_smallest_windows_and_a_key_exchange_every_64_KiB(person, transport):
    there = {name: value for name, value in person.env.items()
             if name in ("SLURM_CONF", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH", "LC_ALL")}

    def serve(host, client):
        def prepare(transport):
            transport._sanitize_packet_size = transport._sanitize_window_size = lambda size: size
            transport.default_max_packet_size, transport.default_window_size = 1000, 2000
            transport.packetizer.REKEY_BYTES = 64 << 10
        server = Server()
        accepted = []
        server.check_channel_exec_request = lambda channel, command: accepted.append(command) or True
        transport = begun(host, client, server, prepare)
        channel = transport.accept(20)
        wait_for(lambda: accepted, 20, "a command")
        bridge(channel, accepted[0].decode().split(" "), there)

    def sessions():
        return processes(lambda pid: len(words_of(pid)) > 1 and words_of(pid)[1] == "serve" and
                         environment_of(pid).get("XDG_STATE_HOME") == str(person.state))

    with host(transport, serve) as one:
        one.env["GPUQ_REMOTE"] = str(person.cluster.binary)
        data = os.urandom(1 << 20)
        done, _ = gpuq(person.cluster.binary, one, "-Q", "run", "sh", "-c", "cat; exit 7", limit=120, input=data)
        assert done.returncode == 7 and done.stdout == data, done.stderr
        wait_for(lambda: not sessions(), 20, "nothing left there")
    nothing_left(person)
