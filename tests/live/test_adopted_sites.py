# SPDX-License-Identifier: GPL-2.0-or-later
"""Sites with a slurm.conf, QOS, accounts and scripts of their own are described by `gpuq policy import`, and adopted
without a change of what users can do: see gpuq-adoption(7).

tests/live/sites has a directory for each: slurm.conf with features of configurations that sites have published,
commands that complete it, job_submit.lua. contrib/soak.sh adopts all of them, CI some.
"""
import contextlib
import itertools
import json
import os
import re

import pytest

from clusters import GPUQ, ROOT, TEST_USER, Cluster, account, command_of, run, short_folder, wait_for
from faults import SOAK, of_soak

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a policy is applied by root or SlurmUser")

SITES = ROOT / "tests" / "live" / "sites"
NAMES = sorted(path.name for path in SITES.iterdir())
OF_CI = ("qos",)

#: Longer than every partition allows.
TOO_LONG = 20000
#: GPUs on a node and time limit of each request.
SIZES = ((None, None), (1, 10), (1, TOO_LONG), (9, 10), *of_soak(((2, 1000), (None, 3000)), ()))
MOST_QOS = of_soak(99, 2)


class Site:
    def __init__(self, name, folder):
        self.name = name
        self.dir = SITES / name
        self.cluster = Cluster(folder / "c")
        self.file = folder / "site.yaml"
        self.user = account(TEST_USER)
        self.conf = (self.dir / "slurm.conf").read_text()

    def up(self):
        self.cluster.up(gpus=None, nodes=None, model=None, options=("--slurm-conf-file", self.dir / "slurm.conf"))
        commands = self.dir / "commands"
        for line in commands.read_text().splitlines() if commands.exists() else ():
            if line and not line.startswith("#"):
                self.cluster.slurm(*line.format(user=TEST_USER).split())

    def policy(self, *words):
        return run([GPUQ, "policy", *map(str, words)], env=self.cluster.env, timeout=120)

    def partitions(self):
        names = re.findall(r"^PartitionName=(\S+)", self.conf, re.M)
        return [None, *(name for name in names if name != "DEFAULT")]

    def qos(self):
        names = self.cluster.slurm("sacctmgr", "-nP", "show", "qos", "format=name").split()
        return [None, *[name for name in names if not name.startswith("gpuq_")][:MOST_QOS]]

    def submit(self, user, partition, qos, size):
        """None for a job that is accepted, with its id; otherwise the messages."""
        gpus, time = size
        words = ["sbatch", "--parsable", "--hold", "-o", "/dev/null", "-J", "matrix"]
        for option, value in (("-p", partition), ("-q", qos), ("--gres", gpus and f"gpu:{gpus}"), ("-t", time)):
            words += [option, str(value)] if value else []
        done = run([*words, "--wrap=true"], env=self.cluster.env, user=user)
        return (done.stdout.strip(), None) if done.returncode == 0 else (None, done.stderr)

    def matrix(self, qos=None):
        """What Slurm makes of each combination of user, partition, QOS, GPUs and time."""
        answers = {}
        users = (None, self.user)
        for user, partition, one, size in itertools.product(users, self.partitions(), qos or self.qos(), SIZES):
            answers[(user and TEST_USER, partition, one, *size)] = self.submit(user, partition, one, size)
        shown = self.cluster.slurm("squeue", "-a", "-h", "-o", "%A|%P|%q|%l|%a|%D|%C|%m|%b|%p")
        jobs = dict(line.split("|", 1) for line in shown.splitlines())
        # The priority (%p) changes with time only for jobs that are not held: it is 0 for all of these.
        self.cluster.slurm("scancel", "-n", "matrix")
        wait_for(lambda: not self.cluster.squeue(), 20, "an empty queue")
        return {key: jobs[job] if job else refusal for key, (job, refusal) in answers.items()}

    def everything(self):
        """Slurm's objects and the files, as far as a policy could change them."""
        show = self.cluster.slurm
        settings = show("scontrol", "show", "config").partition("Slurmctld(")[0]
        return {"partitions": sorted(show("scontrol", "-a", "-o", "show", "partition").splitlines()),
                "settings": [line for line in settings.splitlines()
                             if not re.match(r"Configuration data|BOOT_TIME|NEXT_JOB_ID", line)],
                "associations": show("sacctmgr", "-nP", "show", "assoc"), "qos": show("sacctmgr", "-nP", "show", "qos"),
                "reservations": show("scontrol", "show", "reservation", check=False),
                "slurm.conf": self.cluster.conf.read_text(), "script": self.script().read_text() if self.has_script()
                else None}

    def script(self):
        return self.cluster.dir / "job_submit.lua"

    def has_script(self):
        return self.script().exists()


@contextlib.contextmanager
def running_site(name):
    with short_folder() as folder:
        site = Site(name, folder)
        site.cluster.dir.mkdir(mode=0o755)
        try:
            site.up()
            yield site
        finally:
            site.cluster.cluster("down", "--purge", check=False)
            wait_for(lambda: not site.cluster.daemons(), 20,
                     lambda: [command_of(pid) for pid in site.cluster.daemons()])


def differences(before, after):
    return {key: (before[key], after[key]) for key in before if before[key] != after[key]}


