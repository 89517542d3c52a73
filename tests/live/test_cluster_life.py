# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq cluster` from up to down, through kills, reboots and interruptions."""
import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import time

import pytest

import clusters
from clusters import Cluster, Person, run, running_cluster, short_folder, wait_for

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def run_dirs_of(uid):
    return {entry.name for entry in os.scandir("/tmp")
            if entry.name.startswith("gpuq-cluster-") and entry.stat().st_uid == uid}


def test_is_ready_when_up_returns(folder):
    done = folder.up(gpus=4, nodes=2)  # tests/bench/cluster measures how long it takes
    assert "2 nodes with 4 GPUs each (k80, simulated)" in done.stderr
    assert folder.slurm("srun", "-N2", "hostname").split()  # commands work at once


def test_status_of_nothing_is_one(folder):
    done = folder.cluster("status", check=False)
    assert done.returncode == 1
    assert "gpuq cluster up" in done.stdout


def test_down_leaves_no_process_and_no_socket(folder):
    folder.up(gpus=2)
    runs_in = folder.state_value("run")[0]
    folder.slurm("sbatch", "-o", "/dev/null", "--gres=gpu:1", "--wrap",
                 "trap '' TERM; setsid sleep 600 & sleep 600")
    wait_for(lambda: len(folder.job_processes()) >= 3, 20, "the job's processes")
    assert stat.S_ISSOCK(os.stat(f"{runs_in}/munge.socket").st_mode)
    done = folder.down()
    assert "1 of its jobs cancelled" in done.stderr
    assert not folder.daemons()
    assert not os.path.exists(runs_in)
    assert folder.status()["up"] is False
    assert "no cluster is up" in folder.down().stderr


def test_accounting_and_job_ids_go_on_after_down_and_up(folder):
    folder.up(gpus=1)
    folder.slurm("srun", "true")
    folder.accounted(1)
    folder.down()
    folder.cluster("up")
    assert folder.status()["nodes"] == [{"name": "n0", "state": "idle", "gpus": 1}]
    folder.slurm("srun", "true")
    # Just after its start, slurmdbd lists nothing for some seconds; queries by job ID work.
    wait_for(lambda: [row["JobIDRaw"] for row in folder.sacct()] == ["1", "2"], 30, "both jobs")


def test_waiting_jobs_survive_down_and_up(folder):
    folder.up(gpus=1)
    for seconds in (600, 0):
        folder.slurm("sbatch", "-o", "/dev/null", "--gres=gpu:1", "--wrap", f"sleep {seconds}")
    wait_for(lambda: [job[1] for job in folder.squeue()] == ["PENDING", "RUNNING"], 20,
             "one job to run")
    folder.down()
    folder.cluster("up")
    assert folder.accounted(1)["State"].startswith("CANCELLED")
    assert folder.accounted(2)["State"] == "COMPLETED"


def test_up_after_everything_was_killed_goes_on(folder):
    folder.up(gpus=1)
    folder.slurm("srun", "true")
    folder.accounted(1)
    old_run = folder.state_value("run")[0]
    for pid in folder.daemons():
        with contextlib.suppress(ProcessLookupError):  # some end with their parent
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not folder.daemons(), 10, "the end of all daemons")
    assert folder.status()["up"] is False
    folder.cluster("up")
    assert not os.path.exists(old_run)
    folder.slurm("srun", "true")
    assert folder.accounted(2)["State"] == "COMPLETED"
    assert folder.accounted(1)["State"] == "COMPLETED"


