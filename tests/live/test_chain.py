# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with several links, shortened to seconds. All start at the same time and are checked one by one."""
import json
import os
import pathlib
import re
import signal

import pytest

from chains import UNAWARE, Chain, start, time_of, trainer
from conftest import Person, short_folder, wait_for
from runs import members_of, terminal, told_of

CLUSTER = dict(nodes=2, gpus=16, lines=["KillWait=5"])
LINK = ["-t", "10", "--link", "14s"]
LONG = ["-t", "30", "--link", "10m"]


@pytest.fixture(scope="module")
def home(cluster):
    with short_folder() as home:
        yield Person(cluster, home, cluster.as_user)


@pytest.fixture(scope="module")
def chains(home, cluster):
    aware = [*LINK]
    started = {
        "aware": start(home, "aware", aware, *trainer("--aware", "--steps", "250")),
        "unaware": start(home, "unaware", LINK + UNAWARE, *trainer("--steps", "250", "--folder", "out")),
        "crashes": start(home, "crashes", LONG + UNAWARE,
                         *trainer("--steps", "90", "--folder", "out", "--crash-at", "45")),
        "bug": start(home, "bug", LINK + UNAWARE, *trainer("--folder", "/proc/nowhere")),
        "supervisor": start(home, "supervisor", LONG + UNAWARE, *trainer("--steps", "100", "--folder", "out")),
        "cancelled": start(home, "cancelled", LONG + UNAWARE, *trainer("--steps", "900", "--folder", "out")),
        "unqueued": start(home, "unqueued", LINK + UNAWARE, *trainer("--steps", "900", "--folder", "out")),
        "stopped": start(home, "stopped", LONG + UNAWARE, *trainer("--steps", "900", "--folder", "out")),
        "saved": start(home, "saved", LONG, *trainer("--aware", "--steps", "220")),
        "single": start(home, "single", ["-t", "5m"], *trainer("--aware", "--steps", "220")),
        "few": start(home, "few", aware + ["--max-links", "1"], *trainer("--aware", "--steps", "900")),
    }
    unqueued = started["unqueued"]
    cluster.slurm("scancel", unqueued.event(1, "next_submitted")["job"], user=home.user)
    for name in ("saved", "supervisor"):
        started[name].event(1, "checkpoint")
    saves = pathlib.Path(started["single"].folder) / "checkpoints"  # not monitored by gpuq
    wait_for(lambda: saves.is_dir() and any(saves.glob("*.zip")), 60, "a checkpoint of a single job")
    for name in ("saved", "single"):
        assert home.gpuq("stop", "--checkpoint", started[name].job(1)).returncode == 0
    os.kill(started["supervisor"].event(1, "supervisor_started")["pid"], signal.SIGKILL)
    return started


def test_a_fault_in_the_program_before_its_first_checkpoint(chains, cluster):
    bug = chains["bug"]
    ended = bug.ended(1)
    assert (ended["status"], ended["cause"]) == (1, "finished")
    assert "continues" not in ended
    # The job submitted for the next link is gone.
    assert wait_for(lambda: bug.show()["state"] == "ended" and bug.links() == [1], 20, "one link")
    assert bug.show()["exit"] == 1


def test_a_killed_supervisor(chains, cluster):
    """The guardian frees the node, and the next link resumes from the last checkpoint."""
    chain = chains["supervisor"]
    assert chain.ended(1)["cause"] == "lost"
    wait_for(lambda: chain.show()["state"] == "ended", 90, "its end")
    parts = chain.assert_unbroken(100)
    assert parts[1]["line"] == "link 2 cause node"
    assert parts[1]["resumed"] >= parts[0]["steps"][-1] - 11
    assert chain.show()["exit"] == 0


def test_a_cancelled_link_ends_the_run(chains, cluster):
    chain = chains["cancelled"]
    chain.event(1, "checkpoint")
    cluster.slurm("scancel", chain.job(1), user=chain.person.user)
    ended = chain.ended(1)
    assert (ended["status"], ended["cause"]) == (123, "cancelled")
    wait_for(lambda: chain.show()["state"] == "ended", 20, "its end")
    wait_for(lambda: not cluster.slurm("squeue", "-h", "-n", "cancelled", "-t", "PD,R"), 10, "an empty queue")
    assert chain.links() == [1]


def test_a_cancelled_next_link_ends_the_run(chains, cluster):
    chain = chains["unqueued"]
    ended = chain.ended(1, 60)
    assert (ended["status"], ended["cause"]) == (123, "cancelled")
    assert "next link" in ended["detail"]


def test_a_stop_ends_the_whole_run(chains, cluster):
    chain = chains["stopped"]
    chain.event(1, "checkpoint")
    assert chain.person.gpuq("stop", chain.job(1)).returncode == 0
    assert chain.ended(1)["cause"] == "stopped"
    wait_for(lambda: chain.show()["state"] == "ended", 20, "its end")
    wait_for(lambda: not cluster.slurm("squeue", "-h", "-n", "stopped", "-t", "PD,R"), 10, "an empty queue")


