# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq policy plan, apply, drift and rollback on a real Slurm: used by an operator, with settings broken by hand,
and with the apply killed in the middle."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from clusters import GPUQ, run, running_cluster, short_folder, wait_for
from faults import SOAK, leave_to_soak, of_soak

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmctld's state is root's here")

POLICY = """\
version: 1
gpus:
  k80: {memory: 12G, weight: 0.25}
  v100: {memory: 32G, weight: 1}
pools:
  calib: {nodes: c1, gpus: "k80:4"}
  lab: {nodes: l1, gpus: "k80:4", owner: lab, lend: {grace: 1m, min_run: 1m}}
  main: {nodes: "m[1-2]", gpus: "v100:4"}
queues:
  lab:
    time: 48h
    pools: lab
    allow: {accounts: lab, ask: Lena}
  calibration:
    time: 2h
    default_time: 10m
    pools: [calib, lab]
    overflow: main
    limits: {user: {soft_gpus: 2, queued: 8}, job: {gpus: 4, nodes: 1}}
  long:
    time: 48h
    pools: main
    limits: {user: {gpus: 4}, account: {gpus: 6}}
fair_share: {half_life: 1h, shares: {lab: 20}}
courses:
  ml: {nodes: m2, start: "2026-11-03T13:00", duration: 4h, repeat: weekly, accounts: course}
"""

# Tighter, looser, and for other accounts.
CHANGED = (POLICY.replace("queued: 8", "queued: 6").replace("soft_gpus: 2", "soft_gpus: 3")
           .replace("{accounts: lab, ask", "{accounts: [lab, course], ask")
           .replace("    time: 48h\n    pools: main", "    time: 24h\n    pools: main"))


class Operator:
    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.file = pathlib.Path(folder) / "policy.yaml"
        self.folder = cluster.dir / "gpuq"

    def write(self, text):
        self.file.write_text(text)

    def policy(self, *words, timeout=120):
        return run([GPUQ, "policy", *map(str, words)], env=self.cluster.env, timeout=timeout)

    def apply(self, text):
        self.write(text)
        done = self.policy("apply", self.file)
        assert done.returncode == 0, done.stderr
        return done

    def drift(self):
        """(kind, name, field) of all changes."""
        done = self.policy("drift", "--json")
        assert done.returncode in (0, 10), done.stderr
        found = json.loads(done.stdout)
        rows = {(change["kind"], change["name"], field["name"])
                for change in found["changes"] for field in change["fields"]}
        rows |= {(change["kind"], change["name"], change["action"])
                 for change in found["changes"] if not change["fields"]}
        assert (done.returncode == 10) == bool(rows or found["interrupted"])
        return rows

    def interrupted(self):
        return json.loads(self.policy("drift", "--json").stdout)["interrupted"]

    def is_in_force(self, text):
        self.write(text)
        done = self.policy("plan", self.file)
        return done.returncode == 0, done.stdout

    def sacctmgr(self, *words):
        self.cluster.slurm("sacctmgr", "-i", *words)


@pytest.fixture(scope="module")
def operator():
    with short_folder() as folder:
        file = folder / "policy.yaml"
        file.write_text(POLICY)
        with running_cluster(gpus=None, nodes=None, model=None,
                             lines=["KillWait=2"], options=["--policy", str(file)]) as cluster:
            yield Operator(cluster, folder)


@pytest.fixture(autouse=True)
def in_force(operator):
    """Every test begins under POLICY."""
    operator.apply(POLICY)
    assert operator.drift() == set()


def limits(operator):
    shown = operator.cluster.slurm("sacctmgr", "-nP", "show", "qos",
                                   "format=name,maxsubmitpu,maxtrespu")
    return dict(line.split("|", 1) for line in shown.splitlines())


