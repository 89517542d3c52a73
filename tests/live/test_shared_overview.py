# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq site --overview`: one overview for all users of a host, which costs the controller as much as one user's."""
import json
import os
import re
import shutil
import time

import pytest

from clusters import Person, short_folder, wait_for
from test_lookups import rpcs_of

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=3"])
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")


@pytest.fixture
def shared(cluster):
    """The site's directory with an overview, and the cluster's name."""
    with short_folder() as folder:
        write(cluster, folder)
        yield next(folder.glob("*.overview"))


@pytest.fixture
def readers(cluster, people, shared):
    """Three users of the host."""
    with short_folder() as homes:
        persons = []
        for name, user in people.items():
            home = homes / name
            home.mkdir()
            os.chown(home, user.pw_uid, user.pw_gid)
            persons.append(Person(cluster, home, user))
            persons[-1].env["GPUQ_OVERVIEW_DIR"] = str(shared.parent)
        yield persons


def write(cluster, folder, check=True):
    with short_folder() as home:
        done = Person(cluster, home).gpuq("site", "--overview", folder)
    assert not check or done.returncode == 0, done.stderr
    return done


def overview_of(person, directory=None):
    done = person.gpuq("top", "--once", "--json", env={"GPUQ_OVERVIEW_DIR": str(directory)} if directory else {})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def make_old(path, seconds):
    """The overview as it would be if it had been written so long ago, and read since."""
    lines = path.read_text().split("\n")
    common = json.loads(lines[1])
    for name in ("at", "whole_at", "jobs_at"):
        common[name] -= seconds
    lines[1] = json.dumps(common)
    path.write_text("\n".join(lines))
    time.sleep(0.02)  # the kernel's clock for files has ticks
    path.read_text()


def test_all_users_cost_the_controller_what_one_does(cluster, shared, readers):
    one, rpcs_of_one = rpcs_of(cluster, lambda: overview_of(readers[0], "off"))
    shutil.rmtree(readers[0].state)
    assert sum(rpcs_of_one.values()) >= 3, rpcs_of_one

    def all_read():
        make_old(shared, 40)
        write(cluster, shared.parent)  # as the timer does
        return [overview_of(person) for person in readers for _ in range(5)]
    found, rpcs = rpcs_of(cluster, all_read)
    assert sum(rpcs.values()) <= 1.2 * sum(rpcs_of_one.values()), (rpcs, rpcs_of_one)
    for each in found:
        assert each["pools"] == one["pools"] and each["cluster"] == one["cluster"], (each, one)
    _, rpcs = rpcs_of(cluster, lambda: write(cluster, shared.parent))
    assert rpcs == {}, "it has just been written"


def test_it_is_written_only_while_users_read_it(cluster, shared, readers):
    make_old(shared, 40)
    written = shared.stat()
    os.utime(shared, ns=(written.st_mtime_ns, written.st_mtime_ns))
    _, rpcs = rpcs_of(cluster, lambda: write(cluster, shared.parent))
    assert rpcs == {}
    overview_of(readers[0])
    assert shared.stat().st_atime_ns > written.st_mtime_ns
    _, rpcs = rpcs_of(cluster, lambda: write(cluster, shared.parent))
    assert rpcs == {"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO": 1, "REQUEST_JOB_INFO": 1}


def test_an_overview_that_others_could_have_written_is_not_used(cluster, shared, readers, people):
    person = readers[0]
    true = shared.read_text()
    other = people["ben"]

    def is_used():
        """Whether a new reader takes it. The lie is in the name of its only queue."""
        shutil.rmtree(person.state, ignore_errors=True)
        found = overview_of(person)
        return any("lie" in pool["queues"] for pool in found["pools"])

    def lie(path):
        path.write_text(true.replace('"queues":["', '"queues":["lie","'))
    lie(shared)
    assert is_used()
    os.chmod(shared, 0o664)
    assert not is_used()
    os.chmod(shared, 0o644)
    os.chown(shared, other.pw_uid, other.pw_gid)
    assert not is_used()
    with short_folder() as elsewhere:
        os.chown(elsewhere, other.pw_uid, other.pw_gid)
        lie(elsewhere / "copy")
        shared.unlink()
        shared.symlink_to(elsewhere / "copy")
        assert not is_used()
        shared.unlink()
    os.mkfifo(shared)
    assert not is_used()
    shared.unlink()
    lie(shared)
    assert is_used()
    os.chmod(shared.parent, 0o777)
    assert not is_used()
    os.chmod(shared.parent, 0o755)
    with shared.open("a") as file:
        file.truncate(len(true) - 2)
    assert not is_used()
    lie(shared)
    with shared.open("a") as file:
        file.truncate(65 << 20)
    assert not is_used()
    lie(shared)
    make_old(shared, 100)
    assert not is_used()


def test_nothing_is_shared_where_slurm_hides_jobs(cluster, shared):
    before = cluster.conf.read_text()
    shared.write_text(re.sub("^gpuq-overview 1 [0-9]+", "gpuq-overview 1 1", shared.read_text()))
    make_old(shared, 40)
    try:
        cluster.conf.write_text(before + "PrivateData=jobs\n")
        cluster.scontrol("reconfigure")
        wait_for(lambda: "jobs" in cluster.slurm("scontrol", "show", "config").split("PrivateData")[1].split("\n")[0],
                 20, "PrivateData")
        done = write(cluster, shared.parent, check=False)
        assert done.returncode == 121 and "PrivateData=jobs" in done.stderr, done
        assert not shared.exists()
    finally:
        cluster.conf.write_text(before)
        cluster.scontrol("reconfigure")
