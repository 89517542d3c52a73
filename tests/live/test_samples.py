# SPDX-License-Identifier: GPL-2.0-or-later
"""GPU use of runs, measured by the shipped programs with a driver simulated by the tests."""
import json
import os
import re
import shutil
import signal
import time

import pytest

from chains import time_of
from clusters import BUILT, Person, command_of, short_folder, wait_for
from runs import PYTHON, nothing_left, processes_of, the_run, words_of

CLUSTER = dict(nodes=1, gpus=2)
TESLA = "gpus=2\ntotal=12240658432 used=10952166604 util=87 power=143000 temp=61 sm=875 mem=2505\n"
SLEEP = (PYTHON, "-c", "import time; print('on', flush=True); time.sleep(120)")


@pytest.fixture
def driver():
    """Simulates a driver. Returns the variables to add to a run's environment."""
    with short_folder() as folder:
        def play(rules, age="new"):
            shutil.copytree(BUILT / f"fake_nvml_{age}", folder / age)
            (folder / age).chmod(0o755)
            (folder / "scenario").write_text(rules)
            return {"LD_LIBRARY_PATH": str(folder / age),
                    "GPUQ_FAKE_NVML": str(folder / "scenario")}
        yield play


def shown(person, key):
    return json.loads(person.gpuq("show", key, "--json").stdout)


def gpus_when(person, condition, seconds=20):
    """The GPUs in the newest sample of the only run, once `condition` holds for them."""
    key = the_run(person).key
    last = []

    def look():
        last[:] = shown(person, key)["samples"]
        return last and last[0]["gpus"] and condition(last[0]["gpus"])
    wait_for(look, seconds, lambda: f"such GPUs; the newest sample: {last}")
    return last[0]["gpus"]


def samplers(person):
    return [pid for pid in processes_of(person) if "sample" in words_of(pid)[1:2]]


def supervisor_of(person):
    """The parent of the sampler."""
    (sampler,) = samplers(person)
    with open(f"/proc/{sampler}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def all_busy(gpus):
    return all(gpu["busy_percent"] == 87 for gpu in gpus)


def stop(person):
    assert person.gpuq("stop", "last").returncode == 0
    the_run(person).wait_for_end()
    nothing_left(person)


def test_a_run_tells_what_its_gpus_do(person, driver):
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(TESLA)):
        gpus = gpus_when(person, all_busy)
        assert [gpu["uuid"] for gpu in gpus] == ["GPU-0-fake", "GPU-1-fake"]
        assert gpus[0]["power_watts"] == 143 and gpus[0]["temperature_celsius"] == 61
        assert gpus[0]["unknown"]["pcie_rx_kib_per_second"] == "not_supported"
        line = "GPU 0       87 % busy, 10.2 of 11.4 GiB, 143 W, 61 C\n"
        wait_for(lambda: line in person.gpuq("show", "last").stdout, 20, line)
        stop(person)
    used = shown(person, "last")["gpu_time"]
    assert used["busy_seconds"] > 0
    assert (used["busy_seconds"] + used["idle_seconds"] + used["unknown_seconds"] ==
            used["allocated_seconds"])


def test_without_a_driver_the_reason_is_told(person):
    assert person.gpuq("run", "--detach", "--gpus", "1", "--", *SLEEP).returncode == 0
    gpus = gpus_when(person, lambda gpus: gpus[0]["unknown"]["busy_percent"] == "no_driver")
    assert gpus[0]["uuid"] is None
    assert "GPU 0       unknown (no NVIDIA driver on the node)\n" in person.gpuq("show", "last").stdout
    stop(person)
    used = shown(person, "last")["gpu_time"]
    assert used["busy_seconds"] == used["idle_seconds"] == 0


def test_an_old_driver_tells_what_it_can(person, driver):
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(TESLA, "old")):
        gpus = gpus_when(person, all_busy)
        assert gpus[0]["unknown"]["sm_active_percent"] == "not_supported"
        stop(person)


