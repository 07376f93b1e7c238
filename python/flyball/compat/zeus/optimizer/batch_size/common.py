# SPDX-License-Identifier: Apache-2.0
"""What client and server of batch sizes tell each other."""

from __future__ import annotations

from typing import Optional

from flyball.compat.zeus.model import Model, field, flag, optional, real, text, whole, wholes

# The routes of a server.
REGISTER_JOB_URL = DELETE_JOB_URL = "/jobs"
GET_NEXT_BATCH_SIZE_URL = "/jobs/batch_size"
REPORT_RESULT_URL = "/report"
REPORT_END_URL = "/trials"


class JobParams(Model):
    """A recurring job.

    job_id                   its name; None: the server makes one that begins with job_id_prefix
    batch_sizes              to choose from, samples in an optimizer step over all data-parallel replicas
    default_batch_size       one of them, which is tried first
    eta_knob                 0 to 1, the weight of energy in the cost
    beta_knob                a training that costs more than so many times the least so far is stopped; None: none is
    target_metric            what a training has to reach
    higher_is_better_metric  whether it has to reach it from below
    max_epochs               of one training
    num_pruning_rounds       how often each batch size is tried before the others are left out
    window_size              how many of the newest results of a batch size count; 0: all
    mab_prior_mean, mab_prior_precision   what is believed before any result
    mab_num_explorations     results of each batch size before it is drawn
    mab_seed                 of the draws; None: the server's own
    """

    job_id: Optional[str] = field(optional(text), None)
    job_id_prefix: str = field(text)
    batch_sizes: list[int] = field(wholes)
    default_batch_size: int = field(whole, above=0)
    eta_knob: float = field(real, 0.5, at_least=0, at_most=1)
    beta_knob: Optional[float] = field(optional(real), 2.0, above=0)
    target_metric: float = field(real, 0.5)
    higher_is_better_metric: bool = field(flag, True)
    max_epochs: int = field(whole, 100, above=0)
    num_pruning_rounds: int = field(whole, 2, at_least=0)
    window_size: int = field(whole, 0, at_least=0)
    mab_prior_mean: float = field(real, 0.0)
    mab_prior_precision: float = field(real, 0.0, at_least=0)
    mab_num_explorations: int = field(whole, 2, at_least=0)
    mab_seed: Optional[int] = field(optional(whole), None)

    def check(self) -> None:
        """Sorts the batch sizes."""
        if not self.batch_sizes:
            raise ValueError("batch_sizes is empty; give at least one")
        self.batch_sizes = sorted(self.batch_sizes)
        if self.batch_sizes[0] < 1 or len(set(self.batch_sizes)) < len(self.batch_sizes):
            raise ValueError(f"batch_sizes is {self.batch_sizes}; give different numbers from 1")
        if self.default_batch_size not in self.batch_sizes:
            raise ValueError(f"default_batch_size is {self.default_batch_size}; give one of {self.batch_sizes}")
        if self.job_id is not None and not self.job_id.startswith(self.job_id_prefix):
            raise ValueError(f"job_id is '{self.job_id}'; it has to begin with job_id_prefix '{self.job_id_prefix}'")


class GpuConfig(Model):
    """The GPUs of a job: their highest power, all together, in W; how many; which model."""

    max_power: float = field(real, above=0)
    number_of_gpus: int = field(whole, above=0)
    gpu_model: str = field(text)


class JobSpec(JobParams):
    """A recurring job, as a user states it."""


class JobSpecFromClient(JobSpec, GpuConfig):
    """The same with its GPUs."""


class CreatedJob(JobParams, GpuConfig):
    """The same with its name, as the server knows it."""


class TrialId(Model):
    """One training of a job."""

    job_id: str = field(text)
    batch_size: int = field(whole, above=0)
    trial_number: int = field(whole)


class TrainingResult(TrialId):
    """What a training has taken so far, in s and J, and reached."""

    time: float = field(real)
    energy: float = field(real)
    metric: float = field(float)
    current_epoch: int = field(whole)


class ReportResponse(Model):
    """Whether to stop, whether the target is reached, and why."""

    stop_train: bool = field(flag)
    converged: bool = field(flag)
    message: str = field(text)
