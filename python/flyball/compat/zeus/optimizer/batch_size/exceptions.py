# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between a training and the batch-size server."""

from __future__ import annotations

from flyball.compat.zeus.exception import ZeusBaseError


class ZeusBSORuntimError(ZeusBaseError):
    """The server cannot be reached, refuses, or answers what cannot be understood. The name is theirs."""


ZeusBSORuntimeError = ZeusBSORuntimError


class ZeusBSOTrainFailError(ZeusBaseError):
    """The server stops a training that has not reached its target."""


class ZeusBSOConfigError(ZeusBaseError):
    """The job is not the one that the server knows by this name, or does not fit this machine."""


class ZeusBSOOperationOrderError(ZeusBaseError):
    """Calls came in another order than get_batch_size, on_train_begin, on_evaluate."""


class ZeusBSOBadOperationError(ZeusBaseError):
    """The request makes no sense to the server."""


class ZeusBSOConflictError(ZeusBSOConfigError, ZeusBSORuntimeError):
    """The server's refusal of a job that it knows otherwise."""


class ZeusBSORankError(ZeusBSOOperationOrderError, ZeusBSOBadOperationError):
    """A rank other than 0 hears of nobody what rank 0 was told."""
