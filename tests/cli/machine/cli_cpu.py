# SPDX-License-Identifier: Apache-2.0
"""CPUs, memory and AMD's GPUs in whole programs: made-up counters, a stand-in library, and what is said of them.

usage: cli_cpu.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

import reach
import tap

FLYBALL = reach.program(sys.argv[1])
STANDIN = os.path.join(os.environ.get("FLYBALL_TEST_BUILD", os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests")),
                       "amdsmi", "amdsmi_26.so.26")
WORK = tempfile.TemporaryDirectory(prefix="flyball-cpu-")
HOME = pathlib.Path(WORK.name)
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("FLYBALL_", "XDG_", "SLURM", "OMPI_", "PMI", "CUDA_", "ROCR_", "HIP_", "AMD_", "LC_", "LANG"))
}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME))

RANGE_UJ = 262143328850
MODULUS_UJ = 262143328911

# Moves the counters of a made-up tree every 20 ms, through their wrap, and leaves them where they are.
DRIVE = """
import os, sys, time
modulus, start, step, count = map(int, sys.argv[1:5])
files = [os.open(path, os.O_WRONLY) for path in sys.argv[5:]]
for i in range(1, count + 1):
    time.sleep(0.02)
    for file in files:
        os.pwrite(file, b"%020d" % ((start + i * step) % modulus), 0)
"""


def tree(name, zones):
    """A made-up root with the zones of a package and its memory: path to (name, microjoules)."""
    root = HOME / name
    shutil.rmtree(root, ignore_errors=True)
    for zone, (word, energy_uj) in zones.items():
        directory = root / "sys/class/powercap" / zone
        directory.mkdir(parents=True)
        (directory / "name").write_text(word + "\n")
        (directory / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        (directory / "energy_uj").write_text(f"{energy_uj:020d}\n")
    return root


def devices_of(root, *options, environment=None, amdsmi="none.so"):
    return ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / amdsmi), "--sysfs-root", str(root), *options]


def measure(program, options, environment=None):
    """flyball run on made-up devices; its report, and what it wrote to standard error."""
    report = HOME / "report.json"
    report.unlink(missing_ok=True)
    result = tap.run([FLYBALL, "run", "-v", *options, "--output", str(report), "--", *program],
                     env={**CLEAN, **(environment or {})}, cwd=HOME)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(report.read_text()), result.stderr


def test_counters_wrap_and_nothing_is_lost():
    start_uj = MODULUS_UJ - 10_000_000
    step_uj, count = 1_234_567, 200
    root = tree("wrap", {"intel-rapl:0": ("package-0", start_uj), "intel-rapl:0:0": ("dram", start_uj),
                         "intel-rapl:0:1": ("core", 1), "intel-rapl:1": ("psys", 5),
                         "intel-rapl-mmio:0": ("package-0", 7)})
    files = [str(root / "sys/class/powercap" / zone / "energy_uj") for zone in ("intel-rapl:0", "intel-rapl:0:0")]
    report, _ = measure([sys.executable, "-c", DRIVE, str(MODULUS_UJ), str(start_uj), str(step_uj), str(count), *files],
                        devices_of(root))
    tap.equal([device["uuid"] for device in report["devices"]], ["cpu-0", "dram-0"])
    for device in report["devices"]:
        tap.equal(device["source"], "counter", device["note"])
        error_j = device["energy_j"] - step_uj * count * 1e-6
        if abs(error_j) > 1e-5:
            raise AssertionError(f"{device['uuid']}: {error_j} J beside the truth")


def test_an_estimate_is_named_one():
    root = HOME / "estimate"
    (root / "proc").mkdir(parents=True, exist_ok=True)
    (root / "proc/stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 50 0 50 500\ncpu1 50 0 50 500\n")
    report, said = measure(["sleep", "0.5"], devices_of(root, "--cpu-tdp", "100"))
    (device,) = report["devices"]
    tap.equal(device["source"], "estimated")
    tap.equal(device["estimated"], True)
    tap.contains(device["name"], "estimated from use and a stated 100 W")
    # Nothing ran on these processors: the idle share of the stated power.
    power_w = device["energy_j"] / device["time_s"]
    if not 11.0 < power_w < 13.0:
        raise AssertionError(f"{power_w} W, expected about 12")
    tap.contains(said, "estimate")


def test_what_may_not_be_read_is_not_absent():
    root = tree("denied", {"intel-rapl:0": ("package-0", 5)})
    os.chmod(root / "sys/class/powercap/intel-rapl:0/energy_uj", 0)
    for directory in (HOME, root):
        os.chmod(directory, 0o755)
    user = {"user": 65534} if os.geteuid() == 0 else {}
    try:
        result = tap.run([FLYBALL, "devices", "--format", "json", *devices_of(root)], env=CLEAN, cwd="/", **user)
    except PermissionError:
        raise tap.Skip("nobody may not run the program here") from None
    if result.returncode in (126, 127):
        raise tap.Skip("nobody may not run the program here")
    tap.contains(result.stderr, "sudo chmod -R a+r " + str(root))
    (row,) = json.loads(result.stdout)["rows"]
    tap.equal(row["energy_counter_j"], None)
    tap.contains(row["energy_counter_j_unavailable"], "permission")


def test_two_dies_count_once():
    environment = {"AMD_GPUS": "2", "AMD_NAME": "AMD Instinct MI250X", "AMD_POWER": "0xFFFF", "AMD_AVERAGE": "300",
                   "AMD_COUNTED_W": "300", "AMD_AVERAGE_1": "0", "AMD_TICKS_1": "0"}
    report, _ = measure(["sleep", "1"], devices_of(HOME / "nothing", amdsmi=STANDIN), environment)
    first, second = report["devices"]
    tap.equal(first["source"], "counter")
    power_w = first["energy_j"] / first["time_s"]
    if not 299.0 < power_w < 301.0:
        raise AssertionError(f"{power_w} W, expected 300")
    tap.equal(second["source"], "unavailable")
    tap.equal(second["energy_j"], None)
    tap.contains(second["note"], "counted with GPU 0 at " + first["pci"])
    if abs(report["total"]["energy_j"] - first["energy_j"]) > 1e-9:
        raise AssertionError(f"total {report['total']['energy_j']} J, expected {first['energy_j']}")


def test_a_counter_in_other_units_is_not_believed():
    environment = {"AMD_GPUS": "1", "AMD_POWER": "200", "AMD_COUNTED_W": "200000"}
    report, _ = measure(["sleep", "1"], devices_of(HOME / "nothing", amdsmi=STANDIN), environment)
    (device,) = report["devices"]
    tap.equal(device["source"], "integrated")
    power_w = device["energy_j"] / device["time_s"]
    if not 199.0 < power_w < 201.0:
        raise AssertionError(f"{power_w} W, expected 200")
    tap.contains(device["note"], "disagrees")


tap.main(globals())
