# SPDX-License-Identifier: Apache-2.0
"""Monitors of energy, power and temperature."""

from flyball.compat.zeus.monitor.energy import Measurement, ZeusMonitor
from flyball.compat.zeus.monitor.power import PowerDomain, PowerMonitor
from flyball.compat.zeus.monitor.temperature import TemperatureMonitor

__all__ = ["Measurement", "PowerDomain", "PowerMonitor", "TemperatureMonitor", "ZeusMonitor"]
