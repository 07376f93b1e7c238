# SPDX-License-Identifier: Apache-2.0
"""A training of a recurring job, of which a server chooses the batch size and says when to stop."""

from __future__ import annotations

import contextlib
import math
import os
import weakref
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from flyball.compat.zeus.callback import Callback
from flyball.compat.zeus.monitor.visible import open_monitor
from flyball.compat.zeus.optimizer.batch_size.common import (
    GET_NEXT_BATCH_SIZE_URL,
    REGISTER_JOB_URL,
    REPORT_END_URL,
    REPORT_RESULT_URL,
    CreatedJob,
    JobSpec,
    JobSpecFromClient,
    ReportResponse,
    TrainingResult,
    TrialId,
)
from flyball.compat.zeus.optimizer.batch_size.exceptions import (
    ZeusBSOConfigError,
    ZeusBSOOperationOrderError,
    ZeusBSORankError,
    ZeusBSORuntimeError,
    ZeusBSOTrainFailError,
)
from flyball.compat.zeus.optimizer.batch_size.server import Server, with_query
from flyball.compat.zeus.utils.framework import all_gather, broadcast, hear, is_distributed, tell

if TYPE_CHECKING:
    import flyball
    from flyball.compat.zeus.monitor.energy import ZeusMonitor

_WINDOW = "BatciSizeOptimizerClient"  # which log files have; the name is theirs
_EXIT_TIMEOUT_S = 5.0


def _gpus(monitor: ZeusMonitor) -> dict[str, tuple[str, float | None]]:
    """Model and highest power of each of the monitor's GPUs, by identity."""
    meter: flyball.Monitor = getattr(monitor, "_monitor", None) or open_monitor(monitor.gpu_indices)[0]
    return {
        device.uuid: (device.name, meter.max_power_w(place)) for place, device in enumerate(meter.devices) if device.kind == "GPU"
    }


def _spec(job: JobSpec, gpus: dict[str, tuple[str, float | None]]) -> JobSpecFromClient:
    """The job with its GPUs, which have to be of one model."""
    models = sorted({model for model, _ in gpus.values()})
    if len(models) != 1:
        raise ZeusBSOConfigError(f"the GPUs of a job have to be of one model: {', '.join(models) or 'there is none'}")
    power_w = next(iter(gpus.values()))[1]
    if power_w is None:
        raise ZeusBSOConfigError(f"'{models[0]}' does not say how much power it may draw")
    config = {"max_power": int(power_w) * len(gpus), "number_of_gpus": len(gpus), "gpu_model": models[0]}
    return JobSpecFromClient(**job.dict(), **config)


def _end(server: Server, trial: TrialId, process: int) -> None:
    """At exit: a trial that still goes on has failed. What the server says of it is of no use any more."""
    if os.getpid() != process:
        return
    with contextlib.suppress(ZeusBSORuntimeError):
        server.ask("PATCH", REPORT_END_URL, trial, again=False, timeout_s=_EXIT_TIMEOUT_S)


