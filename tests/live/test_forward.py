# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host --forward`: a port of a run on the laptop, over a connection that is cut."""
import contextlib
import hashlib
import http.client
import os
import random
import signal
import socket
import subprocess
import threading

import pytest

from clusters import account, as_kwargs, free_port, short_folder, wait_for
from logins import login_host
from runs import nothing_left, processes_of, read_document, the_run, words_of

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
LARGE = 50 << 20


@pytest.fixture
def login(person):
    with short_folder() as folder, login_host(person, folder) as one:
        yield one
        wait_for(lambda: not one.sessions(), 20, lambda: f"nothing left there: {one.sessions()}")
        nothing_left(person)


def fetch(port, path, timeout=30):
    """The body, or None if the connection ended early."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def is_taken(port):
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def ways_in(person):
    """gpuq's forwarding processes on the node, and not those of tests that run at the same time."""
    return [pid for pid in processes_of(person) if words_of(pid)[1:2] == ["forward"] and
            words_of(pid)[0].endswith("gpuq-supervisor")]


def test_a_server_of_the_run_is_on_the_laptop(login):
    """Byte for byte, six at a time, again after a cut, and gone with the session."""
    # bash reads this file for each command, because it assumes that sshd started it.
    (login.person.home / ".bashrc").write_text("echo a greeting\n")
    site = login.person.home / "site"
    site.mkdir()
    large = random.Random(3).randbytes(LARGE)
    (site / "large").write_bytes(large)
    (site / "index.html").write_bytes(b"<h1>board</h1>\n")
    here, there, nobody = free_port(), free_port(), free_port()
    server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(site), str(there)]
    with login.begin("--forward", f"{here}:{there}", "--forward", f"{nobody}:1", "run", *server) as child:
        # Connections wait until the run has begun, and are closed until the server has begun.
        assert wait_for(lambda: fetch(here, "/"), 30, "the first page") == b"<h1>board</h1>\n"
        got = [None] * 6

        def get(number):
            got[number] = fetch(here, "/large", 120)
        threads = [threading.Thread(target=get, args=(number,)) for number in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        digest = hashlib.sha256(large).digest()
        assert [one is not None and hashlib.sha256(one).digest() == digest for one in got] == [True] * 6
        assert fetch(nobody, "/") is None
        # A cut ends open connections, never like a complete transfer.
        with socket.create_connection(("127.0.0.1", here)) as one:
            one.sendall(b"GET /large HTTP/1.0\r\n\r\n")
            assert one.recv(1000)
            login.cut()
            with pytest.raises(ConnectionResetError):
                while one.recv(1 << 20):
                    pass
        assert fetch(here, "/") == b"<h1>board</h1>\n"
        # Leaving ends the forwarding; the run continues.
        child.send_signal(signal.SIGHUP)
        child.wait(30)
        assert not is_taken(here)
        wait_for(lambda: not ways_in(login.person), 20, lambda: f"no way in left: {ways_in(login.person)}")
    assert not the_run(login.person).ended
    with login.begin("--forward", f"{here}:localhost:{there}", "attach", "last") as child:
        assert wait_for(lambda: fetch(here, "/"), 30, "the first page") == b"<h1>board</h1>\n"
        assert ways_in(login.person)
        assert login.person.gpuq("stop", "last").returncode == 0
        child.wait(30)
        assert not is_taken(here)


def test_what_can_not_be_is_said_before_anything_begins(login):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        done = login.gpuq("--forward", taken, "run", "true")
    assert done.returncode == 2 and f"local port {taken} is in use" in done.stderr
    for word in ("0", "x", "80:-x:80", "1:2:3:4", "70000"):
        done = login.gpuq("--forward", word, "run", "true")
        assert done.returncode == 2 and "PORT:HOST:PORT" in done.stderr
    done = login.gpuq("--forward", free_port(), "ls")
    assert done.returncode == 2 and "run, again, shell or attach" in done.stderr
    assert "run" not in login.person.gpuq("ls", "--all", "--no-header").stdout
    done = login.person.gpuq("--forward", "6006", "run", "true")
    assert done.returncode == 2 and "--forward requires --host" in done.stderr


def test_a_node_needs_no_ssh_server(login):
    here, there = free_port(), free_port()
    login.person.env["GPUQ_SSHD"] = "/nonexistent/sshd"
    login.there["GPUQ_SSHD"] = "/nonexistent/sshd"
    login.stop()
    login.start()
    (login.person.home / "index.html").write_text("page")
    server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(login.person.home), str(there)]
    with login.begin("--forward", f"{here}:{there}", "run", *server) as child:
        assert wait_for(lambda: fetch(here, "/"), 30, "the page") == b"page"
        assert login.person.gpuq("stop", "last").returncode == 0
        child.wait(30)


