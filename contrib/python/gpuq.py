# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface between gpuq and a training program. Copy this file into the directory of your program: it
requires only Python 3.8, and works without gpuq as well.

    import gpuq

    done = load(gpuq.resume_from()) if gpuq.resume_from() else 0

    def save(done):
        with gpuq.atomic(gpuq.checkpoint_dir() / f"epoch-{done:04d}.pt") as file:
            torch.save({"done": done, "model": model.state_dict(), ...}, file)

    for epoch in gpuq.epochs(40, start=done, save=save):    # like range(done, 40)
        train_one_epoch()

The program saves after each epoch. When gpuq requests it, or when the remaining time is too short for another
epoch, it saves and exits with status 85: gpuq starts the program again, and resume_from() is its last complete
checkpoint. Everything happens between two epochs (or steps), nothing in a signal handler.

With several ranks (torchrun, srun, mpirun), the notice reaches one rank slightly before another, and if one rank
exits alone, the others hang. Give epochs() a function that returns the largest of all ranks' numbers; each rank
calls it after each epoch and after each save, so that no rank exits while another one is still writing:

    def agree(number):
        number = torch.tensor(number, device=device)    # or on the CPU, in a gloo group: does not wait for the GPU
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return int(number)

    for epoch in gpuq.epochs(40, start=done, save=save, agree=agree):

See gpuq-chain(7).
"""
import contextlib
import math
import os
import pathlib
import shutil
import signal
import threading
import time

__all__ = ["CONTINUE", "DO_NOT_CONTINUE", "atomic", "cause", "checkpoint_dir", "deadline", "epochs", "link", "listen",
           "resume_from", "save_asked", "saved", "steps", "stop_asked", "time_left"]

CONTINUE = 85  # exit status: saved, start the program again
DO_NOT_CONTINUE = 93  # exit status: starting the program again would not help

_LOOK_EVERY = 1.0  # seconds: the files may be on a network file system
_SAVE, _AS_ASKED, _OUT_OF_TIME = 1, 2, 3  # a rank's request after a body; 0: continue

_process = None  # the process that trains; its forks (DataLoader workers) get no notice
_signalled = False
_looked = {}  # path: (time of the check, whether the file existed)


def link():
    """1 for the run's first Slurm job, 2 for the next."""
    return int(_number("GPUQ_LINK", 1))


def cause():
    """Why this link was started: first, timeout, preempt, node, crash or user."""
    return os.environ.get("GPUQ_CAUSE") or "first"


def resume_from():
    """The newest complete checkpoint, or None to begin from the start."""
    path = os.environ.get("GPUQ_RESUME_FROM")
    return pathlib.Path(path) if path else None


def checkpoint_dir(default="checkpoints"):
    """The run's directory for checkpoints, which is created; `default` without gpuq."""
    folder = pathlib.Path(os.environ.get("GPUQ_CHECKPOINT_DIR") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def deadline():
    """Unix time at which this link ends, which gpuq extend may have changed; infinite if unknown."""
    path = os.environ.get("GPUQ_DEADLINE_FILE")
    if path and _there("GPUQ_DEADLINE_FILE"):
        with contextlib.suppress(OSError, ValueError):
            with open(path, encoding="ascii") as file:
                return float(int(file.read()))
    return _number("GPUQ_DEADLINE", math.inf)


def time_left():
    """Seconds until the deadline."""
    return deadline() - time.time()


def listen(signum=getattr(signal, "SIGUSR1", None)):
    """Installs a handler that treats this signal as a request to stop, and returns True if it could: only the main
    thread can, and an existing handler is kept. epochs() and stop_asked() call this for USR1 if it was not called before.
    """
    global _process, _signalled
    _process, _signalled = os.getpid(), False
    if signum is None or threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signum) not in (signal.SIG_DFL, _on_signal):
        return False
    signal.signal(signum, _on_signal)
    signal.siginterrupt(signum, False)  # system calls of other libraries are restarted
    return True


def stop_asked(agree=None):
    """Whether to save and exit with CONTINUE. For this rank only, unless `agree` is given (see the top)."""
    if _process is None:
        listen()
    asked = _process == os.getpid() and (_signalled or _there("GPUQ_STOP_FILE"))
    return bool(agree(int(asked))) if agree else asked


def save_asked():
    """Whether to save, call saved() and continue. True only on the first rank, since one response is enough."""
    return _process in (None, os.getpid()) and _rank() == 0 and _there("GPUQ_SAVE_FILE")


def saved():
    """Confirms the request of save_asked()."""
    path = os.environ.get("GPUQ_SAVE_FILE")
    if path and _rank() == 0:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        _looked.pop(path, None)


