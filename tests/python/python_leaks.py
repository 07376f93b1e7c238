# SPDX-License-Identifier: Apache-2.0
"""That calls of the Python package leave no reference behind, counted by Python's debug build.

usage: python_leaks.py FLYBALL SOURCE_ROOT

Debian's python3-dbg is such a build; FLYBALL_TEST_PYTHON_DEBUG names another one. With --count
it counts in the interpreter that runs it, for a name among CASES. Beside this file in the build lies an
extension module that counts as well; the package's own takes references that nobody counts.
"""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

COUNTED = pathlib.Path(os.environ.get("FLYBALL_TEST_BUILD", pathlib.Path(sys.argv[1]).parent / "tests")) / "_flyball.abi3.so"
BUILD = pathlib.Path(sys.argv[1]).resolve().parent
PACKAGE = pathlib.Path(os.environ.get("FLYBALL_TEST_PYTHON", BUILD / "python"))
EMULATOR = pathlib.Path(os.environ.get("FLYBALL_TEST_EMULATOR", BUILD / "emulator"))
CALLS = 100_000


def misused(call, *arguments, **keywords):
    """The call, with its exception taken back."""

    def called():
        try:
            call(*arguments, **keywords)
        except Exception as error:  # whatever its kind, it is to leave nothing
            str(error)
        else:
            raise AssertionError("it was to raise")

    return called


