# SPDX-License-Identifier: Apache-2.0
"""Values of the environment's variables."""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar, cast

_Value = TypeVar("_Value")
_FLAGS = {"true": True, "false": False}


def get_env(name: str, valtype: Callable[[Any], _Value], default: _Value | None = None) -> _Value:
    """The variable's value as `valtype` makes it of text; the default where the variable is not set.

    Of bool the text is 'true' or 'false', in small or capital letters. Raises ValueError for other text, and for a
    variable that is not set and has no default.
    """
    text = os.environ.get(name)
    if text is None:
        if default is None:
            raise ValueError(f"the variable {name} is not set")
        return default
    if valtype is not bool:
        return valtype(text)
    if text.lower() not in _FLAGS:
        raise ValueError(f"{name} is '{text}'; give true or false")
    return cast(_Value, _FLAGS[text.lower()])
