# SPDX-License-Identifier: Apache-2.0
"""`flyball sim job` from outside: tries and figures, against golden runs and a second calculation.

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

import sim_reference as reference
import tap
from sim_fixture import ALL_POLICIES, FLYBALL, JOBS, Sandbox, cell, power_text, refuse, train_text

BESIDE = tap.LIB.parents[2] / "shared" / "data"
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or BESIDE)
QUICK = os.environ.get("FLYBALL_TEST_QUICK") == "1"


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


def test_a_past_elsewhere_is_heeded():
    box = Sandbox()
    asked = ("--policy=zeus,bayes", "--seeds=1-3", "--recurrences=6")
    tries = {}
    for past in ((), ("--transfer-from=eta=1",), ("--transfer-from=shift=1", "--transfer-recurrences=9")):
        _, text = box.simulate(*asked, *past)
        for row in list(csv.reader(io.StringIO(text)))[1:]:
            tries.setdefault((past, row[2]), []).append(row)
    plain, eta, shifted = dict.fromkeys(past for past, _ in tries)
    tap.equal(tries[plain, "zeus"], tries[eta, "zeus"], "zeus does not learn from elsewhere")
    tap.equal(tries[plain, "zeus"], tries[shifted, "zeus"])
    for past in (eta, shifted):
        if tries[plain, "bayes"] == tries[past, "bayes"]:
            raise AssertionError(f"{past}: bayes decided as without")
    tap.equal(box.run(*asked, "--transfer-from=eta=1", "--bootstrap=40").returncode, 0, "every replicate brings the past")
    refuse(64, "no policy of --policy learns from elsewhere", arguments=("--policy=zeus,grid", "--transfer-from=eta=1"))
    refuse(64, "without --transfer-from", arguments=("--policy=bayes", "--transfer-recurrences=9"))
    for wrong in ("eta=2", "eta=", "shift=x", "nothing"):
        refuse(64, f"bad value '{wrong}'", "'--transfer-from'", arguments=("--policy=bayes", f"--transfer-from={wrong}"))


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


def coin(runs):
    """A job of two batch sizes with so many epochs in their recorded runs; the second is always the better one."""
    box = Sandbox()
    (box.path / "coin").mkdir()
    (box.path / "coin" / "summary_train.csv").write_text(
        "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n"
        + "".join(f"coin,n,{size},o,0,{run},0.5,{epochs}\n" for size, row in runs.items() for run, epochs in enumerate(row)))
    (box.path / "coin" / "summary_power_v100.csv").write_text(
        "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
        + "".join(f"coin,n,{size},o,200,10,150\n" for size in runs))
    (box.path / "coin" / "jobs.ini").write_text(
        "[coin]\nnetwork = n\noptimizer = o\ntarget_metric = 0.5\nmax_epochs = 100\ndefault_batch_size = 8\n")
    ran = tap.run([FLYBALL, "sim", "job", "--quiet", "--traces", str(box.path / "coin"), "--jobs", str(box.path / "coin" / "jobs.ini"),
                   "--gpu=v100", "--workload=coin", "--policy=default", "--seeds=1-30", "--recurrences=200", "--bootstrap=1000",
                   "--format=json"])
    tap.equal(ran.returncode, 0, ran.stderr)
    document = json.loads(ran.stdout)
    tap.equal((document["schema"], document["bootstrap_replicates"]), ("flyball.sim.job/2", 1000))
    return next(row for row in document["rows"] if row["policy"] == "oracle")


def test_few_recorded_runs_are_said_to_be_few():
    """Against the bootstrap's own formula for a quotient of means; the seeds' error goes to zero beside it."""
    runs = {8: (50, 55, 60, 75), 16: (10, 12, 14, 20)}
    row = coin(runs)
    means = {size: sum(epochs) / 4 for size, epochs in runs.items()}
    relative = sum(sum((one - means[size]) ** 2 for one in epochs) / 16 / means[size] ** 2 for size, epochs in runs.items())
    expected = 100 * means[16] / means[8] * math.sqrt(relative)
    for measure in ("energy", "time", "cost"):
        found = row[f"whole_run_{measure}_change_percent_recordings_standard_error"]
        tap.equal(0.85 * expected < found < 1.15 * expected, True, (found, expected))
        tap.equal(row[f"whole_run_{measure}_change_percent_standard_error"] < found / 5, True)


def test_recorded_runs_that_are_alike_say_nothing_of_themselves():
    row = coin({8: (50, 50, 50), 16: (10, 10, 10)})
    tap.equal(row["whole_run_energy_change_percent_recordings_standard_error"], None)
    tap.contains(row["whole_run_energy_change_percent_recordings_standard_error_unavailable"], "all alike")


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
        power = power_text()
        for line in range(2, len(power.splitlines()) + 1):
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
    "another order and an extra column": other_order,
    "byte-order mark": lambda text: "\ufeff" + text,
    "quoted fields": quoted,
    "quoted fields with crlf": lambda text: quoted(text).replace("\n", "\r\n"),
    "no final line end": lambda text: text.rstrip("\n"),
    "blank lines": lambda text: text.replace("\n", "\n\n"),
}


def test_other_spellings_give_the_same_bytes():
    known = Sandbox().simulate(f"--policy={ALL_POLICIES}", "--seeds=1-3")
    for name, change in SPELLINGS.items():
        box = Sandbox(change(train_text()), change(power_text()))
        tap.equal(box.simulate(f"--policy={ALL_POLICIES}", "--seeds=1-3") == known, True, name)


def test_other_spellings_of_never_give_the_same_bytes():
    known = Sandbox().simulate("--seeds=1-3")
    for spelling in ("", "NaN", "NAN"):
        train = train_text().replace(",nan\n", f",{spelling}\n")
        tap.equal(Sandbox(train).simulate("--seeds=1-3") == known, True, repr(spelling))


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


def test_profile_window_shortens_the_first_epoch():
    box = Sandbox()
    arguments = ["--policy=zeus", "--workload=squad", "--seeds=1", "--recurrences=1"]
    document, whole = box.simulate(*arguments)
    tap.equal("profile_window_share" in document["settings"], False)
    tap.equal(box.simulate(*arguments, "--profile-window=100%")[1], whole, "no try was left, so nothing is charged")
    document, short = box.simulate(*arguments, "--profile-window=10%")
    tap.equal(document["settings"]["profile_window_share"], 0.1)
    before, after = (list(csv.DictReader(io.StringIO(text))) for text in (whole, short))
    knobs = [[(row["batch_size"], row["power_limit_w"], row["reached"]) for row in rows] for rows in (before, after)]
    tap.equal(knobs[0], knobs[1])
    seconds = {float(line.split(",")[4]): float(line.split(",")[5]) for line in power_text().splitlines()
               if line.startswith(f"squad,bert_base_uncased,{before[0]['batch_size']},")}
    saved = 0.9 * (sum(seconds.values()) / len(seconds) - seconds[float(before[0]["power_limit_w"])])
    tap.equal(abs(float(before[0]["time_s"]) - float(after[0]["time_s"]) - saved) < 1e-9, True)
    tap.contains(box.run(*arguments, "--profile-window=10%").stdout, "takes 10 % of a batch size's first epoch")
    for value in ("0%", "-1%", "101%", "0.1", "10", "%", "ten%"):
        refuse(64, f"bad value '{value}'", "'--profile-window'", "above 0% and up to 100%",
               arguments=[f"--profile-window={value}"])


def test_objectives():
    """Eta is one spelling of an objective; a bound holds for what is best and for what policies run."""
    box = Sandbox()
    arguments = ["--policy=bayes,zeus", "--workload=squad", "--seeds=1-2", "--recurrences=30"]
    document, tries = box.simulate(*arguments, "--eta=0.3")
    tap.equal("objective" in document["settings"] or "max_slowdown" in document["settings"], False)
    for spelled in (["--objective=cost:0.3"], ["--objective=cost:0.3", "--max-slowdown=1000x"]):
        same, also = box.simulate(*arguments, *spelled)
        tap.equal((same["rows"], also), (document["rows"], tries))
        tap.equal((same["settings"]["eta"], same["settings"]["objective"]), (0.3, "cost:0.3"))
    energy, tries = box.simulate(*arguments, "--objective=energy")
    for other in ("carbon", "money"):
        tap.equal(box.simulate(*arguments, f"--objective={other}")[1], tries, f"{other} is energy without a grid")
    bounded, within = box.simulate(*arguments, "--objective=energy", "--max-slowdown=3%")
    tap.equal(bounded["settings"]["max_slowdown"], 1.03)
    tap.equal(within != tries, True, "the bound changes what runs")
    for arguments, *words in ((["--objective=energy", "--eta=0.5"], "--objective and --eta", "give one"),
                              (["--objective=lowest-limit"], "'lowest-limit'", "carbon or money"),
                              (["--objective=cost:2"], "'cost:2'", "'--objective'"),
                              (["--max-slowdown=3"], "'3'", "3% or 1.03x"),
                              (["--max-slowdown=3%", "--drift=jump"], "bound", "drift")):
        refuse(64, *words, arguments=arguments)


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


tap.main(globals())