def monitor_cases():
    import flyball

    def open_monitor(**options):
        return flyball.Monitor(nvml_path=EMULATOR / "libnvidia-ml.so.1", amdsmi_path="/none", **options)

    meter = open_monitor()
    window = meter.begin("kept")
    measurement = window.end()
    measured = meter.window("decorated")(lambda: None)

    def in_block():
        with meter.window("block") as inner:
            inner.peek()
        return repr(inner.measurement)

    return {
        "begin and end": (CALLS, lambda: meter.begin("window").end()),
        "a block, a peek, a text": (CALLS // 5, in_block),
        "a decorated function": (CALLS // 5, measured),
        "a window dropped open": (CALLS, lambda: meter.begin("dropped")),
        "a window never begun": (CALLS, lambda: meter.window("idle")),
        "devices of a measurement": (CALLS, lambda: [device.energy_j for device in measurement.devices]),
        "devices of a monitor": (CALLS, lambda: (meter.devices, meter.counted_by(0))),
        "an end too late": (CALLS, misused(lambda: window.__enter__())),
        "a name of the wrong type": (CALLS, misused(meter.begin, 3)),
        "a device that does not exist": (CALLS // 5, misused(meter.counted_by, 99)),
        "an option that does not exist": (CALLS, misused(flyball.Monitor, none=1)),
        "an option out of range": (CALLS // 5, misused(flyball.Monitor, windows_max=-1)),
        "a monitor opened and closed": (CALLS // 2000, lambda: open_monitor(gpus=[0]).close()),
        "a GPU that does not exist": (CALLS // 2000, misused(open_monitor, gpus=[99])),
    }


def tuner_cases():
    import flyball

    meter = flyball.Monitor(nvml_path=EMULATOR / "libnvidia-ml.so.1", amdsmi_path="/none")
    options = {"objective": "lowest-limit", "max_slowdown": None, "all_reduce": lambda sums, maxima: None, "rank": 0}
    tuner = flyball.Tuner(meter, **options)

    def early():
        for _ in tuner.steps([1, 2]):
            break

    class Turner:
        limit_w = 400.0

        def range(self):
            return 200, 400, 200

        def set(self, limit_w):
            if limit_w > 200:
                raise OSError("refused")
            self.limit_w = limit_w

        def standing(self):
            return self.limit_w

    def turned():
        with flyball.Tuner(meter, objective="lowest-limit", max_slowdown=None, turner=Turner(), warmup_steps=1, profile_steps=1) as another:
            for _ in range(10):
                another.step_begin()

    sys.unraisablehook = lambda what: None

    def fails(sums, maxima):
        raise OSError("no network")

    def whole():
        with flyball.Tuner(meter, **options) as another:
            another.step_begin()
        return another.report, another.points, another.carbon, another.summary

    return {
        "a step": (CALLS, tuner.step_begin),
        "a loader of ten": (CALLS // 10, lambda: [None for _ in tuner.steps(range(10))]),
        "a loop that breaks": (CALLS // 20, early),
        "a report": (CALLS // 5, lambda: (tuner.report, tuner.points, tuner.carbon, tuner.summary, repr(tuner))),
        "a table": (CALLS // 100, lambda: (tuner._repr_html_(), tuner.points._repr_html_())),
        "a bound that cannot be read": (CALLS // 5, misused(flyball.Tuner, meter, max_slowdown="3")),
        "an option of the wrong type": (CALLS // 5, misused(flyball.Tuner, meter, limits_w=["a"])),
        "a carbon without such a key": (CALLS // 5, misused(flyball.Tuner, meter, carbon={"source": "gb:x", "no": 1})),
        "a tuner that begins and ends": (CALLS // 2000, whole),
        "a limit set by the program": (CALLS // 2000, turned),
        "a knob without an order": (CALLS // 20, misused(lambda: flyball.Tuner(meter, objective="lowest-limit", knob="profile").step_begin())),
        "ranks that cannot be joined": (CALLS // 2000, lambda: flyball.Tuner(meter, all_reduce=fails, rank=0).step_begin()),
    }


def sim_cases():
    import flyball
    from flyball import sim

    traces = os.path.join(os.environ["HOME"], "traces")
    tap.equal(tap.run([str(BUILD / "flyball"), "sim", "make-trace", traces, "--quiet"]).returncode, 0)
    known = sim.read_jobs(os.path.join(traces, "jobs.ini"))
    groups = os.path.join(traces, "groups.csv")
    pathlib.Path(groups).write_text("group,start_time,end_time,dataset,runtime_ratio\na,0,9,made-up,1\na,3,12,made-up,1\n", encoding="utf-8")

    class Own(sim.Policy):
        def propose(self, question):
            return self.job.default_batch_size

    class Faulty(Own):
        def observe(self, trial):
            raise ValueError("made up")

    def simulate(recurrences=20, **options):
        return sim.job(traces, "made-up", described=known, seeds=[1], recurrences=recurrences, **options)

    return {
        "jobs simulated, with tries": (CALLS // 500, lambda: simulate(bootstrap=0, tries=True)),
        "groups simulated, with tries": (CALLS // 500, lambda: sim.group(groups, traces, "made-up", described=known, tries=True)),
        "a policy of Python's": (CALLS // 500, lambda: simulate(policies=Own)),
        "a policy that fails": (CALLS // 500, misused(simulate, policies=Faulty)),
        "a frontier": (CALLS // 500, lambda: sim.pareto(traces, "made-up", "made-up", described=known)._repr_html_()),
        "a job that does not exist": (CALLS // 500, misused(simulate, jobs="nobody")),
        "an option of the wrong type": (CALLS // 500, misused(simulate, window="many")),
        "a progress that gives up": (CALLS // 500, misused(simulate, recurrences=10**9, progress=lambda done, total: 1 / 0)),
    }


def session_cases():
    import logging

    import flyball

    logging.getLogger("flyball").disabled = True

    class OutOfMemoryError(Exception):
        pass

    def opened(**options):
        return flyball.Session("job", **{"default": 16, "max_epochs": 1000000, "leave_limits": True, **options})

    session = opened(batch_sizes=[8, 16], limits_w=None, store=os.path.join(os.environ["HOME"], "none", "store"), wait_s=0.01)
    closed = opened(wait_s=0.01)
    closed.close()

    def failed():
        with opened(wait_s=0.01):
            raise OutOfMemoryError

    return {
        "a session's step": (CALLS, session.step_begin),
        "a loader of ten": (CALLS // 10, lambda: [None for _ in session.steps(range(10))]),
        "micro-batches": (CALLS // 20, lambda: [None for _ in session.steps(range(10), accumulation=3)]),
        "its attributes": (CALLS // 5, lambda: (session.status, session.batch_size, session.local_batch_size, session.exit_status, session.carbon)),
        "a learning rate": (CALLS, lambda: session.scale_lr(0.1, "SGD")),
        "a split": (CALLS // 5, lambda: session.split(4)),
        "a table": (CALLS // 100, session._repr_html_),
        "an optimizer without a rule": (CALLS // 5, misused(session.scale_lr, 0.1, "LBFGS")),
        "a split that is none": (CALLS // 5, misused(session.split, 4, replicas=3)),
        "a checkpoint of another batch size": (CALLS // 5, misused(session.resumed, 3, 8)),
        "a report": (CALLS // 1000, lambda: session.report(0.5)),
        "a report of nothing": (CALLS // 1000, lambda: session.report({})),
        "a session that is closed": (CALLS // 5, lambda: (closed.step_begin(), closed.report(1), closed.status)),
        "a loop too late": (CALLS // 5, misused(closed.epochs)),
        "a session opened and closed": (CALLS // 5000, lambda: opened(wait_s=0.01).close()),
        "a session dropped open": (CALLS // 5000, lambda: opened(wait_s=0.01)),
        "a session that runs out of memory": (CALLS // 5000, misused(failed)),
        "an option out of range": (CALLS // 100, misused(opened, default=-1)),
        "an option of the wrong type": (CALLS // 100, misused(opened, batch_sizes=3)),
        "a definition that is none": (CALLS // 1000, misused(opened, batch_sizes=[1])),
    }


def job_cases():
    import flyball
    from flyball import _flyball

    store = os.path.join(os.environ["HOME"], "store.sqlite")
    tap.equal(tap.run([COUNTED.parent / "job_client", store, "digits", "30", "control=3"]).returncode, 0)
    job = flyball.job("digits", store)
    return {
        "a job": (CALLS // 500, lambda: flyball.job("digits", store)),
        "a list": (CALLS // 500, lambda: flyball.jobs(store)),
        # Without json, which Python's own compiled module may read: nobody counts in that.
        "a reason": (CALLS // 500, lambda: _flyball._job_why("digits", store, 0.0, 3)),
        "tables": (CALLS // 500, lambda: (job._repr_html_(), job.pareto()._repr_html_(), job.savings[0]._repr_html_())),
        "a job that does not exist": (CALLS // 500, misused(flyball.job, "digit", store)),
        "a name of the wrong type": (CALLS, misused(flyball.job, 3, store)),
        "a store that does not exist": (CALLS // 500, misused(flyball.jobs, "/none")),
    }


CASES = {"job": job_cases, "session": session_cases, "tuner": tuner_cases, "monitor": monitor_cases, "sim": sim_cases}


def references_after(call, count):
    for _ in range(count):
        call()
    gc.collect()
    return sys.gettotalrefcount()


def count(cases):
    """Prints how many references each call of a case leaves. What a thread beside holds for a moment is no leak."""
    for name, (calls, call) in cases.items():
        references_after(call, min(calls, 20))
        before = references_after(call, 1)
        print(f"{name}\t{calls}\t{references_after(call, calls) - before}", flush=True)


def debug_build():
    """The command of an interpreter that counts references."""
    named = os.environ.get("FLYBALL_TEST_PYTHON_DEBUG")
    for command in (named,) if named else ("python3-dbg", "python3.11-dbg", sys.executable):
        path = shutil.which(command)
        if path is not None and tap.run([path, "-c", "import sys; sys.gettotalrefcount()"]).returncode == 0:
            return path
    raise tap.Skip("there is no debug build of Python (Debian: python3-dbg)")


def check(name):
    interpreter = debug_build()
    with tempfile.TemporaryDirectory(prefix="flyball-leaks-") as home:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("FLYBALL_", "CUDA_", "XDG_"))}
        shutil.copytree(PACKAGE / "flyball", f"{home}/flyball", ignore=shutil.ignore_patterns("*.so*", "__pycache__"))
        shutil.copy(COUNTED, f"{home}/flyball")
        environment = {**clean, "HOME": home, "XDG_RUNTIME_DIR": home, "FLYBALL_EMULATOR_STATE": f"{home}/gpus",
                       "FLYBALL_RUNTIME_DIR": home, "FLYBALL_GUARD": str(BUILD / "flyball-guard"),
                       "FLYBALL_TEST_EMULATOR": str(EMULATOR), "FLYBALL_QUIET": "1", "PYTHONPATH": home, "LD_LIBRARY_PATH": str(BUILD)}
        os.chmod(home, 0o700)
        command = [EMULATOR / "flyball-emulator", "run", "--gpus", "1", "--ideal", "--any-user", "--load-w", "300", "--",
                   interpreter, tap.LIB / "start.py", __file__, *sys.argv[1:3], "--count", name]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    tap.equal((done.returncode, done.stderr), (0, ""), done.stdout)
    left = [line.split("\t") for line in done.stdout.splitlines()]
    tap.equal(len(left) > 0, True, "nothing was counted")
    for case, calls, references in left:
        # What a cache holds counts once; a leak counts in each call.
        if int(references) > max(int(calls) // 100, 20):
            raise AssertionError(f"{case}: {references} references more after {calls} calls")


def test_monitor():
    check("monitor")


def test_session():
    check("session")


def test_tuner():
    check("tuner")


def test_sim():
    check("sim")


def test_job():
    check("job")


if "--count" in sys.argv:
    count(CASES[sys.argv[sys.argv.index("--count") + 1]]())
else:
    tap.main(globals())
