# SPDX-License-Identifier: Apache-2.0
"""Policies of batch sizes and power limits."""

from flyball.compat.zeus._legacy.policy.interface import BatchSizeOptimizer, PowerLimitOptimizer
from flyball.compat.zeus._legacy.policy.optimizer import JITPowerLimitOptimizer, PruningGTSBatchSizeOptimizer

__all__ = ["BatchSizeOptimizer", "JITPowerLimitOptimizer", "PowerLimitOptimizer", "PruningGTSBatchSizeOptimizer"]
