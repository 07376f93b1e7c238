# SPDX-License-Identifier: Apache-2.0
"""cli_sim_group.py FLYBALL ROOT: groups of overlapping submissions, from the command line."""
import csv
import json
import lzma
import os
import pathlib
import sys
import tempfile
import zlib

import tap

FLYBALL, ROOT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or ROOT.parent / "shared" / "data").resolve()
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYBALL_")}
HEADER = "group,start_time,end_time,dataset,runtime_ratio\n"
COLUMNS = ["gpu", "group", "dataset", "policy", "seed", "recurrence", "try", "batch_size", "power_limit_w", "reached",
           "energy_j", "time_s", "cost_j"]
JOB = "[made-up]\nnetwork = mlp\noptimizer = sgd\ntarget_metric = 0.9\nmax_epochs = 100\ndefault_batch_size = 1024\n"


def run(directory, *arguments):
    return tap.run([FLYBALL, "sim", *map(str, arguments)], cwd=directory, env=ENVIRONMENT)


def made_up(directory, groups):
    """A made-up trace with its job, and a file of groups."""
    tap.equal(run(directory, "make-trace", "trace").returncode, 0)
    (directory / "groups.csv").write_text(groups, encoding="utf-8")


def group(directory, *arguments, file="groups.csv"):
    return run(directory, "group", "--quiet", "--groups", file, "--traces", "trace", "--gpu", "made-up", "--jobs",
               "trace/jobs.ini", *arguments)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def recorded():
    path = DATA / "golden" / "group_history.csv.xz"
    if not path.exists():
        raise tap.Skip(f"{path} is absent; set FLYBALL_TEST_DATA to the directory of the recorded data")
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def close(ours, theirs):
    return abs(float(ours) - float(theirs)) <= 1e-12 * abs(float(theirs))


def test_recorded_groups():
    golden = recorded()
    with tempfile.TemporaryDirectory() as name:
        for gpu in ("v100", "p100"):
            result = run(name, "group", "--quiet", "--groups", DATA / "golden" / "group_input.csv", "--traces",
                         DATA / "zeus_nsdi23", "--gpu", gpu, "--generator", "numpy", "--tries", "tries.csv")
            tap.equal((result.returncode, result.stderr), (0, ""))
            ours = {}
            for row in rows_of(f"{name}/tries.csv"):
                ours.setdefault(row["group"], []).append(row)
            for row in (row for row in golden if row["gpu"] == gpu):
                mine = ours[row["group"]][int(row["i"])]
                tap.equal((mine["seed"], mine["try"], mine["batch_size"], mine["power_limit_w"], mine["reached"]),
                          (row["seed"], row["i"], row["bs"], row["pl"], row["reached"]), row["group"])
                if not (close(mine["energy_j"], row["energy"]) and close(mine["time_s"], row["time"])):
                    raise AssertionError(f"{row['group']} {row['i']}: {mine} is not {row}")
            tap.equal(sum(map(len, ours.values())), sum(row["gpu"] == gpu for row in golden))


def test_seeds_of_the_published_generator():
    """Those of the names, unless they are given."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER + "".join(f"night,{i},{i + 3},made-up,1\n" for i in range(0, 100, 2)))
        tries = {}
        for seed in (None, zlib.adler32(b"night"), 1):
            seeds = () if seed is None else ("--seeds", str(seed))
            tap.equal(group(directory, "--generator", "numpy", "--tries", "tries.csv", *seeds).returncode, 0)
            tries[seed] = (directory / "tries.csv").read_text(encoding="utf-8")
        tap.equal(tries[None], tries[zlib.adler32(b"night")])
        tap.equal({row.split(",")[4] for row in tries[1].splitlines()[1:]}, {"1"})


def test_threads_and_packing_do_not_matter():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER)
        tap.equal(run(directory, "make-groups", "groups.csv", "--submissions", "3000", "--groups", "40", "--datasets",
                      "made-up").returncode, 0)
        content = (directory / "groups.csv").read_bytes()
        (directory / "packed.csv.xz").write_bytes(lzma.compress(content[:5000]) + lzma.compress(content[5000:]))
        seen = set()
        for file, threads in (("groups.csv", 1), ("groups.csv", 3), ("packed.csv.xz", 2)):
            result = group(directory, "--threads", threads, "--policy", "zeus,grid,oracle", "--seeds", "1-2", "--tries",
                           "tries.csv", "--format", "json", file=file)
            tap.equal((result.returncode, result.stderr), (0, ""))
            seen.add((result.stdout, (directory / "tries.csv").read_bytes()))
        tap.equal(len(seen), 1)


def test_sums_follow_from_the_tries():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER)
        run(directory, "make-groups", "groups.csv", "--submissions", "500", "--groups", "9", "--datasets", "made-up")
        result = group(directory, "--policy", "zeus,default", "--tries", "tries.csv", "--format", "json")
        tries = rows_of(directory / "tries.csv")
        tap.equal(list(tries[0]), COLUMNS)
        report = {(row["workload"], row["policy"]): row for row in json.loads(result.stdout)["rows"]}
        for policy in ("zeus", "default"):
            mine = [row for row in tries if row["policy"] == policy]
            row = report["made-up", policy]
            tap.equal(row["tries"], len(mine))
            tap.equal(row["submissions"], 500)
            for key in ("energy_j", "time_s", "cost_j"):
                if abs(row[key] - sum(float(line[key]) for line in mine)) > 1e-9 * row[key]:
                    raise AssertionError(f"{policy} {key}: {row[key]}")
        change = (report["made-up", "zeus"]["energy_j"] / report["made-up", "default"]["energy_j"] - 1) * 100
        if abs(change - report["made-up", "zeus"]["energy_change_percent"]) > 1e-9:
            raise AssertionError(f"energy change {change}")
        for row in tries:
            cost = 0.5 * float(row["energy_j"]) + 0.5 * 250 * float(row["time_s"])
            if abs(cost - float(row["cost_j"])) > 1e-9 * cost:
                raise AssertionError(f"cost of {row}")


def test_one_explorer_at_a_time():
    """Ten submissions at once: the first explores, the others take the default, which is the best known."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER + "".join(f"burst,{i},1000,made-up,1\n" for i in range(10)) +
                "burst,2000,2100,made-up,1\n")
        tap.equal(group(directory, "--tries", "tries.csv").returncode, 0)
        sizes = [row["batch_size"] for row in rows_of(directory / "tries.csv")]
        tap.equal(sizes[:10], ["1024"] * 10)
        tap.equal(sizes[10], "512")


