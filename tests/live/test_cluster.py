# SPDX-License-Identifier: GPL-2.0-or-later
"""Properties of a cluster made by `gpuq cluster up`, and its reported status."""
import os
import subprocess

import pytest

import clusters
from clusters import run, wait_for

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

CLUSTER = dict(nodes=2, gpus=4, model="k80")


def test_jobs_get_their_gpus_by_index(cluster):
    show = "echo $CUDA_VISIBLE_DEVICES"
    assert cluster.slurm("srun", "--gres=gpu:2", "sh", "-c", show) == "0,1\n"
    assert cluster.slurm("srun", "--gres=gpu:k80:4", "sh", "-c", show) == "0,1,2,3\n"
    refused = run(["srun", "--gres=gpu:5", "true"], env=cluster.env, user=cluster.as_user)
    assert refused.returncode != 0
    assert "not available" in refused.stderr


def test_every_gpu_of_a_node_can_be_used_at_once(cluster):
    for _ in range(8):
        cluster.slurm("sbatch", "-o", "/dev/null", "--gres=gpu:1", "--wrap", "exec sleep 60")
    wait_for(lambda: [job[1] for job in cluster.squeue()].count("RUNNING") == 8, 30, "8 jobs")
    cluster.slurm("scancel", "-t", "RUNNING")
    cluster.wait_until_idle()


def test_partitions_have_their_times(cluster):
    text = cluster.slurm("sinfo", "-h", "-o", "%P %l %L")
    assert sorted(text.split("\n")[:2]) == ["calibration* 2:00:00 2:00:00",
                                            "gpu 2-00:00:00 1-00:00:00"]


def test_accounting_knows_gpus_and_comments(cluster):
    job = cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--gres=gpu:2",
                        "--comment=hello", "--wrap", "exit 3").strip()
    row = cluster.accounted(job, fields=("AllocTRES", "Comment", "ExitCode", "Account"))
    assert "gres/gpu=2" in row["AllocTRES"]
    assert row["Comment"] == "hello"
    assert row["ExitCode"] == "3:0"


def test_nothing_listens_beyond_loopback(cluster):
    listed = subprocess.run(["ss", "-Hltnp"], text=True, capture_output=True, check=True).stdout
    ours = [line for line in listed.splitlines()
            if any(f"pid={pid}," in line for pid in cluster.daemons())]
    assert len(ours) >= 4  # slurmctld, slurmdbd, two slurmd
    assert all(line.split()[3].startswith("127.0.0.1:") for line in ours), ours


def test_up_twice_says_so_and_keeps_the_daemons(cluster):
    before = cluster.status()["daemons"]
    done = cluster.cluster("up")
    assert "is up already" in done.stderr
    assert cluster.status()["daemons"] == before


def test_up_with_other_options_is_refused(cluster):
    done = cluster.cluster("up", "--gpus", "1", check=False)
    assert done.returncode == 2
    assert "gpuq cluster down" in done.stderr


def test_status_and_env(cluster):
    status = cluster.status()
    assert status["up"] is True
    assert [node["name"] for node in status["nodes"]] == ["n0", "n1"]
    assert all(one["running"] for one in status["daemons"])
    shell = run(["sh", "-c", 'eval "$("$0" cluster env --dir "$1")"; echo "$SLURM_CONF"',
                 cluster.binary, str(cluster.dir)], env=clusters.plain_environment(),
                user=cluster.as_user)
    assert shell.stdout == f"{cluster.conf}\n"


def test_two_clusters_at_once(cluster, folder):
    folder.up(gpus=1, nodes=1)
    assert folder.slurm("sinfo", "-h", "-N", "-o", "%N", "-p", "gpu").split() == ["n0"]
    assert cluster.slurm("sinfo", "-h", "-N", "-o", "%N", "-p", "gpu").split() == ["n0", "n1"]
    folder.down()
    assert cluster.status()["up"] is True


@root_only
def test_root_runs_jobs_of_others_under_their_own_uid(cluster, plain_user):
    cluster.cluster("up")  # users created after the start get an account at the next one
    assert cluster.slurm("srun", "id", "-u", user=plain_user) == f"{plain_user.pw_uid}\n"
    job = cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true",
                        user=plain_user).strip()
    assert cluster.accounted(job, fields=("User", "State"))["User"] == plain_user.pw_name
    key = run(["cat", f"{cluster.state_value('run')[0]}/private/munge.key"], env=cluster.env,
              user=plain_user)
    assert key.returncode != 0
