# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of the emulator, on four emulated GPUs: nvtop, pynvml, gpustat, hwloc.

usage: emulator_clients.py FLYBALL ROOT

They come from Debian's `contrib`, into a directory of this test's own: apt's own lists
and the machine's packages stay as they are. What cannot be had is skipped.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
EMULATOR = FLYBALL.parent / "emulator" / "flyball-emulator"
SANITIZED = bool(tap.sanitizers(FLYBALL))
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGES = {
    "nvtop": ["nvtop", "libncursesw6", "libtinfo6", "libsystemd0"],
    "pynvml": ["python3-pynvml"],
    "gpustat": ["gpustat", "python3-pynvml", "python3-blessed", "python3-psutil", "python3-six", "python3-wcwidth",
                "python3-pkg-resources"],
    "hwloc": ["libhwloc-contrib-plugins", "hwloc-nox", "libhwloc15", "libltdl7", "libnuma1"],
}
SCRATCH = tempfile.TemporaryDirectory()
ROOT = pathlib.Path(SCRATCH.name) / "root"
os.environ.pop("FLYBALL_EMULATOR", None)
os.environ["XDG_RUNTIME_DIR"] = SCRATCH.name


def debian():
    """Where this machine has Debian's main from, as "URI SUITE"; empty where it has not."""
    codename = re.search(r'^VERSION_CODENAME="?(\w+)', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    targets = tap.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages",
                       "Component: main", "Origin: Debian"]).stdout.splitlines()
    return next((target for target in targets if codename and target.endswith(f" {codename[1]}")), "")


def quiet(command, seconds, **options):
    """Whether the command succeeded in time."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds,
                              check=False, **options).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def apt_options(directory):
    return ["-o", f"Dir::Etc::sourcelist={directory}/sources.list", "-o", "Dir::Etc::sourceparts=-",
            "-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Cache={directory}/cache",
            "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "APT::Sandbox::User=",
            "-o", "Acquire::Languages=none", "-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=0",
            "-o", "Acquire::http::Timeout=10", "-qq"]


def fetch():
    """Downloads all packages and unpacks them under ROOT; the reason why not, or None."""
    if SANITIZED:
        return "other programs cannot load a library that is built with a sanitizer"
    if not all(map(os.path.exists, ("/usr/bin/apt-get", "/usr/bin/dpkg-deb", "/usr/bin/python3", KEYRING))):
        return "this is no Debian with Python"
    if not debian():
        return "apt has no lists of Debian's packages; run 'apt-get update' once"
    directory = pathlib.Path(SCRATCH.name)
    (directory / "lists" / "partial").mkdir(parents=True)
    (directory / "cache" / "archives" / "partial").mkdir(parents=True)
    (directory / "debs").mkdir()
    (directory / "sources.list").write_text(
        f"deb [signed-by={KEYRING}] {debian()} main contrib\n", encoding="utf-8")
    if not quiet(["apt-get", *apt_options(directory), "update"], 60):
        return "Debian's contrib cannot be reached"
    for packages in PACKAGES.values():
        quiet(["apt-get", *apt_options(directory), "download", *packages], 60, cwd=directory / "debs")
    for package in (directory / "debs").glob("*.deb"):
        quiet(["dpkg-deb", "-x", str(package), str(ROOT)], 30)
    return None


FETCHED = []


def need(path):
    """The path under ROOT; skips where it could not be had."""
    if not FETCHED:
        FETCHED.append(fetch())
    if FETCHED[0] is not None:
        raise tap.Skip(FETCHED[0])
    if not (ROOT / path).exists():
        raise tap.Skip(f"{path} is not in Debian's contrib here")
    return ROOT / path


def libraries():
    return next((ROOT / "usr" / "lib").glob("*-linux-gnu"))


def on_gpus(command, *settings, environment=None):
    """Runs a command on four emulated A100 of which each wants 300 W; its standard output."""
    result = tap.run([EMULATOR, "run", "--gpus=4", "--load-w=300", "--any-user", "--ideal", *settings, "--", *map(str, command)],
                     env={**os.environ, **(environment or {})})
    tap.equal(result.returncode, 0, result.stderr + result.stdout)
    return result.stdout


PYTHON = {"PYTHONPATH": str(ROOT / "usr" / "lib" / "python3" / "dist-packages")}
MEASURE = """
import json, time, pynvml as nvml
nvml.nvmlInit()
devices = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
text = lambda value: value.decode() if isinstance(value, bytes) else value
time.sleep(0.5)
def counted(device):
    begin = time.monotonic()
    return nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1e3, begin, time.monotonic()
