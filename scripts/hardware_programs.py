# SPDX-License-Identifier: Apache-2.0
"""The programs that verify_gpu runs: each in a process group of its own, for a bounded time."""
import getpass
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

# What ends a group in the end, and how long it is waited for after each.
ENDINGS = ((signal.SIGINT, 8), (signal.SIGTERM, 3), (signal.SIGKILL, 3))
TEXT_MAX = 600
LOOK_S = 20


class Failed(Exception):
    """A stage has no figures; the text says why."""


class Interrupted(Exception):
    """Ctrl-C, or a signal that asks to end."""


def _interrupt(number, frame):
    raise Interrupted


def own_names():
    """What names this machine or its user."""
    names = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    try:
        names.add(getpass.getuser())
    except (KeyError, OSError):
        pass
    return {name for name in names if len(name) > 2 and name not in ("root", "localhost")}


class Programs:
    """Flyball, and the two programs of verify/."""

    def __init__(self, build, work, given):
        """`given`: the options gpu, nvml, cuda and libraries of verify_gpu."""
        self.build, self.work, self.gpu = build, work, given.gpu
        self.nvml, self.cuda = (path and pathlib.Path(path).resolve() for path in (given.nvml, given.cuda))
        places = [given.libraries and str(given.libraries.resolve()), os.environ.get("LD_LIBRARY_PATH")]
        self.deadline = None
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, places))}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)

    def end_within(self, seconds):
        """From now on no program gets more time than is left, but a last one enough to look."""
        self.deadline = time.monotonic() + seconds

    def left_s(self):
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    def clean(self, text):
        """Text of a program without what names a machine, a user or a card."""
        text = re.sub(r"\b(GPU|MIG)-[0-9a-f-]{8,}", "UUID", " ".join(text.split()))
        text = re.sub(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]\b", "PCI", text)
        text = re.sub(r"(?<![\w.])/[\w./+-]+", lambda path: "PATH/" + pathlib.PurePath(path[0]).name, text)
        for name in own_names():
            text = re.sub(rf"\b{re.escape(name)}\b", "NAME", text)
        return text[:TEXT_MAX]

    def clean_all(self, found):
        """Figures with all texts in them cleaned."""
        if isinstance(found, dict):
            return {key: self.clean_all(value) for key, value in found.items()}
        if isinstance(found, list):
            return [self.clean_all(value) for value in found]
        return self.clean(found) if isinstance(found, str) else found

    def flyball(self, *words):
        return [self.build / "flyball", *words]

    def with_driver(self, *words):
        """A command of Flyball's that opens devices."""
        end = words.index("--") if "--" in words else len(words)
        return self.flyball(*words[:end], *(["--nvml", self.nvml] if self.nvml else []), *words[end:])

    def own(self, name, *words):
        """A program of verify/ on the chosen GPU."""
        libraries = ["--nvml", self.nvml] if self.nvml else []
        if self.cuda and name == "verify_train":
            libraries += ["--cuda", self.cuda]
        return [self.build / "verify" / name, "--gpu", str(self.gpu), *libraries, *words]

    def start(self, command, output=subprocess.PIPE, **variables):
        """Starts a program; end() ends all that it started."""
        try:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                                       env={**self.environment, **variables}, cwd=self.work)
        except OSError as reason:
            raise Failed(f"{pathlib.Path(command[0]).name} does not start: {reason.strerror}") from reason
        return process

    def end(self, process):
        """Ends a program, first gently; leaves behind one that a driver holds."""
        for number, patience_s in ENDINGS:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, number)
                    process.communicate(timeout=patience_s)
                except (ProcessLookupError, subprocess.TimeoutExpired, ValueError):
                    pass

    def finish(self, process, timeout_s, also=0):
        """Standard output of a program that ended within the time, and well, or with the status `also`."""
        name = pathlib.Path(process.args[0]).name
        timeout_s = min(timeout_s, max(LOOK_S, self.left_s()))
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{name} did not end within {timeout_s:.0f} s") from late
        finally:
            self.end(process)
        if process.returncode not in (0, also):
            words = err.strip() or f"it ended with status {process.returncode}"
            raise Failed(f"{name}: {words.removeprefix(f'{name}: ')}")
        return out

    def run(self, command, timeout_s=60, **variables):
        return self.finish(self.start(command, **variables), timeout_s)

    def json(self, command, timeout_s=60, also=0):
        text = self.finish(self.start(command), timeout_s, also)
        try:
            return json.loads(text)
        except ValueError as reason:
            raise Failed(f"{pathlib.Path(command[0]).name} printed no JSON") from reason

    def version(self):
        try:
            return self.run(self.flyball("--version")).strip().splitlines()[0]
        except (Failed, IndexError):
            return "flyball"

    def load(self, seconds, *words):
        """A training beside what the caller does."""
        return Load(self, seconds, words)


class Load:
    """A training in the background."""

    START_S = 30  # for the driver to compile the kernels

    def __init__(self, programs, seconds, words):
        self.programs, self.process = programs, None
        self.begun = programs.work / "load.units"
        self.command = programs.own("verify_train", "--seconds", str(seconds), "--steps-file", self.begun, *words)

    def start(self):
        """Returns when it works, or why it does not."""
        self.begun.unlink(missing_ok=True)
        try:
            self.process = self.programs.start(self.command)
            end = time.monotonic() + self.START_S
            while self.process.poll() is None and time.monotonic() < end:
                if self.begun.exists():
                    time.sleep(1)
                    return None
                time.sleep(0.05)
            self.programs.finish(self.process, 1)
        except Failed as reason:
            return str(reason)
        return "the training ended at once"

    def end(self):
        if self.process is not None:
            self.programs.end(self.process)
