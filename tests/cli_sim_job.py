# SPDX-License-Identifier: Apache-2.0
"""`flyball sim job` from outside: tries, figures, refusals and files, against a second calculation.

usage: cli_sim_job.py FLYBALL

The recorded traces and golden runs are looked for in $FLYBALL_TEST_DATA, or
beside the repository; tests that need them are skipped without them. With
FLYBALL_TEST_QUICK=1 fewer seeds are run.
"""
import csv
import io
import json
import lzma
import math
import os
import pathlib
import resource
import subprocess
import time

import sim_reference as reference
import tap
from sim_fixture import CLICKS, JOBS, Sandbox, cell, line_at, power_text, refuse, train_text

BESIDE = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or BESIDE)
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"
ALL_POLICIES = "zeus,default,grid,oracle"


def recorded():
    if not (DATA / "zeus_nsdi23" / "summary_train.csv").is_file():
        raise tap.Skip("the recorded traces are not there")
    return DATA / "zeus_nsdi23"


def none(problem):
    """Fails with what a check of the reference found."""
    if problem is not None:
        raise AssertionError(problem)


def seeds(many, few):
    return few if QUICK else many


# -- The tries and the figures --


def test_tries_file_has_documented_form():
    box = Sandbox()
    _, text = box.simulate("--policy=zeus,grid", "--seeds=7,3", "--eta=0.37")
    rows = list(csv.reader(io.StringIO(text)))
    tap.equal(rows[0], reference.TRIES_COLUMNS)
    tap.equal(list(dict.fromkeys(tuple(row[:4]) for row in rows[1:])),
              [("mini", job, policy, seed) for job in ("cifar100", "squad") for policy in ("zeus", "grid")
               for seed in ("7", "3")], "order of the runs, and none of policies that were not asked for")
    tap.equal({row[8] for row in rows[1:]}, {"0", "1"})
    for row in rows[1:]:
        tap.equal([f"{float(field):.17g}" for field in row[7:8] + row[9:]], row[7:8] + row[9:], "17 significant digits")
    for rows in reference.read_tries(box.out / "tries.csv").values():
        none(reference.check_order(rows))


def test_tries_equal_golden_runs():
    path = DATA / "golden" / "history.csv.xz"
    if not path.is_file():
        raise tap.Skip("the golden runs are not there")
    golden = {}
    for row in csv.DictReader(lzma.open(path, "rt")):
        golden.setdefault((row["gpu"], row["dataset"], row["seed"]), []).append(row)
    box = Sandbox()
    for gpu in ("v100", "a40", "p100"):
        box.simulate("--generator=numpy", f"--seeds={seeds('1-10', '1-3')}", gpu=gpu, traces=recorded())
        for (dataset, _, seed), tries in reference.read_tries(box.out / "tries.csv").items():
            expected = golden.pop((gpu, dataset, str(seed)))
            tap.equal([(row["recurrence"], row["try"], row["batch_size"], row["power_limit_w"], row["reached"])
                       for row in tries],
                      [(int(row["rec"]), int(row["try"]), int(row["bs"]), float(row["pl"]), int(row["reached"]))
                       for row in expected], f"{gpu} {dataset} {seed}")
            for row, of_code in zip(tries, expected):
                for name, golden_name in (("energy_j", "energy"), ("time_s", "time"), ("cost_j", "cost")):
                    if not math.isclose(row[name], float(of_code[golden_name]), rel_tol=1e-12):
                        raise AssertionError(f"{name}: expected {of_code}, found {row}")
    tap.equal([key for key in golden if int(key[2]) <= seeds(10, 3)], [], "golden runs that were not made")


