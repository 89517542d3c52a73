# SPDX-License-Identifier: GPL-2.0-or-later
"""Attempts of an ordinary user to get more than a policy gives, and what every job must keep to.

The attempts do not know the policy; `violations` compares jobs as Slurm shows them with the YAML file, independently of
the code that renders the policy for Slurm.
"""
import re
import subprocess
import time

import yaml

from clusters import as_kwargs, run, wait_for

#: One job for a GPU, within every policy's limits.
PLAIN = ["--gres=gpu:1", "-t", "20"]
LATER = [*PLAIN, "--begin=now+1hour"]

#: Options of sbatch, salloc and srun.
OPTIONS = {
    "many GPUs of a node": ["--gres=gpu:64", "-t", "20"],
    "all GPUs of a node": ["--gpus-per-node=4", "-t", "20"],
    "GPUs of a job": ["--gpus=8", "-t", "20"],
    "GPUs of tasks": ["-n", "8", "--gpus-per-task=1", "-t", "20"],
    "GPUs of sockets": ["--gpus-per-socket=4", "--sockets-per-node=2", "-t", "20"],
    "tasks of GPUs": ["-n", "8", "--ntasks-per-gpu=1", "-t", "20"],
    "two counts of GPUs": ["--gres=gpu:1", "--gpus=8", "-t", "20"],
    "a count of GPUs and one of tasks": ["--gres=gpu:1", "--gpus-per-task=1", "-n", "8", "-t", "20"],
    "two kinds of GPUs": ["--gres=gpu:k80:2,gpu:p100:4,gpu:v100:4", "-t", "20"],
    "GPUs and shares": ["--gres=gpu:1,shard:4", "-t", "20"],
    "many shares": ["--gres=shard:64", "-t", "20"],
    "shares of several nodes": ["-N", "4", "--gres=shard:1", "-t", "20"],
    "no GPU": ["-t", "20"],
    "no GPU, named so": ["--gres=none", "-t", "20"],
    "no GPU, many cores": ["-c", "16", "-t", "20"],
    "nodes": ["-N", "4", "--gres=gpu:1", "-t", "20"],
    "a range of nodes": ["-N", "1-100", "--gres=gpu:1", "-t", "20"],
    "nodes by tasks": ["-n", "4", "--ntasks-per-node=1", "--gres=gpu:1", "-t", "20"],
    "nodes by GPUs": ["--gpus=8", "--gpus-per-node=1", "-t", "20"],
    "nodes without a count": ["-N", "4", "--use-min-nodes", "--gpus=4", "-t", "20"],
    "cores of a task": [*PLAIN, "-c", "64"],
    "cores by tasks": [*PLAIN, "-n", "64"],
    "cores by tasks of a node": [*PLAIN, "--ntasks-per-node=32"],
    "cores by tasks of a core": [*PLAIN, "-n", "16", "--ntasks-per-core=1"],
    "cores by tasks of a socket": [*PLAIN, "-n", "16", "--ntasks-per-socket=8"],
    "cores of GPUs": [*PLAIN, "--cpus-per-gpu=64"],
    "cores at least": [*PLAIN, "--mincpus=64"],
    "whole cores": [*PLAIN, "-c", "4", "--hint=nomultithread"],
    "one thread of each core": [*PLAIN, "-c", "4", "--threads-per-core=1"],
    "sockets": [*PLAIN, "-B", "2:8:1"],
    "cores of sockets": [*PLAIN, "--cores-per-socket=16", "--sockets-per-node=1"],
    "reserved cores": [*PLAIN, "--core-spec=2"],
    "reserved threads": [*PLAIN, "--thread-spec=2"],
    "memory": [*PLAIN, "--mem=200G"],
    "all memory": [*PLAIN, "--mem=0"],
    "memory of cores": [*PLAIN, "-c", "2", "--mem-per-cpu=64G"],
    "memory of GPUs": [*PLAIN, "--mem-per-gpu=200G"],
    "a whole node": [*PLAIN, "--exclusive"],
    "a node of one's own": [*PLAIN, "--exclusive=user"],
    "shared resources": [*PLAIN, "--oversubscribe"],
    "overcommitted cores": [*PLAIN, "-O", "-n", "64"],
    "spread over nodes": ["--gpus=4", "--nodes=2-8", "-t", "20"],
    "hours": ["--gres=gpu:1", "-t", "100:00:00"],
    "no limit": ["--gres=gpu:1", "-t", "UNLIMITED"],
    "no limit by a number": ["--gres=gpu:1", "-t", "0"],
    "hours, with fewer at least": ["--gres=gpu:1", "-t", "100:00:00", "--time-min=1:00:00"],
    "precedence": [*PLAIN, "--nice=-1000"],
    "a priority": [*PLAIN, "--priority=4294967000"],
    "the QOS of all": [*PLAIN, "--qos=normal"],
    "an account": [*PLAIN, "-A", "lab"],
    "another account": [*PLAIN, "-A", "staff"],
    "a reservation": [*PLAIN, "--reservation=gpuq_deep-learning-2026"],
    "another reservation": [*PLAIN, "--reservation=gpuq_machine-learning"],
    "several parts": [*PLAIN, ":", *PLAIN],
    "two parts, one large": [*PLAIN, ":", "--gres=gpu:4", "-t", "20"],
}

