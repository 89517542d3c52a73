# SPDX-License-Identifier: GPL-2.0-or-later
"""Refusals of `gpuq cluster up`: a helpful message, and no leftovers."""
import os

import pytest

import clusters
from clusters import Cluster, run, short_folder

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_an_option_of_another_action():
    with short_folder() as folder:
        for words in (["down", "--gpus", "2"], ["status", "--purge"], ["env", "--model", "k80"]):
            done = Cluster(folder / "c").cluster(*words, check=False)
            assert done.returncode == 2
            assert f"{words[1]} is an option of gpuq cluster" in done.stderr


def test_a_daemon_that_dies_at_start_is_quoted_and_nothing_is_left(folder):
    done = folder.cluster("up", "--gpus", "1", "--slurm-conf", "SchedulerType=sched/nosuch",
                          check=False)
    assert done.returncode == 125
    assert "did not start" in done.stderr
    assert "nosuch" in done.stderr  # slurmctld's own message
    assert not folder.daemons()
    assert not os.path.exists(folder.state_value("run")[0])


@pytest.mark.parametrize("words, sentence", [
    (["--gpus", "-1"], "-1"),
    (["--gpus", "99999"], "--gpus 99999"),
    (["--gpus", "four"], "gpus"),
    (["--gpus", "1", "--nodes", "0"], "--nodes 0"),
    (["--gpus", "1", "--model", "k80;rm"], "--model"),
    (["--gpus", "1", "--name", "a b"], "--name"),
    (["--gpus", "1", "--nosuch"], "nosuch"),
])
def test_bad_options_are_refused_before_anything_starts(folder, words, sentence):
    done = folder.cluster("up", *words, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not folder.daemons()


SITES_CONF = "NodeName=a[1-2] Gres=gpu:k80:1\nPartitionName=p Nodes=ALL\n"


@pytest.mark.parametrize("conf, words, sentence", [
    (SITES_CONF, ["--gpus", "1"], "leave out --policy, --gpus"),
    ("PartitionName=p\n", [], "no NodeName"),
    ("include nodes.conf\n" + SITES_CONF, [], "included file"),
    ("JobSubmitPlugins=lua\n" + SITES_CONF, [], "job_submit.lua"),
])
def test_a_slurm_conf_that_can_not_be_reproduced_is_refused(folder, tmp_path, conf, words, sentence):
    file = tmp_path / "site.conf"
    file.write_text(conf)
    done = folder.cluster("up", "--slurm-conf-file", str(file), *words, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not folder.daemons()


def test_no_gpus_here(folder):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has GPUs")
    done = folder.cluster("up", check=False)
    assert done.returncode == 2
    assert "--gpus 4" in done.stderr


def test_a_path_that_slurm_can_not_hold_is_refused():
    with short_folder() as top:
        cluster = Cluster(top / "with blank")
        done = cluster.cluster("up", "--gpus", "1", check=False)
        assert done.returncode == 2
        assert "--dir" in done.stderr


@root_only
def test_missing_program_names_its_package(folder):
    """slurmctld is hidden in a private mount namespace."""
    done = run(["unshare", "-m", "sh", "-c",
                'mount --bind /dev/null $(readlink -f $(command -v slurmctld)) && exec "$0" cluster up --gpus 1 --dir "$1"',
                folder.binary, str(folder.dir)], env=folder.env)
    assert done.returncode == 127
    assert "apt-get install slurmctld" in done.stderr


@root_only
def test_full_disk_is_a_sentence():
    with short_folder() as top:
        done = run(["unshare", "-m", "sh", "-c",
                    'mount -t tmpfs -o size=1m none "$1" && exec "$0" cluster up --gpus 1 --dir "$1/c"',
                    clusters.GPUQ, str(top)], env=clusters.plain_environment())
        assert done.returncode == 125
        assert "is full" in done.stderr


@root_only
def test_a_folder_of_somebody_else_is_refused(plain_user):
    with short_folder() as top:
        os.chown(top, plain_user.pw_uid, plain_user.pw_gid)
        done = Cluster(top).cluster("up", "--gpus", "1", check=False)
        assert done.returncode == 121
        assert "belongs to another user" in done.stderr


@root_only
def test_without_a_network_it_says_what_helps(folder):
    alone = 'ip link set lo up; exec "$0" cluster up --gpus 1 --dir "$1"'
    done = run(["unshare", "-n", "sh", "-c", alone, folder.binary, str(folder.dir)], env=folder.env)
    assert done.returncode not in (0, 1)
    assert "sudo ip address add 192.0.2.1/32 dev lo" in done.stderr
    helped = "ip address add 192.0.2.1/32 dev lo; " + alone.replace("exec", "") + \
        ' && exec "$0" cluster down --purge --dir "$1"'
    done = run(["unshare", "-n", "sh", "-c", helped, folder.binary, str(folder.dir)], env=folder.env)
    assert done.returncode == 0, done.stderr
