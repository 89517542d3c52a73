# SPDX-License-Identifier: GPL-2.0-or-later
"""A login host that is not gpuq: it uses the frames of `gpuq serve` (src/wire/remote_frame.h) and sends the data chosen
by a test."""
import pathlib
import shlex
import struct
import sys

MARKER = b"\x1dgpuq-serve\x1d\n"
VERSION = 1
HELLO, OUTPUT, INPUT_TAKEN, FOLLOWING, EXIT, FAILURE, SIGNAL_TAKEN, SSH_TARGET = range(65, 73)
START, DIAL, BEAT, STREAM_BYTES, STREAM_TAKEN, STREAM_END, STREAM_GONE = 2, 9, 32, 33, 34, 35, 36
KEY = "20261120T131158.042Z-0f3a9c1e5b7d2468"


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(value)) + value


def frame(kind, payload=b""):
    return bytes([kind]) + struct.pack("<I", len(payload)) + payload


def hello(program="0.1", host="login1", known=False):
    return frame(HELLO, struct.pack("<i", VERSION) + text(program) + text(host) + bytes([known]) +
                 struct.pack("<QQQ", 0, 1 << 18, 0))


def output(stream, offset, data):
    return frame(OUTPUT, bytes([stream]) + struct.pack("<Q", offset) + data)


def following(key=KEY, job=7, link=1):
    return frame(FOLLOWING, text(key) + struct.pack("<IiQQ", job, link, 0, 0))


def ssh_target(key=KEY, job=7, user="ada"):
    return frame(SSH_TARGET, text(key) + struct.pack("<I", job) + text(user))


def ended(status=0, out=0, err=0):
    return frame(EXIT, struct.pack("<iQQ", status, out, err))


def failure(kind, why):
    return frame(FAILURE, bytes([kind]) + text(why))


def stream_gone(stream, why):
    return frame(STREAM_GONE, struct.pack("<I", stream) + text(why))


def peer(folder, data):
    """A value for GPUQ_SSH: a program in place of ssh that sends `data` and waits until gpuq has closed the
    connection."""
    said = pathlib.Path(folder) / "said"
    said.write_bytes(data)
    program = ("import sys; out = sys.stdout.buffer; out.write(open(sys.argv[1], 'rb').read()); out.flush(); "
               "sys.stdin.buffer.read()")
    return shlex.join([sys.executable, "-c", program, str(said)])
