# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq connect`: ssh, scp and rsync into a run, as root and as an ordinary user."""
import contextlib
import hashlib
import json
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from clusters import (Person, as_kwargs, environment_of, free_port, is_running, plain_environment, processes, run,
                      running_cluster, short_folder, wait_for)
from runs import nothing_left, the_run, words_of


@pytest.fixture(scope="module", autouse=True)
def programs():
    """All of them are listed in contrib/packages.txt."""
    path = plain_environment()["PATH"]
    missing = [name for name in ("ssh", "sshd", "scp", "rsync") if not shutil.which(name, path=path)]
    assert not missing, f"not installed: {missing}; contrib/install-packages.sh installs them"


@pytest.fixture(scope="module", params=["self", "ordinary"])
def cluster(request):
    """A cluster of the current user, and one of an ordinary user if the current user is root."""
    user = None
    if request.param == "ordinary":
        if os.geteuid() != 0:
            pytest.skip("we are an ordinary user ourselves")
        user = request.getfixturevalue("plain_user")
    with running_cluster(gpus=4, nodes=1, lines=["KillWait=20"], as_user=user) as one:
        yield one


@pytest.fixture
def person(cluster):
    with short_folder() as home:
        if cluster.as_user:
            os.chown(home, cluster.as_user.pw_uid, cluster.as_user.pw_gid)
        one = Person(cluster, home, cluster.as_user)
        yield one
        nothing_left(one)


def give(person, name, content):
    """Creates a file that belongs to the user."""
    path = person.home / name
    path.write_bytes(content)
    if person.user:
        os.chown(path, person.user.pw_uid, person.user.pw_gid)
    return path


