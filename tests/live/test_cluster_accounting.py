# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster whose accounting database cannot start comes up without it, reports the reason in one line, and enables
accounting later."""
import glob
import json
import os
import signal

import pytest

from clusters import Person, command_of, is_running, run, running_cluster, wait_for

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

PLUGIN = (glob.glob("/usr/lib/*/slurm*/accounting_storage_mysql.so") or [""])[0]
# Output of slurmdbd 24.11 on Debian 13 with MariaDB's connector 11.8.
REFUSED = ("echo 'slurmdbd: error: mysql_query failed: 5027 Number of columns in result (=1)' >&2\n"
           "echo \"slurmdbd: fatal: select @var := concat('')\" >&2\nexit 1")
DEAF = "trap '' TERM; while :; do sleep 0.2; done"


def up(folder, *options, path=None, mount=None):
    """Runs `gpuq cluster up` with the directory `path` in front of PATH, and after running the shell command `mount` in
    its own mount namespace."""
    env = {**folder.env, **({"PATH": f"{path}:{folder.env['PATH']}"} if path else {})}
    words = [folder.binary, "cluster", "up", "--dir", str(folder.dir), *options]
    if mount:
        words = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *words]
    return run(words, env=env, user=folder.as_user, timeout=120)


@pytest.fixture
def stand_in(tmp_path):
    """Makes a directory with a program of this name that runs this shell script."""
    def make(name, script):
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return tmp_path / "bin"
    return make


def check_works_without(folder, done, cause):
    """Checks that the cluster is up, one line of stderr names the cause, and jobs run on its GPUs."""
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "without accounting" in line]
    assert len(lines) == 1 and cause in lines[0], done.stderr
    status = folder.status()
    assert status["up"] is True and status["accounting"] is False
    assert cause in status["accounting_failure"]
    assert cause in folder.cluster("status").stdout
    assert not [one for one in status["daemons"] if one["name"] in ("slurmdbd", "mariadbd")]
    assert folder.slurm("srun", "--gres=gpu:1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES") == "0\n"


@root_only
@pytest.mark.parametrize("mount, cause", [
    ("mount --bind /dev/null $(command -v slurmdbd)", "apt-get install slurmdbd"),
    ("mount --bind /dev/null $(command -v mariadbd)", "apt-get install mariadb-server-core"),
    (f"mount --bind /dev/null {PLUGIN}", "apt-get install slurm-wlm-mysql-plugin"),
    ("mkdir -p $DB.new && mount -t tmpfs -o size=256k none $DB.new", "make room"),
], ids=["no slurmdbd", "no mariadbd", "no plugin", "full disk"])
def test_it_comes_up_without(folder, mount, cause):
    done = up(folder, "--gpus", "2", mount=mount.replace("$DB", str(folder.dir / "db")))
    check_works_without(folder, done, cause)


@pytest.mark.parametrize("name, script, cause", [
    ("slurmdbd", REFUSED, "mysql_query failed: 5027"),
    ("slurmdbd", "exit 1", "slurmdbd failed"),
    ("slurmdbd", DEAF, "slurmdbd does not answer"),
    ("mariadbd", "echo '2026-11-25  8:52:29 0 [ERROR] InnoDB: no memory' >&2; exit 1", "InnoDB: no memory"),
    ("sacctmgr", "echo sacctmgr: error: nothing works; exit 1", "nothing works"),
], ids=["5027", "silent", "deaf", "mariadbd", "sacctmgr"])
def test_a_daemon_that_fails_is_quoted_in_one_line(folder, stand_in, name, script, cause):
    done = up(folder, "--gpus", "1", path=stand_in(name, script))
    check_works_without(folder, done, cause)
    assert "slurmdbd" not in map(command_of, folder.all_processes())


def test_a_damaged_database(folder):
    folder.up(gpus=1)
    folder.down()
    table_space = folder.dir / "db" / "ibdata1"
    kept = table_space.read_bytes()
    table_space.write_bytes(os.urandom(4096))
    check_works_without(folder, up(folder), "InnoDB")
    table_space.write_bytes(kept)
    done = up(folder)
    assert "accounting runs now" in done.stderr, done.stderr


@root_only
def test_a_database_that_may_not_be_read(plain_user):
    with running_cluster(nodes=1, gpus=1, as_user=plain_user) as cluster:
        cluster.down()
        os.chown(cluster.dir / "db", 0, 0)
        done = up(cluster)
        check_works_without(cluster, done, "mariadbd failed")
        os.chown(cluster.dir / "db", plain_user.pw_uid, plain_user.pw_gid)


def test_the_next_up_takes_it_up_and_runs_go_on(folder, stand_in, tmp_path):
    broken = stand_in("slurmdbd", REFUSED)
    assert up(folder, "--gpus", "1", path=broken).returncode == 0
    person = Person(folder, tmp_path, None)
    assert person.gpuq("run", "--detach", "--", "sleep", "600").returncode == 0
    wait_for(lambda: [job[1] for job in folder.squeue()] == ["RUNNING"], 30, "the run")
    # Commands that need accounting report so in one line; the others work.
    usage = person.gpuq("usage")
    assert usage.returncode == 120
    assert usage.stderr == "gpuq: this Slurm keeps no accounting (slurmdbd); `gpuq doctor` shows why\n"
    checks = {one["check"]: one for one in json.loads(person.gpuq("doctor", "--json").stdout)["checks"]}
    assert checks["accounting"]["level"] == "warning"
    assert "5027" in checks["accounting"]["text"]
    assert "gpuq cluster up" in checks["accounting"]["remedy"]
    for words in (["plan"], ["apply"]):
        done = person.gpuq("policy", *words, f"{os.path.dirname(__file__)}/../../policies/workstation.yaml")
        assert done.returncode == 120
        assert done.stderr.count("\n") == 1 and "keeps no accounting" in done.stderr, done.stderr
    # As long as it fails, `up` reports that the rest is up.
    again = up(folder, path=broken)
    assert again.returncode == 0 and "is up already" in again.stderr and "5027" in again.stderr
    done = up(folder)
    assert done.returncode == 0 and "accounting runs now" in done.stderr, done.stderr
    assert folder.status()["accounting"] is True and folder.status()["accounting_failure"] is None
    assert [job[1] for job in folder.squeue()] == ["RUNNING"]
    job = folder.squeue()[0][0]
    assert person.gpuq("stop", job).returncode == 0
    assert folder.accounted(job)["State"].startswith("CANCELLED")
    assert person.gpuq("usage").returncode == 0


def test_slurmdbd_that_does_not_come_back_leaves_the_cluster_up(folder, stand_in):
    folder.up(gpus=1)
    controller = folder.pid("slurmctld")
    folder.signal("slurmdbd", signal.SIGKILL)
    done = up(folder, path=stand_in("slurmdbd", REFUSED))
    assert done.returncode == 0 and "5027" in done.stderr, done.stderr
    assert is_running(controller)
    job = folder.slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 4").strip()
    wait_for(lambda: not folder.squeue(), 30, "the job's end")
    done = up(folder)
    assert "accounting runs again" in done.stderr, done.stderr
    assert folder.accounted(job)["ExitCode"] == "4:0"  # slurmctld had kept the record


def test_a_policy_is_not_brought_up_unenforced(folder, stand_in):
    policy = os.path.join(os.path.dirname(__file__), "../../policies/workstation.yaml")
    done = up(folder, "--gpus", "1", "--policy", policy, path=stand_in("slurmdbd", REFUSED))
    assert done.returncode == 125
    assert "policy can't be enforced without accounting" in done.stderr
    assert "5027" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not folder.daemons()
    # The failed attempt leaves no policy behind.
    assert up(folder, "--gpus", "1", path=stand_in("slurmdbd", REFUSED)).returncode == 0
    folder.down()
    assert up(folder, "--policy", policy).returncode == 0