def test_an_operators_day(operator):
    operator.write(CHANGED)
    plan = operator.policy("plan", operator.file)
    assert plan.returncode == 10
    for line in ("MaxSubmitPU: 8 -> 6", "MaxTRESPU: gres/gpu=2 -> gres/gpu=3",
                 "accounts: lab -> course,lab", "MaxTime: 2880 -> 1440"):
        assert line in plan.stdout
    assert limits(operator)["gpuq_calibration"] == "8|"  # a plan changes nothing

    operator.apply(CHANGED)
    assert limits(operator)["gpuq_calibration"] == "6|"
    assert "MaxTime=1-00:00:00" in operator.cluster.scontrol("show", "partition", "long")
    assert operator.policy("plan", operator.file).returncode == 0
    again = operator.policy("apply", operator.file)
    assert again.returncode == 0 and "nothing to do" in again.stderr

    # All of it survives a reconfiguration and a restart.
    operator.cluster.scontrol("reconfigure")
    assert operator.drift() == set()
    operator.cluster.signal("slurmctld")
    operator.cluster.repair()
    assert operator.drift() == set()

    back = operator.policy("rollback")
    assert back.returncode == 0, back.stderr
    assert limits(operator)["gpuq_calibration"] == "8|"
    assert operator.is_in_force(POLICY)[0]


BREAKAGES = [
    (("scontrol", "update", "partition=long", "MaxTime=1:00:00"), ("partition", "long", "MaxTime")),
    (("scontrol", "update", "partition=long", "State=DOWN"), ("partition", "long", "State")),
    (("scontrol", "update", "partition=long", "AllowQos=ALL"), ("partition", "long", "AllowQos")),
    (("scontrol", "update", "partition=long", "Nodes=c1"), ("partition", "long", "Nodes")),
    (("scontrol", "update", "partition=lab", "PriorityTier=7"), ("partition", "lab", "PriorityTier")),
    (("scontrol", "update", "partition=calibration", "DefaultTime=5"),
     ("partition", "calibration", "DefaultTime")),
    (("scontrol", "update", "partition=calibration", "QOS=normal"),
     ("partition", "calibration", "QOS")),
    (("scontrol", "update", "partition=calibration", "TRESBillingWeights=CPU=1"),
     ("partition", "calibration", "TRESBillingWeights")),
    (("scontrol", "update", "partition=calibration-lab", "PreemptMode=OFF"),
     ("partition", "calibration-lab", "PreemptMode")),
    (("scontrol", "update", "partition=calibration-lab", "GraceTime=1"),
     ("partition", "calibration-lab", "GraceTime")),
    (("scontrol", "update", "partition=long", "DenyAccounts=lab", "AllowAccounts="),
     ("partition", "long", "DenyAccounts")),
    (("scontrol", "update", "partition=long", "OverTimeLimit=60"), ("partition", "long", "OverTimeLimit")),
    (("scontrol", "update", "partition=long", "Hidden=YES"), ("partition", "long", "Hidden")),
    (("scontrol", "delete", "partitionname=calibration-main"),
     ("partition", "calibration-main", "MaxTime")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_long", "set", "MaxTRESPerUser=gres/gpu=5"),
     ("qos", "gpuq_long", "MaxTRESPU")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_long", "set", "MaxTRESPerAccount=gres/gpu=-1"),
     ("qos", "gpuq_long", "MaxTRESPA")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_long", "set", "Flags-=DenyOnLimit"),
     ("qos", "gpuq_long", "Flags")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "MaxTRESPerJob=gres/gpu=8"),
     ("qos", "gpuq_calibration", "MaxTRES")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "MaxJobsPerUser=1"),
     ("qos", "gpuq_calibration", "MaxJobsPU")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "Priority=9"),
     ("qos", "gpuq_calibration", "Priority")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "MaxWall=3"),
     ("qos", "gpuq_calibration", "MaxWall")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "GrpWall=3"),
     ("qos", "gpuq_calibration", "GrpWall")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "MaxTRESRunMinsPA=gres/gpu=60"),
     ("qos", "gpuq_calibration", "MaxTRESRunMinsPA")),
    (("sacctmgr", "-i", "modify", "qos", "gpuq_calibration", "set", "MaxJobsAccruePerUser=3"),
     ("qos", "gpuq_calibration", "MaxJobsAccruePU")),
    (("sacctmgr", "-i", "add", "qos", "gpuq_mine"), ("qos", "gpuq_mine", "remove")),
    (("sacctmgr", "-i", "modify", "account", "course", "set", "qos+=gpuq_lab"),
     ("access", "gpuq_lab", "accounts")),
    (("sacctmgr", "-i", "modify", "account", "lab", "set", "qos-=gpuq_lab"),
     ("access", "gpuq_lab", "accounts")),
    (("sacctmgr", "-i", "modify", "account", "lab", "set", "qos-=gpuq_long"),
     ("access", "gpuq_long", "without")),
    (("sacctmgr", "-i", "modify", "account", "lab", "set", "fairshare=3"),
     ("share", "lab", "fairshare")),
    (("sacctmgr", "-i", "modify", "user", "root", "where", "account=default", "set", "fairshare=5"),
     ("share", "root@default", "fairshare")),
    (("scontrol", "update", "reservationname=ml", "duration=60"), ("reservation", "ml", "Duration")),
    (("scontrol", "update", "reservationname=ml", "flags+=IGNORE_JOBS"), ("reservation", "ml", "Flags")),
    (("scontrol", "update", "reservationname=ml", "maxstartdelay=10"),
     ("reservation", "ml", "MaxStartDelay")),
    (("scontrol", "update", "reservationname=ml", "accounts=lab"), ("reservation", "ml", "Accounts")),
    (("scontrol", "delete", "reservationname=ml"), ("reservation", "ml", "Duration")),
]


