# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq run` in ordinary use: streams, exit statuses, waiting, environments, names and values."""
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import time

import pytest

from clusters import run, wait_for
from runs import (PYTHON, all_gpus_taken, digest, in_sacct, is_waiting, nothing_left, records, the_run,
                  wait_for_handover)

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])


@pytest.fixture(autouse=True)
def clean(person):
    yield
    nothing_left(person)


# Streams

RANDOM_OUTPUT = """
import os, random, sys
size, seed = int(sys.argv[1]), int(sys.argv[2])
for stream in (1, 2):
    rest = memoryview(random.Random(seed + stream).randbytes(size))
    while rest:
        rest = rest[os.write(stream, rest):]
"""


def test_both_streams_pass_apart_and_byte_for_byte(person):
    size = 64 << 20
    done = person.gpuq("-Q", "run", PYTHON, "-c", RANDOM_OUTPUT, size, 7, text=False)
    assert done.returncode == 0
    assert digest(done.stdout) == digest(random.Random(8).randbytes(size))
    assert digest(done.stderr) == digest(random.Random(9).randbytes(size))
    assert digest(the_run(person).log("out")) == digest(done.stdout)
    assert digest(the_run(person).log("err")) == digest(done.stderr)


def test_logs_can_have_the_time_of_each_line(person):
    program = "echo first; sleep 3; echo second; echo wrong >&2; sleep 2"
    with_times = r"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (\w+)$"
    begin = int(time.time())
    assert person.gpuq("run", "-t", "2m", "sh", "-c", program).returncode == 0
    done = person.gpuq("logs", "-T", "last")
    lines = re.findall(with_times, done.stdout)
    moments = [time.mktime(time.strptime(at, "%Y-%m-%d %H:%M:%S")) for at, _ in lines]
    assert [text for _, text in lines] == ["first", "second"], done.stdout
    assert begin <= moments[0] and 2 <= moments[1] - moments[0] and moments[1] <= time.time(), done.stdout
    assert [text for _, text in re.findall(with_times, done.stderr)] == ["wrong"], done.stderr


def test_bytes_that_are_no_text_pass_unchanged(person):
    odd = b"\0\xff\xfe\x80 no newline, \x1b[31m, \r\n, \xc3"
    done = person.gpuq("-Q", "run", PYTHON, "-c",
                       f"import os; os.write(1, {odd!r}); os.write(2, {odd!r} * 2)", text=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, odd, odd * 2)


def test_gpuqs_own_words_go_to_stderr_and_are_silent_with_Q(person):
    loud = person.gpuq("run", "sh", "-c", "echo out")
    assert loud.stdout == "out\n"
    assert all(line.startswith("gpuq: ") for line in loud.stderr.splitlines())
    assert "1 GPU for 2 h in queue calibration (default: 1 GPU, 2 h)" in loud.stderr
    silent = person.gpuq("run", "-Q", "sh", "-c", "echo out; exit 3")
    assert (silent.returncode, silent.stdout, silent.stderr) == (3, "out\n", "")


