# SPDX-License-Identifier: Apache-2.0
"""What the classes of this interface share, and small things that programs written for it import."""

from flyball.compat.zeus.utils.benchmark import measure

__all__ = ["measure"]
