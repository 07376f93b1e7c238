# SPDX-License-Identifier: Apache-2.0
"""What `flyball run --job` makes of a program that runs out of memory, wherever it says so, and what it leaves as it was.

usage: cli_run_job_memory.py FLYBALL SOURCE_ROOT
"""

import hashlib
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

import tap
from power_machine import CLEAN, FLYBALL, HOME, WHERE, gone, machine, wait_for

EXACT = ["--sensor", "exact", "--counter-period-ms", "0"]
STATES = tempfile.TemporaryDirectory(prefix="flyball-run-memory-", dir=tap.quick_place())
STATE = pathlib.Path(STATES.name) / "state"
ROOT = HOME / "root"
CLIMB = pathlib.Path(FLYBALL).parent / "examples" / "policy_plugin.so"
DEFINITION = ["--batch-sizes", "16,32,64", "--default-batch-size", "32", "--target-metric", "1", "--max-epochs", "9", "--objective", "energy",
              "--leave-limits", "--beta", "inf"]
PRELUDE = """
import os, signal, sys, time
batch = int(os.environ["FLYBALL_BATCH_SIZE"])
def put(stream, *pieces):
    for piece in pieces:
        os.write(stream, piece.encode())
        time.sleep(0.002)
def report(epoch, metric):
    os.write(int(os.environ["FLYBALL_STEP_FD"]), f"epoch {epoch} metric {metric}\\n".encode())
"""


def command(script, *options):
    return [FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, *DEFINITION, "--output", str(HOME / "report.json"), *options, "--", sys.executable, "-c",
            PRELUDE + script]


def environment():
    return {**CLEAN, "XDG_STATE_HOME": str(STATE)}


def fresh():
    shutil.rmtree(STATE, ignore_errors=True)


def tries():
    return [(attempt["batch_size"], attempt["end"], attempt["cause"]) for attempt in json.loads((HOME / "report.json").read_text())["recurrence"]["tries"]]


def run(script, *options, **keywords):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords}
    result = subprocess.run(command(script, *options), env=environment(), cwd=HOME, text=True, timeout=tap.PATIENCE_S, check=False, **streams)
    return result, tries()


def on_terminal(script):
    """All three streams on one terminal; what came there."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    text = b""
    with tap.Program(command(script), env=environment(), cwd=HOME, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        while process.poll() is None or select.select([ours], [], [], 0.05)[0]:
            if select.select([ours], [], [], 0.05)[0]:
                text += os.read(ours, 65536)
    os.close(ours)
    os.close(theirs)
    return text.decode().replace("\r\n", "\n"), tries()


SAYS = """
put(2, f"{os.isatty(0)} {os.isatty(1)} {os.isatty(2)}\\n")
for i in range(300):
    os.write(1 + i % 2, f"{i},".encode())