def test_an_end_in_one_direction_is_passed_on(login):
    """A client sends all its data and continues to read: the server sees end of file and responds then."""
    here, there = free_port(), free_port()
    answers = ("import socket\none = socket.create_server(('localhost', int(%d)))\nclient, _ = one.accept()\nwhole = b''\n"
               "while more := client.recv(65536):\n    whole += more\nclient.sendall(whole[::-1])\nclient.close()\n"
               "import time\ntime.sleep(600)" % there)
    data = random.Random(5).randbytes(3 << 20)
    with login.begin("--forward", f"{here}:{there}", "run", "python3", "-c", answers) as child:
        def once():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", here), timeout=20) as one:
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                got = b""
                while more := one.recv(1 << 16):
                    got += more
                return got
            return None
        assert wait_for(once, 40, "an answer") == data[::-1]
        assert login.person.gpuq("stop", "last").returncode == 0
        child.wait(30)


def cut_steps(person):
    for pid in wait_for(lambda: ways_in(person), 20, "a way in"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_from_the_login_host_itself(login):
    """`gpuq forward` without --host: only for its own user, again after a cut, until the run ends."""
    person = login.person
    site = person.home / "site"
    site.mkdir()
    (site / "index.html").write_bytes(b"<h1>board</h1>\n")
    here, there = free_port(), free_port()
    server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(site), str(there)]
    assert person.gpuq("run", "--detach", "--", *server).returncode == 0
    wait_for(lambda: is_taken(there), 30, "the server")
    for command in (person.start, login.begin):
        with command("forward", "last", f"{here}:{there}", f"{free_port()}:1") as child:
            assert wait_for(lambda: fetch(here, "/"), 30, "the page") == b"<h1>board</h1>\n"
            cut_steps(person)
            assert wait_for(lambda: fetch(here, "/"), 30, "the page") == b"<h1>board</h1>\n"
            if command == person.start and os.geteuid() == 0:
                code = f"import urllib.request\nurllib.request.urlopen('http://localhost:{here}/', timeout=10)"
                done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=False,
                                      **as_kwargs(account("gpuq-ben")))
                assert done.returncode != 0 and "urlopen" in done.stderr
            child.send_signal(signal.SIGINT)
            assert child.wait(20) == 130
            text = child.stderr.read().decode()
            assert f"forwarding localhost:{here} to localhost:{there}" in text
            if command == person.start and os.geteuid() == 0:
                assert "refused a connection from user gpuq-ben" in text
            assert not is_taken(here)
    with person.start("forward", "--json", "last", f"{here}:{there}") as child:
        assert read_document(child.stdout) == {
            "schema": 1, "run": the_run(person).key, "state": "connected",
            "ports": [{"address": f"localhost:{here}", "port": here, "to": f"localhost:{there}"}]}
        assert wait_for(lambda: fetch(here, "/"), 30, "the page")
        assert person.gpuq("stop", "last").returncode == 0
        assert child.wait(20) == 0
    done = person.gpuq("forward", "last", there)
    assert done.returncode != 0 and "has ended" in done.stderr