def test_a_program_gets_its_input_and_its_end(person):
    data = random.Random(1).randbytes(100_000_000)
    program = ("import hashlib, sys\nsum = hashlib.md5()\n"
               "while piece := sys.stdin.buffer.read(1 << 16): sum.update(piece)\n"
               "print(sum.hexdigest())")
    done = person.gpuq("run", PYTHON, "-c", program, input=data, text=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == hashlib.md5(data).hexdigest()


def test_input_goes_on_when_a_relay_takes_over(person):
    program = ("import sys\nprint('ready', flush=True)\n"
               "for line in sys.stdin: print('got', line, end='', flush=True)")
    with person.start("run", PYTHON, "-c", program, stdin=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"ready\n"
        client.stdin.write(b"before\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"got before\n"
        wait_for_handover(person)
        client.stdin.write(b"after\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"got after\n"
        client.stdin.close()
        assert client.wait(20) == 0
        assert client.stdout.read() == b""


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-", "<empty"])
def test_a_program_without_input_sees_its_end_at_once(person, redirection):
    (person.home / "empty").touch()
    done = through_shell(person, f'"$gpuq" run wc -c {redirection}')
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_of_ours_do_not_become_something_else(person, redirection):
    done = through_shell(person, f'"$gpuq" run sh -c "echo out; echo err >&2; exit 3" {redirection}')
    assert the_run(person).wait_for_end()["status"] == 3
    assert the_run(person).log("out") == b"out\n"
    assert the_run(person).log("err") == b"err\n"
    if redirection == "2>&-":
        assert (done.returncode, done.stdout) == (3, "out\n")


def through_shell(person, line):
    """Runs a line with sh, in which "$gpuq" is the program."""
    return run(["sh", "-c", line], env={**person.env, "gpuq": person.cluster.binary},
               user=person.user, cwd=person.home, timeout=25)


# Exit statuses

@pytest.mark.parametrize("status", [0, 1, 85, 93, 137, 255])
def test_the_programs_status_is_ours(person, status):
    assert person.gpuq("run", "sh", "-c", f"exit {status}").returncode == status
    assert the_run(person).ended["status"] == status
    assert person.cluster.accounted(the_run(person).job)["ExitCode"] in in_sacct(status)


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM"])
def test_a_signal_is_128_and_its_number(person, name):
    done = person.gpuq("run", "sh", "-c", f"kill -{name} $$")
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    assert f"SIG{name}" in done.stderr
    assert "gpuq logs" in done.stderr  # the next command to type


def test_what_only_the_node_can_know_is_missing_there(person):
    (person.home / "bad").write_text("#!/nosuch/interpreter\n")
    (person.home / "bad").chmod(0o755)
    for program, status in [("nosuch-in-path", 127), ("./bad", 127), ("/opt/nosuch/prog", 127)]:
        done = person.gpuq("run", program)
        assert (done.returncode, done.stdout) == (status, ""), done.stderr
        assert "could not be started" in done.stderr and program in done.stderr
    assert len(records(person)) == 3


def test_a_script_is_found_here_first(person):
    (person.home / "train.py").write_text("import sys; print(sys.argv)")
    assert person.gpuq("run", "train.py", "--epochs", "3").stdout == "['train.py', '--epochs', '3']\n"
    (person.home / "go").write_text("#!/bin/sh\necho mine $1\n")
    (person.home / "go").chmod(0o755)
    assert person.gpuq("run", "--", "go", "-t").stdout == "mine -t\n"


# Detached, waiting

def test_detach_prints_how_to_come_back(person):
    done = person.gpuq("--json", "run", "--detach", "-J", "later", "sh", "-c", "echo late; exit 4")
    assert done.returncode == 0
    record = the_run(person)
    answer = json.loads(done.stdout)
    assert answer == {"schema": 1, "key": record.key, "job": record.job, "name": "later"}
    assert f"gpuq logs -f {record.job}" in done.stderr
    assert record.wait_for_end()["status"] == 4
    assert record.log() == b"late\n"


def test_a_run_waits_says_why_and_then_starts(person):
    with all_gpus_taken(person.cluster) as jobs:
        with person.start("run", "echo", "my turn") as client:
            line = client.stderr.readline().decode()  # the plan
            line = client.stderr.readline().decode()
            assert line.startswith("gpuq: waiting"), line
            person.cluster.slurm("scancel", jobs[0])
            assert client.wait(30) == 0
            assert client.stdout.read() == b"my turn\n"


def test_a_run_waits_for_a_queue_that_is_down(person):
    queues = set(person.cluster.slurm("sinfo", "-h", "-o", "%R").split())
    for cached in (person.state / "gpuq" / "cache" / "queues").glob("*"):
        cached.unlink()
    try:
        for queue in queues:
            person.cluster.scontrol("update", f"PartitionName={queue}", "State=DOWN")
        detached = person.gpuq("run", "--detach", "-t", "2m", "echo", "open")
        assert detached.returncode == 0, detached.stderr
        assert "it waits until the queue is up" in detached.stderr
        assert is_waiting(person.cluster)
    finally:
        for queue in queues:
            person.cluster.scontrol("update", f"PartitionName={queue}", "State=UP")
    done = person.gpuq("attach", "last")
    assert (done.returncode, done.stdout) == (0, "open\n"), done.stderr


def test_a_wait_is_withdrawn_by_INT(person):
    with all_gpus_taken(person.cluster):
        with person.start("run", "true") as client:
            wait_for(lambda: is_waiting(person.cluster), 10)
            client.send_signal(signal.SIGINT)
            assert client.wait(10) == 130
            assert b"withdrawn" in client.stderr.read()
        wait_for(lambda: len(person.cluster.squeue()) == 2, 10, "the withdrawal")
        assert the_run(person).ended["cause"] == "stopped"


def test_a_wait_that_somebody_else_withdraws_ends_soon_and_never_says_started(person):
    with all_gpus_taken(person.cluster):
        with person.start("run", "-J", "wd", "true") as client:
            wait_for(lambda: is_waiting(person.cluster), 10)
            assert person.gpuq("stop", "wd").returncode == 0
            assert client.wait(5) == 123
            words = client.stderr.read()
            assert b"was stopped by" in words and b"started" not in words
        wait_for(lambda: len(person.cluster.squeue()) == 2, 10, "the withdrawal")


def test_max_wait_gives_up_with_122(person):
    with all_gpus_taken(person.cluster):
        begin = time.monotonic()
        done = person.gpuq("run", "--max-wait", "2s", "true")
        assert done.returncode == 122, done.stderr
        assert 2 <= time.monotonic() - begin < 10
        assert "--max-wait" in done.stderr
        wait_for(lambda: len(person.cluster.squeue()) == 2, 10, "the withdrawal")


# Local errors

def test_a_settings_file_that_is_no_file_is_said_at_once(person):
    settings = person.home / "config" / "gpuq" / "config.yaml"
    settings.parent.mkdir(parents=True)
    try:
        os.mkfifo(settings)
        refused = person.gpuq("run", "true", timeout=10)
        assert (refused.returncode, refused.stderr) == (2, f"gpuq: {settings} is not a file\n")
    finally:
        settings.unlink()


def test_a_limit_on_file_sizes_refuses_and_leaves_nothing(person):
    refused = person.gpuq("run", "true",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert refused.returncode == 125, refused
    assert "File too large" in refused.stderr
    assert not records(person)


# By hand

def test_the_script_of_a_dry_run_does_the_same_by_hand(person):
    words = ["-t", "5m", "-g", "k80:2", "-J", "by hand", "--env", "GREETING=it's $HOME",
             "--", PYTHON, "-c",
             "import os, sys\nfor name in ('GREETING', 'SLURM_JOB_NAME', 'CUDA_VISIBLE_DEVICES',"
             " 'SLURM_JOB_PARTITION'): print(name, os.environ.get(name))\n"
             "print(os.getcwd(), sys.argv[1:], sys.stdin.read())\nprint('err', file=sys.stderr)\n"
             "sys.exit(7)", "a b", "$x", "*"]
    dry = person.gpuq("run", "--dry-run", *words)
    assert dry.returncode == 0
    assert records(person) == []  # nothing was submitted, nothing is left
    (person.home / "by-hand.sh").write_text(dry.stdout)
    by_hand = run(["sbatch", "--wait", "by-hand.sh"], env=person.env, cwd=person.home,
                  user=person.user)
    ours = person.gpuq("run", "-Q", *words)
    assert by_hand.returncode == ours.returncode == 7, (by_hand, ours)
    job = by_hand.stdout.split()[-1]
    assert (person.home / f"slurm-{job}.out").read_text() == ours.stdout
    assert (person.home / f"slurm-{job}.err").read_text() == ours.stderr == "err\n"
    assert "GREETING it's $HOME\n" in ours.stdout
    theirs, mine = (person.cluster.job(one) for one in (job, the_run(person).job))
    tres = "TRES" if "TRES" in mine else "AllocTRES"  # since Slurm 23.02
    for field in ("JobName", "Partition", "TimeLimit", "NumNodes", "NumCPUs", tres, "Requeue",
                  "TresPerNode", "WorkDir"):
        assert theirs[field] == mine[field], field


# Environment of the program

def stand_in(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_env_sets_and_passes_on(person):
    done = person.gpuq("run", "--env", "A=1 2", "--env", "B", "sh", "-c", 'echo "$A|$B|$C"',
                       env={"B": "from here", "C": "too"})
    assert done.stdout == "1 2|from here|too\n"
    assert the_run(person).run["request"]["env"] == [["A", "1 2"], ["B", "from here"]]


def test_modules_are_loaded_in_order(person):
    stand_in(person.home / "modules/init/bash",
             'module() { [ "$2" != bad ] || return 1; export LOADED="$LOADED $2"; }\n')
    env = {"MODULESHOME": str(person.home / "modules")}
    done = person.gpuq("run", "--module", "gcc/12", "--module", "cuda 12", "sh", "-c",
                       'echo "$LOADED"; exit 5', env=env)
    assert (done.returncode, done.stdout) == (5, " gcc/12 cuda 12\n"), done.stderr
    assert the_run(person).run["request"]["modules"] == ["gcc/12", "cuda 12"]
    failed = person.gpuq("run", "--module", "bad", "echo", "never", env=env)
    assert (failed.returncode, failed.stdout) == (125, "")
    assert "--module bad could not be loaded" in failed.stderr


def test_a_conda_environment_is_activated(person):
    stand_in(person.home / "bin/conda",
             "#!/bin/sh\n[ \"$1 $2\" = 'shell.bash hook' ] && cat <<'END'\n"
             'conda() { [ "$1" = activate ] && [ -d "$HOME/envs/$2" ] && '
             'export CONDA_PREFIX="$HOME/envs/$2" PATH="$HOME/envs/$2/bin:$PATH"; }\nEND\n')
    stand_in(person.home / "envs/vision/bin/python3", "#!/bin/sh\necho python of $CONDA_PREFIX $*\n")
    (person.home / "train.py").write_text("print('wrong python')")
    env = {"PATH": f"{person.home}/bin:{person.env['PATH']}"}
    done = person.gpuq("run", "--conda", "vision", "train.py", env=env)
    assert done.stdout == f"python of {person.home}/envs/vision train.py\n", done.stderr
    assert the_run(person).run["request"]["conda"] == "vision"
    assert person.gpuq("run", "--conda", "nosuch", "true", env=env).returncode == 125


def test_a_container_is_entered_by_the_sites_command(person):
    stand_in(person.home / "bin/apptainer", "#!/bin/sh\necho container: $*\nshift 3\nexec \"$@\"\n")
    stand_in(person.home / "bin/our-box", "#!/bin/sh\necho box: $*\nshift 2\nexec \"$@\"\n")
    env = {"PATH": f"{person.home}/bin:{person.env['PATH']}"}
    (person.home / "image.sif").touch()
    done = person.gpuq("run", "--container", "image.sif", "echo", "inside", env=env)
    assert done.stdout == "container: exec --nv image.sif echo inside\ninside\n"
    assert the_run(person).run["request"]["container"] == "image.sif"
    done = person.gpuq("run", "--container", "an image", "echo", "inside",
                       env={**env, "GPUQ_CONTAINER": "our-box --img={image} --"})
    assert done.stdout == "box: --img=an image -- echo inside\ninside\n"


def test_all_of_them_go_together(person):
    stand_in(person.home / "modules/init/bash", 'module() { export LOADED="$LOADED $2"; }\n')
    stand_in(person.home / "bin/conda", "#!/bin/sh\necho 'conda() { export ENV=$2; }'\n")
    stand_in(person.home / "bin/apptainer", "#!/bin/sh\nshift 3\nexec \"$@\"\n")
    done = person.gpuq("run", "--module", "cuda", "--conda", "vision", "--container", "i", "--env",
                       "MINE=x", "sh", "-c", 'echo $LOADED $ENV $MINE; exit 9',
                       env={"PATH": f"{person.home}/bin:{person.env['PATH']}",
                            "MODULESHOME": str(person.home / "modules")})
    assert (done.returncode, done.stdout) == (9, "cuda vision x\n"), done.stderr


@pytest.mark.parametrize("way", ["now", "queued"])
def test_the_program_runs_once_on_each_of_two_nodes(person, way):
    show = ('echo "$SLURMD_NODENAME $SLURM_PROCID/$SLURM_NTASKS $SLURM_JOB_NUM_NODES '
            '$SLURM_JOB_NODELIST $CUDA_VISIBLE_DEVICES $GPUQ_RUN_ID"; '
            # A rank that fails ends the others: not before they have printed.
            'sleep $SLURM_PROCID; exit $((4 * SLURM_PROCID))')
    options = ["--detach"] if way == "queued" else []
    done = person.gpuq("run", "-N", "2", "-g", "2", *options, "sh", "-c", show)
    record = the_run(person)
    assert record.wait_for_end()["status"] == 4, done.stderr  # srun: the highest status
    lines = sorted(record.log().decode().splitlines())
    assert lines == [f"n0 0/2 2 n[0-1] 0,1 {record.key}", f"n1 1/2 2 n[0-1] 0,1 {record.key}"]
    assert record.run["request"]["nodes"] == 2


def test_the_environment_of_the_program_is_that_of_the_contract(person):
    done = person.gpuq("run", "-t", "10m", "env", env={"PYTHONUNBUFFERED": "x"})
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    record = the_run(person)
    assert variables["GPUQ_RUN_ID"] == record.key
    assert variables["GPUQ_LINK"] == "1"
    assert variables["GPUQ_CAUSE"] == "first"
    assert "GPUQ_RESUME_FROM" not in variables
    assert variables["PYTHONUNBUFFERED"] == "x"
    assert 500 < int(variables["GPUQ_DEADLINE"]) - time.time() < 610
    assert os.path.isdir(variables["GPUQ_CHECKPOINT_DIR"])
    assert person.gpuq("run", "sh", "-c", "echo $PYTHONUNBUFFERED").stdout == "1\n"


@pytest.mark.parametrize("options", [[], ["--detach"]])
def test_both_ways_to_start_give_the_program_the_same_job(person, options):
    person.gpuq("run", "-J", "same", *options, "sh", "-c", "env | grep ^SLURM")
    record = the_run(person)
    record.wait_for_end()
    variables = dict(line.split("=", 1) for line in record.log().decode().splitlines())
    assert variables["SLURM_JOB_ID"] == str(record.job)
    assert variables["SLURM_JOB_NAME"] == "same"
    assert variables["SLURM_JOB_NUM_NODES"] == variables["SLURM_NNODES"] == "1"
    assert variables["SLURM_JOB_NODELIST"] in ("n0", "n1")
    assert variables["SLURM_JOB_PARTITION"] == "calibration"
    assert variables["SLURM_SUBMIT_DIR"] == str(person.home)
    assert not [name for name in variables if name.startswith(("SLURM_STEP", "SLURM_SRUN"))]


# Names and values

def test_names_may_repeat_but_not_be_numbers(person):
    for _ in range(2):
        assert person.gpuq("run", "-J", "twin", "true").returncode == 0
    assert [record.run["request"]["name"] for record in records(person)] == ["twin", "twin"]
    for name in ("123", "", "last", "a\nb"):
        done = person.gpuq("run", "-J", name, "true")
        assert done.returncode == 2, name
        assert all(line.startswith("gpuq: ") for line in done.stderr.splitlines())
    assert len(records(person)) == 2
    hostile = person.gpuq("run", "-J", "$(touch pwned) `x` ü;", "echo", "fine")
    assert (hostile.returncode, hostile.stdout) == (0, "fine\n")
    assert not (person.home / "pwned").exists()


@pytest.mark.parametrize("options, status, words", [
    (["-t", "0"], 2, "0"),
    (["-t", "-1"], 2, "-1"),
    (["-t", "1e9"], 2, "1e9"),
    (["-t", "2h30"], 2, "2h30m"),
    (["-t", "1:2:3:4"], 2, "1:2:3:4"),
    (["-t", "2:30"], 2, "2 h 30"),
    (["-t", "49h"], 121, "2 days"),
    (["-t", "999999999999999999999"], 2, "9999"),
    (["-t", ""], 2, "-t"),
    (["-p", "calibration", "-t", "3h"], 121, "-p gpu"),
    (["-p", "nosuch"], 2, "calibration"),
    (["-g", "-1"], 2, "-1"),
    (["-g", "99"], 121, ""),
    (["-g", "nosuch:1"], 121, ""),
    (["-g", "1e2"], 2, "1e2"),
    (["-g", "999999999999"], 2, "999999999999"),
    (["-N", "0"], 2, "0"),
    (["-c", "0"], 2, "0"),
    (["--mem", "900000G"], 121, ""),
    # Slurm 22.05 queues them, and gpuq withdraws them; later versions refuse them.
    (["-c", "5000"], 121, "queue calibration"),
    (["--detach", "-c", "5000"], 121, "queue calibration"),
    (["--after", "nosuch"], 2, "nosuch"),
    (["--nosuch"], 2, "nosuch"),
    (["--max-wait", "x"], 2, "x"),
])
def test_wrong_values_are_refused_with_a_reason(person, options, status, words):
    done = person.gpuq("run", *options, "true")
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("gpuq: ") and words in done.stderr
    assert done.stdout == ""
    assert records(person) == [], "a refused request leaves no trace"
    active = person.state / "gpuq/index/active"
    assert not active.exists() or not os.listdir(active)


def test_any_other_option_of_slurm_passes_through(person):
    done = person.gpuq("run", "--slurm=--exclusive --nice=7 --mail-user='a b'", "sh", "-c",
                       "scontrol show job $SLURM_JOB_ID")
    assert done.returncode == 0, done.stderr
    assert "Nice=7" in done.stdout
    assert "OverSubscribe=NO" in done.stdout
    refused = person.gpuq("run", "--slurm=--nosuch-option", "true")
    assert refused.returncode in (2, 121)
    assert "nosuch-option" in refused.stderr
    assert len(records(person)) == 1


def test_after_waits_for_a_good_end(person):
    (person.home / "gate").touch()
    person.gpuq("run", "--detach", "-J", "first", "sh", "-c", "while [ -e gate ]; do sleep 0.1; done")
    with person.start("run", "--after", "first", "echo", "second") as client:
        wait_for(lambda: [job[1:] for job in sorted(person.cluster.squeue())] ==
                 [("RUNNING", "first"), ("PENDING", "echo")], 30, "one that waits for the other")
        (person.home / "gate").unlink()
        assert client.wait(40) == 0
        assert client.stdout.read() == b"second\n"
    done = person.gpuq("run", "--after", "first", "echo", "third")  # at once: Slurm may have forgotten it
    assert (done.returncode, done.stdout) == (0, "third\n"), done.stderr
    assert records(person)[-1].run["request"]["after"] is None


def test_after_a_chain_nothing_can_be_told_to_slurm(person):
    chain = person.gpuq("run", "--detach", "-J", "long", "-t", "20", "--link", "10m", "--restart-from-scratch", "sleep", "600")
    assert chain.returncode == 0, chain.stderr
    refused = person.gpuq("run", "--after", "long", "echo", "second")
    assert (refused.returncode, refused.stdout) == (2, "") and "gpuq wait long && gpuq run" in refused.stderr
    assert person.gpuq("stop", "long").returncode == 0


def test_after_a_bad_end_nothing_starts(person):
    (person.home / "gate").touch()
    person.gpuq("run", "--detach", "-J", "first", "sh", "-c", "while [ -e gate ]; do sleep 0.1; done; exit 4")
    [(job, _, _)] = wait_for(person.cluster.squeue, 30, "the first run")
    with person.start("run", "--after", "first", "echo", "second") as client:
        wait_for(lambda: len(person.cluster.squeue()) == 2, 30, "one that waits for the other")
        (person.home / "gate").unlink()
        out, said = client.communicate(timeout=60)
        assert (client.returncode, out) == (125, b""), said
        assert f"run {job}, which it was to follow, did not succeed" in said.decode()
    refused = person.gpuq("run", "--after", "first", "echo", "third")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "exit status 4" in refused.stderr
    assert len(records(person)) == 2


def test_twenty_runs_at_once_all_end_well(person):
    clients = [subprocess.Popen([person.cluster.binary, "-Q", "run", "sh", "-c", f"echo {n}; exit {n}"],
                                env=person.env, cwd=person.home, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(20)]
    for n, client in enumerate(clients):
        out, err = client.communicate(timeout=90)
        assert (client.returncode, out, err) == (n, f"{n}\n".encode(), b"")
