# SPDX-License-Identifier: GPL-2.0-or-later
"""doctor, clean and extend on a real Slurm."""
import io
import json
import os
import re
import shutil
import tarfile
import time

import pytest

from clusters import Person, running_cluster, short_folder, wait_for
from runs import records, terminal, the_run

CLUSTER = dict(nodes=2, gpus=4, model="k80")


def checks(done):
    """check -> level and text of its last line."""
    return {one["check"]: one for one in json.loads(done.stdout)["checks"]}


# doctor

def test_a_cluster_that_is_well(person):
    done = person.gpuq("doctor", "--json")
    found = checks(done)
    assert done.returncode == 0, done.stdout
    levels = {name: found[name]["level"] for name in
              ("slurm", "version", "clock", "accounting", "queue", "nodes", "srun", "supervisor",
               "configuration", "state-folder")}
    assert set(levels.values()) == {"ok"}, levels
    assert found["nodes-see-folder"]["level"] is None  # a local disk: no node was queried


def test_a_node_is_asked(person, cluster):
    done = person.gpuq("doctor", "--nodes", "--json")
    found = checks(done)
    for name in ("nodes-see-folder", "nodes-see-supervisor", "nodes-submit", "node-clock"):
        assert found[name]["level"] == "ok", found[name]
    cluster.wait_until_idle()
    assert not list((person.state / "gpuq").glob("probe-*"))


def test_a_controller_that_hangs_is_said_in_time(person, cluster):
    with cluster.stopped("slurmctld"):
        begin = time.monotonic()
        done = person.gpuq("doctor", "--json", timeout=60)
        assert time.monotonic() - begin < 30
    found = checks(done)
    assert done.returncode == 1
    assert found["slurm"]["level"] == "problem" and found["slurm"]["remedy"]
    assert found["queue"]["level"] is None
    assert found["state-folder"]["level"] == "ok"


def test_accounting_that_is_down_is_a_problem(person, cluster):
    with cluster.stopped("slurmdbd"):
        done = person.gpuq("doctor", "--json", timeout=60)
    assert done.returncode == 1
    assert checks(done)["accounting"]["level"] == "problem"


