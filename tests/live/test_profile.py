# SPDX-License-Identifier: GPL-2.0-or-later
"""gpuq profile of real runs: one that is running and then ends, one with several links, one on a node without a
driver."""
import html.parser
import json
import re

from chains import UNAWARE, Chain, trainer
from clusters import wait_for
from runs import PYTHON, nothing_left, the_run
from test_samples import driver  # noqa: F401  (a fixture)

CLUSTER = dict(nodes=2, gpus=2, lines=["KillWait=2"])
BUSY = "gpus=2\ntotal=85899345920 used=2147483648 util=80 power=143000 temp=61 sm=875 mem=2505\n"
# Computes while the GPU is idle, like a data loader: four processes, to get a share of a machine that others load too.
LOADER = "import os, time\nos.fork(), os.fork()\nend = time.time() + 25\nwhile time.time() < end: pass\n"


def profile(person, run="last"):
    done = person.gpuq("profile", run, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def adds_up(told):
    time, phases = told["gpu_time"], told["phases"]
    assert time["busy_seconds"] + time["idle_seconds"] + time["unknown_seconds"] == time["allocated_seconds"]
    assert sum(phases.values()) == time["allocated_seconds"]
    return time


def mean(told, name):
    return next(one for one in told["measures"] if one["name"] == name)["mean"]


class Page(html.parser.HTMLParser):
    """Tags left open at the end, and everything that a browser would fetch or execute."""

    def __init__(self, text):
        super().__init__()
        self.open, self.active = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)
        self.active += [name for name, _ in attrs if name in ("src", "href") or name.startswith("on")]
        self.active += [tag] if tag in ("script", "img", "link", "iframe", "object") else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(person, run="last"):
    done = person.gpuq("profile", "--html", "-", run)
    assert done.returncode == 0, done.stderr
    parsed = Page(done.stdout)
    assert (parsed.open, parsed.active) == ([], [])
    return done.stdout


def test_a_run_that_goes_on_and_ends(person, driver):  # noqa: F811
    rules = BUSY + "after=12 util=0\n"
    with person.start("run", "--gpus", "2", "-c", "1", "--", PYTHON, "-c", LOADER, env=driver(rules)) as run:
        the_run(person)
        wait_for(lambda: profile(person)["gpus"], 20, "samples of a run that goes on")
        told = profile(person)
        assert told["run"]["state"] == "running"
        adds_up(told)
        assert run.wait(60) == 0
    nothing_left(person)
    told = profile(person)
    time = adds_up(told)
    assert time["busy_seconds"] > 10 and time["idle_seconds"] > 10
    assert told["phases"]["waiting_for_data_seconds"] > 0
    assert len(told["gpus"]) == 2 and mean(told, "cpu_cores") > 0.1
    text = person.gpuq("profile", "last").stdout
    assert re.search(r"\n    waiting for data +0:00:\d\d", text), text
    assert max(map(len, text.splitlines())) <= 80
    drawn = page(person)
    assert "<h2>GPU busy</h2>" in drawn and "GPU 1</span>" in drawn
    assert "the job&#39;s 1<" in drawn  # cores, as reported by Slurm to the sampler
    file = person.home / "p.html"
    assert "wrote p.html" in person.gpuq("profile", "--html", "p.html", "last").stderr
    assert len(file.read_text()) > 10_000


def test_the_links_of_a_chain_are_one_profile(person, driver):  # noqa: F811
    options = ["-t", "10", "--link", "12s", "--gpus", "1", "-J", "chain", *UNAWARE]
    done = person.gpuq("run", "--detach", *options, "--", *trainer("--steps", "150", "--folder", "out"),
                       env=driver(BUSY))
    assert done.returncode == 0, done.stderr
    chain = Chain(person, "chain")
    wait_for(lambda: chain.show()["state"] == "ended", 120, "its end")
    nothing_left(person)
    told = profile(person, "chain")
    assert len(told["links"]) >= 2
    assert all(link["nodes"] for link in told["links"])
    assert told["links"][0]["checkpoints"] > 0
    assert len(told["gpus"]) == 1
    time = adds_up(told)
    assert time["busy_seconds"] > time["allocated_seconds"] / 2
    drawn = page(person, "chain")
    assert ">link 1</text>" in drawn and ">link 2</text>" in drawn
    assert "<h2>Links</h2>" in drawn


def test_without_a_driver_on_two_nodes(person):
    assert person.gpuq("run", "--gpus", "1", "-N", "2", "--", "sleep", "6").returncode == 0
    the_run(person)
    nothing_left(person)
    told = profile(person)
    time = adds_up(told)
    assert time["unknown_seconds"] == time["allocated_seconds"] > 8
    assert told["advice"] == []
    text = person.gpuq("profile", "last").stdout
    assert "unknown (no NVIDIA driver on the node): GPU busy" in " ".join(text.split())
    assert "no NVIDIA driver on the node" in page(person)


def test_every_node_of_a_run_is_measured_and_its_program_has_no_strange_child(person, driver):  # noqa: F811
    program = ("import os, time\n"
               "try:\n    os.wait()\nexcept ChildProcessError:\n    print('no child', flush=True)\n"
               "time.sleep(9)\n")
    with person.start("run", "--gpus", "1", "-N", "2", "-t", "5", "--", PYTHON, "-c", program, env=driver(BUSY)) as run:
        the_run(person)
        wait_for(lambda: len(profile(person)["gpus"]) == 2, 20, "both nodes")
        assert run.wait(60) == 0
        assert run.stdout.read() == b"no child\n" * 2
    nothing_left(person)
    told = profile(person)
    time = adds_up(told)
    assert time["busy_seconds"] > time["allocated_seconds"] / 2
    assert [gpu["nodes"] for gpu in told["gpus"]] == [["n0"], ["n1"]]


def test_a_missing_program_on_two_nodes(person):
    done = person.gpuq("run", "--gpus", "1", "-N", "2", "-t", "5", "--", "/no/such")
    assert done.returncode == 127 and "/no/such" in done.stderr
    nothing_left(person)