def test_a_stale_pid_is_not_killed(folder):
    """A pid in the state file that now belongs to another process."""
    folder.up(gpus=1)
    folder.down()
    with subprocess.Popen(["sleep", "600"]) as bystander:
        try:
            state = folder.dir / "cluster.state"
            text = state.read_text().replace("\nup no\n", "\nup yes\n")
            state.write_text(text + f"daemon slurmctld {bystander.pid} 1\n")
            assert folder.status()["up"] is False
            folder.cluster("up")
            folder.down()
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_dead_daemon_is_started_again_and_jobs_go_on(folder):
    folder.up(gpus=1)
    folder.slurm("sbatch", "-o", "/dev/null", "--gres=gpu:1", "--wrap", "sleep 600")
    wait_for(lambda: folder.squeue("-t", "RUNNING"), 20, "a running job")
    # A killed slurmctld knows only the jobs that it has saved, which happens every five seconds.
    jobs, begun = folder.dir / "state" / "job_state", time.time()
    wait_for(lambda: jobs.exists() and jobs.stat().st_mtime > begun, 20, "a saved state")
    for daemon in ("slurmctld", "slurmdbd", "munged", "mariadbd", "slurmd-n0"):
        folder.signal(daemon)
        assert folder.status()["up"] is False
        done = folder.repair()
        assert f"{daemon} had stopped and was restarted" in done.stderr
        assert folder.status()["up"] is True
    assert folder.squeue("-t", "RUNNING")
    folder.slurm("scancel", "1")
    folder.wait_until_idle()


def test_a_taken_port_is_replaced(folder):
    folder.up(gpus=1)
    folder.down()
    port = int(folder.state_value("controller-port")[0])
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", port))
        taker.listen()
        folder.cluster("up")
        assert folder.state_value("controller-port") != [str(port)]
        assert folder.slurm("srun", "true") == ""
        folder.down()


def test_an_interrupted_start_is_taken_back(folder):
    with subprocess.Popen([folder.binary, "cluster", "up", "--dir", str(folder.dir), "--gpus", "1"],
                          env=folder.env, stderr=subprocess.PIPE, text=True) as child:
        wait_for(lambda: [pid for pid in folder.daemons()
                          if clusters.command_of(pid) == "slurmdbd"], 20, "a start on its way")
        child.send_signal(signal.SIGINT)
        assert child.wait(30) != 0
    assert not folder.daemons()
    folder.up(gpus=1)  # nothing is broken


def test_a_killed_start_is_cleaned_up_by_the_next(folder):
    with subprocess.Popen([folder.binary, "cluster", "up", "--dir", str(folder.dir), "--gpus", "1"],
                          env=folder.env, stderr=subprocess.PIPE, text=True) as child:
        wait_for(lambda: [pid for pid in folder.daemons()
                          if clusters.command_of(pid) == "slurmdbd"], 20, "a start on its way")
        child.kill()
        child.wait(10)
    orphans = folder.daemons()
    assert orphans
    folder.up(gpus=1)
    assert not [pid for pid in orphans if clusters.is_running(pid)]
    assert folder.slurm("srun", "true") == ""


