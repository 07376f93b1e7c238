# SPDX-License-Identifier: Apache-2.0
"""The Python package as a wheel: built from a copy of the sources, installed into fresh environments, and used there.

usage: python_wheel.py FLYBALL SOURCE_ROOT

It needs pip, venv and meson-python, by themselves or as Debian's python3-pip, python3-venv and python3-mesonpy.
Nothing is fetched. The environments are of every Python from 3.9 that is found; with FLYBALL_TEST_QUICK=1
of one, and the wheel is compiled without optimisation.
"""

import base64
import csv
import email
import glob
import hashlib
import io
import os
import pathlib
import re
import shutil
import sys
import tempfile
import zipfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
BUILD = FLYBALL.parent
EMULATOR = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", BUILD / "emulator")).resolve()
WORK = tempfile.TemporaryDirectory(prefix="flyball-wheel-")
BOX = pathlib.Path(WORK.name)
VERSION = tap.run([FLYBALL, "--version"]).stdout.split()[1]
LONG_S = 1800  # for what compiles or runs pip; only what hangs takes longer
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "CUDA_", "XDG_", "PYTHON", "MESON", "LD_", "PIP_"))}
CLEAN.update(HOME=WORK.name, TMPDIR=WORK.name, XDG_RUNTIME_DIR=WORK.name, FLYBALL_EMULATOR_STATE=str(BOX / "gpus"), PIP_DISABLE_PIP_VERSION_CHECK="1",
             FLYBALL_RUNTIME_DIR=str(BOX / "run"), PIP_NO_INDEX="1", PIP_NO_CACHE_DIR="1", NO_COLOR="1")
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"
if QUICK:
    CLEAN["CFLAGS"] = "-O0"
made = []  # the wheel, once it is built


def is_able(python, modules):
    return tap.run([python, "-c", f"import {modules}"], env=CLEAN).returncode == 0


def builder():
    """A Python that can build wheels."""
    for python in dict.fromkeys(("/usr/bin/python3", sys.executable)):
        headers = "import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
        if os.path.exists(python) and is_able(python, "mesonpy, pip") and tap.run([python, "-c", headers]).returncode == 0:
            return python
    raise tap.Skip("no Python here has pip, meson-python and headers (Debian: python3-pip, python3-mesonpy, python3-dev)")