def test_a_configuration_that_slurm_can_not_use_hides_nothing_else(person, tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text("NoSuchKey=1\n")
    done = person.gpuq("doctor", "--json", env={"SLURM_CONF": str(conf)})
    found = checks(done)
    assert done.returncode == 1 and done.stderr == ""
    assert found["slurm"]["level"] == "problem" and "NoSuchKey" in found["slurm"]["text"]
    assert found["state-folder"]["level"] == "ok"


def test_a_wrong_settings_file_is_named_with_its_line(person):
    config = person.home / "config" / "gpuq" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("keep: 30d\nstate-dir: /x\n")
    done = person.gpuq("doctor", "--json")
    assert done.returncode == 1
    assert "config.yaml:2:1" in checks(done)["configuration"]["text"]


# clean

def make_old(record):
    journal = record.dir / "link-1" / "journal.jsonl"
    journal.write_text(re.sub(r'("at":")20\d\d', r"\g<1>2001", journal.read_text()))


def test_an_active_run_stays_and_an_old_one_goes_with_its_index(person, cluster):
    assert person.gpuq("run", "-g", "0", "-t", "1", "-Q", "--", "true").returncode == 0
    old = the_run(person)
    make_old(old)
    precious = person.home / "precious"
    precious.write_text("mine")
    (old.dir / "checkpoints").mkdir(exist_ok=True)
    (old.dir / "checkpoints" / "link").symlink_to(precious)
    job = old.job
    assert person.gpuq("run", "-g", "0", "-t", "1", "--detach", "sleep", "60").returncode == 0
    active = next(one for one in records(person) if one.key != old.key)
    wait_for(lambda: active.event("program_started"), 30, "a program, which records its end")
    done = person.gpuq("clean", "--keep", "1d,1M", "--dry-run")
    assert str(job) in done.stdout and old.dir.exists()
    assert person.gpuq("clean", "--keep", "1d").returncode == 2  # no user to ask
    done = person.gpuq("clean", "--keep", "1d", "--yes")
    assert done.returncode == 0, done.stderr
    assert not old.dir.exists() and active.dir.exists()
    assert precious.read_text() == "mine"
    assert not (person.state / "gpuq" / "index" / "jobs" / "local" / str(job)).exists()
    assert person.gpuq("logs", job).returncode == 2
    assert person.gpuq("stop").returncode == 0
    active.wait_for_end()
    cluster.wait_until_idle()


@pytest.mark.parametrize("reply, gone", [("y\r", True), ("n\r", False), ("\r", False), ("\x04", False)])
def test_on_a_terminal_clean_asks_first(person, reply, gone):
    assert person.gpuq("run", "-g", "0", "-t", "1", "-Q", "--", "true").returncode == 0
    record = the_run(person)
    make_old(record)
    with terminal(person, "clean") as screen:
        screen.wait_for("remove 1 run")
        screen.wait_for("? y/n ")
        assert str(record.job) in screen.screen.decode() and record.dir.exists()
        screen.type(reply)
        assert screen.status() == 0
    assert record.dir.exists() != gone


# report

def test_a_report_has_no_secret_of_the_run(person):
    secrets = {"LAB_TOKEN": "planted-by-name", "OTHER": "hf_plantedplantedplanted"}
    done = person.gpuq("run", "-g", "0", "-t", "1", "-Q", "--", "sh", "-c",
                       "echo said $LAB_TOKEN; echo $OTHER >&2; exit 3", env=secrets)
    assert done.returncode == 3 and "planted-by-name" in done.stdout
    done = person.gpuq("report", "-o", person.home / "r.tar", "last")
    assert done.returncode == 0, done.stderr
    with tarfile.open(person.home / "r.tar") as archive:
        texts = {one.name.split("/", 1)[1]: archive.extractfile(one).read().decode()
                 for one in archive.getmembers()}
    assert {"run.json", "slurm.json", "doctor.json", "link-1/out.log"} <= set(texts)
    assert texts["link-1/out.log"] == "said [removed]\n"
    assert json.loads(texts["slurm.json"])["job"]["id"] == the_run(person).job
    # Into a pipe, but never onto a terminal.
    piped = person.gpuq("report", "-o", "-", "last", text=False)
    assert piped.returncode == 0, piped.stderr
    with tarfile.open(fileobj=io.BytesIO(piped.stdout)) as archive:
        assert any(name.endswith("/run.json") for name in archive.getnames())
    assert not (person.home / "-").exists()
    # The command line names the variables and must contain only the names.
    assert not [name for name, text in texts.items() if "planted" in text]


# extend

def test_a_program_saves_when_it_is_told_and_goes_on(person):
    person.gpuq("run", "--detach", "-J", "saves", "--", "sh", "-c",
                'echo begun; until [ -e "$GPUQ_SAVE_FILE" ]; do sleep 0.1; done; rm "$GPUQ_SAVE_FILE"; echo saved')
    wait_for(lambda: "begun" in person.gpuq("logs", "saves").stdout, 20, "its first line")
    told = person.gpuq("save", "saves")
    assert told.returncode == 0 and "asked to save and continue" in told.stderr
    record = the_run(person)
    assert record.wait_for_end()["status"] == 0
    assert person.gpuq("logs", "saves").stdout == "begun\nsaved\n"
    late = person.gpuq("save", "saves")
    assert late.returncode == 121 and "is not running" in late.stderr


def test_wait_returns_with_the_status_of_runs_and_plain_jobs(cluster, person):
    for name, status, seconds in (("first", 3, 2), ("second", 0, 4)):
        done = person.gpuq("run", "--detach", "-J", name, "--", "sh", "-c", f"sleep {seconds}; exit {status}")
        assert done.returncode == 0, done.stderr
    job = cluster.slurm("sbatch", "--parsable", "-J", "plain", "-o", "/dev/null", "--array=1-2", "--wrap",
                        "sleep 1; exit $((SLURM_ARRAY_TASK_ID + 4))").strip()
    any_of = person.gpuq("wait", "--any", "second", "first", timeout=60)
    assert any_of.returncode == 3 and "(first)" in any_of.stderr and "(second)" not in any_of.stderr
    both = person.gpuq("wait", "second", "first", timeout=60)
    assert (both.returncode, both.stdout) == (3, "")
    assert person.gpuq("wait", "second").returncode == 0
    array = person.gpuq("wait", job, timeout=90)
    assert array.returncode in (5, 6), array
    assert array.stderr.count("job ") == 2, "one line for each part"
    assert person.gpuq("wait", "nosuch").returncode == 2


def test_a_run_is_started_again_with_its_request_and_other_words(cluster, person):
    work = person.home / "work"
    work.mkdir()
    (work / "show.py").write_text("import os, sys\n"
                                  "print(sys.argv[1:], os.getcwd(), os.environ['PWD'], os.environ['PAINT_KEY'])\n"
                                  "sys.exit(int(os.environ.get('STATUS', 0)))\n")
    first = person.gpuq("run", "-J", "paint", "-t", "7m", "--mem", "64M", "--env", "PAINT_KEY=blue17", "show.py",
                        "--lr", "1", cwd=work, env={"PWD": str(work)})
    assert (first.returncode, first.stdout) == (0, f"['--lr', '1'] {work} {work} blue17\n"), first
    again = person.gpuq("again", "paint")
    assert (again.returncode, again.stdout) == (0, first.stdout), again
    old, new = (record.run["request"] for record in records(person))
    assert old == new
    other = person.gpuq("again", "-J", "other", "last", "--env", "STATUS=5", "--", "two words", "", "it's", "ü\n")
    expected = ["two words", "", "it's", "ü\n"]
    assert (other.returncode, other.stdout) == (5, f"{expected!r} {work} {work} blue17\n"), other
    late = person.gpuq("again", "other", "--program", "--detach", "--", "sh", "-c", "pwd; exit 3")
    assert late.returncode == 0 and "blue17" not in late.stderr, late
    assert person.gpuq("wait", "other", timeout=60).returncode == 3
    assert person.gpuq("logs", "other").stdout == f"{work}\n"
    dry = person.gpuq("again", "--dry-run", "paint")
    assert dry.returncode == 0 and "PAINT_KEY='[removed]'" in dry.stdout and "blue17" not in dry.stdout
    job = cluster.slurm("sbatch", "--parsable", "-J", "plain", "-o", "/dev/null", "--wrap", "true").strip()
    plain = person.gpuq("again", job)
    assert plain.returncode == 2 and "is a plain Slurm job" in plain.stderr
    shutil.rmtree(work)
    gone = person.gpuq("again", "paint")
    assert gone.returncode == 2 and f"its working directory {work} is gone" in gone.stderr
    assert len(records(person)) == 4


def test_a_waiting_run_gets_more_time_and_a_running_one_its_words(plain_user):
    """As an ordinary user if one exists: the user who runs the controller may do anything."""
    is_other = plain_user.pw_uid != os.geteuid()
    with running_cluster(nodes=1, gpus=1, model="k80") as cluster, short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        person = Person(cluster, home, plain_user)
        assert person.gpuq("run", "-t", "10", "--detach", "sleep", "60").returncode == 0
        running = the_run(person)
        wait_for(lambda: running.event("program_started"), 20)
        assert person.gpuq("run", "-t", "10", "-J", "later", "--detach", "true").returncode == 0
        waiting = next(one for one in records(person) if one.key != running.key)
        before = waiting.dir.joinpath("run.json").read_bytes()

        done = person.gpuq("extend", "later", "20m")
        assert done.returncode == 0 and "30 min" in done.stderr, done.stderr
        assert cluster.job(waiting.job)["TimeLimit"] == "00:30:00"
        assert waiting.dir.joinpath("run.json").read_bytes() == before
        listed = json.loads(person.gpuq("ls", "--json").stdout)["runs"]
        assert {one["name"]: one["time_limit"] for one in listed if one["kind"] == "run"} == {"later": 1800, "sleep": 600}

        done = person.gpuq("extend", "later", "300h")
        assert done.returncode == 121 and "no queue takes" in done.stderr, done.stderr
        assert cluster.job(waiting.job)["TimeLimit"] == "00:30:00"

        if is_other:
            done = person.gpuq("extend", running.job, "20m")
            assert done.returncode == 121, done.stderr
            assert f"scontrol update JobId={running.job} TimeLimit=0-00:30:00" in done.stderr
            assert cluster.job(running.job)["TimeLimit"] == "00:10:00"
        for one in (waiting, running):
            assert person.gpuq("stop", one.job).returncode == 0
        cluster.wait_until_idle()