def test_drift_finds_what_was_changed_by_hand_and_apply_puts_it_right(operator):
    for words, row in BREAKAGES:
        operator.cluster.slurm(*words)
        assert row in operator.drift(), words
    everything = {row for _, row in BREAKAGES}
    # A later breakage may hide an earlier one of the same object: a deleted reservation counts as a whole.
    assert everything - operator.drift() <= {("partition", "long", "AllowAccounts"),
                                              ("reservation", "ml", "MaxStartDelay")}
    operator.apply(POLICY)
    assert operator.drift() == set()


def test_drift_finds_limits_of_gpus_on_accounts_and_users(operator):
    for limit in ("GrpTRES", "GrpTRESRunMins", "MaxTRES", "MaxTRESMins", "MaxTRESPerNode"):
        operator.sacctmgr("modify", "account", "lab", "set", f"{limit}=cpu=8,gres/gpu=2")
        operator.sacctmgr("modify", "user", "root", "where", "account=default", "set", f"{limit}=gres/gpu:k80=3")
        assert {("limit", "lab", limit), ("limit", "root@default", limit)} <= operator.drift()
    operator.apply(POLICY)
    assert operator.drift() == set()
    shown = operator.cluster.slurm("sacctmgr", "-nP", "show", "assoc", "account=lab", "format=user,grptres,maxtres")
    assert shown.strip() == "|cpu=8|cpu=8"  # limits other than GPUs stay
    for limit in ("GrpTRES", "GrpTRESRunMins", "MaxTRES", "MaxTRESMins", "MaxTRESPerNode"):
        operator.sacctmgr("modify", "account", "lab", "set", f"{limit}=cpu=-1")


def test_drift_notes_limits_on_accounts_and_users(operator):
    def limit(value):
        operator.sacctmgr("modify", "account", "lab", "set", f"GrpTRES=cpu={value}")
        operator.sacctmgr("modify", "user", "root", "where", "account=default", "set", f"MaxJobs={value}")

    limit(3)
    found = operator.policy("drift")
    assert found.returncode == 0, found.stdout
    assert "accounting limits lab by GrpTRES=cpu=3 (" in found.stdout
    assert "accounting limits root@default by MaxJobs=3 (" in found.stdout
    limit(-1)
    assert operator.policy("drift").stdout == "nothing to do\n"


