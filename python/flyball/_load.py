# SPDX-License-Identifier: Apache-2.0
"""Decides what flyball._flyball is: the extension module, or what stands in for it where the C library is not."""

import sys

from flyball._version import version


def _is_absent(error: ImportError) -> bool:
    """Whether there is no library. One of another version, or for another interpreter, is refused."""
    if isinstance(error, ModuleNotFoundError):
        return error.name == "flyball._flyball"
    return sys.platform != "linux" or "cannot open shared object file" in str(error)


try:
    import flyball._flyball as _flyball
except ImportError as error:
    if not _is_absent(error):
        raise
    from flyball import _inert

    _inert.reason = f"Flyball's C library is not here, so nothing is measured or set: {error}"
    sys.modules["flyball._flyball"] = _inert
    sys.modules["flyball"]._flyball = _inert  # type: ignore[attr-defined]
else:
    if _flyball.__version__ != version:
        raise ImportError(f"the package flyball {version} found an extension module of {_flyball.__version__}; install both from one version")
