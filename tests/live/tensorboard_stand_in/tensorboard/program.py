# SPDX-License-Identifier: GPL-2.0-or-later
"""tensorboard.program: its page is a JSON object of the event files, PATH: NUMBER OF BYTES."""
import argparse
import json
import os
import urllib.parse


class TensorBoard:
    def __init__(self, server_class=None):
        self.server_class = server_class
        self.flags = None

    def configure(self, argv):
        parser = argparse.ArgumentParser()
        parser.add_argument("--logdir", required=True)
        parser.add_argument("--load_fast", choices=["false", "auto", "true"], default="auto")
        parser.add_argument("--reload_interval", type=float, default=5)
        self.flags = parser.parse_args(argv[1:])
        assert self.flags.load_fast == "false", "the data server listens on a port"
        return [""]

    def main(self):
        server = self.server_class(self._app, self.flags)
        server.print_serving_message()
        # The real one writes it to a file in TMPDIR.
        assert isinstance(urllib.parse.urlparse(server.get_url()).port, int)
        server.serve_forever()
        return 0

    def _app(self, environ, start_response):
        files = {}
        for folder, _, names in os.walk(self.flags.logdir, followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                files[os.path.relpath(path, self.flags.logdir)] = os.path.getsize(path)
        body = json.dumps(files).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]
