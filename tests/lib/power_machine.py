# SPDX-License-Identifier: Apache-2.0
"""Emulated GPUs whose limits `flyball power` sets, for the tests of that: sys.argv[1] is the program."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import reach
import tap

BUILT = os.path.abspath(sys.argv[1])
FLYBALL = reach.program(BUILT)
LIBRARIES = reach.libraries(os.environ.get("FLYBALL_TEST_EMULATOR", os.path.join(os.path.dirname(BUILT), "emulator")))
DRIVER = LIBRARIES / "libnvidia-ml.so.1"
EMULATOR = LIBRARIES / "flyball-emulator"
WORK = tempfile.TemporaryDirectory(prefix="flyball-power-")
HOME = pathlib.Path(WORK.name)
KNOBS = HOME / "knobs"
NO_MORE = HOME / "no-more"
RUNTIME = HOME / "runtime"  # where processes that measure say so to each other
RUNTIME.mkdir(mode=0o700)
NOBODY = reach.NOBODY

CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("FLYBALL_", "ZEUSD_", "XDG_", "SLURM", "CUDA_", "LC_", "LANG"))
}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(RUNTIME), FLYBALL_RUNTIME_DIR=str(KNOBS), FLYBALL_EMULATOR_STATE=str(HOME / "state"))
WHERE = ["--nvml", str(DRIVER), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME / "root")]
# An A100: its default and highest limit, and its lowest.
DEFAULT_W, LOWEST_W = 400, 100
SANITIZED = any(mark in pathlib.Path(FLYBALL).read_bytes() for mark in (b"__asan_init", b"__tsan_init"))


def emulator(*arguments):
    result = subprocess.run([EMULATOR, *map(str, arguments)], env=CLEAN, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 0, result.stderr)
    return result.stdout


def limits():
    return [gpu["limit_w"] for gpu in json.loads(emulator("show", "--json"))["gpus"]]


@contextlib.contextmanager
def machine(*settings, gpus=2, model="a100"):
    """Emulated GPUs, and a journal that is empty before and afterwards."""
    if not (DRIVER.exists() and EMULATOR.exists()):
        raise tap.Skip("the emulator is not built")
    KNOBS.mkdir(exist_ok=True)
    KNOBS.chmod(0o1777)
    emulator("start", "--gpus", gpus, "--model", model, "--any-user=yes", "--shared=yes", *settings)
    try:
        yield
        tap.equal(entries(), [], "the journal afterwards")
    finally:
        emulator("stop")
        for path in KNOBS.iterdir():
            path.unlink()


def entries():
    """The kinds of the journal's entries; a write that was cut short left a file that is none."""
    return sorted(path.suffix[1:] for path in KNOBS.iterdir() if path.suffix in (".turned", ".kept", ".turned2", ".kept2", ".owed"))


def command(*arguments):
    """flyball power with the emulated GPUs alone; options stand before a program."""
    words = [str(argument) for argument in arguments]
    end = words.index("--") if "--" in words else len(words)
    return [FLYBALL, "power", *words[:end], *WHERE, *words[end:]]


