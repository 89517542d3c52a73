# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq notebook`: Jupyter in a run, behind a connection that is cut."""
import contextlib
import datetime
import fcntl
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import types

import pytest

import browsers
from clusters import account, as_kwargs, free_port, processes, short_folder, wait_for
from faults import SOAK
from logins import login_host
from notebooks import Client, Page, cut, ends_within, gates, notebook
from runs import nothing_left, read_document, records, sruns, the_run, words_of

CLUSTER = dict(nodes=1, gpus=2, lines=["KillWait=5"])
CUTS = 200 if SOAK else 5

pytestmark = [pytest.mark.skipif(not os.path.exists("/usr/bin/jupyter-notebook"), reason="no package jupyter-notebook"),
              pytest.mark.skipif(not importlib.util.find_spec("websocket"), reason="no package python3-websocket")]


@pytest.fixture
def user(person):
    # Jupyter of Debian, whatever this machine's user has in PATH.
    person.env["PATH"] = "/usr/bin:/bin"
    (person.home / "work").mkdir()
    yield person
    person.gpuq("stop", "notebook")
    nothing_left(person)


def counting(numbers, pause):
    """A program that prints numbers, each in one piece."""
    return ("import sys, time\n"
            f"for number in range({numbers}):\n    sys.stdout.write(f'{{number}}\\n')\n    sys.stdout.flush()\n    time.sleep({pause})\n")


def read_with_cuts(client, make_cut, cuts=CUTS):
    """A kernel prints all the time: no number is lost or doubled."""
    client.execute(counting(cuts * 100, 0.005))
    text = ""
    for done in range(1, cuts + 1):
        while f"{done * 90}\n" not in text[-20000:]:
            text += client.output()
        make_cut()
    last = cuts * 100 - 1
    while not text.endswith(f"{last}\n"):
        text += client.output()
    assert text.split() == [str(number) for number in range(last + 1)]


def test_output_survives_cuts(user):
    with notebook(user.start, "work") as page:
        client = Client(page, page.new_kernel())
        read_with_cuts(client, cut)
        assert client.connections == 1  # a page does not notice them
        # A killed gate ends the connections: a page connects again. What was under way may be lost, the kernel is not.
        cut(gates)
        client.execute("print('lost')")
        with contextlib.suppress(Exception):
            client.socket.recv()
        client.socket.shutdown()
        client.connect()
        client.execute("print('still here', flush=True)")
        assert client.output_until("still here\n")
        assert "lost its connections" in "".join(page.lines)


