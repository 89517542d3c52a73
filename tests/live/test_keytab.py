# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with a keytab: past the end of every ticket, and the messages if it yields none."""
import json
import os
import shutil
import time

import pytest

from clusters import wait_for
from kdc import Ticket, is_installed, running_kdc
from runs import nothing_left, records, the_run
from tickets import LIFE, PRINTS, Kept, Watch, logged_in

CLUSTER = {"nodes": 1}
pytestmark = pytest.mark.skipif(not is_installed(), reason="no krb5-kdc")


@pytest.fixture(scope="module")
def kdc():
    with running_kdc("ada", "ben", "cleo", life=LIFE, renewable=2 * LIFE) as one:
        yield one


@pytest.fixture
def login(kdc, person):
    with logged_in(kdc, person) as one:
        yield one


def keytab_of(kdc, person, name="ada", mode=0o600):
    """The user's own copy, as made by ktutil."""
    copy = person.home / f"{name}.keytab"
    copy.unlink(missing_ok=True)
    shutil.copy(kdc.keytab(name), copy)
    if person.user and os.geteuid() == 0:
        os.chown(copy, person.user.pw_uid, person.user.pw_gid)
    copy.chmod(mode)
    return copy


def told(record):
    return [event["detail"] for event in record.journal if event["event"] == "credentials"]


def test_a_run_outlives_the_renewable_life_of_its_ticket(login, kdc, person):
    keytab = keytab_of(kdc, person)
    kept = login.start("--keytab", keytab)
    first = kept.ticket()
    login.cache.unlink()
    with Watch(kept.cache, 0.05) as steady:
        time.sleep(first.renew_till - time.time() + 2 * LIFE)
    assert steady.expired == 0 and steady.unusable == 0
    assert kept.ticket().end > first.renew_till + LIFE
    assert kept.state()["trouble"] == "none"
    # Renewed while possible, then replaced by a new one.
    wait_for(lambda: "from the keytab at" in login.gpuq("keepalive").stdout, 3 * LIFE, "its turn")
    said = login.keepalive("last")[kept.record.key]
    assert said["keytab"] == str(keytab) and said["next_action"] in ("keytab", "renew")
    assert said["waiting_link"] is None
    shown = login.gpuq("show", "last").stdout
    assert str(keytab) in shown and "log in" not in shown
    # Only its path is recorded anywhere.
    secret = keytab.read_bytes()[-32:]
    assert not [path for path in person.state.rglob("*") if path.is_file() and secret in path.read_bytes()]
    kept.end()


def test_the_first_ticket_of_a_run_without_a_login(login, kdc, person):
    login.cache.unlink()
    keytab_of(kdc, person)
    done = login.gpuq("run", "-t", "5", "--detach", "--keytab", "ada.keytab", "--", *PRINTS, cwd=person.home)
    assert done.returncode == 0, done.stderr
    assert "ada@GPUQ.TEST) is renewed with the keytab" in done.stderr and "log in" not in done.stderr
    record = the_run(person)
    wait_for(record.log, 20, "the name of the cache")
    kept = Kept(login, record)
    assert kept.ticket().principal == b"ada@GPUQ.TEST" and kept.ticket().left() > 0
    kept.end()


@pytest.mark.parametrize("make, said", [
    (lambda kdc, person: keytab_of(kdc, person, mode=0o640), "is open to others (mode 640): chmod go="),
    (lambda kdc, person: keytab_of(kdc, person, "ben"), "has keys of ben@GPUQ.TEST, but your ticket is for ada@"),
    (lambda kdc, person: person.home / "none", "none: not found"),
    (lambda kdc, person: "/dev/null", "/dev/null"),
])
def test_one_that_is_not_to_be_used_is_refused_before_anything_is_asked_of_slurm(login, kdc, person, make, said):
    done = login.gpuq("run", "-t", "5", "--keytab", make(kdc, person), "--", "true")
    assert done.returncode not in (0, 125), done.stderr
    assert "--keytab: " in done.stderr and said in done.stderr
    assert not records(person)


