# SPDX-License-Identifier: Apache-2.0
"""The emulator's nvidia-smi: what CodeCarbon, GPUtil and the prologues of Slurm's clusters ask, and where it lies.

usage: emulator_smi.py FLYBALL SOURCE_ROOT
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import reach
import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
EMULATOR = reach.libraries(FLYBALL.parent / "emulator") / "flyball-emulator"
SMI = EMULATOR.parent / "nvidia-smi"
SANITIZED = bool(tap.sanitizers(FLYBALL))
HOME = tempfile.TemporaryDirectory()
os.environ["FLYBALL_EMULATOR_STATE"] = str(pathlib.Path(HOME.name) / "state")
os.environ.pop("FLYBALL_EMULATOR", None)
NOBODY = 65534


def emulator(*arguments, **options):
    result = tap.run([EMULATOR, *arguments], **options)
    tap.equal(result.returncode, 0, result.stderr)
    return result.stdout


def smi(*arguments, **options):
    return tap.run([SMI, *arguments], **options)


def ask(*arguments, status=0, **options):
    """The lines that it prints."""
    result = smi(*arguments, **options)
    tap.equal(result.returncode, status, f"{arguments}: {result.stdout}{result.stderr}")
    return result.stdout.splitlines()


def query(fields, *form, select=()):
    return ask(f"--query-gpu={fields}", "--format=" + ",".join(["csv", *form]), *select)


@contextlib.contextmanager
def machine(*settings, model="a100"):
    """Two GPUs in virtual time, whose readings are exact; the second wants 300 W and has drawn it for a while."""
    emulator("start", f"--model={model}", "--time=virtual", "--sensor=exact", "--noise-w=0", *settings)
    try:
        emulator("set", "--gpu=1", "--load-w=300")
        emulator("set", "--advance-s=60")
        yield
    finally:
        emulator("stop")


def uuids():
    return [gpu["uuid"] for gpu in json.loads(emulator("show", "--json"))["gpus"]]


def test_headers_and_units():
    """The header has the field's first name and its unit, also without units in the values, as NVIDIA's has."""
    fields = "index,gpu_name,power.draw,power.limit,enforced.power.limit,power.default_limit,power.min_limit,power.max_limit"
    header = ("index, name, power.draw [W], power.limit [W], enforced.power.limit [W], power.default_limit [W], "
              "power.min_limit [W], power.max_limit [W]")
    name = "Emulated A100-SXM4-80GB (Flyball)"
    with machine("--any-user"):
        tap.equal(ask("-i", "1", "-pl", "250")[-1], "All done.")
        emulator("set", "--advance-s=5")
        tap.equal(query(fields, select=["-i", "1"]),
                  [header, f"1, {name}, 250.00 W, 250.00 W, 250.00 W, 400.00 W, 100.00 W, 400.00 W"])
        tap.equal(query(fields, "nounits", select=["--id=1"]), [header, f"1, {name}, 250.00, 250.00, 250.00, 400.00, 100.00, 400.00"])
        tap.equal(query("index, utilization.gpu ,temperature.gpu", "noheader", select=["-i", "0"]), ["0, 0 %, 34"])
        header = query("clocks.gr,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,clocks_throttle_reasons.sw_power_cap,memory.total")
        tap.equal(header[0], "clocks.current.graphics [MHz], clocks.current.sm [MHz], clocks.current.memory [MHz], "
                             "clocks.max.sm [MHz], clocks.max.memory [MHz], clocks_event_reasons.sw_power_cap, memory.total [MiB]")
        tap.equal(header[1].split(", ")[2:], ["1593 MHz", "1410 MHz", "1593 MHz", "Not Active", "81920 MiB"])
        tap.equal(header[2].split(", ")[5], "Active")


def test_gputil_and_codecarbon():
    """GPUtil's query, field by field; CodeCarbon asks whether the program is there."""
    with machine():
        rows = query("index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,"
                     "display_active,display_mode,temperature.gpu", "noheader", "nounits")
        cells = [row.split(", ") for row in rows]
        tap.equal([row[0] for row in cells], ["0", "1"])
        tap.equal([row[1] for row in cells], uuids())
        tap.equal([row[2] for row in cells], ["0", "100"])
        tap.equal({row[3] for row in cells}, {"81920"})
        tap.equal(int(cells[0][4]) + int(cells[0][5]) in (81264, 81265, 81920), True, rows[0])
        tap.contains(cells[0][6], "flyball-emulator")
        tap.equal({tuple(row[9:11]) for row in cells}, {("Disabled", "Disabled")})
        tap.contains("\n".join(ask("--help")), "no hardware answers")
        tap.equal(ask("-L"), [f"GPU {index}: Emulated A100-SXM4-80GB (Flyball) (UUID: {uuid})"
                              for index, uuid in enumerate(uuids())])


