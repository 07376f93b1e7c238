# SPDX-License-Identifier: Apache-2.0
"""Flyball, an energy optimiser for training deep neural networks.

Units stand in names: _w watts, _j joules, _s seconds. A figure that is not known is None, never 0.

    import flyball

    with flyball.Monitor() as monitor, monitor.window("epoch") as window:
        train()
    print(window.measurement)
"""

import flyball._load  # noqa: F401  (decides what flyball._flyball is)
from flyball._flyball import (
    CarbonReport,
    Device,
    DeviceEnergy,
    Error,
    Measurement,
    Monitor,
    NotFoundError,
    PowerKnob,
    Sample,
    SessionStatus,
    StateError,
    Steps,
    Tuner,
    TunerPoint,
    TunerReport,
    UsageError,
    Window,
    __version__,
)
from flyball.past import Frontier, Job, Saving, Why, job, jobs
from flyball.session import Session, Split

__all__ = [
    "CarbonReport",
    "Device",
    "DeviceEnergy",
    "Error",
    "Frontier",
    "Job",
    "Measurement",
    "Monitor",
    "NotFoundError",
    "PowerKnob",
    "Sample",
    "Saving",
    "Session",
    "SessionStatus",
    "Split",
    "StateError",
    "Steps",
    "Tuner",
    "TunerPoint",
    "TunerReport",
    "UsageError",
    "Why",
    "Window",
    "__version__",
    "job",
    "jobs",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flyball import sim as sim
else:

    def __getattr__(name):
        """Loads the simulator where it is first asked for."""
        if name != "sim":
            raise AttributeError(f"module 'flyball' has no attribute '{name}'")
        import flyball.sim

        return flyball.sim
