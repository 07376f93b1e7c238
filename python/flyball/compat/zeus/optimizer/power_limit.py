# SPDX-License-Identifier: Apache-2.0
"""Tries one power limit after the other in the first steps of a training, and keeps the best.

The library's own tuner (flyball/tuner.h) needs fewer steps, and goes on checking. This one does exactly the steps
that programs written for it count on: the limits from the highest down, the same number of steps under each.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import flyball
from flyball.compat.zeus.callback import Callback
from flyball.compat.zeus.model import Model, field, real, whole
from flyball.compat.zeus.monitor.visible import open_monitor
from flyball.compat.zeus.utils.framework import all_reduce, get_rank
from flyball.compat.zeus.utils.metric import zeus_cost
from flyball.driven import watch_cell

if TYPE_CHECKING:
    from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor

_MW = 1000


class LimitsRefusedError(flyball.Error, RuntimeError):
    """Power limits may not be set here."""


def _window(limit_mw: int) -> str:
    """What a monitor's log file calls the window of a limit."""
    return f"__GlobalPowerLimitOptimizer_{limit_mw // _MW}"


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What the library refuses is a RuntimeError besides, unless it is another exception of Python's already."""
    try:
        yield
    except (ValueError, LookupError, RuntimeError):
        raise
    except flyball.Error as error:
        raise LimitsRefusedError(str(error)) from error


class PowerLimitMeasurement(Model):
    """What so many steps took under a power limit: W, J of all GPUs, s of the slowest rank."""

    power_limit: int = field(whole, above=0)
    energy: float = field(real, above=0)
    time: float = field(real, above=0)


class OptimumSelector(ABC):
    """Chooses a power limit of those that were measured."""

    @abstractmethod
    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        """The chosen limit, in W. The measurements come from the highest limit down."""


class Energy(OptimumSelector):
    """The limit with the least energy."""

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        return min(measurements, key=lambda measured: measured.energy).power_limit


class Time(OptimumSelector):
    """The limit with the least time."""

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        return min(measurements, key=lambda measured: measured.time).power_limit


class ZeusCost(OptimumSelector):
    """The limit with the least energy-time cost, eta energy + (1 - eta) max_power time.

    eta_knob    0 to 1, the weight of energy
    world_size  how many GPUs draw the highest limit at most
    """

    def __init__(self, eta_knob: float, world_size: int = 1) -> None:
        if not 0.0 <= eta_knob <= 1.0:
            raise ValueError(f"eta_knob is {eta_knob}; give 0 to 1")
        if world_size < 1:
            raise ValueError(f"world_size is {world_size}; give 1 or more")
        self.eta_knob = eta_knob
        self.world_size = world_size

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        max_power_w = max(measured.power_limit for measured in measurements) * self.world_size
        return min(
            measurements, key=lambda measured: zeus_cost(measured.energy, measured.time, self.eta_knob, max_power_w)
        ).power_limit


class MaxSlowdownConstraint(OptimumSelector):
    """The lowest limit that takes no more than `factor` times the time of the highest."""

    def __init__(self, factor: float) -> None:
        if factor < 1.0:
            raise ValueError(f"factor is {factor}; give 1 or more")
        self.factor = factor

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        most_s = self.factor * max(measurements, key=lambda measured: measured.power_limit).time
        return min(measured.power_limit for measured in measurements if measured.time <= most_s)


class Ready(Model):
    """The limit, in mW, comes on trial in so many steps."""

    next_power_limit: int = field(whole, above=0)
    steps: int = field(whole, above=0)


class Warmup(Model):
    """The limit, in mW, was set; its window begins in so many steps."""

    current_power_limit: int = field(whole, above=0)
    steps: int = field(whole, above=0)


class Profiling(Model):
    """The limit, in mW, is measured for so many steps more."""

    current_power_limit: int = field(whole, above=0)
    steps: int = field(whole, above=0)


class Done(Model):
    """The limit, in mW, was chosen."""

    optimal_power_limit: int = field(whole, above=0)


State = Union[Ready, Warmup, Profiling, Done]


def _check(**numbers: tuple[int, int]) -> None:
    for name, (value, least) in numbers.items():
        if value < least:
            raise ValueError(f"{name} is {value}; give {least} or more")


