# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq usage --left`: remaining GPU time of the accounts' grants."""
import json
import os
import pwd

import pytest

from clusters import wait_for

CLUSTER = dict(nodes=1, gpus=4, model="k80", lines=["KillWait=3", "PriorityType=priority/multifactor",
                                                    "AccountingStorageEnforce=associations,limits"])
ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def lab(cluster):
    """Account lab (10 GPU-hours) contains account project, which contains the current user (2 GPU-hours)."""
    for words in (("add", "account", "lab"), ("add", "account", "project", "parent=lab"),
                  ("add", "user", ME, "account=project"),
                  ("modify", "account", "lab", "set", "GrpTRESMins=gres/gpu=600"),
                  ("modify", "user", ME, "where", "account=project", "set", "GrpTRESMins=gres/gpu=120")):
        cluster.slurm("sacctmgr", "-i", *words)
    return cluster


def left(person):
    done = person.gpuq("usage", "--left", "--json")
    assert done.returncode == 0, done.stderr
    return {one["account"]: one for one in json.loads(done.stdout)["accounts"]}


def test_what_is_left_is_what_slurm_counts(lab, person):
    wait_for(lambda: "project" in left(person) and len(left(person)["project"]["limits"]) == 2, 20, "the limits")
    job = lab.slurm("sbatch", "--parsable", "-A", "project", "-o", "/dev/null", "--gres=gpu:2", "--wrap",
                    "sleep 3").strip()
    elapsed = int(lab.accounted(job, fields=("ElapsedRaw",))["ElapsedRaw"])
    assert elapsed >= 3
    wait_for(lambda: left(person)["project"]["limits"][1]["used_gpu_hours"], 30, "Slurm's counting")
    mine, labs = left(person)["project"]["limits"]
    assert (mine["holder"], mine["granted_gpu_hours"]) == (f"{ME} in project", 2)
    assert (labs["holder"], labs["granted_gpu_hours"]) == ("lab", 10)
    for limit in (mine, labs):
        assert abs(limit["used_gpu_hours"] * 3600 - 2 * elapsed) <= 4
        assert abs(limit["granted_gpu_hours"] - limit["used_gpu_hours"] - limit["left_gpu_hours"]) < 1e-9
    table = person.gpuq("usage", "--left").stdout.splitlines()
    assert table[0].split() == ["ACCOUNT", "LIMIT", "OF", "GRANTED", "USED", "LEFT"]
    assert any(line.split()[:3] == ["default", "no", "limit"] for line in table), table


def test_of_somebody_unknown_nothing_is_said(lab, person):
    done = person.gpuq("usage", "--left", "--user", "nosuch")
    assert done.returncode == 2 and "nosuch" in done.stderr and not done.stdout


def test_without_an_answer_of_the_controller_it_says_so(lab, person):
    with lab.stopped("slurmctld"):
        done = person.gpuq("usage", "--left", timeout=60)
    assert done.returncode == 120 and "does not return the limits" in done.stderr