def test_drift_finds_changed_files(operator):
    include = operator.folder / "policy.conf"
    script = operator.cluster.dir / "job_submit.lua"
    for file in (include, script):
        before = file.read_text()
        file.write_text(before + ("#" if file == include else "--") + " by hand\n")
        assert operator.drift() == {("file", file.name, "text")}
        file.write_text(before)
    operator.cluster.scontrol("reconfigure")
    assert operator.drift() == set()
    for file, mode, owner in ((include, 0o600, 0), (script, 0o666, 0), (operator.folder / "applied.yaml", 0o644, 1)):
        file.chmod(mode)
        os.chown(file, owner, -1)
        assert operator.drift() == {("file", file.name, "mode" if owner == 0 else "owner")}
        operator.apply(POLICY)
        assert (file.stat().st_mode & 0o7777, file.stat().st_uid) == (0o644, 0)
    operator.folder.chmod(0o777)
    os.chown(operator.folder, 1, -1)
    assert operator.drift() == {("file", "gpuq", "mode"), ("file", "gpuq", "owner")}
    refused = operator.policy("rollback")
    assert refused.returncode == 121 and "others could write previous.yaml" in refused.stderr
    operator.apply(POLICY)
    assert (operator.folder.stat().st_mode & 0o7777, operator.folder.stat().st_uid) == (0o755, 0)
    assert operator.drift() == set()


def test_drift_finds_changed_settings_and_a_script_that_was_not_loaded(operator):
    conf, script = operator.cluster.conf, operator.cluster.dir / "job_submit.lua"
    lines, text = conf.read_text(), script.read_text()
    try:
        conf.write_text(lines + "PriorityWeightAge=7\nPreemptExemptTime=5\n")
        operator.cluster.scontrol("reconfigure")
        assert operator.drift() == {("setting", "PriorityWeightAge", "value"), ("setting", "PreemptExemptTime", "value")}
        conf.write_text(lines.replace("preempt_youngest_first", "bf_yield_sleep=1000"))
        operator.cluster.scontrol("reconfigure")
        missing = operator.policy("drift")
        assert missing.returncode == 10 and "preempt_youngest_first" in missing.stdout, missing.stdout
    finally:
        conf.write_text(lines)
        operator.cluster.scontrol("reconfigure")
    assert operator.drift() == set()
    script.write_text("function slurm_job_submit() return slurm.SUCCESS end\nfunction slurm_job_modify() return slurm.SUCCESS end\n")
    operator.cluster.scontrol("reconfigure")
    other = {("script", "job_submit.lua", "version")}
    assert operator.drift() == other
    script.write_text(text)
    os.utime(script, (1, 1))  # slurmctld loads only a newer one; from 24.11 on it crashes on a file of time 0
    assert operator.drift() == other
    operator.apply(POLICY)
    assert operator.drift() == set()


def test_a_bad_policy_never_reaches_slurmctld(operator):
    pid = operator.cluster.pid("slurmctld")
    include = (operator.folder / "policy.conf").read_text()
    for bad, words in ((POLICY.replace("pools: main", "pools: mian"), "mian"),
                       (POLICY.replace('"m[1-2]"', '"m[1-3]"'), "no node m3"),
                       (POLICY.replace("accounts: lab,", "accounts: nosuch,"), "account nosuch")):
        operator.write(bad)
        done = operator.policy("apply", operator.file)
        assert done.returncode != 0 and words in done.stderr, done.stderr
    # An error that only slurmctld can detect: the rehearsal's slurmctld exits, the real one does not.
    operator.write(POLICY.replace("weight: 1}", "weight: 1}\n  a100: {memory: 40G}"))
    conf = operator.cluster.conf.read_text()
    done = operator.policy("apply", operator.file)
    assert done.returncode != 0 and "a100" in done.stderr, done.stderr
    assert operator.cluster.conf.read_text() == conf
    assert (operator.folder / "policy.conf").read_text() == include
    assert operator.cluster.pid("slurmctld") == pid
    assert operator.drift() == set()


