# SPDX-License-Identifier: Apache-2.0
"""Where this machine is. Nothing asks for it but who calls `get_ip_lat_long`."""

from __future__ import annotations

import http.client
import json
import time
import urllib.request

_SERVICE = "http://ipinfo.io/json"
_TIMEOUT_S = 10.0
_BYTES_MAX = 1 << 16


def _ask() -> bytes:
    """What the service answers within the time, however slowly it sends."""
    end = time.monotonic() + _TIMEOUT_S
    said = b""
    with urllib.request.urlopen(_SERVICE, timeout=_TIMEOUT_S) as answer:
        while piece := answer.read1(_BYTES_MAX):
            said += piece
            if len(said) > _BYTES_MAX or time.monotonic() > end:
                raise TimeoutError(f"no whole answer of at most {_BYTES_MAX} bytes within {_TIMEOUT_S:g} s")
    return said


def get_ip_lat_long() -> tuple[float, float]:
    """Latitude and longitude in degrees, as ipinfo.io guesses them of the address of whoever asks it.

    Raises OSError without an answer in 10 s, ValueError for one without a place.
    """
    try:
        said = _ask()
    except (OSError, http.client.HTTPException) as error:
        raise OSError(f"{_SERVICE} did not say where this machine is: {error}; give latitude and longitude yourself") from error
    try:
        latitude, longitude = (float(degrees) for degrees in json.loads(said)["loc"].split(","))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        shown = said[:200].decode(errors="replace")
        raise ValueError(f"{_SERVICE} does not know this place: {shown!r}; give latitude and longitude yourself") from error
    return latitude, longitude
