# SPDX-License-Identifier: Apache-2.0
"""Where this machine is."""

from __future__ import annotations

import json
import urllib.request

_SERVICE = "http://ipinfo.io/json"
_TIMEOUT_S = 30.0


def get_ip_lat_long() -> tuple[float, float]:
    """Latitude and longitude in degrees, as ipinfo.io guesses them of the address of whoever asks it.

    Raises OSError without an answer, ValueError for one without a place.
    """
    with urllib.request.urlopen(_SERVICE, timeout=_TIMEOUT_S) as answer:
        said = json.load(answer)
    if not isinstance(said, dict) or "loc" not in said:
        raise ValueError(f"ipinfo.io does not know this place: {said}")
    latitude, longitude = (float(degrees) for degrees in str(said["loc"]).split(","))
    return latitude, longitude
