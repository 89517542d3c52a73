# SPDX-License-Identifier: GPL-2.0-or-later
"""Logins with a Kerberos ticket, runs that keep one, and continuous readers."""
import contextlib
import json
import pathlib
import threading
import time

from clusters import command_of, processes, wait_for
from kdc import Ticket
from node_names import left_of
from runs import nothing_left, records

LIFE = 8  # lifetime of a ticket in seconds
PRINTS = ("/bin/sh", "-c", 'echo "$KRB5CCNAME"; exec sleep 3000')


class Login:
    """A user who has logged in: a credentials cache, and gpuq with it."""

    def __init__(self, kdc, person, **options):
        self.kdc, self.person = kdc, person
        self.cache = person.home / "login"
        self.env = {**kdc.env, "KRB5CCNAME": f"FILE:{self.cache}"}
        self.again(**options)

    def again(self, life=LIFE, **options):
        self.kdc.login(self.person, self.cache, life=life, **options)

    def gpuq(self, *words, **options):
        return self.person.gpuq(*words, env=self.env, **options)

    def start(self, *words, minutes=5):
        """Starts a detached run. Returns it once its program runs and its ticket is in place."""
        before = {record.key for record in records(self.person)}
        done = self.gpuq("run", "-t", minutes, "--detach", *words, "--", *PRINTS)
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

    def keepers(self):
        """The processes that renew the ticket on its node."""
        def keeps(pid):
            with contextlib.suppress(OSError):
                return command_of(pid) == "gpuq-keep" and self.record.key.encode() in (
                    pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        return processes(keeps)

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


class Watch(threading.Thread):
    """Reads a cache repeatedly, like a program that needs a ticket."""

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


@contextlib.contextmanager
def logged_in(kdc, person, **options):
    """A login; afterwards no ticket of its runs may be left."""
    one = Login(kdc, person, **options)
    yield one
    for record in records(person):
        if record.job and not record.ended:
            person.gpuq("stop", str(record.job))
    nothing_left(person)
    assert not left_of(person, [record.key for record in records(person)])
