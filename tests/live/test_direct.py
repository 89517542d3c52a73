# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on this very machine, which gpuq reaches without a Slurm step: no request to the controller, and faults of
clients and terminals end as they do with relays (test_shell.py, test_client_faults.py, test_attach_faults.py)."""
import os
import signal

import pytest

from clusters import run, wait_for
from node_names import sockets
from runs import PYTHON, sruns, the_run, wait_for_handover
from terminals import a_shell, attached, leave, says
# Tests that are the same either way; they use this module's fixtures.
from test_attach_faults import (test_a_storm_of_sizes, test_a_supervisor_without_descriptors_says_so,  # noqa: F401
                                test_a_thousand_visitors_leave_nothing_behind, test_the_window_is_closed_in_the_middle_of_vim,
                                test_told_to_go_in_the_middle_of_vim_the_terminal_is_as_before, vim)
from test_client_faults import (GATED, GATED_OUT, begun, check_whole, go, rest_of,  # noqa: F401
                                test_a_client_that_is_stopped_while_the_program_goes_on_catches_up,
                                test_a_closed_terminal_is_no_end_of_input, test_a_pager_that_is_not_read_on_keeps_no_gpu,
                                test_all_processes_of_the_login_die, test_ctrl_c_twice_stops_the_run,
                                test_killed_while_output_streams, test_without_a_terminal_INT_and_TERM_are_the_programs)
from test_shell import (clean, folder_of_tmux, test_a_paste_of_100_kilobytes,  # noqa: F401
                        test_a_second_one_mirrors_and_take_sends_the_others_away,
                        test_after_a_client_that_was_killed_nothing_is_missing, test_full_screen_programs_are_drawn_anew,
                        test_input_and_signals_are_those_of_who_started_it, test_lost_clients, test_ten_at_once)

CLUSTER = dict(nodes=2, gpus=4, model="k80", lines=["KillWait=2"])


@pytest.fixture
def person(person):
    person.env["GPUQ_DIRECT"] = "yes"
    return person


@pytest.fixture
def shell(person):
    with a_shell(person) as screen:
        wait_for_handover(person)
        yield screen


def test_no_step_and_no_question_carries_a_visitor(person, shell):
    assert not sruns(person, "relay")
    with person.cluster.stopped("slurmctld"), attached(person) as screen:
        says(screen, "echo asked-$((40+2))", "asked-42")
        leave(screen)
    steps = person.cluster.slurm("squeue", "-h", "-s", "-o", "%i").split()
    job = the_run(person).job
    assert sorted(steps) == [f"{job}.0", f"{job}.1"], "the run and its guard"
    before = person.cluster.rpcs()
    with attached(person) as screen:
        says(screen, "echo counted-$((40+2))", "counted-42")
        leave(screen)
    after = person.cluster.rpcs()
    assert {name: count - before.get(name, 0) for name, count in after.items()
            if name not in ("REQUEST_STATS_INFO", "MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_PING")
            and count != before.get(name, 0)} == {}
    shell.type("exit\r")
    assert shell.status() == 0


def test_whoever_wants_every_visit_accounted_gets_a_step(person, shell):
    person.env["GPUQ_DIRECT"] = "no"
    with attached(person) as screen:
        says(screen, "echo relayed-$((40+2))", "relayed-42")
        assert sruns(person, "relay")
        leave(screen)
    wait_for(lambda: not sruns(person, "relay"), 10, "the relay's end")


def test_a_killed_supervisor_is_told_at_once(person):
    with person.start("run", *GATED) as client:
        begun(client)
        wait_for_handover(person)
        os.kill(the_run(person).event("supervisor_started")["pid"], signal.SIGKILL)
        status, _ = rest_of(client)
    assert status == 119
    assert the_run(person).ended["status"] == 119


def test_another_user_who_knocks_is_shown_nothing(person, people):
    with person.start("run", *GATED) as client:
        begun(client)
        wait_for_handover(person)
        record = the_run(person)
        name = sockets(person, record.key)[0]
        assert f"@{name}" in open("/proc/net/unix", encoding="ascii").read()
        knock = ("import socket, sys\nknocking = socket.socket(socket.AF_UNIX)\n"
                 "knocking.connect('\\0' + sys.argv[1])\nprint(knocking.recv(1))")
        stranger = run([PYTHON, "-c", knock, name], env={}, user=people["ben"])
        assert stranger.stdout == "b''\n", f"shut without a word: {stranger}"
        go(person)
        assert rest_of(client) == (7, GATED_OUT)
    check_whole(person)
