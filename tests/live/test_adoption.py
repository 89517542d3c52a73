# SPDX-License-Identifier: GPL-2.0-or-later
"""A site with a slurm.conf, partitions and a submission script of its own adopts a policy and backs out,
as gpuq-adoption(7) describes: afterwards its files and its accounting are as before."""
import contextlib
import os
import re
import signal
import subprocess

import pytest

from clusters import GPUQ, ROOT, Cluster, Person, command_of, run, short_folder, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a policy is applied by root or SlurmUser")

SITES_SCRIPT = """\
function slurm_job_submit(job, partitions, uid)
   if job.name == "forbidden" then
      slurm.log_user("a rule of the site")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
"""

POLICY = """\
version: 1
pools:
  all: {nodes: "n[0-1]", gpus: "k80:4", threads_per_core: 1}
queues:
  trial: {time: 2h, pools: all, limits: {user: {soft_gpus: 2, queued: 20}}}
  batch: {time: 48h, default_time: 24h, pools: all, allow: {accounts: lab}, limits: {user: {gpus: 4}}}
fair_share: {shares: {lab: 3}}
tests:
  - {job: {gpus: 1, time: 2h}, expect: {queue: trial}}
"""

LINES = ("KillWait=5", "JobSubmitPlugins=lua", "PriorityType=priority/multifactor", "PriorityWeightAge=500",
         "AccountingStorageEnforce=associations")

#: Shell commands of the page, in the directory of slurm.conf.
CLOSE = "sed -i '/^PartitionName=/s/$/ State=DRAIN/' gpuq/policy.conf"
STILL_USED = r"squeue -a -p $(sed -n 's/^PartitionName=\([^ ]*\).*/\1/p' gpuq/policy.conf | paste -sd,)"

LIMITS = "grptres,grpjobs,grpsubmit,maxtres,maxtrespernode,maxtresmins,maxjobs,maxsubmit"


