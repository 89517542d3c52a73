# SPDX-License-Identifier: GPL-2.0-or-later
"""contrib/python/gpuq.py: the guarantees for a training program, with and without gpuq."""
import ast
import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "contrib" / "python" / "gpuq.py"


class Clock:
    """Replaces time: bodies and saves take as long as a test specifies."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def time(self):
        return self.now + 1e9

    def pass_(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gpuq(monkeypatch, clock):
    """The module as imported by a program that was not started by gpuq, with the test's clock."""
    for name in [*os.environ]:
        if name.startswith(("GPUQ_", "OMPI_", "PMI_", "SLURM_")) or name == "RANK":
            monkeypatch.delenv(name)
    before = signal.getsignal(signal.SIGUSR1)
    spec = importlib.util.spec_from_file_location("gpuq_under_test", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.time = clock
    yield module
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def stop_file(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUQ_STOP_FILE", str(tmp_path / "stop"))
    return tmp_path / "stop"


@pytest.fixture
def save_file(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUQ_SAVE_FILE", str(tmp_path / "save"))
    return tmp_path / "save"


def trained(loop, body=lambda number: None):
    """The numbers yielded by a loop, and its exit status (None: it ran to its end)."""
    numbers = []
    try:
        for number in loop:
            numbers.append(number)
            body(number)
    except SystemExit as leaving:
        return numbers, leaving.code
    return numbers, None


def program(text, **variables):
    """Runs a Python program that can import gpuq."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUQ_", "SLURM_")) and k != "RANK"}
    environment |= {"PYTHONPATH": str(FILE.parent), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=50)


def test_needs_python_3_8_and_nothing_else():
    tree = ast.parse(FILE.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= set(sys.stdlib_module_names)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_without_gpuq_every_value_is_harmless(gpuq, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (gpuq.link(), gpuq.cause(), gpuq.resume_from()) == (1, "first", None)
    assert (gpuq.deadline(), gpuq.time_left()) == (math.inf, math.inf)
    assert (gpuq.stop_asked(), gpuq.save_asked()) == (False, False)
    assert gpuq.checkpoint_dir() == Path("checkpoints") and (tmp_path / "checkpoints").is_dir()
    gpuq.saved()
    assert trained(gpuq.epochs(3)) == ([0, 1, 2], None)


def test_says_what_gpuq_says(gpuq, clock, tmp_path, monkeypatch):
    for name, value in {"LINK": "3", "CAUSE": "preempt", "RESUME_FROM": "/x/epoch-7.pt", "DEADLINE": "1000001060",
                        "CHECKPOINT_DIR": str(tmp_path / "a" / "b")}.items():
        monkeypatch.setenv("GPUQ_" + name, value)
    assert (gpuq.link(), gpuq.cause(), gpuq.resume_from()) == (3, "preempt", Path("/x/epoch-7.pt"))
    assert (gpuq.deadline(), gpuq.time_left()) == (1000001060, 60)
    assert gpuq.checkpoint_dir() == tmp_path / "a" / "b" and (tmp_path / "a" / "b").is_dir()
    assert (gpuq.CONTINUE, gpuq.DO_NOT_CONTINUE) == (85, 93)


@pytest.mark.parametrize("text", ["", "soon", "nan"])
def test_a_deadline_that_is_no_number_is_none(gpuq, monkeypatch, text):
    monkeypatch.setenv("GPUQ_DEADLINE", text)
    assert gpuq.deadline() == math.inf


def test_a_later_deadline_is_read_from_its_file(gpuq, clock, tmp_path, monkeypatch):
    file = tmp_path / "deadline"
    monkeypatch.setenv("GPUQ_DEADLINE", str(clock.time() + 100))
    monkeypatch.setenv("GPUQ_DEADLINE_FILE", str(file))
    assert gpuq.time_left() == 100
    file.write_text(f"{int(clock.time()) + 3700}\n")
    clock.pass_(2)
    assert gpuq.time_left() == 3698
    file.write_text("soon")
    assert gpuq.time_left() == 98


def test_goes_on_where_it_was(gpuq):
    saves = []
    assert trained(gpuq.epochs(5, start=3, save=saves.append)) == ([3, 4], None)
    assert saves == [4, 5]
    assert trained(gpuq.epochs(5, start=5, save=saves.append)) == ([], None)
    assert saves == [4, 5]


def test_asked_to_stop_it_saves_once_and_leaves_with_85(gpuq, stop_file, capsys):
    saves = []
    stop_file.touch()
    assert trained(gpuq.epochs(5, save=saves.append)) == ([0], 85)
    assert saves == [1]
    assert capsys.readouterr().out == "saved; leaving as asked\n"


def test_asked_to_stop_in_its_last_body_it_is_finished(gpuq, stop_file):
    saves = []
    stop_file.touch()
    assert trained(gpuq.epochs(5, start=4, save=saves.append)) == ([4], None)
    assert saves == [5]


def test_asked_to_stop_it_saves_also_when_no_save_is_due(gpuq, stop_file, clock):
    saves, said = [], []

    def body(step):
        clock.pass_(1)
        if step == 6:
            stop_file.touch()
    assert trained(gpuq.steps(1000, save=saves.append, say=said.append), body) == ([*range(7)], 85)
    assert (saves, said) == ([7], ["saved; leaving as asked"])


def test_a_body_that_saves_by_itself_is_only_told_to_end(gpuq, stop_file, capsys):
    stop_file.touch()
    assert trained(gpuq.epochs(5)) == ([0], 85)
    assert capsys.readouterr().out == "leaving as asked\n"


def test_a_save_that_fails_is_no_reason_to_go_on(gpuq, stop_file):
    stop_file.touch()

    def save(done):
        raise OSError("no space left")
    with pytest.raises(OSError):
        trained(gpuq.epochs(5, save=save))


def test_leaves_while_there_is_time_to_save(gpuq, clock, monkeypatch, capsys):
    monkeypatch.setenv("GPUQ_DEADLINE", str(clock.time() + 100))

    def save(done):
        clock.pass_(7)
    numbers, status = trained(gpuq.epochs(50, save=save), lambda epoch: clock.pass_(10 if epoch else 13))
    # After four: 13 + 3 * 10 + 4 * 7 = 71 s. The slowest body times 1.2 and its save take 22.6 s of the remaining
    # 29. After five: 88 s; not enough for one more.
    assert (numbers, status) == ([0, 1, 2, 3, 4], 85)
    assert gpuq.time_left() > 0
    assert capsys.readouterr().out == "saved; leaving before the time is over\n"


def test_a_save_that_takes_longer_than_a_body_is_done_in_time(gpuq, clock, monkeypatch):
    monkeypatch.setenv("GPUQ_DEADLINE", str(clock.time() + 100))
    numbers, status = trained(gpuq.epochs(50, save=lambda done: clock.pass_(20)), lambda epoch: clock.pass_(1))
    assert (numbers, status) == ([0, 1, 2, 3], 85)
    assert gpuq.time_left() == 16


def test_saves_steps_every_ten_minutes_and_at_the_end(gpuq, clock):
    saves = []
    numbers, status = trained(gpuq.steps(150, save=saves.append), lambda step: clock.pass_(10))
    assert (numbers, status, saves) == ([*range(150)], None, [60, 120, 150])


def test_never_saves_for_the_time_when_told_so(gpuq, clock):
    saves = []
    trained(gpuq.epochs(9, save=saves.append, every=math.inf), lambda step: clock.pass_(1e6))
    assert saves == [9]


def test_leaves_time_for_a_save_that_was_never_measured(gpuq, clock, monkeypatch):
    monkeypatch.setenv("GPUQ_DEADLINE", str(clock.time() + 100))
    left = []
    trained(gpuq.steps(1000, save=lambda done: left.append(gpuq.time_left())), lambda step: clock.pass_(1))
    assert left == [11]  # a tenth of the time


def test_asked_to_save_it_saves_says_so_and_goes_on(gpuq, save_file, clock):
    saves = []

    def body(step):
        clock.pass_(1)
        if step == 2:
            save_file.touch()
            clock.pass_(1)

    def save(done):
        saves.append((done, save_file.exists()))
    assert trained(gpuq.steps(5, save=save), body) == ([*range(5)], None)
    assert saves == [(3, True), (5, False)]  # the file is removed after the save
    assert not save_file.exists()


def test_asked_to_save_a_program_without_the_loop_answers_by_itself(gpuq, save_file):
    save_file.touch()
    assert gpuq.save_asked() and save_file.exists()
    gpuq.saved()
    assert not save_file.exists() and not gpuq.save_asked()


def test_only_the_first_rank_answers(gpuq, save_file, monkeypatch):
    save_file.touch()
    monkeypatch.setenv("RANK", "1")
    assert not gpuq.save_asked()
    gpuq.saved()
    assert save_file.exists()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("SLURM_PROCID", "3")  # torchrun's variable takes precedence
    assert gpuq.save_asked()


def test_looks_at_a_file_once_a_second(gpuq, stop_file, clock, monkeypatch):
    looks = []
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: looks.append(path) or exists(path))
    for _ in range(100):
        assert not gpuq.stop_asked()
        clock.pass_(0.0201)  # 2.01 s in total
    assert len(looks) == 2
    stop_file.touch()
    clock.pass_(1)
    assert gpuq.stop_asked()
    stop_file.unlink()  # withdrawn
    clock.pass_(1)
    assert not gpuq.stop_asked()


def test_the_signal_only_sets_a_flag(gpuq):
    saves = []

    def body(epoch):
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert saves == []
    assert trained(gpuq.epochs(5, save=saves.append), body) == ([0], 85)
    assert saves == [1]


def test_importing_it_installs_nothing(gpuq):
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    gpuq.deadline(), gpuq.link(), gpuq.save_asked()
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    gpuq.stop_asked()
    assert signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL


@pytest.mark.parametrize("theirs", [lambda signum, frame: None, signal.SIG_IGN])
def test_a_handler_that_is_there_stays(gpuq, theirs):
    signal.signal(signal.SIGUSR1, theirs)
    assert not gpuq.stop_asked() and not gpuq.listen()
    assert signal.getsignal(signal.SIGUSR1) == theirs


def test_another_signal_may_be_chosen(gpuq):
    try:
        assert gpuq.listen(signal.SIGUSR2)
        assert trained(gpuq.epochs(5), lambda epoch: os.kill(os.getpid(), signal.SIGUSR2)) == ([0], 85)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)


def test_in_a_thread_it_relies_on_the_file(gpuq, stop_file):
    stop_file.touch()
    results = []
    thread = threading.Thread(target=lambda: results.append(trained(gpuq.epochs(5))))
    thread.start()
    thread.join()
    assert results == [([0], 85)]
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_a_worker_is_told_nothing_and_survives_the_signal(tmp_path):
    stop = tmp_path / "stop"
    done = program("""
import gpuq, os, signal
assert not gpuq.stop_asked()
worker = os.fork()
if worker == 0:
    os.kill(os.getpid(), signal.SIGUSR1)
    open(os.environ["GPUQ_STOP_FILE"], "w").close()
    gpuq._looked.clear()
    os._exit(1 if gpuq.stop_asked() or gpuq.save_asked() else 0)
assert os.waitpid(worker, 0)[1] == 0
gpuq._looked.clear()
assert gpuq.stop_asked()                    # the one that trains is
print("told")
""", GPUQ_STOP_FILE=str(stop), GPUQ_SAVE_FILE=str(stop))
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr


def test_a_forked_process_that_trains_itself_is_told():
    done = program("""
import gpuq, os, signal
gpuq.stop_asked()
rank = os.fork()
if rank:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]))
for epoch in gpuq.epochs(5, save=lambda done: print("saved", done)):
    os.kill(os.getpid(), signal.SIGUSR1)
