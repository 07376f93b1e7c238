# SPDX-License-Identifier: Apache-2.0
"""`flyball sim pareto` and `sim job --plot` from outside.

usage: cli_pareto.py FLYBALL

Frontier and choice are worked out a second time from the trace files, with
dominance taken word by word; pictures are read back as XML.
"""
import csv
import io
import json
import math
import os
import pathlib
import re
import xml.etree.ElementTree as ElementTree

import sim_reference as reference
import svg_texts
import tap
from sim_fixture import CLEAN, FLYBALL, JOBS, Sandbox, power_text, train_text

BESIDE = tap.LIB.parents[2] / "shared" / "data"
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or BESIDE)
SVG = "{http://www.w3.org/2000/svg}"


def pareto(box, *arguments, gpu="mini", traces="traces"):
    command = [FLYBALL, "sim", "pareto", f"--traces={traces}", f"--gpu={gpu}", *arguments]
    return tap.run(command, cwd=box.path, env=CLEAN)


def document(box, *arguments, **options):
    result = pareto(box, "--format=json", *arguments, **options)
    tap.equal(result.returncode, 0, result.stderr)
    return json.loads(result.stdout)


def recorded():
    if not (DATA / "zeus_nsdi23" / "summary_train.csv").is_file():
        raise tap.Skip("the recorded traces are not there")
    return DATA / "zeus_nsdi23"


# -- A second calculation --


def expected_points(job):
    """{(batch size, limit): (seconds, joules)} of a recurrence, by the chance that a try is the last."""
    points = {}
    for size in job.sizes:
        runs, reaching = len(job.epochs[size]), job.reaching(size)
        if reaching:
            tries = runs / len(reaching)
            epochs = math.fsum(reaching + [job.max_epochs] * (runs - len(reaching))) / runs * tries
            for limit, (seconds, watts) in job.points[size].items():
                points[size, limit] = (seconds * epochs, seconds * watts * epochs)
    return points


def dominated(mine, others):
    return any(other[0] <= mine[0] and other[1] <= mine[1] and other != mine for other in others)


def best(points, objective, eta, max_power, allowed):
    scores = {"energy": lambda time, energy: energy, "time": lambda time, energy: time,
              "cost": lambda time, energy: eta * energy + (1 - eta) * max_power * time}
    return min(scores[objective](*point) for point in points.values() if point[0] <= allowed * (1 + 1e-12))


def check(box, name, gpu, traces):
    job = reference.Job(box.path / traces, gpu, *JOBS[name])
    points = expected_points(job)
    today = points[job.default, max(job.points[job.default])]
    frontier = sorted((key for key in points if not dominated(points[key], points.values())), key=points.get)
    everything = document(box, f"--workload={name}", "--all", gpu=gpu, traces=traces)
    tap.equal(sorted((row["batch_size"], row["power_limit_w"]) for row in everything["rows"]), sorted(points), name)
    for eta, objective, bound in [(0.5, "cost", None), (0, "cost", None), (1, "cost", None), (0.2, "cost", "1.5x"),
                                  (0.9, "cost", "0%"), (0.5, "energy", None), (0.5, "energy", "3%"),
                                  (0.5, "time", "1.03x")]:
        arguments = [f"--workload={name}", f"--eta={eta}", f"--objective={objective}"]
        found = document(box, *arguments, *([f"--max-slowdown={bound}"] if bound else []), gpu=gpu, traces=traces)
        rows = found["rows"]
        tap.equal([(row["batch_size"], row["power_limit_w"]) for row in rows], frontier, f"{name} on {gpu}")
        for row in rows:
            time, energy = points[row["batch_size"], row["power_limit_w"]]
            cost = eta * energy + (1 - eta) * job.max_power * time
            for key, value in (("time_s", time), ("energy_j", energy), ("cost_j", cost)):
                tap.equal(math.isclose(row[key], value, rel_tol=1e-12), True, f"{key}: {row[key]!r}, expected {value!r}")
            tap.equal(round(row["energy_change_percent"], 6), round((energy / today[1] - 1) * 100, 6))
            tap.equal(round(row["time_change_percent"], 6), round((time / today[0] - 1) * 100, 6))
        factor = {None: math.inf, "0%": 1.0, "3%": 1.03, "1.03x": 1.03, "1.5x": 1.5}[bound]
        chosen = points[found["chosen"]["batch_size"], found["chosen"]["power_limit_w"]]
        least = best(points, objective, eta, job.max_power, factor * today[0])
        got = best({0: chosen}, objective, eta, job.max_power, factor * today[0])
        tap.equal(math.isclose(got, least, rel_tol=1e-12), True, f"{name} {arguments} {bound}: {got!r}, expected {least!r}")
        tap.equal(sum(row["chosen"] for row in rows), 1, "one row is chosen")
        if eta == 0.5 and objective == "cost":
            tap.equal((found["chosen"]["batch_size"], found["chosen"]["power_limit_w"]), job.optimum(eta)[1:])


