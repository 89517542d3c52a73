# SPDX-License-Identifier: GPL-2.0-or-later
"""Clusters under a policy, and requests of several users."""
from clusters import run, running_cluster, wait_for

SCHEDULER = ("SchedulerParameters=batch_sched_delay=0,bf_interval=2,bf_continue,bf_one_resv_per_job,"
             "preempt_youngest_first,default_queue_depth=1000")


def running_policy(policy, lines=("KillWait=5", SCHEDULER)):
    """A cluster with the nodes and the rules of the file `policy`."""
    return running_cluster(gpus=None, nodes=None, model=None, lines=lines, options=("--policy", policy))


def join(cluster, user, account):
    """Adds the user to the account and makes it the user's default account."""
    cluster.slurm("sacctmgr", "-i", "add", "user", user.pw_name, f"account={account}")
    cluster.slurm("sacctmgr", "-i", "modify", "user", user.pw_name, "set", f"defaultaccount={account}")


def make_operator(cluster, user):
    """Gives the user AdminLevel Operator in Slurm."""
    cluster.slurm("sacctmgr", "-i", "modify", "user", user.pw_name, "set", "adminlevel=operator")


def sbatch(cluster, user, *words, sleep=600):
    """Returns (job ID or None, sbatch's error output)."""
    done = run(["sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", f"exec sleep {sleep}"],
               env=cluster.env, user=user)
    return (done.stdout.strip() or None), done.stderr


def state(cluster, job):
    return cluster.job(job)["JobState"]


def until(cluster, job, wanted, seconds=20):
    return wait_for(lambda: state(cluster, job) == wanted, seconds,
                    lambda: f"job {job} {wanted}; it is {cluster.job(job)}")


def cancel_all(cluster):
    """Cancels all jobs and waits until the cluster is idle."""
    jobs = [job for job, _, _ in cluster.squeue()]
    if jobs:
        cluster.slurm("scancel", *jobs, check=False)
    cluster.wait_until_idle()
