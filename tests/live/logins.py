# SPDX-License-Identifier: GPL-2.0-or-later
"""A login host as seen by a laptop: a real sshd on the loopback interface, behind a TCP proxy that can fall silent."""
import collections
import contextlib
import os
import pathlib
import pwd
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time

from clusters import Child, environment_of, free_port, plain_environment, processes, wait_for
from runs import words_of


class Proxy:
    """Forwards connections from its own port to another one. If `silent` is set, existing connections stop without
    notice."""

    def __init__(self, to_port, delay=0.0):
        self.to_port = to_port
        self.delay = delay  # seconds, in each direction
        self.late = collections.deque()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.silent = False
        self.pairs = []
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.ended = False
        self.thread = threading.Thread(target=self._copy, daemon=True)
        self.thread.start()

    def _copy(self):
        while not self.ended:
            for key, _ in self.selector.select(self._deliver()):
                if key.fileobj is self.listener:
                    self._accept()
                else:
                    self._pass(key.fileobj, key.data)
            if self.silent:
                for key in list(self.selector.get_map().values()):
                    if key.fileobj is not self.listener:
                        self.selector.unregister(key.fileobj)
                self.silent = False

    def _accept(self):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.to_port))
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(one, selectors.EVENT_READ, other)
        self.pairs.append((client, server))

    def _pass(self, one, other):
        try:
            data = one.recv(1 << 18)
            if self.delay:
                if not data:
                    self.selector.unregister(one)
                self.late.append((time.monotonic() + self.delay, one, other, data))
                return
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        self._close(one, other)

    def _deliver(self):
        """Delivers data that was delayed long enough. Returns the seconds until the next delivery."""
        while self.late and self.late[0][0] <= time.monotonic():
            _, one, other, data = self.late.popleft()
            try:
                if data:
                    other.sendall(data)
                    continue
            except OSError:
                pass
            self._close(one, other)
        return max(0, min(0.05, self.late[0][0] - time.monotonic())) if self.late else 0.05

    def _close(self, *sockets):
        for each in sockets:
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(each)
            each.close()

    def close(self):
        self.ended = True
        self.thread.join()
        for pair in self.pairs:
            self._close(*pair)
        self.listener.close()


def openssh_release():
    """(9, 2) of the OpenSSH on this machine."""
    version = subprocess.run(["ssh", "-V"], text=True, capture_output=True, check=True).stderr
    return tuple(map(int, re.match(r"OpenSSH_(\d+)\.(\d+)", version).groups()))


def sshd_has_gssapi():
    """Whether sshd on this machine is built with GSSAPI."""
    done = subprocess.run(["/usr/sbin/sshd", "-T", "-o", "GSSAPIAuthentication=yes"], text=True, capture_output=True, check=False)
    return "nsupported option" not in done.stderr and "eprecated option" not in done.stderr


