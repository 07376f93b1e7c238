# SPDX-License-Identifier: Apache-2.0
"""A machine of scripts/soak_leases.py: emulated GPUs that are watched, and a daemon that is started again as systemd does."""
import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD_DIR", "build")
FLYBALLD, EMULATOR, WATCHER = BUILD / "flyballd", BUILD / "emulator" / "flyball-emulator", BUILD / "tests" / "knob_watcher"
BASE_W, FLOOR_W, CEILING_W, NARROW_W, BOARD_W = 300.0, 150.0, 350.0, 330.0, 400.0
FREE = ("0-0", "0-0")
NOBODY, PATIENCE_S = 65534, 30
SANITIZED = any(mark in FLYBALLD.read_bytes() for mark in (b"__asan_init", b"__tsan_init")) if FLYBALLD.exists() else False
# Within which everything is back; a sanitizer takes its time.
PROMISED_S = 5.0 if SANITIZED else 1.0


class Watcher:
    """What stood where and since when, and what another program turned."""

    def __init__(self, state):
        self.process = subprocess.Popen([WATCHER, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.more, self.lines, self.now, self.gaps, self.answers = threading.Condition(), [], {}, [], 0
        self.history = collections.defaultdict(list)  # of a GPU: (when, limit, clocks)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            words = line.split()
            with self.more:
                self.lines.append(line)
                if words[0] == "at":
                    knobs = (float(words[1]), float(words[5]), (words[7], words[9]))
                    self.now[int(words[3])] = knobs
                    self.history[int(words[3])].append(knobs)
                elif words[0] == "gap":
                    self.gaps.append((float(words[1]), float(words[2])))
                else:
                    self.answers += 1
                self.more.notify_all()

    def tell(self, command):
        """Has the watcher turn something; when it was done."""
        with self.more:
            wanted = self.answers + 1
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            if not self.more.wait_for(lambda: self.answers >= wanted, PATIENCE_S):
                raise AssertionError(f"the watcher does not answer '{command}'")
            answer = next(line for line in reversed(self.lines) if line.split()[0] in ("set", "refused"))
        if not answer.startswith("set"):
            raise AssertionError(f"the watcher says {answer}")
        return float(answer.split()[1])

    def standing(self):
        with self.more:
            return {gpu: (limit, clocks) for gpu, (_, limit, clocks) in self.now.items()}

    def last_s(self):
        """When a knob changed the last time."""
        with self.more:
            return max(at for at, _, _ in self.now.values())

    def lost_s(self, since):
        """For how long it did not look since then."""
        with self.more:
            return sum(gap for at, gap in self.gaps if at >= since)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        self.process.stdout.close()


class Daemon:
    def __init__(self, machine):
        self.talk, self.more, self.is_ready = machine.talk, threading.Condition(), False
        self.has_ended = False
        self.process = subprocess.Popen([FLYBALLD, f"--config={machine.config}"], env=machine.environment, stderr=subprocess.PIPE, text=True)
        self.talk.append(f"-- daemon {self.process.pid} at {time.monotonic():.6f}\n")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.talk.append(f"{time.monotonic():.6f} {line}")
            if "listening on" in line:
                self._tell("is_ready")
        self._tell("has_ended")

    def _tell(self, what):
        with self.more:
            setattr(self, what, True)
            self.more.notify_all()

    def ready(self):
        """Waits until it answers, and returns when that was; None if it has ended instead."""
        with self.more:
            if not self.more.wait_for(lambda: self.is_ready or self.has_ended, PATIENCE_S):
                raise AssertionError(f"the daemon is not ready in {PATIENCE_S} s")
            return time.monotonic() if self.is_ready else None

    def end(self):
        status = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        self.process.stderr.close()
        return status


class Machine:
    def __init__(self, directory, draw):
        self.directory, self.knobs, self.said = directory, directory / "knobs", directory / "said"
        self.config, self.socket, self.talk = directory / "flyballd.ini", directory / "s", []
        self.environment = {**os.environ, "FLYBALL_EMULATOR_STATE": str(directory / "gpus")}
        self.rule, self.gpus = draw.choice(("refuse", "lower")), draw.choice((2, 2, 3))
        for path, mode in ((directory, 0o711), (self.knobs, 0o1777), (self.said, 0o777), (directory / "state", 0o700)):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
        self.emulator("start", "--gpus", self.gpus, "--model", "a100", "--any-user=yes", "--shared=yes", "--set-ms", draw.choice((0, 1, 10)))
        self.write_config(CEILING_W)
        self.watcher = Watcher(directory / "gpus")
        for gpu in range(self.gpus):
            self.watcher.tell(f"limit {gpu} {BASE_W}")
        # A daemon that is started again finds these: (limit or None, clocks or None) that another program set, by GPU.
        self.others = {gpu: [None, None] for gpu in range(self.gpus)}
        self.allowed_w = {gpu: {BASE_W, BOARD_W} for gpu in range(self.gpus)}
        self.daemon = Daemon(self)

    def emulator(self, *arguments):
        subprocess.run([EMULATOR, *map(str, arguments)], env=self.environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write_config(self, ceiling_w):
        rules = f"[rule all]\nfloor = {FLOOR_W}\nceiling = {ceiling_w}\n"
        for user in {os.geteuid(), NOBODY}:
            rules += f"[rule user{user}]\nfor = user:{user}\nallow = control\n"
        self.config.write_text(f"[server]\nlisten = unix:{self.socket}\ngrace = 20\n[watch]\npoll = 0.05\nstate = {self.directory}/state\n"
                               f"[devices]\nnvml = {BUILD}/emulator/libnvidia-ml.so.1\namdsmi = {self.directory}/none.so\nsysfs_root = {self.directory}/root\n"
                               f"[lease]\nrule = {self.rule}\nruntime_directory = {self.knobs}\naudit = {self.directory}/audit.jsonl\npatience = 5\n"
                               f"[rights]\ncontained = yes\nreadonly = {self.directory}/readonly\n{rules}")
        self.config.chmod(0o600)

    def run_daemon(self, word):
        return subprocess.run([FLYBALLD, f"--config={self.config}", word], env=self.environment, capture_output=True, text=True, timeout=2 * PATIENCE_S,
                              check=False)

    def guards(self):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if os.path.basename(words[0]) == b"flyball-guard" and any(os.fsencode(self.knobs) in word for word in words):
                    found.append(int(path.parent.name))
        return found

    def start_again(self, as_systemd):
        """
        Until it is ready; with what systemd does between: it kills what is left, and puts back. A child of the daemon that died, on the
        way to become a guard, may still have its socket for a moment; then it ends, and is started once more.
        """
        end, ready_s = time.monotonic() + PATIENCE_S, None
        while ready_s is None:
            self.daemon.end()
            if time.monotonic() > end:
                raise AssertionError("the daemon does not start")
            if as_systemd:
                send(self.guards(), signal.SIGKILL)
                self.talk.append(f"-- restore: {self.run_daemon('restore').stderr}")
            time.sleep(0.1)
            self.daemon = Daemon(self)
            ready_s = self.daemon.ready()
        return ready_s

    def expected(self):
        return {gpu: (BASE_W if limit is None else limit, FREE if clocks is None else (clocks, "0-0")) for gpu, (limit, clocks) in self.others.items()}

    def entries(self):
        return sorted(path.name for path in self.knobs.rglob("*") if path.suffix in (".turned", ".kept", ".turned2", ".kept2", ".owed"))

    def end(self):
        send([self.daemon.process.pid] if self.daemon.process.poll() is None else [], signal.SIGKILL)
        self.daemon.end()
        send(self.guards(), signal.SIGKILL)
        self.watcher.end()
        self.emulator("stop")


def stalled_s():
    """For how long, since the machine was started, some process has waited for a processor; 0 where the kernel does not say."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        some = next(line for line in pathlib.Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines() if line.startswith("some"))
        return int(some.split("total=")[1]) * 1e-6
    return 0.0


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
