# SPDX-License-Identifier: Apache-2.0
"""Every fault of the emulator's script in every call of the driver that Flyball makes, from outside.

usage: every_fault.py FLYBALL SOURCE_ROOT

One machine has a GPU for each kind of fault, and one without any. For each call,
each GPU fails in its own way in that call; then the call is missing from the
library altogether; calls about the whole machine fail for all. Whatever happens,
the program that is run goes on and keeps its status and output, the report says
what is missing, nothing unknown is 0, and the sound GPU is measured as if nothing
were. FLYBALL_TEST_QUICK=1 takes every fourth of the cases.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
EMULATOR = pathlib.Path(os.environ["FLYBALL_TEST_EMULATOR"])
LIBRARY = EMULATOR / "libnvidia-ml.so.1"
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"
WORK = tempfile.TemporaryDirectory(prefix="flyball-faults-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "CUDA_", "SLURM", "OMPI_", "PMI", "NO_COLOR", "LC_", "LANG"))}
CLEAN |= {"HOME": str(HOME), "XDG_RUNTIME_DIR": str(HOME)}

KINDS = (  # of a GPU each, by index
    "return 3", "return 4", "return 15", "return 999", "return 10", "missing", "slow 15ms", "nth 2 return 999",
    "from 4 return 999", "nth 3 lost", "from 5 reset-counter",
)
ALWAYS = {index for index, kind in enumerate(KINDS) if kind.startswith("return") or kind == "missing"}
SLOW = KINDS.index("slow 15ms")
SOUND = len(KINDS)
MACHINE = f"gpus={SOUND + 1},model=a100,counter-period-ms=1"
PROGRAM = ["sh", "-c", "echo hello; sleep 0.25; exit 7"]
SYSTEM_CALLS = ("init", "shutdown", "count", "driver_version")

# Of a device in the report: what is a fault of ours when it is 0, and not one when it is null.
NEVER_ZERO = ("energy_j", "uncertainty_j", "gain_error", "time_s", "mean_power_w", "integral_j", "temperature_max_c",
              "limit_w")
# Of any command, where the machine has nothing that is 0.
NEVER_ZERO_SHOWN = re.compile(r"(energy_counter|temperature|power|power_limit|power_limit_\w+|clock_gpu|clock_gpu_max|"
                              r"clock_memory|limit)_(w|j|c|mhz|mw|uj)")
# An emulated counter of a GPU that has just begun is 0 until its first update.
FIRST_UPDATE_NS = 200_000_000
SHARES = ("idle_share", "idle_energy_share", "capped_share", "heat_share", "brake_share")
# What cannot be known when all of these fail from the start.
UNKNOWN_WITHOUT = {
    ("utilization",): ("idle_share", "idle_energy_share"),
    ("throttle",): ("capped_share", "heat_share", "brake_share"),
    ("temperature", "temperature_old"): ("temperature_max_c",),
    ("limit", "limit_enforced", "fields"): ("limit_w",),
    ("energy", "fields", "power"): ("energy_j", "uncertainty_j", "mean_power_w", "integral_j"),
}


def calls():
    """Slot -> names, newer first, from the table of the back end."""
    text = (SOURCE / "src" / "device" / "nvidia" / "nvml_library.h").read_text(encoding="utf-8")
    table = text[text.index("#define NVML_CALLS(X)"):].split("\n\n", 1)[0].replace("\\\n", " ")
    found = {}
    for slot, names in re.findall(r"X\((\w+), \w+, \w+,((?:\s*\"\w+\",?)+)\)", table):
        found[slot] = re.findall(r"\"(\w+)\"", names)
    return found


CALLS = calls()


def thinned(cases):
    return cases[::4] if QUICK else cases


def environment(directory, script, machine):
    (directory / "faults").write_text(script)
    return {**CLEAN, "FLYBALL_EMULATOR_STATE": str(directory / "state"),
            "FLYBALL_EMULATOR": f"{machine},faults={directory}/faults"}


def flyball(directory, script, words, program=(), library=LIBRARY, machine=MACHINE):
    """One command on a machine of its own."""
    (directory / "state").unlink(missing_ok=True)
    options = ["--nvml", str(library), "--amdsmi", str(directory / "none"), "--sysfs-root", str(directory)]
    result = tap.run([FLYBALL, *words, *options, *program], env=environment(directory, script, machine), cwd=directory)
    for word in ("Sanitizer", "runtime error"):
        if word in result.stderr:
            raise AssertionError(f"{script}{words}: {result.stderr}")
    return result


def check_unknown(value, path):
    """Null has a reason beside it, and what cannot be 0 is not."""
    if isinstance(value, dict):
        for key, member in value.items():
            if member == 0 and NEVER_ZERO_SHOWN.fullmatch(key):
                raise AssertionError(f"{path}: '{key}' is 0: {value}")
            if member is None and len(value.get(f"{key}_unavailable") or "") < 5:
                raise AssertionError(f"{path}: '{key}' is null without a reason: {value}")
            check_unknown(member, f"{path}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            check_unknown(member, f"{path}[{index}]")


def emulated_index(device):
    """Which GPU of the emulator it is, whatever it is called here."""
    bus = re.fullmatch(r"00000000:(\w\w):00\.0", device["pci"] or "")
    uuid = re.match(r"GPU-f1eba11(\w)", device["uuid"] or "")
    nameless = re.fullmatch(r"nvidia-(\d+)", device["uuid"] or "")
    if uuid or nameless:
        return int(uuid[1], 16) if uuid else int(nameless[1])
    return (int(bus[1], 16) - 7) // 8 if bus else None


def check_device(device, context):
    for key in NEVER_ZERO:
        if device[key] is not None and not device[key] > 0:
            raise AssertionError(f"{context}: '{key}' is {device[key]}: {device}")
    for key in SHARES:
        if device[key] is not None and not 0 <= device[key] <= 1:
            raise AssertionError(f"{context}: '{key}' is {device[key]}: {device}")
    if (device["source"] == "unavailable") != (device["energy_j"] is None):
        raise AssertionError(f"{context}: {device}")


def check_sound(device, context):
    missing = [key for key in (*NEVER_ZERO, *SHARES) if device[key] is None]
    tap.equal((device["source"], missing), ("counter", []), f"{context}: the sound GPU")
    if not 0.9 < device["mean_power_w"] / 60 < 1.1:
        raise AssertionError(f"{context}: the sound GPU draws 60 W: {device}")


def check_report(report, result, slots, context):
    check_unknown(report, "")
    tap.equal((report["schema"], report["exit_status"], report["fault"]), ("flyball.run/2", 7, None), context)
    devices = {emulated_index(device): device for device in report["devices"]}
    for index, device in devices.items():
        check_device(device, f"{context}, GPU {index}: {KINDS[index] if index in range(SOUND) else 'sound'}")
        if device["energy_j"] is None:
            line = [line for line in result.stderr.splitlines() if line.startswith(f"  GPU {device['index']} ")]
            said = "unavailable" if device["least_energy_j"] is None else "at least"
            if len(line) != 1 or said not in line[0]:
                raise AssertionError(f"{context}: the report for people does not name {device}: {result.stderr}")
    check_sound(devices[SOUND], context)
    for needed, keys in UNKNOWN_WITHOUT.items():
        if not set(needed) <= set(slots):
            continue
        for index in ALWAYS & set(devices):
            tap.equal({key: devices[index][key] for key in keys}, dict.fromkeys(keys), f"{context}, {KINDS[index]}")
    # One that may not be opened is hidden from the program as well, and not of its measurement.
    hidden = {KINDS.index("return 4")} if "handle" in slots else set()
    tap.equal(set(devices), set(range(SOUND + 1)) - hidden, context)
    return devices


def check_driver(report, result, context):
    """Without a GPU the report says what NVIDIA's driver answered; people are told if it is there and does not work."""
    fault = {driver["name"]: driver["fault"] for driver in report["drivers"]}["nvml"]
    if report["devices"]:
        return fault
    if fault is None:
        raise AssertionError(f"{context}: nothing says why there is no GPU: {result.stderr}")
    if "(NVML " in fault:
        tap.contains(result.stderr, fault, context)
    tap.contains(result.stderr, "unavailable", context)
    return fault