""")
    assert (done.returncode, done.stdout) == (85, "saved 1\nsaved; leaving as asked\n"), done.stderr


def test_system_calls_of_others_are_restarted():
    """A library that reads a pipe and does not handle EINTR; here the C library's read through ctypes."""
    done = program("""
import ctypes, gpuq, os, signal, threading, time
gpuq.stop_asked()
read, write = os.pipe()
libc = ctypes.CDLL(None, use_errno=True)
reader = threading.main_thread().ident
def disturb():
    time.sleep(0.2)
    signal.pthread_kill(reader, signal.SIGUSR1)
    time.sleep(0.2)
    os.write(write, b"x")
threading.Thread(target=disturb).start()
print(libc.read(read, ctypes.create_string_buffer(1), 1), gpuq.stop_asked())
""")
    assert (done.returncode, done.stdout) == (0, "1 True\n"), done.stderr


def ranks(gpuq, count, script):
    """Runs `script(rank, agree)` on `count` threads that agree like ranks. Returns their results."""
    barrier, numbers, results = threading.Barrier(count, timeout=20), [0] * count, [None] * count

    def run(rank):
        def agree(number):
            numbers[rank] = number
            barrier.wait()
            largest = max(numbers)
            barrier.wait()
            return largest
        try:
            results[rank] = script(rank, agree)
        except BaseException as error:  # the others must not wait for it
            barrier.abort()
            results[rank] = error
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results


