# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs with `direct: network`: clients connect over TCP, without a Slurm step, and faults end as they do otherwise."""
import json
import pathlib
import re
import socket

import pytest

from clusters import run, wait_for
from runs import PYTHON, sruns, the_run, wait_for_handover
from test_attach_faults import test_the_window_is_closed_in_the_middle_of_vim, vim  # noqa: F401
# Tests that are the same either way; they use this module's fixtures.
from test_client_faults import (GATED, GATED_OUT, begun, check_whole, go, rest_of,  # noqa: F401
                                test_a_client_that_is_stopped_while_the_program_goes_on_catches_up,
                                test_killed_while_output_streams)
from test_direct import (shell, test_a_killed_supervisor_is_told_at_once,  # noqa: F401
                         test_no_step_and_no_question_carries_a_visitor)
from test_shell import clean  # noqa: F401

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])


@pytest.fixture
def person(person):
    person.env["GPUQ_DIRECT"] = "network"
    return person


def address(record):
    host, _, port = record.event("supervisor_started")["address"].rpartition(":")
    return host, int(port)


def listens_at(record, place):
    """Writes another address into the run's journal, in place: its supervisor appends to the file."""
    path = record.dir / "link-1" / "journal.jsonl"
    text = path.read_text()
    old = re.search(r'"address":"[^"]*"', text).group()
    new = f'"address":"{place}"'.ljust(len(old))
    assert len(new) == len(old)
    with path.open("r+") as file:
        file.write(text.replace(old, new))


def connections(record):
    """Established connections to the run's port, from its side."""
    port = address(record)[1]
    table = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [line for line in table if re.search(rf":{port:04X} \S+ 01 ", line)]


def test_a_large_output_arrives_whole_over_the_network(person):
    size = 300_000_000
    with person.start("-v", "run", "sh", "-c", f"sleep 3; head -c {size} /dev/zero | tr '\\0' x; exit 4") as client:
        total = 0
        while data := client.stdout.read(1 << 20):
            assert data.strip(b"x") == b""
            total += len(data)
        assert (client.wait(60), total) == (4, size)
        log = client.stderr.read().decode()
    assert "the supervisor has proved that it can read the run's secret" in log
    assert not sruns(person, "relay")


def test_a_cut_connection_is_made_again_and_nothing_is_missing(person):
    with person.start("run", *GATED) as client:
        begun(client)
        wait_for_handover(person)
        record = the_run(person)
        assert len(connections(record)) == 1
        where = "{}:{}".format(*address(record))
        assert re.search(rf"(?m)^ *address +{re.escape(where)}$", person.gpuq("show", "last").stdout)
        assert json.loads(person.gpuq("--json", "show", "last").stdout)["run"]["address"] == where
        done = run(["ss", "-K", "sport", "=", f":{address(record)[1]}"], env={})
        if done.returncode or connections(record):
            pytest.skip("this kernel does not let a connection be destroyed (ss -K)")
        wait_for(lambda: connections(record), 10, "another connection")
        go(person)
        assert rest_of(client) == (7, GATED_OUT)
    check_whole(person)


def test_behind_a_firewall_another_way_is_used(person):
    """The port accepts connections and nothing answers: its supervisor is another one."""
    with person.start("run", *GATED) as client:
        begun(client)
        record = the_run(person)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            listens_at(record, f"127.0.0.1:{silent.getsockname()[1]}")
            person.env["GPUQ_LOG"] = "info,client=debug"
            with person.start("attach", "last") as visitor:
                assert any(b"not over the network: no answer" in line for line in visitor.stderr)
                go(person)
                visitor.communicate(timeout=60)
                assert visitor.returncode == 7
        assert rest_of(client)[0] == 7


def test_another_user_who_connects_is_shown_nothing(person, people):
    with person.start("run", *GATED) as client:
        begun(client)
        wait_for_handover(person)
        host, port = address(the_run(person))
        attempt = ("import socket, sys\nstranger = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
                   "stranger.sendall(b'\\x01' + bytes([29, 0, 0, 0]) + bytes(29))\nprint(stranger.recv(1))")
        stranger = run([PYTHON, "-c", attempt, host, str(port)], env={}, user=people["ben"])
        assert stranger.stdout == "b''\n", f"closed without a word: {stranger}"
        go(person)
        assert rest_of(client) == (7, GATED_OUT)
    check_whole(person)
