# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of a user's runs on nodes, computed independently of io/node_names.h by the same rule."""
import os
import pathlib

MASK = (1 << 64) - 1


def siphash(key, data):
    """SipHash-2-4."""
    def rotl(value, by):
        return (value << by | value >> 64 - by) & MASK

    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def sip_round():
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotl(v[1], 13) ^ v[0]
        v[0] = rotl(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotl(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotl(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xff])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at:at + 8], "little")
        v[3] ^= word
        sip_round()
        sip_round()
        v[0] ^= word
    v[2] ^= 0xff
    for _ in range(4):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def uid_of(person):
    return person.user.pw_uid if person.user else os.geteuid()


def tag(person, text):
    secret = bytes.fromhex((person.state / "gpuq" / "secret").read_text())
    return f"{siphash(secret, text.encode()):016x}"


def sockets(person, key, link=1):
    return [f"gpuq-{uid_of(person)}/" + tag(person, f"socket {key}.{link} {number}") for number in range(3)]


def directories(person, key, link=1, purpose="krb5"):
    return [pathlib.Path(f"/tmp/gpuq-{purpose}-{uid_of(person)}-" + tag(person, f"{purpose} {key}.{link} {number}"))
            for number in range(3)]


def left_of(person, keys, links=5):
    """Directories that runs have left in /tmp."""
    if not (person.state / "gpuq" / "secret").exists():
        return []
    return [path for key in keys for link in range(1, links + 1) for path in directories(person, key, link)
            if path.exists()]