def test_selection():
    with machine():
        bus = query("pci.bus_id", "noheader")[1]
        tap.equal(re.fullmatch(r"00000000:[0-9A-F]{2}:00\.0", bus) is not None, True, bus)
        for name in ("1", uuids()[1], bus, bus[4:], bus.lower()):
            tap.equal(query("index", "noheader", select=["-i", name]), ["1"])
        tap.equal(query("index", "noheader", select=["-i", "1,0"]), ["1", "0"])
        tap.equal(ask("-i", "2", "-L", status=6), ["No devices were found"])


def test_what_is_missing():
    """What a GPU does not have is [N/A], what the library lacks [Not Supported]; neither has a unit."""
    with machine(model="v100"):
        tap.equal(query("fan.speed,driver_model.current,power.draw.average,module.power.draw.instant,mig.mode.current,"
                        "temperature.memory", "noheader")[0], ", ".join(["[N/A]"] * 6))
        tap.equal(ask("--query-gpu=power.drawn", "--format=csv", status=2)[0], 'Field "power.drawn" is not a valid field to query.')
        ask("--query-gpu=power.draw", status=2)
        ask("--nonsense", status=2)
        if SANITIZED:
            return
        with tempfile.TemporaryDirectory() as directory:
            emulator("library", "--output", directory, "--without", "nvmlDeviceGetPowerUsage")
            row = ask("--query-gpu=power.draw,power.limit", "--format=csv,noheader", env={**os.environ, "LD_LIBRARY_PATH": directory})
            tap.equal(row[0], "[Not Supported], 250.00 W")
        emulator("set", "--gpu=1", "--lost")
        tap.contains(ask("-L", status=15)[0], "Unable to determine the device handle for GPU1")
    broken = {**os.environ, "FLYBALL_EMULATOR": "gpus=many"}
    tap.contains(ask("-L", status=9, env=broken)[0], "Failed to initialize NVML")


def test_report():
    with machine("--any-user"):
        lines = ask("-q", "-d", "POWER,CLOCK", "-i", "1")
        tap.contains("\n".join(lines), "==============NVSMI LOG==============\n\nTimestamp  ")
        readings = dict(line.strip().split(" : ", 1) for line in lines if " : " in line and "N/A" not in line)
        readings = {key.strip(): value for key, value in readings.items()}
        tap.equal((readings["Power Draw"], readings["Min Power Limit"], readings["Max Power Limit"]), ("300.00 W", "100.00 W", "400.00 W"))
        tap.equal("FB Memory Usage" in "\n".join(lines), False)
        tap.contains("\n".join(ask("-q")), "FB Memory Usage")
        ask("-q", "-d", "NOTHING", status=2)
        clocks = ask("--query-supported-clocks=mem,gr", "--format=csv,nounits", "-i", "0")
        tap.equal((clocks[0], clocks[1], clocks[-1]), ("memory [MHz], graphics [MHz]", "1593, 1410", "1593, 210"))
        table = ask()
        tap.equal({len(line) for line in table[1:] if line}, {89}, "\n".join(table))
        tap.contains("\n".join(table), "300W / 400W")