def check_figures(box, traces, gpu, jobs, count, eta=0.5, recurrences=None):
    """The report equals what the tries and the traces give a second time."""
    arguments = [f"--recurrences={recurrences}"] if recurrences else []
    document, _ = box.simulate(f"--policy={ALL_POLICIES}", f"--seeds=1-{count}", f"--workload={','.join(jobs)}",
                               f"--eta={eta}", *arguments, gpu=gpu, traces=traces)
    runs = reference.read_tries(box.out / "tries.csv")
    made = {name: reference.Job(traces, gpu, *jobs[name]) for name in jobs}
    tap.equal([(row["workload"], row["policy"]) for row in document["rows"]],
              [(job, policy) for job in jobs for policy in ALL_POLICIES.split(",")])
    for row in document["rows"]:
        job, dataset = made[row["workload"]], jobs[row["workload"]][0]
        expected = reference.summary(job, runs, dataset, row["policy"], range(1, count + 1), eta,
                                     recurrences)
        tap.equal(reference.differences(expected, row), [], f"{row['workload']} with {row['policy']}")
    return document, runs, made


def check_simple_policies(runs, made, jobs, eta):
    """The policies that need no random choice are right try by try."""
    for (dataset, policy, _), rows in runs.items():
        job = next(made[name] for name in jobs if jobs[name][0] == dataset)
        none(reference.check_order(rows))
        if policy == "grid":
            none(reference.check_grid(job, rows))
        if policy == "default":
            none(reference.check_default(job, rows))
        if policy == "oracle":
            tap.equal({(row["batch_size"], row["power_limit_w"]) for row in rows}, {job.optimum(eta)[1:]})
        if policy != "zeus":
            none(reference.check_unprofiled(job, eta, rows))


SMALL_JOBS = {name: JOBS[name] for name in ("cifar100", "squad")}


def test_figures_of_small_trace():
    box = Sandbox()
    for eta in (0.5, 0.23, 0, 1):
        document, runs, made = check_figures(box, box.traces, "mini", SMALL_JOBS, 20, eta)
        check_simple_policies(runs, made, SMALL_JOBS, eta)
    zeus = document["rows"][0]
    if not 0 < zeus["completed_runs"] < zeus["seeds"]:
        raise AssertionError(f"the small trace should end some runs early: {zeus}")


def test_figures_of_recorded_traces():
    box = Sandbox()
    for gpu in seeds(("v100", "a40", "p100"), ("a40",)):
        _, runs, made = check_figures(box, recorded(), gpu, JOBS, seeds(5, 2))
        check_simple_policies(runs, made, JOBS, 0.5)


def test_figures_of_few_recurrences():
    box = Sandbox()
    for recurrences in (1, 4, 5, 6, 90):
        check_figures(box, box.traces, "mini", SMALL_JOBS, 8, 0.5, recurrences)


def test_one_seed_has_no_spread():
    box = Sandbox()
    document, _, _ = check_figures(box, box.traces, "mini", {"squad": JOBS["squad"]}, 1)
    row = document["rows"][0]
    tap.equal(row["regret_optimal_runs_standard_error"], None)
    tap.contains(row["regret_optimal_runs_standard_error_unavailable"], "one run")


def test_policies_share_their_luck():
    box = Sandbox()
    box.simulate(f"--policy={ALL_POLICIES}", "--seeds=1-5", "--workload=squad", "--beta=inf")
    runs, job = reference.read_tries(box.out / "tries.csv"), reference.Job(box.traces, "mini", *JOBS["squad"])
    for seed in range(1, 6):
        none(reference.check_shared_luck(job, [runs["squad", name, seed] for name in ("default", "grid", "oracle")]))


def test_bytes_do_not_depend_on_threads():
    box = Sandbox()
    traces, gpu = (DATA / "zeus_nsdi23", "v100") if (DATA / "zeus_nsdi23").is_dir() else ("traces", "mini")
    results = [box.simulate(f"--policy={ALL_POLICIES}", f"--seeds=1-{seeds(12, 4)}", f"--threads={threads}", gpu=gpu,
                            traces=traces) for threads in (1, 2, 4, 4, 64)]
    tap.equal([result == results[0] for result in results], [True] * len(results))


# -- Jobs that end early --


EARLY_ENDS = {  # an option, how many tries there may be until the end, and its cause
    "--beta=1.01": (range(200, 300), "20 tries"),
    "--window=1": (range(5, 40), "window"),
}