def test_frontier_and_choice_of_small_trace():
    box = Sandbox()
    for name in ("cifar100", "squad"):
        check(box, name, "mini", "traces")


def test_frontier_and_choice_of_recorded_traces():
    for gpu in ("v100", "a40"):
        for name in JOBS:
            check(Sandbox(), name, gpu, recorded())


def test_frontier_alone_unless_all():
    box = Sandbox()
    frontier, everything = document(box, "--workload=squad"), document(box, "--workload=squad", "--all")
    tap.equal([row for row in everything["rows"] if row["on_frontier"]], frontier["rows"])
    tap.equal(everything["schema"], "flyball.sim.pareto/1")
    tap.equal(len(everything["rows"]), 12)
    tap.equal(sum(row["default"] for row in everything["rows"]), 1)


def test_csv_has_the_numbers_of_json():
    box = Sandbox()
    rows = list(csv.DictReader(io.StringIO(pareto(box, "--workload=squad", "--format=csv").stdout)))
    for row, expected in zip(rows, document(box, "--workload=squad")["rows"], strict=True):
        tap.equal(row.pop("schema"), "flyball.sim.pareto/1")
        tap.equal({key: float(text) for key, text in row.items()}, expected)


def test_table_says_what_is_saved():
    text = pareto(Sandbox(), "--workload=cifar100", "--max-slowdown=3%", "--objective=energy").stdout
    tap.equal([text.startswith("The choice of "), "less energy" in text.splitlines()[0]], [True, True], text)
    for words in ("The choice of least energy within 1.03 times the default's time: batch ", "; against the default: ",
                  "Left out: batch 128, since the power file has no row of it.", "one measurement", "Default: batch 64"):
        tap.contains(text, words)


# -- What is not known --


def unreached_default():
    """The default of squad, 32, never reaches its target."""
    return Sandbox(train=re.sub(r"(squad,bert_base_uncased,32,.*),\d+\n", r"\1,nan\n", train_text()))


def test_batch_sizes_that_never_reach_are_no_points():
    found = document(unreached_default(), "--workload=squad", "--all")
    tap.equal({row["batch_size"] for row in found["rows"]}, {8, 16})
    tap.equal([entry["batch_size"] for entry in found["left_out_batch_sizes"]], [32])
    tap.contains(found["left_out_batch_sizes"][0]["reason"], "none of its recorded runs")
    tap.equal((found["default"]["time_s"], found["rows"][0]["time_change_percent"]), (None, None))
    tap.contains(found["rows"][0]["time_change_percent_unavailable"], "default")
    text = pareto(unreached_default(), "--workload=squad").stdout
    tap.contains(text.splitlines()[0], "; what it saves is not known, since the default is not: none of its recorded runs")
    tap.contains(text, "whose time and energy are not known: none of its recorded runs reaches the target")
    tap.equal("inf" in text or "nan" in text, False, text)


def test_refusals():
    several = "choose one with --workload: cifar100, squad"
    for status, words, arguments in [
            (64, "'--max-slowdown': expected a percentage from 0%", ["--workload=squad", "--max-slowdown=3"]),
            (64, "'0.9x'", ["--workload=squad", "--max-slowdown=0.9x"]),
            (64, several, ["--workload=cifar100,squad"]), (64, several, []),
            (64, "objective", ["--workload=squad", "--objective=lowest-limit"]),
            (66, "", ["--workload=squad", "--svg=nowhere/p.svg"])]:
        result = pareto(Sandbox(), *arguments)
        tap.equal((result.returncode, result.stdout), (status, ""), f"{arguments} {result.stderr}")
        tap.contains(result.stderr, words)
    for box, words, arguments in [
            (unreached_default(), "default batch size 32", ["--workload=squad", "--max-slowdown=3%"]),
            (Sandbox(), "no batch size of job 'ranker'", ["--workload=ranker", "--jobs=jobs.ini"])]:
        result = pareto(box, "--svg=out/p.svg", *arguments)
        tap.equal((result.returncode, result.stdout, box.files()), (69, "", []), result.stderr)
        tap.contains(result.stderr, words)


# -- Pictures --


