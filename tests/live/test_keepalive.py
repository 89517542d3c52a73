# SPDX-License-Identifier: GPL-2.0-or-later
"""Kerberos tickets of runs, with a real KDC (kdc.py) that issues tickets of seconds."""
import contextlib
import json
import os
import pathlib
import random
import subprocess
import signal
import time

import pytest

from clusters import BIN, command_of, environment_of, processes, wait_for
from faults import of_soak
from kdc import Ticket, is_installed, running_kdc
from node_names import left_of
from runs import all_gpus_taken, processes_of, records
from tickets import LIFE, PRINTS, Kept, Watch, logged_in

CLUSTER = {"nodes": 1}
pytestmark = pytest.mark.skipif(not is_installed(), reason="no krb5-kdc")


@pytest.fixture(scope="module")
def kdc():
    with running_kdc("ada", "ben", life=of_soak(60, 20), renewable=of_soak(1200, 600)) as one:
        yield one


@pytest.fixture
def login(kdc, person):
    with logged_in(kdc, person) as one:
        yield one


def test_is_renewed_over_its_lives(login):
    life, lives = of_soak((60, 10), (LIFE, 2.4))
    login.again(life=life)
    kept = login.start(minutes=15)
    assert kept.cache.stat().st_mode & 0o777 == 0o600
    assert kept.cache.parent.stat().st_mode & 0o777 == 0o700
    assert not list(kept.store.glob("*")), "the store keeps what nobody needs any more"
    login.cache.unlink()  # as sshd does at logout
    with Watch(kept.cache, 0.05) as steady, Watch(kept.cache, 0) as eager:
        time.sleep(lives * life)
    print(f"{lives} lives of {life} s: {steady.expired:.2f} s expired, {steady.least / life:.1%} left at least; "
          f"{steady.unusable + eager.unusable} of {steady.reads + eager.reads} reads unusable")
    assert steady.expired == 0 and steady.unusable == 0 and eager.unusable == 0
    assert steady.reads > 15 * lives * life and eager.reads > of_soak(1_000_000, 10_000)
    # 40 % minus two seconds: a KDC counts whole seconds, and a busy machine needs one to start kinit.
    assert steady.least >= 0.4 * life - 2
    assert kept.state()["renewals"] >= lives and kept.state()["trouble"] == "none"
    told = login.keepalive("last")[kept.record.key]
    assert told["principal"] == "ada@GPUQ.TEST" and told["next_action"] == "renew"
    assert "renews at" in login.gpuq("keepalive").stdout
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


@contextlib.contextmanager
def echoing(login):
    """A run with a ticket. Yields a function that sends it a line and returns the seconds until the line is back."""
    with login.person.start("run", "-t", "5", "--", "cat", env=login.env, stdin=subprocess.PIPE) as child:
        def echo():
            begin = time.monotonic()
            child.stdin.write(b"x\n")
            assert child.stdout.readline() == b"x\n"
            return time.monotonic() - begin
        echo()
        yield echo
        child.stdin.close()
        assert child.wait(30) == 0, child.stderr.read()


@pytest.mark.parametrize("gone", ["frozen", "down"])
def test_outlives_a_kdc_that_does_not_answer(login, kdc, gone):
    """For two fifths of a lifetime, from the first attempt on; the supervisor's traffic continues meanwhile."""
    life = 20
    login.again(life=life)
    began = time.time()
    kept = login.start()
    with Watch(kept.cache, 0.05) as steady, echoing(login) as echo:
        time.sleep(max(0, began + 0.39 * life - time.time()))
        with kdc.frozen() if gone == "frozen" else kdc.down():
            kept.wait_for_trouble("unreachable")
            slowest = 0
            while time.time() < began + 0.79 * life:
                slowest = max(slowest, echo())
                time.sleep(0.05)
            assert slowest < 3, "it waited for the KDC"
        wait_for(lambda: kept.state()["renewals"] >= 1, 10, lambda: f"a renewal: {kept.state()}")
        time.sleep(0.5)
    assert steady.expired == 0 and steady.unusable == 0
    kept.end()