def run_early_ends():
    """(table, JSON row, tries, cause) of the published code's runs that end before their last recurrence."""
    for option, (length, cause) in EARLY_ENDS.items():
        box = Sandbox()
        arguments = ["--generator=numpy", "--workload=cifar100", "--seeds=1", option]
        document, _ = box.simulate(*arguments, gpu="v100", traces=recorded())
        tries = reference.read_tries(box.out / "tries.csv")["cifar100", "zeus", 1]
        table = box.run(*arguments, gpu="v100", traces=recorded())
        tap.equal((table.returncode, table.stderr, len(tries) in length), (0, "", True), f"{len(tries)} tries")
        yield table.stdout, document["rows"][0], tries, cause


def test_run_that_ends_early_is_a_result():
    for table, row, tries, cause in run_early_ends():
        tap.contains(row["error"], cause)
        tap.equal((row["completed_runs"], row["whole_run_energy_change_percent_mean"]), (0, None))
        none(reference.check_order(tries))
        tap.contains(table, "error: 1 of 1 runs ended early")
        tap.contains(table, cause)


def test_whether_a_run_that_ended_early_paid_off_is_unknown():
    for table, row, _, _ in run_early_ends():
        tap.equal(row["paid_off_after_recurrences_mean"], None)
        of_zeus = table[table.index("\n  zeus "):table.index("\n  default ")]
        tap.equal("did not pay off" in of_zeus, False, of_zeus)


def simulate_clicks():
    """A job of which no batch size ever reaches its target."""
    box = Sandbox()
    arguments = ["--jobs=jobs.ini", "--workload=ranker", f"--policy={ALL_POLICIES}", "--seeds=1-3"]
    document, _ = box.simulate(*arguments)
    table = box.run(*arguments)
    tap.equal(table.returncode, 0, table.stderr)
    return document["rows"], reference.read_tries(box.out / "tries.csv"), table.stdout


def test_job_that_never_reaches_its_target():
    rows, runs, table = simulate_clicks()
    for row in rows:
        tap.equal((row["completed_runs"], row["optimum_cost_j"], row["chosen_batch_size"]), (0, None, None))
    tap.equal([len(runs["clicks", policy, 1]) for policy in ("default", "oracle")], [20, 0])
    tap.equal({row["reached"] for tries in runs.values() for row in tries}, {0})
    tap.equal(table.count("error: 3 of 3 runs ended early"), 4)


def test_job_that_never_reaches_its_target_says_why():
    rows, _, _ = simulate_clicks()
    for row in rows:
        tap.contains(row["optimum_cost_j_unavailable"], "reaches")
        tap.equal(bool(row["error"]), True, f"{row['policy']} has no cause")


def test_numbers_beyond_a_double_never_become_figures():
    for column, value in (("time_per_epoch", "1e308"), ("average_power", "1e308")):
        power = POWER
        for line in range(2, len(POWER.splitlines()) + 1):
            power = cell(power, line, column, value)
        box = Sandbox(power=power)
        result = box.run("--tries=out/tries.csv", "--seeds=1-3", f"--policy={ALL_POLICIES}")
        if result.returncode != 65:
            tap.equal(result.returncode, 0, result.stderr)
            text = (box.out / "tries.csv").read_text()
            tap.equal([word in text for word in (",inf", "nan,", "nan\n")], [False] * 3, f"{column} {value}")


# -- Other spellings of the same input --


def other_order(text):
    rows = list(csv.reader(io.StringIO(text)))
    return "".join(",".join(row[::-1][:3] + [str(at) or "note"] + row[::-1][3:]) + "\n" for at, row in enumerate(rows))


def quoted(text):
    return "".join(",".join(f'"{field}"' for field in row) + "\n" for row in csv.reader(io.StringIO(text)))


SPELLINGS = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "another_order_and_an_extra_column": other_order,
    "byte-order_mark": lambda text: "\ufeff" + text,
    "quoted_fields": quoted,
    "quoted_fields_with_crlf": lambda text: quoted(text).replace("\n", "\r\n"),
    "no_final_line_end": lambda text: text.rstrip("\n"),
    "blank_lines": lambda text: text.replace("\n", "\n\n"),
}


