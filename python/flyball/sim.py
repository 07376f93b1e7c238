# SPDX-License-Identifier: Apache-2.0
"""The simulator: recurring jobs replayed from recorded traces, through the same decisions as live jobs.

    table = flyball.sim.job("traces", "v100", policies=["zeus", "bayes"])
    pandas.DataFrame(table)

Each function does what the command `flyball sim` of its name does, with its defaults, and gives the same figures:
columns as plain lists, all of one length, under the names of the command's JSON. What is not known is None, never 0.
Equal arguments give equal tables. A policy can be a class of your own: see Policy.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from flyball._flyball import _sim_compare, _sim_groups, _sim_jobs, _sim_pareto
from flyball.sim_policy import Job, Policy, PolicyError, Profile, Question, Trial, policy_of
from flyball.sim_tables import Frontier, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar, Union

    from flyball._flyball import _SimTables

    _AnyTable = TypeVar("_AnyTable", bound=Table)
    _Path = Union[str, os.PathLike[str]]
    _Own = Callable[["Job"], "Policy"]
    _Policies = Union[str, _Own, Iterable[Union[str, _Own]]]

__all__ = ["Description", "Frontier", "Job", "Policy", "PolicyError", "Profile", "Question", "Table", "Trial", "compare", "group", "job", "pareto", "read_jobs"]


class Description(NamedTuple):
    """A job of the traces that is none of the six of the Zeus paper, or differs from the one of its name.

    name, network, optimizer  texts; `dataset`, the rows of the traces, is the name unless given
    target_metric             exactly as in the traces
    max_epochs                after which a try has failed
    default_batch_size        today's, from which the search starts
    batch_sizes               to choose from; (): all that the traces have
    untold                    what happened to the job that a trace has no words for, so that in_order is refused
    """

    name: str
    network: str
    optimizer: str
    target_metric: float
    max_epochs: int
    default_batch_size: int
    dataset: str | None = None
    batch_sizes: tuple[int, ...] = ()
    untold: str | None = None


def read_jobs(path: _Path) -> list[Description]:
    """Reads a job file, such as `flyball job export` and `flyball sim make-trace` write.

    Raises ValueError for a file that is none.
    """
    import configparser

    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(";",))
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        return [_described(name, parser[name]) for name in parser.sections()]
    except (configparser.Error, KeyError) as error:
        raise ValueError(f"{os.fspath(path)}: no job file: {error}") from error


def _described(name: str, fields: Mapping[str, str]) -> Description:
    sizes = fields.get("batch_sizes", "")
    return Description(
        name,
        fields["network"],
        fields["optimizer"],
        float(fields["target_metric"]),
        int(fields["max_epochs"]),
        int(fields["default_batch_size"]),
        fields.get("dataset"),
        tuple(_sizes(sizes)),
        fields.get("untold"),
    )


def _sizes(text: str) -> list[int]:
    """The numbers of '8,16' and '8-10'."""
    listed: list[int] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        listed += range(int(first), int(last or first) + 1)
    return listed


def _options(
    traces: _Path | None,
    gpu: str | None,
    jobs: str | Iterable[str] | None,
    described: _Path | Iterable[Description],
    objective: str | None,
    eta: float | None,
    max_slowdown: str | float | None,
) -> dict[str, Any]:
    """The options that every simulation has."""
    known = read_jobs(described) if isinstance(described, (str, os.PathLike)) else described
    return {
        "traces": traces,
        "gpu_model": gpu,
        "jobs": None if jobs is None else [jobs] if isinstance(jobs, str) else list(jobs),
        "described": [
            (one.name, one.dataset, one.network, one.optimizer, one.target_metric, one.max_epochs, one.default_batch_size, tuple(one.batch_sizes), one.untold)
            for one in known
        ],
        "objective": (objective, 0.5 if objective is None and eta is None else eta, max_slowdown),
        "notes": [],
    }


def _searching(options: dict[str, Any], policies: _Policies, **others: Any) -> dict[str, Any]:
    """Adds how policies search, and how the simulations run."""
    listed = [policies] if isinstance(policies, (str, os.PathLike)) or callable(policies) else list(policies)
    options["policies"] = [policy_of(given) for given in listed]
    options.update(others)
    return options


def _table_of(kind: type[_AnyTable], simulated: _SimTables, options: dict[str, Any]) -> _AnyTable:
    """What a simulation gave, with the notes that it made."""
    rows, tries = simulated
    table = kind(rows, options["notes"])
    table.tries = None if tries is None else Table(tries)
    return table


def job(
    traces: _Path,
    gpu: str,
    jobs: str | Iterable[str] | None = None,
    *,
    policies: _Policies = "zeus",
    seeds: Iterable[int] | None = None,
    recurrences: int | None = None,
    objective: str | None = None,
    eta: float | None = None,
    max_slowdown: str | float | None = None,
    drift: str | None = None,
    transfer_from: str | None = None,
    transfer_recurrences: int = 30,
    in_order: bool = False,
    overlapping: bool = False,
    bootstrap: int = 0,
    beta: float = 2.0,
    window: int = 0,
    generator: str | None = None,
    guard: str | None = None,
    profile_window: float = 0.0,
    power_policy: _Path | None = None,
    described: _Path | Iterable[Description] = (),
    threads: int = 0,
    tries: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Simulates recurring jobs: a row for each job and policy, as `flyball sim job`.

    traces        directory with summary_train.csv and summary_power_GPU.csv
    gpu           GPU in that name, as 'v100'
    jobs          names; None: all known ones that the traces have
    policies      names, paths of plug-ins, and classes of your own (Policy); default and oracle are always simulated
    seeds         each is one history of every job; None: 1 to 20
    recurrences   of each job; None: twice its batch sizes times its power limits
    objective     'energy', 'time', 'cost:0.5', 'carbon' or 'money'; None: 'cost', a score with the weight `eta` of energy, 0.5
    max_slowdown  '3%', '1.03x' or the fraction 0.03; None: no bound
    drift         of the epochs needed: 'shift', 'jump', 'sine', 'level', 'triple', 'growth' or 'up-down'
    transfer_from  what policies that learn from elsewhere bring, such as bayes: a GPU or a job of the traces, 'eta=0.9' or
                  'shift=2', with so many transfer_recurrences there; None: nothing
    in_order      recorded runs come in the order in which they were recorded; else they are drawn
    overlapping   policies reckon with recurrences that overlap
    bootstrap     how often the recorded runs are drawn anew for a standard error, such as 100; 0: never
    beta          a try stops at this multiple of the lowest score so far; inf: never
    window        newest observations of a batch size that count; 0: all
    generator     of random numbers: 'philox', or 'numpy' as the published code
    guard         which policies give way to the default while their search grows dear: 'policy', 'on' or 'off'
    profile_window  share of a first epoch that a profile takes; 0: all of it, as published
    power_policy  path of a plug-in that chooses power limits from profiles; None: the lowest score
    described     jobs that are known besides those of the paper: Descriptions, or the path of a job file
    threads       0: one for each processor; policies of your own run on the calling thread
    tries         keep every try of `policies`: the table's `tries`
    progress      called about ten times a second with simulations done and in all; what it raises ends the simulation

    Ctrl-C ends it too. Raises UsageError for arguments out of range, NotFoundError for a job or file that is not there,
    Error (FLY_EDATA) for traces that cannot be read, PolicyError for a policy of your own that fails. A search that ends
    early is a result: see the columns completed_runs and error.
    """
    options = _searching(
        _options(traces, gpu, jobs, described, objective, eta, max_slowdown),
        policies,
        seeds=None if seeds is None else tuple(seeds),
        recurrences=recurrences,
        drift=drift,
        transfer_from=transfer_from,
        transfer_recurrences=transfer_recurrences,
        in_order=in_order,
        overlapping=overlapping,
        beta=beta,
        window=window,
        generator=generator,
        guard=guard,
        profile_window=profile_window,
        power_policy=power_policy,
        threads=threads,
        tries=tries,
        progress=progress,
    )
    options["bootstrap"] = bootstrap
    return _table_of(Table, _sim_jobs(options), options)