before = [counted(device) for device in devices]
time.sleep(1.5)
after = [counted(device) for device in devices]
# At least and at most: the machine may hold this up between a call and a look at the clock.
watts = [[(new[0] - old[0]) / passed for passed in (new[2] - old[1], new[1] - old[2])] for old, new in zip(before, after)]
nvml.nvmlDeviceSetPowerManagementLimit(devices[3], 150000)
time.sleep(0.7)
try:
    nvml.nvmlDeviceSetPowerManagementLimit(devices[3], 1000)
    refused = None
except nvml.NVMLError as error:
    refused = type(error).__name__
print(json.dumps({
    "names": [text(nvml.nvmlDeviceGetName(device)) for device in devices],
    "driver": text(nvml.nvmlSystemGetDriverVersion()), "watts": watts,
    "power": [nvml.nvmlDeviceGetPowerUsage(device) / 1e3 for device in devices],
    "limits": [nvml.nvmlDeviceGetPowerManagementLimit(device) / 1e3 for device in devices],
    "range": nvml.nvmlDeviceGetPowerManagementLimitConstraints(devices[0]), "refused": refused,
    "memory": nvml.nvmlDeviceGetMemoryInfo(devices[0]).total,
    "processes": [len(nvml.nvmlDeviceGetComputeRunningProcesses(device)) for device in devices]}))
"""


def test_python_bindings():
    need("usr/lib/python3/dist-packages/pynvml.py")
    said = json.loads(on_gpus(["/usr/bin/python3", "-c", MEASURE], environment=PYTHON))
    tap.equal(said["names"], ["Emulated A100-SXM4-80GB (Flyball)"] * 4)
    tap.contains(said["driver"], "flyball-emulator")
    tap.equal([least_w - 45 < 300 < most_w + 45 for least_w, most_w in said["watts"]], [True] * 4, f"energy: {said['watts']}")
    tap.equal([round(power) for power in said["power"]], [300, 300, 300, 150])
    tap.equal(said["limits"], [400.0, 400.0, 400.0, 150.0])
    tap.equal((said["range"], said["refused"]), ([100000, 400000], "NVMLError_InvalidArgument"))
    tap.equal((said["memory"], said["processes"]), (80 << 30, [0] * 4))


def test_gpustat():
    need("usr/lib/python3/dist-packages/gpustat")
    text = on_gpus(["sh", "-c", "sleep 0.5; exec /usr/bin/python3 -m gpustat --no-color -P -c -p"], environment=PYTHON)
    lines = [line for line in text.splitlines() if line.startswith("[")]
    tap.equal(len(lines), 4, text)
    for line in lines:
        tap.contains(line, "Emulated A100-SXM4-80GB (Flyball)")
        tap.contains(line, "300 / 400 W")


def test_hwloc():
    program = need("usr/bin/lstopo-no-graphics")
    need(f"usr/lib/{libraries().name}/hwloc/hwloc_nvml.so")
    text = on_gpus(["sh", "-c", f"LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{libraries()} exec {program} -v --no-legend"],
                   environment={"HWLOC_PLUGINS_PATH": str(libraries() / "hwloc")})
    lines = [line for line in text.splitlines() if "GPU(NVML)" in line]
    tap.equal(len(lines), 4, text)
    for index, line in enumerate(lines):
        tap.contains(line, 'GPUModel="Emulated A100-SXM4-80GB (Flyball)"')
        tap.contains(line, f'"nvml{index}"')


def screen_of(command, environment, wanted, seconds=tap.PATIENCE_S):
    """What stands on a terminal once all the wanted words do, or at the end of that time."""
    server = ["tmux", "-S", str(pathlib.Path(SCRATCH.name) / "tmux"), "-f", "/dev/null"]
    settings = {**os.environ, **environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TMUX": ""}
    screen = ""
    try:
        tap.run([*server, "new-session", "-d", "-x", "160", "-y", "50", *map(str, command)], env=settings)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not all(word in screen for word in wanted):
            time.sleep(0.2)
            screen = tap.run([*server, "capture-pane", "-p"], env=settings).stdout or screen
    finally:
        tap.run([*server, "kill-server"], env=settings)
    return screen


def test_nvtop():
    program = need("usr/bin/nvtop")
    if shutil.which("tmux") is None:
        raise tap.Skip("tmux is missing; install the package tmux")
    wanted = [f"Device {index} [Emulated A100-SXM4-80GB" for index in range(4)] + ["300 / 400 W"]
    screen = screen_of([EMULATOR, "run", "--gpus=4", "--load-w=300", "--", "sh", "-c",
                        f"LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{libraries()} exec {program} -d 5"],
                       {"XDG_CONFIG_HOME": SCRATCH.name, "HOME": SCRATCH.name}, wanted)
    for word in wanted:
        tap.contains(screen, word)


tap.main(globals())
