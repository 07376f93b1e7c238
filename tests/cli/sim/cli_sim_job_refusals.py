# SPDX-License-Identifier: Apache-2.0
"""`flyball sim job` with bad input and bad places to write to: what it says, its status, and no file left behind.

usage: cli_sim_job_refusals.py FLYBALL
"""
import os
import resource
import signal
import subprocess
import time

import tap
from sim_fixture import ALL_POLICIES, CLICKS, Sandbox, cell, line_at, power_text, refuse, train_text

MANY_TRIES = ["--tries=out/tries.csv", "--seeds=1-50", f"--policy={ALL_POLICIES}"]


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


HEADER = {kind: text.splitlines()[0] + "\n" for kind, (text, _) in FILES.items()}
BAD_FILES = {}
for KIND, (TEXT, PATH) in FILES.items():
    BAD_FILES |= {
        f"{KIND}_file_without_a_column": (f"{PATH}:1: column 'batch_size' is missing",
                                          TEXT.replace("batch_size", "b", 1)),
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
    "tries_file_in_missing_directory": (66, ["'nowhere/tries.csv'", "directory"],
                                        {"arguments": ["--tries=nowhere/tries.csv"]}),
    "tries_file_that_is_a_directory": (74, ["'out'", "directory"], {"arguments": ["--tries=out"]}),
    "unknown_policy": (64, ["'zues'", "did you mean 'zeus'"], {"arguments": ["--policy=zues"]}),
    "full_device": (74, ["'/dev/full'", "No space left", "free space"], {"arguments": ["--tries=/dev/full"]}),
    "missing_job_file": (66, ["nothing.ini"], {"arguments": ["--jobs=nothing.ini"]}),
}
BAD_OPTIONS = {
    "--eta": ("1.5", "-0.1", "nan", "inf", "abc", ""),
    "--beta": ("0", "-1", "nan", "abc", ""),
    "--seeds": ("5-1", "", "a", "1-", "-3", "1,,2", "1.5", "4294967296", "1 2"),
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
    "bad_list": ("[ranker]", "[ranker]\nbatch_sizes = 8,x", ["jobs.ini:2:", "'8,x'", "'batch_sizes'", "whole numbers"]),
    "doubled_size_in_a_list": ("[ranker]", "[ranker]\nbatch_sizes = 8,8", ["jobs.ini:2:", "8"]),
    "missing_field": ("optimizer = adam\n", "", ["jobs.ini:", "'ranker'", "'optimizer'"]),
    "doubled_field": ("network = dlrm", "network = dlrm\nnetwork = dlrm", ["jobs.ini:4:", "'network'", "twice"]),
    "empty_field": ("network = dlrm", "network =", ["jobs.ini:3:", "'network'"]),
    "field_before_the_first_job": ("[ranker]\n", "", ["jobs.ini:1:", "[NAME]"]),
    "job_that_stands_twice": ("[ranker]", CLICKS + "[ranker]", ["jobs.ini:", "'ranker'", "twice"]),
    "job_that_stands_twice_apart": ("[ranker]", CLICKS + CLICKS.replace("ranker", "b") + "[ranker]",
                                    ["jobs.ini:", "'ranker'", "twice"]),
    "job_without_any_field": ("[ranker]", "[empty]\n[ranker]", ["jobs.ini:", "'empty'"]),
    "line_that_is_no_field": ("network = dlrm", "network", ["jobs.ini:3:"]),
}


def test_doubled_seeds_are_refused():
    for seeds in ("1,1", "3,1-5"):  # they would narrow the spread without adding a run
        refuse(64, "--seeds", arguments=[f"--seeds={seeds}"])


def test_bad_settings_are_refused():
    for key, value in (("eta", "x"), ("sim.seeds", "x"), ("sim.policy", "best")):
        name = "FLYBALL_" + key.upper().replace(".", "_")
        section, _, bare = key.rpartition(".")
        refuse(78, f"'{value}'", name, environment={name: value}, arguments=MINI, usual=["--tries=out/tries.csv"])
        refuse(78, "flyball.ini:2", settings=f"[{section or 'flyball'}]\n{bare} = {value}\n", arguments=MINI,
               usual=["--tries=out/tries.csv"])


# -- Writing that fails --


def check_unwritten(prepare):
    """Writing out/tries.csv fails: nothing appears, and what stood there stays. `prepare` gives (options, undo)."""
    for before in (None, "what stood there\n"):
        box = Sandbox()
        options, undo = prepare(box)
        try:
            if before is not None:
                box.write("out/tries.csv", before)
            result = box.run(*MANY_TRIES, **options)
            tap.equal((result.returncode, result.stdout), (74, ""), result.stderr)
            tap.contains(result.stderr, "flyball: writing 'out/tries.csv' failed: ")
            tap.equal(box.files(), [] if before is None else ["tries.csv"])
            tap.equal(before is None or (box.out / "tries.csv").read_text() == before, True)
        finally:
            undo()


def limit_file_size(_):
    """Files may have 16 KiB."""
    limit = (16384, 16384)
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)}, lambda: None


def mount_small_disk(box):
    """out/ is a file system of 64 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "flyball-test", box.out]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise tap.Skip("mounting a small file system is not allowed here")
    return {}, lambda: subprocess.run(["umount", box.out], check=True)


def test_file_size_limit_leaves_no_part_of_the_tries():
    check_unwritten(limit_file_size)


def test_full_file_system_leaves_no_part_of_the_tries():
    check_unwritten(mount_small_disk)


def test_killed_run_leaves_what_stood_there():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        box = Sandbox()
        box.write("out/tries.csv", "what stood there\n")
        command = box.command("--tries=out/tries.csv", "--recurrences=1000000000", "--seeds=1", "--threads=1")
        process = subprocess.Popen(command, cwd=box.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.2)
        process.send_signal(number)
        output, _ = process.communicate(timeout=tap.PATIENCE_S)
        tap.equal((process.returncode, output), (-number, b""))
        tap.equal((box.out / "tries.csv").read_text(), "what stood there\n")


def test_report_to_a_full_device_is_an_error():
    with open("/dev/full", "w", encoding="ascii") as full:
        for form in ("table", "json", "csv"):
            result = Sandbox().run(f"--format={form}", stdout=full)
            tap.equal(result.returncode, 74)
            tap.contains(result.stderr, "flyball: writing standard output failed: No space left")


def tests_from_tables():
    """One test per row of the tables above."""
    rows = {}
    for name, (words, text) in BAD_FILES.items():
        rows[name] = (65, [words], {name.split("_")[0]: text})
    rows |= REFUSALS
    for name, (old, new, words) in BAD_JOBS.items():
        changed = CLICKS.replace(old, new)
        rows[f"job_file_with_{name}"] = (78, words, {"jobs": changed, "arguments": ["--jobs=jobs.ini"]})
    for option, values in BAD_OPTIONS.items():
        for value in values:
            # An empty value has no words of its own to be named.
            words = [f"'{value}'", option] if value else [option]
            rows[f"{option}={value}"] = (64, words, {"arguments": MINI + [f"{option}={value}"]})
    return {f"test_refuses_{name}": make_test(name, *row) for name, row in rows.items()}


def make_test(name, status, words, keywords):
    def test():
        refuse(status, *words, **keywords)

    test.__name__ = f"test_refuses_{name}"
    return test


tap.main({**globals(), **tests_from_tables()})
