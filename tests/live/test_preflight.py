# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that the login host can detect are refused on it at once: no job, no run on disk."""
import os
import shutil

import pytest

from clusters import run
from runs import PYTHON, nothing_left, records, the_run

CLUSTER = dict(nodes=1, gpus=2, model="k80", lines=["KillWait=2"])


@pytest.fixture(autouse=True)
def clean(person):
    yield
    nothing_left(person)


def job_requests(person):
    """Number of job requests to the controller, of both kinds."""
    counts = person.cluster.rpcs()
    return (counts.get("REQUEST_SUBMIT_BATCH_JOB", 0), counts.get("REQUEST_RESOURCE_ALLOCATION", 0))


def put(path, text="", mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


@pytest.fixture
def files(person):
    put(person.home / "script", "#!/bin/sh\n", 0o644)
    put(person.home / "script.sh", "#!/bin/sh\n", 0o644)
    put(person.home / "dos", "#!/bin/sh\r\necho hi\r\n")
    put(person.home / "moved", f"#!{person.home}/gone/bin/python3\n")
    put(person.home / "good", "#!/bin/sh\necho good\n")
    (person.home / "folder").mkdir()
    return person.home


WRONG = [(["./nosuch.sh"], 127), (["nosuch.py"], 127), (["nosuch.sh"], 127), (["./script"], 126),
         (["script.sh"], 126), (["./folder"], 126), (["./dos"], 127), (["./moved"], 127),
         ([PYTHON, "nosuch.py"], 127), (["./good/x"], 127)]
WAYS = [["run"], ["run", "--detach"], ["run", "--dry-run"], ["run", "-N", "1", "--module", "x"],
        ["rehearse"]]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_a_program_that_can_not_start_is_refused_before_slurm_is_asked(person, files, way):
    before = job_requests(person)
    for words, status in WRONG:
        if "--module" in way and "/" not in words[0]:
            continue  # a module may provide it
        done = person.gpuq(*way, *words)
        assert (done.returncode, done.stdout) == (status, ""), (words, done)
        assert len(done.stderr.splitlines()) == 1 and words[-1] in done.stderr
    assert job_requests(person) == before
    assert records(person) == []


def test_a_shell_that_is_not_there_is_refused(person):
    done = person.gpuq("shell", "--detach", env={"SHELL": str(person.home / "bin/fish")})
    assert done.returncode == 127 and "bin/fish: not found" in done.stderr
    assert records(person) == []


def test_a_working_directory_that_is_gone_is_refused(person):
    place = person.home / "place"
    place.mkdir()
    line = f'cd {place} && rmdir {place} && "$gpuq" run --detach true'
    done = run(["sh", "-c", line], env={**person.env, "gpuq": person.cluster.binary},
               user=person.user, cwd=person.home)
    assert done.returncode == 2 and "working directory is gone" in done.stderr
    assert records(person) == []


def test_what_a_container_a_run_before_or_the_node_may_have_is_not_refused(person, files):
    put(person.home / "bin/apptainer", "#!/bin/sh\nshift 3\necho inside: $*\n")
    env = {"PATH": f"{person.home}/bin:{person.env['PATH']}"}
    assert person.gpuq("run", "--container", "i", "./in-image", env=env).stdout == "inside: ./in-image\n"
    first = person.gpuq("run", "--detach", "-J", "build", "sh", "-c",
                        "sleep 1; printf '#!/bin/sh\\necho built\\n' >made; chmod +x made")
    assert first.returncode == 0, first.stderr
    done = person.gpuq("run", "--after", "build", "./made")
    assert (done.returncode, done.stdout) == (0, "built\n"), done.stderr


def test_a_run_whose_program_is_gone_is_not_resumed(person):
    work = person.home / "work"
    put(work / "train", "#!/bin/sh\nexit 3\n")
    done = person.gpuq("run", "--restart-from-scratch", "-t", "10m", "./train", cwd=work)
    assert done.returncode == 3, done.stderr
    before = job_requests(person)
    (work / "train").unlink()
    refused = person.gpuq("resume", "last")
    assert refused.returncode == 127 and "./train: not found" in refused.stderr, refused
    shutil.rmtree(work)
    refused = person.gpuq("resume", "last")
    assert refused.returncode == 2 and f"its working directory {work} is gone" in refused.stderr
    assert job_requests(person) == before
    assert the_run(person).ended["status"] == 3
    assert not os.listdir(person.state / "gpuq/index/active")


def test_files_and_runs_that_options_name_are_looked_for(person):
    before = job_requests(person)
    for words, reason in ((["--keytab", "nosuch.keytab"], f"--keytab: {person.home}/nosuch.keytab: not found"),
                          (["--after", "nosuch"], "nosuch"),
                          (["--container", "./nosuch.sif"], "--container ./nosuch.sif: not found"),
                          (["--checkpoint", "*.pt", "--valid", "./nosuch {}"], "--valid: ./nosuch: not found"),
                          (["--conda", f"{person.home}/gone"], f"--conda {person.home}/gone: not found")):
        for way in (["run"], ["run", "--detach"], ["run", "--dry-run"]):
            done = person.gpuq(*way, *words, "true")
            assert (done.returncode, done.stdout) == (2, "") and reason in done.stderr, (way, done)
    swept = person.gpuq("sweep", "--over", "n=1,2", "--propose", "./nosuch", "true", "{n}")
    assert swept.returncode == 2 and "--propose: ./nosuch: not found" in swept.stderr
    piped = run(["bash", "-c", '"$gpuq" run --detach bash <(echo echo hi)'],
                env={**person.env, "gpuq": person.cluster.binary}, user=person.user, cwd=person.home)
    assert piped.returncode == 2 and "a pipe of this shell" in piped.stderr
    assert job_requests(person) == before
    assert records(person) == []


def test_an_executable_python_file_without_an_interpreter_is_run_by_python(person):
    put(person.home / "train.py", "import sys\nprint(sys.argv[1:])\n")
    done = person.gpuq("-Q", "run", "train.py", "x")
    assert (done.returncode, done.stdout) == (0, "['x']\n"), done.stderr


def test_options_of_sbatch_that_a_run_can_not_have_never_reach_it(person):
    before = job_requests(person)
    for text in ("--clusters=foo", "-Mfoo", "--clus foo", "-HW", "--export=NONE", "-d singleton"):
        done = person.gpuq("run", f"--slurm={text}", "true")
        assert done.returncode == 2 and "is not possible in a run" in done.stderr, (text, done)
    assert job_requests(person) == before
    assert records(person) == []
