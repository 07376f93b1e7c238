# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own: real, in a directory that goes away, and never as root.

    with pg_machine.server() as server:
        server.address()                    postgresql://... of a fresh database
        server.sql("SELECT 1")              as its owner
        server.stop(), server.start()       orderly
        server.kill()                       every process of it, at once

It listens on a Unix socket only. Skips where PostgreSQL is not installed.
"""

import contextlib
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

import tap

USER, PASSWORD = "flyball_test", "s3cret'pa%ss"
QUOTED = "s3cret'pa%25ss"
# What a server says that is still starting, stopping or gone.
ROOM_MIB = 1024  # for a server's files, should they lie in memory
PATIENCE_S = tap.PATIENCE_S


def binaries():
    """The directory of initdb and postgres, the newest of those installed; None without."""
    found = [os.path.dirname(path) for path in glob.glob("/usr/lib/postgresql/*/bin/initdb")]
    found.sort(key=lambda path: float(path.split("/")[-2]))
    if found:
        return pathlib.Path(found[-1])
    on_path = shutil.which("initdb")
    return pathlib.Path(os.path.dirname(os.path.realpath(on_path))) if on_path else None


class Server:
    def __init__(self, home):
        self.bin = binaries()
        if self.bin is None or not (self.bin / "postgres").exists():
            raise tap.Skip("PostgreSQL is not installed")
        self.home = pathlib.Path(home)
        self.data = self.home / "data"
        self.process = None
        self.databases = 0
        # PostgreSQL refuses to run as root.
        self.who = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
            self.who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LC_ALL": "C", "PGPASSWORD": PASSWORD}
        (self.home / "password").write_text(PASSWORD + "\n")
        (self.home / "password").chmod(0o644)
        self.run("initdb", "-D", self.data, "-U", USER, "--pwfile", self.home / "password", "-A", "scram-sha-256",
                 "-E", "UTF8", "--locale", "C", "--no-sync")
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{self.home}'\nmax_connections = 100\n"
                           "shared_buffers = 16MB\nautovacuum = off\nlogging_collector = off\n")
            # After a kill it syncs its files one by one, thousands, unless told to sync all at once.
            if self.version() >= 14:
                settings.write("recovery_init_sync_method = syncfs\n")
        self.start()

    def run(self, program, *arguments, check=True, **options):
        result = subprocess.run([self.bin / program, *map(str, arguments)], env=self.environment, cwd=self.home,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                                **self.who, **options)
        if check and result.returncode != 0:
            raise AssertionError(f"{program} {arguments}: {result.stdout} {result.stderr}")
        return result

    def version(self):
        return int(re.search(r"\d+", self.run("postgres", "--version").stdout).group())

    def start(self):
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen([self.bin / "postgres", "-D", self.data], env=self.environment, cwd=self.home,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self.who)
        begin = time.monotonic()
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > begin + PATIENCE_S:
                raise AssertionError("the server does not start:\n" + (self.home / "log").read_text()[-2000:])
            time.sleep(0.05)

    def answers(self):
        return self.run("pg_isready", "-q", "-h", self.home, check=False).returncode == 0

    def stop(self, how=signal.SIGINT):
        """SIGINT ends every session and writes all down; SIGQUIT is what a crash leaves."""
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)

    def kill(self):
        """Every process of it at once, as a power cut would; then it can be started again."""
        children = self.children()
        for pid in [self.process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        begin = time.monotonic()
        while any(self.is_there(pid) for pid in children) and time.monotonic() < begin + PATIENCE_S:
            time.sleep(0.01)
        # What a real power cut would take with it.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def children(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    @staticmethod
    def is_there(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def sql(self, text, database="postgres"):
        return self.run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.home, "-U", USER, "-d", database,
                        "-c", text).stdout.strip()

    def database(self):
        """The name of a new, empty one."""
        self.databases += 1
        name = f"store_{self.databases}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def address(self, database=None, user=USER, password=QUOTED, options=""):
        return f"postgresql://{user}:{password}@/{database or self.database()}?host={self.home}{options}"


@contextlib.contextmanager
def server(place=None):
    """On disk, or in the directory of that name, as of tap.quick_place."""
    # A socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="flyball-pg-", dir=place or "/tmp") as home:
        machine = Server(home)
        try:
            yield machine
        finally:
            if machine.process.poll() is None:
                machine.stop(signal.SIGQUIT)
