# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq policy tune` on a terminal: it shows its progress, is interrupted, and continues. No Slurm is needed."""
import difflib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from clusters import GPUQ, run

POLICY = """version: 1
pools:
  first: {nodes: n1, gpus: 2}         # short runs
  visu: {nodes: v1, gpus: 2}
  main: {nodes: 'n[2-7]', gpus: 2}    # all others
queues:
  fast: {time: 2h, pools: first}
  long: {time: 48h, pools: [main, visu]}
"""
DAY = 24 * 3600
WEEK = 7 * DAY


@pytest.fixture
def site(tmp_path):
    """A directory with a policy, and a trace in which one node is too few for the short runs."""
    (tmp_path / "p.yaml").write_text(POLICY)
    rows = ["submit_s,duration_s,gpus"]
    for at in [week * WEEK + second for week in range(6) for second in range(0, 2 * DAY, 5400)]:
        rows += [f"{at},3300,1"] * 4 + [f"{at},36000,1"] * (at % 16200 == 0)
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def words(*options):
    return [GPUQ, "policy", "tune", "--trace", "t.csv", "--target", "fast: p95<=5m", *options, "p.yaml"]


def env(site):
    return {**os.environ, "HOME": str(site), "XDG_STATE_HOME": str(site / "state"), "TERM": "xterm"}


def read_until(master, pattern, seconds=60):
    """The output of a terminal up to the first match."""
    text, end = "", time.monotonic() + seconds
    while not re.search(pattern, text):
        assert time.monotonic() < end, text
        if select.select([master], [], [], 0.1)[0]:
            try:
                text += os.read(master, 65536).decode()
            except OSError:  # the terminal is closed
                assert re.search(pattern, text), text
    return text


def test_a_search_is_interrupted_and_continues(site):
    master, slave = pty.openpty()
    with subprocess.Popen(words("--simulations", "5000"), cwd=site, env=env(site), stdin=slave, stdout=slave,
                          stderr=slave, start_new_session=True) as search:
        os.close(slave)
        read_until(master, r"\[[#.]{20}\] [1-9]\d* of 5000 simulations, best: fast p95 ")
        search.send_signal(signal.SIGINT)
        text = read_until(master, r"choice 1 is (not )?recommended|no change is recommended")
        assert "(ended early)" in text
        assert search.wait(30) == 130
    os.close(master)

    done = run(words("--simulations", "60", "--output", "new.yaml"), env(site), cwd=site)
    assert re.search(r"\d+ simulations? known from an earlier search", done.stderr), done.stderr
    assert "[#" not in done.stderr
    assert "+++ p.yaml (choice 1)" in done.stdout
    assert "choice 1 is recommended: in weeks 5 to 6, which the search did not see" in done.stdout, done.stdout
    assert done.returncode == 0, done.stderr

    # The new file is the old one with other numbers, and holds the target.
    new = (site / "new.yaml").read_text()
    assert re.sub(r"\d", "", new.split("#")[1]) == re.sub(r"\d", "", POLICY.split("#")[1])
    assert run([GPUQ, "policy", "check", "new.yaml"], env(site), cwd=site).returncode == 0
    again = run([*words("--simulations", "5")[:-1], "--json", "new.yaml"], env(site), cwd=site)
    document = json.loads(again.stdout)
    assert document["as_it_is"]["unseen"][0] <= 300
    assert document["goals"][0]["goal"] == "fast: p95<=5m"

    # The diff is the one between the two files.
    diff = "".join(difflib.unified_diff(POLICY.splitlines(True), new.splitlines(True), "p.yaml", "p.yaml (choice 1)"))
    assert diff in done.stdout