def read_picture(path):
    """The picture's root; fails where it is no plain SVG that stands alone."""
    text = path.read_text()
    root = svg_texts.check(text)
    tap.equal((root.tag, root.get("role")), (f"{SVG}svg", "img"))
    tap.equal([child.tag for child in root][:3], [f"{SVG}title", f"{SVG}desc", f"{SVG}style"])
    for word in ("<script", "href", "url(", "nan", "inf "):
        tap.equal(word in text, False, word)
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    for element in root.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("cy", height)):
            if element.get(name) is not None:
                tap.equal(0 <= float(element.get(name)) <= most, True, ElementTree.tostring(element))
    return root


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def test_picture_of_frontier():
    for gpu, traces, name in [("mini", "traces", "cifar100"), ("mini", "traces", "squad"), ("v100", None, "librispeech")]:
        if traces is None and not (DATA / "zeus_nsdi23").is_dir():
            continue
        box = Sandbox()
        arguments = [f"--workload={name}", "--svg=out/p.svg", "--max-slowdown=20%"]
        found = document(box, *arguments, "--all", gpu=gpu, traces=traces or recorded())
        root = read_picture(box.out / "p.svg")
        first = (box.out / "p.svg").read_bytes()
        pareto(box, *arguments, gpu=gpu, traces=traces or recorded())
        tap.equal((box.out / "p.svg").read_bytes() == first, True, "the same bytes again")
        tips = [element.text for element in root.iter(f"{SVG}title")][1:]
        tap.equal(len(set(tips)), len(found["rows"]), "every choice is a point")
        chosen = found["chosen"]
        tap.contains("\n".join(texts(root)), f"batch {chosen['batch_size']}, {chosen['power_limit_w']:g} W")
        for label in ("frontier", "default", "slowest allowed"):
            tap.equal(label in texts(root), True, f"{label} in {texts(root)}")


def test_picture_of_one_point():
    power = "".join(line for line in power_text().splitlines(True)
                    if not line.startswith("squad") or ",32,adamw,300," in line)
    box = Sandbox(power=power)
    tap.equal(len(document(box, "--workload=squad", "--svg=out/p.svg")["rows"]), 1)
    tap.contains("\n".join(texts(read_picture(box.out / "p.svg"))), "default, lowest score (eta 0.5): batch 32, 300 W")


def test_picture_of_regret():
    box = Sandbox()
    arguments = ["--workload=squad", "--policy=zeus,grid", "--seeds=1-8", "--plot=out/r.svg"]
    found, _ = box.simulate(*arguments, "--threads=1")
    first = (box.out / "r.svg").read_bytes()
    description = read_picture(box.out / "r.svg").find(f"{SVG}desc").text
    for row in found["rows"]:
        if row["policy"] != "oracle":
            tap.contains(description, f"{row['policy']} {row['regret_optimal_runs_mean']:.2f}", "the report's figure")
    for threads in (2, 7):
        box.simulate(*arguments, f"--threads={threads}")
        tap.equal((box.out / "r.svg").read_bytes() == first, True, f"{threads} threads")
    without, tries = box.simulate(*arguments[:-1])
    tap.equal((without, len(tries) > 0), (found, True), "the picture changes no figure")


def test_path_through_the_knobs_is_the_tries():
    """Step lines of one seed have a corner at each change of the batch size in the tries file."""
    box = Sandbox()
    box.simulate("--workload=squad", "--policy=grid", "--seeds=3", "--plot=out/r.svg")
    last = {}
    for row in reference.read_tries(box.out / "tries.csv")["squad", "grid", 3]:
        last[row["recurrence"]] = row
    root = read_picture(box.out / "r.svg")
    paths = [element.get("d") for element in root.iter(f"{SVG}path")
             if element.get("class") == "blue" and element.get("fill") == "none"]
    for path, key in zip(paths[-2:], ("batch_size", "power_limit_w"), strict=True):
        values = [last[recurrence][key] for recurrence in sorted(last)]
        heights = [point.split(",")[1] for point in path.removeprefix("M").split()]
        changes = sum(one != other for one, other in zip(values, values[1:]))
        tap.equal(sum(one != other for one, other in zip(heights, heights[1:])), changes, key)


def test_long_runs_have_few_samples():
    box = Sandbox()
    box.simulate("--workload=squad", "--seeds=1-2", "--recurrences=30000", "--plot=out/r.svg")
    longest = max(len(path.get("d").split()) for path in read_picture(box.out / "r.svg").iter(f"{SVG}path"))
    tap.equal(longest <= 2 * 512, True, f"{longest} points")


def test_picture_of_several_workloads_and_of_nothing():
    box = Sandbox()
    box.simulate("--seeds=1-3", "--plot=out/r.svg")
    for name in ("cifar100", "squad"):
        tap.contains("\n".join(texts(read_picture(box.out / "r.svg"))), f"{name} on mini")
    box.simulate("--jobs=jobs.ini", "--workload=ranker", "--seeds=1-3", "--plot=out/r.svg")
    tap.contains("\n".join(texts(read_picture(box.out / "r.svg"))), "nothing to show")


if __name__ == "__main__":
    tap.main(globals())