def test_many_gpus_on_a_node(folder):
    folder.up(gpus=70)
    shown = folder.slurm("srun", "--gres=gpu:70", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert shown.strip().split(",") == [str(index) for index in range(70)]


def test_another_name_for_old_accounting_is_refused(folder):
    folder.up(gpus=1)
    folder.down()
    done = folder.cluster("up", "--name", "other", check=False)
    assert done.returncode == 2
    assert "--purge" in done.stderr
    folder.down("--purge")
    assert not folder.dir.exists()
    folder.up(gpus=1, options=["--name", "other"])
    assert "ClusterName = other" in re.sub(r"\s+=\s+", " = ", folder.scontrol("show", "config"))


def test_purge_keeps_what_is_not_the_clusters(folder):
    folder.up(gpus=1)
    (folder.dir / "precious").write_text("mine")
    folder.down("--purge")
    assert [entry.name for entry in folder.dir.iterdir()] == ["precious"]


@pytest.mark.parametrize("words", [["up", "--policy", str(clusters.ROOT / "policies" / "centre.yaml"), "--gpus", "1"],
                                   ["down"], ["down", "--purge"]])
def test_a_strange_directory_stays_as_it_was(folder, words):
    """`up` is refused: a policy defines the nodes itself."""
    folder.dir.mkdir()
    (folder.dir / "precious").write_text("mine")
    done = folder.cluster(*words, check=False)
    assert done.returncode == (2 if words[0] == "up" else 0), done.stderr
    assert "removed" not in done.stderr
    assert [entry.name for entry in folder.dir.iterdir()] == ["precious"]


@root_only
def test_ordinary_user_with_a_private_home(plain_user):
    """The default directory, in a home that no other user may traverse."""
    with short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        os.chmod(home, 0o700)
        person = Person(Cluster(home / ".local/state/gpuq/cluster"), home, plain_user)
        del person.env["SLURM_CONF"], person.env["XDG_STATE_HOME"]
        try:
            done = person.gpuq("cluster", "up", "--gpus", "2", "--model", "k80")
            assert done.returncode == 0, done.stderr
            conf = person.gpuq("cluster", "env").stdout.strip().partition("=")[2].strip("'")
            assert conf == f"{home}/.local/state/gpuq/cluster/slurm.conf"
            env = {**person.env, "SLURM_CONF": conf}
            answer = run(["srun", "--gres=gpu:1", "id", "-un"], env=env, user=plain_user)
            assert answer.stdout == f"{plain_user.pw_name}\n", answer.stderr
        finally:
            done = person.gpuq("cluster", "down", "--purge")
        assert done.returncode == 0
        assert not run_dirs_of(plain_user.pw_uid)


@root_only
def test_cgroups_confine_devices_and_memory():
    options = ["--cgroups", "on", "--node-name", f"cg{os.getpid()}-"]
    with short_folder() as top:
        probe = Cluster(top / "c")
        done = probe.cluster("up", "--gpus", "2", *options, check=False)
        probe.cluster("down", "--purge", check=False)
        if "can not use the cgroups" in done.stderr:
            pytest.skip("no usable cgroups here")
    with running_cluster(nodes=1, gpus=2, options=options) as cluster:
        opened = cluster.slurm("srun", "--gres=gpu:1", "sh", "-c",
                               "for i in 0 1; do (: </dev/tty$i) && echo $i; done 2>/dev/null; true")
        assert opened.split() == ["0"]
        hungry = run(["srun", "--mem=60", "python3", "-c", "x = b'x' * 400_000_000"],
                     env=cluster.env)
        assert hungry.returncode != 0
        assert "oom" in hungry.stderr.lower()
        job = cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap",
                            "setsid sleep 600 & sleep 600").strip()
        wait_for(lambda: len(cluster.job_processes()) >= 3, 20, "the job")
        cluster.slurm("scancel", job)
        cluster.wait_until_idle()
        # Slurm signals only the children of slurmstepd: a run is not left to KILL, after KillWait (30 s).
        with short_folder() as home:
            person = Person(cluster, home)
            assert person.gpuq("run", "--detach", "--", "sleep", "600").returncode == 0
            began = time.monotonic()
            cluster.slurm("scancel", "-n", "sleep")
            cluster.wait_until_idle()
            assert time.monotonic() - began < 15
            wait_for(lambda: "cancelled" in person.gpuq("ls", "--all").stdout, 10, "the end of the run")
    assert not [path for path in os.popen("find /sys/fs/cgroup -name 'slurm_cg*'").read().split()
                if f"slurm_cg{os.getpid()}-" in path]


@root_only
@pytest.mark.parametrize("hosts", ["127.0.0.1 localhost\n127.0.1.1 odd-name\n", "127.0.0.1 localhost\n"])
def test_daemons_stay_on_loopback_whatever_the_hosts_name_is(folder, hosts, tmp_path):
    """With the host name as Debian configures it (127.0.1.1), and with an unknown name."""
    (tmp_path / "hosts").write_text(hosts)
    script = '''
        mount --bind "$2" /etc/hosts && hostname odd-name && "$0" cluster up --gpus 1 --dir "$1" &&
        ss -Hltnp && exec srun --gres=gpu:1 hostname'''
    done = run(["unshare", "--mount", "--uts", "sh", "-c", script, folder.binary, str(folder.dir),
                str(tmp_path / "hosts")], env=folder.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "odd-name"  # jobs see the real name
    ours = [line.split()[3] for line in done.stdout.splitlines()
            if any(f"pid={pid}," in line for pid in folder.daemons())]
    assert len(ours) == 3  # slurmctld, slurmdbd, slurmd
    assert all(address.startswith("127.0.0.1:") for address in ours), ours