def check_spelling(change):
    known = Sandbox().simulate(f"--policy={ALL_POLICIES}", "--seeds=1-3")
    tap.equal(Sandbox(change(train_text()), change(power_text())).simulate(f"--policy={ALL_POLICIES}", "--seeds=1-3")
              == known, True)


def test_gpu_model_is_gpu():
    box = Sandbox()
    known = box.simulate("--seeds=1")
    command = [word.replace("--gpu=", "--gpu-model=") for word in box.command("--seeds=1", "--format=json")]
    tap.equal(json.loads(tap.run(command, cwd=box.path).stdout), known[0])


CIFAR = {"network": "shufflenetv2", "optimizer": "adadelta", "target_metric": "0.6", "max_epochs": "100",
         "default_batch_size": "64", "batch_sizes": "64,8,16,32"}


def test_described_job_equals_known_job():
    fields = "".join(f"{name} = {value}\n" for name, value in CIFAR.items())
    box = Sandbox(jobs=f"[cifar100]\n{fields}[other]\ndataset = cifar100\n{fields}")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in CIFAR.items()]
    known = box.simulate("--workload=cifar100", "--seeds=1-3")
    tap.equal(box.simulate("--workload=cifar100", "--seeds=1-3", "--jobs=jobs.ini") == known, True, "job file")
    tap.equal(box.simulate("--workload=cifar100", "--seeds=1-3", *options) == known, True, "options")
    # Under another name the draws differ, but not those of the published generator.
    numpy = ["--generator=numpy", "--seeds=1-3"]
    known = box.simulate("--workload=cifar100", *numpy)[1]
    tap.equal(box.simulate("--workload=other", "--jobs=jobs.ini", *numpy)[1] == known, True, "job file, other name")
    tap.equal(box.simulate("--workload=new", "--dataset=cifar100", *options, *numpy)[1] == known, True, "options")


def test_chosen_batch_sizes_alone_are_tried():
    box = Sandbox()
    document, _ = box.simulate("--workload=cifar100", "--batch-sizes=16,64", f"--policy={ALL_POLICIES}")
    sizes = {row["batch_size"] for rows in reference.read_tries(box.out / "tries.csv").values() for row in rows}
    tap.equal((sizes, document["rows"][0]["recurrences"]), ({16, 64}, 2 * 2 * 4))


def test_list_of_workloads():
    box = Sandbox()
    document, _ = box.simulate("--workload=squad,cifar100", "--seeds=1-2")
    tap.equal([row["workload"] for row in document["rows"]], ["squad"] * 3 + ["cifar100"] * 3)
    one, _ = box.simulate("--workload=squad", "--seeds=1-2")
    tap.equal(one["rows"], document["rows"][:3])


def test_csv_summary_has_the_numbers_of_json():
    box = Sandbox()
    document, _ = box.simulate("--seeds=1-4")
    rows = list(csv.DictReader(io.StringIO(box.run("--seeds=1-4", "--format=csv").stdout)))
    keys = [key for key in document["rows"][0] if not key.endswith("_unavailable")]
    tap.equal(list(rows[0]), ["schema"] + keys)
    tap.equal({row.pop("schema") for row in rows}, {document["schema"]})
    for row, expected in zip(rows, document["rows"], strict=True):
        for key, text in row.items():
            value = expected[key]
            same = text == "" if value is None else text == value if isinstance(value, str) else float(text) == value
            tap.equal(same, True, f"{key}: {text!r} and {value!r}")


# -- Refusals --


