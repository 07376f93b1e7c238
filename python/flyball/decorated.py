# SPDX-License-Identifier: Apache-2.0
"""Functions each call of which is a window; Window.__call__ loads this when it decorates the first one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flyball._flyball import Monitor


def _awaited(monitor: Monitor, name: str, function: Callable[..., Any]) -> Any:
    async def measured(*arguments: Any, **keywords: Any) -> Any:
        with monitor.window(name) as window:
            result = await function(*arguments, **keywords)
        wrapper.measurement = window.measurement
        return result

    wrapper: Any = functools.wraps(function)(measured)
    return wrapper


def _called(monitor: Monitor, name: str, function: Callable[..., Any]) -> Any:
    def measured(*arguments: Any, **keywords: Any) -> Any:
        with monitor.window(name) as window:
            result = function(*arguments, **keywords)
        wrapper.measurement = window.measurement
        return result

    wrapper: Any = functools.wraps(function)(measured)
    return wrapper


def decorated(monitor: Monitor, name: str, function: Callable[..., Any]) -> Any:
    """Returns the function with a window around each call; its attribute `measurement` is that of the newest one."""
    if not callable(function):
        raise TypeError("a window decorates a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a window cannot decorate a generator, which works after its call has returned; use 'with' inside")
    wrapper = (_awaited if inspect.iscoroutinefunction(function) else _called)(monitor, name, function)
    wrapper.measurement = None
    return wrapper
