# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the real-Slurm suite; what they give is in clusters.py.

A module says what its cluster is like with a global, e.g.

    CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])

and its tests take the fixture `cluster`. Clusters live in folders of their own, so modules run
side by side (pytest -n 3 --dist loadfile).
"""
import os
import pwd
import signal

import pytest

from clusters import *  # noqa: F401,F403  (tests may import from either)
from clusters import TEST_USER, Cluster, Person, account, running_cluster, short_folder


# Started by nohup or in the background of a script, the suite would give what they ignore to every
# gpuq, which respects it.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="module")
def cluster(request):
    """The module's cluster; see CLUSTER above."""
    with running_cluster(**getattr(request.module, "CLUSTER", {})) as one:
        yield one


@pytest.fixture
def person(cluster):
    """A fresh home on the module's cluster."""
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


@pytest.fixture
def folder():
    """A place for a cluster that a test starts and ends by itself."""
    with short_folder() as top:
        cluster = Cluster(top / "c")
        try:
            yield cluster
        finally:
            cluster.cluster("down", "--purge", check=False)


@pytest.fixture(scope="session")
def plain_user():
    """An ordinary user: a test account when we are root, else ourselves."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return account(TEST_USER)


@pytest.fixture(scope="session")
def people():
    """Several ordinary users, which only root has."""
    return {name: account(f"gpuq-{name}") for name in ("ada", "ben", "lena")}
