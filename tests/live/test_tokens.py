# SPDX-License-Identifier: GPL-2.0-or-later
"""Bearer tokens of runs: in a file of their own on the node, refreshed by a command on the login host."""
import base64
import glob
import json
import os
import stat
import time

from clusters import wait_for
from runs import PYTHON, all_gpus_taken, nothing_left, processes_of, the_run, words_of

CLUSTER = dict(nodes=1, gpus=2, lines=["KillWait=2"])

# Prints a token that lasts LIFE seconds, and another text on stderr, like htgettoken.
COMMAND = """#!/usr/bin/python3
import base64, json, sys, time
now = time.time()
def part(value): return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
print("Storing bearer token", file=sys.stderr)
print(part({"alg": "none"}) + "." + part({"iat": now, "exp": now + LIFE, "jti": str(now)}) + ".sig")
"""

# Reads the token at 20 Hz for SECONDS. Prints whether it was expired or unreadable, and the number of tokens seen.
WATCH = """
import base64, json, os, sys, time
seen, bad = set(), []
print("token in the environment" if "BEARER_TOKEN" in os.environ else "no token in the environment", flush=True)
path = os.environ["BEARER_TOKEN_FILE"]
end = time.time() + SECONDS
while time.time() < end:
    try:
        text = open(path).read()
        payload = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        seen.add(text)
        if claims["exp"] <= time.time():
            bad.append("expired")
    except Exception as trouble:
        bad.append(repr(trouble))
    time.sleep(0.05)
print(json.dumps({"tokens": len(seen), "bad": bad[:5], "path": path}), flush=True)
"""


def command(person, life):
    script = person.home / "token-command"
    script.write_text(COMMAND.replace("LIFE", str(life)))
    script.chmod(0o755)
    return {"GPUQ_TOKEN_COMMAND": str(script)}


def watch(seconds):
    return [PYTHON, "-c", WATCH.replace("SECONDS", str(seconds))]


def keepers(person):
    return [pid for pid in processes_of(person) if words_of(pid)[1:3] == ["keepalive", "--stay"]]


def token(jti, lasts=3600):
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()  # noqa: E731
    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'iat': now, 'exp': now + lasts, 'jti': jti})}.sig"


def files_with(folder, secret):
    found = []
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if os.path.isfile(path) and secret.encode() in open(path, "rb").read():
                found.append(path)
    return found


def test_a_token_outlives_itself_in_a_run_that_nobody_watches(person):
    env = command(person, 24)
    done = person.gpuq("run", "--detach", "--gpus", "1", "-J", "watch", "--", *watch(32), env=env)
    assert done.returncode == 0, done.stderr
    record = the_run(person)
    wait_for(lambda: keepers(person), 10, "who refreshes it")
    assert record.wait_for_end(90)["status"] == 0
    lines = record.log("out").decode().splitlines()
    assert lines[0] == "no token in the environment"
    told = json.loads(lines[1])
    assert told["bad"] == [] and told["tokens"] >= 3, told
    wait_for(lambda: not os.path.exists(os.path.dirname(told["path"])), 10, "its end on the node")
    wait_for(lambda: not keepers(person), 15, "its end")
    nothing_left(person)


def test_the_login_s_token_goes_along_and_a_better_one_follows(person):
    first, second = token("first"), token("second", 7200)
    run = person.gpuq("run", "--detach", "--gpus", "1", "-J", "along", "--", *watch(12), env={"BEARER_TOKEN": first})
    assert run.returncode == 0, run.stderr
    record = the_run(person)
    record.event("program_started")
    shown = json.loads(person.gpuq("show", "along", "--json").stdout)["credentials"]
    assert shown["principal"] is None and shown["token"] and shown["token_expires"]
    # Both tokens are only in the store, from which the node removes them.
    wait_for(lambda: not files_with(person.state, first), 10, "the store without it")
    held = [path for path in glob.glob("/tmp/gpuq-krb5-*/bearer_token") if open(path).read() == first]
    assert len(held) == 1 and stat.S_IMODE(os.stat(held[0]).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(held[0])).st_mode) == 0o700
    assert person.gpuq("ls", env={"BEARER_TOKEN": second}).returncode == 0
    wait_for(lambda: open(held[0]).read() == second, 10, "the new one on the node")
    assert "good until" in person.gpuq("keepalive").stdout
    # A worse token changes nothing.
    assert person.gpuq("ls", env={"BEARER_TOKEN": first}).returncode == 0
    assert record.wait_for_end(60)["status"] == 0
    assert json.loads(record.log("out").decode().splitlines()[1])["tokens"] == 2
    nothing_left(person)
    assert not files_with(person.state, first) and not files_with(person.state, second)


def test_a_token_that_does_not_tell_is_followed_by_another_while_its_run_waits(person, cluster):
    with all_gpus_taken(cluster, nodes=1, gpus=2):
        run = person.gpuq("run", "--detach", "--gpus", "1", "-J", "waits", "--", *watch(1), env={"BEARER_TOKEN": "first"})
        assert run.returncode == 0, run.stderr
        path = the_run(person).dir / "credentials" / "token"
        env = command(person, 3600)
        assert person.gpuq("ls", env=env).returncode == 0
        assert path.read_text() == "first", "after a second"
        os.utime(path, (0, time.time() - 700))
        wait_for(lambda: person.gpuq("ls", env=env).returncode == 0 and path.read_text() != "first", 10, "another")
        assert json.loads(person.gpuq("show", "waits", "--json").stdout)["credentials"]["token_expires"]
    assert the_run(person).wait_for_end(60)["status"] == 0
    nothing_left(person)


def test_what_is_no_token_is_said_and_the_run_goes_on_without(person):
    for env, said in (({"BEARER_TOKEN": "two words"}, "no bearer token: its content is not a bearer token"),
                      ({"BEARER_TOKEN": token("old", -5)}, "the login's token has expired"),
                      ({"GPUQ_TOKEN_COMMAND": "/bin/false"}, "/bin/false exited with 1")):
        done = person.gpuq("run", "--gpus", "1", "--", "sh", "-c", "echo ${BEARER_TOKEN_FILE:-none}", env=env)
        assert done.returncode == 0 and done.stdout == "none\n" and said in done.stderr, done.stderr
    nothing_left(person)