def test_the_rehearsal_ends_in_place_of_slurmctld(operator):
    pid = operator.cluster.pid("slurmctld")
    conf = operator.cluster.conf.read_text()
    try:  # a fault of the site's own configuration, which every read of it would meet
        operator.cluster.conf.write_text(conf + "NodeName=x1 Port=70000\nPartitionName=p Nodes=nowhere\n")
        operator.write(CHANGED)
        done = operator.policy("apply", operator.file)
    finally:
        operator.cluster.conf.write_text(conf)
    assert done.returncode != 0 and "nothing was changed" in done.stderr, done.stderr
    assert operator.cluster.pid("slurmctld") == pid
    assert operator.drift() == set()


def test_a_queue_that_is_removed_takes_no_other_from_its_users(operator):
    def more(names):
        queues = "".join(f"  {name}: {{time: {hours}h, pools: main}}\n" for name, hours in names.items())
        return POLICY.replace("  long:\n", queues + "  long:\n")

    def held():
        printed = operator.cluster.slurm("sacctmgr", "-nP", "show", "assoc", "where", "account=root", "user=", "format=qos")
        return set(printed.strip().split(","))

    operator.apply(more({"one": 5, "two": 6, "three": 7}))
    before = held()
    assert {"gpuq_one", "gpuq_two", "gpuq_three"} <= before
    operator.apply(more({"one": 5, "three": 7}))
    assert held() == before - {"gpuq_two"}
    assert operator.drift() == set()