put(STREAM, "Runtime", "Error: CUDA ou", "t of memory. Tried\\n")
sys.exit(7)
"""
NUMBERS = "".join(f"{i}," for i in range(300))
GPU = (32, "out_of_memory", "GPU memory: its output says 'CUDA out of memory', exit status 7")


def test_recognised_on_any_stream():
    """In pieces, on either stream, of any kind; which stay in their order where they are one, and terminals where they were some."""
    with machine(*EXACT, gpus=1):
        for stream in "12":
            fresh()
            script = SAYS.replace("STREAM", stream)
            result, made = run(script)
            tap.equal((result.returncode, made), (7, [GPU]), result.stderr)
            tap.contains(result.stderr, "False False False\n1,3,5,")
            tap.contains(result.stdout, "0,2,4,")
            tap.contains(result.stderr, ": out of memory, GPU memory: its output says ")
        fresh()
        result, made = run(script, stderr=subprocess.STDOUT)
        tap.equal((made, result.stdout.count("False\n" + NUMBERS + "RuntimeError")), ([GPU], 1), result.stdout)
        fresh()
        with open(HOME / "log", "w+", encoding="utf-8") as log:
            log.write("CUDA out of memory, said before\n")
            log.flush()
            result, made = run("sys.exit(3)", stdout=log, stderr=log)
            tap.equal(made, [(32, "not_started", "exit status 3")])
            fresh()
            result, made = run(script, stdout=log, stderr=subprocess.STDOUT)
            tap.equal(made, [GPU])
            tap.contains((HOME / "log").read_text(), NUMBERS)
        fresh()
        text, made = on_terminal(script)
        tap.equal(made, [GPU], text)
        tap.contains(text, "True True True\n" + NUMBERS + "RuntimeError: CUDA out of memory. Tried\n")


def test_what_is_none():
    """A program that ends well, or trained on after it said so, has recovered; a killed one says nothing."""
    log = HOME / "log"
    # What it said has been passed on, so Flyball has read it before the report that follows.
    heard = f"put(2, 'torch.OutOfMemoryError: CUDA out of memory\\n')\nwhile 'CUDA out' not in open({str(log)!r}).read():\n    time.sleep(0.01)\n"
    recovered = heard + "report(1, 0.5)\n"
    with machine(*EXACT, gpus=1):
        for script, expected in ((recovered + "report(2, 1)\nsys.exit(0)", (32, "reached", None)), (recovered + "sys.exit(1)", (32, "crashed", "exit status 1")),
                                 ("put(2, 'lower the batch if you see CUDA out of memory\\n')\nraise ValueError('no')", (32, "not_started", "exit status 1")),
                                 (heard + "raise ValueError('no')", (32, "not_started", "exit status 1")),
                                 ("os.kill(os.getpid(), signal.SIGKILL)", (32, "not_started", "signal 9")), ("sys.exit(137)", (32, "not_started", "exit status 137"))):
            fresh()
            with open(log, "w", encoding="utf-8") as stream:
                _, made = run(script, stderr=stream)
            tap.equal(made, [expected], log.read_text())


def put_tree(path, text):
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_host_memory():
    """Is a crash with its own name: by the program's words, or by the kernel's count in its cgroup."""
    put_tree("proc/self/mountinfo", "42 41 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    counts = ROOT / "sys/fs/cgroup/job/memory.events"
    killed = f"""
