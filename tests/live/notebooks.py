# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq notebook` as its user sees it: the address on standard output, a client of Jupyter's kernels."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid

import pytest

from clusters import free_port, processes, wait_for
from runs import words_of

ADDRESS = re.compile(r"http://localhost:(\d+)(/tree|/lab|/)\?token=([0-9a-f]{48})\n")


class Page:
    """The address that `gpuq notebook` has printed."""

    def __init__(self, url):
        found = ADDRESS.fullmatch(url)
        assert found, url
        self.url = url.strip()
        self.port, self.token = int(found[1]), found[3]

    def request(self, path, method="GET", body=None, token=True, timeout=30):
        """Status and body."""
        request = urllib.request.Request(f"http://localhost:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"token {self.token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def api(self, path, method="GET", body=None):
        status, text = self.request("/api/" + path, method, body)
        assert status < 300, (status, text)
        return json.loads(text) if text else None

    def new_kernel(self, path="a.ipynb"):
        return self.api("sessions", "POST", {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}})["kernel"]["id"]


class Client:
    """A page's connection to a kernel: it keeps its session and connects again when it was cut off."""

    def __init__(self, page, kernel):
        self.websocket = pytest.importorskip("websocket", reason="package python3-websocket")
        self.page, self.kernel, self.session = page, kernel, uuid.uuid4().hex
        self.connections = 0
        self.connect()
        self.wait_until_ready()

    def connect(self):
        def connected():
            with contextlib.suppress(OSError, self.websocket.WebSocketException):
                return self.websocket.create_connection(
                    f"ws://localhost:{self.page.port}/api/kernels/{self.kernel}/channels?session_id={self.session}",
                    header=[f"Authorization: token {self.page.token}"], timeout=60)
            return None
        self.socket = wait_for(connected, 30, "a connection to the kernel")
        self.connections += 1

    def send(self, kind, content):
        self.socket.send(json.dumps({
            "header": {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": self.session, "username": "",
                       "version": "5.3"},
            "parent_header": {}, "metadata": {}, "buffers": [], "channel": "shell", "content": content}))

    def wait_until_ready(self):
        """As a page does: Jupyter ignores requests to a kernel that has not started yet."""
        def answers():
            self.send("kernel_info_request", {})
            self.socket.settimeout(0.5)
            with contextlib.suppress(self.websocket.WebSocketTimeoutException):
                while json.loads(self.socket.recv())["msg_type"] != "kernel_info_reply":
                    pass
                return True
            return False
        wait_for(answers, 60, "a kernel")
        self.socket.settimeout(60)

    def execute(self, code):
        self.send("execute_request", {"code": code, "silent": False, "store_history": True, "allow_stdin": False,
                                      "stop_on_error": True})

    def output(self):
        """The next text that the kernel has printed; connects again if necessary."""
        while True:
            try:
                message = json.loads(self.socket.recv())
            except (OSError, self.websocket.WebSocketException):
                self.socket.shutdown()
                self.connect()
                continue
            if message["msg_type"] == "stream":
                return message["content"]["text"]
            assert message["msg_type"] != "error", message["content"]

    def output_until(self, end):
        text = ""
        while end not in text:
            text += self.output()
        return text


@contextlib.contextmanager
def notebook(start, *words, port=None):
    """The page of `gpuq notebook` on a free port. `start`: as Person.start. The client is detached at the end."""
    with start("notebook", port or f"--port={free_port()}", *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, "")), daemon=True)
        reader.start()
        try:
            url = process.stdout.readline()
            if not url:
                process.wait(20)
                reader.join(5)
                pytest.fail("no address: " + "".join(lines))
            page = Page(url)
            page.process, page.lines = process, lines
            yield page
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(20)
            reader.join(5)


def steps():
    """gpuq's processes on the node that connect clients with a notebook, and not those of other tests."""
    return processes(lambda pid: words_of(pid)[1:2] == ["forward"] and words_of(pid)[0].endswith("gpuq-supervisor") and
                     "/notebook" in words_of(pid))


def gates():
    return processes(lambda pid: words_of(pid)[1:2] == ["gate"] and words_of(pid)[0].endswith("gpuq-supervisor") and
                     words_of(pid)[2].startswith("gpuq-notebook-"))


def cut(some=steps):
    """Kills the step between the client and the node."""
    for pid in wait_for(some, 20, "a way in"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ends_within(seconds, page):
    end = time.monotonic() + seconds
    while page.process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return page.process.poll() is not None