#: Environment variables of sbatch, with the options beside them: an option has precedence over its variable.
VARIABLES = {
    "hours by SBATCH_TIMELIMIT": ({"SBATCH_TIMELIMIT": "100:00:00"}, ["--gres=gpu:1"]),
    "the QOS by SBATCH_QOS": ({"SBATCH_QOS": "normal"}, PLAIN),
    "a queue by SBATCH_PARTITION": ({"SBATCH_PARTITION": "lab"}, PLAIN),
    "GPUs by SBATCH_GPUS": ({"SBATCH_GPUS": "8"}, ["-t", "20"]),
    "GPUs by SBATCH_GPUS_PER_NODE": ({"SBATCH_GPUS_PER_NODE": "4"}, ["-t", "20"]),
    "a node by SBATCH_EXCLUSIVE": ({"SBATCH_EXCLUSIVE": "exclusive"}, PLAIN),
    "memory by SBATCH_MEM_PER_GPU": ({"SBATCH_MEM_PER_GPU": "200G"}, PLAIN),
    "cores by SBATCH_CPUS_PER_GPU": ({"SBATCH_CPUS_PER_GPU": "64"}, PLAIN),
}

#: Lines of a script.
LINES = {
    "GPUs by a line": ["--gpus=8"],
    "a node by a line": ["--exclusive", "--mem=0"],
    "a part by a line": ["hetjob", "--gres=gpu:4 -t 20"],
}

#: `scontrol update` of one's own job, which waits or runs.
CHANGES = ["TimeLimit=100:00:00", "TimeLimit=UNLIMITED", "TimeLimit=+6000", "QOS=normal", "Partition=lab", "Partition=long",
           "Partition=staff", "Partition=long,calibration", "Account=lab", "Gres=gpu:4", "TresPerNode=gpu:4", "TresPerJob=gpu:8",
           "TresPerTask=gpu:4", "TresPerSocket=gpu:4", "NumNodes=4", "NumNodes=1-8", "NumTasks=64", "NumCPUs=64",
           "MinCPUsNode=64", "MinMemoryNode=200000", "MinMemoryCPU=64000", "MinMemoryNode=0", "ReqCores=16", "ReqThreads=1",
           "CoreSpec=2", "OverSubscribe=NO", "Exclusive=user", "Nice=-1000", "Priority=4294967000", "ReservationName=x",
           "CpusPerTask=64", "ReqNodeList=lab1", "Features=x", "TimeMin=1", "EndTime=now+10days", "Deadline=now+10days"]


def seconds(text):
    if text in ("UNLIMITED", "INFINITE", "Partition_Limit"):
        return float("inf")
    days, _, rest = text.rpartition("-")
    hours, minutes, secs = rest.split(":")
    return ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(secs)


def seconds_of_policy(text):
    return sum(int(number) * {"m": 60, "h": 3600, "d": 86400}[unit] for number, unit in re.findall(r"(\d+)([mhd])", str(text)))


def mebibytes(text):
    number, unit = re.fullmatch(r"([\d.]+)([KMGT]?)", text).groups()
    return float(number) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 ** 2}[unit]


def listed(value):
    return value if isinstance(value, list) else [value]


