# SPDX-License-Identifier: GPL-2.0-or-later
"""Several ranks of one program: their variables, their rendezvous, and their end."""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import socket

import pytest

from chains import start
from conftest import Person, run, short_folder, wait_for
from faults import Run
from runs import PYTHON, nothing_left

CLUSTER = dict(nodes=2, gpus=4, lines=["KillWait=5"])
HERE = pathlib.Path(__file__).parent
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "SLURM_PROCID", "SLURM_NTASKS",
         "CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT")
TELL = "echo " + " ".join(f"${{{name}-none}}" for name in NAMES)


@pytest.fixture
def home(cluster):
    with short_folder() as home:
        shutil.copy(HERE / "ddp.py", home)
        person = Person(cluster, home, cluster.as_user)
        # Debian's torchrun 1.13 does not recognise its own default (0) for these with Python 3.11, and its torch 2.6
        # is built without libuv, which its torchrun requests.
        person.env.update(GLOO_SOCKET_IFNAME="lo", PET_TEE="2", PET_REDIRECTS="2", USE_LIBUV="0")
        yield person
        nothing_left(person)


def told(text):
    """Output of each rank as a dict, in the order of ranks."""
    lines = sorted(line.split(" ") for line in text.splitlines())
    return [dict(zip(NAMES, line, strict=True)) for line in lines]


def column(rows, name):
    return [row[name] for row in rows]


def met(output):
    """Output of ddp.py, by rank."""
    lines = re.findall(r"^met (.*)$", output, re.M)
    return {int(line.split()[0]): [int(word) for word in line.split()] for line in lines}


def test_ranks_of_one_node(home):
    done = home.gpuq("run", "-g", "2", "--tasks-per-node", "3", "--", "sh", "-c", TELL)
    assert done.returncode == 0, done.stderr
    assert "2 GPUs, 3 tasks per node for" in done.stderr
    rows = told(done.stdout)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
        assert column(rows, name) == ["0", "1", "2"]
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS"):
        assert column(rows, name) == ["3"] * 3
    assert column(rows, "CUDA_VISIBLE_DEVICES") == ["0,1"] * 3
    assert set(column(rows, "MASTER_ADDR")) == {"127.0.0.1"}
    assert len(set(column(rows, "MASTER_PORT"))) == 1
    run = Run.newest(home)
    assert sorted(run.output().decode().splitlines()) == sorted(
        (run.link / f"out.log.{rank}").read_text().rstrip("\n") for rank in range(3)), "each also in a log of its own"


def test_ranks_of_two_nodes_with_gpus_of_their_own(home):
    requests = home.cluster.rpcs()
    done = home.gpuq("run", "-N", "2", "--tasks-per-node", "2", "--gpus-per-task", "2", "--", "sh", "-c", TELL)
    assert done.returncode == 0, done.stderr
    assert "4 GPUs on each of 2 nodes, 2 tasks per node for" in done.stderr
    rows = told(done.stdout)
    assert column(rows, "RANK") == ["0", "1", "2", "3"]
    assert column(rows, "LOCAL_RANK") == ["0", "1", "0", "1"]
    assert column(rows, "NODE_RANK") == ["0", "0", "1", "1"]
    assert column(rows, "CUDA_VISIBLE_DEVICES") == ["0,1", "2,3"] * 2
    assert column(rows, "WORLD_SIZE") == ["4"] * 4
    assert len(set(column(rows, "MASTER_ADDR"))) == 1
    after = home.cluster.rpcs()
    asked = "REQUEST_NODE_INFO_SINGLE"
    assert after.get(asked, 0) - requests.get(asked, 0) == 1, "one question for the address"
    run = Run.newest(home)
    request = json.loads((run.folder / "run.json").read_text())["request"]
    assert (request["tasks_per_node"], request["gpus_per_task"]) == (2, 2)
    shown = json.loads(home.gpuq("show", "--json", run.job).stdout)["request"]
    assert (shown["tasks_per_node"], shown["gpus_per_task"]) == (2, 2)
    assert "2 on each node, each with 2 of its GPUs" in home.gpuq("show", run.job).stdout


def test_a_program_that_runs_once_is_no_rank(home):
    env = {"RANK": "7", "WORLD_SIZE": "9", "MASTER_PORT": "29500", "LOCAL_RANK": "3"}
    rows = told(home.gpuq("run", "--", "sh", "-c", TELL, env=env).stdout)
    assert column(rows, "RANK") + column(rows, "WORLD_SIZE") + column(rows, "LOCAL_RANK") == ["none"] * 3
    assert column(rows, "MASTER_PORT") != ["29500"], "of the shell, where another run may have set it"
    rows = told(home.gpuq("run", "--env", "MASTER_PORT=29511", "--env", "RANK", "--", "sh", "-c", TELL, env=env).stdout)
    assert column(rows, "RANK") + column(rows, "MASTER_PORT") == ["7", "29511"], "the user's word"


def test_the_port_is_kept_for_the_run(home):
    listen = ("import os, socket, time; s = socket.create_server(('', int(os.environ['MASTER_PORT']))); "
              "print(os.environ['MASTER_PORT'], flush=True); time.sleep(600)")
    sleep = "echo $MASTER_PORT; exec sleep 600"
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(home.start("run", "--", *words))
                   for words in ([PYTHON, "-c", listen], ["sh", "-c", sleep], ["sh", "-c", sleep])]
        ports = [int(client.stdout.readline()) for client in clients]
        assert len(set(ports)) == 3
        for port in ports:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("", port))
        for folder in home.run_dirs():
            home.gpuq("stop", Run(home, folder).job)
        for client in clients:
            client.communicate(timeout=30)