def pythons():
    """One Python of each version that can make an environment, from 3.9 on."""
    found = {}
    home = os.environ.get("PYENV_ROOT", os.path.join(os.environ.get("HOME", "/"), ".pyenv"))
    named = [path for minor in range(9, 30) if (path := shutil.which(f"python3.{minor}"))]
    for python in ("/usr/bin/python3", sys.executable, *sorted(glob.glob(f"{home}/versions/3.*/bin/python3")), *named):
        done = tap.run([python, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"], env=CLEAN) if os.path.exists(python) else None
        if done is not None and done.returncode == 0 and (version := tuple(map(int, done.stdout.split()))) >= (3, 9):
            found.setdefault(version, python)
    return dict(list(found.items())[:1]) if QUICK else found


def wheel():
    """Builds the wheel where no test has yet, from a copy: builders write beside what they build."""
    if not made:
        python = builder()
        leave = shutil.ignore_patterns("build*", ".git", "__pycache__", ".mesonpy*", "*.whl")
        shutil.copytree(ROOT, BOX / "source", ignore=leave, symlinks=True)
        done = tap.run([python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", BOX / "out", BOX / "source"],
                       env=CLEAN, timeout=LONG_S, cwd=WORK.name)
        tap.equal(done.returncode, 0, done.stdout + done.stderr)
        made.extend((BOX / "out").iterdir())
    return made[0]


def content():
    with zipfile.ZipFile(wheel()) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def binaries(files):
    return {name: data for name, data in files.items() if data[:4] == b"\x7fELF"}


def test_holds_what_the_package_needs():
    files = content()
    for name in ("_flyball.abi3.so", "__init__.py", "_flyball.pyi", "py.typed", "_programs/flyball-guard", "_programs/libflyball.so.0.2",
                 "_programs/licences.txt"):
        tap.equal(f"flyball/{name}" in files, True, name)
    sources = {path.relative_to(ROOT / "python").as_posix() for path in (ROOT / "python" / "flyball").rglob("*.py*") if path.suffix in (".py", ".pyi")}
    tap.equal(sorted(sources - set(files)), [], "of the package")
    hook = ROOT / "python" / "hook"
    missing = [path.relative_to(hook).as_posix() for path in hook.rglob("*.py")
               if f"flyball/_programs/python/{path.relative_to(hook).as_posix()}" not in files]
    tap.equal(missing, [], "of the start-up hook")
    tap.equal(sorted(name for name in files if not name.startswith(("flyball/", f"flyball-{VERSION}.dist-info/"))), [])


def test_says_what_it_is():
    files, name = content(), wheel().name
    found = re.fullmatch(r"flyball-([0-9.]+)-cp39-abi3-((?:manylinux_\d+_\d+|linux)_\w+)\.whl", name)
    tap.equal(found is not None and found[1], VERSION, name)
    about = email.message_from_bytes(files[f"flyball-{VERSION}.dist-info/METADATA"])
    tap.equal((about["Name"], about["Version"], about["Requires-Python"]), ("flyball", VERSION, ">=3.9"))
    tap.equal(about.get_all("Requires-Dist"), None)
    tap.contains(files[f"flyball-{VERSION}.dist-info/WHEEL"].decode(), f"Tag: cp39-abi3-{found[2]}\n")
    for path, digest, length in csv.reader(io.StringIO(files[f"flyball-{VERSION}.dist-info/RECORD"].decode())):
        if not path.endswith("/RECORD"):
            real = base64.urlsafe_b64encode(hashlib.sha256(files[path]).digest()).rstrip(b"=").decode()
            tap.equal((digest, int(length)), (f"sha256={real}", len(files[path])), path)


def test_needs_no_more_than_its_name_says():
    """By objdump, which is not what chose the name."""
    if shutil.which("objdump") is None:
        raise tap.Skip("there is no objdump (Debian: binutils)")
    allowed = re.search(r"manylinux_(\d+)_(\d+)_", wheel().name)
    if allowed is None:
        raise tap.Skip("this system has no static libraries of SQLite and Jansson, so the wheel is for it alone")
    newest = (0, 0)
    for name, data in binaries(content()).items():
        (BOX / "binary").write_bytes(data)
        told = tap.run(["objdump", "-p", BOX / "binary"]).stdout
        needed = set(re.findall(r"NEEDED\s+(\S+)", told))
        tap.equal(sorted(needed - {"libc.so.6", "libm.so.6", "libflyball.so.0.2", "ld-linux-x86-64.so.2"}), [], name)
        newest = max(newest, *(tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", told)))
        paths = re.findall(r"(?:RUNPATH|RPATH)\s+(\S+)", told)
        tap.equal(paths, ["$ORIGIN/_programs"] if name.endswith("_flyball.abi3.so") else [], name)
    tap.equal(newest, (int(allowed[1]), int(allowed[2])))


def test_knows_no_path_of_its_build():
    for name, data in content().items():
        for path in (WORK.name, str(ROOT), str(BUILD), os.path.expanduser("~") + "/"):
            tap.equal(path.encode() in data and path not in ("/", "//"), False, f"'{path}' in {name}")


USE = """
import glob, os, sys, time, flyball
library, guard, prefix = sys.argv[1:]

def is_guard(path):
    try:
        return os.readlink(path) == guard
    except OSError:
        return False

print(flyball.__version__)
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print([path[len(prefix):].split("/")[-1] for path in mapped if "libflyball" in path and path.startswith(prefix)])
print([path for path in mapped if "jansson" in path or "sqlite" in path])
print(flyball.jobs()["job"])
with flyball.Monitor(nvml_path=library, amdsmi_path="/none") as monitor:
    with monitor.window("epoch") as window:
        time.sleep(0.5)
    print([device.source for device in window.measurement.devices if device.device.kind == "GPU"])
    quick = {"objective": "lowest-limit", "max_slowdown": "none", "limits_w": [400, 200], "warmup_steps": 1, "profile_steps": 5}
    with flyball.Tuner(monitor, quiet=True, **quick) as tuner:
        while tuner.state not in ("settled", "stopped"):
            tuner.step_begin()
            time.sleep(0.0005)
        print(tuner.report.state, len(tuner.points), sum(map(is_guard, glob.glob("/proc/[0-9]*/exe"))))
"""


def environment(version, python):
    """A fresh environment with the wheel in it; made once for each version."""
    place = BOX / ("environment-%d.%d" % version)
    if place.exists():
        return place
    done = tap.run([python, "-m", "venv", place], env=CLEAN, timeout=LONG_S)
    tap.equal(done.returncode, 0, done.stderr)
    done = tap.run([place / "bin" / "python", "-m", "pip", "install", "--no-deps", wheel()], env=CLEAN, timeout=LONG_S)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    return place


def test_works_in_fresh_environments():
    (BOX / "run").mkdir(mode=0o700, exist_ok=True)
    tried = []
    for version, python in pythons().items():
        place = environment(version, python)
        package = next(place.glob("lib/python*/site-packages/flyball"))
        command = [EMULATOR / "flyball-emulator", "run", "--gpus", "1", "--ideal", "--counter-period-ms", "0", "--settle-ms", "0.001", "--load-w", "390",
                   "--any-user", "--", place / "bin" / "python", "-c",
                   USE, EMULATOR / "libnvidia-ml.so.1", package / "_programs" / "flyball-guard", place]
        done = tap.run(command, env=CLEAN, cwd=WORK.name, timeout=LONG_S)
        tap.equal((done.stdout.splitlines(), done.stderr, done.returncode),
                  ([VERSION, "['libflyball.so.0.2']", "[]", "[]", "['counter']", "settled 2 1"], "", 0), python)
        tried.append(version)
    tap.equal(len(tried) > 0, True, "no Python can make an environment")


def test_another_version_is_refused():
    compiler = shutil.which("cc")
    if compiler is None:
        raise tap.Skip("there is no C compiler")
    stub = BOX / "other.so"
    (BOX / "other.c").write_text('const char *fly_version(void);\nconst char *fly_version(void) { return "9.9.9"; }\n')
    tap.equal(tap.run([compiler, "-shared", "-fPIC", "-o", stub, BOX / "other.c"]).returncode, 0)
    place = environment(*next(iter(pythons().items())))
    done = tap.run([place / "bin" / "python", "-c", "import flyball"], env={**CLEAN, "LD_PRELOAD": str(stub)})
    tap.equal(done.returncode, 1)
    tap.contains(done.stderr, f"ImportError: the package flyball {VERSION} found libflyball 9.9.9; install both from one version")


tap.main(globals())