def test_profile_window():
    """Only trainings that measure a profile become shorter, by their share of a first epoch."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER + "night,0,10,made-up,1\nnight,20,30,made-up,1\n")
        times = []
        for option in ((), ("--profile-window=50%",), ("--profile-window=100%",)):
            tap.equal(group(directory, "--tries", "tries.csv", *option).returncode, 0)
            times.append([(row["batch_size"], float(row["time_s"])) for row in rows_of(directory / "tries.csv")])
        tap.equal(times[0], times[2])
        tap.equal([size for size, _ in times[0]], [size for size, _ in times[1]])
        tap.equal(times[0][0][1] > times[1][0][1], True)
        tap.contains(group(directory, "--profile-window=0%").stderr, "above 0% and up to 100%")


REFUSED = {
    "end before start": ("a,5,4,made-up,1\n", 65, "groups.csv:2: column 'end_time'"),
    "unsorted": ("a,5,9,made-up,1\na,4,9,made-up,1\n", 65, "groups.csv:3: column 'start_time'"),
    "unknown dataset": ("a,5,9,made-up,1\nb,1,2,made-uq,1\n", 65, "groups.csv:3: column 'dataset'"),
    "scattered": ("a,5,9,made-up,1\nb,1,2,made-up,1\na,9,9,made-up,1\n", 65, "groups.csv:4: column 'group'"),
    "text for a number": ("a,x,9,made-up,1\n", 65, "groups.csv:2: column 'start_time'"),
    "no rows": ("", 65, "groups.csv:1:"),
}


def test_malformed_groups():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for what, (rows, status, words) in REFUSED.items():
            made_up(directory, HEADER + rows)
            result = group(directory, "--tries", "tries.csv")
            tap.equal((result.returncode, result.stdout), (status, ""), what)
            tap.contains(result.stderr, words)
            tap.equal((directory / "tries.csv").exists(), False, what)


def test_damaged_archives():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER)
        whole = lzma.compress((HEADER + "".join(f"a,{i},{i + 1},made-up,1\n" for i in range(20000))).encode())
        for what, content, words in (("truncated", whole[:-2000], "the compressed file ends early"),
                                     ("plain", HEADER.encode(), "the file is not compressed by xz"),
                                     ("damaged", whole[:1500] + b"xxxx" + whole[1504:], "the compressed file is damaged")):
            (directory / "bad.csv.xz").write_bytes(content)
            result = group(directory, file="bad.csv.xz")
            tap.equal((result.returncode, result.stdout), (65, ""), what)
            tap.contains(result.stderr, "flyball: bad.csv.xz:")
            tap.contains(result.stderr, words)


def test_usage():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        made_up(directory, HEADER + "a,1,2,made-up,1\n")
        for arguments, status, words in ((("--seeds", "2-1"), 64, "--seeds"), (("--policy", "zues"), 64, "zeus")):
            result = group(directory, *arguments)
            tap.equal((result.returncode, result.stdout), (status, ""))
            tap.contains(result.stderr, words)
        result = group(directory, file="nothing.csv")
        tap.equal(result.returncode, 66)
        tap.contains(result.stderr, "nothing.csv")


if __name__ == "__main__":
    tap.main(globals())