def epochs(total, start=0, save=None, every=0.0, agree=None, say=print):
    """Yields the numbers of range(start, total) while there is time for a body and no request to stop.

    save(done) is called between two bodies with the number of bodies done, which is the `start` of the next link:
    when at least `every` seconds have passed since the last call (math.inf: never for this reason), on request,
    before exiting, and after the last body. Without `save`, the body must save at its end.
    Exits by SystemExit(CONTINUE). `say` gets a line about that from the first rank; None: silent.
    Only one of several nested loops should be epochs() or steps().
    """
    if _process != os.getpid():
        listen()
    pace = _Pace(every, save)
    for number in range(start, total):
        began = time.monotonic()
        yield number
        pace.body(time.monotonic() - began)
        asked = save is not None and save_asked()
        last = number + 1 == total
        wish = pace.wish(asked)
        if last:
            wish = _SAVE  # every rank knows that
        elif agree:
            wish = agree(wish)
        if wish and save:
            pace.save(number + 1)
            if agree:
                agree(0)
            if asked:
                saved()
        if wish > _SAVE:
            _leave(wish, save, say)


def steps(total, start=0, save=None, every=600.0, agree=None, say=print):
    """epochs() for short bodies: saves every ten minutes."""
    return epochs(total, start, save, every, agree, say)


@contextlib.contextmanager
def atomic(path):
    """Yields the name of a temporary file in the directory of `path`, and renames it to `path` on success:

        with gpuq.atomic("last.pt") as file:
            torch.save(state, file)

    At any time `path` has either the old or the new content, on disk as well. The caller may create a directory
    instead of a file; an existing directory at `path` is moved away just before. A failure removes the temporary
    file. A kill may leave it behind: its name begins with .tmp-, and it can be removed.
    """
    path = pathlib.Path(path)
    unfinished = path.with_name(f".tmp-{os.getpid()}-{path.name}")  # with the suffix of `path`, which numpy and Keras use
    try:
        yield str(unfinished)
        _sync_all(unfinished)
        if path.is_dir():
            old = path.with_name(f".tmp-{os.getpid()}-old-{path.name}")
            os.rename(path, old)
            os.rename(unfinished, path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(unfinished, path)
    except BaseException:
        _remove(unfinished)
        raise
    _sync(path.parent)


class _Pace:
    """The durations of bodies and saves."""

    def __init__(self, every, save):
        self.every, self.function = every, save
        self.slowest = self.saving = 0.0
        if save:
            self.saving = min(60.0, max(0.0, time_left()) / 10)  # until one has been measured
        self.measured = False
        self.last_save = time.monotonic()

    def body(self, seconds):
        self.slowest = max(self.slowest, seconds)

    def wish(self, asked):
        due = self.function is not None and (asked or time.monotonic() - self.last_save >= self.every)
        # The time for a save now if one is due, another body, and the save after it.
        needed = 1.2 * self.slowest + self.saving * (2 if due else 1)
        if time_left() < needed:
            return _OUT_OF_TIME
        if stop_asked():
            return _AS_ASKED
        return _SAVE if due else 0

    def save(self, done):
        began = time.monotonic()
        self.function(done)
        self.last_save = time.monotonic()
        taken = self.last_save - began
        self.saving = max(self.saving, taken) if self.measured else taken
        self.measured = True


def _leave(wish, save, say):
    if say and _rank() == 0:
        say(("saved; " if save else "") + ("leaving as asked" if wish == _AS_ASKED else "leaving before the time is over"))
    raise SystemExit(CONTINUE)


def _on_signal(signum, frame):
    global _signalled
    _signalled = True


def _there(variable):
    """Whether the file named by the variable exists; checked at most once a second."""
    path = os.environ.get(variable)
    if not path:
        return False
    now = time.monotonic()
    when, answer = _looked.get(path, (-math.inf, False))
    if now - when >= _LOOK_EVERY:
        answer = os.path.exists(path)
        _looked[path] = (now, answer)
    return answer


def _number(variable, default):
    try:
        value = float(os.environ.get(variable, default))
    except ValueError:
        return default
    return default if math.isnan(value) else value


def _rank():
    for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if os.environ.get(variable, "").isdigit():
            return int(os.environ[variable])
    return 0


def _sync_all(path):
    """Syncs a file, or a directory with all its contents, to disk."""
    for folder, _, files in os.walk(path):
        for name in files:
            _sync(os.path.join(folder, name))
        _sync(folder)
    if not os.path.isdir(path):
        _sync(path)


def _sync(path):
    if os.name != "posix":
        return  # other systems are only for trying a program out
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