@functools.cache
def torchrun_works():
    """Debian 13 and 14 build torch without libuv, which their torchrun requires; no setting helps."""
    store = "import torch.distributed as d; d.TCPStore('127.0.0.1', 0, None, True)"
    done = run([PYTHON, "-c", store], env={**os.environ, "USE_LIBUV": "0"})
    return "libuv" not in done.stderr


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("launcher", ["torchrun", "ranks"])
def test_two_torch_programs_meet_at_once_on_the_same_nodes(nodes, launcher, home):
    if launcher == "torchrun" and not torchrun_works():
        pytest.skip("this torch is built without libuv: its torchrun works nowhere")
    options = ["-g", "2", "-N", nodes] + (["--tasks-per-node", "2"] if launcher == "ranks" else [])
    program = ["/usr/bin/torchrun"] if launcher == "torchrun" else [PYTHON]
    with home.start("run", *options, "--", *program, "ddp.py", "go") as one, \
            home.start("run", *options, "--", *program, "ddp.py", "go") as other:
        runs = [Run(home, folder) for folder in wait_for(lambda: home.run_dirs()[1:] and home.run_dirs(), 30)]
        for run in runs:
            wait_for(lambda: (run.link / "out.log").exists() and len(met(run.output().decode())) == 2 * nodes, 90,
                     lambda: run.output() + run.output("err"))
        (home.home / "go").touch()
        ends = [client.communicate(timeout=60) for client in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), ends
    world = 2 * nodes
    for run in runs:
        assert met(run.output().decode()) == {
            rank: [rank, rank % 2, world, 2, met(run.output().decode())[0][4], world * (world + 1) // 2]
            for rank in range(world)}


@pytest.mark.parametrize("how, status, words", [("exit 3", 3, "rank 2 on n1 ended first"),
                                                ("kill -SEGV $$", 139, "rank 2 on n1")])
def test_a_rank_that_fails_ends_the_others_and_is_named(how, status, words, home):
    program = f"test $RANK = 2 && {how}; echo stays; exec sleep 600"
    done = home.gpuq("run", "-N", "2", "--tasks-per-node", "2", "--", "sh", "-c", program)
    assert done.returncode == status, done.stderr
    assert re.search(rf"^gpuq: run .*{words}", done.stderr, re.M), done.stderr
    ended = Run.newest(home).ended
    assert ended["status"] == status
    assert words in ended["detail"]


def test_a_rank_that_asks_to_be_continued_leaves_the_others_time_to_save(home):
    program = "test $RANK = 0 && exit 85; sleep 1; echo saved; exit 85"
    done = home.gpuq("run", "--tasks-per-node", "2", "--", "sh", "-c", program)
    assert (done.returncode, done.stdout) == (85, "saved\n"), done.stderr


def test_a_stop_reaches_all_ranks(home):
    with home.start("run", "-N", "2", "--tasks-per-node", "2", "--", "sh", "-c", "echo ready; exec sleep 600") as client:
        run = Run.newest(home)
        run.written(4 * len("ready\n"))
        assert home.gpuq("stop", run.job).returncode == 0
        client.communicate(timeout=30)
    assert client.returncode == 123


def test_a_chain_of_ranks_is_told_and_meets_anew_in_each_link(home):
    program = 'echo "$RANK $WORLD_SIZE $MASTER_PORT" >>meetings; exec ' + f"{PYTHON} {HERE / 'chain_rank.py'}"
    chain = start(home, "ranks", ["--tasks-per-node", "2", "-t", "10", "--restart-from-scratch", "--link", "20s"],
                  "sh", "-c", program)
    ended = chain.ended(2, 120)
    assert (ended["status"], ended.get("continues", False)) == (0, False)
    assert chain.event(1, "noticed")["to"] == 2, "both ranks were told"
    meetings = [line.split() for line in (home.home / "ranks" / "meetings").read_text().splitlines()]
    assert [sorted(part[:2] for part in link) for link in (meetings[:2], meetings[2:])] == [[["0", "2"], ["1", "2"]]] * 2
    assert len({part[2] for part in meetings[:2]}) == len({part[2] for part in meetings[2:]}) == 1


def test_the_dry_run_script_does_the_same(home):
    script = home.gpuq("run", "--dry-run", "-N", "2", "--tasks-per-node", "2", "--gpus-per-task", "1", "--", "sh", "-c",
                       TELL).stdout
    (home.home / "job.sh").write_text(script)
    job = home.cluster.slurm("sbatch", "--parsable", "--wait", "-D", str(home.home), str(home.home / "job.sh"),
                             timeout=60).strip()
    rows = told((home.home / f"slurm-{job}.out").read_text())
    assert column(rows, "RANK") == ["0", "1", "2", "3"], (home.home / f"slurm-{job}.err").read_text()
    assert column(rows, "CUDA_VISIBLE_DEVICES") == ["0", "1"] * 2
    assert column(rows, "WORLD_SIZE") == ["4"] * 4
    assert set(column(rows, "MASTER_ADDR")) == {"n0"}
