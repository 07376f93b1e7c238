# SPDX-License-Identifier: Apache-2.0
"""The commands behind a `$` in README.md and in pages of docs/: each ends well, as a reader would type it.

usage: readme_commands.py FLYBALL SOURCE_ROOT

The commands of a page run one after the other in one shell, in an empty directory. Trainings that would take
the better part of a minute are cut to a few steps.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
EMULATOR = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", FLYBALL.parent / "emulator"))
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "XDG_"))}
PAGES = ("README.md", "docs/howto/pytorch.md", "docs/howto/run.md", "docs/howto/simulator.md", "docs/howto/tuning.md", "docs/tutorial/tutorial.md")
LONG = 200  # steps; `train` takes some 20 ms for each


def commands(page):
    """With their continued lines, and with trainings cut short."""
    found = re.findall(r"^    \$ ((?:.*\\\n)*.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    joined = (re.sub(r"\\\n\s*", "", command) for command in found)
    return [re.sub(r"--steps (\d+)$", lambda steps: f"--steps {min(int(steps[1]), LONG)}", command) for command in joined]


def blocks(page):
    """Its blocks of Python, each without the fence."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run_all(page, home):
    """The shell stops at the first command that fails, and its last line says which one that was."""
    environment = {**CLEAN, "HOME": home, "TMPDIR": home, "FLYBALL_EMULATOR_STATE": f"{home}/state", "FLYBALL_RUNTIME_DIR": f"{home}/knobs",
                   "XDG_RUNTIME_DIR": f"{home}/runtime", "PATH": f"{FLYBALL.parent}:{EMULATOR}:{os.environ['PATH']}"}
    for directory in ("knobs", "runtime"):
        pathlib.Path(home, directory).mkdir(mode=0o700)
    ran = subprocess.run(["sh", "-exc", "\n".join(commands(page))], cwd=home, env=environment, capture_output=True, text=True, timeout=tap.PATIENCE_S,
                         check=False)
    tap.equal(ran.returncode, 0, (page, ran.stderr))
    return ran.stderr


def check(page, files=()):
    if not (EMULATOR / "flyball-emulator").exists():
        raise tap.Skip("the emulator is not built")
    with tempfile.TemporaryDirectory(prefix="flyball-readme-") as home:
        for name, text in files:
            pathlib.Path(home, name).write_text(text, encoding="utf-8")
        return run_all(page, home)


def test_readme():
    check("README.md")


def test_tutorial():
    check("docs/tutorial/tutorial.md")


def test_measuring():
    check("docs/howto/run.md")


def test_tuning():
    check("docs/howto/tuning.md")


def test_simulator():
    check("docs/howto/simulator.md")


# What the page calls "your own", and of PyTorch as much as the page uses: no training, no model.
MINE = """
import time

import torch

model, train_set = torch.Model(), range(64)
done = 0

def train_one_step(batch, optimizer):
    time.sleep(0.01)

def evaluate():
    global done
    done += 1
    return min(1.0, 0.25 * done)
"""
TORCH = """
import types

class Model:
    def parameters(self):
        return []

    def state_dict(self):
        return {}

utils = types.SimpleNamespace(data=types.SimpleNamespace(DataLoader=lambda data, batch_size, shuffle: range(4)))
optim = types.SimpleNamespace(SGD=lambda parameters, lr: None)

def save(state, path):
    open(path, "w").close()
"""


def test_pytorch():
    said = check("docs/howto/pytorch.md", [("train.py", "\n".join([*blocks("docs/howto/pytorch.md"), "main()\n"])), ("mine.py", MINE), ("torch.py", TORCH)])
    tap.contains(said, "target reached")


def test_there_are_some():
    for page in PAGES:
        tap.equal(len(commands(page)) >= 1, True, page)


tap.main(globals())
