# SPDX-License-Identifier: GPL-2.0-or-later
"""Kerberos tickets of runs, with a real KDC (kdc.py) whose tickets live for seconds."""
import contextlib
import glob
import json
import os
import pathlib
import signal
import threading
import time

import pytest

from clusters import command_of, processes, wait_for
from kdc import Ticket, is_installed, running_kdc
from runs import all_gpus_taken, nothing_left, processes_of, records

CLUSTER = {"nodes": 1}
pytestmark = pytest.mark.skipif(not is_installed(), reason="no krb5-kdc")
LIFE = 8  # of a ticket, in seconds
PRINTS = ("/bin/sh", "-c", 'echo "$KRB5CCNAME"; exec sleep 300')


@pytest.fixture(scope="module")
def kdc():
    with running_kdc("ada", "ben", life=20, renewable=600) as one:
        yield one


class Login:
    """A person who has logged in: a cache of theirs, and gpuq with it."""

    def __init__(self, kdc, person, **options):
        self.kdc, self.person = kdc, person
        self.cache = person.home / "login"
        self.env = {**kdc.env, "KRB5CCNAME": f"FILE:{self.cache}"}
        self.again(**options)

    def again(self, life=LIFE, **options):
        self.kdc.login(self.person, self.cache, life=life, **options)

    def gpuq(self, *words, **options):
        return self.person.gpuq(*words, env=self.env, **options)

    def start(self, *words):
        """A detached run; gives it as soon as its program runs and its ticket is kept."""
        before = {record.key for record in records(self.person)}
        done = self.gpuq("run", "-t", "5", "--detach", *words, "--", *PRINTS)
        assert done.returncode == 0, done.stderr
        record = next(one for one in records(self.person) if one.key not in before)
        wait_for(record.log, 20, "the name of the cache")
        return Kept(self, record)

    def keepalive(self, *words):
        done = self.gpuq("keepalive", "--json", *words)
        assert done.returncode == 0, done.stderr
        return {run["key"]: run["credentials"] for run in json.loads(done.stdout)["runs"]}


class Kept:
    """A run with a ticket."""

    def __init__(self, login, record):
        self.login, self.record = login, record
        self.cache = pathlib.Path(record.log().decode().strip().removeprefix("FILE:"))
        self.store = record.dir / "credentials"

    def ticket(self):
        return Ticket(self.cache.read_bytes())

    def state(self):
        path = self.record.dir / "link-1" / "credentials.json"
        return json.loads(path.read_text()) if path.exists() else {"trouble": None, "renewals": 0}

    def wait_for_trouble(self, trouble, seconds=15):
        return wait_for(lambda: self.state()["trouble"] == trouble and self.state(), seconds,
                        lambda: f"{trouble}; last: {self.state()}")

    def end(self):
        self.login.gpuq("stop", str(self.record.job))
        self.record.wait_for_end()
        self.wiped()

    def wiped(self):
        wait_for(lambda: not self.cache.parent.exists() and not self.store.exists(), 10,
                 lambda: f"no ticket left: {list(self.cache.parent.glob('*'))} {list(self.store.glob('*'))}")


@pytest.fixture
def login(kdc, person):
    one = Login(kdc, person)
    yield one
    for record in records(person):
        if record.job and not record.ended:
            person.gpuq("stop", str(record.job))
    nothing_left(person)
    own = {record.key for record in records(person)}
    assert not [path for path in glob.glob("/tmp/gpuq-krb5-*") if any(key in path for key in own)]


class Watch(threading.Thread):
    """Reads a cache again and again: what a program that wants a ticket would find."""

    def __init__(self, path, pause):
        super().__init__()
        self.path, self.pause = path, pause
        self.reads = self.unusable = 0
        self.expired, self.least = 0.0, float("inf")
        self.over = threading.Event()

    def run(self):
        last = time.time()
        while not self.over.wait(self.pause):
            self.reads += 1
            now = time.time()
            try:
                left = Ticket(self.path.read_bytes()).left()
            except (OSError, AssertionError):
                self.unusable += 1
                continue
            self.least = min(self.least, left)
            self.expired += now - last if left <= 0 else 0
            last = now

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(5)


