# SPDX-License-Identifier: GPL-2.0-or-later
"""The Slurm adapter on a real Slurm: its contract, and faults that only a real one can cause."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import BIN, processes, run, running_cluster, wait_for

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=3"])
PROBE = str(BIN / "slurm_probe")
QUEUE = "calibration"


def probe(cluster, *words, env=None, **options):
    return run([PROBE, *map(str, words)], env={**cluster.env, **(env or {})}, user=cluster.as_user,
               **options)


def job_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.match(r"job (\d+)", done.stdout).group(1))


def steps_of(cluster, job):
    return re.findall(r"^\S+", cluster.slurm("squeue", "-h", "-s", "-j", str(job), "-o", "%i",
                                             check=False), re.M)


def jobs_with(cluster, comment):
    """IDs of the pending and running jobs with this comment."""
    text = cluster.slurm("squeue", "-h", "-o", "%A|%k", "-t", "PD,R,CG")
    return [int(line.split("|")[0]) for line in text.splitlines() if line.split("|")[1] == comment]


@pytest.fixture(autouse=True)
def idle(cluster):
    yield
    cluster.slurm("scancel", "-u", str(os.geteuid()), check=False)
    cluster.wait_until_idle()


def test_contract(cluster):
    done = run([str(BIN / "contract_slurm")], env=cluster.env, user=cluster.as_user, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def test_a_refusal_says_slurms_words_and_prints_nothing(cluster):
    done = probe(cluster, "start", "no-such-queue", 1, "gpuq:x", "echo")
    assert done.returncode == 121
    assert "artition" in done.stdout
    assert done.stderr == ""


def test_nothing_of_an_enclosing_job_reaches_the_step(cluster):
    """Like `gpuq run` inside an salloc, with settings that would break an srun."""
    leak = {"SLURM_JOB_ID": "77", "SLURM_JOBID": "77", "SLURM_NTASKS": "3", "SLURM_NNODES": "2",
            "SLURM_GPUS": "4", "SLURM_MEM_PER_NODE": "1", "SLURM_CPU_BIND": "map_cpu:99",
            "SRUN_CPUS_PER_TASK": "99", "SLURM_LABELIO": "1", "SLURM_EXPORT_ENV": "NONE",
            "SLURM_LEAKED": "yes", "MINE": "kept"}
    done = probe(cluster, "start", QUEUE, 2, "gpuq:x", "sh", "-c",
                 "echo $SLURM_JOB_ID $SLURM_NTASKS $CUDA_VISIBLE_DEVICES $MINE ${SLURM_LEAKED-no}",
                 env=leak)
    job = job_of(done)
    assert done.stdout.splitlines()[1] == f"{job} 1 0,1 kept no"
    assert len(done.stdout.splitlines()) == 2 and done.stderr == ""


def test_a_step_has_all_of_its_job(cluster):
    done = probe(cluster, "start", QUEUE, 3, "gpuq:x", "sh", "-c",
                 "echo $SLURM_GPUS_ON_NODE; scontrol show step $SLURM_JOB_ID.0 -o; "
                 "scontrol show job $SLURM_JOB_ID -o; sleep 0.1")
    _, gpus, step, job = done.stdout.splitlines()[:4]
    assert gpus == "3"
    of_job = re.search(r"(?<!Req)TRES=(\S+)", job).group(1).split(",")
    of_step = re.search(r"TRES=(\S+)", step).group(1).split(",")
    shared = [item for item in of_job if item.startswith(("cpu=", "mem=", "gres/gpu"))]
    assert "gres/gpu=3" in shared and set(shared) <= set(of_step), (of_job, of_step)


def test_kill_of_the_client_never_leaves_an_allocation_without_a_step(cluster):
    seen = {"step": 0, "nothing": 0}
    begin = time.monotonic()
    with subprocess.Popen([PROBE, "start", QUEUE, "1", "gpuq:whole", "true"], env=cluster.env, text=True,
                          stdout=subprocess.PIPE) as client:
        job = re.match(r"job (\d+)", client.stdout.readline()).group(1)
        whole = time.monotonic() - begin  # which depends on what else the machine does
    cluster.slurm("scancel", job)
    cluster.wait_until_idle()
    for moment in range(50):
        comment = f"gpuq:killed-{moment}"
        client = subprocess.Popen([PROBE, "start", QUEUE, "1", comment, "sleep", "60"],
                                  env=cluster.env, stdout=subprocess.DEVNULL)
        time.sleep(moment / 40 * whole)
        client.kill()
        client.wait()
        # The process that starts the step is either gone or has become srun.
        wait_for(lambda: not processes(lambda pid: f"{comment}" in arguments_of(pid)), 10)
        jobs = jobs_with(cluster, comment)
        assert len(jobs) <= 1
        for job in jobs:
            wait_for(lambda job=job: steps_of(cluster, job), 5, f"a step in job {job}")
            cluster.slurm("scancel", str(job))
        seen["step" if jobs else "nothing"] += 1
        cluster.wait_until_idle()
    assert seen["step"] > 5 and seen["nothing"] > 0, seen


def arguments_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return []


class Proxy:
    """Forwards requests between the client and slurmctld, and drops chosen responses."""

    def __init__(self, port):
        self.port = port
        self.drop = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own_port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), close alone does not
        self.listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client):
        dropped = self.drop > 0
        self.drop -= dropped
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            while data := server.recv(65536):
                if dropped:
                    client.shutdown(socket.SHUT_RDWR)
                    break
                client.sendall(data)


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass


@pytest.fixture
def proxy(cluster, tmp_path):
    text = cluster.conf.read_text()
    port = int(re.search(r"^SlurmctldPort=(\d+)", text, re.M).group(1))
    proxy = Proxy(port)
    conf = tmp_path / "slurm.conf"
    conf.write_text(re.sub(r"^SlurmctldPort=\d+", f"SlurmctldPort={proxy.own_port}", text, flags=re.M))
    for other in cluster.conf.parent.glob("*.conf"):
        if other.name not in ("slurm.conf", "slurmdbd.conf"):
            (tmp_path / other.name).write_text(other.read_text())
    proxy.env = {"SLURM_CONF": str(conf)}
    yield proxy
    if proxy.listener.fileno() >= 0:
        proxy.close()


def test_a_lost_answer_to_a_start_is_found_by_its_comment(cluster, proxy):
    proxy.drop = 1
    done = probe(cluster, "start", QUEUE, 1, "gpuq:lost", "echo", "hello", env=proxy.env)
    job = job_of(done)
    assert done.stdout == f"job {job}\nhello\n"
    assert proxy.drop == 0
    assert jobs_with(cluster, "gpuq:lost") == [job]


def test_a_lost_answer_to_a_submission_is_unreachable_and_the_job_is_there(cluster, proxy):
    proxy.drop = 1
    done = probe(cluster, "submit", QUEUE, 1, "gpuq:lost", "#!/bin/sh\nsleep 60\n", env=proxy.env)
    assert done.returncode == 120 and done.stderr == ""
    assert len(jobs_with(cluster, "gpuq:lost")) == 1
    assert "alive" in probe(cluster, "own", "gpuq:lost").stdout


def test_no_controller_is_unreachable(cluster, proxy):
    proxy.close()
    done = probe(cluster, "start", QUEUE, 1, "gpuq:x", "echo", env=proxy.env, timeout=60)
    assert done.returncode == 120 and done.stderr == "", done
    assert "carried out" in done.stdout or "contact" in done.stdout


def test_a_full_cluster_is_busy_at_once(cluster):
    for _ in range(2):
        with_words = subprocess.Popen([PROBE, "start", QUEUE, "4", "gpuq:full", "sh", "-c",
                                       "echo up; sleep 60"], env=cluster.env, text=True,
                                      stdout=subprocess.PIPE)
        assert with_words.stdout.readline().startswith("job ")
        assert with_words.stdout.readline() == "up\n"
        with_words.kill()
        with_words.wait()
        with_words.stdout.close()
    begin = time.monotonic()
    probe(cluster, "cancel", 3999999)
    usual = time.monotonic() - begin  # one question and its answer
    begin = time.monotonic()
    done = probe(cluster, "start", QUEUE, 1, "gpuq:x", "echo")
    assert done.returncode == 75
    assert time.monotonic() - begin < 1.0 + 5 * usual


def test_a_start_waits_for_a_node_that_is_completing(cluster):
    """Both nodes are closed while their last step lingers; then they have space again."""
    jobs = []
    for _ in range(2):
        client = subprocess.Popen([PROBE, "start", QUEUE, "4", "gpuq:ending", "sh", "-c",
                                   "trap '' TERM; echo up; sleep 0.7; sleep 0.7"], env=cluster.env,
                                  text=True, stdout=subprocess.PIPE)
        jobs.append(re.match(r"job (\d+)", client.stdout.readline()).group(1))
        assert client.stdout.readline() == "up\n"
        client.send_signal(signal.SIGKILL)
        client.wait()
        client.stdout.close()
    for job in jobs:
        cluster.slurm("scancel", job)
    assert {state for _, state, _ in cluster.squeue()} == {"COMPLETING"}
    done = probe(cluster, "start", QUEUE, 1, "gpuq:next", "echo", "hello")
    assert done.stdout.endswith("hello\n"), done.stdout


def test_accounting_knows_the_end_and_who_cancelled(cluster):
    ended = job_of(probe(cluster, "start", QUEUE, 1, "gpuq:x", "true"))
    assert probe(cluster, "complete", ended, 7).returncode == 0
    cancelled = job_of(probe(cluster, "submit", QUEUE, 1, "gpuq:x", "#!/bin/sh\nsleep 60\n"))
    assert probe(cluster, "cancel", cancelled).returncode == 0
    cluster.accounted(ended)
    cluster.accounted(cancelled)
    assert probe(cluster, "past", ended).stdout == "status 7 over true by nobody\n"
    assert probe(cluster, "past", cancelled).stdout == f"status 0 over true by {os.geteuid()}\n"
    assert probe(cluster, "past", 3999999).returncode == 2


def test_accounting_knows_which_nodes_went_down(cluster):
    cluster.scontrol("update", "nodename=n1", "state=drain", "reason=later")
    cluster.scontrol("update", "nodename=n1", "state=resume")
    cluster.scontrol("update", "nodename=n0", "state=down", "reason=broken")
    time.sleep(1.1)  # slurmdbd drops an event that begins and ends in the same second
    cluster.slurm("scontrol", "update", "nodename=n0", "state=resume", check=False)  # slurmd may have registered

    def noted():
        words = [line.split() for line in probe(cluster, "failures").stdout.splitlines()]
        return words if any(word[0] == "n0" for word in words) else None
    since, *failures = wait_for(noted, 20, "the failure of n0")
    # The cluster is younger than an hour: events are recorded only since its start.
    assert since[0] == "since" and 0 <= int(since[1]) < 1800
    assert {node for node, _ in failures} == {"n0"} and all(0 <= int(age) < 60 for _, age in failures)
    assert len(failures) == 1, failures


def test_accounting_that_is_down_is_unreachable(cluster):
    with cluster.stopped("slurmdbd"):
        begin = time.monotonic()
        done = probe(cluster, "past", 1, timeout=120)
        assert time.monotonic() - begin < 15
    assert done.returncode == 120 and done.stderr == "", done


LUA = """
function slurm_job_submit(job, parts, uid)
    slurm.log_user("a GPU needs a reason:\\ntell Alice")
    return slurm.ERROR
end
function slurm_job_modify(job, rec, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""


def test_words_of_the_sites_lua_script_come_through():
    with running_cluster(gpus=1, nodes=1) as cluster:
        (cluster.conf.parent / "job_submit.lua").write_text(LUA)
        with open(cluster.conf, "a") as file:
            file.write("JobSubmitPlugins=lua\n")
        cluster.signal("slurmctld")
        cluster.repair()
        for verb in (["start", QUEUE, 1, "gpuq:x", "echo"], ["submit", QUEUE, 1, "gpuq:x", "#!/bin/sh\n"]):
            done = probe(cluster, *verb)
            assert done.returncode == 121 and done.stderr == ""
            assert "a GPU needs a reason: tell Alice" in done.stdout
