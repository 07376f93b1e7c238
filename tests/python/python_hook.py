# SPDX-License-Identifier: Apache-2.0
"""The start-up hook for Python, with a small stand-in for PyTorch: what it counts, and that it never shows.

usage: python_hook.py FLYBALL SOURCE_ROOT
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

FLYBALL = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
HOOK = ROOT / "python" / "hook"
WORK = tempfile.TemporaryDirectory(prefix="flyball-hook-")
HOME = pathlib.Path(WORK.name)
PACKAGES = HOME / "packages"
LINES = HOME / "lines"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("FLYBALL_", "LD_LIBRARY", "PYTHON", "SLURM", "PMI", "OMPI", "RANK", "XDG_"))}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME), PYTHONDONTWRITEBYTECODE="1")
NO_GPU = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME / "root")]

# What the hook touches of PyTorch: an optimizer's class gets a wrapper when the first one is made.
OPTIMIZER = '''
import functools


class Optimizer:
    def __init__(self, *_):
        self.count = 0
        self.PREPARE()

    def PREPARE(self):
        def wrap(step):
            @functools.wraps(step)
            def wrapper(*args, **kwargs):
                type(args[0]).layers = getattr(type(args[0]), "layers", 0) + 1
                return step(*args, **kwargs)
            return wrapper

        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = wrap(self.__class__.step)
            self.__class__.step.hooked = True


class SGD(Optimizer):
    def step(self, closure=None):
        self.count += 1
        return closure() if closure else None


class Adam(Optimizer):
    def step(self, closure=None):
        self.count += 1


class Parent(Optimizer):
    def step(self):
        self.count += 1


class Child(Parent):
    def step(self):
        super().step()


class Sharded(Optimizer):
    """Has an optimizer of its own, as ZeroRedundancyOptimizer."""

    def __init__(self, *_):
        super().__init__()
        self.inner = SGD()

    def step(self):
        self.count += 1
        self.inner.step()


class Failing(Optimizer):
    def step(self):
        self.count += 1
        raise MemoryError("out of memory")
'''

GENERATIONS = {"old": "_hook_for_profile", "new": "_patch_step_function"}


def make_torch(place, prepare, optimizer=OPTIMIZER):
    optim = place / "torch" / "optim"
    optim.mkdir(parents=True)
    (place / "torch" / "__init__.py").write_text("from torch import optim\n")
    (optim / "__init__.py").write_text("from torch.optim.optimizer import *\n")
    (optim / "optimizer.py").write_text(optimizer.replace("PREPARE", prepare))
    return place


for generation, prepare in GENERATIONS.items():
    make_torch(PACKAGES / generation, prepare)


def python(script, *arguments, interpreter=(sys.executable,), path=(PACKAGES / "old",), **environment):
    """Runs it with the hook, as `flyball run` does. Returns the lines that it wrote, without senders' numbers."""
    LINES.write_bytes(b"")
    facts = LINES.stat()
    environment = {"PYTHONPATH": ":".join(map(str, (HOOK, *path))), "FLYBALL_STEPS": f"{LINES}:{facts.st_dev}:{facts.st_ino}", **environment}
    done = tap.run([*interpreter, "-c", script, *map(str, arguments)], env={**CLEAN, **environment}, cwd=HOME)
    return done, [re.sub(r"pid \d+ ", "", line) for line in LINES.read_text().splitlines()]


def steps(lines, start="hook"):
    return sum(line.strip() == start for line in lines)


def check_counted(script, counted, **options):
    """Runs a script that prints its optimizer's own count, and compares that with what was counted."""
    for generation in GENERATIONS:
        done, lines = python(script, path=(PACKAGES / generation,), **options)
        tap.equal((done.returncode, done.stderr, done.stdout.strip(), steps(lines)), (0, "", str(counted), counted), f"{generation}: {lines}")


def test_plain_loop():
    check_counted("import torch\no = torch.optim.SGD()\nfor _ in range(17): o.step()\nprint(o.count)", 17)


def test_closure():
    check_counted("import torch\no = torch.optim.SGD()\nassert [o.step(lambda: 7) for _ in range(5)] == [7] * 5\nprint(o.count)", 5)


