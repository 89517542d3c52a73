# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host` with users' settings in ~/.ssh/config and GPUQ_SSH, with other programs in place of gpuq on the login
host, and with dead shared connections."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from clusters import short_folder, wait_for
from logins import login_host
from runs import Terminal, nothing_left

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])


@pytest.fixture
def login(person):
    with short_folder() as folder, login_host(person, folder) as one:
        yield one
        wait_for(lambda: not one.sessions(), 20, lambda: f"nothing left there: {one.sessions()}")
        nothing_left(person)


@contextlib.contextmanager
def configured(login, *lines):
    """Adds lines before the others: the first value applies."""
    path = login.folder / "ssh_config"
    text = path.read_text()
    path.write_text("Host login\n" + "".join(f" {line}\n" for line in lines) + text)
    try:
        yield
    finally:
        path.write_text(text)


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login, env=None):
        self.home = login.folder
        self.env = {**login.env, **(env or {})}
        self.cluster = login.person.cluster


@contextlib.contextmanager
def terminal(login, *words, env=None):
    one = Terminal(Laptop(login, env), "--host", "login", *words)
    try:
        yield one
    finally:
        one.close()


SETTINGS = [
    ["StdinNull yes"], ["SessionType none"], ["SessionType subsystem"], ["ForkAfterAuthentication yes"],
    ["StdinNull yes", "SessionType none", "ForkAfterAuthentication yes", "RequestTTY force"],
    ["RemoteCommand echo hello"], ["RequestTTY force"], ["PermitLocalCommand yes", "LocalCommand echo local; sleep 0.1"],
    ["Tunnel yes"], ["LocalForward 127.0.0.1:{taken} 127.0.0.1:1", "ExitOnForwardFailure yes"],
    ["RemoteForward 127.0.0.1:{taken} 127.0.0.1:1", "ExitOnForwardFailure yes"],
    ["DynamicForward 127.0.0.1:{taken}", "ExitOnForwardFailure yes", "ClearAllForwardings no"], ["EscapeChar ~"],
    ["BatchMode yes"], ["StreamLocalBindUnlink yes", "StreamLocalBindMask 0777"], ["ControlPersist 1"],
    ["ControlMaster auto", "ControlPath {folder}/c-%C", "ControlPersist 1"], ["Compression yes"],
    ["LogVerbose kex.c:*:1000"], ["LogLevel QUIET"], ["LogLevel DEBUG3"], ["VisualHostKey yes"], ["UpdateHostKeys ask"],
    ["IgnoreUnknown UseKeychain,ObscureKeystrokeTiming", "UseKeychain yes", "ObscureKeystrokeTiming yes"],
    ["StrictHostKeyChecking accept-new", "UserKnownHostsFile /dev/null"], ["ForwardX11 yes"], ["ServerAliveInterval 1"],
    ["NumberOfPasswordPrompts 0"], ["ConnectTimeout 1"], ["AddKeysToAgent yes"],
]


def test_no_setting_of_ssh_breaks_it(login):
    def runs(text):
        """The runs, without the warning about the age of plain jobs."""
        return json.loads(text)["runs"]

    expected = runs(login.person.gpuq("ls", "--all", "--json").stdout)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for lines in SETTINGS:
            lines = [line.format(taken=taken.getsockname()[1], folder=login.folder) for line in lines]
            with configured(login, *lines):
                done = login.gpuq("ls", "--all", "--json")
            assert (done.returncode, runs(done.stdout or "{}")) == (0, expected), (lines, done.stderr)
            assert "shared connection" not in done.stderr, (lines, done.stderr)
    for option in ("-n", "-N", "-f"):
        done = login.gpuq("ls", env={"GPUQ_SSH": f"ssh {option} -F {login.folder}/ssh_config"})
        assert (done.returncode, done.stdout) == (2, b"") and "GPUQ_SSH" in done.stderr, done.stderr
    done = login.gpuq("ls", "--json", env={"GPUQ_SSH": f"ssh -q -F {login.folder}/ssh_config"})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize("lines", [["StdinNull yes", "SessionType none"], ["LogLevel QUIET"],
                                   ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]],
                         ids=["no streams", "quiet", "no known hosts"])
