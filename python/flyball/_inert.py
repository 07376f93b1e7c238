# SPDX-License-Identifier: Apache-2.0
"""Stands in for the extension module where Flyball's C library is not: on macOS, on Windows, or before it is built.

It has the names of flyball._flyball, so that the rest of the package is the same. As with FLYBALL_DISABLE=1 there are no
devices, nothing is set and nothing is written; a program trains as it would without Flyball. What cannot be done
without the library raises Error (FLY_EUNSUPPORTED).
"""

from __future__ import annotations

import os
import time
from typing import Any, NoReturn

from flyball._version import version as __version__  # noqa: F401  (the extension has it too)

reason = "Flyball's C library is not here"


class Error(Exception):
    """Misuse of Flyball, or something it needs that is not there. `code` is the name of the library's error."""

    code = "FLY_EUNSUPPORTED"


class UsageError(Error, ValueError):
    """An argument is out of its range, or cannot be read."""

    code = "FLY_EUSAGE"


class StateError(Error, RuntimeError):
    """The call does not fit the state of its object."""

    code = "FLY_ESTATE"


class NotFoundError(Error, LookupError):
    """What was named does not exist."""

    code = "FLY_ENOTFOUND"


for _error in (Error, UsageError, StateError, NotFoundError):
    _error.__module__ = "flyball"


class _Handle:
    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __init_subclass__(cls) -> None:
        cls.__module__ = "flyball"


def _figures(name: str, unpacked: int, fields: str, doc: str) -> Any:
    """A named tuple, of whose fields the first ones come when it is unpacked; None where none is given."""
    names = fields.split()

    def new(cls: Any, **values: Any) -> Any:
        made = tuple.__new__(cls, [values.get(name) for name in names[:unpacked]])
        made.__dict__.update({**dict.fromkeys(names), **values})
        return made

    def represent(self: Any) -> str:
        return f"flyball.{name}({', '.join(f'{field}={getattr(self, field)!r}' for field in names[:unpacked])})"

    members = {"__new__": new, "__repr__": represent, "__doc__": doc, "__module__": "flyball", "_names": names}
    return type(name, (tuple,), {**members, **dict.fromkeys(names)})


Device = _figures("Device", 4, "kind index name uuid", "A device that a monitor measures.")
DeviceEnergy = _figures(
    "DeviceEnergy",
    4,
    "device source energy_j uncertainty_j gain_error time_s mean_power_w integral_j counter_j idle_share idle_energy_share capped_share "
    "heat_share brake_share held_share clock_mhz temperature_max_c limit_w least_energy_j least_time_s disagree samples note",
    "What one device did in a window. A figure that is not known is None.",
)
Sample = _figures("Sample", 5, "unix_s power_w power_average_w energy_j temperature_c", "What a device said at one moment.")
TunerReport = _figures(
    "TunerReport",
    5,
    "state limit_w slowdown reason text knob start_limit_w start_ceiling_mhz ceiling_mhz step_time_s searches backoffs looks noise ties "
    "reused search_steps search_time_s search_energy_j extra_time_s extra_energy_j profile pauses pause_share idle_share pace knob_note "
    "start_workload_profile workload_profile given_back give_backs",
    "How tuning goes. A figure that is not known is None.",
)
TunerPoint = _figures(
    "TunerPoint",
    5,
    "limit_w ceiling_mhz mark energy_j time_s power_w energy_error time_error bound capped_share enforced_w workload_profile",
    "What a limit was measured to be worth. A figure that is not known is None.",
)
CarbonReport = _figures(
    "CarbonReport",
    9,
    "limit_w intensity_g_per_kwh energy_j finish_s decisions changes reason account text",
    "How following the grid goes. A figure that is not known is None.",
)
SessionStatus = _figures(
    "SessionStatus",
    20,
    "connected disabled trial attempt recurrence try_number last_try batch_size local_batch_size epoch epochs_done epochs_max answer "
    "limit_w energy_j time_s kept why text limit_text",
    "How a session stands. A figure that is not known is None.",
)


class Measurement(_Handle):
    """What a window held: its time; there are no devices."""

    devices: tuple[Any, ...] = ()

    def __init__(self, name: str, start_unix_s: float, time_s: float) -> None:
        self.name, self.start_unix_s, self.time_s = name, start_unix_s, time_s

    def __repr__(self) -> str:
        return f"<flyball.Measurement {self.name!r} time_s={self.time_s!r} devices=()>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        return notebook.measurement(self)


