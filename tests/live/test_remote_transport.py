# SPDX-License-Identifier: GPL-2.0-or-later
"""The two transports of `gpuq --host`, libssh in the process and OpenSSH's client: one suite of logins on both, and which
of them `transport: auto` chooses."""
import contextlib
import os
import signal
import subprocess
import sys

import pytest

from clusters import short_folder, wait_for
from logins import login_host
from runs import Terminal, nothing_left

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
TRANSPORTS = ["libssh", "openssh"]


@contextlib.contextmanager
def reachable(person, transport, **options):
    """A login host for a laptop with this transport."""
    with short_folder() as folder, login_host(person, folder, **options) as login:
        login.env["GPUQ_TRANSPORT"] = transport
        yield login
        wait_for(lambda: not login.sessions(), 20, lambda: f"nothing left there: {login.sessions()}")
        nothing_left(person)


def configured(login, *lines, without=()):
    """Puts lines before the others of `Host login`, since the first value applies; drops those that begin with
    `without`."""
    path = login.folder / "ssh_config"
    kept = [line for line in path.read_text().splitlines()
            if not any(line.strip().startswith(word) for word in without)]
    path.write_text("\n".join(["Host login", *(f" {line}" for line in lines), *kept]) + "\n")


def keygen(*words):
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def works(login):
    """A run over this connection."""
    done = login.gpuq("-v", "run", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n") and "\nerr\n" in done.stderr, done.stderr
    used = "by libssh" if login.env["GPUQ_TRANSPORT"] == "libssh" else "by OpenSSH, since `transport: openssh` is set"
    assert used in done.stderr, done.stderr
    return done


def refused(login, *words, code=121):
    done = login.gpuq("ls")
    assert (done.returncode, done.stdout) == (code, b""), done.stderr
    for each in words:
        assert each in done.stderr, done.stderr
    return done


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login):
        self.home = login.folder
        self.env = login.env
        self.cluster = login.person.cluster


@contextlib.contextmanager
def terminal(login, *words):
    with contextlib.closing(Terminal(Laptop(login), "--host", "login", *words)) as one:
        yield one


@contextlib.contextmanager
def agent(login, *keys):
    sock = login.folder / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(sock.exists, 10, "an agent")
            login.env["SSH_AUTH_SOCK"] = str(sock)
            for key in keys:
                subprocess.run(["ssh-add", "-q", key], env=login.env, check=True)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.terminate()
            sock.unlink(missing_ok=True)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", [["rsa", "-b", "3072"], ["ecdsa", "-b", "256"], ["ecdsa", "-b", "521"], ["ed25519"]],
                         ids=lambda kind: kind[0] + kind[-1])
