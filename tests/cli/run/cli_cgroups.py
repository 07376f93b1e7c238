# SPDX-License-Identifier: Apache-2.0
"""A control group that is killed with all that is in it: the guard has left it, and turns back.

usage: cli_cgroups.py FLYBALL SOURCE_ROOT
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import tap
from power_machine import CLEAN, DEFAULT_W, HOME, SLEEPER, back_within, command, entries, gone, guard_of, limits, machine, wait_for

GROUP = f"flyball-test-{os.getpid()}"


def hierarchies():
    """The mounted ones that this process may make groups in: (mount point, whether it is v2, the group that we are in)."""
    mounts = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        kind = right.split()[0]
        if kind in ("cgroup", "cgroup2") and os.access(left.split()[4], os.W_OK):
            mounts.append((pathlib.Path(left.split()[4]), kind == "cgroup2", right.split()[2].split(",")))
    return mounts


@contextlib.contextmanager
def group(point, below=""):
    """A group that is emptied at the end, and the group below it."""
    path = point / GROUP
    try:
        path.mkdir()
        inner = path / below
        inner.mkdir(exist_ok=True)
    except OSError as error:
        raise tap.Skip(f"no group can be made in {point}: {error}") from error
    try:
        yield inner
    finally:
        # The test's own shell has left it, or died.
        for directory in {inner, path} if inner != path else {path}:
            kill_all(directory, False)
        for directory in ([inner] if inner != path else []) + [path]:
            wait_for(lambda directory=directory: not (directory / "cgroup.procs").read_text(), "the group is empty")
            directory.rmdir()


def kill_all(path, is_v2):
    """As cgroup.kill does; in v1 as a scheduler does, by the freezer where this is one."""
    if is_v2 and (path / "cgroup.kill").exists():
        (path / "cgroup.kill").write_text("1")
        return
    freezer = path / "freezer.state"
    if freezer.exists():
        freezer.write_text("FROZEN")
    pids = [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    if freezer.exists():
        freezer.write_text("THAWED")


def kill_and_look(path, is_v2, **keywords):
    words = command("set", 150, "--", *SLEEPER)
    with tap.Program(["sh", "-c", f"echo $$ >'{path}/cgroup.procs' && exec \"$@\"", "sh", *words], env=CLEAN, cwd=HOME,
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **keywords) as process:
        program = int(process.stdout.readline())
        tap.equal(limits(), [150])
        guard = guard_of(process)
        inside = [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
        tap.equal((program in inside, process.pid in inside, guard in inside), (True, True, False), path)
        begin = time.monotonic()
        kill_all(path, is_v2)
        process.wait()
        wait_for(lambda: gone(program), "the program is dead")
        back_within([DEFAULT_W], "the guard has turned back")
        wait_for(lambda: entries() == [], "the journal is empty")
        print(f"# {path.parent.name}: back {time.monotonic() - begin:.2f} s after the group was killed")


def test_a_killed_group():
    mounts = [(point, is_v2) for point, is_v2, options in hierarchies()
              if is_v2 or {"freezer", "memory", "name=systemd"} & set(options)]
    if os.geteuid() != 0 or not mounts:
        raise tap.Skip("control groups cannot be written to here")
    for point, is_v2 in mounts:
        with machine(gpus=1), group(point) as path:
            kill_and_look(path, is_v2)


def test_spared_out_of_memory():
    """The kernel passes over the guard, where root may ask it to."""
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text(pathlib.Path("/proc/self/oom_score_adj").read_text())
        probe = subprocess.run(["sh", "-c", "echo -1000 >/proc/self/oom_score_adj"], check=False, capture_output=True)
    except OSError as error:
        raise tap.Skip(f"no such file here: {error}") from error
    if probe.returncode != 0:
        raise tap.Skip("this process may not ask to be spared")
    with machine(gpus=1), tap.Program(command("set", 150, "--", *SLEEPER), env=CLEAN, cwd=HOME, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True) as process:
        program = int(process.stdout.readline())
        scores = [pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in (guard_of(process), program, process.pid)]
        tap.equal(scores[0], "-1000")
        tap.equal("-1000" in scores[1:], False, "the training is not spared")
        process.terminate()
        process.wait()


def test_a_delegated_part():
    """A user leaves his job's group for the top of what is his."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    mounts = [point for point, is_v2, _ in hierarchies() if is_v2]
    if os.geteuid() != 0 or not mounts:
        raise tap.Skip("control groups cannot be written to here")
    HOME.chmod(0o755)
    with machine(gpus=1), group(mounts[0], "job") as path:
        for directory in (path.parent, path):
            for name in (directory, directory / "cgroup.procs", directory / "cgroup.subtree_control"):
                os.chown(name, 65534, 65534)
        # The move into a user's part is root's.
        home = next(line.split("::")[1] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        (path.parent / "cgroup.procs").write_text(str(os.getpid()))
        try:
            kill_and_look(path, True, **nobody)
        except PermissionError as error:
            raise tap.Skip("another user cannot reach the build") from error
        finally:
            (mounts[0] / home.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))


tap.main(globals())
