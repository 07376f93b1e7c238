# SPDX-License-Identifier: Apache-2.0
"""A GPU on a module with a CPU (an emulated GH200): its power and the module's stand beside each other, and no sum has both.

usage: module_beside.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
EMULATOR = pathlib.Path(FLYBALL).parent / "emulator" / "flyball-emulator"
WORK = tempfile.TemporaryDirectory(prefix="flyball-module-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_", "CUDA_"))}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME), FLYBALL_EMULATOR_STATE=str(HOME / "state"))
WHERE = ["--nvml", str(EMULATOR.parent / "libnvidia-ml.so.1"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]
GPU_W, REST_W = 700, 100


def on_modules(*words, model="gh200"):
    """Runs a command on two such modules whose GPUs want 700 W."""
    command = [EMULATOR, "run", "--gpus=2", f"--model={model}", f"--load-w={GPU_W}", "--sensor=exact", "--noise-w=0", "--", "sh", "-c",
               'sleep 0.5; exec "$@"', "sh", FLYBALL, *words]
    result = subprocess.run(command, env=CLEAN, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(result.returncode, 0, result.stderr)
    return result


def near(value, expected, share=0.02):
    return abs(value / expected - 1) < share


def test_devices():
    rows = json.loads(on_modules("devices", *WHERE, "--format", "json").stdout)["rows"]
    tap.equal([(near(row["power_w"], GPU_W), near(row["power_module_w"], GPU_W + REST_W), row["power_limit_w"]) for row in rows],
              [(True, True, 900.0)] * 2, json.dumps(rows))
    tap.contains(on_modules("devices", *WHERE).stdout, "module (W)")
    plain = on_modules("devices", *WHERE, model="h100").stdout
    tap.equal("module (W)" in plain, False, "a column about modules where there are none")


def test_run_sums_gpus_alone():
    """The sum is of the GPUs, with the CPUs' estimate; what the modules used stands beside and contains both of theirs."""
    path = HOME / "report.json"
    for cpu in ([], ["--cpu-tdp", "250"]):
        path.unlink(missing_ok=True)
        talk = on_modules("run", "-v", *WHERE, *cpu, "--output", str(path), "--", "sleep", "1").stderr
        document = json.loads(path.read_text(encoding="utf-8"))
        gpus = [device for device in document["devices"] if device["kind"] == "GPU"]
        others = [device for device in document["devices"] if device["kind"] != "GPU" and device["energy_j"] is not None]
        time_s = gpus[0]["time_s"]
        for gpu in gpus:
            tap.equal((near(gpu["energy_j"] / time_s, GPU_W, 0.05), near(gpu["module_energy_j"] / time_s, GPU_W + REST_W, 0.05)),
                      (True, True), json.dumps(gpu))
            tap.equal(gpu["module_power"], False)
        counted = sum(device["energy_j"] for device in gpus + others)
        tap.equal(near(document["total"]["energy_j"], counted, 1e-6), True, json.dumps(document["total"]))
        tap.equal([device["module_energy_j"] for device in others], [None] * len(others))
        tap.contains(talk, "its module, with the CPU on it: ")


def test_boards_without():
    path = HOME / "plain.json"
    talk = on_modules("run", "-v", *WHERE, "--output", str(path), "--", "true", model="h100").stderr
    document = json.loads(path.read_text(encoding="utf-8"))
    tap.equal({device["module_energy_j"] for device in document["devices"]}, {None})
    tap.equal("its module" in talk, False, talk)


tap.main(globals())
