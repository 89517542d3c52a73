# SPDX-License-Identifier: GPL-2.0-or-later
"""Ssh servers that may do anything, by paramiko, and the client that connects to them."""
import contextlib
import logging
import socket
import subprocess
import threading
import time

import paramiko

from clusters import PATIENCE, plain_environment, short_folder, wait_for
from runs import Terminal

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
        self.over = threading.Event()
        (folder / "known_hosts").write_text(f"login {self.key.get_name()} {self.key.get_base64()}\n")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "user_key"], check=True)
        (folder / "ssh_config").write_text(
            f"Host login\n HostName 127.0.0.1\n Port {self.port}\n IdentityFile {folder}/user_key\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {folder}/known_hosts\n HostKeyAlias login\n GSSAPIAuthentication no\n")
        self.env = {name: value for name, value in plain_environment().items() if name != "LC_ALL"}
        self.env |= {"HOME": str(folder), "GPUQ_SSH": f"ssh -F {folder}/ssh_config", "GPUQ_TRANSPORT": transport}
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self.serve(self, client)

    def cut(self):
        """Ends all connections so far."""
        for each in self.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept(), which might take a connection of the next host
        self.thread.join()
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
    done = subprocess.run([binary, "--host", "login", *words], env=host.env, capture_output=True, timeout=limit * PATIENCE, check=False,
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
        return paramiko.server.InteractiveQuery(ESCAPE + "name", ESCAPE + "instruction", *self.questions)

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


@contextlib.contextmanager
def terminal(person, host, *words):
    """`gpuq --host login WORDS` on a terminal; `ls` by default."""
    class Laptop:
        home, env, cluster = host.folder, host.env, person.cluster
    with contextlib.closing(Terminal(Laptop, "--host", "login", *(words or ["ls"]))) as one:
        yield one


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


def serve(person, host, client, prepare=lambda transport: None):
    """A session whose command is executed, as by sshd: `gpuq serve`."""
    there = {name: value for name, value in person.env.items()
             if name in ("SLURM_CONF", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH", "LC_ALL")}
    server = Server()
    accepted = []
    server.check_channel_exec_request = lambda channel, command: accepted.append(command) or True
    channel = begun(host, client, server, prepare).accept(20)
    wait_for(lambda: accepted, 20, "a command")
    bridge(channel, accepted[0].decode().split(" "), there)


STAGES = ["accept", "version", "key exchange", "login", "channel", "command"]


def silent_at(stage, reached=None):
    """A server that no longer answers from this stage on, and keeps the connection open. `reached`: an Event."""
    reached = reached or threading.Event()

    def serve_until(host, client):
        if stage == "version":
            client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        if stage in ("accept", "version"):
            reached.set()
            host.over.wait()
        transports = []

        def prepare(transport):
            transports.append(transport)
            transport.handshake_timeout = transport.auth_timeout = 3600
            if stage == "key exchange":
                send = transport.packetizer.send_message
                first = b"\x14"  # SSH_MSG_KEXINIT
                transport.packetizer.send_message = \
                    lambda message: send(message) if message.asbytes()[:1] == first else reached.set()

        def silently(result):
            def answer(*_):
                transports[0].packetizer.send_message = lambda _: None
                reached.set()
                return result
            return answer
        server = Server()
        if stage == "login":
            server.check_auth_publickey = silently(paramiko.AUTH_SUCCESSFUL)
        elif stage == "channel":
            server.check_channel_request = silently(paramiko.OPEN_SUCCEEDED)
        elif stage == "command":
            server.check_channel_exec_request = silently(True)
        channels = [begun(host, client, server, prepare).accept(3600)]  # closed without a reference
        host.over.wait()
        del channels
    return serve_until
