# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots: a run that starts later gets the code of the moment in which it was submitted."""
import importlib.util
import json
import os
import shutil
import subprocess

import pytest

from clusters import wait_for
from faults import of_soak

CLUSTER = dict(nodes=2, gpus=2, lines=["KillWait=5"])

TRAIN = """
import os, pathlib, sys
from lib.model import NAME
here = pathlib.Path(__file__).parent
config = open("config.yaml").read().strip()
data = (here / "data.csv").read_text().strip()
print("old", NAME, config, data, flush=True)
(here / "beside.txt").write_text("written")
os.makedirs("out", exist_ok=True)
open("out/result", "a").write("old\\n")
"""


@pytest.fixture
def work(person):
    """A git work tree with a program; a directory above is not part of it."""
    work = person.home / "project"
    (work / "lib").mkdir(parents=True)
    (work / "lib" / "__init__.py").write_text("")
    (work / "lib" / "model.py").write_text("NAME = 'model1'\n")
    (work / "train.py").write_text(TRAIN)
    (work / "config.yaml").write_text("lr=1\n")
    (work / "data.csv").write_text("data1\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", work, *words], check=True)
    if person.user is not None:
        subprocess.run(["chown", "-R", person.user.pw_name, work], check=True)
    return work


def edit(work):
    """As an editor does, in place, by removal and by a new version of the data."""
    (work / "train.new").write_text(TRAIN.replace('"old"', '"new"'))
    os.rename(work / "train.new", work / "train.py")
    (work / "config.yaml").write_text("lr=2\n")
    shutil.rmtree(work / "lib")
    (work / "data.csv").write_text("data2\n")


@pytest.fixture
def release(person):
    """All GPUs are in use until this function is called."""
    done = person.gpuq("run", "--detach", "-J", "blocker", "-N", "2", "-g", "2", "-t", "10m", "sleep", "600")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: shown(person, "blocker")["run"]["state"] == "running", 30, "the blocker")
    yield lambda: person.gpuq("stop", "blocker")
    person.gpuq("stop", *(run["key"] for run in json.loads(person.gpuq("ls", "--json").stdout)["runs"]))


def shown(person, name):
    done = person.gpuq("show", name, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ended(person, name):
    wait_for(lambda: shown(person, name)["run"]["state"] == "ended", 60, lambda: f"{name}: {shown(person, name)['run']}")
    return shown(person, name)["run"]["exit"]


def submit(person, work, name, *words):
    done = person.gpuq("run", "--detach", "-J", name, *words, cwd=work)
    assert done.returncode == 0, done.stderr


def test_a_run_edited_while_it_waits_runs_the_old_files(person, work, release):
    submit(person, work, "waits", "python3", "train.py")
    submit(person, work, "without", "--no-snapshot", "cat", "config.yaml")
    edit(work)
    code = shown(person, "waits")["code"]
    assert (code["files"], code["changed"]) == (4, ["config.yaml", "train.py", "lib/__init__.py", "lib/model.py"]), code
    assert len(code["commit"]) == 40 and code["dirty"] == []
    assert shown(person, "without")["code"] is None
    diff = person.gpuq("diff", "waits").stdout
    assert "-lr=1\n+lr=2\n" in diff and "--- a/lib/model.py" in diff
    release()
    assert ended(person, "waits") == 0, person.gpuq("logs", "waits")
    log = person.gpuq("logs", "waits")
    assert log.stdout == "old model1 lr=1 data2\n"
    assert "changed since: config.yaml, train.py, lib/__init__.py and 1 more" in log.stderr
    assert (work / "beside.txt").read_text() == "written"
    assert (work / "out" / "result").read_text() == "old\n"
    # A __pycache__ that Python may have written there stays: it is the program's.
    wait_for(lambda: not list((work / "lib").glob("*.py")), 10, "the removal of what was put back")
    assert ended(person, "without") == 0 and person.gpuq("logs", "without").stdout == "lr=2\n"
    same = person.gpuq("diff", "--commit", "waits")
    assert (same.returncode, same.stdout) == (0, ""), same.stderr  # edited after it was submitted
    # Again from the snapshot, and from today's files.
    again = person.gpuq("again", "waits", "-J", "again")
    assert (again.returncode, again.stdout) == (0, "old model1 lr=1 data2\n"), again.stderr
    assert person.gpuq("again", "waits", "--current-files", "-J", "current").returncode == 1
    same = person.gpuq("diff", "waits", "again")
    assert (same.returncode, same.stdout) == (0, ""), same.stderr
    same = person.gpuq("diff", "--json", "waits", "again")
    assert same.returncode == 0, same.stderr
    assert json.loads(same.stdout) == {"schema": 1, "runs": ["waits", "again"], "settings": [], "files": []}
    other = json.loads(person.gpuq("diff", "--json", "waits").stdout)
    assert other["settings"] is None and {file["change"] for file in other["files"]} == {"changed", "removed"}, other


def test_an_immediate_run_takes_none(person, work):
    done = person.gpuq("run", "-J", "now", "python3", "train.py", cwd=work)
    assert (done.returncode, done.stdout) == (0, "old model1 lr=1 data1\n"), done.stderr
    assert shown(person, "now")["code"] is None
    refused = person.gpuq("diff", "now")
    assert refused.returncode == 2 and "no snapshot of its code was taken" in refused.stderr


def test_every_link_and_try_gets_the_same_files(person, work):
    program = "import os, sys, time\nprint('old', os.environ.get('GPUQ_TRY', os.environ['GPUQ_LINK']), flush=True)\n"
    chain = "if os.environ['GPUQ_LINK'] == '1':\n    time.sleep(2)\n    sys.exit(85)\n"
    (work / "chain.py").write_text(program + chain)
    (work / "try.py").write_text(program + "time.sleep(1)\n")
    submit(person, work, "chain", "-t", "5m", "--link", "1m", "--restart-from-scratch", "python3", "chain.py")
    done = person.gpuq("sweep", "--detach", "-J", "sweep", "--workers", "1", "--over", "n=1,2,3", "python3", "try.py", "{n}",
                       cwd=work)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: "old" in person.gpuq("logs", "sweep/1").stdout, 30, "the first try")
    wait_for(lambda: "old" in person.gpuq("logs", "chain").stdout, 30, "the first link")
    for name in ("chain.py", "try.py"):
        (work / name).write_text("print('new')\n")
    assert ended(person, "chain") == 0
    assert "old 2\n" in person.gpuq("logs", "chain").stdout
    assert "new" not in person.gpuq("logs", "chain").stdout
    assert person.gpuq("wait", "sweep").returncode == 0
    code = shown(person, "sweep")["code"]
    assert code["dirty"] is not None and "try.py" in code["changed"], code
    assert "changed since: " in person.gpuq("show", "sweep").stdout
    assert [person.gpuq("logs", f"sweep/{n}").stdout.splitlines()[-1] for n in (1, 2, 3)] == ["old 1", "old 2", "old 3"]


