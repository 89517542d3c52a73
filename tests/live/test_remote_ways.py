# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq --host` over ways that ssh supports: a delegated Kerberos ticket, a jump host; and over an interface that goes
down."""
import contextlib
import getpass
import hashlib
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from clusters import short_folder, wait_for
from faults import of_soak
from kdc import REALM, is_installed, running_kdc
from logins import login_host, sshd_has_gssapi
from runs import Terminal, nothing_left, the_run
from tickets import Watch

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "examples" / "train.py"


@contextlib.contextmanager
def clean(person, **options):
    """A login host on which nothing may be left behind."""
    with short_folder() as folder, login_host(person, folder, **options) as login:
        yield login
        wait_for(lambda: not login.sessions(), 20, lambda: f"nothing left there: {login.sessions()}")
        nothing_left(person)


@pytest.mark.skipif(not is_installed(), reason="no krb5-kdc")
@pytest.mark.skipif(not sshd_has_gssapi(), reason="Debian 14 has GSSAPI in a package of its own")
def test_the_ticket_of_the_laptop_is_the_runs(person):
    """Only GSSAPI is accepted; the delegated ticket outlives the login, whose cache sshd removes. A newer ticket
    arrives with the next connection of the same session."""
    me = getpass.getuser()
    with running_kdc(me, life=600) as kdc:
        keytab = kdc.folder / "host.keytab"
        kdc.admin(f"addprinc -randkey host/127.0.0.1@{REALM}")
        kdc.admin(f"ktadd -norandkey -k {keytab} host/127.0.0.1@{REALM}")
        cache = kdc.folder / "laptop"
        kdc.login(None, cache, "-f", name=me, life=300)
        with clean(person, server=["GSSAPIAuthentication yes", "AuthenticationMethods gssapi-with-mic",
                                   "GSSAPIStrictAcceptorCheck no"],
                   client=["GSSAPIAuthentication yes", "GSSAPIDelegateCredentials yes", "HostKeyAlias login"],
                   server_env={**os.environ, **kdc.env, "KRB5_KTNAME": f"FILE:{keytab}"}, there=kdc.env) as login:
            login.env |= {**kdc.env, "KRB5CCNAME": f"FILE:{cache}"}
            script = ("echo $KRB5CCNAME; klist -f; klist >first; touch begun; "
                      "i=0; while klist | cmp -s - first && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done; "
                      "klist | cmp -s - first && echo the same; klist -f")
            with login.begin("run", "sh", "-c", script) as child:
                wait_for(lambda: (person.home / "begun").exists(), 30, "the run")
                kdc.login(None, cache, "-f", name=me, life=500)
                login.cut()  # which is also a logout
                out = child.stdout.read().decode()
                assert child.wait(30) == 0, child.stderr.read()
            name = out.splitlines()[0]
            assert "krb5cc_" not in name  # neither the login's nor the laptop's
            assert "the same" not in out, out
            assert out.count(f"Default principal: {me}@{REALM}") == 2, out
            assert out.count(f"krbtgt/{REALM}@{REALM}") == 2, out
            assert all("f" in line.partition("Flags:")[2] for line in out.splitlines() if "Flags:" in line), out
            login.env["KRB5CCNAME"] = "FILE:/nonexistent/cache"
            done = login.gpuq("ls")
            assert done.returncode == 121 and "refused the login" in done.stderr


@pytest.mark.skipif(not is_installed(), reason="no krb5-kdc")
@pytest.mark.skipif(not sshd_has_gssapi(), reason="Debian 14 has GSSAPI in a package of its own")
def test_a_training_from_a_laptop_on_bad_days(person):
    """Half an hour in the soak test: a real training, tickets of one minute renewed by the laptop's desktop, and a
    connection that ends in one way or another every few seconds."""
    me = getpass.getuser()
    seconds, life, pause = of_soak((1800, 60, 20), (30, 20, 5))
    cache = None
    with running_kdc(me, life=life) as kdc:
        keytab = kdc.folder / "host.keytab"
        kdc.admin(f"addprinc -randkey host/127.0.0.1@{REALM}")
        kdc.admin(f"ktadd -norandkey -k {keytab} host/127.0.0.1@{REALM}")
        laptop = kdc.folder / "laptop"
        kdc.login(None, laptop, "-f", name=me)
        with clean(person, server=["GSSAPIAuthentication yes", "AuthenticationMethods gssapi-with-mic",
                                   "GSSAPIStrictAcceptorCheck no"],
                   client=["GSSAPIAuthentication yes", "GSSAPIDelegateCredentials yes", "HostKeyAlias login"],
                   server_env={**os.environ, **kdc.env, "KRB5_KTNAME": f"FILE:{keytab}"}, there=kdc.env) as login:
            login.env |= {**kdc.env, "KRB5CCNAME": f"FILE:{laptop}"}
            (person.home / "train.py").write_text(EXAMPLE.read_text())
            (person.home / "train.py").chmod(0o755)
            shown, told = login.folder / "shown", login.folder / "told"
            with shown.open("wb") as out, told.open("wb") as err, login.begin(
                    "run", "-t", "2h", "--", "sh", "-c",
                    'echo "$KRB5CCNAME" >cache; while [ ! -e enough ]; do rm -rf checkpoints; ./train.py --epochs 40 || exit; '
                    "done; exit 7", stdout=out, stderr=err) as child:
                cache = pathlib.Path(wait_for(lambda: (person.home / "cache").exists() and
                                              (person.home / "cache").read_text().strip(), 30, "the run")
                                     .removeprefix("FILE:"))
                begin, drops, frozen = time.monotonic(), 0, []
                with Watch(cache, 0.05) as watch:
                    while time.monotonic() < begin + seconds:
                        kdc.login(None, laptop, "-f", name=me)
                        size = shown.stat().st_size
                        kind = random.choice(("cut", "freeze", "silence"))
                        frozen += {"cut": login.cut, "freeze": login.freeze, "silence": login.silence}[kind]() or []
                        drops += 1
                        wait_for(lambda: shown.stat().st_size > size, 40, lambda: f"more output after {kind}: {told.read_text()}")
                        time.sleep(random.uniform(0.2, pause))
                (person.home / "enough").touch()
                status = child.wait(120)
                for pid in frozen:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            print(f"{drops} drops; {watch.expired:.2f} s expired, {watch.least:.1f} s of {life} left at least, "
                  f"{watch.unusable} of {watch.reads} reads unusable")
            assert status == 7, told.read_text()
            assert drops >= 2 and watch.expired == 0 and watch.unusable == 0
            assert watch.least >= 0.4 * life - 2  # as in test_is_renewed_over_its_lives
            assert shown.read_bytes() == (the_run(person).dir / "link-1" / "out.log").read_bytes()
        wait_for(lambda: not cache.exists(), 10, "the ticket wiped")


def test_a_jump_host_on_the_way(person):
    with short_folder() as folder, login_host(person, folder) as jump, clean(person, client=["ProxyJump jump"]) as login:
        with (login.folder / "ssh_config").open("a") as config:
            config.write(f"Host jump\n HostName 127.0.0.1\n Port {jump.port}\n IdentityFile {folder}/user_key\n"
                         f" IdentitiesOnly yes\n UserKnownHostsFile {folder}/known_hosts\n HostKeyAlias login\n")
        script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done; exit 3"
        with login.begin("-Q", "run", "sh", "-c", script) as child:
            assert child.stdout.readline() == b"line 1\n"
            jump.cut()
            text = child.stdout.read()
            assert child.wait(60) == 3, child.stderr.read()
        assert text == b"".join(b"line %d\n" % i for i in range(2, 41))
        jump.trust("other_key")
        done = login.gpuq("ls")
        assert done.returncode == 121 and "host key" in done.stderr, done.stderr


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")


class Cable:
    """A link between this machine (the login host) and a network namespace (the laptop)."""

    def __init__(self):
        self.name = f"gpuq{os.getpid() % 100000}"
        self.address, self.other = f"10.254.{os.getpid() % 250}.1", f"10.254.{os.getpid() % 250}.2"
        self.inside = ["nsenter", f"--net=/run/netns/{self.name}"]

    def __enter__(self):
        ip("netns", "add", self.name)
        try:
            ip("link", "add", f"{self.name}a", "type", "veth", "peer", "name", "laptop", "netns", self.name)
            ip("addr", "add", f"{self.address}/30", "dev", f"{self.name}a")
            ip("link", "set", f"{self.name}a", "up")
            ip("-n", self.name, "addr", "add", f"{self.other}/30", "dev", "laptop")
            ip("-n", self.name, "link", "set", "laptop", "up")
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for words in (["link", "del", f"{self.name}a"], ["netns", "del", self.name]):
            subprocess.run(["ip", *words], capture_output=True, check=False)

    def set(self, state):
        ip("-n", self.name, "link", "set", "laptop", state)

    def break_silently(self):
        """As if a router on the path had died: this interface stays up."""
        ip("addr", "del", f"{self.address}/30", "dev", f"{self.name}a")

    def mend(self):
        ip("addr", "add", f"{self.address}/30", "dev", f"{self.name}a")


@pytest.fixture
def cable():
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with Cable() as one:
        yield one


def seconds_until(found, most):
    begin = time.monotonic()
    wait_for(found, most, "what was waited for")
    return time.monotonic() - begin


def test_an_interface_that_goes_down(person, cable):
    """First under a log that grows by 10 MB/s without a terminal; then in an interactive session, with a path that only
    falls silent."""
    program = ("import sys, time\n"
               "begin = time.monotonic()\n"
               "for n in range(1600):\n"
               "    sys.stdout.write(''.join(f'{n} {i} ' + 'x' * 90 + '\\n' for i in range(1000))); sys.stdout.flush()\n"
               "    time.sleep(max(0, begin + n / 100 - time.monotonic()))\n")
    with clean(person, address=cable.address, inside=cable.inside) as login:
        done = person.gpuq("run", "--detach", "python3", "-c", program)
        assert done.returncode == 0, done.stderr
        copy = login.folder / "copy"
        errors = login.folder / "errors"
        with errors.open("wb") as stderr, login.begin("logs", "-f", "--to", str(copy), "last", stderr=stderr) as child:
            wait_for(lambda: copy.exists() and copy.stat().st_size > 1 << 20, 20, "a log")
            cable.set("down")
            # What was on its way arrives late on a busy machine: the silence begins after it.
            size, since = 0, time.monotonic()
            while b"reconnecting" not in errors.read_bytes():
                if copy.stat().st_size != size:
                    size, since = copy.stat().st_size, time.monotonic()
                assert time.monotonic() - since < 16
                time.sleep(0.05)
            time.sleep(3)
            cable.set("up")
            assert seconds_until(lambda: b"connected again" in errors.read_bytes(), 10) < 3
            assert child.wait(60) == 0, errors.read_bytes()
        log = the_run(person).dir / "link-1" / "out.log"
        assert hashlib.sha256(copy.read_bytes()).digest() == hashlib.sha256(log.read_bytes()).digest()

        screen = Terminal(Laptop(login), "--host", "login", "run", "--pty", "bash", "--norc", "-i",
                          before=" ".join(cable.inside))
        with contextlib.closing(screen):
            screen.type("PS1='ready''> '\r")
            screen.wait_for("ready> ", 30)
            screen.screen = b""
            cable.break_silently()
            begin = time.monotonic()
            screen.wait_for("reconnecting", 6)
            assert time.monotonic() - begin <= 3.5
            cable.mend()
            screen.type("echo $((6*7))\r")
            screen.wait_for("42", 20)
            screen.type("exit\r")
            assert screen.status() == 0


class Laptop:
    """The attributes of a Person that runs.Terminal needs."""

    def __init__(self, login):
        self.home = login.folder
        self.env = login.env
        self.cluster = login.person.cluster