class BatchSizeOptimizer(Callback):
    """Asks a server for the batch size of this training, and reports to it.

        optimizer = BatchSizeOptimizer(ZeusMonitor(), "http://127.0.0.1:7470", job)
        batch_size = optimizer.get_batch_size()
        optimizer.on_train_begin()
        for epoch in range(100):
            train(batch_size)
            optimizer.on_evaluate(metric=validate())
            if optimizer.training_finished:
                break

    monitor     of the GPUs of this training, or of this rank
    server_url  where the server is (docs/howto/zeus_server.md)
    job         which recurring job this is
    rank        of this process; rank 0 speaks to the server

    With a group of torch.distributed, all ranks make this object and call on_train_begin and on_evaluate at the same
    points: energies are added up over all GPUs, times are those of the slowest rank, and all ranks hear the same. The
    other ranks call get_batch_size too, or set current_batch_size and trial_number to those of rank 0.

    Raises ZeusBSORuntimeError when the server cannot be reached or refuses, ZeusBSOConfigError for a job that it
    knows otherwise and for GPUs of several models.
    """

    def __init__(self, monitor: ZeusMonitor, server_url: str, job: JobSpec, rank: int = 0) -> None:
        self.monitor = monitor
        self.server_url = server_url
        self.rank = rank
        self.training_finished = False
        self.cur_epoch = 0
        self.running_time = 0.0
        self.consumed_energy = 0.0
        self.current_batch_size = 0
        self.trial_number = 0
        self._open = False
        self._key = ""
        self._server = Server(server_url)
        self._identities = list(_gpus(monitor))
        self.job_spec = _spec(job, {uuid: facts for gpus in all_gather(_gpus(monitor)) for uuid, facts in gpus.items()})
        self.job: CreatedJob | None = None
        if rank == 0 or is_distributed():
            self.job, self._key = self._as_one(self._register)

    def _register(self) -> tuple[CreatedJob, str]:
        """The job as the server knows it, and where its ranks find the batch size."""
        return CreatedJob.parse_obj(self._server.ask("POST", REGISTER_JOB_URL, self.job_spec)), f"flyball/batch_size/{uuid4()}"

    def _answer(self, ask: Any) -> Any:
        """What rank 0 hears from the server, or the exception; None on other ranks."""
        if self.rank != 0:
            return None
        try:
            return ask()
        except ZeusBSORuntimeError as error:
            return error
        except ValueError as error:
            return ZeusBSORuntimeError(f"the batch-size server's answer cannot be understood: {error}")

    def _heard(self, heard: Any) -> Any:
        if isinstance(heard, Exception):
            raise heard
        if heard is None:
            raise ZeusBSORankError(f"rank {self.rank} hears of rank 0 through torch.distributed; make its group first")
        return heard

    def _as_one(self, ask: Any) -> Any:
        """What rank 0 hears from the server, on all ranks; also what it raises."""
        return self._heard(broadcast(self._answer(ask)))

    def get_batch_size(self) -> int:
        """The batch size of this training: samples in an optimizer step, over all ranks. Asked for once.

        Rank 0 waits for no other rank. The others wait for rank 0.
        """
        if self.current_batch_size == 0:
            answer = self._answer(self._ask_for_trial)
            if self.rank == 0:
                tell(self._key, answer)
            trial = self._heard(answer if self.rank == 0 else hear(self._key))
            self.current_batch_size, self.trial_number = int(trial.batch_size), int(trial.trial_number)
            if self.rank == 0:
                self._at_exit = weakref.finalize(self, _end, self._server, trial, os.getpid())
        return self.current_batch_size

    def _ask_for_trial(self) -> TrialId:
        assert self.job is not None and self.job.job_id is not None
        path = with_query(GET_NEXT_BATCH_SIZE_URL, job_id=self.job.job_id)
        return TrialId.parse_obj(self._server.ask("GET", path, again=False))

    def on_train_begin(self) -> None:
        """The first epoch is about to begin."""
        self.monitor.begin_window(_WINDOW, restart=True)
        self._open = True

    def on_evaluate(self, metric: float) -> None:
        """An epoch was evaluated: reports what the training has taken, and hears whether to go on.

        Sets `training_finished` when it is over. Raises ZeusBSOTrainFailError when it is stopped without having
        reached its target, ZeusBSOOperationOrderError before get_batch_size and on_train_begin.
        """
        if self.training_finished:
            return
        if self.current_batch_size == 0 or not self._open:
            raise ZeusBSOOperationOrderError("call get_batch_size and on_train_begin before on_evaluate")
        self._open = False
        self._add(self.monitor.end_window(_WINDOW))
        self.cur_epoch += 1
        response = self._as_one(lambda: self._report(metric))
        if response.stop_train:
            self.training_finished = True
            if self.rank == 0:
                self._at_exit.detach()
            if not response.converged:
                raise ZeusBSOTrainFailError(f"the batch-size server stops this training: {response.message}")
            return
        self.on_train_begin()

    def _add(self, measured: Any) -> None:
        """Adds what the window held on all ranks. A GPU that two of them measure counts once."""
        own = dict(zip(self._identities, measured.gpu_energy.values()))
        ranks = all_gather((own, measured.time))
        self.consumed_energy += sum({uuid: energy_j for energies, _ in ranks for uuid, energy_j in energies.items()}.values())
        self.running_time += max(time_s for _, time_s in ranks)
        if math.isnan(self.consumed_energy):
            raise ZeusBSORuntimeError("the energy of this epoch is not known; see 'flyball doctor'")

    def _report(self, metric: float) -> ReportResponse:
        assert self.job is not None
        result = TrainingResult(
            job_id=self.job.job_id,
            batch_size=self.current_batch_size,
            trial_number=self.trial_number,
            time=self.running_time,
            energy=self.consumed_energy,
            metric=float(metric),
            current_epoch=self.cur_epoch,
        )
        return ReportResponse.parse_obj(self._server.ask("POST", REPORT_RESULT_URL, result))