class Window(_Handle):
    """A stretch of a program: a block of 'with', a decorator, or begin and end."""

    _wrong = {
        "not begun": "the window has not begun; begin it with 'with'",
        "open": "the window is open already; make another one with Monitor.window",
        "ended": "the window has ended; make another one with Monitor.window",
    }

    def __init__(self, monitor: Monitor, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError("the name of a window is a str")
        self.name, self.measurement, self._monitor, self._state = name, None, monitor, "not begun"

    def _need(self, state: str) -> None:
        if self._state != state:
            raise StateError(self._wrong[self._state])

    def _begin(self) -> Window:
        self._need("not begun")
        self._monitor._edge()
        self._unix_s, self._begun, self._state = time.time(), time.monotonic(), "open"
        return self

    def peek(self) -> Measurement:
        """What the window holds so far; it goes on."""
        self._need("open")
        self._monitor._edge()
        return Measurement(self.name, self._unix_s, time.monotonic() - self._begun)

    def end(self) -> Measurement:
        """Ends the window and returns its Measurement."""
        ended: Any = self.peek()
        self.measurement, self._state = ended, "ended"
        return self.measurement  # type: ignore[return-value]

    def __enter__(self) -> Window:
        return self if self._state == "open" else self._begin()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            if self._state == "open":
                self.end()
        except Exception:
            if kind is None:
                raise

    def __call__(self, function: Any) -> Any:
        from flyball.decorated import decorated

        return decorated(self._monitor, self.name, function)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<flyball.Window {self.name!r}, {self._state}>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        return notebook.window(self)


class Monitor(_Handle):
    """Measures the time of windows; there are no devices."""

    devices: tuple[Any, ...] = ()

    def __init__(
        self,
        gpus: Any = None,
        *,
        nvml_path: Any = None,
        amdsmi_path: Any = None,
        replay_path: Any = None,
        cpu_tdp_w: float = 0,
        sample_hz: float = 0,
        windows_max: int = 0,
        synchronize: Any = None,
    ) -> None:
        if synchronize is not None and not callable(synchronize):
            raise TypeError("synchronize is a function without arguments, as torch.cuda.synchronize")
        self.closed, self._synchronize = False, synchronize

    def _edge(self) -> None:
        if self.closed:
            raise StateError("the monitor is closed; make another one")
        if self._synchronize is not None:
            self._synchronize()

    def window(self, name: str, /) -> Window:
        """A Window that has not begun."""
        return Window(self, name)

    def begin(self, name: str, /) -> Window:
        """Begins a window and returns it."""
        return Window(self, name)._begin()

    def counted_by(self, place: int, /) -> NoReturn:
        """There is no device."""
        raise IndexError("the monitor has no such device")

    max_power_w = power_limits_w = read = samples = counted_by

    def clocks_mhz(self, place: int, /, *, memory: bool = False) -> list[int]:
        """There is no device."""
        return []

    def keep(self, samples_max: int, /) -> None:
        """There is nothing to keep."""

    def close(self) -> None:
        """Closes it. May be called again."""
        self.closed = True

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Steps(_Handle):
    """The batches of a loader, each of which begins a step. Each iteration over it is an epoch."""

    def __init__(self, owner: Any, loader: Any) -> None:
        self._owner, self._loader = owner, loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Any:
        for number, batch in enumerate(self._loader):
            if number == 0:
                self._owner.epoch_begin()
            if self._owner.step_begin() is False:
                return
            yield batch


_TUNER_OPTIONS = frozenset(
    "objective eta max_slowdown knob limits_w ceilings_mhz gpus synchronize job_name batch_size profile_directory profile_file gpu_model "
    "driver max_power_w energy_tolerance window_max_s wait_steps warmup_steps profile_steps check_every_steps remeasure_distance_steps "
    "carbon rank all_reduce turner clock_turner give_back_s quiet".split()
)


class Tuner(_Handle):
    """Sets nothing, and says so in its report."""

    points: tuple[Any, ...] = ()
    carbon = None

    def __init__(self, monitor: Any = None, **options: Any) -> None:
        unknown = sorted(set(options) - _TUNER_OPTIONS)
        if unknown:
            raise TypeError(f"{unknown[0]!r} is an invalid keyword argument for Tuner()")
        self.monitor = monitor if monitor is not None else Monitor(synchronize=options.get("synchronize"))
        self.closed, self._begun, self._owns = False, False, monitor is None

    @property
    def state(self) -> str:
        """'waiting', 'stopped' or 'closed'."""
        return "closed" if self.closed else "stopped" if self._begun else "waiting"

    @property
    def report(self) -> Any:
        """Why nothing is tuned."""
        if not self._begun:
            raise StateError("the tuner has not begun; its first step begins it")
        counts = dict.fromkeys("searches backoffs looks ties search_steps pauses give_backs".split(), 0)
        words = {"profile": "", "knob_note": "", "knob": "power", "pace": "GPU", "reused": False, "given_back": False}
        return TunerReport(state="stopped", reason="disabled", text=reason, **counts, **words)

    @property
    def summary(self) -> str:
        """Why nothing is saved."""
        return f"nothing saved: {self.report.text}"

    def step_begin(self) -> None:
        """Does nothing."""
        if self.closed:
            raise StateError("the tuner is closed; make another one")
        self._begun = True

    epoch_begin = epoch_end = step_begin

    def give_back(self) -> None:
        """Does nothing."""

    def steps(self, loader: Any, /) -> Steps:
        """The loader's batches."""
        return Steps(self, loader)

    def close(self) -> None:
        """Closes it. May be called again."""
        self.closed = True
        if self._owns:
            self.monitor.close()

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<flyball.Tuner, {self.state}>"

    def _repr_html_(self) -> str:
        from flyball import notebook

        return notebook.tuner(self)


def _read_target(target: Any) -> Any:
    """What says whether a metric is good enough."""
    if target is None:
        return lambda metric: False
    text = str(target).strip()
    number = float(text.lstrip("<>="))
    return (lambda metric: metric <= number) if text.startswith("<") else (lambda metric: metric >= number)


class _Session(_Handle):
    """Trains with the default batch size, to the target or to the last epoch."""

    def _open(self, members: dict[str, Any], all_reduce: object, monitor: object = None, /) -> None:
        default = members.get("default_batch_size")
        if default is None:
            raise UsageError("session: give a default batch size")
        try:
            self._is_reached = _read_target(members.get("target"))
        except ValueError:
            raise UsageError(f"session: target {members['target']!r}: expected a number, '>=0.79' or '<=0.3'") from None
        self.batch_size = default
        self.replicas = members.get("replicas") or members.get("world_size") or 1
        self.local_batch_size = default // self.replicas
        self._tries, self._place = members.get("tries_directory") or "flyball-tries", (members.get("job_name", "job"), f"run-{time.time_ns():x}")
        self.closed, self.is_over, self.exit_status = False, False, 0
        self._most, self._trains_on = members.get("max_epochs") or 0, members.get("trains_on")
        self._every = members.get("report_every_samples") or (members.get("report_every_steps") or 0) * default
        self._report_steps = members.get("report_every_steps") or 0
        self._epoch, self._steps_taken, self._reports, self._answer = 0, 0, 0, "go on"

    @property
    def status(self) -> Any:
        """How it stands."""
        return SessionStatus(
            connected=False,
            disabled=True,
            attempt=1,
            recurrence=0,
            try_number=0,
            last_try=True,
            batch_size=self.batch_size,
            local_batch_size=self.local_batch_size,
            epoch=self._epoch,
            epochs_done=0,
            epochs_max=self._most,
            answer=self._answer,
            kept=0,
            why="",
            text=reason,
            limit_text=reason,
        )

    def epoch_begin(self) -> None:
        """Does nothing."""

    evaluation_begin = evaluation_end = training_ended = give_back = _out_of_memory = epoch_begin

    carbon = None

    def trains_with(self, batch_size: int, /) -> None:
        """Does nothing."""

    @property
    def directory(self) -> str:
        """A directory of this training's own, which is made."""
        path = os.path.join(os.path.abspath(os.fspath(self._tries)), *self._place)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise Error(f"session: cannot make the directory '{path}': {error}") from error
        return path

    def _resumed(self, epochs_done: int, batch_size: int | None, /) -> None:
        if batch_size not in (None, self.batch_size):
            raise Error(f"session: the checkpoint was trained with batch size {batch_size}, and this try has {self.batch_size}")
        if not self._reports:
            self._epoch = epochs_done

    def _split(self, max_micro: int, replicas: int | None, /) -> tuple[int, int]:
        local, uneven = divmod(self.batch_size, replicas or self.replicas)
        if uneven or not local:
            raise UsageError(f"batch size {self.batch_size} for {replicas or self.replicas} replicas: each has to get the same number of samples")
        times = next(times for times in range(1, local + 1) if local % times == 0 and local // times <= (max_micro or local))
        return local // times, times

    def step_begin(self) -> bool:
        """Counts a step; returns whether training goes on."""
        self._steps_taken += 1
        return not self.is_over

    def _steps(self, loader: Any, /) -> Steps:
        return Steps(self, loader)

    def _report(self, metric: float, /) -> str:
        if self.is_over or self.closed:
            return self._answer
        self._reports += 1
        steps = self._steps_taken or self._reports * self._report_steps
        self._epoch = steps * self.batch_size // self._every if self._every else self._epoch + 1
        reached = self._answer == "reached" or self._is_reached(metric)
        last = self._most > 0 and self._epoch >= self._most
        self._answer = "reached" if reached else "stop" if last else "go on"
        self.is_over = last or (reached and not self._trains_on)
        return self._answer

    def _scaled(self, lr: float, optimizer: str, /) -> float:
        return float(lr)

    @staticmethod
    def _is_out_of_memory(exception: str, text: str, /) -> bool:
        return "OutOfMemory" in exception or "out of memory" in text

    def try_again(self) -> bool:
        """There is no other try."""
        return False

    def close(self, end: str = "finished", /) -> None:
        """Closes it. May be called again."""
        self.closed = True


def _missing(*_: Any, **__: Any) -> NoReturn:
    raise Error(reason)


def __getattr__(name: str) -> Any:
    """What else the extension has: classes and functions that say that the library is not here."""
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {"__new__": _missing, "__doc__": "Needs Flyball's C library.", "__module__": "flyball"})
