# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Kerberos for a test: an MIT KDC on the loopback interface, with its configuration and database in a
directory and tickets of seconds. Nothing in /etc is read or changed."""
import contextlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

from clusters import as_kwargs, free_port, is_running, short_folder, wait_for

REALM = "GPUQ.TEST"
SBIN = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

CLIENT = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  forwardable = true
  clockskew = 1
  udp_preference_limit = 0
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
SERVER = """[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = {life}s
    max_renewable_life = {renewable}s
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""


class Kdc:
    def __init__(self, folder, life, renewable):
        self.folder = pathlib.Path(folder)
        self.life, self.renewable = life, renewable
        self.port = free_port()
        names = {"realm": REALM, "port": self.port, "folder": folder, "life": life, "renewable": renewable}
        (self.folder / "krb5.conf").write_text(CLIENT.format(**names))
        (self.folder / "kdc.conf").write_text(SERVER.format(**names))
        (self.folder / "acl").write_text("")
        # Environment for a client of this Kerberos.
        self.env = {"KRB5_CONFIG": str(self.folder / "krb5.conf")}
        self.server_env = {**os.environ, **self.env, "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
                           "PATH": SBIN, "LC_ALL": "C"}
        self.pid = None

    def admin(self, query):
        subprocess.run(["kadmin.local", "-r", REALM, "-q", query], env=self.server_env, check=True,
                       capture_output=True, timeout=30)

    def make(self, *principals):
        subprocess.run(["kdb5_util", "create", "-s", "-r", REALM, "-P", "of no worth"],
                       env=self.server_env, check=True, capture_output=True, timeout=60)
        limits = f"-maxlife {self.life}s -maxrenewlife {self.renewable}s"
        self.admin(f"modprinc {limits} krbtgt/{REALM}@{REALM}")
        for name in principals:
            self.admin(f"addprinc -randkey {limits} {name}@{REALM}")
            self.admin(f"ktadd -norandkey -k {self.keytab(name)} {name}@{REALM}")
            self.keytab(name).chmod(0o644)

    def start(self):
        pidfile = self.folder / "kdc.pid"
        pidfile.unlink(missing_ok=True)
        subprocess.run(["krb5kdc", "-r", REALM, "-P", str(pidfile)], env=self.server_env, check=True,
                       capture_output=True, timeout=30)
        self.pid = wait_for(lambda: pidfile.exists() and int(pidfile.read_text() or 0), 10, "a KDC")

    def stop(self):
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)
                os.kill(self.pid, signal.SIGTERM)
            wait_for(lambda: not is_running(self.pid), 10, "the end of the KDC")
            self.pid = None

    @contextlib.contextmanager
    def frozen(self):
        """Requests reach the KDC, but get no response."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def down(self):
        """No process listens on its port."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def keytab(self, name):
        return self.folder / f"{name}.keytab"

    def login(self, person, cache, *options, name="ada", life=None, renewable=None):
        """Like kinit with a password: puts a new ticket into the cache."""
        is_file = ":" not in str(cache) or str(cache).startswith("FILE:")
        words = ["kinit", "-k", "-t", str(self.keytab(name)), "-l", f"{life or self.life}s"]
        if renewable != 0:
            words += ["-r", f"{renewable or self.renewable}s"]
        done = subprocess.run([*words, *options, "-c", str(cache), f"{name}@{REALM}"],
                              env={**os.environ, **self.env, "LC_ALL": "C"}, capture_output=True,
                              text=True, timeout=60, check=False,
                              **({} if is_file else as_kwargs(person.user)))
        assert done.returncode == 0, done.stderr
        if is_file and person is not None and person.user and os.geteuid() == 0:
            os.chown(str(cache).removeprefix("FILE:"), person.user.pw_uid, person.user.pw_gid)

    def logout(self, person, cache):
        subprocess.run(["kdestroy", "-c", str(cache)], env={**os.environ, **self.env}, check=True, timeout=30,
                       **as_kwargs(person.user))


@contextlib.contextmanager
def running_kdc(*principals, life=10, renewable=600):
    with short_folder() as folder:
        kdc = Kdc(folder, life, renewable)
        kdc.make(*(principals or ("ada",)))
        kdc.start()
        try:
            yield kdc
        finally:
            kdc.stop()


def is_installed():
    return all(shutil.which(name, path=SBIN) for name in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit"))


class Ticket:
    """The TGT of a FILE cache, parsed without the Kerberos library."""

    def __init__(self, data):
        assert data[:2] == b"\x05\x04", "no cache of version 4"
        self.data = data
        self.at = 4 + struct.unpack(">H", data[2:4])[0]
        self.principal = self._principal()
        self.end = None
        while self.at < len(data):
            self._credential()
        assert self.end is not None, "no TGT"

    def left(self):
        return self.end - time.time()

    def _number(self, form):
        size = struct.calcsize(form)
        value = struct.unpack(form, self.data[self.at:self.at + size])[0]
        self.at += size
        return value

    def _bytes(self):
        size = self._number(">I")
        assert self.at + size <= len(self.data), "truncated"
        self.at += size
        return self.data[self.at - size:self.at]

    def _principal(self):
        _, count = self._number(">I"), self._number(">I")
        realm = self._bytes()
        return b"/".join(self._bytes() for _ in range(count)) + b"@" + realm

    def _credential(self):
        self._principal()
        server = self._principal()
        _, key = self._number(">H"), self._bytes()
        _, start, end, renew = (self._number(">I") for _ in range(4))
        self._number(">B")
        flags = self._number(">I")
        for _ in range(2):
            for _ in range(self._number(">I")):
                self._number(">H")
                self._bytes()
        self._bytes(), self._bytes()
        if server.startswith(b"krbtgt/"):
            self.key, self.start, self.end, self.renew_till, self.flags = key, start, end, renew, flags