def test_one_that_goes_away_and_comes_back(login, kdc, person):
    login.again(renewable=0)
    keytab = keytab_of(kdc, person)
    kept = login.start("--keytab", keytab)
    away = keytab.rename(keytab.with_suffix(".away"))
    kept.wait_for_trouble("no_keytab")
    assert "the node can't read the keytab" in login.gpuq("keepalive").stdout
    assert login.keepalive("last")[kept.record.key]["next_action"] == "login"
    assert any("the node can't read the keytab" in line for line in told(kept.record))
    away.rename(keytab)
    kept.wait_for_trouble("none")
    wait_for(lambda: told(kept.record)[-1] == "its Kerberos ticket is renewed again", 5, lambda: told(kept.record))
    kept.end()


def test_a_key_that_is_that_of_an_old_password_is_tried_once(login, kdc, person):
    login.again(name="cleo", renewable=0)
    keytab = keytab_of(kdc, person, "cleo")
    kdc.admin("cpw -randkey cleo@GPUQ.TEST")
    kept = login.start("--keytab", keytab)
    state = kept.wait_for_trouble("key_refused")
    assert state["next"] is None and "Password incorrect" in state["words"]
    shown = login.gpuq("show", "last").stdout
    assert "the KDC no longer accepts the keytab's key" in shown
    assert any("the KDC no longer accepts the keytab's key" in line for line in told(kept.record))
    wait_for(lambda: kept.ticket().left() < 0, LIFE, "the end of its ticket")
    tries = log_of(kdc).count("cleo@GPUQ.TEST")
    assert tries > 0
    time.sleep(4)
    assert log_of(kdc).count("cleo@GPUQ.TEST") == tries, "it could lock cleo out"
    # A new keytab is sufficient.
    kdc.keytab("cleo").unlink()
    kdc.admin(f"ktadd -norandkey -k {kdc.keytab('cleo')} cleo@GPUQ.TEST")
    keytab_of(kdc, person, "cleo")
    kept.wait_for_trouble("none")
    assert kept.ticket().left() > 0
    kept.end()


def log_of(kdc):
    path = kdc.folder / "kdc.log"
    return path.read_text() if path.exists() else ""


LINKS = """#!/bin/sh
echo "link $GPUQ_LINK"
cp "${KRB5CCNAME#FILE:}" "$HOME/ticket-$GPUQ_LINK"
while [ ! -e "$GPUQ_STOP_FILE" ]; do sleep 0.5; done
echo $GPUQ_LINK >"$GPUQ_CHECKPOINT_DIR/.tmp"
mv "$GPUQ_CHECKPOINT_DIR/.tmp" "$GPUQ_CHECKPOINT_DIR/$GPUQ_LINK.count"
exit 85
"""


def test_links_begin_with_a_new_ticket_until_the_keytab_gives_none(login, kdc, person):
    script = person.home / "train.sh"
    script.write_text(LINKS)
    script.chmod(0o755)
    login.again(renewable=0)
    keytab = keytab_of(kdc, person)
    done = login.gpuq("run", "-t", "10", "--link", "11s", "--detach", "--keytab", keytab, "--", script)
    assert done.returncode == 0 and "log in" not in done.stderr, done.stderr
    record = the_run(person)

    def ticket_of(link):
        path = person.home / f"ticket-{link}"
        begun = wait_for(lambda: path.exists() and path.stat().st_size and path.stat().st_mtime, 40, f"link {link}")
        return Ticket(path.read_bytes()).end - begun

    assert ticket_of(1) > 0 and ticket_of(2) > 0
    keytab.unlink()
    held = record.dir / "held.json"
    wait_for(held.exists, 60, "a held link")
    link = json.loads(held.read_text())["link"]
    assert link >= 3
    login.again()
    assert login.gpuq("ls").returncode == 0
    assert ticket_of(link) > 0
    login.gpuq("stop", "last")
    nothing_left(person)
