# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a training, for the tests of `flyball run --job`: reaches its target after so many epochs.

usage: job_trainer.py BATCH_SIZE [WORD...]

Words are "name=value": epochs=16:4,32:5 (how many by batch size; never: 0), fail=32:crash,64:memory,128:status9
(in its second epoch), by=lines|one|two (how it reports), stubborn=1 (ignores SIGTERM), out=FILE (a line for each start),
after=SECONDS (it goes on after its last epoch), patience=N (it ends by itself after so many), step=SECONDS (0.01), luck=FAULTS (see `unlucky`), state=FILE (checkpoint: epochs done),
untold=1 (it tells no steps), load=SECONDS (before its first step), every=N (epochs between two reports), typo=STATUS (it fails at once).
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

batch_size = int(sys.argv[1])
words = dict(word.split("=", 1) for word in sys.argv[2:])
steps = int(os.environ.get("FLYBALL_STEP_FD", -1))


def by_batch(text):
    return dict(pair.split(":") for pair in text.split(",") if pair)


def say(text):
    if steps >= 0:
        os.write(steps, text.encode() + b"\n")


def report(epoch, metric):
    if words.get("by", "lines") == "lines":
        say(f"epoch {epoch} metric {metric:g}")
    elif words["by"] == "one":
        print(f"done, accuracy {metric:g}", flush=True)
    else:
        print(f"Epoch {epoch}: loss 0.1, accuracy {metric:g}", flush=True)


def fail(how):
    if how == "crash":
        sys.exit(3)
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "memory":
        sys.exit("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB")
    elif how == "line":
        say("out of memory")
        sys.exit(1)
    elif how.startswith("status"):
        sys.exit(int(how.removeprefix("status")))
    elif how == "preempt":
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    else:
        raise ValueError(how)


def unlucky(epoch):
    """A fault in so many of a hundred epochs, another draw for each trial, attempt and epoch."""
    draw = random.Random(f"{os.environ.get('FLYBALL_TRIAL')} {os.environ.get('FLYBALL_ATTEMPT')} {epoch}")
    for how, percent in by_batch(words.get("luck", "")).items():
        if draw.random() * 100 < float(percent):
            return how
    return None


if "typo" in words:
    sys.exit(int(words["typo"]))
if "out" in words:
    with open(words["out"], "a", encoding="utf-8") as file:
        file.write(" ".join(f"{name}={os.environ.get('FLYBALL_' + name, '-')}" for name in
                            ("TRIAL", "ATTEMPT", "TRY", "BATCH_SIZE", "LOCAL_BATCH_SIZE", "LEARNING_RATE", "SEED", "MAX_EPOCHS")) + "\n")
if "stubborn" in words:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]) as child:
        pathlib.Path(words["stubborn"]).write_text(str(child.pid), encoding="utf-8")
        child.returncode = 0  # it is left behind on purpose
state = pathlib.Path(words["state"]) if "state" in words else None
done = int(state.read_text(encoding="utf-8")) if state and state.exists() else 0
needed = int(by_batch(words.get("epochs", "")).get(str(batch_size), 3))
failure = by_batch(words.get("fail", "")).get(str(batch_size))
time.sleep(float(words.get("load", 0)))
for epoch in range(done + 1, min(int(os.environ.get("FLYBALL_MAX_EPOCHS", 20)), int(words.get("patience", 10**6))) + 1):
    say(f"epoch {epoch}")
    for _ in range(4):
        if "untold" not in words:
            say("")
        time.sleep(float(words.get("step", 0.01)))
    say("epoch end")
    if failure and epoch == 2:
        fail(failure)
    if unlucky(epoch):
        fail(unlucky(epoch))
    if epoch % int(words.get("every", 1)) == 0:
        report(epoch, 0.9 if needed == 0 else min(1, epoch / needed))
    if state:
        state.write_text(str(epoch), encoding="utf-8")
time.sleep(float(words.get("after", 0)))
