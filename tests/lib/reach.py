# SPDX-License-Identifier: Apache-2.0
"""Programs of the build where every user may run them: a checkout may lie in a home that is root's alone."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

NOBODY = 65534
_copies = None


def _is_open(path):
    """Whether others may reach and run a file."""
    path = pathlib.Path(path).resolve()
    return bool(path.stat().st_mode & 0o005 == 0o005) and all(parent.stat().st_mode & 0o001 for parent in path.parents)


def _runs(path):
    """Whatever it says of itself, it was started and found its libraries."""
    try:
        return subprocess.run([path, "version"], check=False, capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[],
                              cwd="/").returncode not in (126, 127)
    except OSError:
        return False


def _copy_to():
    global _copies
    if _copies is None:
        _copies = tempfile.TemporaryDirectory(prefix="flyball-reach-")
        os.chmod(_copies.name, 0o755)
        pathlib.Path(_copies.name, "emulator").mkdir()
    return pathlib.Path(_copies.name)


def program(path):
    """The program, or for root a copy of it, of its guard and of its hook for Python that other users may run."""
    path = os.path.abspath(path)
    if os.geteuid() != 0 or not os.path.exists(path) or _is_open(path):
        return path
    for name in (path, os.path.join(os.path.dirname(path), "flyball-guard")):
        if os.path.exists(name):
            shutil.copy(name, _copy_to())
    hook = pathlib.Path(path).parent / "python" / "hook"
    if hook.is_dir():
        shutil.copytree(hook, _copy_to() / "python" / "hook", dirs_exist_ok=True)
    copy = _copy_to() / os.path.basename(path)
    return str(copy) if _runs(copy) else path


def libraries(directory):
    """The same of the directory with the emulator and its driver libraries."""
    directory = pathlib.Path(directory)
    files = [path for path in directory.glob("*") if path.is_file() and (".so" in path.name or path.name in ("flyball-emulator", "nvidia-smi"))]
    if os.geteuid() != 0 or not files or all(_is_open(path) for path in files):
        return directory
    for path in files:
        shutil.copy(path, _copy_to() / "emulator")
    return _copy_to() / "emulator"


def package(directory):
    """The same of the directory with the Python package, and of the library that it finds two directories above itself."""
    directory = pathlib.Path(directory)
    if os.geteuid() != 0 or not (directory / "flyball").is_dir() or _is_open(directory):
        return directory
    shutil.copytree(directory / "flyball", _copy_to() / "python" / "flyball", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.p"))
    for library in directory.parent.glob("libflyball.so*"):
        if library.is_file():
            shutil.copy(library, _copy_to())
    return _copy_to() / "python"


@contextlib.contextmanager
def runtime_of(directory, uid):
    """XDG_RUNTIME_DIR, for a while another user's."""
    directory = pathlib.Path(directory)
    if os.geteuid() != 0:
        yield
        return
    shutil.rmtree(directory)
    directory.mkdir(mode=0o700)
    os.chown(directory, uid, uid)
    try:
        yield
    finally:
        shutil.rmtree(directory)
        directory.mkdir(mode=0o700)