class GlobalPowerLimitOptimizer(Callback):
    """Finds a power limit for all GPUs of a monitor during the first steps of a training.

    monitor           whose GPUs are turned and measured
    optimum_selector  chooses; None: ZeusCost(0.5, the number of GPUs)
    wait_steps        before the first limit
    warmup_steps      under each limit, before its window
    profile_steps     in each window
    pl_step           W between two limits, from the highest down
    profile_path      where the measurements are saved; if the file is there, it is used in place of measuring
    give_back_s       s without a step after which the limits that were there at first are put back, until the next
                      step; 0: never; None: as of a flyball.Tuner

    Raises LimitsRefusedError if the limits may not be set, with what would help; ValueError for numbers out of range.
    A limit that cannot be set later, for instance since somebody else did, ends the search with a warning. The limits
    that were there at first come back when training ends, in IPython when its cell does, when no step comes for long,
    and when the interpreter ends or is killed. A limit on trial meanwhile is measured once more.
    """

    def __init__(
        self,
        monitor: ZeusMonitor,
        optimum_selector: OptimumSelector | None = None,
        wait_steps: int = 1,
        warmup_steps: int = 10,
        profile_steps: int = 40,
        pl_step: int = 25,
        profile_path: str | os.PathLike[str] | None = None,
        *,
        give_back_s: float | None = None,
    ) -> None:
        _check(wait_steps=(wait_steps, 0), warmup_steps=(warmup_steps, 0), profile_steps=(profile_steps, 1), pl_step=(pl_step, 1))
        self.monitor = monitor
        self.optimum_selector = optimum_selector or ZeusCost(0.5, world_size=max(1, len(monitor.gpu_indices)))
        self.wait_steps = wait_steps
        self.warmup_steps = warmup_steps
        self.profile_steps = profile_steps
        self.pl_step = pl_step * _MW
        self.profile_path = Path(profile_path) if profile_path is not None else None
        self.measurements: list[PowerLimitMeasurement] = []
        self._meter: flyball.Monitor = getattr(monitor, "_monitor", None) or open_monitor(monitor.gpu_indices)[0]
        with _refusals():
            self._knob = flyball.PowerKnob(self._meter, follow_steps=True, give_back_s=give_back_s)
        lowest_w, highest_w = self._knob.range_w
        self.power_limits = list(range(int(highest_w * _MW), int(lowest_w * _MW) - 1, -self.pl_step))
        self.state: State = Ready(next_power_limit=self.power_limits[0], steps=self.wait_steps + 1)
        self._failed = self._interrupted = self._watched = False
        with _refusals():
            self._knob.set(self.power_limits[0] / _MW)
        if self.profile_path is not None and self.profile_path.exists():
            self.measurements = self._load(self.profile_path)
            self._choose()
        self._watched = watch_cell(self._cell_ended)

    @staticmethod
    def _load(path: Path) -> list[PowerLimitMeasurement]:
        try:
            measurements = [PowerLimitMeasurement.parse_obj(item) for item in json.loads(path.read_text())["measurements"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the profile '{path}' cannot be used: {error}; remove it to measure again") from error
        if not measurements:
            raise ValueError(f"the profile '{path}' has no measurement; remove it to measure again")
        return measurements

    def _cell_ended(self, error: BaseException | None) -> None:
        self._watched = False
        self.on_train_end()

    def on_train_end(self) -> None:
        """The limits that were there at first are put back, until the next step."""
        with contextlib.suppress(flyball.Error):  # in a forked child
            self._knob.give_back()

    def on_epoch_end(self) -> None:
        """The limit on trial starts over in the next epoch; until then the highest is set."""
        if isinstance(self.state, Profiling):
            self.monitor.end_window(_window(self.state.current_power_limit), cancel=True)
        if isinstance(self.state, (Warmup, Profiling)):
            self.state = Ready(next_power_limit=self.state.current_power_limit, steps=1)
            self._set(self.power_limits[0])

    def on_step_begin(self) -> None:
        """A step is about to begin."""
        self._hold()
        if isinstance(self.state, Done):
            return
        self.state.steps -= 1
        if self.state.steps > 0:
            return
        if isinstance(self.state, Ready):
            self._try(self.state.next_power_limit)
        elif isinstance(self.state, Warmup):
            self._profile(self.state.current_power_limit)
        else:
            self._measured(self.state.current_power_limit)

    def _turn(self, turn: Callable[..., Any], *arguments: float) -> Any:
        """Calls the knob. After a failure nothing is set, and all ranks hear of it with the next measurement."""
        if self._failed:
            return None
        try:
            return turn(*arguments)
        except flyball.Error as error:
            self._failed = True
            warnings.warn(f"power limits are left alone from now on: {error}", RuntimeWarning, stacklevel=5)
            return None

    def _set(self, limit_mw: int) -> None:
        self._turn(self._knob.set, limit_mw / _MW)

    def _hold(self) -> None:
        """A step comes: the limit stands, and stays as long as more of them do."""
        if self._turn(self._knob.step_begin) and isinstance(self.state, Profiling):
            self._interrupted = True
        if not self._watched:
            self._watched = watch_cell(self._cell_ended)

    def _try(self, limit_mw: int) -> None:
        self._set(limit_mw)
        if self.warmup_steps > 0:
            self.state = Warmup(current_power_limit=limit_mw, steps=self.warmup_steps)
        else:
            self._profile(limit_mw)

    def _profile(self, limit_mw: int) -> None:
        self._interrupted = False
        self.monitor.begin_window(_window(limit_mw))
        self.state = Profiling(current_power_limit=limit_mw, steps=self.profile_steps)

    def _measured(self, limit_mw: int) -> None:
        """Keeps what the window held, and goes on to the next limit. A limit of which nothing is known is left out.

        If any rank gave its limit back within the window, all of them measure the limit once more.
        """
        measured = self.monitor.end_window(_window(limit_mw))
        energy_j = all_reduce([self._energy_j(measured)], operation="sum")[0]
        time_s, failed, interrupted = all_reduce([measured.time, float(self._failed), float(self._interrupted)], operation="max")
        if interrupted and not failed:
            self._try(limit_mw)
            return
        if energy_j > 0 and time_s > 0:
            self.measurements.append(PowerLimitMeasurement(power_limit=limit_mw // _MW, energy=energy_j, time=time_s))
        lower = [limit for limit in self.power_limits if limit < limit_mw]
        if failed:
            self._set(self.power_limits[0])
            self.state = Done(optimal_power_limit=self.power_limits[0])
        elif lower:
            self._try(lower[0])
        else:
            self._choose()
            self._save()

    def _energy_j(self, measured: Measurement) -> float:
        """The window's energy, or of one that is too short to have any, the power now times its time."""
        if measured.total_energy > 0:
            return measured.total_energy
        gpus = [place for place, device in enumerate(self._meter.devices) if device.kind == "GPU"]
        powers_w = [self._meter.read(place).power_w for place in gpus]
        return sum((power_w if power_w is not None else float("nan")) * measured.time for power_w in powers_w)

    def _choose(self) -> None:
        chosen_w = self.optimum_selector.select(self.measurements) if self.measurements else self.power_limits[0] // _MW
        self._set(chosen_w * _MW)
        self.state = Done(optimal_power_limit=chosen_w * _MW)

    def _save(self) -> None:
        if self.profile_path is not None and self.measurements and get_rank() == 0:
            profile = {"measurements": [measured.dict() for measured in self.measurements]}
            self.profile_path.write_text(json.dumps(profile, indent=4))


def _make_for_transformers() -> Any:
    """HFGlobalPowerLimitOptimizer, of which the base is imported when a program asks for it."""
    try:
        base: Any = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        base = object

    class HFGlobalPowerLimitOptimizer(base):  # type: ignore[misc]
        """GlobalPowerLimitOptimizer as a callback of a Transformers Trainer; the arguments are the same."""

        def __init__(
            self,
            monitor: ZeusMonitor,
            optimum_selector: OptimumSelector | None = None,
            wait_steps: int = 1,
            warmup_steps: int = 10,
            profile_steps: int = 40,
            pl_step: int = 25,
            profile_path: str | os.PathLike[str] | None = None,
            *,
            give_back_s: float | None = None,
        ) -> None:
            self.optimizer = GlobalPowerLimitOptimizer(
                monitor, optimum_selector, wait_steps, warmup_steps, profile_steps, pl_step, profile_path, give_back_s=give_back_s
            )

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Training has ended."""
            self.optimizer.on_train_end()

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """An epoch's steps are done."""
            self.optimizer.on_epoch_end()

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """A step is about to begin."""
            self.optimizer.on_step_begin()

    HFGlobalPowerLimitOptimizer.__qualname__ = "HFGlobalPowerLimitOptimizer"
    return HFGlobalPowerLimitOptimizer


def __getattr__(name: str) -> Any:
    if name != "HFGlobalPowerLimitOptimizer":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = _make_for_transformers()
    return globals()[name]
