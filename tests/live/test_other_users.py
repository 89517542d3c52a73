# SPDX-License-Identifier: GPL-2.0-or-later
"""Another user of the same machine: ports, names, files. SECURITY.md and gpuq-security(7) describe the defences."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import textwrap

import pytest

from clusters import account, as_kwargs, free_port, short_folder, wait_for
from logins import login_host
from node_names import sockets, uid_of
from runs import all_gpus_taken, records, the_run
from test_forward import fetch

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a second user")


@pytest.fixture(scope="module")
def other():
    """Another user with an account on this machine."""
    return account("gpuq-other")


@contextlib.contextmanager
def doing(user, text, *words):
    """A Python program of that user that has printed a line. Yields the process and the line."""
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(text), *map(str, words)], cwd="/tmp",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, **as_kwargs(user)) as child:
        try:
            yield child, child.stdout.readline().decode().strip()
        finally:
            child.kill()


SERVER = """
    import http.server, sys
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200); self.end_headers(); self.wfile.write(b"not yours")
        def log_message(self, *words): print("a request", flush=True)
    family = http.server.HTTPServer.address_family = int(sys.argv[2])
    server = http.server.HTTPServer((sys.argv[1], int(sys.argv[3])), Page)
    print(server.server_port, flush=True)
    server.serve_forever()
"""
TAKES_NAMES = """
    import os, socket, sys
    held = []
    for name in sys.argv[1:]:
        if name.startswith("/"):
            os.mkdir(name, 0o700)
        else:
            held.append(socket.socket(socket.AF_UNIX)); held[-1].bind("\\0" + name); held[-1].listen(1)
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def login(person):
    with short_folder() as folder, login_host(person, folder) as one:
        yield one
        wait_for(lambda: not one.sessions(), 20, lambda: f"nothing left there: {one.sessions()}")


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_port_of_another_user_on_the_node_is_not_forwarded(login, other, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    here = free_port()
    with doing(other, SERVER, address, int(family), 0) as (server, port), \
            login.begin("--forward", f"{here}:{port}", "run", "sh", "-c", "echo begun; exec sleep 600") as child:
        assert child.stdout.readline() == b"begun\n"
        assert not fetch(here, "/") and not fetch(here, "/")
        # The refusal is reported once in the journal, by gpuq show, and on the client's stderr.
        record = the_run(login.person)
        wait_for(lambda: record.event("other_user"), 10, "the journal")
        told = f"localhost:{port} on n0 is served by user gpuq-other ({other.pw_uid}), not by you: not connected"
        assert [one["detail"] for one in record.journal if one["event"] == "other_user"] == ["--forward: " + told]
        assert told in login.person.gpuq("show", "last").stdout
        assert login.person.gpuq("stop", "last").returncode == 0
        child.wait(30)
        assert f"gpuq: --forward: {told}" in child.stderr.read().decode().replace("\r", "")
        server.kill()
        assert b"a request" not in server.stdout.read()


def test_a_forwarded_port_is_of_its_user_alone(login, other):
    """On the laptop every user can connect to 127.0.0.1; only the owner of the session is let through."""
    here, there = free_port(), free_port()
    server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(login.person.home), str(there)]
    (login.person.home / "index.html").write_text("of the owner")
    get = """
        import http.client, sys
        try:
            one = http.client.HTTPConnection("localhost", int(sys.argv[1]), timeout=20)
            one.request("GET", "/"); print(one.getresponse().read().decode())
        except OSError as error:
            print("refused", type(error).__name__)
        except http.client.HTTPException as error:
            print("refused", type(error).__name__)
    """
    with login.begin("--forward", f"{here}:{there}", "run", *server) as child:
        assert wait_for(lambda: fetch(here, "/"), 30, "the page") == b"of the owner"
        for _ in range(2):
            with doing(other, get, here) as (_, told):
                assert told.startswith("refused")
        assert fetch(here, "/") == b"of the owner"
        assert login.person.gpuq("stop", "last").returncode == 0
        child.wait(30)
        said = child.stderr.read().decode()
        assert said.count(f"--forward: refused a connection from user gpuq-other ({other.pw_uid})") == 1


@pytest.mark.parametrize("direct", ["yes", "no"])
@pytest.mark.parametrize("who", ["guessed", "known"])
def test_a_taken_name_keeps_nobody_from_a_run(cluster, person, other, who, direct):
    """Names derivable from the key, which squeue shows, are not used. If another user who has read the secret takes a
    name in use, this is reported and another name is used."""
    assert person.gpuq("run", "--", "true").returncode == 0  # creates the secret
    person.env["GPUQ_DIRECT"] = direct
    with contextlib.ExitStack() as stack:
        with all_gpus_taken(cluster, nodes=1):
            done = person.gpuq("run", "-t", "5", "--detach", "--", "sh", "-c", "echo out; exec sleep 300")
            assert done.returncode == 0, done.stderr
            record = records(person)[-1]
            comment = cluster.slurm("squeue", "-h", "-j", str(record.job), "-o", "%k").strip()
            assert comment == f"gpuq:{record.key}", "what others see"
            names = [f"gpuq-{uid_of(person)}/{record.key}.1"] if who == "guessed" else sockets(person, record.key)[:2]
            _, told = stack.enter_context(doing(other, TAKES_NAMES, *names))
            assert told == "taken"
        wait_for(record.log, 30, "its output")
        with person.start("attach", str(record.job)) as child:
            assert child.stdout.readline() == b"out\n"
        events = [one["detail"] for one in record.journal if one["event"] == "other_user"]
        expected = names if who == "known" else []
        assert [text.split("@")[1].split()[0] for text in events] == expected
        shown = person.gpuq("show", str(record.job)).stdout
        for name in expected:
            assert f"the socket @{name} belongs to user gpuq-other ({other.pw_uid})" in shown
    assert person.gpuq("stop", str(record.job)).returncode == 0
    record.wait_for_end()


