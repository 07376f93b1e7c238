# SPDX-License-Identifier: Apache-2.0
"""The Python examples, as a user would run them, on emulated GPUs.

usage: python_examples.py FLYBALL SOURCE_ROOT

They need packages of Debian's, which belong to /usr/bin/python3; an example is skipped where no interpreter has them.
"""

import difflib
import functools
import json
import os
import pathlib
import re
import sys
import tempfile

import tap

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
BUILD = FLYBALL.parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
EMULATOR = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", BUILD / "emulator"))
EXAMPLES = ROOT / "examples" / "python"
STANDINS = ROOT / "tests" / "python_standins"
HOME = tempfile.TemporaryDirectory(prefix="flyball-examples-")
DIFF_MAX = 10
PATIENCE_S = tap.PATIENCE_S
EPOCH = re.compile(r"^epoch (\d+) accuracy ([\d.]+)$", re.MULTILINE)
AGAIN, TRIES = 75, 6
IDLE_W = 40  # of an emulated V100
WORK_J = 30  # two epochs take some hundred joules more than idling


@functools.lru_cache(maxsize=None)
def interpreter(*modules):
    """One that has the modules. Where a broken one is found as well, the other is as good."""
    for candidate in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if os.access(candidate, os.X_OK) and tap.run([candidate, "-c", f"import {', '.join(modules)}"]).returncode == 0:
            return candidate
    raise tap.Skip(f"no Python here has {' and '.join(modules)} (Debian: {' '.join(f'python3-{name}' for name in modules)})")


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("FLYBALL_", "CUDA_", "XDG_", "SLURM", "OMPI_", "PMI_", "LC_", "LANG"))
             and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PYTHONPATH")}
    knobs = pathlib.Path(HOME.name, "knobs")
    knobs.mkdir(mode=0o700, exist_ok=True)
    return {**clean, "HOME": HOME.name, "TMPDIR": HOME.name, "XDG_RUNTIME_DIR": HOME.name, "XDG_STATE_HOME": HOME.name, "PYTHONPATH": str(PACKAGE),
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "FLYBALL_RUNTIME_DIR": str(knobs),
            "FLYBALL_EMULATOR_STATE": f"{HOME.name}/gpus", "FLYBALL_GUARD": str(BUILD / "flyball-guard"),
            "FLYBALL_STORE": f"{HOME.name}/store.sqlite", "EMULATED_WORK": str(BUILD / "examples" / "emulated_work.so"),
            "EMULATED_PACE": "50", **more}


def run(*command, gpus=1, **variables):
    """What comes of a command beside emulated GPUs of its own."""
    whole = [EMULATOR / "flyball-emulator", "run", "--gpus", str(gpus), "--model", "v100", "--any-user", "--", *command]
    return tap.run(list(map(str, whole)), env=environment(**variables), cwd=HOME.name, timeout=PATIENCE_S)


def on_gpu(name, *arguments):
    """The command of an example whose GPU is emulated."""
    python = interpreter("sklearn") if name.startswith("sklearn") else interpreter("torch", "sklearn")
    return [python, EXAMPLES / "on_emulated_gpu.py", EXAMPLES / name, *arguments]


def trained(done, status=0):
    """The epochs that a training printed."""
    tap.equal(done.returncode, status, done.stdout + done.stderr)
    epochs = EPOCH.findall(done.stdout)
    tap.equal([int(epoch) for epoch, _ in epochs], list(range(1, len(epochs) + 1)), done.stdout)
    tap.equal(len(epochs) > 0, True, done.stdout)
    return [float(accuracy) for _, accuracy in epochs]


def test_unmodified():
    done = run(*on_gpu("train.py", "--batch-size", "32"))
    tap.equal(trained(done)[-1] >= 0.97, True, done.stdout)


def test_the_emulated_gpu_works():
    """What it draws beyond idling belongs to the samples that the script trained with."""
    done = run(FLYBALL, "run", "--format", "json", "--", *on_gpu("train.py", "--epochs", "2"), EMULATED_PACE="1")
    trained(done)
    (gpu,) = [row for row in json.loads(done.stderr)["devices"] if row["kind"] == "GPU"]
    tap.equal(gpu["energy_j"] - IDLE_W * gpu["time_s"] > WORK_J, True, gpu)


def changed(before, after):
    lines = (pathlib.Path(EXAMPLES, name).read_text(encoding="utf-8").splitlines() for name in (before, after))
    return [line for line in difflib.ndiff(*lines) if line[:2] in ("- ", "+ ")]


def test_ten_lines():
    """Lines that come and lines that go, all counted."""
    lines = changed("train.py", "train_flyball.py")
    tap.equal(len(lines) <= DIFF_MAX, True, "\n".join(lines))
    tap.equal(any("flyball.Session" in line for line in lines), True)


def submitted(name, **variables):
    """The starts of an example until it has a model, as whoever submits it would make them."""
    for _ in range(TRIES):
        done = run(*on_gpu(name), **variables)
        if done.returncode != AGAIN:
            return done
    raise AssertionError(f"no model after {TRIES} trainings:\n{done.stdout}{done.stderr}")


def history(job):
    done = tap.run([FLYBALL, "job", "history", job, "--format", "json"], env=environment())
    tap.equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)["rows"]