def pareto(
    traces: _Path,
    gpu: str,
    job: str,
    *,
    objective: str | None = None,
    eta: float | None = None,
    max_slowdown: str | float | None = None,
    described: _Path | Iterable[Description] = (),
) -> Frontier:
    """Finds the energy-time frontier of a job: a row for each choice, as `flyball sim pareto --all`.

    Arguments are those of flyball.sim.job, with `job` as the one job. Raises Error (FLY_EEXHAUSTED) if it reaches its
    target with no batch size, or no choice keeps the bound; else as flyball.sim.job.
    """
    options = _options(traces, gpu, job, described, objective, eta, max_slowdown)
    return _table_of(Frontier, _sim_pareto(options), options)


def group(
    groups: _Path,
    traces: _Path,
    gpu: str,
    *,
    policies: _Policies = "zeus",
    seeds: Iterable[int] | None = None,
    eta: float | None = None,
    beta: float = 2.0,
    window: int = 0,
    generator: str | None = None,
    guard: str | None = None,
    profile_window: float = 0.0,
    power_policy: _Path | None = None,
    described: _Path | Iterable[Description] = (),
    threads: int = 0,
    tries: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Simulates groups of overlapping submissions: a row for each workload and policy, and one for all workloads together,
    as `flyball sim group`.

    groups  CSV file with the columns group, start_time, end_time, dataset and runtime_ratio; as .xz it is unpacked first
    seeds   None: 1; with the generator 'numpy' the Adler-32 of each group's name
    tries   keep every try of `policies`, with the column group: of a group they stand in the order in which they end, and
            energy, time and cost are times the submission's runtime_ratio

    The other arguments, and what is raised, are those of flyball.sim.job.
    """
    options = _searching(
        _options(traces, gpu, None, described, None, eta, None),
        policies,
        seeds=None if seeds is None else tuple(seeds),
        beta=beta,
        window=window,
        generator=generator,
        guard=guard,
        profile_window=profile_window,
        power_policy=power_policy,
        threads=threads,
        tries=tries,
        progress=progress,
    )
    if not os.fspath(groups).endswith(".xz"):
        return _table_of(Table, _sim_groups({**options, "groups": groups}), options)
    import lzma
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="flyball-groups-", suffix=".csv") as plain:
        with lzma.open(groups) as packed:
            shutil.copyfileobj(packed, plain)
        plain.flush()
        return _table_of(Table, _sim_groups({**options, "groups": plain.name}), options)


def compare(
    traces: _Path | None = None,
    gpus: str | Iterable[str] | None = None,
    jobs: str | Iterable[str] | None = None,
    *,
    policies: _Policies = ("zeus", "bayes", "zeus-one-round", "hill-climb", "bandit"),
    against: str | None = None,
    synthetic: str | Iterable[str] | None = None,
    synthetic_jobs: int = 10,
    seeds: Iterable[int] | None = None,
    horizons: Iterable[int] = (10, 25, 50, 100),
    scenarios: str | Iterable[str] = "steady",
    each: bool = False,
    objective: str | None = None,
    eta: float | None = None,
    max_slowdown: str | float | None = None,
    beta: float = 2.0,
    window: int = 0,
    generator: str | None = None,
    guard: str | None = None,
    profile_window: float = 1.0,
    power_policy: _Path | None = None,
    described: _Path | Iterable[Description] = (),
    threads: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Judges policies side by side over many jobs: a row for each scenario, set of jobs, horizon and policy, as
    `flyball sim compare`. Each seed gives every policy the same luck.

    traces          None: synthetic jobs alone
    gpus            GPUs of the traces; None: all
    against         policy that the others are compared with; None: the first
    synthetic       kinds of synthetic jobs: 'smooth', 'noisy', 'cliff', 'bumpy', 'flat', 'far'; None: all
    synthetic_jobs  of each kind; 0: none
    seeds           None: 1 to 200
    horizons        recurrences after which figures are taken; the last ends the histories
    scenarios       what happens to the jobs, as `flyball sim compare --scenario` has it; 'all' alone: each
    each            every job has rows of its own too

    The other arguments, and what is raised, are those of flyball.sim.job.
    """

    def listed(words: str | Iterable[str] | None) -> list[str] | None:
        return None if words is None else [words] if isinstance(words, str) else list(words)

    options = _searching(
        _options(traces, None, jobs, described, objective, eta, max_slowdown),
        policies,
        gpus=listed(gpus),
        against=against,
        synthetic=listed(synthetic),
        synthetic_jobs=synthetic_jobs or -1,
        seeds=None if seeds is None else tuple(seeds),
        horizons=tuple(horizons),
        scenarios=listed(scenarios),
        each=each,
        beta=beta,
        window=window,
        generator=generator,
        guard=guard,
        profile_window=profile_window,
        power_policy=power_policy,
        threads=threads,
        progress=progress,
    )
    return _table_of(Table, _sim_compare(options), options)
