# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq policy advance on a real Slurm: longer jobs at night. The time zone of each command makes it day or night."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from clusters import GPUQ, is_running, run, running_cluster, short_folder, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmctld's state is root's here")

POLICY = """\
version: 1
gpus:
  k80: {}
pools:
  all: {nodes: "c[1-2]", gpus: "k80:2"}
  lab: {nodes: l1, gpus: "k80:2", owner: lab, lend: {grace: 1m}}
queues:
  lab: {time: 48h, pools: lab, allow: {accounts: lab}}
  gpu:
    time: 2h
    default_time: 10m
    pools: [all, lab]
    limits: {user: {queued: 8}}
    calendar:
      - {when: {from: "20:00", to: "08:00"}, time: 12h, default_time: 20m, limits: {user: {queued: 9}}}
"""
LENT_AT_NIGHT = POLICY.replace("{grace: 1m}", '{grace: 1m, when: {from: "20:00", to: "08:00"}}')
DAY, NIGHT = "12:00", "23:00"


def zone(clock):
    """A time zone in which it is now `clock`, to the minute, or some minutes later."""
    now = time.gmtime()
    hours, minutes = (int(part) for part in clock.split(":"))
    east = (hours * 60 + minutes - now.tm_hour * 60 - now.tm_min) % (24 * 60)
    east -= 24 * 60 if east > 12 * 60 else 0
    return f"<here>{'-' if east >= 0 else '+'}{abs(east) // 60}:{abs(east) % 60:02}"


class Site:
    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.file = pathlib.Path(folder) / "policy.yaml"
        self.file.write_text(POLICY)

    def env(self, clock):
        return {**self.cluster.env, "TZ": zone(clock)}

    def policy(self, clock, *words):
        return run([GPUQ, "policy", *map(str, words)], env=self.env(clock), timeout=120)

    def advance(self, clock):
        done = self.policy(clock, "advance")
        assert done.returncode == 0, done.stderr
        return done.stderr

    def values(self):
        shown = self.cluster.scontrol("show", "partition", "gpu")
        limits = self.cluster.slurm("sacctmgr", "-nP", "show", "qos", "gpuq_gpu", "format=maxsubmitpu")
        return {word for word in shown.split() if word.startswith(("MaxTime", "DefaultTime"))}, limits.strip()

    def submit(self, hours, *words):
        return run(["sbatch", "--parsable", "-p", "gpu", "--gres=gpu:1", "-t", f"{hours}:00:00", "-o", "/dev/null",
                    *words, "--wrap=sleep 600"], env=self.cluster.env)


BY_DAY = {"MaxTime=02:00:00", "DefaultTime=00:10:00"}, "8"
BY_NIGHT = {"MaxTime=12:00:00", "DefaultTime=00:20:00"}, "9"


@pytest.fixture(scope="module")
def site():
    with short_folder() as folder:
        (folder / "plain.yaml").write_text(POLICY[:POLICY.index("    calendar:")])
        with running_cluster(gpus=None, nodes=None, model=None, lines=["KillWait=2"],
                             options=["--policy", str(folder / "plain.yaml")]) as cluster:
            yield Site(cluster, folder)


@pytest.fixture(autouse=True)
def by_day(site):
    site.file.write_text(POLICY)
    done = site.policy(DAY, "apply", site.file)
    assert done.returncode == 0, done.stderr
    assert site.values() == BY_DAY


def test_longer_jobs_at_night(site):
    refused = site.submit(5)
    assert refused.returncode != 0 and "at most 2 h a job (policy.yaml:10)" in refused.stderr
    refused = run([GPUQ, "run", "--dry-run", "-p", "gpu", "-t", "5h", "true"], env=site.env(DAY))
    assert refused.returncode == 121, refused.stderr
    assert re.search(r"from \w{3} 20:00 on, queue gpu takes 12 h", refused.stderr), refused.stderr
    assert "its calendar changes next on" in site.advance(DAY)

    late = site.policy(NIGHT, "drift")
    assert late.returncode == 10
    assert "    MaxTime: 120 -> 720" in late.stdout
    assert "the calendar has changed since the policy was last put in force: `gpuq policy advance`" in late.stdout
    assert site.policy(DAY, "drift").returncode == 0
    assert site.policy(NIGHT, "plan", site.file).returncode == 10

    assert "the policy is in force: 4 changes" in site.advance(NIGHT)
    assert site.values() == BY_NIGHT
    assert site.policy(NIGHT, "drift").stdout == "nothing to do\n"
    audit = (site.cluster.dir / "gpuq" / "audit.log").read_text()
    assert "modify partition gpu; DefaultTime: 10 -> 20; MaxTime: 120 -> 720" in audit

    # A running job keeps its limit by day; a waiting one waits for the next night.
    running = site.submit(5).stdout.strip()
    wait_for(lambda: site.cluster.job(running)["JobState"] == "RUNNING", 30)
    waiting = site.submit(5, "--hold").stdout.strip()
    site.advance(DAY)
    assert site.values() == BY_DAY
    site.cluster.scontrol("release", waiting)
    wait_for(lambda: site.cluster.job(waiting)["Reason"] == "PartitionTimeLimit", 60)
    why = run([GPUQ, "why", waiting], env=site.env(DAY))
    assert re.search(r"from \w{3} 20:00 on, queue gpu takes 12 h", why.stdout), why.stdout
    assert site.cluster.job(running)["JobState"] == "RUNNING"
    assert site.cluster.job(running)["TimeLimit"] == "05:00:00"
    site.advance(NIGHT)
    wait_for(lambda: site.cluster.job(waiting)["JobState"] == "RUNNING", 90)
    site.cluster.slurm("scancel", running, waiting)
    site.cluster.wait_until_idle()