def test_ranks_that_agree_leave_after_the_same_step(gpuq):
    gpuq.listen()  # signal handlers belong to the main thread
    saving, order = threading.Event(), []

    def script(rank, agree):
        def save(done):
            if rank == 0:
                saving.wait(0.2)  # the others have nothing to write
                order.append("saved")

        def agree_and_tell(number):
            # Only rank 2 has got the notice, in its 7th step.
            return agree(2 if (rank, len(numbers)) == (2, 7) and number == 0 else number)
        numbers = []
        try:
            for step in gpuq.steps(1000, save=save, agree=agree_and_tell, say=None):
                numbers.append(step)
        except SystemExit as leaving:
            order.append("left")
            return numbers, leaving.code
    assert ranks(gpuq, 4, script) == [([*range(7)], 85)] * 4
    assert order == ["saved"] + ["left"] * 4


def test_stop_asked_agrees(gpuq, stop_file):
    assert not gpuq.stop_asked()
    assert gpuq.stop_asked(agree=lambda number: max(number, 1)) is True  # another rank's view
    assert gpuq.stop_asked(agree=lambda number: number) is False


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_atomic_gives_the_new_content_its_name_at_the_end(gpuq, tmp_path):
    path = tmp_path / "last.pt"
    path.write_text("old")
    with gpuq.atomic(path) as file:
        Path(file).write_text("new")
        assert path.read_text() == "old"
        assert Path(file).parent == tmp_path and Path(file).suffix == ".pt"
        assert Path(file).name.startswith(".tmp-")
    assert (path.read_text(), names(tmp_path)) == ("new", ["last.pt"])