def test_kinds_of_keys_of_host_and_user(person, transport, kind):
    with reachable(person, transport) as login:
        login.stop()
        for name in ("host_key", "user_key"):
            (login.folder / name).unlink()
            (login.folder / f"{name}.pub").unlink()
            keygen("-t", *kind, "-N", "", "-f", login.folder / name)
        login.start()
        login.trust("host_key")
        works(login)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_keys_of_an_agent(person, transport):
    with reachable(person, transport) as login:
        configured(login, "IdentityFile none", "IdentitiesOnly no", without=["IdentityFile", "IdentitiesOnly"])
        key = login.folder / "user_key"
        with agent(login, key) as process:
            key.rename(login.folder / "away")
            works(login)
            with login.begin("run", "sh", "-c", "echo begun; read x; exit 4", stdin=subprocess.PIPE) as child:
                assert child.stdout.readline() == b"begun\n"
                login.cut()
                child.stdin.write(b"x\n")
                assert child.wait(30) == 4, child.stderr.read()
            if transport == "libssh":  # ssh itself waits for it
                process.send_signal(signal.SIGSTOP)
                refused(login, "refused the login", "publickey")
        refused(login, "refused the login", "publickey")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_key_with_a_passphrase(person, transport):
    with reachable(person, transport) as login:
        key = login.folder / "user_key"
        keygen("-p", "-P", "", "-N", "open sesame", "-f", key)
        refused(login, "refused the login")
        with terminal(login, "ls", "--all") as screen:
            screen.wait_for("passphrase for key", 20)
            screen.type("wrong\r")
            wait_for(lambda: screen.read(0.1) and screen.screen.count(b"passphrase for key") == 2, 20, "a second question")
            screen.type("open sesame\r")
            assert screen.status() == 0
            assert b"sesame" not in screen.screen
        with terminal(login, "ls", "--all") as screen:
            screen.wait_for("passphrase for key", 20)
            screen.type("\x03")
            assert screen.status() == 130


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("named", [False, True], ids=["beside the key", "CertificateFile"])
def test_a_certificate(person, transport, named):
    with short_folder() as folder:
        keygen("-t", "ed25519", "-N", "", "-f", folder / "ca")
        with reachable(person, transport, server=[f"TrustedUserCAKeys {folder}/ca.pub"]) as login:
            user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
            keygen("-s", folder / "ca", "-I", "me", "-n", user, "-V", "+1h", login.folder / "user_key.pub")
            (login.folder / "user_key.pub").write_text("")  # which is also authorized_keys
            if named:
                (login.folder / "user_key-cert.pub").rename(login.folder / "certificate.pub")
                configured(login, f"CertificateFile {login.folder}/certificate.pub")
            works(login)
            (login.folder / ("certificate.pub" if named else "user_key-cert.pub")).unlink()
            refused(login, "refused the login")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_key_that_others_may_read_is_not_used(person, transport):
    with reachable(person, transport) as login:
        (login.folder / "user_key").chmod(0o644)
        refused(login, "refused the login")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_names_in_known_hosts(person, transport):
    with reachable(person, transport) as login:
        configured(login, without=["HostKeyAlias"])
        known = login.folder / "known_hosts"
        kind, text, *_ = (login.folder / "host_key.pub").read_text().split()
        _, other, *_ = (login.folder / "other_key.pub").read_text().split()
        keygen("-t", "rsa", "-b", "2048", "-N", "", "-f", login.folder / "rsa_key")
        _, rsa, *_ = (login.folder / "rsa_key.pub").read_text().split()
        name = f"[127.0.0.1]:{login.proxy.port}"
        for lines in ([f"{name} {kind} {text}"], [f"# {name}", "", f"a,{name},b\t{kind}\t{text} a comment"],
                      [f"127.0.0.1 {kind} {text}"], [f"{name} {kind} {other}", f"{name} {kind} {text}"],
                      [f"{name} ssh-rsa {rsa}", f"{name} {kind} {text}"], [f"[127.0.0.*]:* {kind} {text}"],
                      ["nonsense", f"{name} {kind} AAAA", f"{name} {kind} {text}"]):
            known.write_text("\n".join(lines) + "\n")
            done = login.gpuq("ls")
            assert done.returncode == 0, (lines, done.stderr)
        known.write_text(f"{name} {kind} {text}\n")
        keygen("-H", "-f", known)
        assert known.read_text().startswith("|1|")
        works(login)
        known.write_text(f"other {kind} {text}\n{name} {kind} {other}\n")
        refused(login, f"has changed (in {known}:2)", "another machine may be answering")
        known.write_text(f"{name},!{name} {kind} {text}\n")
        refused(login, "!NAME" if transport == "libssh" else "is not known on this machine")
        for lines in ([f"other {kind} {text}"], [f"[127.0.0.1]:1 {kind} {text}"], [f"127.0.0.1 {kind} {other}"], []):
            known.write_text("\n".join(lines) + "\n")
            refused(login, "is not known on this machine")
        second = login.folder / "second"
        known.rename(second)
        second.write_text(f"{name} {kind} {text}\n")
        configured(login, f"UserKnownHostsFile {known} {second}", without=["UserKnownHostsFile"])
        works(login)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_with_several_keys_shows_the_known_one(person, transport):
    with short_folder() as folder:
        keygen("-t", "rsa", "-b", "3072", "-N", "", "-f", folder / "rsa")
        keygen("-t", "ecdsa", "-N", "", "-f", folder / "ecdsa")
        with reachable(person, transport, server=[f"HostKey {folder}/rsa", f"HostKey {folder}/ecdsa"]) as login:
            for name in ("rsa", "ecdsa"):
                kind, text, *_ = (folder / f"{name}.pub").read_text().split()
                (login.folder / "known_hosts").write_text(f"login {kind} {text}\n")
                works(login)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_proxy_command(person, transport):
    with reachable(person, transport) as login:
        relay = login.folder / "relay.py"
        relay.write_text("import os, socket, sys, threading\n"
                         "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
                         "def up():\n"
                         "    while data := os.read(0, 65536):\n"
                         "        s.sendall(data)\n"
                         "    os._exit(0)\n"
                         "threading.Thread(target=up, daemon=True).start()\n"
                         "while data := s.recv(65536):\n"
                         "    os.write(1, data)\n")
        configured(login, f"ProxyCommand {sys.executable} {relay} %h %p")
        works(login)
        with login.begin("run", "sh", "-c", "echo begun; read x; exit 5", stdin=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"begun\n"
            login.cut()
            child.stdin.write(b"x\n")
            assert child.wait(30) == 5, child.stderr.read()
        # The outer shell holds the connection: ssh kills a proxy as soon as that is closed, before echo could write.
        configured(login, "ProxyCommand sh -c 'echo no way to %h >&2'; exit 1", without=["ProxyCommand"])
        refused(login, "login: not reached by ssh's ProxyCommand or ProxyJump (no way to 127.0.0.1)", code=120)
        configured(login, "ProxyCommand true", without=["ProxyCommand"])
        refused(login, "login: not reached", "(it ended without a message)", code=120)


def jumps_to(login, name, jump):
    """An alias for a jump host in the laptop's configuration."""
    with (login.folder / "ssh_config").open("a") as config:
        config.write(f"Host {name}\n HostName 127.0.0.1\n Port {jump.proxy.port}\n IdentityFile {jump.folder}/user_key\n"
                     f" IdentitiesOnly yes\n UserKnownHostsFile {jump.folder}/known_hosts\n HostKeyAlias login\n")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_jump_hosts(person, transport):
    with short_folder() as one, short_folder() as two, login_host(person, one) as near, login_host(person, two) as far, \
            reachable(person, transport) as login:
        jumps_to(login, "near", near)
        jumps_to(login, "far", far)
        plain = (login.folder / "ssh_config").read_text()
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        for jump, connections in (("far", (0, 1)), (f"{user}@near,far", (1, 1)), (f"near:{near.proxy.port}", (1, 0))):
            (login.folder / "ssh_config").write_text(plain)
            configured(login, f"ProxyJump {jump}")
            before = [len(each.proxy.pairs) for each in (near, far)]
            works(login)
            after = [len(each.proxy.pairs) for each in (near, far)]
            assert tuple(b - a for a, b in zip(before, after)) == connections, jump
        (login.folder / "ssh_config").write_text(plain)
        configured(login, "ProxyJump near,far")
        data = os.urandom(5 << 20)
        done = login.gpuq("run", "cat", input=data)
        assert done.returncode == 0 and done.stdout == data, done.stderr
        with login.begin("run", "sh", "-c", "echo begun; read x; read y; read z; exit 6", stdin=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"begun\n"
            for each in (near, far, login):
                each.cut()
                child.stdin.write(b"x\n")
            assert child.wait(60) == 6, child.stderr.read()
        far.trust("other_key")
        for _ in range(10):  # gpuq ends while the connection to the jump host before it does
            refused(login, f"the host key of {'far' if transport == 'libssh' else 'login'} has changed (in {far.folder}/known_hosts:1)")
        far.trust("host_key")
        (near.folder / "user_key").rename(near.folder / "away")
        refused(login, "refused the login" if transport == "libssh" else "login")
        (near.folder / "away").rename(near.folder / "user_key")
        login.stop()
        refused(login, "login", code=120)
        login.start()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ipv6_and_a_family_without_an_address(person, transport):
    with reachable(person, transport, address="::1") as login:
        configured(login, "AddressFamily inet6")
        works(login)
        configured(login, "AddressFamily inet", without=["AddressFamily"])
        refused(login, "login", code=120)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("line", ["Compression yes", "Ciphers aes256-ctr", "Ciphers aes128-gcm@openssh.com",
                                  "KexAlgorithms ecdh-sha2-nistp256", "MACs hmac-sha2-512", "RekeyLimit 64K",
                                  "PreferredAuthentications publickey"])
def test_algorithms(person, transport, line):
    """64 KiB each way per key exchange, where it is the server that limits it."""
    server = [line] if line.startswith("Rekey") else ["Compression yes"]
    with reachable(person, transport, server=server) as login:
        configured(login, line)
        works(login)
        data = os.urandom(3 << 20)
        done = login.gpuq("run", "cat", input=data)
        assert done.returncode == 0 and done.stdout == data, done.stderr


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_the_host_prints_at_login(person, transport):
    with short_folder() as folder:
        (folder / "banner").write_text("maintenance on \x1b]0;owned\x07 Friday\n")
        with reachable(person, transport, server=[f"Banner {folder}/banner"]) as login:
            with terminal(login, "ls", "--all") as screen:
                assert screen.status() == 0
            assert b"maintenance on" in screen.screen and b"\x1b]0;" not in screen.screen


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_that_cannot_be_reached(person, transport):
    with reachable(person, transport) as login:
        login.stop()
        refused(login, "login", code=120)
        configured(login, "HostName no-such-host.invalid", without=["HostName"])
        refused(login, "login", code=120)
        login.start()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ssh_of_other_programs_is_no_part_of_it(person, transport):
    """The remote shell sees the same command line and environment by both."""
    with short_folder() as folder, reachable(
            person, transport, server=[f"ForceCommand echo \"$SSH_ORIGINAL_COMMAND\" >{folder}/seen; $SSH_ORIGINAL_COMMAND"]) as login:
        works(login)
        program, verb, early = (folder / "seen").read_text().split()
        assert (program, verb) == (str(person.cluster.binary), "serve") and len(early) > 20


def chosen(login):
    """Why `auto` has chosen what it has, and that it works."""
    login.env["GPUQ_TRANSPORT"] = "auto"
    done = login.gpuq("-v", "ls", "--all")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if " by libssh" in line or " by OpenSSH" in line]
    return lines[-1].partition(" by ")[2]


def test_what_auto_chooses(person):
    with reachable(person, "auto") as login, short_folder() as folder:
        plain = (login.folder / "ssh_config").read_text()
        assert chosen(login).startswith("libssh 0.")
        for lines, reason in [
                (["ControlMaster auto", f"ControlPath {folder}/%C"], "libssh does not support ControlMaster"),
                (["ForwardAgent yes"], "libssh does not support ForwardAgent"),
                (["SendEnv MY_NAME"], "libssh does not support SendEnv"),
                (["KnownHostsCommand /bin/true"], "libssh does not support KnownHostsCommand"),
                (["ProxyJump none"], None), (["RevokedHostKeys none"], None),
                (["IdentityFile %d/no_key"], "the path %d/no_key")]:
            (login.folder / "ssh_config").write_text(plain)
            configured(login, *lines)
            found = chosen(login)
            assert found.startswith("libssh 0.") if reason is None else found == f"OpenSSH, since {reason}", (lines, found)
        (login.folder / "ssh_config").write_text(plain)
        login.env["GPUQ_SSH"] = login.env["GPUQ_SSH"].replace("ssh ", "env ssh ", 1)
        assert chosen(login) == "OpenSSH, since GPUQ_SSH is another program than ssh"
        login.env["GPUQ_TRANSPORT"] = "libssh"
        refused(login, "`transport: libssh` is set, but OpenSSH is required, since GPUQ_SSH is", code=2)


def test_auto_goes_to_openssh_where_libssh_fails(person):
    """Whoever can log in by ssh can use gpuq."""
    with short_folder() as folder:
        keygen("-t", "ed25519", "-N", "", "-f", folder / "ca")
        with reachable(person, "auto") as login:
            plain = (login.folder / "ssh_config").read_text()
            known = (login.folder / "known_hosts").read_text()
            kind, text, *_ = (folder / "ca.pub").read_text().split()
            (login.folder / "known_hosts").write_text(f"@cert-authority * {kind} {text}\n{known}")
            assert chosen(login) == "OpenSSH, since known_hosts has @cert-authority, @revoked or !NAME for the host"
            login.env["GPUQ_TRANSPORT"] = "libssh"
            refused(login, "which libssh can't evaluate")
            (login.folder / "known_hosts").write_text(known)
            # The private key is only in the agent, which has others as well.
            keygen("-t", "ed25519", "-N", "", "-f", folder / "other")
            with agent(login, folder / "other", login.folder / "user_key"):
                (login.folder / "user_key").rename(folder / "away")
                assert chosen(login) == "OpenSSH, since IdentitiesOnly selects a key of the agent"
                (folder / "away").rename(login.folder / "user_key")
            login.env.pop("SSH_AUTH_SOCK")
            assert (login.folder / "ssh_config").read_text() == plain
            (login.folder / "known_hosts").write_text("")
            configured(login, "StrictHostKeyChecking accept-new")
            assert chosen(login) == "OpenSSH, since it asks about the unknown host key"
            assert chosen(login).startswith("libssh 0.")  # it is known now


def test_a_shared_connection_is_used(person):
    with reachable(person, "auto") as login:
        configured(login, f"ControlPath {login.folder}/c-%C")
        assert chosen(login).startswith("libssh 0.")
        with subprocess.Popen(["ssh", "-F", login.folder / "ssh_config", "-M", "-N", "-T", "login"], env=login.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as master:
            try:
                wait_for(lambda: list(login.folder.glob("c-*")), 10, "a shared connection")
                assert chosen(login) == "OpenSSH, since a shared connection (ControlPath) exists"
            finally:
                master.kill()
        assert chosen(login).startswith("libssh 0.")  # its socket is still in the file system


def test_doctor_names_the_transport(person):
    with reachable(person, "libssh") as login:
        assert "connected to login by libssh 0." in login.gpuq("doctor").stderr
        login.env["GPUQ_TRANSPORT"] = "openssh"
        assert "connected to login by OpenSSH, since `transport: openssh` is set" in login.gpuq("doctor").stderr
        login.env["GPUQ_TRANSPORT"] = "mosh"
        refused(login, "GPUQ_TRANSPORT: 'mosh' is not auto, libssh or openssh", code=2)


def test_a_plain_command_does_not_load_libssh(person):
    done = subprocess.run([person.cluster.binary, "ls"], env={**person.env, "LD_DEBUG": "files"}, capture_output=True,
                          text=True, check=True)
    assert "libslurm" in done.stderr and "libssh" not in done.stderr and "libcrypto" not in done.stderr