def test_wrappers_of_pytorch():
    """Its own wrapper stays the only one however many optimizers are made, and takes ours along."""
    check_counted("import torch\nfor _ in range(9): o = torch.optim.SGD()\no.step()\nassert torch.optim.SGD.layers == 1\n"
                  "assert torch.optim.SGD.step.hooked and not hasattr(torch.optim.SGD.step, '__wrapped__')\nprint(o.count)", 1)


def test_compiled():
    """What torch.compile does to optimizers: it takes off a marked wrapper, and marks what is left."""
    check_counted("import torch\nS = torch.optim.SGD\no = S()\ninner = getattr(S.step, '__wrapped__', None)\nif inner: S.step = inner\nS.step.hooked = True\n"
                  "p = S()\nfor _ in range(6): o.step()\nprint(o.count)", 6)


def test_steps_in_steps():
    check_counted("import torch\no = torch.optim.Child()\nfor _ in range(8): o.step()\nprint(o.count)", 8)
    check_counted("import torch\no = torch.optim.Sharded()\nfor _ in range(8): o.step()\nprint(o.count)", 8)


def test_two_optimizers():
    gan = ("import torch\nd, g = torch.optim.Adam(), torch.optim.SGD()\nfor _ in range({generator}):\n"
           "    for _ in range({critic}): d.step()\n    g.step()\nprint(g.count)")
    for generator, critic in ((7, 1), (1, 1), (1, 5), (2, 5), (9, 5), (40, 3), (3, 100)):
        check_counted(gan.format(generator=generator, critic=critic), generator)


def test_one_after_the_other():
    check_counted("import torch\ncount = 0\nfor n in (20, 30, 40):\n    o = torch.optim.SGD()\n    keep = [o]\n    for _ in range(n): o.step()\n    count += o.count\nprint(count)", 90)
    check_counted("import torch\nos = []\nfor n in (20, 30, 40):\n    o = torch.optim.SGD()\n    os.append(o)\n    for _ in range(n): o.step()\nprint(sum(o.count for o in os))", 90)


def test_one_that_never_steps():
    check_counted("import torch\no, unused = torch.optim.SGD(), torch.optim.Adam()\nfor _ in range(30): o.step()\nprint(o.count)", 30)
    check_counted("import torch\no, unused = torch.optim.SGD(), torch.optim.Adam()\nfor _ in range(900): o.step()\nprint(o.count)", 900)


def test_a_step_that_fails():
    """The program gets its own exception, and the next steps count."""
    check_counted("import torch\nf, o = torch.optim.Failing(), torch.optim.SGD()\ntry: f.step()\nexcept MemoryError as e: assert str(e) == 'out of memory'\n"
                  "del f\nfor _ in range(6): o.step()\nprint(o.count)", 6)


def test_ranks():
    script = "import torch\no = torch.optim.SGD()\n{}\nfor _ in range(3): o.step()"
    for variables in ({"RANK": "5"}, {"OMPI_COMM_WORLD_RANK": "5"}, {"PMI_RANK": "5", "SLURM_PROCID": "0"}, {"SLURM_PROCID": "5"}):
        done, lines = python(script.format(""), **variables)
        tap.equal((done.stderr, steps(lines, "rank 5 hook")), ("", 3), lines)
    late = "import types\nd = sys.modules['torch.distributed'] = types.ModuleType('d')\nd.is_available = d.is_initialized = lambda: True\nd.get_rank = lambda: 2"
    done, lines = python("import sys\n" + script.format(late), RANK="5")
    tap.equal((done.stderr, steps(lines, "rank 2 hook")), ("", 3), lines)


def test_children():
    """Forked, spawned and forkserver children are hooked, and count for themselves; so do threads."""
    path = HOME / "children.py"
    path.write_text("import multiprocessing, os, sys, threading, torch\n"
                    "def train(n):\n    o = torch.optim.SGD()\n    for _ in range(n): o.step()\n"
                    "if __name__ == '__main__':\n    train(5)\n    context = multiprocessing.get_context(sys.argv[1])\n"
                    "    child = context.Process(target=train, args=(7,))\n    child.start(); child.join()\n    assert child.exitcode == 0\n")
    for way in ("fork", "spawn", "forkserver"):
        LINES.write_bytes(b"")
        facts = LINES.stat()
        environment = {"PYTHONPATH": f"{HOOK}:{PACKAGES / 'old'}", "FLYBALL_STEPS": f"{LINES}:{facts.st_dev}:{facts.st_ino}"}
        done = tap.run([sys.executable, str(path), way], env={**CLEAN, **environment}, cwd=HOME)
        by_process = collections.Counter(re.findall(r"^(pid \d+) hook $", LINES.read_text(), re.MULTILINE))
        tap.equal((done.returncode, done.stderr, sorted(by_process.values())), (0, "", [5, 7]), way)