def test_whoever_keeps_a_ticket_leaves_no_core(login, cluster):
    """Files in /proc of a process that cannot be dumped belong to root, according to proc(5)."""
    kept = login.start()
    def owner(pid):
        return os.stat(f"/proc/{pid}/environ").st_uid
    keepers = wait_for(kept.keepers, 10, "who keeps it")
    assert [owner(pid) for pid in keepers] == [0]
    if login.person.user:
        assert login.person.user.pw_uid in {owner(pid) for pid in cluster.job_processes()}, "this machine does not tell"
    kept.end()


@pytest.mark.parametrize("kind", ["KEYRING", "KCM"])
def test_a_ticket_that_is_in_no_file(login, person, kind):
    """The ticket is read at submission; the run gets a file and keeps it valid."""
    name = f"KEYRING:user:gpuq-test-{os.getpid()}" if kind == "KEYRING" else "KCM:"
    if kind == "KCM" and not pathlib.Path("/run/.heim_org.h5l.kcm-socket").is_socket():
        pytest.skip("no KCM daemon on this machine")
    login.kdc.login(login.person, name, life=LIFE)
    login.env["KRB5CCNAME"] = name
    try:
        kept = login.start()
        assert kept.ticket().left() > 0
        wait_for(lambda: kept.state()["renewals"] >= 1, 20, "a renewal")
        kept.end()
    finally:
        login.kdc.logout(login.person, name)


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
    login.again(name="ben")  # another user's ticket is not for this run
    assert login.gpuq("ls").returncode == 0
    assert not list(kept.store.glob("*"))
    kept.end()


@pytest.mark.parametrize("life, takes_over", [(18, True), (LIFE, False)])
def test_a_login_whose_ticket_is_over_sooner(login, life, takes_over):
    """Renewable for longer than the run's ticket: it is renewed first, and taken over if its lifetime is nearly as
    long."""
    login.again(life=20, renewable=200)
    kept = login.start()
    before = wait_for(lambda: kept.state()["trouble"] == "none" and kept.ticket(), 10, "a kept ticket")
    login.again(life=life, renewable=600)
    wait_for(lambda: Ticket(login.cache.read_bytes()).left() < kept.ticket().left() - 1, 30, "a renewal of the run's")
    with Watch(kept.cache, 0.02) as watch:
        assert login.gpuq("ls").returncode == 0
        if takes_over:
            wait_for(lambda: kept.ticket().renew_till > before.renew_till, 10, "the login's ticket in the run")
            wait_for(lambda: not list(kept.store.glob("*")), 10, "an empty store")
        else:
            time.sleep(life)
            assert kept.ticket().renew_till == before.renew_till
    assert watch.unusable == 0 and watch.least >= 0.4 * life - 2
    assert kept.state()["trouble"] == "none"
    kept.end()


def test_a_login_whose_ticket_was_over_long_ago(login):
    """Not taken over at once, but kept valid alongside the run's ticket until that one cannot be renewed any more."""
    login.again(life=20, renewable=40)
    kept = login.start()
    before = wait_for(lambda: kept.state()["trouble"] == "none" and kept.ticket(), 10, "a kept ticket")
    login.again(life=LIFE, renewable=600)
    delivered = Ticket(login.cache.read_bytes())
    with Watch(kept.cache, 0.02) as watch:
        assert login.gpuq("ls").returncode == 0
        login.cache.unlink()
        wait_for(lambda: delivered.left() < -2, LIFE + 5, "the end of the login's ticket")
        assert kept.ticket().renew_till == before.renew_till
        wait_for(lambda: kept.ticket().renew_till > before.renew_till, 30, "what was kept of the login's ticket")
        time.sleep(LIFE)
    assert watch.unusable == 0 and watch.expired == 0
    assert kept.state()["trouble"] == "none"
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