def test_is_renewed_over_its_lives(login):
    kept = login.start()
    assert kept.cache.stat().st_mode & 0o777 == 0o600
    assert kept.cache.parent.stat().st_mode & 0o777 == 0o700
    assert not list(kept.store.glob("*")), "the store keeps what nobody needs any more"
    login.cache.unlink()  # as sshd does at logout
    with Watch(kept.cache, 0.05) as steady, Watch(kept.cache, 0) as eager:
        time.sleep(2.4 * LIFE)
    assert steady.expired == 0 and steady.unusable == 0 and eager.unusable == 0
    assert steady.reads > 300 and eager.reads > 10000
    # 40 % less a second, for a KDC counts in whole ones, and one for a busy machine to start kinit.
    assert steady.least >= 0.4 * LIFE - 2
    assert kept.state()["renewals"] >= 3 and kept.state()["trouble"] == "none"
    told = login.keepalive("last")[kept.record.key]
    assert told["principal"] == "ada@GPUQ.TEST" and told["next_action"] == "renew"
    assert "renewed at" in login.gpuq("keepalive").stdout
    assert "ada@GPUQ.TEST" in login.gpuq("show", "last").stdout
    kept.end()


def test_nothing_secret_is_on_disk_or_in_memory_of_others(login, cluster):
    kept = login.start()
    first = kept.ticket()
    wait_for(lambda: kept.state()["renewals"] >= 1, 15, "a renewal")
    secrets = [first.key, kept.ticket().key]
    script = cluster.scontrol("show", "job", "-d", str(kept.record.job)).encode()
    places = [script] + [path.read_bytes() for path in kept.record.dir.rglob("*") if path.is_file()]
    for pid in processes_of(login.person) + cluster.job_processes():
        with contextlib.suppress(OSError):
            places += [pathlib.Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
    assert len(places) > 5
    for secret in secrets:
        assert not [text for text in places if secret in text or secret.hex().encode() in text]
    kept.end()
    assert not [path for path in login.person.state.rglob("*") if path.is_file() and
                any(secret in path.read_bytes() for secret in secrets)]


def test_outlives_a_kdc_that_does_not_answer(login, kdc):
    """For two fifths of a life, from the first try on."""
    life = 20
    login.again(life=life)
    began = time.time()
    kept = login.start()
    with Watch(kept.cache, 0.05) as steady:
        time.sleep(max(0, began + 0.39 * life - time.time()))
        with kdc.frozen():
            kept.wait_for_trouble("unreachable")
            time.sleep(max(0, began + 0.79 * life - time.time()))
        wait_for(lambda: kept.state()["renewals"] >= 1, 10, lambda: f"a renewal: {kept.state()}")
        time.sleep(0.5)
    assert steady.expired == 0 and steady.unusable == 0
    kept.end()


def test_a_new_login_reaches_the_run(login):
    login.again(renewable=0)
    kept = login.start()
    state = kept.wait_for_trouble("not_renewable")
    assert state["next"] is None
    told = login.keepalive("last")[kept.record.key]
    assert told["next_action"] == "login" and told["trouble"] == "not_renewable"
    before = kept.ticket()
    login.again()
    at = time.time()
    assert login.gpuq("ls").returncode == 0
    wait_for(lambda: kept.ticket().renew_till > before.renew_till, 10, "the new ticket in the run")
    assert time.time() - at < 10
    kept.wait_for_trouble("none")
    wait_for(lambda: not list(kept.store.glob("*")), 5, "an empty store")
    login.again(name="ben")  # another's ticket is not for this run
    assert login.gpuq("ls").returncode == 0
    assert not list(kept.store.glob("*"))
    kept.end()


def test_a_cache_that_was_deleted(login):
    kept = login.start()
    wait_for(lambda: kept.state()["trouble"] == "none", 10, "a kept ticket")
    kept.cache.unlink()
    kept.wait_for_trouble("gone")
    assert "cache was deleted" in login.gpuq("keepalive").stdout
    login.gpuq("keepalive")
    wait_for(kept.cache.exists, 10, "the ticket of the login")
    kept.wait_for_trouble("none")
    kept.end()


def test_a_ticket_that_the_kdc_refuses(login, kdc):
    kept = login.start()
    kdc.admin("modprinc -allow_tix krbtgt/GPUQ.TEST@GPUQ.TEST")
    try:
        state = kept.wait_for_trouble("refused", 20)
        assert "not found" in state["words"]
    finally:
        kdc.admin("modprinc +allow_tix krbtgt/GPUQ.TEST@GPUQ.TEST")
    kept.end()


def test_is_wiped_when_the_supervisor_is_killed(login):
    kept = login.start()
    supervisor = kept.record.event("supervisor_started")["pid"]
    wait_for(lambda: processes(lambda pid: command_of(pid) == "gpuq-keep"), 10, "the keeper")
    os.kill(supervisor, signal.SIGKILL)
    kept.record.wait_for_end()
    kept.wiped()
    wait_for(lambda: not processes(lambda pid: command_of(pid) == "gpuq-keep"), 10, "no keeper")


def test_a_run_without_a_ticket_is_as_before(login, person):
    login.cache.unlink()
    done = login.gpuq("run", "-t", "5", "--", "/bin/sh", "-c", 'echo "$KRB5CCNAME"')
    assert done.returncode == 0
    assert done.stdout.strip() == login.env["KRB5CCNAME"], "nobody touches what is not gpuq's"
    record = records(person)[0]
    assert not (record.dir / "credentials.json").exists() and not (record.dir / "credentials").exists()
    assert "no active run has a Kerberos ticket" in login.gpuq("keepalive").stderr


TRAIN = """#!/bin/sh
echo "link $GPUQ_LINK"
step=0
while [ ! -e "$GPUQ_STOP_FILE" ]; do
    sleep 0.5
    step=$((step + 1))
    echo $step >"$GPUQ_CHECKPOINT_DIR/.tmp"
    mv "$GPUQ_CHECKPOINT_DIR/.tmp" "$GPUQ_CHECKPOINT_DIR/$GPUQ_LINK-$step.count"
done
exit 85
"""


def test_a_link_without_a_ticket_waits_for_a_login(login, person, cluster):
    """Three chains whose ticket ends with their first link, and what each was to do then."""
    script = person.home / "train.sh"
    script.write_text(TRAIN)
    script.chmod(0o755)
    login.again(renewable=15)
    chains = {}
    for what in ("hold", "run", "fail"):
        done = login.gpuq("run", "-t", "10", "--link", "11s", "--detach", "-J", what, "--credentials", what,
                          "--", script)
        assert done.returncode == 0, done.stderr
        assert "log in once before" in done.stderr and "or link 2 waits" in done.stderr
        chains[what] = next(one for one in records(person) if one.run["request"]["name"] == what)

    def begun(what, link):
        path = chains[what].dir / f"link-{link}" / "out.log"
        return path.exists() and f"link {link}".encode() in path.read_bytes()

    held = chains["hold"].dir / "held.json"
    wait_for(held.exists, 40, "a held link")
    wait_for(lambda: begun("run", 2), 30, "a link that runs without")
    ended = wait_for(lambda: chains["fail"].ended and not chains["fail"].ended.get("continues") and
                     chains["fail"].ended, 30, "an end")
    assert "Kerberos ticket" in ended["detail"]
    login.gpuq("stop", "run")
    run = wait_for(lambda: (lambda told: told["state"] == "waiting" and told)(
        json.loads(login.gpuq("show", "hold", "--json").stdout)["run"]), 20, "a run that waits")
    assert run["reason"] == "Ticket"
    assert "log in" in login.gpuq("why", "hold").stdout
    wait_for(lambda: "RUNNING" not in [job[1] for job in cluster.squeue()], 20, "no GPU that is burnt")
    assert not begun("hold", 2)
    login.again()
    assert login.gpuq("ls").returncode == 0
    assert not held.exists()
    wait_for(lambda: begun("hold", 2), 20, "the second link")
    login.gpuq("stop", "hold")
    left = [one.dir / "credentials" for one in chains.values()]
    wait_for(lambda: login.gpuq("ls").returncode == 0 and not any(one.exists() for one in left), 20,
             "no ticket left")


def test_tokens_follow_the_ticket(login, person):
    """With a stand-in for aklog: this kernel has no AFS. Tokens lie in a session keyring."""
    keyring = "import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 0), flush=True)"
    aklog = person.home / "aklog"
    aklog.write_text(f"#!/usr/bin/python3\nimport os, sys, time\nsys.stdout = open({str(person.home / 'tokens')!r}, 'a')\n"
                     f"print(time.time(), os.environ['KRB5CCNAME'], end=' ')\n{keyring}\n")
    aklog.chmod(0o755)
    login.env["GPUQ_AKLOG"] = str(aklog)
    done = login.gpuq("run", "-t", "5", "--detach", "--", "/bin/sh", "-c",
                      f"/usr/bin/python3 -c '{keyring}'; echo $KRB5CCNAME; exec sleep 300")
    assert done.returncode == 0, done.stderr
    record = records(person)[0]
    wait_for(lambda: record.log().count(b"\n") == 2, 20, "the program's keyring and cache")
    program, cache = record.log().decode().split()
    path = record.dir / "link-1" / "credentials.json"
    wait_for(lambda: path.exists() and json.loads(path.read_text())["renewals"] >= 1, 15, "a renewal")
    at = time.time()
    tokens = wait_for(lambda: (lambda lines: len(lines) >= 2 and lines)(
        (person.home / "tokens").read_text().splitlines()), 5, "new tokens")
    assert float(tokens[1].split()[0]) < at + 2
    assert {line.split()[1] for line in tokens} == {cache}
    assert {line.split()[2] for line in tokens} == {program}, "tokens that are not the program's"
    assert json.loads(path.read_text())["afs"]
    login.gpuq("stop", "last")
    record.wait_for_end()


def test_a_store_that_can_not_be(login):
    login.env["GPUQ_CREDENTIALS_DIR"] = "/proc/nowhere"
    done = login.gpuq("run", "-t", "5", "--", "/bin/echo", "on")
    assert done.returncode == 0 and done.stdout == "on\n"
    assert "the run gets no Kerberos ticket: /proc/nowhere" in done.stderr


def test_what_nobody_lived_to_wipe_is_swept(login, cluster):
    kept = login.start()
    for pid in cluster.job_processes():
        with contextlib.suppress(ProcessLookupError):
            if command_of(pid) != "slurmstepd":
                os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not cluster.squeue() and not cluster.job_processes(), 30, "an end")
    if kept.cache.parent.exists():  # else somebody lived long enough
        os.utime(kept.cache.parent, (0, time.time() - 100))
    login.start().end()
    assert not kept.cache.parent.exists()
    wait_for(lambda: login.gpuq("ls").returncode == 0 and not kept.store.exists(), 30, "no store of it")


def test_the_ticket_of_a_run_that_waits(login, person, cluster):
    with all_gpus_taken(cluster, nodes=1):
        done = login.gpuq("run", "-t", "5", "--detach", "--", *PRINTS)
        assert done.returncode == 0, done.stderr
        record = records(person)[0]
        store = record.dir / "credentials"
        assert (store / "delivered").stat().st_mode & 0o777 == 0o600 and store.stat().st_mode & 0o777 == 0o700
        login.cache.unlink()
        time.sleep(0.55 * LIFE)
        assert login.keepalive("last")[record.key]["next_action"] == "start"
        assert Ticket((store / "renewed").read_bytes()).left() > 0.6 * LIFE
    wait_for(record.log, 20, "the name of the cache")
    kept = Kept(login, record)
    assert kept.ticket().left() > 0
    kept.end()