TRAIN, POWER = train_text(), power_text()
FILES = {"train": (TRAIN, "traces/summary_train.csv"), "power": (POWER, "traces/summary_power_mini.csv")}
NEVER_NUMBERS = ("abc", "NaN", "inf", "-inf", "", "0x10", "1,5", "7 ", "1e999")
NEVER_SIZES = NEVER_NUMBERS + ("0", "-8", "1.5", "1e2", "+8", "4294967296")
BAD_CELLS = {  # the values refused in each column, and what must be expected there
    ("train", "dataset"): (("",), "a name"),
    ("train", "network"): (("",), "a name"),
    ("train", "optimizer"): (("",), "a name"),
    ("train", "batch_size"): (NEVER_SIZES, "a whole number from 1"),
    ("train", "learning_rate"): (NEVER_NUMBERS, "a number"),
    ("train", "run"): (NEVER_NUMBERS, "a number"),
    ("train", "target_metric"): (NEVER_NUMBERS, "a number"),
    ("train", "target_epoch"): (("abc", "inf", "0", "-1", "0.5", "1e999"), "an epoch from 1, or nan"),
    ("power", "dataset"): (("",), "a name"),
    ("power", "batch_size"): (NEVER_SIZES, "a whole number from 1"),
    ("power", "power_limit"): (NEVER_NUMBERS + ("0", "-100", "-0"), "a number above 0"),
    ("power", "time_per_epoch"): (NEVER_NUMBERS + ("0", "-1.5", "1e-999"), "a number above 0"),
    ("power", "average_power"): (NEVER_NUMBERS + ("0", "-90"), "a number above 0"),
}


def test_bad_cells_are_refused():
    for (kind, column), (values, expected) in BAD_CELLS.items():
        text, path = FILES[kind]
        for value in values:
            bad = cell(text, 4, column, f'"{value}"' if "," in value else value)
            refuse(65, f"{path}:4", f"column '{column}'", f"expected {expected}", f"found '{value}'", **{kind: bad})


def test_unknown_target_epochs_are_allowed():
    known = Sandbox().simulate("--seeds=1-3")
    for spelling in ("", "NaN", "NAN"):
        tap.equal(Sandbox(train=TRAIN.replace(",nan\n", f",{spelling}\n")).simulate("--seeds=1-3") == known, True)


HEADER = {kind: text.splitlines()[0] + "\n" for kind, (text, _) in FILES.items()}
BAD_FILES = {}
for KIND, (TEXT, PATH) in FILES.items():
    BAD_FILES |= {
        f"{KIND}_file_without_a_column": (f"{PATH}:1: column 'batch_size' is missing", TEXT.replace("batch_size", "b", 1)),
        f"{KIND}_file_with_misspelt_column": ("is it 'optimiser'", TEXT.replace("optimizer", "optimiser", 1)),
        f"{KIND}_file_with_doubled_column": (f"{PATH}:1: column 'network' stands there twice",
                                             TEXT.replace("dataset", "network", 1)),
        f"{KIND}_file_with_short_row": (f"{PATH}:5: expected", line_at(TEXT, 5, lambda row: row.rsplit(",", 1)[0])),
        f"{KIND}_file_with_long_row": (f"{PATH}:6: expected", line_at(TEXT, 6, lambda row: row + ",1")),
        f"{KIND}_file_with_endless_quote": (f"{PATH}:7: a quoted field never ends", line_at(TEXT, 7, '"'.__add__)),
        f"{KIND}_file_with_text_behind_quote": (f"{PATH}:7: a field goes on", line_at(TEXT, 7, '"x"y,'.__add__)),
        f"{KIND}_file_that_is_empty": (f"{PATH}:1: the file is empty", ""),
        f"{KIND}_file_with_only_a_header": (PATH, HEADER[KIND]),
        f"{KIND}_file_that_is_binary": (f"{PATH}:1: the file holds NUL bytes", b"\x1f\x8b\x00\x01" + TEXT.encode()),
        f"{KIND}_file_with_nul_at_its_end": (f"{PATH}:", TEXT.encode() + b"\x00"),
    }
DOUBLED = POWER + POWER.splitlines()[4] + "\n"
BAD_FILES["power_row_doubled"] = (f"{FILES['power'][1]}:{len(POWER.splitlines()) + 1}: column 'power_limit'", DOUBLED)

