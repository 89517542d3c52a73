# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes that are lent while idle and used outside Slurm: the policy's probe reports whether they are in
use."""
import pytest

from clusters import GPUQ, run, short_folder, wait_for
from policies import SCHEDULER, cancel_all, running_policy, until

REASON = "gpuq: in use outside Slurm"


@pytest.fixture(scope="module")
def in_use():
    """A file that exists while a user sits at the visualisation node."""
    with short_folder() as folder:
        yield folder / "in-use"


@pytest.fixture(scope="module")
def ruled(in_use):
    policy = in_use.parent / "policy.yaml"
    policy.write_text(f"""\
version: 1
pools:
  vis:
    nodes: vis1
    gpus: k80:2
    owner: vis
    lend:
      probe: [/bin/sh, -c, "echo >> {in_use}.asked; test ! -e {in_use}"]
  main: {{nodes: n1, gpus: "k80:2"}}
queues:
  short: {{time: 2h, pools: [main, vis]}}
  vis: {{time: 12h, pools: vis}}
""")
    with running_policy(policy, ("KillWait=5", SCHEDULER, "HealthCheckInterval=1")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def clean(ruled, in_use):
    yield
    in_use.unlink(missing_ok=True)
    cancel_all(ruled)
    wait_for(lambda: "DRAIN" not in node(ruled), 20, "both nodes back")


def node(cluster, name="vis1"):
    """State and reason of a node."""
    return cluster.slurm("scontrol", "-o", "show", "node", name)


def asked_again(in_use):
    """Waits for two more calls of the probe."""
    asked = in_use.with_name(in_use.name + ".asked")
    count = lambda: asked.stat().st_size if asked.exists() else 0
    before = count()
    wait_for(lambda: count() >= before + 2, 20, "two more questions to the probe")


def a_job(cluster, *words):
    return cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "-t", "10", *words,
                         "--wrap", "sleep 600").strip()


def test_a_node_in_use_outside_slurm_is_not_lent(ruled, in_use):
    in_use.touch()
    wait_for(lambda: REASON in node(ruled), 20, "a word about the node")
    assert "reports 1)" in node(ruled), node(ruled)
    first, second = a_job(ruled, "--gpus=2"), a_job(ruled, "--gpus=2")
    until(ruled, first, "RUNNING")
    assert ruled.job(first)["NodeList"] == "n1"
    assert ruled.job(second)["JobState"] == "PENDING"
    in_use.unlink()
    until(ruled, second, "RUNNING", 40)
    assert ruled.job(second)["NodeList"] == "vis1"
    assert REASON not in node(ruled)


def test_a_node_that_the_operator_has_drained_stays_so(ruled, in_use):
    ruled.slurm("scontrol", "update", "NodeName=vis1", "State=DRAIN", "Reason=new disk")
    for there in (True, False):
        if there:
            in_use.touch()
        else:
            in_use.unlink()
        asked_again(in_use)
        assert "Reason=new disk" in node(ruled) and "DRAIN" in node(ruled)
    ruled.slurm("scontrol", "update", "NodeName=vis1", "State=RESUME")


def test_a_policy_without_the_probe_leaves_no_node_drained(ruled, in_use):
    """Last test of this module: the cluster has no probe afterwards."""
    # Slurm does not query a node at once that an operator has resumed, and checks no node that does not
    # respond.
    ruled.scontrol("reconfigure")
    wait_for(lambda: "NOT_RESPONDING" not in node(ruled), 30, lambda: f"vis1 responds: {node(ruled)}")
    in_use.touch()
    wait_for(lambda: REASON in node(ruled), 20, lambda: f"a word about the node: {node(ruled)}")
    policy = in_use.parent / "policy.yaml"
    lines = policy.read_text().splitlines(keepends=True)
    policy.write_text("".join("      grace: 1m\n" if "probe:" in line else line for line in lines))
    done = run([GPUQ, "policy", "apply", str(policy)], env=ruled.env)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: "DRAIN" not in node(ruled), 20, "the node back")