def loosest(queue):
    """The queue with the largest values of its calendar: those of the moment are not larger."""
    for entry in queue.get("calendar", []):
        queue["time"] = max(queue["time"], entry.get("time", queue["time"]), key=seconds_of_policy)
        for whose, limits in entry.get("limits", {}).items():
            own = queue.get("limits", {}).get(whose, {})
            own.update({key: max(value, own[key]) for key, value in limits.items() if key in own})
    return queue


class Policy:
    """The file as an operator reads it, for a user who is in none of the accounts that it names."""

    def __init__(self, path):
        self.file = yaml.safe_load(path.read_text())
        self.queues = {name: loosest(queue) for name, queue in self.file["queues"].items()}
        self.pools = self.file["pools"]

    def whole_node(self, queue):
        """The most GPUs that a node of the queue has; unknown for a policy of all nodes: 4 on those of the test."""
        names = listed(queue["pools"]) + listed(queue.get("overflow", []))
        return max(int(str(self.pools[name].get("gpus", "x:4")).split(":")[1]) for name in names)

    def violations(self, jobs):
        """What is not allowed of these jobs of one user, as sentences."""
        found = [f"job {job['JobId']} {problem}" for job in jobs for problem in self.of_job(job)]
        return found + [problem for name, queue in self.queues.items()
                        for problem in self.of_user(name, queue, [job for job in jobs if job["QOS"] == f"gpuq_{name}"])]

    def of_user(self, name, queue, jobs):
        limits = queue.get("limits", {}).get("user", {})
        running = [job for job in jobs if job["JobState"] in ("RUNNING", "COMPLETING")]
        for kind, key in (("gpus", "gres/gpu"), ("shares", "gres/shard")):
            if kind in limits and sum(job["TRES"].get(key, 0) for job in running) > limits[kind]:
                yield f"{name}: {len(running)} jobs hold more than {limits[kind]} {kind}"
        if "queued" in limits and sum(job["tasks"] for job in jobs) > limits["queued"]:
            yield f"{name}: more than {limits['queued']} jobs"

    def of_job(self, job):
        name = job["QOS"].removeprefix("gpuq_")
        queue = self.queues.get(name)
        if queue is None or "allow" in queue:
            yield f"has QOS {job['QOS']}"
            return
        if any(part != name and not part.startswith(f"{name}-") for part in job["Partition"].split(",")):
            yield f"of queue {name} is in partition {job['Partition']}"
        if seconds(job["TimeLimit"]) > seconds_of_policy(queue["time"]):
            yield f"of queue {name} has {job['TimeLimit']}"
        if int(job["Nice"]) < 0:
            yield f"has nice {job['Nice']}"
        if job.get("Reservation", "(null)") not in ("(null)", ""):
            yield f"is in reservation {job['Reservation']}"
        if job["Account"] in ("lab", "visu", "staff", "course-dl", "ml-course"):
            yield f"has account {job['Account']}"
        yield from self.of_resources(job, name, queue)

    def of_resources(self, job, name, queue):
        tres, limits = job["TRES"], queue.get("limits", {}).get("job", {})
        gpus, shares, nodes = tres.get("gres/gpu", 0), tres.get("gres/shard", 0), tres["node"]
        if gpus + shares == 0 and self.file.get("default_queue") != name:
            yield f"of queue {name} has no GPU"
        for kind, count in (("gpus", gpus), ("nodes", nodes)):
            if kind in limits and count > limits[kind]:
                yield f"of queue {name} has {count:g} {kind}"
        user = queue.get("limits", {}).get("user", {})
        if gpus > user.get("gpus", gpus) or shares > user.get("shares", shares):
            yield f"of queue {name} has {gpus:g} GPUs and {shares:g} shares"
        if "per_gpu" not in queue or gpus >= self.whole_node(queue) * nodes:
            return
        # Slurm gives whole cores: a CPU for a job of one on nodes with two threads is two.
        part = gpus + shares / 4
        threads = max(self.pools[pool].get("threads_per_core", 1) for pool in listed(queue["pools"]))
        cpus = max(part * queue["per_gpu"]["cpus"], threads * nodes)
        if tres["cpu"] > cpus or tres["mem"] > part * mebibytes(queue["per_gpu"]["memory"]):
            yield f"of queue {name} has {tres['cpu']:g} CPUs and {tres['mem']:g} MiB with {part:g} GPUs"


def tres_of(text):
    output = {}
    for name, _, amount in (word.partition("=") for word in text.split(",") if "=" in word):
        output[name] = mebibytes(amount) if name == "mem" else float(amount)
    return output