@pytest.mark.timeout(of_soak(2 * 3600, 600))
def test_an_apply_that_is_killed_goes_on_or_goes_back(operator):
    begun = 0
    started = time.monotonic()
    operator.apply(CHANGED)
    whole = time.monotonic() - started
    operator.apply(POLICY)
    moments = random.Random(8)
    parts = of_soak([moments.uniform(0.02, 0.98) for _ in range(200)], (0.45, 0.6, 0.3, 0.7, 0.5, 0.4, 0.55, 0.35))
    for turn, part in enumerate(parts):
        if begun >= 2 and not SOAK:
            break  # On a busy machine, fewer are cut off in the middle.
        operator.write(CHANGED)
        child = subprocess.Popen([GPUQ, "policy", "apply", str(operator.file)],
                                 env=operator.cluster.env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(part * whole)
        child.send_signal(signal.SIGKILL)
        child.wait()
        operator.cluster.scontrol("ping")
        cut = (operator.folder / "journal").exists()
        begun += cut
        if turn % 2 == 0:
            operator.apply(CHANGED)
            assert operator.drift() == set()
            assert limits(operator)["gpuq_calibration"] == "6|"
        elif cut:
            assert operator.interrupted()
            back = operator.policy("rollback")
            assert back.returncode == 0, back.stderr
            assert limits(operator)["gpuq_calibration"] == "8|"
            assert operator.is_in_force(POLICY)[0]
        operator.apply(POLICY)
    assert begun >= 2, "the apply has to be cut off in the middle to show anything"


def begin(operator, text, folder="."):
    file = operator.file.parent / folder / operator.file.name  # Messages in the script contain the name of the file.
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return subprocess.Popen([GPUQ, "policy", "apply", str(file)], env=operator.cluster.env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ends_as_one_of(operator, child, *texts):
    """The apply has ended; the policy in force is one of these, or drift reports that it is not whole."""
    said = child.communicate(timeout=120)[1]
    in_force = [text for text in texts if operator.is_in_force(text)[0]]
    assert in_force or operator.interrupted() or operator.drift(), said
    if child.returncode == 0:
        assert in_force[:1] == [texts[0]], said


@pytest.mark.timeout(of_soak(3600, 600))
@pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd"])
def test_an_apply_survives_the_death_of_a_daemon(operator, daemon):
    leave_to_soak(unless=daemon == "slurmctld")
    started = time.monotonic()
    operator.apply(CHANGED)
    whole = time.monotonic() - started
    moments = random.Random(9)
    hit = 0
    for part in of_soak([moments.uniform(0, 1) for _ in range(20)], (0.4, 0.3, 0.2, 0.1, 0.05)):
        if hit and not SOAK:
            break
        operator.apply(POLICY)
        with begin(operator, CHANGED) as child:
            time.sleep(part * whole)
            if child.poll() is not None:
                continue  # a daemon that is killed later forgets what it has not saved
            hit += 1
            operator.cluster.signal(daemon)
            operator.cluster.repair()
            ends_as_one_of(operator, child, CHANGED, POLICY)
        operator.apply(CHANGED)
        assert operator.drift() == set()
    assert hit, "the daemon has to die while the apply needs it"


def test_of_two_operators_at_once_one_has_its_policy_in_force(operator):
    other = CHANGED.replace("queued: 6", "queued: 5")
    for _ in range(of_soak(20, 1)):
        operator.apply(POLICY)
        children = [begin(operator, CHANGED, "one"), begin(operator, other, "other")]
        said = [child.communicate(timeout=120)[1] for child in children]
        statuses = [child.returncode for child in children]
        assert 0 in statuses and set(statuses) <= {0, 120}, said
        assert operator.is_in_force(CHANGED)[0] or operator.is_in_force(other)[0], said
        assert operator.drift() == set()


def test_a_partition_with_a_job_leaves_when_the_job_has_ended(operator):
    job = operator.cluster.slurm("sbatch", "--parsable", "-p", "calibration", "--gres=gpu:1", "-t",
                                 "10", "-o", "/dev/null", "--wrap=sleep 600").strip()
    wait_for(lambda: operator.cluster.job(job)["JobState"] == "RUNNING", 30)
    here = operator.cluster.job(job)["Partition"]
    gone = POLICY.replace("    pools: [calib, lab]\n", "    pools: lab\n").replace(
        "  lab:\n    time: 48h", "  spare:\n    time: 1h\n    pools: calib\n  lab:\n    time: 48h")
    done = operator.apply(gone)
    # The job runs in another partition of the queue, and would be killed if one of the partitions it was submitted
    # to were removed.
    assert operator.cluster.job(job)["JobState"] == "RUNNING", (here, done.stderr)
    assert "State=DRAIN" in operator.cluster.scontrol("show", "partition", "calibration-lab")
    operator.cluster.scontrol("reconfigure")
    assert operator.cluster.job(job)["JobState"] == "RUNNING"
    assert operator.drift() == set()
    operator.cluster.slurm("scancel", job)
    operator.cluster.wait_until_idle()
    operator.apply(gone)
    assert operator.drift() == set()
    assert "calibration-lab" not in operator.cluster.slurm("sinfo", "-h", "-o", "%R").split()


def test_a_plan_is_held_against_the_sites_own_jobs(operator):
    job = operator.cluster.slurm("sbatch", "--parsable", "-p", "long", "--gres=gpu:v100:4", "-t", "10",
                                 "-o", "/dev/null", "--wrap=sleep 1").strip()
    # By time, sacct finds a job only when slurmdbd knows its eligible time.
    wait_for(lambda: f"{job}|COMPLETED" in operator.cluster.slurm("sacct", "-anXP", "-S", "now-1hour",
                                                                  "-o", "jobid,state"), 60)
    operator.write(POLICY)
    shown = operator.policy("simulate", "--from-accounting", "1h", "--json", operator.file)
    assert shown.returncode == 0, shown.stderr
    courses = json.loads(shown.stdout)["courses"]
    assert courses[0]["short"]["runs"] == courses[1]["short"]["runs"] >= 1

    operator.write(POLICY.replace("job: {gpus: 4, nodes: 1}", "job: {gpus: 2, nodes: 1}")
                   .replace("account: {gpus: 6}", "account: {gpus: 6}, job: {gpus: 2}"))
    plan = operator.policy("plan", "--from-accounting", "1h", operator.file)
    assert plan.returncode == 10, plan.stderr
    assert "policy in force" in plan.stdout
    assert f"    job {job} of root (root): 4 GPUs, limit 10 min: no queue takes this job" in plan.stdout

    operator.cluster.signal("slurmdbd")
    try:
        silent = operator.policy("simulate", "--from-accounting", "1h", operator.file)
    finally:
        operator.cluster.repair()
    assert silent.returncode == 120
    assert "accounting does not answer" in silent.stderr and "--trace FILE" in silent.stderr
