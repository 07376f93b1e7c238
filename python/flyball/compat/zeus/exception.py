# SPDX-License-Identifier: Apache-2.0
"""The base of the exceptions of this interface."""

from __future__ import annotations


class ZeusBaseError(Exception):
    """Whatever the classes of this interface raise of their own; `message` is its sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