class Login:
    """A user's gpuq at the other end of an ssh connection. gpuq on the host has the user's `env`.

    `address`: listening address of sshd; without it, the loopback interface behind a proxy.
    `server`, `client`: lines for sshd_config and ssh_config; `server_env`: environment of sshd.
    `around`: command prefix that starts sshd; `inside`: command prefix that starts the laptop's gpuq."""

    def __init__(self, person, folder, address=None, server=(), client=(), server_env=None, there=None, inside=(), around=()):
        self.person = person
        self.folder = pathlib.Path(folder)
        self.address = address or "127.0.0.1"
        self.server_lines, self.server_env, self.inside, self.around = server, server_env, list(inside), list(around)
        self.there = {name: value for name, value in person.env.items()
                      if name in ("SLURM_CONF", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH", "LC_ALL")}
        self.there |= there or {}
        for name in ("host_key", "other_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)
        self.port = free_port(self.address)
        self.server = None
        self.start()
        self.proxy = None if address else Proxy(self.port)
        self.trust("host_key")
        (self.folder / "ssh_config").write_text(
            "Host login\n" + "".join(f" {line}\n" for line in client) +
            f" HostName {self.address}\n Port {self.proxy.port if self.proxy else self.port}\n"
            f" IdentityFile {self.folder}/user_key\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {self.folder}/known_hosts\n HostKeyAlias login\n"
            f" GSSAPIAuthentication no\n")
        # A laptop: no cluster, no state directory.
        self.env = {name: value for name, value in plain_environment().items() if name != "LC_ALL"}
        self.env |= {"HOME": str(self.folder), "GPUQ_SSH": f"ssh -F {self.folder}/ssh_config",
                     "GPUQ_REMOTE": str(person.cluster.binary),
                     "GPUQ_TRANSPORT": os.environ.get("GPUQ_TRANSPORT", "auto")}  # the soak test chooses each

    def start(self, host_key="host_key"):
        settings = " ".join(shlex.quote(f"{name}={value}") for name, value in self.there.items())
        user = pwd.getpwuid(os.geteuid()).pw_name
        (self.folder / "sshd_config").write_text(
            "".join(f"{line}\n" for line in self.server_lines) +
            f"Port {self.port}\nListenAddress {self.address}\nHostKey {self.folder}/{host_key}\nUsePAM no\n"
            f"PidFile none\nStrictModes no\nAuthorizedKeysFile {self.folder}/user_key.pub\n"
            # The last such line applies, not the first.
            + ("" if any("MaxStartups" in line for line in self.server_lines) else "MaxStartups 100\n") +
            f"PermitRootLogin prohibit-password\nAllowUsers {user}\nSetEnv {settings}\nLogLevel ERROR\n"
            # Newer releases block an address for a while whose connections break as often as in these tests.
            + ("PerSourcePenalties no\n" if openssh_release() >= (9, 8) else ""))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        self.server = subprocess.Popen(
            [*self.around, shutil.which("sshd", path="/usr/sbin:/usr/bin"), "-D", "-e", "-f", str(self.folder / "sshd_config")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(self.folder / "sshd.log").open("ab"),
            env=self.server_env)

        def answers():
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), timeout=1):
                return True
        wait_for(answers, 10, "an sshd that answers")
        wait_for(lambda: not self.servers(), 10, "the end of that connection, which counts for MaxStartups")

    def stop(self):
        """Stops the listener; connections continue."""
        self.server.kill()
        self.server.wait(10)

    def trust(self, key):
        """Makes this the host key known to the laptop."""
        kind, text, *_ = (self.folder / f"{key}.pub").read_text().split()
        (self.folder / "known_hosts").write_text(f"login {kind} {text}\n")

    def close(self):
        if self.proxy:
            self.proxy.close()
        self.stop()

    def servers(self):
        """The sshd processes with one connection each, newest last."""
        def belongs(pid):
            words = words_of(pid)
            # Since OpenSSH 9.8 they are programs of their own.
            return words and words[0].startswith(("sshd:", "sshd-session:", "sshd-auth:")) and ancestor(pid, self.server.pid)
        return sorted(processes(belongs))

    def cut(self, stop=False):
        """Ends every connection as if its process had died; `stop`: also refuses new ones."""
        pids = self.servers()
        if stop:
            self.stop()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self):
        """Freezes every connection as if the host hung. Returns the pids to continue."""
        pids = self.servers()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return pids

    def silence(self):
        """Silences every connection as if a router had dropped it; new ones work."""
        self.proxy.silent = True
        wait_for(lambda: not self.proxy.silent, 5, "silence")

    def popen(self, *words, env=None, **options):
        return Child([*self.inside, self.person.cluster.binary, "--host", "login", *map(str, words)],
                     env={**self.env, **(env or {})}, cwd=self.folder,
                     **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                        "start_new_session": True, "bufsize": 0, **options})

    @contextlib.contextmanager
    def begin(self, *words, **options):
        child = self.popen(*words, **options)
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
            child.wait(10)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()

    def gpuq(self, *words, timeout=60, **options):
        """Runs gpuq to its end. Returns a CompletedProcess with bytes."""
        with self.begin(*words, **{"stdin": subprocess.PIPE if "input" in options else subprocess.DEVNULL,
                                   **{k: v for k, v in options.items() if k != "input"}}) as child:
            out, err = child.communicate(options.get("input"), timeout=timeout)
            return subprocess.CompletedProcess(words, child.returncode, out, (err or b"").decode())

    def sessions(self):
        """Pids of gpuq's processes on the host besides runs: fronts, holders, verbs."""
        def belongs(pid):
            words = words_of(pid)
            return (len(words) > 1 and words[0].endswith("gpuq") and words[1] == "serve" and
                    environment_of(pid).get("XDG_STATE_HOME") == str(self.person.state))
        return processes(belongs)


def ancestor(pid, other):
    """True if `other` is an ancestor of `pid`."""
    while pid > 1:
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(text.rpartition(")")[2].split()[1])
        if pid == other:
            return True
    return False


@contextlib.contextmanager
def login_host(person, folder, **options):
    login = Login(person, folder, **options)
    try:
        yield login
    finally:
        login.close()