def run_program(directory, script, library=LIBRARY, machine=MACHINE):
    """The program as it would be without us, and the report."""
    path = directory / "report.json"
    path.unlink(missing_ok=True)
    result = flyball(directory, script, ["run", "-v", "--output", str(path)], ["--", *PROGRAM], library, machine)
    tap.equal((result.returncode, result.stdout), (7, "hello\n"), f"{script}\n{result.stderr}")
    return result, json.loads(path.read_text())


def check_recorded(line, context):
    """What could not be read is recorded with its state; nothing that is on is recorded as off."""
    for key, value in line.items():
        if key == "energy_uj" and value == 0 and line["t"] < FIRST_UPDATE_NS:
            continue
        if key in ("energy_uj", "power_mw", "power_limit_mw", "temperature_c") and isinstance(value, int) and value <= 0:
            raise AssertionError(f"{context}: {line}")


def check_commands(directory, script, context, library=LIBRARY):
    """The commands that show devices end well, in a form that programs can read."""
    for words in (["devices", "--format", "json"], *OTHERS):
        result = flyball(directory, script, words, library=library)
        if result.returncode not in (0, 69) or (result.returncode == 0 and not result.stdout):
            raise AssertionError(f"{context}, {words}: {result}")
        if result.stdout:
            check_unknown(json.loads(result.stdout), f"{context}, {words}")
    result = flyball(directory, script, ["record", "--duration", "0", "/dev/stdout"], library=library)
    for line in result.stdout.splitlines()[1:]:
        check_recorded(json.loads(line), context)


def at_once(case, cases):
    """Most of the time is waiting; the first failure counts."""
    def in_directory(arguments):
        with tempfile.TemporaryDirectory(dir=HOME) as directory:
            case(pathlib.Path(directory), *arguments)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(in_directory, arguments) for arguments in cases]:
            future.result()


