# SPDX-License-Identifier: Apache-2.0
"""`flyball record --facts` on emulated GPUs: what it shows, when it writes, what nobody finds in it.

usage: cli_facts.py FLYBALL SOURCE_ROOT
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
LIBRARY = pathlib.Path(os.environ["FLYBALL_TEST_EMULATOR"]) / "libnvidia-ml.so.1"
WORK = tempfile.TemporaryDirectory(prefix="flyball-facts-")
HOME = pathlib.Path(WORK.name) / "carol"
USER = "carol"
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("FLYBALL_", "XDG_", "NO_COLOR", "CUDA_", "HIP_", "ROCR_"))}
CLEAN |= {"HOME": str(HOME), "USER": USER, "LOGNAME": USER, "FLYBALL_EMULATOR_STATE": str(HOME / "state"),
          "FLYBALL_EMULATOR": "gpus=2,model=a40", "FLYBALL_RUNTIME_DIR": str(HOME / "knobs"), "XDG_RUNTIME_DIR": str(HOME / "runtime"),
          "FLYBALL_KNOB_DAEMON": "http://10.1.2.3:4938"}
EMULATED = ["--nvml", str(LIBRARY), "--sysfs-root", str(HOME)]
HOME.mkdir()
(HOME / "runtime").mkdir(mode=0o700)
ZONE = HOME / "sys/class/powercap/intel-rapl:0"
ZONE.mkdir(parents=True)
for file, content in (("name", "package-0"), ("energy_uj", "1234567"), ("max_energy_range_uj", "262143328850")):
    (ZONE / file).write_text(content + "\n")


def flyball(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return tap.run([FLYBALL, *arguments], env=CLEAN, cwd=HOME, **options)


def record(name, *arguments):
    result = flyball("record", "--facts", name, "--yes", *EMULATED, *arguments)
    tap.equal(result.returncode, 0, result.stderr)
    return result, json.loads((HOME / name).read_text())


def rows(*arguments):
    result = flyball("devices", "--format", "json", *arguments)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)["rows"]


def test_facts_describe_the_machine():
    _, facts = record("whole.facts")
    tap.equal((facts["schema"], len(facts["devices"])), ("flyball.facts/1", 3))
    gpu, cpu = facts["devices"][0], facts["devices"][2]
    tap.equal((gpu["kind"], gpu["backend"], gpu["pseudonym"], gpu["bus"], gpu["emulated"]),
              ("GPU", "nvml", "GPU-0", "bus-0", True))
    answers = {answer["quantity"]: answer for answer in gpu["answers"]}
    tap.equal((answers["power_limit_min_mw"]["value"], answers["power_limit_max_mw"]["value"]), (100000, 300000))
    tap.equal((answers["mig_mode"]["state"], answers["mig_mode"]["value"]), ("unsupported", None))
    tap.equal(gpu["clocks_mhz"][0], 1740)
    tap.equal(facts["domains"], [{"through": "powercap", "name": "intel-rapl:0 package-0", "range_uj": 262143328850,
                                  "readable": True}])
    tap.equal((cpu["pseudonym"], cpu["energy_modulus_uj"]), ("cpu-0", 262143328911))
    tap.equal({way["name"]: way["named"] for way in facts["ways"]}, {"driver": False, "daemon": True})
    tap.equal(facts["machine"]["knob_files"], "named by a variable" if (HOME / "knobs").exists() else "none")


def test_counters_were_looked_at():
    _, facts = record("looks.facts")
    gpu, cpu = facts["devices"][0], facts["devices"][2]
    tap.equal([look["quantity"] for look in gpu["looks"]], ["energy_uj", "power_mw", "power_average_mw"])
    tap.equal([look["quantity"] for look in cpu["looks"]], ["energy_uj"])
    energy, still = gpu["looks"][0], cpu["looks"][0]
    if not (0.5 < energy["watched_s"] and energy["changes"] >= 2 and 0.05 < energy["period_s"]):
        raise AssertionError(energy)  # every 100 ms, longer on a machine that is busy
    tap.equal(energy["least_step"] % energy["common_divisor"], 0)
    tap.equal((still["changes"], still["period_s"], still["least_step"]), (0, None, None))


def test_all_that_is_written_is_shown():
    result, facts = record("shown.facts")
    for piece in ("kernel: ", "container: ", "pseudonym: GPU-1", "quantity power_limit_mw, state ok, value 300000, code 0",
                  "clocks mhz: 1740, 1725", "intel-rapl:0 package-0"):
        tap.contains(result.stdout, piece)

    def words(value):
        if isinstance(value, dict):
            return [word for key, entry in value.items() for word in [key.replace("_", " "), *words(entry)]]
        if isinstance(value, list):
            return [word for entry in value for word in words(entry)]
        return [value] if isinstance(value, str) else []

    for word in words(facts):
        tap.contains(result.stdout, word)
    document = flyball("record", "--facts", "json.facts", "--yes", "--format", "json", *EMULATED)
    tap.equal(json.loads(document.stdout), json.loads((HOME / "json.facts").read_text()))


def test_nothing_personal_is_written():
    live = rows(*EMULATED)
    result, _ = record("personal.facts")
    secrets = {USER, str(HOME), HOME.parent.name, socket.gethostname(), "10.1.2.3"}
    secrets |= {row["uuid"] for row in live if row["kind"] == "GPU"} | {row["pci"] for row in live if row["pci"]}
    for text in ((HOME / "personal.facts").read_text(), result.stdout):
        for secret in secrets:
            if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text):
                raise AssertionError(f"{secret!r} stands in the facts")


def test_nothing_personal_of_what_is_broken():
    CLEAN["FLYBALL_EMULATOR"] = "gpus=1"
    (HOME / "no.so").write_text("no library\n")
    result = flyball("record", "--facts", "broken.facts", "--yes", "--nvml", str(HOME / "no.so"), "--sysfs-root", str(HOME))
    tap.equal(result.returncode, 0, result.stderr)
    text = (HOME / "broken.facts").read_text()
    tap.contains(text, "PATH")
    tap.equal((USER in text, HOME.parent.name in text), (False, False), text)
    CLEAN["FLYBALL_EMULATOR"] = "gpus=2,model=a40"


def test_without_a_terminal_nothing_is_written():
    result = flyball("record", "--facts", "unasked.facts", *EMULATED)
    tap.equal((result.returncode, (HOME / "unasked.facts").exists()), (64, False), result.stderr)
    tap.contains(result.stdout, "schema: flyball.facts/1")
    tap.contains(result.stderr, "'unasked.facts' was not written: there is no terminal to ask on")


def ask(answer):
    """What becomes of a record at a terminal on which that is answered: status, and what was shown there."""
    master, slave = pty.openpty()
    with tap.Program([FLYBALL, "record", "--facts", "asked.facts", *EMULATED], env=CLEAN, cwd=HOME, stdin=slave,
                     stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        os.write(master, answer.encode())
        status = process.wait(timeout=tap.PATIENCE_S)
    shown = b""
    with contextlib.suppress(OSError):  # the end of what a terminal shows that nobody has open
        while part := os.read(master, 65536):
            shown += part
    os.close(master)
    return status, shown.decode()


def test_a_terminal_is_asked():
    for answer in ("n\n", "\n", "\x04"):
        status, shown = ask(answer)
        tap.equal((status, (HOME / "asked.facts").exists()), (1, False), shown)
        tap.contains(shown, "Write this to 'asked.facts', to be given to others? [y/N]")
        tap.contains(shown, "'asked.facts' was not written")
    tap.equal(ask("y\n")[0], 0)
    tap.equal(json.loads((HOME / "asked.facts").read_text())["schema"], "flyball.facts/1")


def test_files_are_never_overwritten():
    (HOME / "there.facts").write_text("mine\n")
    result = flyball("record", "--facts", "there.facts", "--yes", *EMULATED)
    tap.equal((result.returncode, result.stdout, (HOME / "there.facts").read_text()), (64, "", "mine\n"))
    tap.contains(result.stderr, "'there.facts' exists; name another file, or remove it")


def test_options_that_do_not_go_together():
    for words, piece in ((("--facts", "x", "--interval", "1"), "--facts is one moment"), (("x", "--yes"), "--yes is for --facts"),
                         (("--facts", "x", "--replay", "y"), "--facts is of this machine")):
        result = flyball("record", *words, *EMULATED)
        tap.equal((result.returncode, (HOME / "x").exists()), (64, False))
        tap.contains(result.stderr, piece)


def test_the_same_is_played():
    live = rows(*EMULATED)
    record("played.facts")
    played = rows("--replay", "played.facts")
    for key in ("kind", "index", "name", "driver", "label", "backend", "power_limit_w", "power_limit_min_w", "power_limit_max_w",
                "power_limit_default_w", "energy_counter", "clock_gpu_max_mhz", "persistence_mode", "mig_mode",
                "mig_mode_unavailable", "memory_bytes"):
        tap.equal([row.get(key) for row in played], [row.get(key) for row in live], key)
    tap.equal([(row["uuid"], row["pci"]) for row in played], [("GPU-0", "bus-0"), ("GPU-1", "bus-1"), ("cpu-0", None)])
    for words in (("doctor",), ("power", "get", "--format", "csv")):
        here, there = flyball(*words, *EMULATED), flyball(*words, "--replay", "played.facts")
        tap.equal(there.returncode, here.returncode)
        if words == ("doctor",):
            tap.equal(there.stdout, here.stdout.replace(str(HOME), ""))
            tap.contains(here.stdout.splitlines()[0], "Can measure: yes. Can set limits: ")
    piped = flyball("devices", "--replay", "/dev/stdin", input=(HOME / "played.facts").read_text(), stdin=None)
    tap.contains(piped.stdout, "GPU-1")


def test_nothing_is_measured_on_facts():
    record("still.facts")
    for status, words in ((65, ("monitor",)), (65, ("selftest",)), (65, ("record", "again.jsonl")), (0, ("run", "--", "true"))):
        result = flyball(*words[:1], "--replay", "still.facts", *words[1:])
        tap.equal(result.returncode, status, f"{words}: {result.stderr}")
        tap.contains(result.stderr, "'still.facts' holds facts of a machine, in which nothing moves")


def test_broken_files_are_refused():
    _, facts = record("sound.facts")
    text = (HOME / "sound.facts").read_text()
    for broken, piece in ((text[:len(text) // 2], "expected a JSON document"), (text.replace('"kind": "GPU"', '"kind": "TPU"'), "expected one of 'GPU'"),
                          (text.replace("facts/1", "facts/7"), "bad.facts:2: member 'schema': expected \"flyball.facts/1\"")):
        (HOME / "bad.facts").write_text(broken)
        for command in (("devices",), ("doctor",), ("power", "get")):
            result = flyball(*command, "--replay", "bad.facts")
            tap.equal((result.returncode, result.stdout), (65, ""), result.stderr)
            tap.contains(result.stderr, piece)
            tap.contains(result.stderr, "bad.facts:")
    tap.equal(facts["schema"], "flyball.facts/1")


def test_a_full_disk_is_an_error():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    result = flyball("record", "--facts", "/dev/full", "--yes", *EMULATED)
    tap.equal(result.returncode, 74, result.stderr)


tap.main(globals())