def mode(path, bits):
    os.chmod(path, bits)
    return path


@pytest.fixture
def config(person):
    """A configuration with a token command that leaves a trace."""
    folder = person.home / "config" / "gpuq"
    folder.mkdir(parents=True)
    file = folder / "config.yaml"
    trace = person.home / "trace"
    file.write_text(f"token_command: [sh, -c, 'echo ran >>{trace}; echo token']\n")
    mode(file, 0o644)
    yield file, trace


@pytest.mark.parametrize("which, bits", [("file", 0o666), ("file", 0o664), ("folder", 0o777), ("above", 0o777),
                                         ("folder", 0o775)])
def test_a_configuration_that_others_may_write_is_refused(person, config, which, bits):
    file, trace = config
    path = {"file": file, "folder": file.parent, "above": file.parent.parent}[which]
    before = path.stat().st_mode & 0o7777
    mode(path, bits)
    for verb in (("run", "--", "true"), ("ls",), ("free",)):
        done = person.gpuq(*verb)
        assert done.returncode != 0
        assert f"others may write to {path}" in done.stderr
        assert f"(mode {bits:04o}): chmod go-w {path}" in done.stderr
    assert not trace.exists() and not records(person)
    mode(path, before)
    assert person.gpuq("run", "--", "true").returncode == 0
    assert trace.exists()


def test_a_configuration_of_another_user_is_refused(person, config, other):
    file, trace = config
    os.chown(file, other.pw_uid, other.pw_gid)
    done = person.gpuq("run", "--", "true")
    assert done.returncode != 0 and f"{file} belongs to user gpuq-other ({other.pw_uid})" in done.stderr
    assert not trace.exists()
    os.chown(file, 0, 0)
    # A symbolic link in a directory where other users can create links.
    with short_folder() as public:
        mode(public, 0o1777)
        elsewhere = person.home / "elsewhere"
        elsewhere.symlink_to(public / "gpuq-link")
        (public / "gpuq-link").symlink_to(file.parent.parent)
        os.lchown(public / "gpuq-link", other.pw_uid, other.pw_gid)
        done = person.gpuq("ls", env={"XDG_CONFIG_HOME": str(elsewhere)})
        assert done.returncode != 0 and "belongs to user gpuq-other" in done.stderr


def test_a_state_folder_that_others_can_replace_is_refused(person):
    with short_folder() as place:
        inner = place / "open" / "state"
        inner.mkdir(parents=True)
        mode(inner, 0o700)
        mode(place / "open", 0o777)
        done = person.gpuq("run", "--", "true", env={"GPUQ_STATE_DIR": str(inner)})
        assert done.returncode != 0
        assert f"others may write to {place}/open on the way to {inner} (mode 0777): chmod go-w {place}/open" in done.stderr
        mode(place / "open", 0o1777)
        assert person.gpuq("run", "--", "true", env={"GPUQ_STATE_DIR": str(inner)}).returncode == 0
        mode(inner, 0o770)
        done = person.gpuq("ls", env={"GPUQ_STATE_DIR": str(inner)})
        assert done.returncode != 0 and f"(mode 0770): chmod go-w {inner}" in done.stderr


def test_a_policy_that_others_may_write_is_not_obeyed(person):
    policy = person.home / "policy.yaml"
    policy.write_text((pathlib.Path(__file__).parents[2] / "policies" / "minimal.yaml").read_text())
    mode(policy, 0o666)
    for words in (("policy", "apply", str(policy)), ("policy", "check")):
        done = person.gpuq(*words, env={"GPUQ_POLICY": str(policy)})
        assert done.returncode not in (0, 10)
        assert f"others may write to {policy} (mode 0666): chmod go-w {policy}" in done.stderr


def test_a_program_that_another_user_has_placed_is_not_executed(person, other):
    """gpuq prefers a file in the working directory to PATH, but not one that others could have placed in, say, /tmp."""
    with short_folder() as public:
        mode(public, 0o1777)
        for name in ("hostname", "tool"):
            planted = public / name
            planted.write_text("#!/bin/sh\necho planted\n")
            mode(planted, 0o755)
            os.chown(planted, other.pw_uid, other.pw_gid)
        for way in (["run"], ["run", "--detach"], ["run", "--dry-run"], ["rehearse"]):
            done = person.gpuq(*way, "--", "hostname", cwd=public)
            assert (done.returncode, done.stdout) == (121, ""), done
            assert f"{public}/hostname belongs to user gpuq-other" in done.stderr and "write ./hostname" in done.stderr
        assert not records(person)
        for word in ("./hostname", "tool"):  # meant, for there is no other
            assert person.gpuq("run", "--", word, cwd=public).stdout == "planted\n"
        (public / "hostname").unlink()
        (public / "hostname").write_text("#!/bin/sh\necho mine\n")
        mode(public / "hostname", 0o755)
        assert person.gpuq("run", "--", "hostname", cwd=public).stdout == "mine\n"
