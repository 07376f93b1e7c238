# SPDX-License-Identifier: Apache-2.0
"""The batch-size server's routes, as a client asks them."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from flyball.compat.zeus.model import Model
from flyball.compat.zeus.optimizer.batch_size.exceptions import ZeusBSOConflictError, ZeusBSORuntimeError

TIMEOUT_S = 60.0
_PAUSES_S = (1.0, 2.0, 4.0)
_BUSY = 503


class Server:
    """A server at an address, which may end in a path of its own, such as /token/fly_..."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def ask(self, method: str, path: str, body: Model | None = None, *, again: bool = True, timeout_s: float = TIMEOUT_S) -> Any:
        """The answer's JSON.

        again  a question that was lost, or came while the server was busy, is asked again

        Raises ZeusBSORuntimeError, for a job that the server knows otherwise ZeusBSOConflictError.
        """
        for pause_s in _PAUSES_S if again else ():
            try:
                return self._once(method, path, body, timeout_s)
            except _Lost:
                time.sleep(pause_s)
        return self._once(method, path, body, timeout_s)

    def _once(self, method: str, path: str, body: Model | None, timeout_s: float) -> Any:
        content = None if body is None else body.json().encode()
        request = urllib.request.Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refusal(method, path, error.code, error.read()) from error
        except (OSError, ValueError) as error:
            raise _Lost(f"{method} {path}: no answer from the batch-size server: {error}") from error


class _Lost(ZeusBSORuntimeError):
    """Nobody knows whether the server was asked."""


def _refusal(method: str, path: str, status: int, body: bytes) -> ZeusBSORuntimeError:
    try:
        said = json.loads(body)
        words = said.get("message") or json.dumps(said.get("detail"))
    except (AttributeError, ValueError):
        words = body.decode(errors="replace")
    message = f"{method} {path}: the batch-size server answers {status}: {words}"
    if status == _BUSY:
        return _Lost(message)
    return ZeusBSOConflictError(message) if status == 409 else ZeusBSORuntimeError(message)


def with_query(path: str, **query: str) -> str:
    """The path with what is asked for behind it."""
    return f"{path}?{urllib.parse.urlencode(query)}"
