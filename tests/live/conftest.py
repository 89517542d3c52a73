# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the suite on a real Slurm; their classes are in clusters.py.

A module describes its cluster with a global, e.g.

    CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])

and its tests use the fixture `cluster`. Clusters have directories of their own, so modules can
run in parallel (pytest -n 3 --dist loadfile).
"""
import collections
import os
import pwd
import signal

import pytest

from clusters import *  # noqa: F401,F403  (tests may import from either)
from clusters import TEST_USER, Cluster, Person, account, running_cluster, short_folder


# If the suite is started by nohup or in the background of a script, it ignores some signals. Every
# gpuq would inherit and respect that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(items):
    """The largest files first: one that is begun last would keep the other workers waiting (--dist loadfile)."""
    sizes = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: -sizes[item.path])


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and config.option.verbose <= 0:
        config.pluginmanager.register(FailuresAtOnce(reporter))


class FailuresAtOnce:
    """Names a failed test when it fails: a suite that is killed prints no summary."""

    def __init__(self, reporter):
        self.reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.reporter.ensure_newline()
            self.reporter.write_line(f"failed: {report.nodeid} ({report.duration:.0f} s)")


@pytest.fixture(scope="module")
def cluster(request):
    """The module's cluster; see CLUSTER above."""
    with running_cluster(**getattr(request.module, "CLUSTER", {})) as one:
        yield one


@pytest.fixture
def person(cluster):
    """A user with a fresh home on the module's cluster."""
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


@pytest.fixture
def folder():
    """A cluster that the test starts and stops."""
    with short_folder() as top:
        cluster = Cluster(top / "c")
        try:
            yield cluster
        finally:
            cluster.cluster("down", "--purge", check=False)


@pytest.fixture(scope="session")
def plain_user():
    """An ordinary user: a test account if run by root, otherwise the current user."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return account(TEST_USER)


@pytest.fixture(scope="session")
def people():
    """Several ordinary users; requires root."""
    return {name: account(f"gpuq-{name}") for name in ("ada", "ben", "lena")}