def test_nothing_is_asked_of_slurm_while_nothing_is_due(site):
    # A killed one would come back with jobs that have ended since it saved its state.
    slurmctld = site.cluster.signal("slurmctld", signal.SIGTERM)
    wait_for(lambda: not is_running(slurmctld), 30, "the end of slurmctld")
    try:
        # The environment of a systemd service.
        done = run([GPUQ, "policy", "advance", "--quiet"],
                   env={"PATH": "/usr/bin:/bin", "SLURM_CONF": str(site.cluster.conf), "TZ": zone(DAY)})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert site.policy(NIGHT, "advance").returncode == 120
    finally:
        site.cluster.repair()
    site.advance(NIGHT)
    assert site.values() == BY_NIGHT


def test_two_at_once_and_one_that_is_killed(site):
    both = [subprocess.Popen([GPUQ, "policy", "advance"], env=site.env(NIGHT), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [child.communicate(timeout=120)[1] for child in both]
    assert sorted(child.returncode for child in both) in ([0, 0], [0, 120]), said
    assert site.values() == BY_NIGHT
    started = time.monotonic()
    site.advance(DAY)
    whole = time.monotonic() - started
    cut = 0
    for part, clock, values in ((0.5, NIGHT, BY_NIGHT), (0.7, DAY, BY_DAY), (0.85, NIGHT, BY_NIGHT)):
        child = subprocess.Popen([GPUQ, "policy", "advance"], env=site.env(clock), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(part * whole)
        child.send_signal(signal.SIGKILL)
        child.wait()
        cut += (site.cluster.dir / "gpuq" / "journal").exists()
        site.advance(clock)
        assert site.values() == values
        assert json.loads(site.policy(clock, "drift", "--json").stdout)["changes"] == []
    assert cut >= 1, "the advance has to be cut off in the middle to show anything"


def test_guests_have_notice_when_their_hours_end(site):
    site.file.write_text(LENT_AT_NIGHT)
    for clock in (DAY, NIGHT):
        assert site.policy(clock, "apply", site.file).returncode == 0
    assert "State=UP" in site.cluster.scontrol("show", "partition", "gpu-lab")
    guest = site.submit(5, "-w", "l1").stdout.strip()
    other = site.submit(5, "-w", "c1").stdout.strip()
    for job in (guest, other):
        wait_for(lambda: site.cluster.job(job)["JobState"] == "RUNNING", 60)
    assert site.cluster.job(guest)["Partition"] == "gpu-lab"

    said = site.advance("07:59")
    assert f"the hours of their pool end: jobs {guest} have notice" in said
    assert "State=DOWN" in site.cluster.scontrol("show", "partition", "gpu-lab")
    assert site.policy("07:59", "drift").stdout == "nothing to do\n"
    end = time.mktime(time.strptime(site.cluster.job(guest)["EndTime"], "%Y-%m-%dT%H:%M:%S"))
    assert 30 <= end - time.time() <= 120
    assert site.cluster.job(other)["TimeLimit"] == "05:00:00"
    late = site.submit(1, "-w", "l1").stdout.strip()
    wait_for(lambda: site.cluster.job(late)["Reason"] == "PartitionDown", 60)
    wait_for(lambda: site.cluster.job(guest)["JobState"] == "TIMEOUT", 180)
    assert site.cluster.job(other)["JobState"] == "RUNNING"

    site.advance(NIGHT)
    wait_for(lambda: site.cluster.job(late)["JobState"] == "RUNNING", 90)
    site.cluster.slurm("scancel", late, other)
    site.cluster.wait_until_idle()