MINI = ["--workload=cifar100"]
REFUSALS = {  # name: (status, words in order, keywords of refuse)
    "missing_directory": (66, ["nowhere", "expected a directory"], {"traces": "nowhere"}),
    "missing_train_file": (66, ["traces/summary_train.csv"], {"drop": ["traces/summary_train.csv"]}),
    "missing_power_file": (66, ["traces/summary_power_big.csv", "mini"], {"gpu": "big"}),
    "gpu_with_a_slash": (66, ["../x"], {"gpu": "../x"}),
    "default_batch_size_not_in_the_trace": (66, ["default batch size 24", "8, 16, 32, 64"],
                                            {"arguments": MINI + ["--default-batch-size=24"]}),
    "batch_size_without_power_rows": (65, ["traces/summary_power_mini.csv", "batch size 128"],
                                      {"arguments": MINI + ["--batch-sizes=64,128"]}),
    "batch_size_without_runs": (65, ["traces/summary_train.csv", "batch size 24"],
                                {"arguments": MINI + ["--batch-sizes=24,64"]}),
    "batch_size_without_run_for_the_target": (65, ["traces/summary_train.csv", "128", "0.5"],
                                              {"power": POWER + "cifar100,shufflenetv2,128,adadelta,100,1,90\n",
                                               "arguments": MINI + ["--target-metric=0.5"]}),
    "doubled_batch_size": (64, ["--batch-sizes", "64", "twice"], {"arguments": MINI + ["--batch-sizes=64,64"]}),
    "target_not_in_the_trace": (66, ["traces/summary_train.csv", "target_metric", "0.57", "0.6"],
                                {"arguments": MINI + ["--target-metric=0.57"]}),
    "unknown_workload": (64, ["'cifr100'", "did you mean 'cifar100'?"], {"arguments": ["--workload=cifr100"]}),
    "workload_not_in_the_trace": (66, ["imagenet"], {"arguments": ["--workload=imagenet"]}),
    "workload_named_twice": (64, ["--workload", "each once"], {"arguments": ["--workload=squad,squad"]}),
    "description_without_workload": (64, ["--workload"], {"arguments": ["--network=resnet50"]}),
    "new_workload_without_network": (64, ["'new'", "'network'"], {"arguments": ["--workload=new", "--dataset=squad"]}),
    "no_traces": (64, ["--traces"], {"traces": ""}),
    "tries_file_in_missing_directory": (66, ["'nowhere/tries.csv'", "directory"], {"arguments": ["--tries=nowhere/tries.csv"]}),
    "tries_file_that_is_a_directory": (74, ["'out'", "directory"], {"arguments": ["--tries=out"]}),
    "full_device": (74, ["'/dev/full'", "No space left", "free space"], {"arguments": ["--tries=/dev/full"]}),
    "missing_job_file": (66, ["nothing.ini"], {"arguments": ["--jobs=nothing.ini"]}),
}
BAD_OPTIONS = {
    "--eta": ("1.5", "-0.1", "nan", "inf", "abc", ""),
    "--beta": ("0", "-1", "nan", "abc", ""),
    "--seeds": ("5-1", "", "a", "1-", "-3", "1,,2", "1.5", "4294967296", "1 2", "1,1", "3,1-5"),
    "--recurrences": ("0", "-1", "1.5", "a", ""),
    "--threads": ("0", "-1", "257", "a", ""),
    "--window": ("-1", "1.5", "a", ""),
    "--generator": ("pcg", ""),
    "--policy": ("best", "", "zeus,zeus"),
    "--max-epochs": ("0", "-1", "a"),
    "--default-batch-size": ("0", "1.5"),
    "--batch-sizes": ("0", "a", "8,", "16-8"),
    "--target-metric": ("nan", "a", ""),
}
BAD_JOBS = {  # what is changed in the job file, and what must be said
    "unknown_field": ("network = dlrm", "netwrok = dlrm", ["jobs.ini:3:", "'netwrok'", "'network'"]),
    "bad_number": ("max_epochs = 20", "max_epochs = many", ["jobs.ini:6:", "'many'", "'max_epochs'", "whole number"]),
    "bad_target": ("= 0.79", "= high", ["jobs.ini:5:", "'high'", "'target_metric'", "number"]),
    "bad_list": ("[ranker]", "[ranker]\nbatch_sizes = 8,x", ["jobs.ini:2:", "8,x"]),
    "doubled_size_in_a_list": ("[ranker]", "[ranker]\nbatch_sizes = 8,8", ["jobs.ini:2:", "8"]),
    "missing_field": ("optimizer = adam\n", "", ["jobs.ini:", "'ranker'", "'optimizer'"]),
    "doubled_field": ("network = dlrm", "network = dlrm\nnetwork = dlrm", ["jobs.ini:4:", "'network'", "twice"]),
    "empty_field": ("network = dlrm", "network =", ["jobs.ini:3:", "'network'"]),
    "field_before_the_first_job": ("[ranker]\n", "", ["jobs.ini:1:", "[NAME]"]),
    "job_that_stands_twice": ("[ranker]", CLICKS + "[ranker]", ["jobs.ini:8:", "'ranker'"]),
    "line_that_is_no_field": ("network = dlrm", "network", ["jobs.ini:3:"]),
}