def test_each_of_two_runs_on_a_node_sees_its_own_gpu(cluster, person, driver):
    environment = driver(TESLA + "gpu=1 util=5\n")
    with short_folder() as home:
        other = Person(cluster, home, person.user)
        with person.start("run", "--gpus", "1", "--", *SLEEP, env=environment) as first:
            assert first.stdout.readline() == b"on\n"
            with other.start("run", "--gpus", "1", "--", *SLEEP, env=environment):
                seen = [gpus_when(one, lambda gpus: gpus[0]["busy_percent"] is not None)[0]
                        for one in (person, other)]
                assert {gpu["uuid"] for gpu in seen} == {"GPU-0-fake", "GPU-1-fake"}
                for gpu in seen:
                    assert gpu["busy_percent"] == (87 if gpu["uuid"] == "GPU-0-fake" else 5)
                assert other.gpuq("stop", "last").returncode == 0
                assert person.gpuq("stop", "last").returncode == 0
        nothing_left(other)
    nothing_left(person)


def test_a_lost_gpu_is_told_and_the_other_goes_on(person, driver):
    rules = TESLA + "gpu=1 after=3 err=15\n"
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(rules)):
        gpus = gpus_when(person, lambda gpus: gpus[1]["unknown"].get("busy_percent") == "lost")
        assert gpus[0]["busy_percent"] == 87
        stop(person)


def test_a_driver_that_hangs_is_seen_in_time_and_holds_up_nothing(person, driver):
    rules = TESLA + "after=3 call=UtilizationRates hang=600\n"
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(rules)):
        hung = gpus_when(person, lambda gpus: gpus[0]["unknown"].get("busy_percent") == "hung")
        assert hung[1]["unknown"]["power_watts"] == "hung"
        whole = shown(person, "last")
        assert whole["samples"][0]["use"]["memory_bytes"] > 0
        known = (whole["gpu_time"]["busy_seconds"] + whole["gpu_time"]["idle_seconds"]) / 2
        assert known > 0, "the first queries were answered"
        record = the_run(person)
        at, = re.findall(r"(\S+) warning sampler\[\d+\] samples: the GPU driver has not answered", (
            record.dir / "link-1" / "supervisor.log").read_text())
        # Until the third query, plus five seconds.
        assert time_of({"at": at}) - time_of(record.event("program_started")) - known < 2 + 5 + 1
        assert len(samplers(person)) == 1
        begin = time.monotonic()
        stop(person)
        assert time.monotonic() - begin < 300, "not until the driver answers"


def test_a_killed_sampler_is_not_started_again_and_ends_no_run(person, driver):
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(TESLA)):
        gpus_when(person, all_busy)
        supervisor = supervisor_of(person)
        os.kill(samplers(person)[0], signal.SIGKILL)
        wait_for(lambda: not samplers(person), 5, "the end of the sampler")
        time.sleep(1.5)
        assert not samplers(person) and command_of(supervisor) == "gpuq-supervisor"
        stop(person)


def test_the_sampler_ends_with_a_killed_supervisor(person, driver):
    with person.start("run", "--gpus", "2", "--", *SLEEP, env=driver(TESLA)):
        gpus_when(person, all_busy)
        os.kill(supervisor_of(person), signal.SIGKILL)
        wait_for(lambda: not samplers(person), 10, "the end of the sampler")
        the_run(person).wait_for_end()
    nothing_left(person)


def test_signals_to_the_job_are_for_the_program(person, driver, cluster):
    trap = "trap 'echo told' USR1; while :; do sleep 0.1; done"
    with person.start("run", "--gpus", "2", "--", "bash", "-c", trap, env=driver(TESLA)):
        gpus_when(person, all_busy)
        before = samplers(person)
        cluster.slurm("scancel", "-s", "USR1", the_run(person).job)
        for pid in before:
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)
        assert samplers(person) == before
        stop(person)
