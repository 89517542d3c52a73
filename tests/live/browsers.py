# SPDX-License-Identifier: GPL-2.0-or-later
"""A browser without a screen: chromium by chromedriver, with the WebDriver protocol."""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.request

from clusters import plain_environment, short_folder

DRIVER = shutil.which("chromedriver", path="/usr/bin")
CHROMIUM = shutil.which("chromium", path="/usr/bin")


class Browser:
    def __init__(self, port, folder):
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        options = {"binary": CHROMIUM, "args": arguments}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.base += f"/session/{made['sessionId']}"

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())["value"]

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value that the JavaScript function body returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def show_on(self, width, scheme):
        """A screen of this width in pixels, light or dark."""
        for command, words in (("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": 2000, "deviceScaleFactor": 1, "mobile": width < 600}),
                               ("Emulation.setEmulatedMedia",
                                {"features": [{"name": "prefers-color-scheme", "value": scheme}]})):
            self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": words})

    def picture(self):
        """The window as a PNG."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def close(self):
        self._call("DELETE", "")


@contextlib.contextmanager
def browser():
    with short_folder() as folder:
        env = {**plain_environment(), "HOME": str(folder), "TMPDIR": str(folder), "XDG_CONFIG_HOME": str(folder)}
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        try:
            for line in driver.stdout:
                if started := re.search(r"started successfully on port (\d+)", line):
                    break
            one = Browser(started[1], folder)
            try:
                yield one
            finally:
                one.close()
        finally:
            driver.terminate()
            driver.wait(10)
            driver.stdout.close()