def jobs_of(cluster, user):
    """The user's jobs that wait or run. TRES: what is allocated, or would be."""
    jobs = []
    for line in cluster.scontrol("show", "job", "-o").splitlines():
        job = dict(re.findall(r"(?:^| )([A-Za-z]\S*?)=(\S*)", line))
        if not job.get("UserId", "").startswith(f"{user.pw_name}(") or \
                job["JobState"] not in ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING"):
            continue
        allocated = job.get("AllocTRES", "(null)")
        job["TRES"] = tres_of(job.get("TRES", job.get("ReqTRES", "")) if allocated == "(null)" else allocated)
        array = re.fullmatch(r"(\d+)-(\d+)(?:%\d+)?", job.get("ArrayTaskId", ""))
        job["tasks"] = int(array[2]) - int(array[1]) + 1 if array else 1
        jobs.append(job)
    return jobs


def may_start(job):
    """False once Slurm has a reason of its own not to start the job."""
    return job["JobState"] == "PENDING" and not job["Reason"].startswith(("BeginTime", "QOS", "Assoc", "Resources", "Priority"))


class Attacker:
    """A user with a cluster and its policy. Every attempt ends with an empty queue."""

    def __init__(self, cluster, user, policy):
        self.cluster, self.user, self.policy = cluster, user, policy
        self.accepted = 0

    def run(self, *words, env=None, **options):
        return run([str(word) for word in words], env={**self.cluster.env, **(env or {})}, user=self.user, **options)

    def judge(self, what):
        """Returns the violations after the attempt, before and after its jobs could start."""
        jobs = jobs_of(self.cluster, self.user)
        self.accepted += bool(jobs)
        found = self.policy.violations(jobs)
        deadline = time.monotonic() + 3
        while any(may_start(job) for job in jobs) and time.monotonic() < deadline:
            time.sleep(0.1)
            jobs = jobs_of(self.cluster, self.user)
            found += self.policy.violations(jobs)
        self.clear()
        return [f"{what}: {each}" for each in dict.fromkeys(found)]

    def clear(self):
        self.cluster.slurm("scancel", "-u", self.user.pw_name, check=False)
        wait_for(lambda: not jobs_of(self.cluster, self.user), 30, "an empty queue")

    def batch(self, what, words, env=None):
        self.run("sbatch", "-o", "/dev/null", *words, "--wrap", "exec sleep 60", env=env)
        return self.judge(f"sbatch, {what}")

    def allocation(self, what, words):
        self.run("salloc", "-Q", "--no-shell", "-I2", *words)
        return self.judge(f"salloc, {what}")

    def direct(self, what, words):
        def runs():
            return any(job["JobState"] == "RUNNING" for job in jobs_of(self.cluster, self.user))
        with subprocess.Popen(["srun", "-Q", "-I2", *words, "sleep", "60"], env=self.cluster.env, cwd="/tmp", stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_kwargs(self.user)) as child:
            wait_for(lambda: child.poll() is not None or runs(), 20)
            found = self.judge(f"srun, {what}")
            child.wait(30)
        return found

    def script(self, what, lines):
        options = "".join(f"#SBATCH {line}\n" for line in ["-o /dev/null", "--gres=gpu:1", "-t 20", *lines])
        self.run("sbatch", input=f"#!/bin/sh\n{options}exec sleep 60\n")
        return self.judge(f"a script, {what}")

    def submitted(self, *words):
        """A job of the user, or None. Waits until it runs if it may start now."""
        job = self.run("sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", "exec sleep 60").stdout.strip()
        if job and not any(word.startswith("--begin") for word in words):
            wait_for(lambda: self.cluster.job(job)["JobState"] == "RUNNING", 60, lambda: self.cluster.job(job))
        return job or None

    def change(self, words, base):
        job = self.submitted(*base)
        assert job, base
        self.run("scontrol", "update", f"jobid={job}", words)
        return self.judge(f"scontrol update {words} of a job that {'waits' if base is LATER else 'runs'}")

    def changed_twice(self, *changes):
        """Each is harmless, or refused, alone."""
        job = self.submitted(*LATER)
        for words in changes:
            self.run("scontrol", "update", f"jobid={job}", words)
        return self.judge(f"scontrol update {', then '.join(changes)}")

    def whole_node_without_its_gpus(self):
        """A change that Slurm stores as text, without giving the GPUs, makes cores of a whole node look allowed."""
        found = []
        for field in ("TresPerNode", "TresPerJob", "TresPerSocket", "TresPerTask"):
            for form in ("gpu:4", "gpu=4", "gres/gpu:4", "gres:gpu:4", "gres:gpu:1,gpu:3"):
                job = self.submitted(*LATER)
                for words in (f"{field}={form}", "NumCPUs=64", "MinMemoryNode=0"):
                    self.run("scontrol", "update", f"jobid={job}", words)
                self.run("scontrol", "update", f"jobid={job}", "NumCPUs=32")
                self.run("scontrol", "update", f"jobid={job}", "StartTime=now")
                found += self.judge(f"{field}={form} and the cores of a node")
        return found

    def arrays(self):
        self.run("sbatch", "-o", "/dev/null", "--array=0-999", *PLAIN, "--wrap", "exec sleep 60")
        found = self.judge("a thousand tasks of an array")
        for _ in range(3):
            self.run("sbatch", "-o", "/dev/null", "--array=0-49", *PLAIN, "--wrap", "exec sleep 60")
        return found + self.judge("several arrays")

    def many(self):
        for _ in range(40):
            self.run("sbatch", "-o", "/dev/null", *PLAIN, "--wrap", "exec sleep 60")
        return self.judge("forty jobs")

    def expanded(self):
        """A job that gives its resources to another, as Slurm documents for growing jobs."""
        first = self.submitted(*PLAIN)
        self.run("sbatch", "-o", "/dev/null", f"--dependency=expand:{first}", "--gpus=4", "-t", "20", "--wrap",
                 f"scontrol update jobid=$SLURM_JOBID NumNodes=0; scontrol update jobid={first} NumNodes=ALL; sleep 60")
        return self.judge("an expanded job")

    def requeued(self):
        job = self.submitted(*PLAIN, "--requeue")
        self.run("scontrol", "requeuehold", job)
        for words in ("TimeLimit=100:00:00", "TresPerNode=gpu:4", "NumCPUs=64", "Partition=lab"):
            self.run("scontrol", "update", f"jobid={job}", words)
        self.run("scontrol", "release", job)
        return self.judge("a requeued job")

    def steps(self):
        """A step has no more than its job."""
        job = self.submitted(*PLAIN)
        found = []
        for words in (["--gres=gpu:4"], ["--gpus=8"], ["-N", "4"], ["-n", "64", "--exact"], ["--mem=200G"]):
            done = self.run("srun", f"--jobid={job}", "--overlap", "--immediate=2", *words, "true", timeout=40)
            if done.returncode == 0:
                found.append(f"a step with {words} started")
        return found + self.judge("steps")

    def rules(self):
        users = "format=account,user,qos,share,grptres,maxtres,maxsubmit"
        return [self.cluster.slurm("sacctmgr", "-n", "-P", "show", "assoc", "tree", users),
                self.cluster.slurm("sacctmgr", "-n", "-P", "show", "qos"),
                re.sub("State=.*", "", self.cluster.scontrol("show", "partition")),
                self.cluster.scontrol("show", "reservation")]

    def administration(self):
        """What only operators may."""
        name, queue = self.user.pw_name, next(iter(self.policy.queues))
        before = self.rules()
        for words in (["sacctmgr", "-i", "modify", "user", name, "set", "qos=normal", "defaultqos=normal"],
                      ["sacctmgr", "-i", "modify", "user", name, "set", "qos+=normal"],
                      ["sacctmgr", "-i", "modify", "user", name, "set", "grptres=gres/gpu=100", "adminlevel=operator"],
                      ["sacctmgr", "-i", "modify", "qos", f"gpuq_{queue}", "set", "maxtresperuser=gres/gpu=100"],
                      ["sacctmgr", "-i", "add", "user", name, "account=lab"],
                      ["scontrol", "update", f"partitionname={queue}", "maxtime=UNLIMITED"],
                      ["scontrol", "create", "reservation", f"users={name}", "starttime=now", "duration=60", "nodes=ALL"]):
            self.run(*words)
        found = [f"changed by the user: {after}" for earlier, after in zip(before, self.rules()) if earlier != after]
        # Slurm lets users choose their default QOS.
        return found + self.batch("after changes to the rules", PLAIN)