def imported(site):
    done = site.policy("import", "--output", site.file)
    assert done.returncode == 0, done.stderr
    return site.file.read_text()


def check_nothing_to_do(site, action, *words):
    done = site.policy(action, *words)
    assert (done.returncode, done.stdout) == (0, "nothing to do\n"), done


@pytest.mark.parametrize("name", NAMES if SOAK else OF_CI)
def test_a_site_is_described_and_adopted_as_it_is(name):
    with running_site(name) as site:
        before, matrix = site.everything(), site.matrix()
        assert len(set(matrix.values())) > 8, "a matrix in which little could change"

        text = imported(site)
        assert site.everything() == before, "import changes nothing"
        check_nothing_to_do(site, "plan", site.file)
        for partition in site.partitions()[1:]:
            assert f"\n    {partition}:\n" in text
        done = site.policy("apply", site.file)
        assert done.returncode == 0, done.stderr
        check_nothing_to_do(site, "drift")
        assert differences(before, site.everything()) == {}
        assert differences(matrix, site.matrix()) == {}

        # Another version of the file, and back.
        site.file.write_text(text + "# edited\n")
        assert site.policy("apply", site.file).returncode == 0
        assert site.policy("rollback").returncode == 0
        check_nothing_to_do(site, "drift")
        assert differences(before, site.everything()) == {}

        # A change by hand is found.
        site.cluster.scontrol("update", f"partitionname={site.partitions()[1]}", "maxtime=7")
        drift = site.policy("drift")
        assert drift.returncode == 10 and f"site: partition {site.partitions()[1]} (line " in drift.stdout, drift.stdout
        assert "7 in Slurm" in drift.stdout


QUEUE = """\
pools:
  new: {nodes: new1, gpus: "k80:4", threads_per_core: 1}
queues:
  trial: {time: 2h, pools: new, limits: {user: {gpus: 2}}}
"""


def edit_conf(site):
    """The operator's part of gpuq-adoption(7), "Prepare Slurm"."""
    (site.cluster.dir / "gpuq").mkdir(exist_ok=True)
    (site.cluster.dir / "gpuq" / "policy.conf").write_text("# gpuq\n")
    site.cluster.conf.write_text(site.cluster.conf.read_text() + "include gpuq/policy.conf\n")
    site.cluster.scontrol("reconfigure")


def test_the_scripts_of_site_and_policy_both_decide():
    with running_site("lua") as site:
        edit_conf(site)
        qos = of_soak(None, (None,))  # the script chooses one
        before, matrix = site.everything(), site.matrix(qos)
        text = imported(site)
        assert "job_submit.lua: " in text
        assert site.policy("apply", site.file).returncode == 0

        # A queue on a node that no partition has.
        site.file.write_text(text + QUEUE)
        plan = site.policy("plan", site.file)
        assert plan.returncode == 10 and "before it can be applied" not in plan.stdout, plan.stdout
        done = site.policy("apply", site.file)
        assert done.returncode == 0, done.stderr
        assert site.policy("drift").returncode == 0, site.policy("drift").stdout
        assert "P.site = [" in site.script().read_text()
        # The site's own partitions: only EnforcePartLimits=ANY is new, for jobs that could never start.
        named = {key: answer for key, answer in matrix.items() if key[1] is not None}
        changed = differences(named, site.matrix(qos))
        assert all(key[-1] == TOO_LONG and "time limit is invalid" in now for key, (_, now) in changed.items()), changed

        user, size = site.user, (1, 10)
        job, refusal = site.submit(user, "trial", None, size)
        assert job, refusal
        assert site.cluster.job(job)["QOS"] == "gpuq_trial"
        modified = run(["scontrol", "update", f"jobid={job}", "comment=forbidden"], env=site.cluster.env, user=user)
        assert modified.returncode != 0, "the site's function for changes"
        site.cluster.slurm("scancel", job)
        assert "at most 2 h" in site.submit(user, "trial", None, (1, 180))[1], "the policy"
        assert "state a time limit" in site.submit(user, "trial", None, (1, None))[1], "the site"

        # Back: the site's script again, and nothing of the policy.
        rolled = site.policy("rollback")
        assert rolled.returncode == 0, rolled.stderr
        check_nothing_to_do(site, "drift")
        assert differences(before, site.everything()) == {}
        assert differences(matrix, site.matrix(qos)) == {}


def test_names_that_need_quotes_stay_names():
    lines = ["PartitionName=no Nodes=l3", "PartitionName=a:b{c}#\"'&*!|%@ Nodes=l3".replace("#", r"\#")]
    with running_site("lua") as site:
        with site.cluster.conf.open("a") as conf:
            conf.write("\n".join(lines) + "\n")
        site.cluster.scontrol("reconfigure")
        site.cluster.slurm("sacctmgr", "-i", "add", "qos", "a: [x] {y} #z")
        text = imported(site)
        assert "\n    no:\n" in text and "a:b{c}" in text and "[x] {y}" in text
        check_nothing_to_do(site, "plan", site.file)
        again = site.policy("import", "--output", site.file)
        assert again.returncode == 2 and "exists" in again.stderr
        document = json.loads(site.policy("import", "--json").stdout)
        assert document["policy"] == text and document["cluster"] == "local"
