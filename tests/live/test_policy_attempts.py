# SPDX-License-Identifier: GPL-2.0-or-later
"""More than a hundred attempts of an ordinary user to get round each shipped policy: none gets through."""
import os
import pathlib
import re

import pytest

from attempts import CHANGES, LATER, LINES, OPTIONS, PLAIN, VARIABLES, Attacker, Policy, jobs_of
from clusters import running_cluster
from faults import SOAK
from policies import SCHEDULER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "policies"


def attempts(attacker):
    """Yields the violations of each attempt."""
    for what, words in OPTIONS.items():
        yield attacker.batch(what, words)
    for what, words in list(OPTIONS.items())[:: 1 if SOAK else 5]:
        yield attacker.allocation(what, words)
        yield attacker.direct(what, words)
    for what, (variables, words) in VARIABLES.items():
        yield attacker.batch(what, words, env=variables)
    for what, lines in LINES.items():
        yield attacker.script(what, lines)
    for words in CHANGES:
        yield attacker.change(words, LATER)
        yield attacker.change(words, PLAIN)
    yield attacker.changed_twice("NumNodes=4", "TimeLimit=100:00:00", "TresPerNode=gpu:4")
    yield attacker.changed_twice("Partition=long", "TimeLimit=48:00:00", "Partition=calibration")
    for other in (attacker.whole_node_without_its_gpus, attacker.arrays, attacker.many, attacker.expanded, attacker.requeued,
                  attacker.steps, attacker.administration):
        yield other()


@pytest.mark.parametrize("name", ["criann", "teaching", *(["centre", "minimal", "nights", "workstation"] if SOAK else [])])
def test_no_attempt_gets_round_a_shipped_policy(name, people):
    shipped = SHIPPED / f"{name}.yaml"
    alike = ("--gpus", "4", "--nodes", "2") if name in ("minimal", "workstation") else ()
    with running_cluster(gpus=None, nodes=None, model=None, lines=("KillWait=1", SCHEDULER),
                         options=("--policy", str(shipped), *alike)) as cluster:
        attacker = Attacker(cluster, people["ada"], Policy(shipped))
        results = list(attempts(attacker))
        assert not [each for result in results for each in result]
        assert len(results) > 100
        assert attacker.accepted > 40, "attempts that Slurm refuses for other reasons show nothing"
        # What an operator gives is seen: the check can fail.
        job = attacker.submitted(*PLAIN)
        cluster.scontrol("update", f"jobid={job}", "timelimit=100:00:00")
        assert re.search("of queue .* has 4-04:00:00", str(attacker.policy.violations(jobs_of(cluster, people["ada"]))))