class Site:
    """A cluster whose slurm.conf is its operator's: `gpuq cluster up` is not called again."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.script = cluster.dir / "job_submit.lua"
        self.gpuq_dir = cluster.dir / "gpuq"
        self.include = self.gpuq_dir / "policy.conf"
        self.file = folder / "policy.yaml"
        self.file.write_text(POLICY)

    def policy(self, *words):
        return run([GPUQ, "policy", *map(str, words)], env=self.cluster.env, timeout=120)

    def sacctmgr(self, *words):
        return self.cluster.slurm("sacctmgr", *words)

    def shell(self, command):
        return self.cluster.slurm("sh", "-c", f"cd {self.cluster.dir} && {command}")

    def edit_conf(self, edit):
        self.cluster.conf.write_text(edit(self.cluster.conf.read_text()))

    def restart_slurmctld(self):
        self.cluster.scontrol("shutdown", "slurmctld")
        # From Slurm 23.11 on, the process after a reconfiguration is another one than `gpuq cluster` started.
        wait_for(lambda: not [pid for pid in self.cluster.daemons() if command_of(pid).startswith("slurmctld")], 20,
                 "the end of slurmctld")
        subprocess.run(["slurmctld", "-f", str(self.cluster.conf)], env=self.cluster.env, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: " is UP" in self.cluster.slurm("scontrol", "ping", check=False), 20, "slurmctld")
        self.cluster.scontrol("reconfigure")

    def accounting(self):
        """What accounting holds, as far as a policy could change it."""
        return {"associations": self.sacctmgr("-nP", "show", "assoc", "withrawqoslevel",
                                              f"format=account,user,share,qos,defaultqos,{LIMITS}"),
                "qos": self.sacctmgr("-nP", "show", "qos"),
                "users": self.sacctmgr("-nP", "show", "user"),
                "reservations": self.cluster.slurm("scontrol", "show", "reservation", check=False)}

    def partitions(self):
        return sorted(self.cluster.slurm("scontrol", "-o", "show", "partition").splitlines())

    def settings(self):
        text = self.cluster.scontrol("show", "config").partition("Slurmctld(")[0]
        return [line for line in text.splitlines()
                if not re.match(r"Configuration data|BOOT_TIME|NEXT_JOB_ID", line)]

    def files(self):
        names = ("slurm.conf", "job_submit.lua", "gres.conf", "cgroup.conf")
        return {name: (self.cluster.dir / name).read_text() for name in names}

    def everything(self):
        return {**self.accounting(), **self.files(), "partitions": self.partitions(),
                "settings": self.settings(), "directory": sorted(os.listdir(self.cluster.dir))}

    def sbatch(self, *words, sleep=600, check=True):
        done = run(["sbatch", "--parsable", "-o", "/dev/null", *words, f"--wrap=sleep {sleep}"],
                   env=self.cluster.env)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip() if check else done

    def state(self, job):
        return self.cluster.job(job)["JobState"]

    def wait_for_state(self, job, wanted, seconds=40):
        wait_for(lambda: self.state(job) == wanted, seconds, lambda: f"{job} {wanted}: {self.cluster.job(job)}")


@pytest.fixture
def site():
    with short_folder() as folder:
        cluster = Cluster(folder / "c")
        cluster.dir.mkdir(mode=0o755)
        (cluster.dir / "job_submit.lua").write_text(SITES_SCRIPT)
        try:
            cluster.up(gpus=4, nodes=2, lines=LINES)
            one = Site(cluster, folder)
            one.sacctmgr("-i", "add", "qos", "night")
            one.sacctmgr("-i", "add", "account", "lab", "fairshare=7", "grptres=cpu=900,gres/gpu=6")
            one.sacctmgr("-i", "add", "user", "root", "account=lab", "qos+=night")
            yield one
        finally:
            cluster.cluster("down", "--purge", check=False)
            for pid in cluster.daemons():  # the slurmctld that restart_slurmctld() started is not gpuq's
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not cluster.daemons(), 20, lambda: [command_of(pid) for pid in cluster.daemons()])


def adopt(site):
    """The steps of "A policy" in the page, up to `gpuq policy apply`."""
    site.gpuq_dir.mkdir(exist_ok=True)  # a refused apply has made it
    site.include.write_text("# gpuq\n")

    def edit(text):
        text = re.sub(r"^(PartitionName=.*)$", r"\1 State=DRAIN", text, flags=re.M)
        text = re.sub(r"^(SchedulerParameters=.*)$", r"\1,bf_continue,bf_one_resv_per_job,preempt_youngest_first",
                      text, flags=re.M)
        text = re.sub(r"^AccountingStorageTRES=.*$", "AccountingStorageTRES=gres/gpu", text, flags=re.M)
        text = text.replace("PriorityWeightAge=500\n", "")
        return text.replace("AccountingStorageEnforce=associations",
                            "AccountingStorageEnforce=associations,limits,qos,safe") + "include gpuq/policy.conf\n"

    site.edit_conf(edit)
    site.restart_slurmctld()


def back_out(site, conf, script):
    """The steps of "Backing out" in the page. `conf`: the site's slurm.conf from before."""
    # 1. New jobs go to the site's partitions; the policy's accept no more.
    site.edit_conf(lambda text: text.replace(" State=DRAIN", ""))
    site.shell(CLOSE)
    site.script.write_text(script)
    site.cluster.scontrol("reconfigure")
    yield "closed"
    # 2. Their jobs end.
    wait_for(lambda: len(site.shell(STILL_USED).splitlines()) == 1, 120, "the policy's partitions empty")
    # 3. Slurm without the policy's file and settings.
    site.cluster.conf.write_text(conf)
    site.restart_slurmctld()
    # 4. Accounting: first from the holders, then the QOS themselves.
    site.sacctmgr("-i", "modify", "account", "root", "set", "qos-=gpuq_trial")
    site.sacctmgr("-i", "modify", "account", "lab", "set", "qos-=gpuq_batch")
    assert "gpuq_" not in site.sacctmgr("-nP", "show", "assoc", "format=account,user,qos")
    site.sacctmgr("-i", "delete", "qos", "gpuq_trial", "gpuq_trial_soft", "gpuq_batch")
    site.sacctmgr("-i", "modify", "account", "lab", "set", "fairshare=7", "grptres=gres/gpu=6")
    # 5. The directory.
    for file in site.gpuq_dir.iterdir():
        file.unlink()
    site.gpuq_dir.rmdir()
    yield "done"


