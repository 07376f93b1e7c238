# SPDX-License-Identifier: Apache-2.0
"""Batch sizes of recurring trainings, chosen by a server."""

from flyball.compat.zeus.optimizer.batch_size.client import BatchSizeOptimizer
from flyball.compat.zeus.optimizer.batch_size.common import JobSpec

__all__ = ["BatchSizeOptimizer", "JobSpec"]
