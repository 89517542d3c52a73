# SPDX-License-Identifier: GPL-2.0-or-later
"""A slow network that loses packets, between this machine and a network namespace. Needs root, and no netem: packets pass
through this process, from one TUN device to another."""
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time

import pytest

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
TO_HOST, TO_LAPTOP = "to the host", "to the laptop"


def ip(*words):
    """Skips the test where this machine does not permit it."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")


def flow_of(packet):
    """The two ports of a TCP packet in either direction; None for others."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    return frozenset(struct.unpack_from(">HH", packet, (packet[0] & 15) * 4))


class LossyNetwork:
    """`address` is this machine's; programs started by the command prefix `inside` have only the other end.

    `delay`: seconds in each direction; `loss`: the share of the packets in each direction that are dropped."""

    def __init__(self, delay=0.0, loss=0.0, seed=1):
        self.delay, self.loss, self.random = delay, loss, random.Random(seed)
        self.name = f"gpuqn{os.getpid() % 100000}"
        subnet = f"10.253.{os.getpid() % 250}"
        self.address, self.other = f"{subnet}.1", f"{subnet}.2"
        self.inside = ["nsenter", f"--net=/run/netns/{self.name}"]
        self.flows, self.blocked = set(), set()
        self.late, self.order = [], itertools.count()
        self.passed = self.lost = 0
        self.devices, self.thread, self.ended = {}, None, False

    def __enter__(self):
        ip("netns", "add", self.name)
        try:
            host, laptop = self._device(f"{self.name}h"), self._device(f"{self.name}l")
            ip("link", "set", f"{self.name}l", "netns", self.name)
            for where, device, address in (([], "h", self.address), (["-n", self.name], "l", self.other)):
                ip(*where, "addr", "add", f"{address}/30", "dev", self.name + device)
                ip(*where, "link", "set", self.name + device, "up")
            self.devices = {host: (laptop, TO_LAPTOP), laptop: (host, TO_HOST)}
            self.thread = threading.Thread(target=self._pass, daemon=True)
            self.thread.start()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.ended = True
        if self.thread:
            self.thread.join()
        for device in self.devices:
            os.close(device)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)

    def silence(self, *directions):
        """Drops all further packets of today's connections in these directions; new connections work."""
        self.blocked |= {(flow, direction) for flow in list(self.flows) for direction in directions}

    def _device(self, name):
        try:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        except OSError as error:
            pytest.skip(f"no TUN devices here: {error}")
        return device

    def _pass(self):
        while not self.ended:
            wait = max(0, min(0.05, self.late[0][0] - time.monotonic())) if self.late else 0.05
            for device in select.select(list(self.devices), [], [], wait)[0]:
                self._receive(device)
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(self.late)
                try:
                    os.write(to, packet)
                except OSError:  # its queue is full: lost
                    self.lost += 1

    def _receive(self, device):
        to, direction = self.devices[device]
        try:
            packet = os.read(device, 1 << 16)
        except OSError:
            return
        flow = flow_of(packet)
        if flow:
            self.flows.add(flow)
        if (flow, direction) in self.blocked or self.random.random() < self.loss:
            self.lost += 1
            return
        self.passed += 1
        heapq.heappush(self.late, (time.monotonic() + self.delay, next(self.order), to, packet))