def test_bad_options_are_refused():
    for option, values in BAD_OPTIONS.items():
        for value in values:
            refuse(64, f"'{value}'" if value != "1,1" and value != "3,1-5" else value, option if value else "",
                   arguments=MINI + [f"{option}={value}"])


def test_unknown_policy_suggests_the_nearest():
    refuse(64, "'zues'", "did you mean 'zeus'", arguments=["--policy=zues"])


# -- Writing that fails --


def check_unwritten(run):
    """`run` fails to write out/tries.csv: nothing appears, and what stood there stays."""
    for before in (None, "what stood there\n"):
        box = Sandbox()
        with run(box) as attempt:
            if before is not None:
                box.write("out/tries.csv", before)
            result = attempt()
            tap.equal((result.returncode, result.stdout), (74, ""), result.stderr)
            tap.contains(result.stderr, "flyball: writing 'out/tries.csv' failed: ")
            tap.equal(box.files(), [] if before is None else ["tries.csv"])
            tap.equal(before is None or (box.out / "tries.csv").read_text() == before, True)


class LimitedSize:
    """Files may have 16 KiB."""

    def __init__(self, box):
        self.box = box

    def __enter__(self):
        return lambda: self.box.run("--tries=out/tries.csv", "--seeds=1-50", f"--policy={ALL_POLICIES}",
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384)))

    def __exit__(self, *_):
        pass


class SmallDisk:
    """out/ is a file system of 64 KiB."""

    def __init__(self, box):
        self.box = box

    def __enter__(self):
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "flyball-test", self.box.out]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            raise tap.Skip("mounting a small file system is not allowed here")
        return lambda: self.box.run("--tries=out/tries.csv", "--seeds=1-50", f"--policy={ALL_POLICIES}")

    def __exit__(self, *_):
        subprocess.run(["umount", self.box.out], check=True)


def test_file_size_limit_leaves_no_part_of_the_tries():
    check_unwritten(LimitedSize)


def test_full_file_system_leaves_no_part_of_the_tries():
    check_unwritten(SmallDisk)


def test_report_to_a_full_device_is_an_error():
    with open("/dev/full", "w", encoding="ascii") as full:
        for form in ("table", "json", "csv"):
            result = Sandbox().run(f"--format={form}", stdout=full)
            tap.equal(result.returncode, 74)
            tap.contains(result.stderr, "flyball: writing 'standard output' failed")


def tests_from_tables():
    """One test per row of the tables above."""
    rows = {f"same_result_with_{name}": lambda change=change: check_spelling(change)
            for name, change in SPELLINGS.items()}
    for name, (words, text) in BAD_FILES.items():
        # A file without rows is well formed; what is asked for is not in it.
        status = 66 if "only_a_header" in name else 65
        rows[f"refuses_{name}"] = lambda status=status, words=words, name=name, text=text: refuse(
            status, words, **{name.split("_")[0]: text})
    for name, (status, words, keywords) in REFUSALS.items():
        rows[f"refuses_{name}"] = lambda status=status, words=words, keywords=keywords: refuse(status, *words, **keywords)
    for name, (old, new, words) in BAD_JOBS.items():
        rows[f"refuses_job_file_with_{name}"] = lambda old=old, new=new, words=words: refuse(
            78, *words, jobs=CLICKS.replace(old, new), arguments=["--jobs=jobs.ini"])
    for name, function in rows.items():
        function.__name__ = f"test_{name}"
    return {function.__name__: function for function in rows.values()}


tap.main({**globals(), **tests_from_tables()})
