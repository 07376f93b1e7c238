# SPDX-License-Identifier: Apache-2.0
"""What a simulation gives: columns, and the frontier of a job. Use flyball.sim."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class Table(dict):  # type: ignore[type-arg]
    """Columns of a simulation: a dict of lists, which pandas.DataFrame and polars.DataFrame take as it is.

    units    the unit of each column that has one, as {'energy_j': 'J'}
    help     one sentence for each column
    unknown  why a figure is None: {'optimum_cost_j': ['no batch size reaches the target', None]}, for columns that lack some
    notes    what was left out, as the command says it on stderr
    tries    the tries, a Table; None unless they were asked for
    """

    units: dict[str, str]
    help: dict[str, str]
    unknown: dict[str, list[str | None]]
    notes: list[str]
    tries: Table | None

    def __init__(self, columns: Iterable[tuple[str, str | None, str, list[Any], list[str | None] | None]], notes: Sequence[str] = ()) -> None:
        super().__init__()
        self.units, self.help, self.unknown, self.notes, self.tries = {}, {}, {}, list(notes), None
        for key, unit, help_, values, reasons in columns:
            self[key] = values
            self.help[key] = help_
            if unit is not None:
                self.units[key] = unit
            if reasons is not None:
                self.unknown[key] = reasons

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ((),), self.__dict__, None, iter(self.items())

    @property
    def row_count(self) -> int:
        return len(next(iter(self.values()), []))

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        return [dict(zip(self, row)) for row in zip(*self.values())]

    def __repr__(self) -> str:
        return f"<flyball.sim.{type(self).__name__}: {self.row_count} rows of {len(self)} columns>"

    def _repr_html_(self) -> str:
        return _html(self, range(self.row_count), list(self))


class Frontier(Table):
    """The choices of a job, fastest first: batch_size, power_limit_w, time_s and energy_j to the target, cost_j, their
    change against the default in percent, and 1 or 0 in on_frontier, default and chosen.
    """

    def _marked(self, mark: str) -> dict[str, Any] | None:
        return next((row for row in self.rows() if row[mark]), None)

    @property
    def chosen(self) -> dict[str, Any]:
        """The choice that is best for the objective."""
        row = self._marked("chosen")
        assert row is not None  # without a choice there is no frontier
        return row

    @property
    def default(self) -> dict[str, Any] | None:
        """The default batch size at the highest limit; None if it never reaches the target."""
        return self._marked("default")

    def _repr_html_(self) -> str:
        shown = [i for i in range(self.row_count) if self["on_frontier"][i] or self["default"][i]]
        columns = [name for name in self if name != "on_frontier"]
        return _picture(self) + _html(self, shown, columns)


def _cell(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def _html(table: Table, rows: Iterable[int], columns: Sequence[str]) -> str:
    from flyball import notebook

    return notebook.table("; ".join(table.notes), columns, [[_cell(table[name][i]) for name in columns] for i in rows])


_WIDTH, _HEIGHT, _EDGE = 480, 300, 44


def _scaled(values: list[float], low: float, high: float) -> list[float]:
    least, most = min(values), max(values)
    return [low + (high - low) * ((value - least) / (most - least) if most > least else 0.5) for value in values]


def _picture(frontier: Frontier) -> str:
    """Time to the right and energy upwards: all choices grey, the frontier joined, default and choice marked."""
    if frontier.row_count == 0:
        return ""
    x = _scaled(frontier["time_s"], _EDGE, _WIDTH - 10)
    y = _scaled(frontier["energy_j"], _HEIGHT - _EDGE, 10)
    joined = " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in range(len(x)) if frontier["on_frontier"][i])
    dots = []
    for i, (left, top) in enumerate(zip(x, y)):
        colour = "#d62728" if frontier["chosen"][i] else "#1f77b4" if frontier["default"][i] else "#2ca02c" if frontier["on_frontier"][i] else "#bbbbbb"
        what = f"batch {frontier['batch_size'][i]} at {frontier['power_limit_w'][i]:g} W"
        radius = 6 if frontier["chosen"][i] or frontier["default"][i] else 3
        dots.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{radius}" fill="{colour}"><title>{what}</title></circle>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img" font-size="12">'
        f'<polyline points="{joined}" fill="none" stroke="#2ca02c"/>{"".join(dots)}'
        f'<text x="{_WIDTH // 2}" y="{_HEIGHT - 8}" text-anchor="middle">time to the target: '
        f"{_cell(min(frontier['time_s']))} to {_cell(max(frontier['time_s']))} s</text>"
        f'<text x="14" y="{_HEIGHT // 2}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT // 2})">energy: '
        f"{_cell(min(frontier['energy_j']))} to {_cell(max(frontier['energy_j']))} J</text>"
        f'<text x="{_WIDTH - 10}" y="20" text-anchor="end"><tspan fill="#d62728">chosen</tspan> '
        f'<tspan fill="#1f77b4">default</tspan> <tspan fill="#2ca02c">frontier</tspan></text></svg>'
    )