def test_settings_are_checked():
    with machine("--any-user"):
        tap.contains(ask("-pl", "99", status=2)[0], "Provided power limit 99.00 W is not a valid power limit which should be "
                                                    "between 100.00 W and 400.00 W for GPU 00000000:")
        tap.equal(query("power.limit", "noheader", "nounits"), ["400.00", "400.00"])
        lines = ask("-i", "1", "-pl", "300")
        tap.contains(lines[0], "was set to 300.00 W from 400.00 W.")
        tap.contains(ask("-i", "0", "-ac", "1593,1400", status=2)[0], 'Specified clock combination "(MEM 1593, SM 1400)"')
        tap.contains(ask("-i", "0", "-ac", "1000,1410", status=2)[0], "is not supported for GPU")
        tap.contains(ask("-i", "1", "-ac", "1593,1110")[0], 'Applications clocks set to "(MEM 1593, SM 1110)" for GPU')
        tap.equal(query("clocks.applications.graphics,clocks.default_applications.graphics", "noheader", "nounits"),
                  ["1410, 1410", "1110, 1410"])
        emulator("set", "--advance-s=5")
        tap.equal(query("clocks.gr,clocks_event_reasons.applications_clocks_setting", "noheader", "nounits", select=["-i", "1"]),
                  ["1110, Active"])
        tap.equal(ask("-rac"), ["All done."])
        tap.equal(query("clocks.applications.graphics", "noheader", "nounits"), ["1410", "1410"])
        tap.contains(ask("-i", "0", "-pm", "1")[0], "ersistence mode")
        tap.contains(ask("-i", "0", "-c", "EXCLUSIVE_PROCESS")[0], "Set compute mode to EXCLUSIVE_PROCESS for GPU")
        tap.equal(query("compute_mode", "noheader"), ["Exclusive_Process", "Default"])
        tap.contains(ask("-i", "0", "-lgc", "210,1200")[0], 'GPU clocks set to "(gpuClkMin 210, gpuClkMax 1200)"')
        tap.equal(ask("-rgc"), ["All done."])


def test_only_root_sets():
    """Root opens the applications' clocks, and those alone, to everybody."""
    if os.geteuid() != 0:
        with machine():
            tap.contains(ask("-pl", "300", status=4)[0], "Insufficient Permissions")
        return
    os.chmod(HOME.name, 0o755)
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with machine("--shared"):
        try:
            tap.equal(len(ask("-L", **other)), 2)
        except PermissionError as error:
            raise tap.Skip("another user cannot reach the build") from error
        tap.contains(ask("-pl", "300", status=4, **other)[0], "Insufficient Permissions")
        tap.contains(ask("-ac", "1593,1110", status=4, **other)[0], "The current user does not have permission to change clocks")
        tap.contains(ask("-acp", "0")[0], "have been set to UNRESTRICTED for GPU")
        tap.contains(ask("-ac", "1593,1110", **other)[0], "Applications clocks set to")
        ask("-pl", "300", status=4, **other)
        ask("-acp", "1")
        ask("-rac", status=4, **other)
        tap.equal(query("power.limit,clocks.applications.gr", "noheader", "nounits"), ["400.00, 1110"] * 2)


PROLOGUE = """
set -e
count=$(nvidia-smi -L | wc -l)
nvidia-smi --query-gpu=power.max_limit --format=csv,noheader,nounits > limits
for i in $(seq 0 $((count - 1))); do
    nvidia-smi -i $i -pl $(sed -n $((i + 1))p limits) > /dev/null
    clock=$(nvidia-smi -i $i --query-gpu=clocks.max.sm --format=csv,noheader,nounits)
    memory=$(nvidia-smi -i $i --query-gpu=clocks.max.mem --format=csv,noheader,nounits)
    nvidia-smi -i $i -ac $memory,$clock
done
nvidia-smi -pm 1
"""
EPILOGUE = """
set -e
for i in $(nvidia-smi pmon -c 1 | tail -n+3 | awk '{print $2}' | grep -v -); do kill -9 $i; done
while nvidia-smi pmon -c 1 | tail -n+3 | awk '{print $2}' | grep -v - > /dev/null; do sleep 0.1; done
nvidia-smi -rac
nvidia-smi -acp 0
nvidia-smi -c DEFAULT
"""