def power(*arguments, environment=None, **keywords):
    return subprocess.run(command(*arguments), env={**CLEAN, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                          timeout=tap.PATIENCE_S, check=False, **keywords)


def start(*arguments, **keywords):
    return subprocess.Popen(command(*arguments), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **keywords)


def rows_of(result):
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def as_other_user():
    """Keywords that let root start a program as a user to whom the driver lets nothing be set; that user may then write to HOME."""
    if os.geteuid() != 0:
        return {}
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    HOME.chmod(0o777)
    if not os.access(FLYBALL, os.X_OK) or subprocess.run([FLYBALL, "version"], capture_output=True, check=False, **user).returncode:
        raise tap.Skip("another user cannot run the program from here")
    return user


def wait_for(condition, what, seconds=tap.PATIENCE_S):
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {seconds} s until {what}; limits {limits()}, journal {entries()}")


def back_within(expected, what):
    """How soon is the machine's; scripts/soak measures that."""
    return wait_for(lambda: limits() == expected, what)


def pid_namespace():
    """Words before a command that run it in a pid namespace of its own, as a container does."""
    around = ["unshare", "--pid", "--fork", "--mount-proc"]
    if shutil.which("unshare") is None or subprocess.run([*around, "true"], capture_output=True, check=False).returncode != 0:
        raise tap.Skip("no pid namespace may be made here")
    return around


@contextlib.contextmanager
def neighbour(gpu=0):
    """A training on the GPU, which a pid namespace does not show."""
    command = [EMULATOR, "train", "--gpu", str(gpu), "--steps", "1000000"]
    with tap.Program(command, env=CLEAN, cwd=HOME, stdout=subprocess.DEVNULL) as other:
        try:
            wait_for(lambda: json.loads(emulator("show", "--json"))["gpus"][gpu]["processes"], "the other is at work")
            yield
        finally:
            other.terminate()


UNSEEN = "by no process that is seen here"
SCATTERED = 0.005  # relative error of a step's time, which on emulated GPUs has no scatter of its own
HELD_UP = 20  # pauses of the training that no test makes


def until_settled(tune, steps, tries=4):
    """What `tune(steps)` gives, a result and a report; a search that has not settled gets twice the steps, as a busy machine needs."""
    for _ in range(tries):
        result, report = tune(steps)
        if report["state"] == "settled":
            return result, report
        steps *= 2
    if report["pauses"] > HELD_UP:
        raise tap.Skip(f"the machine held the training up {report['pauses']} times: too busy to find out what steps take")
    scatter = max((point["step_time_standard_error_s"] / point["step_time_s"] for point in report["points"] if point["step_time_s"]), default=0)
    if scatter > SCATTERED:
        raise tap.Skip(f"steps that are all alike are known to {scatter:.1%} alone: the machine is too busy to find out what they take")
    raise AssertionError(f"still {report['state']} after {steps // 2} steps: {report}\n{result.stderr}")


def again_and_again(program):
    """A command that runs a program until `no_more`."""
    NO_MORE.unlink(missing_ok=True)
    return ["sh", "-c", 'until [ -e "$0" ]; do "$@" || exit; done', str(NO_MORE), *program]


def no_more():
    NO_MORE.touch()


def guard_of(process):
    """The guard names its session among its arguments; it is nobody's child."""
    guards = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if os.path.basename(words[0]) == "flyball-guard" and str(process.pid) in words[1:4] and str(KNOBS) in words:
                guards.append(int(path.parent.name))
    tap.equal(len(guards), 1, f"guards of process {process.pid}")
    return guards[0]


def ended(process):
    output, talk = process.communicate(timeout=tap.PATIENCE_S)
    return process.returncode, output, talk


def gone(pid):
    """Ended; a zombie that nobody has asked after counts."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def kill_program(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def sweep_steps(process):
    """A killed `run` leaves the file of its program's steps until the next one."""
    for path in pathlib.Path("/dev/shm").glob(f"flyball-steps-{process.pid}-*"):
        path.unlink()


# A program that says when it runs and, as a test asks for it, for long.
SLEEPER = ["sh", "-c", "echo $$; exec sleep 30"]


def kill_both(process):
    guard = guard_of(process)
    # Stopped first, so that neither sees the other's end.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (guard, process.pid):
            os.kill(pid, number)
    process.wait()
    wait_for(lambda: gone(guard), "the guard has ended")


@contextlib.contextmanager
def left_behind(limit_w, gpus=2, others=0):
    """All GPUs at a limit that nobody lives to turn back; so many entries were there before."""
    process = start("set", limit_w, "--", *SLEEPER)
    program = int(process.stdout.readline())
    kill_both(process)
    kill_program(program)
    process.stdout.close()
    process.stderr.close()
    tap.equal((limits(), entries()), ([limit_w] * gpus, ["turned"] * (gpus + others)))
    yield