root, counts = {str(ROOT)!r}, {str(counts)!r}
os.makedirs(f"{{root}}/proc/{{os.getpid()}}")
open(f"{{root}}/proc/{{os.getpid()}}/cgroup", "w").write("0::/job\\n")
time.sleep(4)
open(counts, "w").write("oom 5\\noom_kill 4\\n")
"""
    kernel = "host memory: the kernel killed a process in its cgroup for want of it, "
    with machine(*EXACT, gpus=1):
        for script, cause in (("raise MemoryError", "host memory: its output says 'MemoryError', exit status 1"),
                              (killed + "os.kill(os.getpid(), signal.SIGKILL)", kernel + "signal 9"), (killed + "sys.exit(1)", kernel + "exit status 1")):
            put_tree("sys/fs/cgroup/job/memory.events", "oom 3\noom_kill 3\n")
            fresh()
            result, made = run(script)
            tap.equal(made, [(32, "crashed", cause)], result.stderr)
    shutil.rmtree(ROOT / "proc")
    shutil.rmtree(ROOT / "sys")


def test_given_up():
    """A batch size that the program rejects again and again is not run any more, and the reason is told; one try says that it explores nothing."""
    fresh()
    crashed = []
    with machine(*EXACT, gpus=1):
        result, made = run("report(1, 1)")
        tap.contains(result.stderr, "one try is allowed, so that batch size 32 alone is run and none of the other 2 is ever explored; allow more with --tries 3")
        for _ in range(5):
            result, made = run("report(1, 1) if batch != 16 else sys.exit(3)", "--tries", "3")
            tap.equal((result.returncode, made[-1][1]), (0, "reached"), result.stderr)
            tap.equal("one try" in result.stderr, False)
            crashed += [cause for size, end, cause in made if (size, end) == (16, "not_started")]
        tap.contains(result.stderr, "; batch size 16 is given up: its trials failed before their first step again and again (exit status 3), while others trained")
        why = subprocess.run([FLYBALL, "job", "why", "job", "--format", "json"], env=environment(), cwd=HOME, capture_output=True, text=True, check=True)
    tap.equal(crashed, ["exit status 3"] * 3)
    (row,) = [row for row in json.loads(why.stdout)["numbers"]["known"] if row["batch_size"] == 16]
    tap.equal((row["crashed"], row["given_up"], row["trials"]), (0, True, 0))


def test_plugin():
    """Decides a live job, which names it by name and content; another content, and a reader without it, are told so."""
    if not CLIMB.exists():
        raise tap.Skip("the example is not built")
    fresh()
    other = HOME / "other.so"
    other.write_bytes(CLIMB.read_bytes() + b"x")

    def show(**more):
        return subprocess.run([FLYBALL, "job", "show", "-v", "job"], env={**environment(), **more}, cwd=HOME, capture_output=True, text=True, check=False)

    # Costs of so short trainings are chance: nothing is compared with the default's.
    options = ["--no-default", "--tries", "3"]
    with machine(*EXACT, gpus=1):
        for _ in range(3):
            result, made = run("report(1, 1)", "--policy", str(CLIMB), *options)
        tap.equal(made, [(16, "reached", None)], result.stderr)
        tap.contains(result.stderr, "the plug-in 'climb' chose batch size 16")
        later = subprocess.run([FLYBALL, "run", "-v", "--job", "job", "-i", "0", *WHERE, "--leave-limits", "--policy", str(CLIMB), "--tries", "3", "--", sys.executable,
                                "-c", PRELUDE + "report(1, 1)"], env=environment(), cwd=HOME, capture_output=True, text=True, check=False)
        tap.contains(later.stderr, "trial 4, batch size ")
        result, _ = run("report(1, 1)", "--policy", str(other), *options)
        tap.contains(result.stderr, "its policy is the plug-in 'climb' with SHA-256 ")
    (body,) = sqlite3.connect(STATE / "flyball" / "store.sqlite").execute("SELECT body FROM event WHERE kind = 'defined'").fetchone()
    tap.equal((json.loads(body)["policy"], json.loads(body)["policy_sha256"]), ("climb", hashlib.sha256(CLIMB.read_bytes()).hexdigest()))
    tap.contains(show().stderr, "no policy 'climb' here; name its plug-in's file in FLYBALL_PLUGINS")
    shown = show(FLYBALL_PLUGINS=str(CLIMB))
    tap.equal((shown.returncode, shown.stderr), (0, ""))
    tap.contains(shown.stdout, "Job 'job', policy climb: 4 recurrences")


def test_plugins_of_others():
    """A service has those that its operator named, and loads no client's path; one that crashes is named before the program starts."""
    if not CLIMB.exists():
        raise tap.Skip("the example is not built")
    fresh()
    socket = HOME / "serve.sock"
    script = "report(1, 1)\nprint('ran')"
    serve = [FLYBALL, "serve", "--listen", f"unix:{socket}", "--store", str(HOME / "served.sqlite")]
    with machine(*EXACT, gpus=1), tap.Program(serve, env={**environment(), "FLYBALL_PLUGINS": str(CLIMB)}, cwd=HOME, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL) as process:
        wait_for(socket.exists, "the service listens")
        result, _ = run(script, "--store", f"unix:{socket}", "--policy", "climb", "--tries", "2")
        tap.contains(result.stderr, "the plug-in 'climb' chose batch size 32")
        for policy, words in (("climbs", "no policy 'climbs' is known here"), (str(CLIMB), "is a path, and no client's path is loaded")):
            result, _ = run(script, "--store", f"unix:{socket}", "--policy", policy)
            tap.equal((result.returncode, result.stdout), (64, ""), result.stderr)
            tap.contains(result.stderr, words)
        process.terminate()
        process.wait()
        bad = pathlib.Path(FLYBALL).parent / "tests" / "plugins" / "bad_loading.so"
        if bad.exists():
            result, _ = run(script, "--policy", str(bad))
            tap.equal((result.returncode, result.stdout), (70, ""), result.stderr)
            tap.contains(result.stderr, f"plug-in '{bad}' crashed in 'loading' (SIGSEGV); ")


def test_killed():
    """A program whose `flyball run` was killed goes on writing where it did."""
    fresh()
    mark = HOME / "mark"
    mark.unlink(missing_ok=True)
    script = f"put(2, f'{{os.getpid()}} {{os.getppid()}}\\n')\nuntil = time.monotonic() + 20\nwhile not os.path.exists({str(mark)!r}) and time.monotonic() < until:\n    time.sleep(0.02)\n" \
             "put(2, 'x' * 200000, 'and on\\n')"
    with machine(*EXACT, gpus=1):
        with tap.Program(command(script, "--tries", "2"), env=environment(), cwd=HOME, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            program, _ = process.stderr.readline().split()
            process.send_signal(signal.SIGKILL)
            process.wait()
            mark.write_text("")
            tap.equal(process.stderr.read(), "x" * 200000 + "and on\n")
        wait_for(lambda: gone(int(program)), "the program has ended")


tap.main(globals())
