# SPDX-License-Identifier: Apache-2.0
"""How objects look in a notebook: tables in HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Optional

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def quantity(value: Optional[float], unit: str) -> str:
    """'1.403 kJ' of a figure; 'unknown' of None."""
    if value is None:
        return "unknown"
    factor, prefix = next((pair for pair in _PREFIXES if abs(value) >= pair[0]), (1.0, ""))
    return f"{value / factor:.4g} {prefix}{unit}"


def percent(value: Optional[float]) -> str:
    """'3.2 %' of a fraction; '' of None."""
    return "" if value is None else f"{100 * value:.3g} %"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, which it escapes."""

    def row(cells: Sequence[str], mark: str) -> str:
        return "<tr>" + "".join(f"<{mark}>{html.escape(cell)}</{mark}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><caption>{html.escape(caption)}</caption><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _energy(device: Any) -> str:
    text = quantity(device.energy_j, "J")
    return text if device.uncertainty_j is None else f"{text} ± {quantity(device.uncertainty_j, 'J')}"


def measurement(measured: Any) -> str:
    """A window's table."""
    rows = [
        (f"{device.device.kind} {device.device.index}", _energy(device), quantity(device.mean_power_w, "W"), device.source, device.note)
        for device in measured.devices
    ]
    return table(f"{measured.name}: {quantity(measured.time_s, 's')}", ("device", "energy", "mean", "source", "note"), rows)


def window(of: Any) -> str:
    """The table of a window that has ended, or its state."""
    return measurement(of.measurement) if of.measurement is not None else html.escape(repr(of))


def _setting(point: Any) -> str:
    names = ((point.limit_w, "W"), (point.ceiling_mhz, "MHz"))
    known = [f"{value:g} {unit}" for value, unit in names if value is not None]
    if known:
        return ", ".join(known)
    return "no profile" if point.workload_profile is None else f"profile {point.workload_profile}"


def points(measured: Iterable[Any]) -> str:
    """A tuner's table of what each setting is worth."""
    rows = [
        (_setting(point), quantity(point.energy_j, "J"), percent(point.energy_error), quantity(point.time_s, "s"), quantity(point.power_w, "W"), point.mark)
        for point in measured
    ]
    return table("a step under each setting", ("setting", "energy", "within", "time", "mean", "mark"), rows)


class Points(tuple):  # type: ignore[type-arg]
    """The points of a tuner: a tuple that a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return points(self)


def tuner(tuned: Any) -> str:
    """A tuner's state, limit and points."""
    try:
        report, measured = tuned.report, tuned.points
    except RuntimeError:  # it has not begun
        return html.escape(repr(tuned))
    limit = quantity(report.limit_w, "W") if report.ceiling_mhz is None else quantity(report.ceiling_mhz * 1e6, "Hz")
    said = report.text or (f"{tuned.state} at {limit}" + ("" if report.slowdown is None else f", {report.slowdown:.3f} times the time of a step"))
    return f"<p>{html.escape(said)}</p>" + points(measured)