@pytest.mark.parametrize("step", [5, -5, 40])
def test_a_clock_of_the_node_that_steps(login, step):
    """For all of the run's processes: slightly, which the KDC refuses, and beyond the ticket's end."""
    clock = login.person.home / "clock"
    clock.write_text("0")
    real = dict(login.env)
    login.env |= {"LD_PRELOAD": str(BIN / "stepped_clock.so"), "STEPPED_CLOCK": str(clock)}
    login.again(life=20)
    kept = login.start()
    login.env = real
    with Watch(kept.cache, 0.02) as watch:
        wait_for(lambda: kept.state()["trouble"] == "none", 10, "a kept ticket")
        clock.write_text(str(step))
        state = wait_for(lambda: kept.state()["trouble"] not in ("none", None) and kept.state(), 18, "trouble")
        words = {"unreachable": "lock skew too great", "expired": "it has expired"}[state["trouble"]]
        assert state["trouble"] == ("expired" if step == 40 else "unreachable")
        assert words in login.gpuq("keepalive").stdout
        clock.write_text("0")
        kept.wait_for_trouble("none", 6)
        wait_for(lambda: kept.state()["renewals"] >= 1, 10, "a renewal")
    assert watch.expired == 0 and watch.unusable == 0
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
    wait_for(kept.keepers, 10, "the keeper")
    os.kill(supervisor, signal.SIGKILL)
    kept.record.wait_for_end()
    kept.wiped()
    wait_for(lambda: not kept.keepers(), 10, "no keeper")


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
    """Three chains whose ticket ends with their first link, and the three policies for that case. A link ends six
    seconds after its start, with less than half of the login's lifetime left."""
    script = person.home / "train.sh"
    script.write_text(TRAIN)
    script.chmod(0o755)
    login.again(renewable=12)
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
    # At the end of its first link, or at the start of its second one.
    ended = wait_for(lambda: (lambda told: told and not told.get("continues") and told)(
        chains["fail"].end_of_run or chains["fail"].ended), 30, lambda: f"an end: {chains['fail'].journal}")
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
    """With a stand-in for aklog, since this kernel has no AFS. Tokens are kept in a session keyring."""
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