def test_a_run_that_saves_stops_and_goes_on(chains):
    chain = chains["saved"]
    ended = chain.ended(1)
    assert (ended["status"], ended["cause"]) == (123, "stopped")
    assert wait_for(lambda: chain.show()["state"] == "ended", 20, "its end")
    done = chain.person.gpuq("resume", "--json", chain.job(1))
    assert done.returncode == 0, done.stderr
    assert members_of(json.loads(done.stdout)) == told_of("gpuq resume")
    assert chain.show()["state"] in ("waiting", "running")
    wait_for(lambda: chain.show()["state"] == "ended", 90, "its end")
    parts = chain.assert_unbroken(220)
    assert parts[1]["line"] == "link 2 cause user"
    assert parts[1]["resumed"] == parts[0]["steps"][-1]
    assert "leaving as told" in chain.log()
    again = chain.person.gpuq("resume", chain.job(1))
    assert again.returncode == 2 and "has finished" in again.stderr


def test_a_run_that_was_to_fit_one_job_goes_on_all_the_same(chains):
    chain = chains["single"]
    assert chain.ended(1)["status"] == 123
    wait_for(lambda: chain.show()["state"] == "ended", 20, "its end")
    request = json.loads((pathlib.Path(chain.folder) / "run.json").read_text())["request"]
    assert request["chain"] is None
    done = chain.person.gpuq("resume", chain.job(1))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: chain.show()["state"] == "ended", 90, "its end")
    parts = chain.assert_unbroken(220)
    assert parts[1]["line"] == "link 2 cause user"
    assert parts[1]["resumed"] == parts[0]["steps"][-1]
    assert chain.show()["exit"] == 0


def test_a_program_that_saves_nothing_can_not_go_on(chains):
    person = chains["single"].person
    person.gpuq("run", "-t", "5m", "--", "sh", "-c", "exit 3")
    done = person.gpuq("resume", "last")
    assert done.returncode == 2
    assert "the program shows no sign of saving checkpoints" in done.stderr


def test_a_budget_ends_it_with_everything_saved(chains):
    chain = chains["few"]
    ended = chain.ended(1)
    assert (ended["status"], ended["cause"]) == (124, "time_limit")
    assert "--max-links" in ended["detail"]
    assert chain.events(1, "checkpoint")
    assert not chain.events(1, "next_submitted")


def test_a_crash_after_a_checkpoint_goes_on(chains):
    chain = chains["crashes"]
    assert chain.ended(1)["status"] == 7
    wait_for(lambda: chain.show()["state"] == "ended", 90, "its end")
    parts = chain.assert_unbroken(90)
    assert parts[1]["line"] == "link 2 cause crash"
    assert parts[1]["resumed"] == 40
    assert chain.show()["exit"] == 0


@pytest.mark.parametrize("name", ["aware", "unaware"])
def test_a_program_through_several_links(name, chains, cluster):
    chain = chains[name]
    followed = chain.person.gpuq("logs", "-f", chain.job(1), timeout=150)
    assert followed.returncode == 0, followed.stderr
    assert followed.stdout == chain.log()
    parts = chain.assert_unbroken(250)
    assert len(parts) >= 3
    show = chain.show()
    assert (show["exit"], show["link"], show["first_job"]) == (0, len(parts), chain.job(1))
    for link in range(1, len(parts)):
        ended = chain.ended(link)
        assert ended["continues"] is True
        began = chain.event(link + 1, "program_started")
        gap = time_of(began) - time_of(ended)
        assert gap < 30, f"{gap} s between link {link} and the next" # tests/bench/chain measures it
        # No saved step is computed again.
        assert parts[link]["resumed"] >= parts[link - 1]["steps"][-1] - 10
    # The jobs of all links have completed.
    for link in range(1, len(parts) + 1):
        assert cluster.accounted(chain.job(link))["State"] == "COMPLETED"
    kept = [one for one in (pathlib.Path(chain.folder) / "kept").iterdir() if not one.name.startswith(".")]
    assert len(kept) <= 2
    wait_for(lambda: not cluster.slurm("squeue", "-h", "-n", name, "-t", "PD,R"), 10, "an empty queue")


def test_a_program_without_checkpoints_is_told_before_it_starts(home):
    refused = home.gpuq("run", "-t", "7d", "--", "true")
    assert refused.returncode == 121
    assert "--checkpoint" in refused.stderr and "gpuq-chain" in refused.stderr
    refused = home.gpuq("run", "-t", "1h", "--max-links", "2", "--", "true")
    assert refused.returncode == 2
    assert "--restart-from-scratch" in refused.stderr


def test_attach_goes_on_where_an_earlier_link_was_left(home, cluster):
    """Output written while no client was attached is shown, both of the detached link and of later ones."""
    with terminal(home, "run", "-J", "left", *LINK, "--mem", "64M", "--", *trainer("--aware", "--steps", "150")) as screen:
        screen.wait_for("step 12\r\n", 40)
        os.kill(screen.client(), signal.SIGHUP)
        assert screen.status() == 129
        shown = screen.screen.replace(b"\r\n", b"\n").decode()
    chain = Chain(home, "left")
    chain.event(2, "program_started", 60)
    back = home.gpuq("attach", chain.job(1), timeout=120)
    assert back.returncode == 0, back.stderr
    steps = [int(number) for number in re.findall(r"^step (\d+)$", shown + back.stdout, re.M)]
    assert steps == list(range(1, 151)), (shown[-500:], back.stdout[:500])
    assert back.stdout.count("link 2 cause") == 1