def test_over_ssh_too(user):
    with short_folder() as folder, login_host(user, folder) as login:
        login.there["PATH"] = "/usr/bin:/bin"
        with notebook(login.begin, str(user.home / "work")) as page:
            client = Client(page, page.new_kernel())
            ways = [login.cut, cut]
            read_with_cuts(client, lambda: ways.append(ways.pop(0)) or ways[-1](), max(2, CUTS // 10))
            assert client.connections == 1
        assert "gpuq --host login stop" in "".join(page.lines)
        wait_for(lambda: not login.sessions(), 20, "no session left")


def listening_inodes():
    """The inodes of all TCP sockets that listen."""
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(name).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                found.add(words[9])
    return found


def sockets_of(pid):
    found = set()
    for each in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(each)
        except OSError:
            continue
        if name.startswith("socket:["):
            found.add(name[8:-1])
    return found


def texts_of(process):
    """Command lines of all processes; what other users can read of them."""
    return "\n".join(" ".join(words_of(pid)) for pid in processes(lambda pid: pid != process))


def test_only_its_user_gets_in(user):
    # A file with an error does not keep Jupyter from listening on the socket instead of a port.
    (user.home / ".jupyter").mkdir()
    (user.home / ".jupyter" / "jupyter_notebook_config.py").write_text("import package_of_another_environment\n")
    with notebook(user.start, "work") as page:
        page.new_kernel()
        run = the_run(user)
        assert "jupyter_notebook_config.py is not used: No module named 'package_of_another" in (run.dir / "link-1" / "err.log").read_text()
        assert page.request("/api/kernels", token=False)[0] == 403
        assert page.request("/tree")[0] == 200
        # No port is open on the node: neither of Jupyter nor of a kernel.
        jupyter = processes(lambda pid: "jupyter-notebook" in " ".join(words_of(pid)) or "ipykernel" in " ".join(words_of(pid)))
        assert len(jupyter) >= 2
        listening = listening_inodes()
        assert {pid: sockets_of(pid) & listening for pid in jupyter} == {pid: set() for pid in jupyter}
        # Jupyter's own log must not have the address of the first request.
        assert page.request(f"/?token={page.token}", token=False)[0] == 200
        assert page.token not in texts_of(page.process.pid)
        for name in ("run.json", "notebook.json", "link-1/out.log", "link-1/err.log", "link-1/journal.jsonl"):
            assert page.token not in (run.dir / name).read_text(), name
        assert page.token not in "".join(page.lines)
        for path in (run.dir / "connect").iterdir():
            assert path.stat().st_mode & 0o77 == 0
        if os.geteuid() == 0:
            other = account("gpuq-ben")
            code = f"import urllib.request\nurllib.request.urlopen('http://localhost:{page.port}/tree?token={page.token}', timeout=10)"
            done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=False, **as_kwargs(other))
            assert done.returncode != 0 and ("reset" in done.stderr.lower() or "closed" in done.stderr.lower()), done.stderr
            wait_for(lambda: "refused a connection from user gpuq-ben" in "".join(page.lines), 5, "a message")


def test_it_is_found_again(user):
    """Ctrl-C detaches; the same directory has the same notebook; after its end, the kernels that were lost are named."""
    with notebook(user.start, "work") as page:
        kernel = page.new_kernel("sub/b.ipynb")
        first = the_run(user)
        assert json.loads((first.dir / "link-1" / "job.json").read_text())["batch"] is False, "it was not started at once"
        assert not sruns(user, "run") + sruns(user, "guard"), "it needs processes on the login host"
        wait_for(lambda: (first.dir / "kernels.json").exists(), 10, "a record of the kernel")
    assert page.process.returncode == 130
    assert "the notebook continues" in "".join(page.lines)
    job = str(first.job)
    with notebook(user.start, "work") as page:
        time.sleep(1)  # it knows the events up to now
        with open(first.dir / "link-1" / "journal.jsonl", "a", encoding="ascii") as journal:
            at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
            journal.write(json.dumps({"v": 1, "at": at, "event": "warned", "detail": "10 minutes left"}) + "\n")
        wait_for(lambda: f"gpuq: run {job}: 10 minutes left" in "".join(page.lines), 10, "a warning of the time limit")
        assert [each["id"] for each in page.api("kernels")] == [kernel]
        assert len(user.run_dirs()) == 1
        assert user.gpuq("stop", job).returncode == 0
        assert ends_within(5, page) and page.process.returncode == 0
    assert "the notebook has ended: it was stopped" in "".join(page.lines)
    with notebook(user.start, "work") as page:
        assert len(user.run_dirs()) == 2
        assert "kernels that ended with the last notebook, with their variables: sub/b.ipynb (python3)" in "".join(page.lines)
        for name in ("c.ipynb", "d.ipynb", "e.ipynb"):
            page.new_kernel(name)
        # The button Quit.
        page.api("shutdown", "POST")
        assert ends_within(5, page)
        wait_for(lambda: records(user)[-1].ended, 5, "the end of the run")
    wait_for(lambda: not list(user.state.glob("gpuq/runs/*/connect/*")), 10, "no token left")


def test_two_at_once_open_the_same_notebook(user):
    """Both find none; while another process is starting one, they wait."""
    (user.state / "gpuq" / "index").mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with open(user.state / "gpuq" / "index" / "notebooks", "w", encoding="ascii") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)  # all bytes
            clients = [stack.enter_context(user.start("notebook", f"--port={free_port()}", *words, "work", stdin=subprocess.DEVNULL,
                                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1))
                       for words in ([], ["--json"])]
            for each in clients:
                assert "another gpuq is starting the notebook of" in each.stderr.readline()
            assert not user.run_dirs()
        page = Page(clients[0].stdout.readline())
        document = read_document(clients[1].stdout)
        assert page.token == Page(document["address"] + "\n").token
        assert document["run"] == the_run(user).key and document["state"] == "connected"
        assert str(document["port"]) in document["address"] and document["job"] == the_run(user).job
        assert page.request("/tree")[0] == Page(document["address"] + "\n").request("/tree")[0] == 200
        assert len(user.run_dirs()) == 1
        for each in clients:
            each.send_signal(signal.SIGINT)
            assert each.wait(20) == 130