@pytest.mark.parametrize("failure", [OSError("disk full"), SystemExit(1), KeyboardInterrupt()])
def test_atomic_leaves_the_old_content_when_something_fails(gpuq, tmp_path, failure):
    path = tmp_path / "last.pt"
    path.write_text("old")
    with pytest.raises(type(failure)):
        with gpuq.atomic(str(path)) as file:
            Path(file).write_text("ne")
            raise failure
    assert (path.read_text(), names(tmp_path)) == ("old", ["last.pt"])


def test_atomic_of_nothing_written_is_an_error(gpuq, tmp_path):
    with pytest.raises(FileNotFoundError):
        with gpuq.atomic(tmp_path / "last.pt"):
            pass
    assert names(tmp_path) == []


def test_atomic_takes_a_folder(gpuq, tmp_path):
    for content in ("old", "new"):
        with gpuq.atomic(tmp_path / "checkpoint-7") as folder:
            os.mkdir(folder)
            os.mkdir(folder + "/shards")
            Path(folder, "shards", "0.pt").write_text(content)
    assert names(tmp_path) == ["checkpoint-7"]
    assert (tmp_path / "checkpoint-7" / "shards" / "0.pt").read_text() == "new"


def test_atomic_in_the_present_folder(gpuq, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with gpuq.atomic("last.pt") as file:
        Path(file).write_text("new")
    assert names(tmp_path) == ["last.pt"]


def test_atomic_has_the_bytes_on_disk_before_the_name(gpuq, tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(os.readlink(f"/proc/self/fd/{fd}")) or fsync(fd))
    monkeypatch.setattr(os, "replace", lambda a, b: calls.append("rename") or replace(a, b))
    with gpuq.atomic(tmp_path / "last.pt") as file:
        Path(file).write_text("new")
    assert calls == [file, "rename", str(tmp_path)]


def killed_at_line(module, number, work):
    """Runs `work` in a child process that is killed before the given line of the module. Returns whether it was
    killed."""
    process = os.fork()
    if process == 0:
        left = [number]

        def trace(frame, event, argument):
            if frame.f_code.co_filename != str(FILE):
                return None
            left[0] -= event == "line"
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace
        sys.settrace(trace)
        work()
        os._exit(0)
    return os.waitpid(process, 0)[1] == signal.SIGKILL


def test_atomic_killed_at_any_line_leaves_old_or_new(gpuq, tmp_path):
    path, seen = tmp_path / "last.pt", []

    def work():
        with gpuq.atomic(path) as file:
            Path(file).write_text("new")
    killed = True
    while killed:
        path.write_text("old")
        killed = killed_at_line(gpuq, len(seen), work)
        seen.append(path.read_text())
    assert seen == sorted(seen, reverse=True) and {*seen[:-1]} == {"old", "new"} and len(seen) > 10


def test_atomic_killed_at_any_line_leaves_no_half_folder(gpuq, tmp_path):
    path, seen = tmp_path / "checkpoint-7", []

    def work():
        with gpuq.atomic(path) as folder:
            os.mkdir(folder)
            Path(folder, "0.pt").write_text("new")
            Path(folder, "1.pt").write_text("new")
    killed = True
    while killed:
        killed = killed_at_line(gpuq, len(seen), work)
        seen.append(names(path) if path.exists() else None)
        [shutil.rmtree(left) for left in tmp_path.iterdir()]
    assert [names for names in seen if names not in (None, ["0.pt", "1.pt"])] == [] and seen[-1] and len(seen) > 10