HELP = tap.run([FLYBALL, "help"], env=CLEAN).stdout
OTHERS = [words for words in (["monitor", "--once", "--format", "json"], ["doctor", "--format", "json"])
          if f"\n  {words[0]} " in HELP]


def script_of(slots):
    return "".join(f"gpu {gpu} call {name} {kind}\n"
                   for slot in slots for name in CALLS[slot] for gpu, kind in enumerate(KINDS))


def test_the_table_of_calls_is_read():
    if len(CALLS) < 25 or CALLS["energy"] != ["nvmlDeviceGetTotalEnergyConsumption"]:
        raise AssertionError(CALLS)


def test_the_machine_without_faults():
    def case(directory):
        result, report = run_program(directory, "")
        devices = check_report(report, result, (), "no fault")
        tap.equal(set(devices), set(range(SOUND + 1)))
        for device in devices.values():
            check_sound(device, "no fault")
        check_commands(directory, "", "no fault")

    at_once(case, [()])


def check_doctor(directory, slots):
    """What a doctor is for: each quantity that cannot be read is named, for each GPU."""
    result = flyball(directory, script_of(slots), ["doctor", "--format", "json"])
    found = {row["subject"]: row["finding"] for row in json.loads(result.stdout)["rows"]}
    for index in ALWAYS:
        finding = [text for subject, text in found.items() if subject.startswith(f"GPU {index} ")]
        tap.equal(len(finding), 1, f"{slots}: {found}")
        if "Not " not in finding[0]:
            raise AssertionError(f"{slots}: GPU {index}, {KINDS[index]}: {finding[0]}")


def check_slots(directory, slots):
    context = f"faults in {', '.join(slots)}"
    result, report = run_program(directory, script_of(slots))
    devices = check_report(report, result, slots, context)
    if SLOW not in devices:
        raise AssertionError(f"{context}: a GPU that is slow is not lost")
    check_sound(devices[SLOW], context)
    check_commands(directory, script_of(slots), context)


def test_every_call_about_a_gpu():
    slots = [slot for slot in CALLS if slot not in SYSTEM_CALLS]
    at_once(check_slots, [((slot,),) for slot in thinned(slots)])


def test_calls_that_stand_in_for_each_other():
    at_once(check_slots, [(needed,) for needed in UNKNOWN_WITHOUT])
    at_once(check_doctor, [(needed,) for needed in UNKNOWN_WITHOUT])


def test_every_call_about_the_machine():
    def case(directory, slot, kind):
        context = f"{slot} {kind}"
        script = "".join(f"call {name} {kind}\n" for name in CALLS[slot])
        result, report = run_program(directory, script)
        check_unknown(report, "")
        for device in report["devices"]:
            check_device(device, context)
        check_driver(report, result, context)
        check_commands(directory, script, context)

    kinds = [kind for kind in KINDS if not kind.endswith("lost")]
    at_once(case, thinned([(slot, kind) for slot in SYSTEM_CALLS for kind in kinds]))


def test_every_call_missing_from_the_library():
    def case(directory, slots):
        context = f"without {', '.join(slots)}"
        names = [name for slot in slots for name in CALLS[slot]]
        copied = tap.run([EMULATOR / "flyball-emulator", "library", "--output", directory / "driver", "--without",
                          ",".join(names)], env={**CLEAN, "FLYBALL_EMULATOR_STATE": str(directory / "state")})
        tap.equal(copied.returncode, 0, copied.stderr)
        library = directory / "driver" / "libnvidia-ml.so.1"
        result, report = run_program(directory, "", library)
        check_unknown(report, "")
        for device in report["devices"]:
            check_device(device, context)
            for needed, keys in UNKNOWN_WITHOUT.items():
                if set(needed) <= set(slots):
                    tap.equal({key: device[key] for key in keys}, dict.fromkeys(keys), context)
        if not report["devices"]:
            tap.contains(check_driver(report, result, context), names[0], context)
        check_commands(directory, "", context, library)

    at_once(case, [((slot,),) for slot in thinned(list(CALLS))] + [(needed,) for needed in UNKNOWN_WITHOUT])


def test_a_counter_that_stands_is_no_zero():
    """In virtual time, which nobody moves, and without a sensor of power beside it."""
    script = "call nvmlDeviceGetPowerUsage return 3\ncall nvmlDeviceGetFieldValues return 3\n"

    def case(directory):
        still = "gpus=1,time=virtual"
        result, report = run_program(directory, script, machine=still)
        check_unknown(report, "")
        device = report["devices"][0]
        tap.equal([device[key] for key in ("source", "energy_j", "mean_power_w")], ["unavailable", None, None])
        tap.contains(result.stderr, "the counter did not advance")
        if OTHERS:
            shown = flyball(directory, script, OTHERS[0], machine=still)
            row = json.loads(shown.stdout)["rows"][0]
            tap.equal((row["power_w"], row["energy_j"]), (None, None), str(row))
            check_unknown(row, "monitor")

    at_once(case, [()])


tap.main(globals())