def test_a_killed_client_loses_nothing(user):
    with notebook(user.start, "work") as page:
        client = Client(page, page.new_kernel())
        client.execute("import time\nprint('begun', flush=True)\ntime.sleep(1)\n" + counting(4000, 0.001))
        assert client.output() == "begun\n"
        page.process.kill()
        page.process.wait()
    time.sleep(6)  # until most is printed: more at once than Jupyter's own limits let through
    with notebook(user.start, "work") as again:
        client.page = again
        assert client.output_until("3999\n").split() == [str(number) for number in range(4000)]


def test_an_unused_one_ends(user):
    """A kernel that waits in a cell is at work; once it is idle and no page is open, the notebook is ended."""
    with notebook(user.start, "--idle=2s", "work") as page:
        client = Client(page, page.new_kernel())
        client.execute("import time\ntime.sleep(4)\nprint('done', flush=True)")
        wait_for(lambda: page.api("kernels")[0]["execution_state"] == "busy", 30, lambda: f"a busy kernel: {page.api('kernels')}")
        client.socket.close()
        run = the_run(user)
        log = run.dir / "link-1" / "err.log"
        assert ends_within(30, page), log.read_text()
    assert "gpuq: notebook: no busy kernel and no connection for 2 s: it ends, with 1 idle kernel\n" in "".join(page.lines)
    wait_for(lambda: run.ended, 30, lambda: log.read_text())
    text = log.read_text()
    assert "no busy kernel and no connection for 2 s: it ends in 0 s" in text
    assert "it ends, with 1 idle kernel" in text
    started = run.event("program_started")
    ended = run.event("ended")
    assert (datetime.datetime.fromisoformat(ended["at"]) - datetime.datetime.fromisoformat(started["at"])).total_seconds() > 6


def test_what_can_not_be(user):
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = user.gpuq("notebook", "--port", other.getsockname()[1])
    assert done.returncode == 2 and "is in use: choose another" in done.stderr
    done = user.gpuq("notebook", "nowhere")
    assert done.returncode == 2 and "nowhere: No such file" in done.stderr
    if importlib.util.find_spec("jupyterlab") is None:
        done = user.gpuq("notebook", "--lab", "work")
        assert done.returncode == 127 and "pip install jupyterlab" in done.stderr, done.stderr
    assert "jupyter" not in user.gpuq("ls", "--no-header").stdout


def configuration(run=pathlib.Path("/run-of-a-test")):
    """The names in the file that Jupyter reads, without its effects. `run`: the directory of the run."""
    text = (pathlib.Path(__file__).parents[2] / "src" / "runs" / "notebook_config.py.inc").read_text()
    names = {"__file__": str(run / "connect" / "notebook_config.py"), "__name__": "notebook_config"}
    exec(text[text.index("\n"):text.index("\ntry:\n    if ")], names)  # noqa: S102
    return types.SimpleNamespace(**names)


IDLE = [{"connections": 0, "execution_state": "idle"}]