def test_programs_libraries_and_links(person, work, release):
    """A compiled program, a script that it finds by its path, a link to a file of the tree."""
    source = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts("old"); fflush(stdout); return system("sh ./link.sh"); }\n'
    subprocess.run(["gcc", "-x", "c", "-o", work / "main", "-"], input=source, text=True, check=True)
    (work / "script.sh").write_text("echo old script\n")
    (work / "config.yaml").write_text("lr=3\n")
    (work / "link.sh").symlink_to("script.sh")
    submit(person, work, "binary", "./main")
    (work / "script.sh").write_text("echo new script\n")
    (work / "main").unlink()
    release()
    assert ended(person, "binary") == 0, person.gpuq("logs", "binary")
    assert person.gpuq("logs", "binary").stdout == "old\nold script\n"
    diff = person.gpuq("diff", "--commit", "binary").stdout
    assert "-lr=1\n+lr=3\n" in diff and "+++ b/script.sh" in diff
    assert shown(person, "binary")["code"]["dirty"] == ["config.yaml"]


@pytest.mark.timeout(1200)
def test_many_runs_edited_while_they_wait(person, work, release):
    count = of_soak(1000, 20)
    for number in range(count):
        (work / "many.py").write_text(f"print({number})\n")
        submit(person, work, f"many{number}", "-g", "1", "-t", "1m", "python3", "many.py")
    (work / "many.py").write_text("print('last')\n")
    release()
    assert person.gpuq("wait", *(f"many{number}" for number in range(count))).returncode == 0
    logs = [person.gpuq("logs", f"many{number}").stdout for number in range(count)]
    assert logs == [f"{number}\n" for number in range(count)]


def test_a_required_snapshot_that_cannot_be_stored_refuses(person, work):
    assert person.gpuq("ls").returncode == 0
    (person.state / "gpuq" / "snapshots").write_text("not a directory")
    done = person.gpuq("run", "-J", "refused", "--snapshot", "python3", "train.py", cwd=work)
    assert done.returncode != 0 and "--snapshot: " in done.stderr
    assert not any(run["name"] == "refused" for run in json.loads(person.gpuq("ls", "--all", "--json").stdout)["runs"])
    done = person.gpuq("run", "python3", "train.py", cwd=work)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("nbconvert") is None, reason="no package python3-nbconvert")
def test_a_notebook_is_executed_as_it_was(person, work, release):
    """Its cells import a package of the work tree and write a file; the executed copy is written beside it."""
    cells = ["from lib.model import NAME\nprint('old', NAME, open('data.csv').read().strip())", "open('beside.txt', 'w').write('written')"]
    notebook = {"nbformat": 4, "nbformat_minor": 4,
                "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                "cells": [{"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": cell} for cell in cells]}
    (work / "study.ipynb").write_text(json.dumps(notebook))
    if person.user is not None:
        shutil.chown(work / "study.ipynb", person.user.pw_name)
    submit(person, work, "study", "/usr/bin/python3", "-m", "nbconvert", "--to", "notebook", "--execute", "study.ipynb", "--output", "done")
    (work / "study.ipynb").write_text(json.dumps(notebook | {"cells": []}))
    edit(work)
    release()
    assert ended(person, "study") == 0, person.gpuq("logs", "study")
    (printed,) = json.loads((work / "done.ipynb").read_text())["cells"][0]["outputs"]
    assert "".join(printed["text"]) == "old model1 data2\n"
    assert (work / "beside.txt").read_text() == "written"
