# SPDX-License-Identifier: Apache-2.0
"""The Python package without the C library: what stands in for it has the same names, and behaves as FLYBALL_DISABLE=1.

usage: python_inert.py FLYBALL SOURCE_ROOT
"""

import os
import pathlib
import shutil
import sys
import tempfile

import tap
from python_scene import BUILD, PACKAGE, flyball, python, raised

from flyball import _flyball, _inert

# What is not there without the library: it raises when it is called.
NEEDS_LIBRARY = {"PowerKnob"}


def shown(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_names():
    """All that the extension shows, and of each class its members."""
    for name in dir(_flyball):
        real = getattr(_flyball, name)
        if name.startswith("__") or name in NEEDS_LIBRARY or not isinstance(real, type):
            continue
        inert = getattr(_inert, name)
        tap.equal(issubclass(inert, tuple), issubclass(real, tuple), name)
        if issubclass(real, tuple):
            fields = [field for field in real.__match_args__] if hasattr(real, "__match_args__") else inert._names[: real.n_sequence_fields]
            tap.equal(inert._names[: real.n_sequence_fields], list(fields), name)
            tap.equal(set(inert._names), shown(real) - {"n_fields", "n_sequence_fields", "n_unnamed_fields", "count"} - ({"index"} - set(inert._names)), name)
        elif not issubclass(real, BaseException):
            missing = shown(real) - shown(inert) - set(vars(_state(name)))
            tap.equal(missing, set(), name)
        else:
            tap.equal([base.__name__ for base in inert.__mro__], [base.__name__ for base in real.__mro__], name)


def _state(name):
    """An object of a class, since some of its attributes are made with it."""
    monitor = _inert.Monitor()
    session = _inert._Session()
    session._open({"default_batch_size": 8, "max_epochs": 1}, None)
    return {"Monitor": monitor, "Window": monitor.window("w"), "Measurement": monitor.begin("m").end(), "Tuner": _inert.Tuner(),
            "Steps": _inert.Steps(None, []), "_Session": session}[name]


PROGRAM = """
import os, pickle
import flyball

def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind} expected")

with flyball.Monitor(gpus=None, sample_hz=10) as monitor:
    window = monitor.begin("one")
    window.peek()
    assert window.end().time_s >= 0 and window.measurement.devices == () and "<table>" in window._repr_html_()
    refused(flyball.StateError, window.end)
    with monitor.window("two") as two:
        pass
    assert two.measurement.name == "two"

    @monitor.window("three")
    def work():
        return 7

    assert work() == 7 and work.measurement.name == "three"
refused(flyball.StateError, monitor.begin, "late")
with flyball.Tuner(max_slowdown="3%", limits_w=[100]) as tuner:
    refused(flyball.StateError, lambda: tuner.report)
    for epoch in range(2):
        assert [batch for batch in tuner.steps("abc")] == ["a", "b", "c"]
    tuner.epoch_begin(), tuner.step_begin(), tuner.epoch_end()
    print(tuner.state, tuner.report.reason, tuner.points, tuner.carbon)
    refused(TypeError, pickle.dumps, tuner)
refused(flyball.StateError, tuner.step_begin)
refused(TypeError, flyball.Tuner, 3, 4)
with flyball.Session("night", batch_sizes=[16, 32], default=32, metric="auc", target=0.9, max_epochs=5) as session:
    seen = []
    for epoch in session.epochs():
        seen += [(epoch, batch) for batch in session.steps("ab")]
        with session.evaluation():
            session.report({"auc": 0.8 + epoch / 10})
    print(session.batch_size, seen, session.status.answer, session.scale_lr(0.5), session.exit_status)
with flyball.Session("short", batch_sizes=[16], default=16, max_epochs=3) as session:
    print([epoch for epoch in session.epochs()], session.status.answer)
with flyball.Session("tried", default=16, max_epochs=3, tries_directory=os.environ["HOME"] + "/tries") as session:
    session.trains_with(16)
    session.resumed(2, batch_size=16)
    refused(flyball.Error, session.resumed, 2, 8)
    refused(flyball.UsageError, session.split, 4, 3)
    print(tuple(session.split(6)), session.split().accumulation, session.replicas, os.path.isdir(session.directory))
    print([epoch for epoch in session.epochs()])
"""
SAME = """stopped disabled () None
32 [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')] reached 0.5 0
[0, 1, 2] stop
(4, 4) 1 1 True
[2]
"""


def without_library(change):
    """A copy of the package, changed by that function: a directory."""
    place = tempfile.mkdtemp(dir=os.environ["HOME"])
    shutil.copytree(PACKAGE / "flyball", f"{place}/flyball", ignore=shutil.ignore_patterns("*.p", "__pycache__"))
    change(pathlib.Path(place, "flyball"))
    return place


def remove(package):
    for path in package.glob("_flyball.*so"):
        path.unlink()


def test_disabled():
    done = python(PROGRAM, FLYBALL_DISABLE="1")
    tap.equal((done.returncode, done.stdout, done.stderr), (0, SAME, ""))


def test_without_the_extension():
    place = without_library(remove)
    done = python(PROGRAM, PYTHONPATH=place)
    tap.equal((done.returncode, done.stdout, done.stderr), (0, SAME, ""))
    done = python("import flyball; t = flyball.Tuner(); t.step_begin(); print(t.report.text); flyball.jobs()", PYTHONPATH=place)
    tap.equal((done.returncode, "C library is not here" in done.stdout), (1, True))
    tap.contains(done.stderr, "flyball.Error: Flyball's C library is not here")
    done = python("import flyball; print(flyball.__version__)", PYTHONPATH=place)
    tap.equal(done.stdout, f"{flyball.__version__}\n")


def test_without_the_library():
    """The extension is there, and the library that it needs is not."""

    def rename(package):
        extension = next(package.glob("_flyball.*so"))
        content = extension.read_bytes()
        tap.contains(content.decode("latin-1"), "libflyball.so.0")
        extension.write_bytes(content.replace(b"libflyball.so.0", b"libflynone.so.0"))

    done = python(PROGRAM, PYTHONPATH=without_library(rename))
    tap.equal((done.returncode, done.stdout, done.stderr), (0, SAME, ""))


def test_other_systems():
    """Where the system is another one, whatever is wrong with the extension leaves it out."""

    def spoil(package):
        next(package.glob("_flyball.*so")).write_bytes(b"of another system")

    place = without_library(spoil)
    tap.contains(python("import flyball", PYTHONPATH=place).stderr, "ImportError")
    for system in ("darwin", "win32"):
        done = python(f"import sys; sys.platform = {system!r}\n" + PROGRAM, PYTHONPATH=place)
        tap.equal((done.returncode, done.stdout, done.stderr), (0, SAME, ""), system)


def test_other_version():
    def change(package):
        (package / "_version.py").write_text('version = "0.0.1"\n')

    done = python("import flyball", PYTHONPATH=without_library(change), LD_LIBRARY_PATH=str(BUILD))
    tap.contains(done.stderr, "install both from one version")


def test_what_needs_the_library():
    for name in ("PowerKnob", "_job_list", "_anything"):
        error = None
        try:
            getattr(_inert, name)(1, two=2)
        except _inert.Error as caught:
            error = caught
        tap.equal(error.code, "FLY_EUNSUPPORTED", name)
    tap.equal((sys.modules["flyball._flyball"] is _inert, hasattr(_inert, "__path__")), (False, False))
    raised(flyball.StateError, lambda: flyball.Tuner().report)


tap.main(globals())