@pytest.mark.parametrize("kernels, activity, cpu, program", [
    ([{"connections": 1, "execution_state": "idle"}], "t", 0, False),
    ([{"connections": 0, "execution_state": "busy"}], "t", 0, False),
    ([{"connections": 0, "execution_state": "starting"}], "t", 0, False),
    ([{}], "t", 0, False),
    (None, "t", 0, False),
    (IDLE, None, 0, False),
    (IDLE, "u", 0, False),
    (IDLE, "t", 10, False),
    (IDLE, "t", 0, True),
])
def test_what_counts_as_a_use(kernels, activity, cpu, program):
    """Anything that works, or is not known, begins the idle time anew."""
    use = configuration().Use(100, 0)
    use.look(0, IDLE, "t", 0, False)
    assert [use.look(now, IDLE, "t", 0, False) for now in (50, 79, 80, 81)] == [None, None, "warn", None]
    assert use.look(99, kernels, activity, cpu, program) is None
    after = [use.look(now, IDLE, activity or "t", cpu, False) for now in (100, 150, 170, 250, 270, 300)]
    assert after[:3] == [None, None, None] and after[-1] == "end"
    assert configuration().Use(100, 0).look(100, IDLE, None, 0, False) is None


def test_programs_without_a_parent_and_of_threads_count():
    """`nohup train.py &` in a terminal that was closed, for example: it goes to the supervisor."""
    script = f"""
import ctypes, os, subprocess, sys, threading, time
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)  # adopts orphans
libc.prctl(15, b"gpuq-supervisor", 0, 0, 0)
subprocess.Popen(["sleep", "60"])
jupyter = os.fork()
if jupyter == 0:
    libc.prctl(15, b"jupyter", 0, 0, 0)
    import test_notebook
    os.system("sleep 61 & true")
    threading.Thread(target=lambda: (subprocess.Popen(["sleep", "62"]), threading.Event().wait()), daemon=True).start()
    time.sleep(0.5)
    found = [open(f"/proc/{{pid}}/cmdline").read().split(chr(0))[1] for pid in test_notebook.configuration().programs()]
    print(*sorted(found), flush=True)
    os._exit(0)
os.waitpid(jupyter, 0)
os.system("kill " + " ".join(open(f"/proc/{{os.getpid()}}/task/{{os.getpid()}}/children").read().split()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout.split() == ["60", "61", "62"], done


def test_kernels_stay_listed_while_jupyter_ends_them(tmp_path):
    """It answers meanwhile, and the kernels end one after the other."""
    def session(path, kernel):
        return {"path": path, "kernel": kernel}

    def listed():
        return [each["path"] for each in json.loads((tmp_path / "kernels.json").read_text())["kernels"]]
    record = configuration(tmp_path).Record()
    record.update(0, [])
    assert not (tmp_path / "kernels.json").exists()
    record.update(2, [session("a", {"name": "python3"}), session("b", {"name": "python3"}), session("c", None)])
    assert listed() == ["a", "b"] and record.running == 2
    record.update(4, [session("b", {"name": "python3"})])
    assert listed() == ["a", "b"] and record.running == 1
    record.update(14, [session("b", {"name": "python3"})])
    assert listed() == ["b"]  # its user has ended the other one


def test_a_gate_that_can_not_be_found_is_ended(tmp_path, monkeypatch):
    """A full disk: otherwise there would be one more every two seconds."""
    gate = tmp_path / "gate"
    gate.write_text("#!/bin/sh\nexec sleep 60\n")
    gate.chmod(0o700)
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **named: started.append(popen(*words, **named)) or started[-1])
    with pytest.raises(OSError):
        configuration(tmp_path / "nowhere").start_gate(str(gate), "socket")
    assert [each.returncode for each in started] == [-signal.SIGKILL]


@pytest.mark.parametrize("version, place", [("1.23.3", "ServerApp"), ("2.20.0", "ZMQChannelsWebsocketConnection")])
def test_settings_of_the_user_are_kept_except_for_the_token(monkeypatch, version, place):
    config = pytest.importorskip("traitlets.config", reason="package python3-traitlets").Config
    monkeypatch.setitem(sys.modules, "jupyter_server", types.SimpleNamespace(__version__=version))
    notebook_config = configuration()
    c = config()
    c.IdentityProvider.token = ""
    c.PasswordIdentityProvider.hashed_password = "argon2:x"
    c.PasswordIdentityProvider.password_required = True
    notebook_config.set_token(c, "t")
    assert c.IdentityProvider == {"token": "t"} and c.PasswordIdentityProvider == {"allow_password_change": False}
    notebook_config.raise_output_limits(c)
    assert c[place] == c.NotebookApp == notebook_config.OUTPUT_LIMITS
    c = config()
    c.NotebookApp.iopub_data_rate_limit = 5
    notebook_config.raise_output_limits(c)
    assert c.NotebookApp == {"iopub_data_rate_limit": 5} and not c[place]


def notebook_with(source):
    """The file of a notebook with one cell."""
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": source}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def page_survives(user, browser, options, path, run_cell, output):
    """The page shows what a cell prints across a cut and across a killed client, and is never loaded again."""
    (user.home / "work" / "a.ipynb").write_text(notebook_with(counting(400, 0.01)))
    port = f"--port={free_port()}"
    with notebook(user.start, *options, "work", port=port) as page:
        browser.open(f"http://localhost:{page.port}{path}?token={page.token}")
        run_cell()
        wait_for(lambda: "50\n" in output(), 40, output)
        browser.run("window.marker = 'the first one'")
        cut()
        wait_for(lambda: "150\n" in output(), 20, output)
        page.process.kill()
        page.process.wait()
    with notebook(user.start, "work", port=port):
        wait_for(lambda: "399\n" in output(), 40, output)
    assert browser.run("return window.marker") == "the first one"
    # A killed client may lose what was under way at that moment, nothing else.
    numbers = [int(number) for number in output().split()]
    assert numbers == sorted(set(numbers)) and len(numbers) > 390, set(range(400)) - set(numbers)


NO_BROWSER = pytest.mark.skipif(not (browsers.DRIVER and browsers.CHROMIUM), reason="no packages chromium and chromium-driver")


@NO_BROWSER
@pytest.mark.skipif(importlib.util.find_spec("jupyterlab") is not None, reason="the page of Notebook 7 has no object Jupyter")
def test_in_a_browser(user):
    with browsers.browser() as browser:
        def run_cell():
            wait_for(lambda: browser.run("return !!(window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel && "
                                         "Jupyter.notebook.kernel.is_connected() && Jupyter.notebook.kernel.info_reply.banner)"),
                     60, "a kernel on the page")
            browser.run("Jupyter.notebook.execute_cells([0])")

        def output():
            return browser.run("return Array.from(document.querySelectorAll('.output_stdout pre')).map(e => e.textContent).join('')")
        page_survives(user, browser, [], "/notebooks/a.ipynb", run_cell, output)


@NO_BROWSER
@pytest.mark.skipif(not os.path.exists("/usr/bin/jupyter-lab"), reason="no package jupyterlab")
@pytest.mark.parametrize("options, path", [(["--lab"], "/lab/tree/a.ipynb"), ([], "/notebooks/a.ipynb")], ids=["lab", "notebook"])
def test_jupyterlab_and_notebook_7_in_a_browser(user, options, path):
    (user.home / ".jupyter").mkdir(exist_ok=True)
    for name, app in (("lab", "LabApp"), ("notebook", "JupyterNotebookApp")):
        (user.home / ".jupyter" / f"jupyter_{name}_config.py").write_text(f"c.{app}.expose_app_in_browser = True\n")
    with browsers.browser() as browser:
        def run_cell():
            wait_for(lambda: browser.run("const panel = window.jupyterapp && window.jupyterapp.shell.currentWidget;"
                                         "const session = panel && panel.sessionContext && panel.sessionContext.session;"
                                         "return !!(session && session.kernel && session.kernel.connectionStatus === 'connected' &&"
                                         " session.kernel.status === 'idle')"), 90, "a kernel on the page")
            browser.run("window.jupyterapp.commands.execute('notebook:run-all-cells')")

        def output():
            return browser.run("return Array.from(document.querySelectorAll('.jp-OutputArea-output pre')).map(e => e.textContent).join('')")
        page_survives(user, browser, options, path, run_cell, output)