def test_the_page_has_these_commands():
    page = (ROOT / "man" / "gpuq-adoption.7").read_text().replace(r"\-", "-").replace(r"\e", "\\")
    for command in (CLOSE, STILL_USED):
        assert command in page


def test_a_site_adopts_a_policy_and_backs_out(site):
    before = site.everything()
    conf = site.cluster.conf.read_text()
    with short_folder() as home:
        person = Person(site.cluster, home)

        # Before: gpuq in front of the site's own partitions.
        assert person.gpuq("run", "-t", "5m", "true").returncode == 0
        plan = site.policy("plan", site.file)
        assert plan.returncode == 10 and "does not include the policy's file" in plan.stdout
        refused = site.policy("apply", site.file)
        assert refused.returncode == 121 and "job_submit.lua" not in refused.stderr
        assert refused.stderr.count("leads to nodes of the policy") == 2

        # Adoption, while a job of an old partition runs.
        old = site.sbatch("-p", "gpu", "--gres=gpu:1")
        site.wait_for_state(old, "RUNNING")
        adopt(site)
        plan = site.policy("plan", site.file)
        assert "before it can be applied" not in plan.stdout and plan.stdout.count("is shut") == 2
        applied = site.policy("apply", site.file)
        assert applied.returncode == 0, applied.stderr
        assert site.policy("drift").returncode == 0
        assert site.policy("rollback").returncode == 2  # there is no policy before the first
        assert site.state(old) == "RUNNING"
        site.cluster.slurm("scancel", old)
        assert "gres/gpu" not in site.sacctmgr("-nP", "show", "assoc", "account=lab", "format=grptres")
        assert "a rule of the site" in site.sbatch("-p", "trial", "--gres=gpu:1", "-J", "forbidden", check=False).stderr
        assert "at most 2 h" in site.sbatch("-p", "trial", "--gres=gpu:1", "-t", "3:00:00", check=False).stderr
        assert site.sbatch("-p", "gpu", "--gres=gpu:1", check=False).returncode != 0

        # Backing out, while runs of the policy's queues run and wait.
        with person.start("run", "-t", "10m", "-g", "4", "-N", "2", "sh", "-c", "echo begun; sleep 12") as running:
            assert [running.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
            waiting = site.sbatch("--gres=gpu:4", "-N", "2", "-t", "10", sleep=1)
            steps = back_out(site, conf, SITES_SCRIPT)
            next(steps)
            fresh = site.sbatch("-p", "gpu", "--gres=gpu:1", sleep=1)
            assert site.cluster.job(fresh)["QOS"] == "normal"
            assert "a rule of the site" in site.sbatch("-J", "forbidden", check=False).stderr
            assert site.sbatch("-p", "trial", "--gres=gpu:1", check=False).returncode != 0
            next(steps)
            assert running.wait(30) == 0
        assert site.cluster.accounted(waiting)["State"] == "COMPLETED"
        assert site.cluster.accounted(fresh)["State"] == "COMPLETED"
        site.cluster.wait_until_idle()
        after = site.everything()
        assert {key: after[key] for key in before if after[key] != before[key]} == {}
        assert person.gpuq("run", "-t", "5m", "-p", "gpu", "true").returncode == 0
        assert "  sh  " in person.gpuq("ls", "--all").stdout