def test_with_lines():
    """A submission is a recurrence whose last trial has what was printed; the first one runs the default."""
    accuracies = trained(submitted("train_flyball.py"))
    (row,) = history("digits")
    tap.equal((row["recurrence"], row["batch_size"], row["outcome"], row["epochs"]), (0, 256, "reached", len(accuracies)), row)
    tap.equal(abs(row["metric"] - accuracies[-1]) < 1e-4, True, row)
    tap.equal(row["energy_j"] is not None, True, row)


def test_disabled_it_is_the_same_training():
    seed = ["--seed", "3", "--epochs", "3"]
    before, after = (trained(run(*on_gpu(name, *seed), FLYBALL_DISABLE="1")) for name in ("train.py", "train_flyball.py"))
    tap.equal(after, before)


def test_two_ranks():
    """Debian's torchrun on Python 3.11 does not go without the options for a rank 9, and takes a free port when told so."""
    torchrun = [interpreter("torch", "sklearn"), "-m", "torch.distributed.run", "--rdzv_backend", "c10d",
                "--rdzv_endpoint", "localhost:0", "--nproc_per_node", "2", "--redirects", "9:1", "--tee", "9:1", EXAMPLES / "on_emulated_gpu.py"]
    done = run(*torchrun, EXAMPLES / "train_ddp.py", "--epochs", "2", gpus=2)
    tap.equal(len(trained(done)), 2, done.stdout)


def check_job(name, job, *modules, **variables):
    interpreter(*modules)
    done = run(*on_gpu(name), **variables)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    rows = history(job)
    tap.equal(rows[-1]["outcome"], "reached", (rows, done.stdout))
    return done


def test_sklearn():
    check_job("sklearn_mlp.py", "digits-sklearn", "sklearn")


def test_skorch():
    check_job("skorch_digits.py", "digits-skorch", "torch", "sklearn", "skorch")


def check_framework(package, job, standins):
    """An example of a framework, with its own package or with a stand-in that calls the same callbacks."""
    path = [STANDINS, PACKAGE] if standins else [PACKAGE]
    if not standins and tap.run([interpreter("torch", "sklearn"), "-c", f"import {package}"]).returncode != 0:
        raise tap.Skip(f"the real {package} is not installed")
    check_job(f"{job}_digits.py", f"digits-{package}", "torch", "sklearn", PYTHONPATH=":".join(map(str, path)))


def test_hugging_face_stand_in():
    check_framework("transformers", "huggingface", True)


def test_hugging_face():
    check_framework("transformers", "huggingface", False)


def test_lightning_stand_in():
    check_framework("lightning", "lightning", True)


def test_lightning():
    check_framework("lightning", "lightning", False)


def test_quick_start():
    """The commands of the page, one after the other in one shell."""
    if interpreter("torch", "sklearn") != "/usr/bin/python3" and tap.run(["/usr/bin/python3", "-c", "import torch, sklearn"]).returncode != 0:
        raise tap.Skip("the page names /usr/bin/python3, which has no torch and sklearn")
    commands = re.findall(r"^    \$ ((?:.*\\\n)*.*)$", (ROOT / "docs/tutorial/python_quickstart.md").read_text(encoding="utf-8"), re.MULTILINE)
    place = environment(PATH=f"{BUILD}:{EMULATOR}:{os.environ['PATH']}", FLYBALL_STORE=f"{HOME.name}/quick.sqlite")
    done = tap.run(["sh", "-exc", "\n".join(commands)], env=place, cwd=EXAMPLES, timeout=PATIENCE_S)
    tap.equal(done.returncode, 0, done.stdout + done.stderr)
    tap.contains(done.stdout, "reached")
    # As many steps as the epochs have batches, told by no line of the script.
    ((batch_size, epochs),) = re.findall(r"batch size (\d+), .* W, (\d+) epochs, .*: target reached", done.stderr)
    tap.contains(done.stderr, f"steps: {-(-1437 // int(batch_size)) * int(epochs)}; the hook in the program's Python saw the steps of SGD")


def test_the_pages_lines_are_the_example():
    page = (ROOT / "docs/tutorial/python_quickstart.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = [line for line in block.splitlines() if line[0] in "+-"]
    told = [line[0] + line[2:] for line in changed("train.py", "train_flyball.py")]
    tap.equal(sorted(shown), sorted(told))


def demonstrated(*arguments):
    """What `make demo-python` shows, in its shortest form; it leaves nothing."""
    interpreter("torch", "sklearn")
    before = set(pathlib.Path("/tmp").glob("flyball-demo-python-*"))
    done = tap.run([ROOT / "scripts" / "demo_python", "--count", "2", "--directory", HOME.name, *arguments],
                   env={**environment(), "BUILD_DIR": str(BUILD)}, cwd=HOME.name, timeout=PATIENCE_S)
    tap.equal((done.returncode, done.stderr), (0, ""), done.stdout)
    tap.equal(set(pathlib.Path("/tmp").glob("flyball-demo-python-*")) - before, set())
    return done.stdout


def test_demo():
    output = demonstrated("--part", "service")
    for piece in ("REAL recurrence  1: ", "REAL recurrence  2: ", "EMUL energy for a model", "default (", "control"):
        tap.contains(output, piece)
    tap.contains(pathlib.Path(HOME.name, "service.svg").read_text(encoding="utf-8"), "</svg>")


def test_demo_of_two_ranks():
    """The demo fails where the two have another batch size or limit."""
    output = demonstrated("--part", "ranks")
    tap.equal(len(re.findall(r"^ +both ranks: batch size \d+, [\d.]+ W$", output, re.MULTILINE)) >= 2, True, output)


tap.main(globals())