@contextlib.contextmanager
def a_run(person, *options, stop=True):
    """A run that lasts until the end of the block. Yields a function for ssh into it."""
    with person.start("-Q", "run", *options, "sh", "-c", "echo ready; exec sleep 600",
                      stdout=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"ready\n"
        made = person.gpuq("connect", "--config", "last")
        assert made.returncode == 0, made.stderr
        give(person, "config", made.stdout.encode())
        yield client
        if stop:
            assert person.gpuq("stop", "last").returncode == 0
            client.wait(20)


def ssh(person, *words, program="ssh", **options):
    return run([program, "-F", str(person.home / "config"), *map(str, words)], env=person.env,
               user=person.user, **{"cwd": person.home, **options})


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def big_file(person):
    return give(person, "big", random.Random(5).randbytes(20 << 20))


@contextlib.contextmanager
def session(person, command):
    """An ssh session into the run (Popen), killed at the end of the block if necessary."""
    child = subprocess.Popen(["ssh", "-F", str(person.home / "config"), "gpuq-last", command],
                             env=person.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, **as_kwargs(person.user))
    try:
        yield child
    finally:
        child.kill()
        child.wait(10)
        child.stdout.close()


def servers(person):
    """Processes of a connection: gpuq's end of it, the step, sshd and its descendants."""
    key = the_run(person).key

    def belongs(pid):
        words = words_of(pid)
        return any(key in word for word in words) and (
            "connect" in words or any("sshd_config" in word for word in words))
    return processes(belongs)


def environment_lines(person):
    """Environment of the only run's program at its start."""
    (program,) = [pid for pid in processes(lambda pid: words_of(pid)[:2] == ["sleep", "600"])
                  if environment_of(pid).get("GPUQ_RUN_ID") == the_run(person).key]
    return [f"{name}={value}" for name, value in environment_of(program).items()]


def test_a_command_runs_in_the_job_and_its_status_comes_back(person):
    with a_run(person, "--env", "MINE=a b"):
        done = ssh(person, "gpuq-last", "id -un; env; echo oops >&2; exit 7")
        assert done.returncode == 7, done.stderr
        assert "oops\n" in done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == (person.user or pwd.getpwuid(os.geteuid())).pw_name
        record = the_run(person)
        for line in (f"SLURM_JOB_ID={record.job}", f"GPUQ_RUN_ID={record.key}", "MINE=a b"):
            assert line in lines
        assert [line for line in lines if line.startswith("CUDA_VISIBLE_DEVICES=")]
        assert not [line for line in lines if line.startswith("SLURM_STEP")]
        (tmp,) = [line for line in lines if line.startswith("TMPDIR=")]
        assert tmp in environment_lines(person), "that of the program"


def test_a_session_has_the_credentials_of_the_run(person):
    person.env |= {"BEARER_TOKEN": "opaque", "KRB5CCNAME": "FILE:/of/the/login"}
    with a_run(person):
        done = ssh(person, "gpuq-last", 'cat "$BEARER_TOKEN_FILE"; echo "/$BEARER_TOKEN/$KRB5CCNAME/"')
        assert (done.returncode, done.stdout) == (0, "opaque///\n"), done.stderr


def test_input_and_every_byte_pass(person):
    data = bytes(range(256)) * 1000
    with a_run(person):
        done = ssh(person, f"gpuq-{the_run(person).job}", "cat", input=data, text=False)
        assert (done.returncode, done.stdout) == (0, data)


def test_files_are_copied_both_ways(person):
    with a_run(person):
        big = big_file(person)
        there, back = person.home / "there", person.home / "back"
        for words in ((big, f"gpuq-last:{there}"), (f"gpuq-last:{there}", back)):
            done = ssh(person, "-q", *words, program="scp")
            assert done.returncode == 0, done.stderr
        assert digest_of(big) == digest_of(there) == digest_of(back)


def test_rsync_works(person):
    with a_run(person):
        big, there = big_file(person), person.home / "there"
        done = run(["rsync", "-a", "-e", f"ssh -F {person.home}/config", str(big),
                    f"gpuq-last:{there}"], env=person.env, user=person.user)
        assert done.returncode == 0, done.stderr
        assert digest_of(big) == digest_of(there)


# Acts like the remote half of an editor: it arrives as a script on standard input, listens on a loopback port of its
# node, prints the port, and serves clients that connect through ssh's SOCKS proxy.
EDITOR_SERVER = """
uname -sm
exec /usr/bin/python3 -uc '
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("listeningOn==%d==" % listener.getsockname()[1])
while True:
    peer, _ = listener.accept()
    data = b""
    while not data.endswith(b"?"):
        data += peer.recv(65536)
    peer.sendall(data[::-1])
    peer.close()
'
"""


def through_socks(port, to_port, question):
    """Sends a request through a SOCKS5 proxy (RFC 1928, no authentication) and returns the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(b"\x05\x01\x00")
        assert peer.recv(2) == b"\x05\x00"
        peer.sendall(b"\x05\x01\x00\x01" + bytes([127, 0, 0, 1]) + to_port.to_bytes(2, "big"))
        assert peer.recv(10)[:2] == b"\x05\x00"
        peer.sendall(question)
        answer = b""
        while more := peer.recv(65536):
            answer += more
        return answer


def test_an_editor_reaches_its_server_in_the_run(person):
    """Acts like VS Code's Remote-SSH: `ssh -T -D PORT HOST sh`, a script on its standard input, and then all traffic
    through the dynamic forwarding."""
    port = free_port()
    with a_run(person):
        words = ["ssh", "-F", str(person.home / "config"), "-T", "-D", f"127.0.0.1:{port}",
                 "-o", "ExitOnForwardFailure=yes", "gpuq-last", "sh"]
        with subprocess.Popen(words, env=person.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              **as_kwargs(person.user)) as editor:
            try:
                editor.stdin.write(EDITOR_SERVER.encode())
                editor.stdin.flush()
                assert editor.stdout.readline().startswith(b"Linux ")
                there = int(editor.stdout.readline().split(b"==")[1])
                question = random.Random(3).randbytes(1 << 20).replace(b"?", b"!") + b"?"
                for _ in range(3):
                    assert through_socks(port, there, question) == question[::-1]
            finally:
                editor.kill()


def test_several_connect_at_once_also_for_the_first_time(person):
    with person.start("-Q", "run", "sh", "-c", "echo ready; exec sleep 600") as client:
        assert client.stdout.readline() == b"ready\n"
        with contextlib.ExitStack() as stack:
            asked = [stack.enter_context(person.start("connect", "--config", "last"))
                     for _ in range(6)]
            texts = {one.stdout.read() for one in asked}
        assert len(texts) == 1
        give(person, "config", texts.pop())
        with contextlib.ExitStack() as stack:
            children = [stack.enter_context(session(person, "echo $SLURM_JOB_ID"))
                        for _ in range(6)]
            said = [child.stdout.read() for child in children]
        assert said == [f"{the_run(person).job}\n".encode()] * 6
        assert person.gpuq("stop", "last").returncode == 0
        client.wait(20)


def fake_editor(person):
    """A program `code` in PATH, which writes its arguments to the file `opened`."""
    bin_dir = person.home / "bin"
    bin_dir.mkdir()
    code = give(person, "bin/code", b'#!/bin/sh\nprintf "%s\\n" "$@" >"$(dirname "$0")/../opened"\n')
    code.chmod(0o755)
    for path in (bin_dir, person.home):
        if person.user:
            os.chown(path, person.user.pw_uid, person.user.pw_gid)
    person.env["PATH"] = f"{bin_dir}:{person.env['PATH']}"
    return lambda: (person.home / "opened").read_text().splitlines()


def test_code_opens_an_editor_that_reaches_the_run(person):
    opened = fake_editor(person)
    config = give(person, "ssh_config", b"Host other\n    Port 9\nHost *\n    User nosuch\n    ProxyCommand false\n")
    code = ["code", "--ssh-config", config]
    with a_run(person):
        job = the_run(person).job
        refused = person.gpuq(*code, "last")
        assert refused.returncode == 2 and "add the line 'Include " in refused.stderr, refused.stderr
        assert "Include" not in config.read_text()
        done = person.gpuq(*code, "--yes", "last")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert opened() == ["--remote", f"ssh-remote+gpuq-{job}", str(person.home)]
        assert run(["ssh", "-F", str(config), f"gpuq-{job}", "echo $SLURM_JOB_ID"], env=person.env, user=person.user).stdout == f"{job}\n"
        # Again: the file is as it was, and the directory another one.
        before = config.read_text()
        assert before.count("Include") == 1 and before.endswith("ProxyCommand false\n"), before
        assert person.gpuq(*code, job, "/data/my set").returncode == 0
        assert config.read_text() == before and opened()[2] == "/data/my set"
        # An editor that is not here: its address is printed.
        done = person.gpuq(*code, "--editor", "cursor", "last", "/a b", env={"DISPLAY": "", "WAYLAND_DISPLAY": ""})
        assert (done.returncode, done.stdout) == (0, f"cursor://vscode-remote/ssh-remote+gpuq-{job}/a%20b\n"), done.stderr
        document = json.loads(person.gpuq("--json", *code, "last").stdout)
        assert (document["host"], document["editor"]) == (f"gpuq-{job}", "code"), document
        # Others may write to a file that ssh would obey.
        files = person.home / "gpuq"
        assert stat.S_IMODE(files.stat().st_mode) == 0o700
        files.chmod(0o777)
        refused = person.gpuq(*code, "last")
        assert refused.returncode != 0 and str(files) in refused.stderr, refused.stderr
    ended = person.gpuq(*code, "last")
    assert ended.returncode == 2 and "has ended" in ended.stderr, ended.stderr


def test_a_killed_client_leaves_no_process(person):
    with a_run(person), session(person, "setsid sleep 987654 & echo $!; trap '' HUP TERM; "
                                        "sleep 987655; sleep 987655") as child:
        left = int(child.stdout.readline())
        tunnels = [pid for pid in servers(person) if words_of(pid)[0].endswith("/gpuq")]
        assert len(tunnels) == 1
        os.kill(tunnels[0], signal.SIGKILL)
        wait_for(lambda: not servers(person) and not is_running(left), 20,
                 "the end of the connection")
        assert child.wait(20) == 255
        assert not processes(lambda pid: words_of(pid)[:2] == ["sleep", "987655"])
        assert not list((the_run(person).dir / "connect").glob("sshd_config*"))


def test_a_session_does_not_delay_the_end_of_its_run(person):
    with a_run(person), session(person, "echo in; trap '' HUP TERM; "
                                        "while :; do sleep 1; done") as child:
        assert child.stdout.readline() == b"in\n"
        assert person.gpuq("stop", "last").returncode == 0
        # Well before KillWait is over.
        wait_for(lambda: not person.cluster.squeue(), 12, "the end of the job")
        assert child.wait(20) == 255
        assert not (the_run(person).dir / "connect").exists()


def test_the_keys_are_private_and_go_with_the_run(person):
    with a_run(person):
        folder = the_run(person).dir / "connect"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert not folder.exists()
    done = ssh(person, "gpuq-last", "true")
    assert done.returncode == 255
    assert "has ended" in done.stderr
    assert not folder.exists()


def test_the_next_command_clears_what_a_killed_supervisor_left(person):
    with a_run(person, stop=False) as client:
        record = the_run(person)
        client.kill()
        client.wait()
        person.cluster.slurm("scancel", "--signal=KILL", "--full", str(record.job), check=False)
        person.cluster.slurm("scancel", str(record.job), check=False)
        wait_for(lambda: not person.cluster.squeue(), 30, "the end of the job")
        wait_for(lambda: person.gpuq("ls").returncode == 0 and not (record.dir / "connect").exists(),
                 20, "keys cleared by gpuq ls")


def test_a_terminal_is_told_what_it_is_for(person):
    with a_run(person):
        done = run(["script", "-qec", f"{person.cluster.binary} connect last", "/dev/null"],
                   env=person.env, user=person.user, cwd=person.home)
        assert "gpuq connect --config last" in done.stdout


def test_a_run_that_waits_or_is_not_there_is_refused(person):
    done = person.gpuq("connect", "nosuch")
    assert (done.returncode, done.stdout) == (2, "")
    taken = person.cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:4",
                                 "--wrap", "exec sleep 300").strip()
    wait_for(lambda: person.cluster.squeue("-t", "running"), 30, "a full cluster")
    assert person.gpuq("run", "--detach", "sleep", "60").returncode == 0
    done = person.gpuq("connect", "last")
    assert done.returncode == 120  # try again later
    assert "has no node yet" in done.stderr
    assert person.gpuq("stop", "last").returncode == 0
    person.cluster.slurm("scancel", taken)


def test_a_node_without_sshd_is_named(person):
    with a_run(person):
        done = person.gpuq("connect", "last", env={"GPUQ_SSHD": "/nonexistent/sshd"})
        assert (done.returncode, done.stdout) == (125, "")
        assert "no sshd on node n0: install OpenSSH's server on it" in done.stderr