def test_a_hidden_sitecustomize():
    """It runs, under its own name, and finds itself there; one that fails, fails as it would have."""
    hidden = HOME / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nmark = __file__\nassert sys.modules[__name__].mark == __file__\n")
    done, lines = python("import sitecustomize\nprint(sitecustomize.mark)", path=(hidden,))
    tap.equal((done.returncode, done.stderr, done.stdout.strip()), (0, "", str(hidden / "sitecustomize.py")))
    package = HOME / "package" / "sitecustomize"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from sitecustomize import part\nfrom . import part as again\nassert part is again\n")
    (package / "part.py").write_text("")
    done, lines = python("import sitecustomize.part\nprint(sitecustomize.__file__)", path=(package.parent,))
    tap.equal((done.returncode, done.stderr, done.stdout.strip()), (0, "", str(package / "__init__.py")))
    (hidden / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    plain = tap.run([sys.executable, "-c", "print(1)"], env={**CLEAN, "PYTHONPATH": str(hidden)})
    done, lines = python("print(1)", path=(hidden,))
    tap.equal((done.returncode, done.stdout, done.stderr), (plain.returncode, plain.stdout, plain.stderr))


def test_nothing_shows():
    """Without FLYBALL_STEPS, and for a program that does not train: no descriptor, no thread and no large module."""
    small = {"flyball_hook", "flyball_hook.lines", "importlib", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.machinery", "warnings"}
    script = "import sys\nnames = ' '.join(sys.modules)\nimport os, threading\nprint(len(os.listdir('/proc/self/fd')), threading.active_count(), names)"
    plain = tap.run([sys.executable, "-c", script], env={**CLEAN, "PYTHONPATH": str(PACKAGES / "old")})
    done, lines = python(script)
    before, now = plain.stdout.split(), done.stdout.split()
    tap.equal((done.stderr, now[:2], set(now[2:]) - set(before[2:]) - small - {"sitecustomize"}, lines), ("", before[:2], set(), ["hook saw python"]))
    done, lines = python("import torch\no = torch.optim.SGD()\nfor _ in range(3): o.step()\nprint(o.count)", FLYBALL_STEPS="")
    tap.equal((done.stderr, done.stdout, lines), ("", "3\n", []))
    for place in ("/dev/null:1:2", "/nowhere:1:2", "nonsense", ":", "::"):
        done, lines = python("import torch\no = torch.optim.SGD()\nfor _ in range(3): o.step()\nprint(o.count)", FLYBALL_STEPS=place)
        tap.equal((done.stderr, done.stdout), ("", "3\n"), place)


def test_a_failure_inside():
    """Another PyTorch than any known: the program runs on, and the failure is told once."""
    strange = make_torch(HOME / "strange", "of_tomorrow")
    done, lines = python("import torch\no = torch.optim.SGD()\nfor _ in range(3): o.step()\nprint(o.count)", path=(strange,))
    tap.equal((done.returncode, done.stderr, done.stdout, steps(lines), sum(" failed " in line for line in lines)), (0, "", "3\n", 0, 1), lines)
    done, lines = python("import torch\no = torch.optim.SGD()\nimport flyball_hook\nflyball_hook.lines.tell = None\n"
                         "for _ in range(3): o.step()\nprint(o.count)")
    failed = [re.sub(r"\d+", "N", line) for line in lines if "failed" in line]
    tap.equal((done.stderr, done.stdout, failed), ("", "3\n", ["hook failed TypeError: 'NoneType' object is not callable at line N of optimizers.py"]), lines)


def test_an_error_of_the_program():
    """A module that fails to import fails as without the hook."""
    broken = HOME / "broken"
    (broken / "torch" / "optim").mkdir(parents=True)
    for name in ("torch/__init__.py", "torch/optim/__init__.py"):
        (broken / name).write_text("")
    (broken / "torch" / "optim" / "optimizer.py").write_text("1 / 0\n")
    done, lines = python("try:\n    import torch.optim.optimizer\nexcept ZeroDivisionError: print('mine')", path=(broken,))
    tap.equal((done.stderr, done.stdout), ("", "mine\n"), lines)


def test_other_frameworks():
    for name in ("jax", "ray", "tensorflow"):
        (HOME / "other" / name).mkdir(parents=True)
        (HOME / "other" / name / "__init__.py").write_text("")
        done, lines = python(f"import {name}", path=(HOME / "other",))
        tap.equal((done.stderr, lines), ("", ["hook saw python", f"hook saw {name}"]))


DEEPSPEED = '''
class DeepSpeedEngine:
    def __init__(self, optimizer):
        self.optimizer, self.micro_steps, self.global_steps, self.skipped_steps = optimizer, 0, 0, 0

    def _take_model_step(self, lr_kwargs, block_eigenvalue={}):
        if self.global_steps % 5 == 4:
            self.skipped_steps += 1
        else:
            self.optimizer.step()
        self.global_steps += 1

    def step(self, lr_kwargs=None):
        self.micro_steps += 1
        if self.micro_steps % 4 == 0:
            self._take_model_step(lr_kwargs)
'''


def test_an_engine():
    """An engine's steps are those of its optimizer: neither micro-batches nor skipped ones."""
    runtime = HOME / "engine" / "deepspeed" / "runtime"
    runtime.mkdir(parents=True)
    (runtime.parent / "__init__.py").write_text("")
    (runtime / "__init__.py").write_text("")
    (runtime / "engine.py").write_text(DEEPSPEED)
    done, lines = python("import torch\nfrom deepspeed.runtime.engine import DeepSpeedEngine\ne = DeepSpeedEngine(torch.optim.SGD())\n"
                         "for _ in range(40): e.step()\nprint(e.optimizer.count)", path=(PACKAGES / "old", HOME / "engine"))
    tap.equal((done.stderr, done.stdout, steps(lines)), ("", "8\n", 8), lines)


def interpreters():
    """Other Pythons of this machine, by their version."""
    places = [pathlib.Path(directory) for directory in ("/usr/bin", "/usr/local/bin")]
    if shutil.which("pyenv"):
        root = pathlib.Path(tap.run(["pyenv", "root"]).stdout.strip())
        places += [path / "bin" for path in (root / "versions").iterdir()] if (root / "versions").is_dir() else []
    found = {}
    for path in [place / name for place in places for name in ("python2.7", *(f"python3.{minor}" for minor in range(6, 15)))]:
        if path.exists():
            found[path.name] = path
    return found


def test_other_pythons():
    """Silent in each Python that is here, counted from 3.7 on; the hidden module runs in each of them."""
    hidden = HOME / "everywhere"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import os\nos.environ['HIDDEN'] = 'ran'\n")
    for name, path in interpreters().items():
        done, lines = python("import os\nprint(os.environ['HIDDEN'])", interpreter=(str(path),), path=(hidden,))
        tap.equal((done.returncode, done.stdout, done.stderr, lines), (0, "ran\n", "", ["hook saw python"] if name != "python2.7" else []), name)
        if name == "python2.7":
            continue
        done, lines = python("import torch\no = torch.optim.SGD()\nfor _ in range(3): o.step()\nprint(o.count)", interpreter=(str(path),))
        tap.equal((done.stdout, done.stderr, steps(lines)), ("3\n", "", 3), name)


def flyball(script, *options, way="--tune", words=(), interpreter=(sys.executable,), **environment):
    """What the report says of a program of `flyball run`."""
    output = HOME / "report.json"
    output.unlink(missing_ok=True)
    done = tap.run([str(FLYBALL), "run", "-v", way, *options, *NO_GPU, "--output", str(output), "--", *interpreter, "-c", script, *words],
                   env={**CLEAN, "PYTHONPATH": str(PACKAGES / "old"), **environment}, cwd=HOME)
    tap.equal(done.returncode, 0, done.stderr)
    return done, json.loads(output.read_text())["tune" if way == "--tune" else "recurrence"]


TRAIN = "import torch\no = torch.optim.SGD()\nfor _ in range(12): o.step()\n"


def test_the_report():
    """What was hooked, or what the hook saw and which two lines tell the steps."""
    two = "'tuner = flyball.Tuner()' and 'for batch in tuner.steps(loader):'"
    (HOME / "jaxes" / "jax").mkdir(parents=True)
    (HOME / "jaxes" / "jax" / "__init__.py").write_text("")
    for script, interpreter, more, counted, said in (
        (TRAIN, (), {}, 12, "saw the steps of SGD"),
        ("import torch", (), {}, 0, "no optimizer of torch.optim made a step"),
        ("import os, torch\na, b = torch.optim.SGD(), torch.optim.SGD()\nfor _ in range(4): a.step()\nos._exit(0)\n", (), {}, 0,
         "saw steps of SGD, which wait until every optimizer of the program has stepped"),
        ("", (), {}, 0, "imported neither PyTorch nor another framework"),
        ("import jax", (), {"PYTHONPATH": str(HOME / "jaxes")}, 0, "the program uses JAX"),
        ("import sys; sys.path[0] = sys.argv[1]\n" + TRAIN, ("-E",), {}, 0, "-I, -E or -S"),
        ("import sys; sys.path[0] = sys.argv[1]\n" + TRAIN, ("-I",), {}, 0, "-I, -E or -S"),
        ("import sys; sys.path[0] = sys.argv[1]\n" + TRAIN, ("-S",), {}, 0, "-I, -E or -S"),
        (TRAIN, (), {"FLYBALL_PYTHON_HOOK": str(HOME / "none")}, 0, f"'{HOME / 'none'}' has no sitecustomize.py"),
    ):
        done, tune = flyball(script, interpreter=(sys.executable, *interpreter), words=[str(PACKAGES / "old")], **more)
        tap.equal(tune["steps"], counted, done.stderr)
        tap.contains(tune["hook"], said)
        tap.contains(done.stderr, said)
        tap.equal((two in done.stderr, counted == 0 and two not in done.stderr and "PYTHON_HOOK" not in said and "none" not in said), (counted == 0 and "none" not in said, False))


def test_left_out():
    done, tune = flyball(TRAIN, "--no-hook")
    tap.equal((tune["steps"], tune["hook"]), (0, None), done.stderr)
    tap.contains(done.stderr, "FLYBALL_STEPS")
    done, tune = flyball("import os\nassert os.environ['PYTHONPATH'] == os.environ['WANTED']", "--no-hook", WANTED=str(PACKAGES / "old"))
    done, tune = flyball("import os, sys\nassert os.environ['PYTHONPATH'].endswith('/python/hook:' + os.environ['WANTED'])\nassert '' not in sys.path[1:]",
                         WANTED=str(PACKAGES / "old"))
    done, tune = flyball("import os, sys\nassert os.environ['PYTHONPATH'].endswith('/python/hook'), os.environ['PYTHONPATH']\nassert '' not in sys.path[1:]", PYTHONPATH="")
    done = tap.run([str(FLYBALL), "run", "--no-hook", *NO_GPU, "--", "true"], env=CLEAN, cwd=HOME)
    tap.equal((done.returncode, "--no-hook is about --tune" in done.stderr), (64, True), done.stderr)
    for option in ("--hook", "--no-hook=no"):
        done = tap.run([str(FLYBALL), "run", option, *NO_GPU, "--", "true"], env=CLEAN, cwd=HOME)
        tap.equal((done.returncode, "--hook finds steps for --tune and --job, and neither is given: add --tune" in done.stderr), (64, True), done.stderr)
    done = tap.run([str(FLYBALL), "run", *NO_GPU, "--", sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"], env=CLEAN, cwd=HOME)
    tap.equal(done.stdout, "None\n", "a plain run has no hook")


SNIPPET = re.search(r"^def flyball_steps.*?\n    return tell\n", (ROOT / "docs/howto/steps.md").read_text(), re.DOTALL | re.MULTILINE).group()


def test_a_program_with_lines():
    """Its own lines count, and the hook's do not, wherever they stand in the loop and whoever they name."""
    begin = f"import os, torch\n{SNIPPET}\ntell = flyball_steps()\no = torch.optim.SGD()\n"
    loops = {
        "before": "for _ in range(12): tell(); o.step()\n",
        "after": "for _ in range(12): o.step(); tell()\n",
        "fewer": "for i in range(24):\n    if i % 2 == 0: tell()\n    o.step()\n",
        "nobody": "for _ in range(12): os.write(int(os.environ['FLYBALL_STEP_FD']), b'\\n'); o.step()\n",
        "nobody, after": "for _ in range(12): o.step(); os.write(int(os.environ['FLYBALL_STEP_FD']), b'step\\n')\n",
        "epochs alone": "tell('epoch 1')\nfor _ in range(12): o.step()\ntell('epoch end')\n",
        "rank": "os.environ['RANK'] = '0'\nfor _ in range(12): tell(); o.step()\n",
    }
    for name, loop in loops.items():
        done, tune = flyball(begin + loop)
        tap.equal(tune["steps"], 12, f"{name}: {done.stderr}")


def test_a_program_with_a_tuner():
    """The library's own lines count, the hook's do not."""
    package = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", FLYBALL.parent / "python"))
    path = f"{package}:{PACKAGES / 'old'}"
    if tap.run([sys.executable, "-c", "import flyball; flyball.Tuner"], env={**CLEAN, "PYTHONPATH": path}).returncode != 0:
        raise tap.Skip("the Python package is not built")
    script = "import flyball, torch\no = torch.optim.SGD()\nwith flyball.Tuner() as tuner:\n    for _ in tuner.steps(range(12)): o.step()\n"
    done, tune = flyball(script, PYTHONPATH=path)
    tap.equal((tune["steps"], tune["hook"]), (12, None), done.stderr)


def test_a_frozen_module():
    """A loader that is a class stays as it was."""
    done, lines = python("import sys, types\nimport flyball_hook\nfrom importlib.machinery import ModuleSpec\nclass Loader:\n    @staticmethod\n"
                         "    def create_module(spec): return None\n    @staticmethod\n    def exec_module(module): module.seen = True\n"
                         "class Finder:\n    def find_spec(self, name, path=None, target=None):\n        return ModuleSpec(name, Loader) if name.startswith('frozen') else None\n"
                         "sys.meta_path.append(Finder())\nown, hooked = Loader.exec_module, []\nsys.meta_path.insert(0, flyball_hook.Finder({'frozen_a': hooked.append}))\n"
                         "import frozen_a, frozen_b\nprint(hooked == [frozen_a], frozen_b.seen, Loader.exec_module is own)")
    tap.equal((done.stderr, done.stdout), ("", "True True True\n"), lines)


def test_jobs():
    """Steps of a try come from the hook, its metric from the program."""
    script = TRAIN + f"import os, time\n{SNIPPET}\nflyball_steps()('epoch 1 metric 0.9')\n"
    options = ["--store", str(HOME / "jobs.db"), "--batch-sizes", "8,16", "--default-batch-size", "8", "--max-epochs", "3", "--target-metric", "0.8"]
    output = HOME / "report.json"
    done = tap.run([str(FLYBALL), "run", "-v", "--job", "hooked", *options, *NO_GPU, "--output", str(output), "--", sys.executable, "-c", script],
                   env={**CLEAN, "PYTHONPATH": str(PACKAGES / "old")}, cwd=HOME)
    recurrence = json.loads(output.read_text())["recurrence"]
    tap.equal((done.returncode, [attempt["steps"] for attempt in recurrence["tries"]]), (0, [12]), done.stderr)
    tap.contains(recurrence["hook"], "saw the steps of SGD")
    tap.contains(done.stderr, "steps: 12; the hook")


def test_profile():
    done = tap.run([str(FLYBALL), "profile", "--help"], env=CLEAN)
    tap.contains(done.stdout, "--no-hook")


def test_behind_a_shell():
    """The variable goes through shells and launchers."""
    output = HOME / "report.json"
    (HOME / "train.py").write_text(TRAIN)
    done = subprocess.run([str(FLYBALL), "run", "--tune", *NO_GPU, "--output", str(output), "--", "sh", "-c", f"true; {sys.executable} train.py; true"],
                          env={**CLEAN, "PYTHONPATH": str(PACKAGES / "old")}, cwd=HOME, capture_output=True, text=True, timeout=tap.PATIENCE_S, check=False)
    tap.equal(json.loads(output.read_text())["tune"]["steps"], 12, done.stderr)


tap.main(globals())
