# SPDX-License-Identifier: GPL-2.0-or-later
"""Each task of an srun inside a run is notified once that its link ends; the srun is not."""
import collections
import json
import os
import pathlib
from datetime import datetime

import pytest

from conftest import Person, short_folder, wait_for
from runs import processes_of

CLUSTER = dict(nodes=1, gpus=4, lines=["KillWait=5"])
RANK = pathlib.Path(__file__).with_name("chain_rank.py")
PROGRAM = f"srun --ntasks=2 --overcommit /usr/bin/python3 {RANK}; echo srun $? >>said"


@pytest.fixture(scope="module")
def runs(cluster):
    """One run with two ranks that handle the signal, and one where the second rank does not; in
    parallel."""
    with short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        for name, deaf in (("hear", ""), ("deaf", "1")):
            folder = pathlib.Path(home) / name
            folder.mkdir()
            if person.user:
                os.chown(folder, person.user.pw_uid, person.user.pw_gid)
            done = person.gpuq("run", "--detach", "-J", name, "-t", "10", "--link", "20s",
                               "--restart-from-scratch", "--env", f"DEAF_RANK={deaf}", "--",
                               "/bin/bash", "-c", PROGRAM, cwd=folder)
            assert done.returncode == 0, done.stderr
        yield person


def events(person, name, link):
    for folder in person.run_dirs():
        if json.loads((folder / "run.json").read_text())["request"]["name"] == name:
            path = folder / f"link-{link}" / "journal.jsonl"
            lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
            return {one["event"]: one for one in map(json.loads, lines)}
    return {}


def said(person, name):
    """Records of the ranks in the first link, {"told": {rank: [time, ...]}, ...}, and srun's
    status."""
    words = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in (person.home / name / "said").read_text().splitlines():
        word, rank, *time = line.split()
        if word == "srun":
            return words, int(rank)
        words[word][rank].append(float(time[0]))
    return words, None


@pytest.mark.parametrize("name, listeners", [("hear", {"0", "1"}), ("deaf", {"0"})])
def test_the_tasks_of_an_srun_are_told_once(name, listeners, runs):
    wait_for(lambda: "ended" in events(runs, name, 2), 90, f"the end of the second link of {name}")
    first = events(runs, name, 1)
    assert first["noticed"]["detail"] == "limit"
    noticed_at = datetime.fromisoformat(first["noticed"]["at"].replace("Z", "+00:00")).timestamp()
    words, status = said(runs, name)
    assert set(words["told"]) == listeners
    for times in words["told"].values():
        assert len(times) == 1 and times[0] - noticed_at < 1
    assert set(words["left"]) == {"0", "1"} and status == 0, "nobody was killed by the notice"
    assert first["ended"]["continues"] is True
    second = events(runs, name, 2)
    assert (second["ended"]["status"], second["ended"].get("continues", False)) == (0, False)


def test_nothing_is_left(runs, cluster):
    wait_for(lambda: not cluster.squeue() and not processes_of(runs), 30, "an end of all")
