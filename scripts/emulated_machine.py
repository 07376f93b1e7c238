# SPDX-License-Identifier: Apache-2.0
"""Emulated GPUs in a temporary directory for the programs of a long show, which end with it.

    with emulated_machine.machine("flyball-show", gpus=4) as one:
        process = one.start(program, argument, VARIABLE="value")
        print(one.call(program, argument))

BUILD_DIR names the build directory (default build).
"""

import contextlib
import os
import pathlib
import queue
import signal
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD_DIR", "build")
FLYBALL, EMULATOR = BUILD / "flyball", BUILD / "emulator" / "flyball-emulator"
PATIENCE_S = 60


class Failed(Exception):
    """With what went wrong, for people."""


class Machine:
    """Emulated GPUs in a directory, and every process that was started, in a session of its own."""

    def __init__(self, home, gpus, variables):
        self.home = pathlib.Path(home)
        self.lock = threading.Lock()
        self.processes, self.closing = [], False
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("FLYBALL_", "XDG_", "SLURM", "PBS_", "CUDA_", "LC_", "LANG"))}
        (self.home / "knobs").mkdir(mode=0o700)
        self.environment = {**clean, "HOME": home, "TMPDIR": home, "XDG_RUNTIME_DIR": home, "XDG_STATE_HOME": str(self.home / "state"),
                            "FLYBALL_RUNTIME_DIR": str(self.home / "knobs"), "FLYBALL_EMULATOR_STATE": str(self.home / "gpus"),
                            "FLYBALL_GUARD": str(BUILD / "flyball-guard"), "LD_LIBRARY_PATH": str(BUILD / "emulator"),
                            **variables}
        self.call(EMULATOR, "start", "--gpus", gpus, "--model", "v100", "--any-user=yes")

    def start(self, *command, **variables):
        with self.lock:
            if self.closing:
                raise Failed("it ends")
            process = subprocess.Popen(list(map(str, command)), env={**self.environment, **variables}, cwd=self.home, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            self.processes.append(process)
        return process

    def call(self, *command, **variables):
        """What a program prints, which has to end well."""
        process = self.start(*command, **variables)
        output, _ = process.communicate()
        if process.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))}: exit status {process.returncode}\n{output}")
        return output

    def guards(self):
        """Those that turn limits back are not children; they end by themselves soon after whom they guard."""
        mark = f"FLYBALL_RUNTIME_DIR={self.home}/knobs".encode()
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    yield int(path.parent.name)

    def close(self):
        with self.lock:
            self.closing = True
        for wanted in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes:
                if process.poll() is None:
                    process.send_signal(wanted)
            end = time.monotonic() + PATIENCE_S / 4
            while any(process.poll() is None for process in self.processes) and time.monotonic() < end:
                time.sleep(0.02)
        end = time.monotonic() + PATIENCE_S / 4
        while any(self.guards()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in self.guards():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run([EMULATOR, "stop"], env=self.environment, stdout=subprocess.DEVNULL, check=False)


@contextlib.contextmanager
def machine(name, gpus, **variables):
    """V100s for the length of a with statement; the variables are for all that starts there."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-{os.getpid()}-", dir="/tmp") as home:
        one = Machine(home, gpus, variables)
        try:
            yield one
        finally:
            one.close()


def serve(one, store):
    """Starts a service in front of a store; returns its address."""
    process = one.start(FLYBALL, "serve", "--listen", "127.0.0.1:0", FLYBALL_STORE=store)
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        raise Failed(f"flyball serve did not start: {line}{process.stdout.read()}")
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return line.removeprefix("listening on ").strip()


def at_once(count, workers, work):
    """Calls work(number, worker) for the numbers 1 .. count, so many at a time; raises the first failure."""
    numbers, failures = queue.SimpleQueue(), []
    for number in range(1, count + 1):
        numbers.put(number)

    def take(worker):
        while not failures:
            try:
                work(numbers.get_nowait(), worker)
            except queue.Empty:
                return
            except Exception as error:  # whatever it is, the others have to end too
                failures.append(error)

    threads = [threading.Thread(target=take, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def say(text):
    print(text, flush=True)


SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def _interrupt(number, _frame):
    for ignored in SIGNALS:  # once is enough: what follows cleans up
        signal.signal(ignored, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def show(name, play):
    """Plays, and returns the exit status: 1 after a failure, 128 and the signal's number when interrupted."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    try:
        play()
    except KeyboardInterrupt as error:
        say(f"{name}: interrupted; nothing is left")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    except Failed as error:
        say(f"{name}: {error}")
        return 1
    return 0
