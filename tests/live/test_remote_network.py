# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host` over bad networks and from hosts that accept few connections, with both transports."""
import contextlib
import hashlib
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest

from clusters import short_folder, wait_for
from faults import of_soak
from logins import login_host
from networks import TO_HOST, TO_LAPTOP, LossyNetwork
from runs import nothing_left

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
TRANSPORTS = ["libssh", "openssh"]
# Prints a number every 20 ms until the file `enough` exists; its status is 3.
COUNTER = "i=0; while [ ! -e enough ]; do i=$((i+1)); echo $i; sleep 0.02; done; exit 3"


@contextlib.contextmanager
def reachable(person, transport, **options):
    """A login host for a laptop with this transport, on which nothing may be left behind."""
    with short_folder() as folder, login_host(person, folder, **options) as login:
        login.env["GPUQ_TRANSPORT"] = transport
        yield login
        wait_for(lambda: not login.sessions(), 20, lambda: f"nothing left there: {login.sessions()}")
        nothing_left(person)


@pytest.fixture
def network():
    """Begins a network: network(delay=0.1, loss=0.05)."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(LossyNetwork(**options))


class Reader:
    """Reads the output of a child in a thread."""

    def __init__(self, child):
        self.child, self.data = child, b""
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while piece := os.read(self.child.stdout.fileno(), 1 << 16):
            self.data += piece

    def grows(self, most=60):
        """Waits for more output. Returns the seconds it took."""
        size, begin = len(self.data), time.monotonic()
        wait_for(lambda: len(self.data) > size, most, "more output")
        return time.monotonic() - begin

    def counted_to_the_end(self, errors):
        """Checks that the counter's lines have all arrived, once and in order, and that its status is 3."""
        assert self.child.wait(60) == 3, errors()
        self.thread.join(10)
        lines = self.data.decode().splitlines()
        assert lines == [str(n) for n in range(1, len(lines) + 1)]


@contextlib.contextmanager
def counting(login, *words):
    """A run of the counter, whose output arrives. Gives its reader; it ends when the caller is done, and has lost
    nothing."""
    told = login.folder / "told"
    enough = login.person.home / "enough"
    enough.unlink(missing_ok=True)
    with told.open("wb") as err, login.begin(*words, "run", "sh", "-c", COUNTER, stderr=err) as child:
        reader = Reader(child)
        try:
            reader.grows()
            yield reader
        finally:
            enough.touch()
        reader.counted_to_the_end(told.read_text)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_bytes_both_ways_over_a_network_that_loses_packets(person, transport, network):
    """200 ms there and back, and one packet in twenty is lost."""
    way = network(delay=0.1, loss=0.05)
    data = random.Random(3).randbytes(of_soak(2 << 20, 128 << 10))
    with reachable(person, transport, address=way.address, inside=way.inside) as login:
        done = login.gpuq("run", "cat", input=data, timeout=of_soak(600, 120))
        assert done.returncode == 0, done.stderr
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert way.lost > 0.02 * way.passed > 0


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("directions", [(TO_HOST,), (TO_LAPTOP,), (TO_HOST, TO_LAPTOP)], ids=["there", "back", "both"])
def test_a_connection_that_is_half_open(person, transport, directions, network):
    """What one side sends is lost from now on; new connections work."""
    way = network(delay=0.005)
    with reachable(person, transport, address=way.address, inside=way.inside) as login, counting(login) as reader:
        for _ in range(of_soak(5, 1)):
            way.silence(*directions)
            time.sleep(0.2)
            assert reader.grows() < 30
            time.sleep(1)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cuts_freezes_and_silences_over_a_network_that_loses_packets(person, transport, network):
    """200 of them in the soak test."""
    way = network(delay=0.1, loss=0.05)
    kinds = random.Random(7).sample(["cut"] * 160 + ["freeze"] * 20 + ["silence"] * 20, 200)
    if not of_soak(True, False):
        kinds = ["cut", "silence"]
    frozen = []
    with reachable(person, transport, address=way.address, inside=way.inside) as login:
        with counting(login) as reader:
            for kind in kinds:
                if kind == "silence":
                    way.silence(TO_HOST, TO_LAPTOP)
                else:
                    frozen += {"cut": login.cut, "freeze": login.freeze}[kind]() or []
                time.sleep(0.3)
                reader.grows()
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_that_refuses_connections_for_a_while(person, transport):
    """MaxStartups: somebody else's connection that never logs in keeps the only place for eight seconds, in which
    one's own must log in."""
    with reachable(person, transport, server=["MaxStartups 1:100:1", "LoginGraceTime 8"]) as login, counting(login) as reader:
        connections = login.servers()
        with socket.create_connection(("127.0.0.1", login.port)) as other:
            assert other.recv(100).startswith(b"SSH-2.0")
            for pid in connections:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)
            assert reader.grows() > 1
            with socket.create_connection(("127.0.0.1", login.port)) as another:
                assert another.recv(100).startswith(b"SSH-2.0")
                done = login.gpuq("ls")
                assert done.returncode == 120 and "MaxStartups" in done.stderr, done.stderr


@pytest.mark.parametrize("shared", [False, True], ids=["own connection", "shared connection"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_with_one_session_per_connection(person, transport, shared):
    """MaxSessions: also where the user's own shared connection has that session already."""
    if shared and transport == "libssh":
        pytest.skip("shared connections are used by OpenSSH only")
    with contextlib.ExitStack() as stack:
        login = stack.enter_context(reachable(person, transport, server=["MaxSessions 1"]))
        if shared:
            config = login.folder / "ssh_config"
            config.write_text(f"ControlMaster auto\nControlPath {login.folder}/c-%C\n" + config.read_text())
            command = [*login.env["GPUQ_SSH"].split(), "login", "echo begun; read x"]
            user = stack.enter_context(subprocess.Popen(command, env=login.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            stack.callback(user.terminate)
            assert user.stdout.readline() == b"begun\n"
        with counting(login) as reader:
            login.cut()
            reader.grows()