@pytest.mark.parametrize("next_gpuq", ["run", "run without a ticket", "ls", "attach", "sampler"])
def test_what_nobody_lived_to_wipe_is_swept_by_the_next_gpuq(login, cluster, next_gpuq):
    """By any next use of gpuq by this user on that node, but never for a run that lives."""
    if next_gpuq in ("attach", "sampler"):
        login.person.gpuq("run", "-t", "5", "--detach", "--", "sh", "-c", "echo out; exec sleep 600")
        living = wait_for(lambda: [one for one in records(login.person) if one.log()], 20, "output")[0]
    kept = login.start()
    live = login.start()
    # A stopped process cannot wipe anything before it is killed, so all are stopped and then killed.
    victims = [pid for pid in cluster.job_processes() if command_of(pid) != "slurmstepd" and
               environment_of(pid).get("SLURM_JOB_ID") == str(kept.record.job)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    assert kept.cache.exists(), "removed before the kill"
    wait_for(lambda: len(cluster.squeue()) == 1 + (next_gpuq in ("attach", "sampler")), 30, "an end")
    if next_gpuq == "run":
        login.start().end()
    elif next_gpuq == "run without a ticket":
        assert login.person.gpuq("run", "--", "true").returncode == 0
    elif next_gpuq == "ls":
        assert login.person.gpuq("ls").returncode == 0
    elif next_gpuq == "attach":  # its relay is on the node; the client is killed before its end
        with login.person.start("attach", str(living.job)) as child:
            assert child.stdout.readline() == b"out\n"
            wait_for(lambda: not kept.cache.parent.exists(), 5, "the relay to have swept")
            child.kill()
    else:  # a run that only begins: processes it starts later sweep too
        before = len(records(login.person))
        with login.person.start("run", "-t", "5", "--", "sleep", "600") as child:
            wait_for(lambda: len(records(login.person)) > before and records(login.person)[-1].event("program_started"),
                     20, "the new run")
            wait_for(lambda: not kept.cache.parent.exists(), 10, "the new run to have swept")
            login.person.gpuq("stop", "last")
            child.wait(30)
    wait_for(lambda: not kept.cache.parent.exists(), 2, "no ticket of it")
    assert live.ticket().left() > 0
    live.end()
    for record in records(login.person):
        if not record.ended and record.job:
            login.person.gpuq("stop", str(record.job))
    wait_for(lambda: login.gpuq("ls").returncode == 0 and not kept.store.exists(), 30, "no store of it")


def killed(record, cluster, how):
    """Kills a run."""
    if how == "slurm":
        cluster.slurm("scancel", "--full", "--signal=KILL", str(record.job), check=False)
        cluster.slurm("scancel", str(record.job), check=False)
    supervisor = record.event("supervisor_started")
    for pid in cluster.job_processes() if how == "all" else [supervisor["pid"]] if supervisor else []:
        with contextlib.suppress(ProcessLookupError):
            if command_of(pid) != "slurmstepd":
                os.kill(pid, signal.SIGKILL)


def test_nothing_is_left_of_runs_that_are_killed_at_any_moment(login, person, cluster):
    """Kills their supervisor, all of the job's processes together, or the job through Slurm."""
    count, seed = of_soak(100, 3), random.randrange(10**6)
    dice = random.Random(seed)
    swept = 0
    for number in range(count):
        how = ["supervisor", "all", "slurm"][number % 3]  # some of each: if all are killed, no process can wipe
        pause = dice.uniform(0, 4)
        login.again(life=20)
        done = login.gpuq("run", "-t", "5", "--detach", "--", *PRINTS)
        assert done.returncode == 0, done.stderr
        record = records(person)[-1]
        time.sleep(pause)
        killed(record, cluster, how)
        wait_for(lambda: how == "slurm" or not cluster.squeue() or killed(record, cluster, how), 30, "a kill")
        wait_for(lambda: not cluster.squeue() and not cluster.job_processes(), 60,
                 lambda: f"the end of run {number} of seed {seed}, killed by {how} after {pause:.2f} s")
        swept += len(left_of(person, [record.key], links=1))  # the next gpuq sweeps it
    own = [record.key for record in records(person)]
    assert swept < count, "nobody wipes"
    assert all((record.dir / "credentials.json").exists() for record in records(person))
    login.again()
    login.start().end()
    wait_for(lambda: login.gpuq("ls").returncode == 0 and not list(person.state.rglob("credentials/*")), 30,
             "no store of theirs")
    left = left_of(person, own, links=1)
    at_work = [pid for pid in processes_of(person) if command_of(pid) == "gpuq-keep"] + cluster.job_processes()
    print(f"{count} runs killed (seed {seed}): {swept} swept by the next, {len(left)} caches and "
          f"{len(at_work)} processes left")
    assert not left and not at_work


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_store_that_is_full(login, person):
    """A run without space for its ticket continues; so does a link, whose state reports the problem."""
    disk = person.home / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "tmpfs", str(disk)], check=True)
    fill = disk / "fill"
    try:
        login.env["GPUQ_CREDENTIALS_DIR"] = str(disk)
        with contextlib.suppress(OSError):
            fill.write_bytes(b"x" * (1 << 20))
        done = login.gpuq("run", "-t", "5", "--", "/bin/echo", "on")
        assert done.returncode == 0 and done.stdout == "on\n"
        assert "the run gets no Kerberos ticket" in done.stderr and "No space left" in done.stderr
        assert "its Kerberos ticket did not reach this node" in done.stderr
        fill.unlink()

        script = person.home / "train.sh"
        script.write_text(TRAIN)
        script.chmod(0o755)
        kept = login.start("--link", "3m", "--restart-from-scratch", minutes=10)
        wait_for(lambda: kept.state()["renewals"] >= 1, 15, "a renewal")
        with contextlib.suppress(OSError):
            fill.write_bytes(b"x" * (1 << 20))
        state = wait_for(lambda: "No space left" in kept.state()["words"] and kept.state(), 15,
                         lambda: f"what is wrong: {kept.state()}")
        assert state["trouble"] == "none" and kept.ticket().left() > 0
        assert "No space left" in login.gpuq("keepalive").stdout
        assert [one for one in kept.record.journal if one["event"] == "credentials"]
        fill.unlink()
        wait_for(lambda: kept.state()["words"] == "", 15, "all well")
        login.gpuq("stop", str(kept.record.job))
        kept.record.wait_for_end()
        wait_for(lambda: not list(disk.glob("*/*")), 10, "an empty store")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


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
