# SPDX-License-Identifier: Apache-2.0
"""Steps of programs behind launchers: how they come to flyball run, whose count, and what a program never suffers.

usage: cli_steps.py FLYBALL SOURCE_ROOT
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios

import tap
from power_machine import CLEAN, EMULATOR, FLYBALL, HOME, WHERE, ended, gone, machine, wait_for

ROOT = pathlib.Path(sys.argv[2])
SNIPPET = re.search(r"^def flyball_steps.*?\n    return tell\n", (ROOT / "examples" / "steps.py").read_text(), re.DOTALL | re.MULTILINE).group()

# Says so many steps, by the documented way, and where to when it has come through.
TRAINER = f"""
import os, pathlib, sys
{SNIPPET}
steps, end = int(sys.argv[1]), pathlib.Path(sys.argv[2])
tell = flyball_steps()
tell("epoch 1")
for _ in range(steps):
    tell()
tell("epoch end")
end.write_text(os.environ["FLYBALL_STEPS"].rsplit(":", 2)[0])
"""

# What torchrun, accelerate and conda run do: variables are handed on, descriptors are not.
LAUNCHER = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=True).returncode)"

END = HOME / "end"


def trainer(steps):
    END.unlink(missing_ok=True)
    return [sys.executable, "-c", TRAINER, str(steps), str(END)]


def behind_launchers(program):
    return [sys.executable, "-c", LAUNCHER, sys.executable, "-c", LAUNCHER, *program]


def command(program, *options):
    return [FLYBALL, "run", "-v", "--tune", *WHERE, "--output", str(HOME / "report.json"), *options, "--", *program]


def run(program, *options, around=(), environment=None):
    """The finished process, and what the report says of tuning."""
    (HOME / "report.json").unlink(missing_ok=True)
    result = subprocess.run([*around, *command(program, *options)], env={**CLEAN, **(environment or {})}, cwd=HOME, capture_output=True, text=True,
                            timeout=tap.PATIENCE_S, check=False)
    return result, json.loads((HOME / "report.json").read_text())["tune"]


def may_unshare(*options):
    if shutil.which("unshare") is None or subprocess.run(["unshare", *options, "true"], capture_output=True, check=False).returncode != 0:
        raise tap.Skip(f"no unshare {' '.join(options)} here")


def on_terminal(words, environment=None):
    """What comes out of a terminal of 60 columns, and the status."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
    with tap.Program(words, env={**CLEAN, "TERM": "xterm", **(environment or {})}, cwd=HOME, stdin=terminal, stdout=terminal, stderr=terminal,
                     start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as process:
        os.close(terminal)
        out = b""
        with contextlib.suppress(OSError):
            while piece := os.read(main, 65536):
                out += piece
        os.close(main)
    return process.returncode, out.decode()


STATUS = re.compile("\x1b7\x1b\\[10;1H\x1b\\[K(flyball: [^\x1b]*)\x1b8")


# The first test: those below leave the emulator that the driver starts by itself.
def test_a_line_on_the_terminal():
    """It says what is tried and chosen; the program's own lines come whole, and the screen is given back."""
    options = ["-i", "0", "--energy-tolerance", "1", "--max-slowdown", "20%", "--profile-steps", "15"]

    def train(steps):
        return [str(EMULATOR), "train", "--gpu", "0", "--sample-ms", "0.01", "--step-ms", "3", "--batch-size", "256", "--steps", str(steps)]

    with machine("--sensor", "exact", "--counter-period-ms", "0", "--ideal", gpus=1):
        status, out = on_terminal(command(["sh", "-c", 'echo first; "$@"; echo last', "sh", *train(1500)], *options, "--objective", "energy"))
        said = STATUS.findall(out)
        tap.equal((status, len(said) >= 3, max(map(len, said)) < 60), (0, True, True), out)
        tap.contains(" ".join(said), " of 13 limits measured")
        tap.contains(said[-1], " W chosen for the least energy")
        rest = STATUS.sub("", out).split("\x1b[r")
        tap.equal((len(rest), "\r\nlast\r\n" in rest[0], "\x1b[1;9r" in rest[0], "tuning: " in rest[1]), (2, True, True, True), out)
        status, out = on_terminal([FLYBALL, "profile", *WHERE, *options, "--", *train(150)])
        said = STATUS.findall(out)
        tap.equal((status, len(said) >= 2, out.count("\x1b[r")), (75, True, 1), out)
        for environment, more in (({"TERM": "dumb"}, []), ({"NO_COLOR": "1"}, []), ({}, ["--quiet"])):
            status, out = on_terminal(command(["sleep", "0.3"], *options, *more), environment)
            tap.equal((status, "\x1b" in out), (0, False), out)


def test_the_documented_snippet():
    """One text, wherever it stands."""
    for page in ("docs/howto/steps.md", "docs/howto/pytorch.md"):
        tap.contains((ROOT / page).read_text(), SNIPPET.rstrip(), page)


def test_behind_launchers():
    result, said = run(behind_launchers(trainer(300)))
    tap.equal((result.returncode, said["steps"]), (0, 300), result.stderr)
    tap.equal(os.path.exists(END.read_text()), False, "nothing is left")


def test_another_file_of_that_number():
    """The trainer's own file 3 stays as it is, and so does one that took the descriptor's place."""
    opens = ("import os, pathlib, sys, subprocess\n"
             "file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)\n"
             "number = int(os.environ['FLYBALL_STEP_FD'])\n"
             "os.dup2(file, number)\n"
             "sys.exit(subprocess.run(sys.argv[2:], pass_fds=[number]).returncode)")
    precious = HOME / "precious"
    result, said = run([sys.executable, "-c", opens, str(precious), *trainer(50)])
    tap.equal((result.returncode, said["steps"], precious.read_text()), (0, 50, ""), result.stderr)


def test_variables_that_mean_nothing():
    """Whatever they hold, the function does nothing, and keeps its hands off other files."""
    other = HOME / "other"
    with open(other, "wb") as file:
        for steps in ("", ":", "::", "/", "/dev/null:1:2", f"{other}:1:2", "x" * 9999, "/\udcff:1:2", f"{HOME}:{os.stat(HOME).st_dev}:{os.stat(HOME).st_ino}"):
            for number in (str(file.fileno()), "-1", "", "99999999999999999999", "3x", "\u00b2", "\u0663"):
                os.environ.update(FLYBALL_STEPS=steps, FLYBALL_STEP_FD=number)
                names = {"os": os}
                exec(SNIPPET, names)
                names["flyball_steps"]()("epoch 1")
    del os.environ["FLYBALL_STEPS"], os.environ["FLYBALL_STEP_FD"]
    tap.equal(other.read_bytes(), b"")


def test_two_ranks():
    """One rank's steps are counted, once, whoever is first."""
    starts = ("import os, subprocess, sys\n"
              "ranks = [subprocess.Popen(sys.argv[2:], env={**os.environ, 'RANK': rank, 'WORLD_SIZE': '2', 'TORCHELASTIC_RUN_ID': 'none'})\n"
              "         for rank in sys.argv[1]]\n"
              "sys.exit(max(rank.wait() for rank in ranks))")
    for order in ("01", "10"):
        result, said = run([sys.executable, "-c", starts, order, *trainer(400)])
        tap.equal((result.returncode, said["steps"]), (0, 400), order + result.stderr)
    restarted = f"{sys.executable} -c \"$0\" 10 \"$@\" && exec {sys.executable} -c \"$0\" 10 \"$@\""
    result, said = run(["sh", "-c", restarted, starts, *trainer(100)])
    tap.equal((result.returncode, said["steps"]), (0, 200), "the launcher started all of them again" + result.stderr)


def test_shells_and_old_snippets():
    old = "import os\nsteps = int(os.environ.get('FLYBALL_STEP_FD', -1))\nfor _ in range(7):\n    os.write(steps, b'\\n')"
    for program in (["sh", "-c", "for step in 1 2 3 4 5 6 7; do echo step $step >&$FLYBALL_STEP_FD; done"], [sys.executable, "-c", old]):
        result, said = run(program)
        tap.equal((result.returncode, said["steps"]), (0, 7), result.stderr)


def test_stopped_and_killed():
    """The program goes on to its end; a reader that goes on has all of it."""
    slow = TRAINER.replace("    tell()\n", "    tell()\n    time.sleep(0.001)\n").replace("import os", "import time, os")
    for number, expected in ((signal.SIGSTOP, 300), (signal.SIGKILL, None)):
        END.unlink(missing_ok=True)
        script = f"kill -{int(number)} $PPID; echo $$; exec \"$@\""
        with tap.Program(command(["sh", "-c", script, "sh", sys.executable, "-c", slow, "300", str(END)]), env=CLEAN, cwd=HOME,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                pid = int(process.stdout.readline())
                wait_for(lambda pid=pid: gone(pid), "the program has ended")
                tap.equal(END.exists(), True, number)
                if expected is not None:
                    process.send_signal(signal.SIGCONT)
                    ended(process)
                    tap.equal(json.loads((HOME / "report.json").read_text())["tune"]["steps"], expected)
            finally:
                process.kill()
    run(["true"])
    tap.equal(os.path.exists(END.read_text()), False, "what the killed one left is swept")


def test_in_a_container():
    """Elsewhere there is one sentence and no steps; with memory in common, steps come through."""
    may_unshare("--mount", "--pid", "--fork")
    result, said = run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", "mount -t tmpfs none /dev/shm && exec \"$@\"", "sh",
                        *behind_launchers(trainer(30))])
    tap.equal((result.returncode, said["steps"], END.exists()), (0, 0, True), result.stderr)
    tap.equal(result.stderr.count("in a container or on another node"), 1, result.stderr)
    result, said = run(["unshare", "--pid", "--fork", *behind_launchers(trainer(30))])
    tap.equal((result.returncode, said["steps"]), (0, 30), result.stderr)


