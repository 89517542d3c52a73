# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm as sites configure it: on each kind gpuq works, or says in one line what it can't do there.

`pytest tests/live/test_sites.py -rA` prints the table: a line for each site, with what happened.
"""
import json
import os
import subprocess

import pytest

import clusters
from clusters import Person, command_of, run, running_cluster, short_folder, wait_for

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

LUA = """function slurm_job_submit(job, parts, uid)
  if job.name == 'forbidden' then slurm.log_user('the site forbids it') return slurm.ERROR end
  job.admin_comment = 'seen' return slurm.SUCCESS end
function slurm_job_modify(job, record, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""


def release():
    """(22, 5) of this machine's Slurm."""
    version = subprocess.run(["/usr/sbin/slurmd", "-V"], text=True, capture_output=True, check=True).stdout.split()[-1]
    return tuple(int(part) for part in version.split(".")[:2])


def check_works(person):
    """Here and queued: output, exit status, attaching and stopping."""
    done = person.gpuq("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert done.returncode == 3, done.stderr
    assert done.stdout == "out\n" and "err\n" in done.stderr
    done = person.gpuq("run", "--detach", "--name", "queued", "--",
                       "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo end; exit 4")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: person.gpuq("logs", "last").stdout == "begun\n", 30, "the queued run's output")
    with person.start("attach") as attached:
        assert attached.stdout.read(6) == b"begun\n"
        (person.home / "go").touch()
        rest, said = attached.communicate(timeout=30)
        assert (rest, attached.returncode) == (b"end\n", 4), said
    person.gpuq("run", "--detach", "--", "sleep", "600")
    wait_for(lambda: "sleep" in person.gpuq("ls").stdout and "running" in person.gpuq("ls").stdout, 30, "the last run")
    job = person.cluster.squeue()[0][0]
    done = person.gpuq("stop", job)
    assert done.returncode == 0, done.stderr
    person.cluster.wait_until_idle()


# What slurm.conf says besides, by kind of site.
SITES = {
    "cores without memory": ["SelectTypeParameters=CR_Core"],
    "pgid": ["ProctrackType=proctrack/pgid"],
    "task affinity": ["TaskPlugin=task/affinity"],
    "prolog alloc": ["PrologFlags=Alloc", "Prolog=/bin/true"],
    "prolog contain": ["PrologFlags=Contain"],
    "prolog nohold": ["PrologFlags=Alloc,NoHold", "Prolog=/bin/true"],
    "serial prolog": ["PrologFlags=Serial,Alloc", "Prolog=/bin/true", "Epilog=/bin/true"],
    "interactive step": ["LaunchParameters=use_interactive_step"],
    "mpi plugin missing": ["MpiDefault=pmix_nosuch"],
    "limits enforced": ["EnforcePartLimits=ALL", "MaxMemPerNode=100000"],
    "no arrays": ["MaxArraySize=0", "MaxJobCount=50"],
    "forgets at once": ["MinJobAge=2"],
    "no limits propagate": ["PropagateResourceLimits=NONE", "PropagatePrioProcess=2"],
    "kill on bad exit": ["KillOnBadExit=1", "InactiveLimit=30", "WaitTime=5"],
    "srun ports": ["SrunPortRange=21000-21400"],
    "no requeue": ["JobRequeue=0", "CompleteWait=5", "UnkillableStepTimeout=30"],
    "no cpu binding": ["TaskPluginParam=none"],
    "no gathering": ["JobAcctGatherType=jobacct_gather/none"],
    "private data": ["PrivateData=jobs,nodes,partitions,reservations,usage,users,accounts"],
}


@pytest.mark.parametrize("lines", SITES.values(), ids=SITES.keys())
def test_works(lines):
    with running_cluster(nodes=1, gpus=2, lines=["KillWait=5", *lines]) as cluster, short_folder() as home:
        check_works(Person(cluster, home, cluster.as_user))


CPU_NODES = """\
ClusterName=mixed
SlurmctldHost=controller
AccountingStorageTRES=gres/gpu
NodeName=c1 CPUs=4 RealMemory=4000
NodeName=g1 CPUs=4 RealMemory=4000 Gres=gpu:k80:2
PartitionName=cpu Nodes=c1 Default=YES MaxTime=4-0 DefaultTime=1:00:00
PartitionName=exam Nodes=g1 MaxTime=1:00:00 DefaultTime=10 ReqResv=YES
PartitionName=gpu Nodes=g1 MaxTime=2-0 DefaultTime=1:00:00
"""


def test_a_default_queue_of_cpu_nodes(tmp_path):
    (tmp_path / "slurm.conf").write_text(CPU_NODES)
    with running_cluster(gpus=None, nodes=None, model=None, lines=(),
                         options=("--slurm-conf-file", str(tmp_path / "slurm.conf"))) as cluster, short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        for words, queue in (([], "gpu"), (["-t", "10m"], "gpu"), (["-g", "0"], "cpu"), (["-p", "gpu"], "gpu")):
            done = person.gpuq("run", *words, "sh", "-c", "echo $SLURM_JOB_PARTITION")
            assert (done.returncode, done.stdout) == (0, queue + "\n"), done.stderr
        done = person.gpuq("run", "-p", "cpu", "true")
        assert done.returncode == 121 and "queue cpu has no GPUs: -p gpu" in done.stderr
        cluster.wait_until_idle()


@root_only
@pytest.mark.skipif(release() < (23, 11), reason="auth/slurm begins with Slurm 23.11")
def test_auth_slurm():
    """Slurm's own authentication in place of munge; accounting would need it in slurmdbd.conf too."""
    for directory in ("/run/slurm", "/run/slurmctld"):  # for the daemons' sockets
        os.makedirs(directory, exist_ok=True)
    with short_folder() as home:
        cluster = clusters.Cluster(home / "c")
        cluster.dir.mkdir(mode=0o755)
        (cluster.dir / "slurm.key").touch(0o600)
        (cluster.dir / "slurm.key").write_bytes(os.urandom(1024))
        try:
            cluster.up(gpus=2, lines=["AuthType=auth/slurm", "CredType=cred/slurm", "KillWait=5"])
            (home / "p").mkdir()
            check_works(Person(cluster, home / "p"))
        finally:
            cluster.cluster("down", "--purge", check=False)


@root_only
def test_private_data_of_an_ordinary_user(plain_user):
    private = "PrivateData=jobs,nodes,reservations,usage,users,accounts"
    with running_cluster(nodes=1, gpus=2, lines=["KillWait=5", private]) as cluster, short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        check_works(Person(cluster, home, plain_user))


@root_only
def test_partitions_that_only_operators_see(plain_user):
    with running_cluster(nodes=1, gpus=2, lines=["PrivateData=partitions"]) as cluster, short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        for words in (["run", "--", "true"], ["free"]):
            done = Person(cluster, home, plain_user).gpuq(*words)
            assert done.returncode == 121
            assert done.stderr.count("\n") == 1 and "PrivateData=partitions" in done.stderr
        done = Person(cluster, home, plain_user).gpuq("doctor", "--json")
        assert {one["check"]: one["level"] for one in json.loads(done.stdout)["checks"]}["private-data"] == "problem"


def test_no_gpus_configured():
    with running_cluster(nodes=1, gpus=0, model=None, options=["--gpus", "0"]) as cluster, short_folder() as home:
        person = Person(cluster, home, cluster.as_user)
        done = person.gpuq("run", "--", "true")
        assert done.returncode == 121
        assert "a node of queue calibration has no GPU" in done.stderr
        assert person.gpuq("run", "-g", "0", "--", "echo", "hello").stdout == "hello\n"
        checks = {one["check"]: one for one in json.loads(person.gpuq("doctor", "--json").stdout)["checks"]}
        assert checks["nodes"]["level"] == "problem"


def test_a_submission_script_that_is_not_gpuqs(folder):
    """What it says of a refused job is shown."""
    folder.dir.mkdir()
    (folder.dir / "job_submit.lua").write_text(LUA)
    folder.up(gpus=1, lines=["JobSubmitPlugins=lua"])
    with short_folder() as home:
        person = Person(folder, home)
        check_works(person)
        done = person.gpuq("run", "--name", "forbidden", "--", "true")
        assert done.returncode == 121
        assert "the site forbids it" in done.stderr


# Input variables of Slurm's commands, as an outer job, salloc or a login's profile may have them: none may
# change what gpuq's jobs and steps are.
OF_COMMANDS = {
    "PARTITION": "nosuch", "ACCOUNT": "nosuch", "QOS": "nosuch", "RESERVATION": "nosuch", "CONSTRAINT": "nosuch",
    "TIMELIMIT": "1", "CLUSTERS": "nosuch", "EXCLUSIVE": "1", "HINT": "nomultithread", "MEM_PER_NODE": "1",
    "MEM_PER_CPU": "1", "MEM_PER_GPU": "1", "GPUS": "9", "GPUS_PER_NODE": "9", "GPUS_PER_TASK": "9", "NTASKS": "9",
    "NPROCS": "9", "NNODES": "7", "NTASKS_PER_NODE": "9", "NTASKS_PER_GPU": "9", "NTASKS_PER_CORE": "9",
    "CPUS_PER_TASK": "99", "CPUS_PER_GPU": "99", "TRES_PER_TASK": "gres/gpu:9", "THREADS_PER_CORE": "1",
    "DISTRIBUTION": "arbitrary", "DEPENDENCY": "afterok:999", "IMMEDIATE": "1", "OPEN_MODE": "t", "WORKING_DIR": "/nosuch",
    "EXPORT_ENV": "NONE", "EXPORT": "NONE", "GET_USER_ENV": "1", "CONTAINER": "/nosuch", "NO_KILL": "1", "NETWORK": "x",
    "REQUEUE": "1", "ARRAY_INX": "1-3", "WAIT": "1", "WAIT_ALL_NODES": "1", "DEBUG": "5", "VERBOSE": "5", "KILL_BAD_EXIT": "1",
    "SIGNAL": "9@1", "PROFILE": "all", "GRES": "gpu:9", "GRES_FLAGS": "enforce-binding", "GPU_BIND": "map_gpu:7",
    "GPU_FREQ": "low", "POWER": "level", "DELAY_BOOT": "1", "BURST_BUFFER": "x", "COMMENT": "stolen", "JOB_NAME": "stolen",
    "CPU_BIND": "map_cpu:63", "MEM_BIND": "map_mem:7", "EXACT": "1", "OVERLAP": "0", "WHOLE": "1", "MPI_TYPE": "nosuch",
    "LABELIO": "1", "STDOUTMODE": "/nosuch/o", "STDERRMODE": "/nosuch/e", "STDINMODE": "/nosuch/i", "UNBUFFEREDIO": "1",
    "PROLOG": "/bin/false", "EPILOG": "/bin/false", "TASK_PROLOG": "/bin/false", "TASK_EPILOG": "/bin/false",
    "HOSTFILE": "/nosuch", "NODELIST": "nosuch", "THREADS": "1", "SLURMD_DEBUG": "4", "BCAST": "/nosuch", "COMPRESS": "x",
    "MULTI_PROG": "1", "PTY_PORT": "1", "RESV_PORTS": "3", "SPREAD_JOB": "1", "USE_MIN_NODES": "1", "WCKEY": "x",
    "CORE_SPEC": "1", "ACCTG_FREQ": "1", "EXIT_ERROR": "77", "EXIT_IMMEDIATE": "78", "JOB_ID": "1", "JOBID": "1",
    "JOB_NUM_NODES": "7", "JOB_NODELIST": "nosuch", "STEP_ID": "9", "STEPID": "9", "RESTART_COUNT": "3", "TASKS_PER_NODE": "9",
    "TIME_FORMAT": "relative", "BITSTR_LEN": "1", "FORMAT": "%i", "STATES": "CD", "SORT": "i", "USERS": "nosuch", "ALL": "1",
    "INTERACTIVE": "true", "NAME": "nosuch", "STATE": "PENDING", "USER": "nosuch",
}
OUTER = {f"{prefix}_{name}": value for name, value in OF_COMMANDS.items()
         for prefix in ("SLURM", "SRUN", "SBATCH", "SALLOC", "SQUEUE", "SINFO", "SACCT", "SCANCEL", "SCONTROL")}
OUTER["_SLURM_SPANK_OPTION_x_y"] = "1"
CHANGING = ("JobId", "Time", "Comment", "BatchHost", "Sid", "AllocNode", "LastSchedEval", "Scheduler", "Accrue",
            "StdOut", "StdErr", "Command", "Priority")


class TestOuterAllocation:
    @pytest.fixture(scope="class")
    def site(self):
        with running_cluster(nodes=1, gpus=2) as cluster:
            yield cluster

    def job_of(self, person, how, env):
        """What Slurm knows of a job of gpuq, and the SLURM_* variables of its program."""
        done = person.gpuq("run", *how, "--name", "here", "--", "sh", "-c",
                           "scontrol show job -o $SLURM_JOB_ID; env | grep ^SLURM_; taskset -cp $$; pwd", env=env)
        assert done.returncode == 0, done.stderr
        if "--detach" in how:
            wait_for(lambda: not person.cluster.squeue(), 30, "its end")
            text = person.gpuq("logs", "last").stdout
        else:
            text = done.stdout
        job = dict(word.split("=", 1) for word in text.splitlines()[0].split() if "=" in word)
        kept = {name: value for name, value in job.items()
                if not any(one in name for one in CHANGING) and not name.startswith("--")}  # of SubmitLine
        return kept, text

    @pytest.mark.parametrize("how", [(), ("--detach",), ("--slurm=--nice=0", "--detach")], ids=["here", "queued", "sbatch"])
    def test_its_variables_change_nothing(self, site, how):
        with short_folder() as one, short_folder() as two:
            clean, text = self.job_of(Person(site, one), how, {})
            wait_for(lambda: not site.squeue(), 30, "the end of the first job")  # beside it, the next may be queued
            dirty, changed = self.job_of(Person(site, two), how, OUTER)
        clean.pop("WorkDir", None), dirty.pop("WorkDir", None)
        assert dirty == clean
        names = {line.split("=")[0] for line in changed.splitlines() if line.startswith("SLURM_")}
        assert names == {line.split("=")[0] for line in text.splitlines() if line.startswith("SLURM_")}

    def test_everything_works_with_them(self, site):
        with short_folder() as home:
            person = Person(site, home)
            person.env.update(OUTER)
            check_works(person)
            assert person.gpuq("usage").returncode == 0
            assert person.gpuq("free").returncode == 0
            assert person.gpuq("doctor").returncode == 0

    def test_inside_a_job(self, site):
        """gpuq in a step of another job: a job of its own, not a step there."""
        with short_folder() as home:
            person = Person(site, home)
            done = run(["srun", "--gres=gpu:1", "-c1", "--mem=100", person.cluster.binary, "run", "--",
                        "sh", "-c", "echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES $SLURM_JOB_NAME"],
                       env={**person.env, "SLURM_CPU_BIND": "none"}, user=person.user)
            assert done.returncode == 0, done.stderr
            job, gpu, name = done.stdout.split()
            outer = site.squeue("-t", "all")
            assert (gpu, name) == ("1", "sh") and int(job) == max(int(row[0]) for row in outer)


@pytest.fixture
def cluster_of_one():
    with running_cluster(nodes=1, gpus=1) as cluster, short_folder() as home:
        yield cluster, Person(cluster, home, cluster.as_user)


def test_a_configuration_that_may_not_be_read(cluster_of_one, plain_user):
    cluster, person = cluster_of_one
    os.chmod(cluster.conf, 0)
    done = run([cluster.binary, "run", "--", "true"], env={**person.env, "HOME": "/tmp"}, user=plain_user)
    os.chmod(cluster.conf, 0o644)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "can't read Slurm's configuration" in done.stderr


def test_a_configuration_that_libslurm_gives_up_on(cluster_of_one):
    """As one written for another release, or for a site's own build."""
    cluster, person = cluster_of_one
    conf = person.home / "slurm.conf"
    lines = {"SelectType=select/cons_tres": "SelectType=select/cray_aries"}  # newer releases ignore it
    if release() >= (23, 11):
        lines = {"AuthType=auth/munge": "AuthType=auth/nosuch"}
    for line, other in lines.items():
        conf.write_text(cluster.conf.read_text().replace(line, other))
    for words in (["run", "--", "true"], ["run", "--detach", "--", "true"], ["free"]):
        done = person.gpuq(*words, env={"SLURM_CONF": str(conf)})
        assert done.returncode == 2, (words, done)
        assert done.stderr.count("\n") == 1 and "Slurm's configuration can't be used: " in done.stderr
    assert person.gpuq("run", "--", "echo", "mine").stdout == "mine\n"


def test_munged_is_dead(cluster_of_one):
    """libslurm tries for 50 s before it says so, in Slurm's own commands too."""
    cluster, person = cluster_of_one
    cluster.signal("munged")
    done = person.gpuq("free", timeout=100)
    assert done.returncode == 120, done
    assert done.stderr.count("\n") == 1 and "munged of this machine" in done.stderr
    checks = {one["check"]: one for one in json.loads(person.gpuq("doctor", "--json").stdout)["checks"]}
    assert checks["slurm"]["level"] == "problem" and "munged" in checks["slurm"]["remedy"]
    cluster.repair()
    assert person.gpuq("run", "--", "echo", "again").stdout == "again\n"


MUNGE = ("mkdir -p /run/munge; mount -t tmpfs none /run/munge; touch /run/munge/munge.socket.2; "
         'mount --bind "$0"/munge.socket /run/munge/munge.socket.2; exec "$@"')


@root_only
class TestConfigless:
    """No slurm.conf for clients, and munged's socket where every site has it."""

    @pytest.fixture(scope="class")
    def site(self):
        with running_cluster(nodes=1, gpus=2, lines=["SlurmctldParameters=enable_configless"]) as cluster:
            yield cluster

    def gpuq(self, site, person, server, *words):
        env = {**person.env, "SLURM_CONF_SERVER": server}
        del env["SLURM_CONF"]
        return run(["unshare", "-m", "sh", "-c", MUNGE, site.state_value("run")[0], site.binary, *words], env=env)

    def test_a_client_fetches_the_configuration(self, site):
        server = f"127.0.0.1:{site.state_value('controller-port')[0]}"
        with short_folder() as home:
            person = Person(site, home)
            done = self.gpuq(site, person, server, "run", "--", "sh", "-c", "echo out; exit 3")
            assert (done.returncode, done.stdout) == (3, "out\n"), done.stderr
            done = self.gpuq(site, person, server, "run", "--detach", "--", "sh", "-c", "echo begun; sleep 2; exit 4")
            assert done.returncode == 0, done.stderr
            done = self.gpuq(site, person, server, "attach")
            assert (done.returncode, done.stdout) == (4, "begun\n"), done.stderr

    def test_a_server_that_does_not_answer_is_a_line(self, site):
        with short_folder() as home:
            done = self.gpuq(site, Person(site, home), "127.0.0.1:1", "free")
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1 and "SLURM_CONF_SERVER=127.0.0.1:1" in done.stderr, done.stderr
