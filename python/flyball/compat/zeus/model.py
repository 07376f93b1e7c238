# SPDX-License-Identifier: Apache-2.0
"""Values that check themselves when they are made, are compared by what they hold, and go to JSON and back."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

_Made = TypeVar("_Made", bound="Model")
_NEEDED = object()


def whole(value: Any) -> int:
    """The value as an int, if nothing is lost."""
    if isinstance(value, bool) or int(value) != (float(value) if isinstance(value, str) else value):
        raise ValueError("a whole number is needed")
    return int(value)


def real(value: Any) -> float:
    """The value as a finite float."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a finite number is needed")
    return number


def text(value: Any) -> str:
    """The value, if it is a str."""
    if not isinstance(value, str):
        raise ValueError("text is needed")
    return value


def flag(value: Any) -> bool:
    """The value, if it is a bool."""
    if not isinstance(value, bool):
        raise ValueError("True or False is needed")
    return value


def wholes(value: Any) -> list[int]:
    """The values as ints."""
    return [whole(item) for item in value]


def optional(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The kind, or None."""
    return lambda value: None if value is None else kind(value)


class Field:
    """A member of a model.

    kind      turns what is given into the value, or raises ValueError or TypeError
    default   that of a member that may be left out
    above     what a number has to be above
    at_least  what a number has to reach
    """

    def __init__(
        self,
        kind: Callable[[Any], Any],
        default: Any = _NEEDED,
        *,
        above: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        self.kind = kind
        self.default = default
        self.bounds: tuple[tuple[float | None, Callable[[Any, Any], Any], str], ...] = (
            (above, operator.gt, "above"),
            (at_least, operator.ge, "at least"),
            (at_most, operator.le, "at most"),
        )

    def read(self, name: str, value: Any) -> Any:
        """The value, or ValueError with the member's name."""
        if value is _NEEDED:
            raise ValueError(f"{name} is needed")
        try:
            made = self.kind(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} is {value!r}: {error}") from error
        for bound, keeps, words in self.bounds:
            if bound is not None and made is not None and not keeps(made, bound):
                raise ValueError(f"{name} is {value!r}; give a number {words} {bound}")
        return made


def field(kind: Callable[[Any], Any], default: Any = _NEEDED, **bounds: float) -> Any:
    """A Field, for a class of which annotations say what its members are."""
    return Field(kind, default, **bounds)


class Model:
    """The base of values with members; what is given by other names is left out. Raises ValueError."""

    _fields: dict[str, Field] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        inherited = [getattr(base, "_fields", {}) for base in reversed(cls.__mro__)]
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls._fields = {name: value for fields in [*inherited, own] for name, value in fields.items()}

    def __init__(self, **values: Any) -> None:
        for name, member in self._fields.items():
            setattr(self, name, member.read(name, values.get(name, member.default)))
        self.check()

    def check(self) -> None:
        """Raises ValueError if members do not fit each other."""

    def dict(self) -> dict[str, Any]:
        """The members by name."""
        return {name: getattr(self, name) for name in self._fields}

    model_dump = dict

    def json(self, *, indent: int | None = None) -> str:
        """The members as JSON."""
        return json.dumps(self.dict(), indent=indent)

    model_dump_json = json

    @classmethod
    def parse_obj(cls: type[_Made], values: Any) -> _Made:
        """Made of members by name, as JSON gives them."""
        if not isinstance(values, dict):
            raise ValueError(f"{cls.__name__} is {values!r}; give an object")
        return cls(**values)

    model_validate = parse_obj

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Model) and self.dict() == other.dict()

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in self.dict().items())
        return f"{type(self).__name__}({members})"
