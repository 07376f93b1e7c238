# SPDX-License-Identifier: Apache-2.0
"""The energy-time cost."""

from __future__ import annotations


def zeus_cost(energy: float, time: float, eta_knob: float, max_power: float) -> float:
    """The cost in J: energy in J counts with the weight `eta_knob`, time in s at `max_power` W with the rest."""
    return eta_knob * energy + (1 - eta_knob) * max_power * time
