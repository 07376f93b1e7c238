# SPDX-License-Identifier: Apache-2.0
"""The start-up hook with the real PyTorch: steps of unmodified programs of different shapes, counted exactly.

usage: python_torch.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import socket
import sys
import tempfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
WORK = tempfile.TemporaryDirectory(prefix="flyball-torch-")
HOME = pathlib.Path(WORK.name)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "SLURM", "PMI", "OMPI", "RANK", "WORLD_SIZE", "MASTER_", "XDG_"))}
CLEAN.update(HOME=str(HOME), TMPDIR=str(HOME), XDG_RUNTIME_DIR=str(HOME), OMP_NUM_THREADS="1")
NO_GPU = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME / "root")]

BEGIN = """
import sys
import torch
from torch import nn, optim
model = nn.Linear(4, 2)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,))), batch_size=8)
loss_of = nn.CrossEntropyLoss()
"""
TRAIN = "o.zero_grad(); loss_of(model(x), y).backward(); o.step()"
# Bodies of programs; each call of the optimizer `o` is one step.
SHAPES = {
    "plain loop": f"""
o = optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for x, y in data:
        {TRAIN}
    model.eval()
""",
    "with a schedule and a copy": f"""
import copy
o = optim.Adam(model.parameters())
s = optim.lr_scheduler.StepLR(o, 1)
for _ in range(3):
    for x, y in data:
        {TRAIN}
    s.step()
    kept = copy.deepcopy(o)
""",
    "accumulation": """
o = optim.AdamW(model.parameters())
for i, (x, y) in enumerate(list(data) * 3):
    (loss_of(model(x), y) / 4).backward()
    if i % 4 == 3:
        o.step()
        o.zero_grad()
""",
    "two optimizers": """
critic = nn.Linear(2, 1)
d, o = optim.Adam(critic.parameters()), optim.Adam(model.parameters())
for i, (x, y) in enumerate(list(data) * 3):
    d.zero_grad(); critic(model(x).detach()).mean().backward(); d.step()
    if i % 5 == 4:
        o.zero_grad(); critic(model(x)).mean().backward(); o.step()
""",
    "closure": """
o = optim.LBFGS(model.parameters(), max_iter=3)
x, y = data.dataset.tensors
def closure():
    o.zero_grad(); loss = loss_of(model(x), y); loss.backward()
    return loss
for _ in range(9):
    o.step(closure)
""",
    "scaler": """
o = optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
for x, y in data:
    o.zero_grad(); scaler.scale(loss_of(model(x), y)).backward(); scaler.step(o); scaler.update()
""",
    "loader's workers": f"""
data = torch.utils.data.DataLoader(data.dataset, batch_size=8, num_workers=2)
o = optim.SGD(model.parameters(), lr=0.1)
for x, y in list(data) + list(data):
    {TRAIN}
""",
    "own subclass": f"""
class Mine(optim.SGD):
    def step(self, closure=None):
        return super().step(closure)

o = Mine(model.parameters(), lr=0.1)
for x, y in data:
    {TRAIN}
""",
}

PYTHONS = ("/usr/bin/python3", sys.executable)


def interpreter():
    """A Python that has PyTorch."""
    for python in PYTHONS:
        if os.path.exists(python) and tap.run([python, "-c", "import torch, torch.distributed"], env=CLEAN).returncode == 0:
            return python
    raise tap.Skip("no Python here has PyTorch (Debian: python3-torch)")


def run(words):
    output = HOME / "report.json"
    output.unlink(missing_ok=True)
    done = tap.run([str(FLYBALL), "run", "-v", "--tune", *NO_GPU, "--output", str(output), "--", *words], env=CLEAN, cwd=HOME, timeout=tap.PATIENCE_S)
    tap.equal(done.returncode, 0, done.stderr)
    return done, json.loads(output.read_text())["tune"]


def check(script, words, name):
    """The program counts the steps that it asks for by its own variable, and prints them."""
    path = HOME / "train.py"
    path.write_text(script)
    done, tune = run([*words, str(path)])
    tap.equal(str(tune["steps"]), done.stdout.split()[-1], f"{name}: {done.stdout}{done.stderr}")
    return tune


def self_counting(body):
    """Counts the steps in the text of the program, before they are made."""
    for call in (" o.step(", "scaler.step("):
        body = body.replace(call, call.replace("o.step", "made.append(1) or o.step").replace("scaler", "made.append(1) or scaler"))
    return body


def test_shapes():
    python = interpreter()
    for name, body in SHAPES.items():
        tune = check(BEGIN + "made = []\n" + self_counting(body) + "print(len(made))\n", [python], name)
        tap.contains(tune["hook"], "saw the steps of")


def test_skipped_steps():
    """What a scaler skips because of an overflow is no step."""
    script = BEGIN + """
o = optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
scaler._enabled, made = True, 0
for i in range(12):
    overflows = i % 4 == 3
    made += not overflows
    scaler._maybe_opt_step(o, {"found_inf_per_device": {"cpu": torch.tensor(float(overflows))}})
print(made)
"""
    check(script, [interpreter()], "skipped")


DISTRIBUTED = """
import os, torch, torch.distributed as dist
from torch import nn, optim
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

def train(sharded):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 2))
    o = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1) if sharded else optim.SGD(model.parameters(), lr=0.1)
    made = 0
    for _ in range(11):
        o.zero_grad(); model(torch.randn(8, 4)).sum().backward(); o.step(); made += 1
    if dist.get_rank() == 0:
        print(made)
    dist.destroy_process_group()
"""


def check_torchrun(python):
    """The launcher of PyTorch 1.13 needs redirects under Python 3.11; here those of a rank that does not exist."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [python, "-m", "torch.distributed.run", "--redirects", "9:1", "--tee", "9:1", "--nproc_per_node", "2", "--master_port", str(port)]
    check(DISTRIBUTED + "train(False)\n", words, "torchrun")


def test_two_ranks():
    """Each step counts once, by variables of a launcher and by what the program itself gives its processes."""
    python = interpreter()
    launcher = HOME / "launch.py"
    launcher.write_text("import os, socket, subprocess, sys\n"
                        "with socket.socket() as free:\n    free.bind(('127.0.0.1', 0)); port = free.getsockname()[1]\n"
                        "shared = dict(os.environ, MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), WORLD_SIZE='2')\n"
                        "ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env=dict(shared, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in (1, 0)]\n"
                        "sys.exit(max(rank.wait() for rank in ranks))\n")
    for sharded in (False, True):
        check(DISTRIBUTED + f"train({sharded})\n", [python, str(launcher)], f"two ranks, sharded: {sharded}")
    check_torchrun(python)
    spawned = """
def main(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    train(False)

if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(main, args=(port,), nprocs=2)
"""
    check(DISTRIBUTED + spawned, [python], "spawned")


def test_overhead():
    """Says what the hook costs; how much depends on the machine, so nothing is asked of it."""
    python = interpreter()
    script = ("import time, torch\no = torch.optim.SGD([torch.zeros(1)], lr=0.1)\nfor _ in range(3000): o.step()\n"
              "best = 1e9\nfor _ in range(5):\n    begin = time.process_time()\n    for _ in range(3000): o.step()\n    best = min(best, time.process_time() - begin)\n"
              "print(best / 3000 * 1e6)\n")
    path = HOME / "pace.py"
    path.write_text(script)
    figures = []
    for options in ([], ["--no-hook"]):
        done = tap.run([str(FLYBALL), "run", "--tune", *options, *NO_GPU, "--", python, str(path)], env=CLEAN, cwd=HOME)
        tap.equal(done.returncode, 0, done.stderr)
        figures.append(float(done.stdout.split()[-1]))
    print(f"# a step that does nothing: {figures[0]:.2f} us with the hook, {figures[1]:.2f} us without", flush=True)


tap.main(globals())
