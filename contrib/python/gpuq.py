# SPDX-License-Identifier: GPL-2.0-or-later
"""What gpuq and a training program say to each other. Copy this file beside your own: it needs Python 3.8
and nothing else, and does no harm without gpuq.

    import gpuq

    done = load(gpuq.resume_from()) if gpuq.resume_from() else 0

    def save(done):
        with gpuq.atomic(gpuq.checkpoint_dir() / f"epoch-{done:04d}.pt") as file:
            torch.save({"done": done, "model": model.state_dict(), ...}, file)

    for epoch in gpuq.epochs(40, start=done, save=save):    # as range(done, 40)
        train_one_epoch()

After each epoch it saves. When gpuq asks for it, or the time does not suffice for one more epoch, it saves
and leaves with status 85: gpuq starts the program again, and resume_from() is its last whole checkpoint.
Everything happens between two epochs (or steps), nothing inside a signal handler.

Several ranks (torchrun, srun, mpirun) each have a view of their own: the notice reaches one a moment before
the other, and a rank that leaves alone lets the others hang. Give epochs() a function that agrees on the
largest of all ranks' numbers; it is called by each rank after each epoch, and after each save, so that no rank
leaves while another one still writes:

    def agree(number):
        number = torch.tensor(number, device=device)    # or on the CPU, in a group of gloo: no wait for the GPU
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return int(number)

    for epoch in gpuq.epochs(40, start=done, save=save, agree=agree):

man gpuq-chain says what gpuq does with all this.
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

CONTINUE = 85  # exit status: saved, start me again
DO_NOT_CONTINUE = 93  # exit status: starting me again would not help

_LOOK_EVERY = 1.0  # seconds: the files may be on a network's disk
_SAVE, _AS_ASKED, _OUT_OF_TIME = 1, 2, 3  # what a rank wants after a body; 0: go on

_process = None  # that trains; what it forks (workers of a DataLoader) is told nothing
_signalled = False
_looked = {}  # path: (when, whether it was there)


def link():
    """1 for the run's first Slurm job, 2 for the next."""
    return int(_number("GPUQ_LINK", 1))


def cause():
    """Why this link was started: first, timeout, preempt, node, crash or user."""
    return os.environ.get("GPUQ_CAUSE") or "first"


def resume_from():
    """The newest whole checkpoint, or None: from the start."""
    path = os.environ.get("GPUQ_RESUME_FROM")
    return pathlib.Path(path) if path else None


def checkpoint_dir(default="checkpoints"):
    """The run's folder for checkpoints, made; `default` without gpuq."""
    folder = pathlib.Path(os.environ.get("GPUQ_CHECKPOINT_DIR") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def deadline():
    """Unix time at which this link ends; infinite when nobody said."""
    return _number("GPUQ_DEADLINE", math.inf)


def time_left():
    """Seconds until the deadline."""
    return deadline() - time.time()


def listen(signum=getattr(signal, "SIGUSR1", None)):
    """Takes this signal as a request to stop, and says whether it could: only the main thread can, and a handler
    that is there already stays. epochs() and stop_asked() do it by themselves, with USR1, unless it was done before.
    """
    global _process, _signalled
    _process, _signalled = os.getpid(), False
    if signum is None or threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signum) not in (signal.SIG_DFL, _on_signal):
        return False
    signal.signal(signum, _on_signal)
    signal.siginterrupt(signum, False)  # libraries that know nothing of it have their system calls restarted
    return True


def stop_asked(agree=None):
    """Whether to save and leave with CONTINUE. Of this rank only, unless `agree` is given (see the top)."""
    if _process is None:
        listen()
    asked = _process == os.getpid() and (_signalled or _there("GPUQ_STOP_FILE"))
    return bool(agree(int(asked))) if agree else asked


def save_asked():
    """Whether to save, call saved() and go on. Only the first rank is asked, as one answer is enough."""
    return _process in (None, os.getpid()) and _rank() == 0 and _there("GPUQ_SAVE_FILE")


def saved():
    """Answers save_asked()."""
    path = os.environ.get("GPUQ_SAVE_FILE")
    if path and _rank() == 0:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        _looked.pop(path, None)


def epochs(total, start=0, save=None, every=0.0, agree=None, say=print):
    """The numbers of range(start, total), as long as there is time for a body and nobody asks to stop.

    save(done) is called between two bodies with the number of those that are done, which is the `start` to go on
    with: when at least `every` seconds have passed since the last time (math.inf: never for that), when it is
    asked for, before leaving, and after the last body. Without `save` the body saves, at its own end.
    Leaves by SystemExit(CONTINUE). `say` gets a line about that from the first rank; None: silent.
    Of loops inside each other only one should be epochs() or steps().
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
    """Gives the name of a temporary file beside `path`, to write to, and renames it when that went well:

        with gpuq.atomic("last.pt") as file:
            torch.save(state, file)

    At any time the old or the new content bears the name, on disk too. May be made a folder instead; one that
    bears the name already is moved away just before. A failure removes the temporary file; a kill may leave it:
    its name begins with .tmp-, and whoever finds it may remove it.
    """
    path = pathlib.Path(path)
    unfinished = path.with_name(f".tmp-{os.getpid()}-{path.name}")  # ends as `path` does: numpy and Keras look at it
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
    """How long bodies and saves take."""

    def __init__(self, every, save):
        self.every, self.function = every, save
        self.slowest = self.saving = 0.0
        if save:
            self.saving = min(60.0, max(0.0, time_left()) / 10)  # until one was measured
        self.measured = False
        self.last_save = time.monotonic()

    def body(self, seconds):
        self.slowest = max(self.slowest, seconds)

    def wish(self, asked):
        due = self.function is not None and (asked or time.monotonic() - self.last_save >= self.every)
        # What is to fit in: perhaps a save now; one more body; the save after it.
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
    """Whether the file named by the variable is there; looks once a second."""
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
    """The file, or the folder with everything in it, is on disk."""
    for folder, _, files in os.walk(path):
        for name in files:
            _sync(os.path.join(folder, name))
        _sync(folder)
    if not os.path.isdir(path):
        _sync(path)


def _sync(path):
    if os.name != "posix":
        return  # elsewhere a program may be tried, but runs in no cluster
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
