# SPDX-License-Identifier: Apache-2.0
"""A GPU, and those that this process sees.

What is set goes by the journal and the guard of Flyball, so that it is put back when the interpreter ends or is killed,
and never on a GPU that somebody else controls.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import flyball
from flyball.compat.zeus.device.exception import (
    ZeusBaseGPUError,
    ZeusGPUInitError,
    ZeusGPUInvalidArgError,
    ZeusGPUNoPermissionError,
    ZeusGPUNotFoundError,
    ZeusGPUNotSupportedError,
    ZeusGPUUnknownError,
)
from flyball.compat.zeus.monitor.visible import open_monitor

_Value = TypeVar("_Value")

_SAMPLE_HZ = 1.0  # nobody looks at what these meters sample
_M = 1000  # mW in a W, mJ in a J

_KINDS: dict[str, type[ZeusBaseGPUError]] = {
    "FLY_EUSAGE": ZeusGPUInvalidArgError,
    "FLY_EPERM": ZeusGPUNoPermissionError,
    "FLY_ESTATE": ZeusGPUNoPermissionError,
    "FLY_EUNSUPPORTED": ZeusGPUNotSupportedError,
    "FLY_ENOTFOUND": ZeusGPUNotFoundError,
}


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """What the library refuses is an error of this interface."""
    try:
        yield
    except flyball.Error as error:
        raise _KINDS.get(error.code, ZeusGPUUnknownError)(str(error)) from error


def _of_today(of: type, name: str) -> str:
    """The method that is meant by an older name, as getName; AttributeError if there is none."""
    today = re.sub("([A-Z])", r"_\1", name).lower()
    if today == name or today.startswith("_") or not hasattr(of, today):
        raise AttributeError(f"{of.__name__!r} object has no attribute {name!r}")
    warnings.warn(f"{name} is called {today} by now", DeprecationWarning, stacklevel=3)
    return today


class GPU:
    """One GPU. Power is in mW, energy in mJ, clocks are in MHz.

    A method that sets something returns when it is set, whatever `block` says; with block=False it raises nothing.
    """

    supports_nonblocking_setters = False

    def __init__(self, gpu_index: int, monitor: flyball.Monitor, place: int) -> None:
        self.gpu_index = gpu_index
        self._monitor, self._place = monitor, place
        self._lock = threading.Lock()
        self._knob: flyball.PowerKnob | None = None  # of a meter of its own, since a knob turns all of a meter's GPUs

    def __getattr__(self, name: str) -> Any:
        return getattr(self, _of_today(GPU, name))

    def _known(self, value: _Value | None, what: str) -> _Value:
        if value is None:
            raise ZeusGPUNotSupportedError(f"GPU {self.gpu_index} does not tell {what}")
        return value

    def _read(self) -> flyball.Sample:
        with _errors():
            return self._monitor.read(self._place)

    def _limits_w(self) -> tuple[float | None, float | None, float | None, float | None]:
        with _errors():
            return self._monitor.power_limits_w(self._place)

    def _clocks_mhz(self, memory: bool) -> list[int]:
        with _errors():
            return self._known(self._monitor.clocks_mhz(self._place, memory=memory) or None, "to which clocks it can be held")

    def _turn(self, block: bool, turn: Callable[[flyball.PowerKnob], None]) -> None:
        with contextlib.suppress(*() if block else (ZeusBaseGPUError,)), _errors(), self._lock:
            if self._knob is None:
                with flyball.Monitor([self._monitor.devices[self._place].index], sample_hz=_SAMPLE_HZ) as own:
                    self._knob = flyball.PowerKnob(own)  # which keeps it
            turn(self._knob)

    def _lift(self, block: bool, memory: bool) -> None:
        if self._knob is not None:
            self._turn(block, lambda knob: knob.hold_clock(0, 0, memory=memory))

    def get_name(self) -> str:
        """The model."""
        return self._monitor.devices[self._place].name

    def get_power_management_limit_constraints(self) -> tuple[int, int]:
        """The lowest and the highest power limit."""
        _, lowest_w, highest_w, _ = self._limits_w()
        return round(self._known(lowest_w, "its lowest limit") * _M), round(self._known(highest_w, "its highest limit") * _M)

    def get_power_management_limit(self) -> int:
        """The power limit now."""
        return round(self._known(self._limits_w()[0], "its power limit") * _M)

    def set_power_management_limit(self, power_limit_mw: int, block: bool = True) -> None:
        """Sets the power limit, until the interpreter ends."""
        self._turn(block, lambda knob: knob.set(power_limit_mw / _M))

    def reset_power_management_limit(self, block: bool = True) -> None:
        """Sets the power limit that the driver has by default, until the interpreter ends."""
        limit_w, _, _, default_w = self._limits_w()
        if default_w is None or limit_w != default_w:
            self._turn(block, lambda knob: knob.set(self._known(default_w, "its default limit")))

    def set_persistence_mode(self, enabled: bool, block: bool = True) -> None:
        """Does nothing: what is set holds while this process lives, and no longer."""

    def get_persistence_mode(self) -> bool:
        """Not supported."""
        return self._known(None, "its persistence mode through this interface; see 'flyball devices'")

    def get_supported_memory_clocks(self) -> list[int]:
        """To which the memory can be held, highest first."""
        return self._clocks_mhz(memory=True)

    def get_supported_graphics_clocks(self, memory_clock_mhz: int | None = None) -> list[int]:
        """To which the GPU can be held, highest first; the same for all clocks of its memory."""
        if memory_clock_mhz is not None and memory_clock_mhz not in self._clocks_mhz(memory=True):
            raise ZeusGPUInvalidArgError(f"GPU {self.gpu_index} has no memory clock of {memory_clock_mhz} MHz")
        return self._clocks_mhz(memory=False)

    def set_memory_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None:
        """Holds the memory's clock between two, until the interpreter ends."""
        self._turn(block, lambda knob: knob.hold_clock(min_clock_mhz, max_clock_mhz, memory=True))

    def reset_memory_locked_clocks(self, block: bool = True) -> None:
        """Lifts what was set here."""
        self._lift(block, memory=True)

    def set_gpu_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None:
        """Holds the GPU's clock between two, until the interpreter ends."""
        self._turn(block, lambda knob: knob.hold_clock(min_clock_mhz, max_clock_mhz))

    def reset_gpu_locked_clocks(self, block: bool = True) -> None:
        """Lifts what was set here."""
        self._lift(block, memory=False)

    def reset_locked_clocks(self, block: bool = True) -> None:
        """Lifts what was set here, of the GPU and of its memory."""
        self._lift(block, memory=False)
        self._lift(block, memory=True)

    def get_average_power_usage(self) -> int:
        """Power over about a second."""
        return round(self._known(self._read().power_average_w, "its average power") * _M)

    def get_instant_power_usage(self) -> int:
        """Power over the sensor's own short window."""
        return round(self._known(self._read().power_w, "its power") * _M)

    def get_average_memory_power_usage(self) -> int:
        """Not supported."""
        return self._known(None, "the power of its memory")

    def supports_get_total_energy_consumption(self) -> bool:
        """Whether it has a counter of energy."""
        return self._read().energy_j is not None

    def get_total_energy_consumption(self) -> int:
        """Its own counter, which began at some moment."""
        return round(self._known(self._read().energy_j, "its energy") * _M)

    def get_gpu_temperature(self) -> int:
        """In degrees Celsius."""
        return round(self._known(self._read().temperature_c, "its temperature"))


class GPUs:
    """The GPUs that this process sees, by the numbers that its framework gives them.

    It has the methods of a GPU, with the GPU's number before their arguments.
    """

    def __init__(self, ensure_homogeneous: bool = False) -> None:
        with _errors():
            monitor, places = open_monitor(None, sample_hz=_SAMPLE_HZ)
        if not places:
            raise ZeusGPUInitError("no GPU is seen; 'flyball doctor' tells what was looked for")
        self.gpus = [GPU(number, monitor, place) for number, place in places.items()]

    def __len__(self) -> int:
        return len(self.gpus)

    def __getattr__(self, name: str) -> Any:
        name = name if callable(getattr(GPU, name, None)) and not name.startswith("_") else _of_today(GPU, name)
        return functools.partial(self._call, name)

    def _call(self, name: str, gpu_index: int, *arguments: Any, **keywords: Any) -> Any:
        if not 0 <= gpu_index < len(self.gpus):
            raise ZeusGPUNotFoundError(f"there is no GPU {gpu_index}: the program sees {len(self.gpus)}, counted from 0")
        return getattr(self.gpus[gpu_index], name)(*arguments, **keywords)