def test_no_room_in_memory():
    """A full /dev/shm takes none of the room that was reserved; a read-only one is not used."""
    may_unshare("--mount")
    fills = "mount -t tmpfs -o size=1m none /dev/shm && exec \"$@\""
    full = ["sh", "-c", "head -c 2m /dev/zero > /dev/shm/full 2>/dev/null; exec \"$@\"", "sh", *behind_launchers(trainer(2000))]
    result, said = run(full, around=["unshare", "--mount", "sh", "-c", fills, "sh"])
    tap.equal((result.returncode, said["steps"]), (0, 2000), result.stderr)
    for options in ("ro", "size=32k"):
        fills = f"mount -t tmpfs -o {options} none /dev/shm && exec \"$@\""
        result, said = run(behind_launchers(trainer(40)), around=["unshare", "--mount", "sh", "-c", fills, "sh"])
        tap.equal((result.returncode, said["steps"]), (0, 40), result.stderr)


def test_flood():
    """Memory and time are bounded, and one sentence says so; the program's own end is its own matter."""
    result, said = run(["sh", "-c", "timeout 1 yes >&$FLYBALL_STEP_FD; exit 3"])
    tap.equal((result.returncode, said["state"]), (3, "off"), result.stderr)
    tap.equal(result.stderr.count("more lines than any training has steps"), 1, result.stderr)
    document = json.loads((HOME / "report.json").read_text())
    tap.equal(document["own"]["cpu_s"] < 5, True, document["own"])


def test_another_user():
    """Whoever may not open the file says no steps, and trains."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise tap.Skip("not root, or no setpriv")
    HOME.chmod(0o755)
    shared = HOME / "shared"
    shared.mkdir(mode=0o777, exist_ok=True)
    shared.chmod(0o777)
    program = [sys.executable, "-c", LAUNCHER, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", TRAINER, "20", str(shared / "end")]
    result, said = run(program)
    tap.equal((result.returncode, said["steps"], (shared / "end").exists()), (0, 0, True), result.stderr)
    result, said = run(program[3:])  # without a launcher the descriptor is there
    tap.equal((result.returncode, said["steps"]), (0, 20), result.stderr)


tap.main(globals())