def test_prologue_and_epilogue():
    """Scripts as Slurm's clusters run them around a job: limits and clocks to the highest, leftovers killed."""
    path = {**os.environ, "PATH": f"{SMI.parent}:{os.environ['PATH']}"}
    emulator("start", "--model=h100", "--gpus=3", "--any-user")
    try:
        ask("-pl", "300")
        set_up = tap.run(["sh", "-c", PROLOGUE], env=path, cwd=HOME.name)
        tap.equal(set_up.returncode, 0, set_up.stdout + set_up.stderr)
        tap.equal(set_up.stdout.count('Applications clocks set to "(MEM 2619, SM 1980)"'), 3)
        tap.equal(query("power.limit,persistence_mode", "noheader", "nounits"), ["700.00, Enabled"] * 3)
        left = subprocess.Popen([EMULATOR, "train", "--gpu=0,2", "--epochs=100000", "--memory-gib=3"], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + tap.PATIENCE_S
        while len(query("index", "noheader")) == 3 and time.monotonic() < deadline:
            apps = ask("--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv")
            if len(apps) == 3:
                break
            time.sleep(0.05)
        tap.equal(apps, ["pid, used_gpu_memory [MiB], gpu_uuid"] + [f"{left.pid}, 3072 MiB, {uuid}" for uuid in (uuids()[0], uuids()[2])])
        cleaned = tap.run(["sh", "-c", EPILOGUE], env=path)
        tap.equal(cleaned.returncode, 0, cleaned.stdout + cleaned.stderr)
        tap.equal(left.wait(timeout=tap.PATIENCE_S), -signal.SIGKILL)
        tap.contains(cleaned.stdout, "Set compute mode to DEFAULT for GPU")
    finally:
        emulator("stop")


def test_loops():
    """A logger reads lines until it has enough; the header comes once."""
    with machine():
        logger = subprocess.Popen([SMI, "--query-gpu=index,power.draw", "--format=csv", "-lms", "20"], stdout=subprocess.PIPE, text=True)
        lines = [logger.stdout.readline().strip() for _ in range(7)]
        logger.kill()
        logger.wait()
        tap.equal(lines, ["index, power.draw [W]"] + ["0, 60.00 W", "1, 300.00 W"] * 3)
        target = pathlib.Path(HOME.name) / "log.csv"
        ask("--query-gpu=index", "--format=csv,noheader", "-f", str(target))
        tap.equal(target.read_text(encoding="utf-8"), "0\n1\n")


def test_found_only_through_the_emulator():
    """`run` and `start` put it first; without them nobody finds it."""
    found = emulator("run", "--", "sh", "-c", "command -v nvidia-smi && nvidia-smi -L")
    tap.equal(found.splitlines()[0], str(SMI))
    tap.equal(found.count("UUID: GPU-f1eba11"), 2)
    exports = emulator("start", "--gpus=1")
    try:
        shell = tap.run(["sh", "-c", exports + "nvidia-smi -L"])
        tap.equal(shell.stdout.count("UUID: GPU-f1eba11"), 1, shell.stderr)
    finally:
        emulator("stop")


def test_installed_off_the_path():
    """`make install` puts it beside the emulator's library and nowhere else, and what is installed finds it there."""
    if shutil.which("meson") is None:
        raise tap.Skip("meson is missing")
    with tempfile.TemporaryDirectory() as root:
        installed = tap.run(["meson", "install", "-C", FLYBALL.parent, "--no-rebuild", "--quiet", "--tags", "runtime", "--destdir", root])
        tap.equal(installed.returncode, 0, installed.stdout + installed.stderr)
        places = [path.relative_to(root) for path in pathlib.Path(root).rglob("nvidia-smi*")]
        tap.equal(len(places), 1, str(places))
        tap.equal(places[0].parts[-3:], ("flyball", "emulator", "nvidia-smi"))
        tap.equal((pathlib.Path(root) / places[0].parent / "libnvidia-ml.so.1").exists(), True)
        tap.equal({"bin", "sbin"} & set(places[0].parts), set())
        program = next(pathlib.Path(root).rglob("bin/flyball-emulator"))
        listed = tap.run([program, "run", "--gpus=3", "--", "nvidia-smi", "-L"])
        tap.equal((listed.returncode, listed.stdout.count("UUID: GPU-f1eba11")), (0, 3), listed.stderr)


tap.main(globals())