def test_a_run_comes_back_under_it(login, lines):
    with configured(login, *lines), login.begin("-Q", "run", "sh", "-c", "echo begun; read x; echo got $x; exit 3",
                                                stdin=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"begun\n"
        login.cut()
        child.stdin.write(b"it\n")
        assert child.stdout.readline() == b"got it\n"
        assert child.wait(30) == 3, child.stderr.read()


@pytest.mark.parametrize("lines, option", [(["LogLevel QUIET"], ""), (["LogLevel FATAL"], ""), ([], "-q")],
                         ids=["QUIET", "FATAL", "-q"])
def test_a_changed_host_key_is_a_hard_stop_also_where_ssh_is_silent(login, lines, option):
    env = {"GPUQ_SSH": f"ssh {option} -F {login.folder}/ssh_config", "GPUQ_HOST_PATIENCE": "1s"}
    place = f"{login.folder}/known_hosts:1"
    with configured(login, *lines):
        login.trust("other_key")
        done = login.gpuq("ls", env=env)
        assert (done.returncode, done.stdout) == (121, b""), done.stderr
        assert f"the host key of login has changed (in {place})" in done.stderr
        assert "debug" not in done.stderr and done.stderr.count("\n") == 1
        login.trust("host_key")
        with login.begin("run", "sh", "-c", "echo begun; exec sleep 600", env=env) as child:
            assert child.stdout.readline() == b"begun\n"
            login.cut(stop=True)
            login.start("other_key")
            assert child.wait(20) == 121
            assert f"has changed (in {place})" in child.stderr.read().decode()
        login.stop()
        login.start()
        (login.folder / "user_key.pub").write_text("")
        done = login.gpuq("ls", env=env)
        assert done.returncode == 121 and "refused the login" in done.stderr, done.stderr
    assert login.person.gpuq("stop", "last").returncode == 0


def test_a_changed_key_of_a_jump_host_is_named_also_where_ssh_is_silent(person):
    with short_folder() as folder, login_host(person, folder) as jump, short_folder() as other, \
            login_host(person, other, client=["ProxyJump jump"]) as login:
        path = login.folder / "ssh_config"
        path.write_text(path.read_text() + f"Host jump\n HostName 127.0.0.1\n Port {jump.port}\n"
                        f" IdentityFile {folder}/user_key\n IdentitiesOnly yes\n"
                        f" UserKnownHostsFile {folder}/known_hosts\n HostKeyAlias login\nHost *\n LogLevel QUIET\n")
        assert login.gpuq("ls").returncode == 0
        jump.trust("other_key")
        done = login.gpuq("ls")
        assert done.returncode == 121 and "has changed" in done.stderr, done.stderr


@pytest.mark.parametrize("command, words", [
    ("echo maintenance until noon", "maintenance until noon"),
    ("echo on stderr only >&2; exit 3", "on stderr only"),
    ("/usr/sbin/nologin", "This account is currently not available."),
    ("printf '\\033]0;owned\\007bad\\n'; exit 1", "^[]0;owned^Gbad"),
    ("yes 'a long line that is said again and again' | head -n 500; exit 1", "again and again"),
    ("kill -9 $$", "login"),
    ("exit 7", "exit status 7"),
], ids=["printed", "stderr", "nologin", "escapes", "much", "killed", "nothing"])
def test_what_is_started_instead_of_gpuq_is_told(person, command, words):
    with short_folder() as folder, login_host(person, folder, server=[f"ForceCommand {command}"]) as login:
        done = login.gpuq("ls", timeout=20)
        assert done.returncode == (120 if command == "kill -9 $$" else 121), done.stderr
        assert words in done.stderr and done.stdout == b"" and len(done.stderr) < 600, done.stderr
        assert done.stderr.count("\n") == 1 and "\x1b" not in done.stderr, done.stderr


def test_a_command_that_starts_gpuq_may_print_before_it(person):
    with short_folder() as folder, login_host(
            person, folder, server=["ForceCommand echo welcome; $SSH_ORIGINAL_COMMAND"]) as login:
        done = login.gpuq("ls", "--json")
        assert done.returncode == 0 and b"welcome" not in done.stdout, done.stderr


def test_an_unknown_host_key_is_named_for_what_it_is(login):
    (login.folder / "known_hosts").write_text("")
    done = login.gpuq("ls")
    assert done.returncode == 121 and "asks about new keys only on a terminal" in done.stderr, done.stderr
    with terminal(login, "ls") as screen:
        screen.wait_for("continue connecting", 20)
        screen.type("no\r")
        assert screen.status() == 121
        assert b"was not accepted" in screen.screen and b"only on a terminal" not in screen.screen
    with configured(login, "StrictHostKeyChecking yes"), terminal(login, "ls") as screen:
        assert screen.status() == 121
        assert b"StrictHostKeyChecking" in screen.screen
    with terminal(login, "ls", "--all") as screen:
        screen.wait_for("continue connecting", 20)
        screen.type("yes\r")
        assert screen.status() == 0


@contextlib.contextmanager
def shared_connection(login):
    """A ControlMaster connection for others. Yields its process."""
    lines = ["ControlMaster auto", f"ControlPath {login.folder}/c-%C"]
    with configured(login, *lines):
        with subprocess.Popen(["ssh", "-F", login.folder / "ssh_config", "-M", "-N", "-T", "login"], env=login.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as master:
            try:
                wait_for(lambda: list(login.folder.glob("c-*")), 10, "a shared connection")
                yield master
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(master.pid, signal.SIGCONT)
                master.kill()


@pytest.mark.parametrize("frozen", ["its process", "its host", "its network"])
def test_a_shared_connection_that_is_dead_is_gone_past(login, frozen):
    """Within seconds, with and without a terminal, and only for this session."""
    with shared_connection(login) as master:
        assert login.gpuq("ls").returncode == 0
        pids = []
        if frozen == "its process":
            os.kill(master.pid, signal.SIGSTOP)
        elif frozen == "its host":
            pids = login.freeze()
        else:
            login.silence()
        try:
            begin = time.monotonic()
            done = login.gpuq("ls")
            assert done.returncode == 0 and time.monotonic() - begin < 9, done.stderr
            assert "does not answer: connecting without it" in done.stderr
            begin = time.monotonic()
            with terminal(login, "ls") as screen:
                assert screen.status() == 0 and time.monotonic() - begin < 9
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_shared_connection_that_is_slow_is_waited_for(person):
    """A login shell that takes 9 s, twice the timeout of a dead connection."""
    with short_folder() as folder, login_host(
            person, folder, server=["ForceCommand sleep ${SLOW:-0}; $SSH_ORIGINAL_COMMAND", "AcceptEnv SLOW"]) as login:
        with shared_connection(login), configured(login, "SetEnv SLOW=9"):
            done = login.gpuq("ls")
            assert done.returncode == 0 and "does not answer" not in done.stderr, done.stderr


def test_a_slow_answer_of_a_person_is_waited_for(login):
    """A question on the terminal, with ControlPath set and no shared connection."""
    (login.folder / "known_hosts").write_text("")
    with configured(login, "ControlMaster auto", f"ControlPath {login.folder}/c-%C"), terminal(login, "ls") as screen:
        screen.wait_for("continue connecting", 20)
        time.sleep(8)
        screen.read(0.1)
        assert b"does not answer" not in screen.screen
        screen.type("yes\r")
        assert screen.status() == 0
        assert screen.screen.count(b"continue connecting") == 1
