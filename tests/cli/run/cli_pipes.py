# SPDX-License-Identifier: Apache-2.0
"""Files that never end and pipes that nobody is at: no command waits for ever, or fills the memory.

usage: cli_pipes.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-pipes-")
HOME = pathlib.Path(WORK.name)
STORE = f"--store={HOME}/store.sqlite"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_"))}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME), FLYBALL_EMULATOR_STATE=str(HOME / "gpus"))
NOBODY = "nobody is at the other end of this pipe"
DEVICE = "it is a device or a socket, no file"

READERS = (
    ["tally", "FILE"],
    ["job", "import", "new", "FILE", STORE],
    ["devices", "--replay", "FILE"],
    ["carbon", "now", "csv:FILE"],
    ["report", "--meters", "FILE", STORE],
    ["sim", "group", "--traces", str(HOME), "--gpu", "v100", "--groups", "FILE"],
)


def pipe():
    """A named pipe that nothing else uses."""
    path = tempfile.mktemp(dir=HOME)
    os.mkfifo(path)
    return path


def command(words, file):
    return [FLYBALL, *(word.replace("FILE", file) for word in words)]


def start(words, file):
    return subprocess.Popen(command(words, file), env=CLEAN, cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def setup():
    tap.run([FLYBALL, "sim", "make-trace", str(HOME)], env=CLEAN)
    os.rename(HOME / "summary_power_made-up.csv", HOME / "summary_power_v100.csv")
    tap.run([FLYBALL, "run", "--job", "none", "--batch-sizes", "8", "--default-batch-size", "8", "--max-epochs", "1", STORE, "--", "true"], env=CLEAN, cwd=HOME)


def test_devices_are_no_files():
    for words in READERS:
        ran = tap.run(command(words, "/dev/zero"), env=CLEAN, cwd=HOME, timeout=tap.PATIENCE_S)
        tap.equal(ran.returncode != 0, True, words)
        tap.contains(ran.stderr, DEVICE, words)


def test_pipes_without_an_other_end():
    """All at once, since each waits for a while."""
    reading = [(words, start(words, pipe())) for words in READERS]
    writing = [start(["run", "--output", "FILE", "--", "echo", "trained"], pipe()),
               start(["sim", "job", "--quiet", "--traces", str(HOME), "--gpu", "v100", "--jobs", str(HOME / "jobs.ini"),
                      "--workload", "made-up", "--tries", "FILE"], pipe())]
    for words, process in reading:
        _, said = process.communicate(timeout=tap.PATIENCE_S)
        tap.equal(process.returncode, 74, (words, said))
        tap.contains(said, NOBODY, words)
    trained, said = writing[0].communicate(timeout=tap.PATIENCE_S)
    tap.equal((writing[0].returncode, trained), (0, "trained\n"), said)
    tap.equal(said.count(NOBODY), 1, said)
    _, said = writing[1].communicate(timeout=tap.PATIENCE_S)
    tap.equal((writing[1].returncode, NOBODY in said), (74, True), said)


def test_run_starts_its_program_without_waiting_for_a_reader():
    path = pipe()
    process = start(["run", "--output", "FILE", "--", "echo", "trained"], path)
    tap.equal(process.stdout.readline(), "trained\n")
    with open(path, encoding="utf-8") as stream:
        report = json.load(stream)
    tap.equal((process.wait(timeout=tap.PATIENCE_S), report["command"]), (0, ["echo", "trained"]))
    process.communicate()


def test_a_writer_that_comes_late_and_stops_between():
    path = pipe()
    process = start(["tally", "FILE"], path)
    time.sleep(0.2)
    with open(path, "w", encoding="utf-8") as stream:
        for piece in ("{", '"schema": "nonsense/1"', "}"):
            stream.write(piece)
            stream.flush()
            time.sleep(0.1)
    _, said = process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(process.returncode, 65, said)
    tap.contains(said, "nonsense/1")


def test_standard_input_is_bounded():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    if tap.sanitizers(FLYBALL):
        raise tap.Skip("a sanitizer's memory has no bound")
    with open("/dev/zero", "rb") as zeros:
        ran = subprocess.run([FLYBALL, "job", "import", "new", "-", STORE], stdin=zeros, stderr=subprocess.PIPE, text=True,
                             env=CLEAN, cwd=HOME, preexec_fn=limit, timeout=tap.PATIENCE_S, check=False)
    tap.equal(ran.returncode != 0, True)
    tap.contains(ran.stderr, "'-': ")


setup()
tap.main(globals())
