# SPDX-License-Identifier: Apache-2.0
"""Files that flyball run and record write as one process of many: their names, one writer each, and the ranks that tally misses.

usage: cli_run_outputs.py FLYBALL SOURCE_ROOT
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import tap

FLYBALL = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="flyball-outputs-")
HOME = pathlib.Path(WORK.name)
LAUNCHERS = ("FLYBALL_", "XDG_", "SLURM", "OMPI_", "PMI", "CUDA_", "RANK", "WORLD_SIZE", "LOCAL_", "TORCH", "MASTER_", "NODE_NAME")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
CLEAN.update(HOME=str(HOME), XDG_RUNTIME_DIR=str(HOME))
NOTHING = ["--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--sysfs-root", str(HOME)]


def slurm(rank, tasks):
    return {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(tasks),
            "SLURMD_NODENAME": "n17"}


def command(output, *program):
    return [FLYBALL, "run", *NOTHING, "--quiet", "--output", output, "--", *(program or ["true"])]


def run(output, *program, environment=None, directory=HOME):
    return tap.run(command(output, *program), env={**CLEAN, **(environment or {})}, cwd=directory)


def fresh(name):
    path = HOME / name
    path.mkdir()
    return path


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


def test_signs_of_names():
    directory = fresh("signs")
    host = socket.gethostname()
    for pattern, environment, name in (
        ("run-%t.json", slurm(3, 8), "run-3.json"),
        ("%j-%h-%t.json", slurm(0, 8), "4711-n17-0.json"),
        ("%j/%t%%.json", {"PBS_JOBID": "12", "PMI_RANK": "5", "PMI_SIZE": "6"}, "12/5%.json"),
        ("o%t.json", {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, "o2.json"),
        ("t%t.json", {"RANK": "1", "WORLD_SIZE": "2"}, "t1.json"),
        ("alone%t.json", {}, "alone0.json"),
        ("%h.json", {}, f"{host}.json"),
    ):
        (directory / "12").mkdir(exist_ok=True)
        result = run(pattern, environment=environment, directory=directory)
        tap.equal((result.returncode, result.stderr, (directory / name).exists()), (0, "", True), pattern)
    for pattern in ("p%p.json", "p%j.json"):
        process = subprocess.Popen(command(pattern), env=CLEAN, cwd=directory)
        process.wait(tap.PATIENCE_S)
        (directory / f"p{process.pid}.json").unlink()


def test_other_commands_name_their_files_alike():
    directory, environment = fresh("commands"), {**CLEAN, **slurm(3, 8)}
    store = ["--store", "jobs.sqlite"]
    tap.run([os.path.join(os.environ["FLYBALL_TEST_BUILD"], "job_client"), directory / "jobs.sqlite", "one", "2"])
    sim = ["--traces", "trace", "--jobs", "trace/jobs.ini", "--gpu", "made-up", "--workload", "made-up"]
    for words, name in (
        (["sim", "make-trace", "trace"], "trace"),
        (["sim", "make-groups", "groups-%t.csv"], "groups-3.csv"),
        (["sim", "pareto", *sim, "--svg", "choices-%j.svg"], "choices-4711.svg"),
        (["sim", "job", *sim, "--recurrences", "2", "--tries", "tries-%h.csv", "--plot", "regret-%t.svg"], "tries-n17.csv"),
        (["job", "export", "one", *store, "--output", "log-%t.jsonl"], "log-3.jsonl"),
        (["job", "backup", *store, "store-%t.sqlite"], "store-3.sqlite"),
    ):
        result = tap.run([FLYBALL, *words], env=environment, cwd=directory)
        tap.equal((result.returncode, (directory / name).exists()), (0, True), f"{words}: {result.stderr}")
    tap.equal((directory / "regret-3.svg").exists(), True)


def test_unknown_signs_are_refused():
    for options in (["run", "--output", "run-%n.json", "--", "echo", "ran"], ["run", "--csv", "%n.csv", "--", "echo", "ran"],
                    ["record", "rec-%n.jsonl"], ["selftest", "--output", "self-%n.json"], ["sim", "make-groups", "groups-%n.csv"],
                    ["job", "backup", "store-%n.sqlite"]):
        result = tap.run([FLYBALL, *options], env=CLEAN, cwd=HOME)
        tap.equal((result.returncode, result.stdout), (64, ""), options)
        tap.contains(result.stderr, f"'{[word for word in options if '%n' in word][0]}': '%n' means nothing in a file's name: %t is the rank")
    tap.contains(run("100%").stderr, "'100%': '%' means nothing")


def test_csv_and_recordings_too():
    directory = fresh("others")
    tap.run([FLYBALL, "run", *NOTHING, "--csv", "no/%t.csv", "--", "true"], env={**CLEAN, **slurm(4, 8)}, cwd=directory)
    result = tap.run([FLYBALL, "run", *NOTHING, "--csv", "no/%t.csv", "--", "true"], env={**CLEAN, **slurm(4, 8)}, cwd=directory)
    tap.contains(result.stderr, "no/4.csv")
    result = tap.run([FLYBALL, "record", "--nvml", str(HOME / "none.so"), "--amdsmi", str(HOME / "none.so"), "--cpu-tdp", "65", "--duration", "0.1",
                      "--interval", "0.05", "rec-%t.jsonl"], env={**CLEAN, **slurm(4, 8)}, cwd=directory)
    tap.equal((result.returncode, (directory / "rec-4.jsonl").exists()), (0, True), result.stderr)


def test_two_live_runs_never_write_one_file():
    """The second gets a name of its own and says so; both programs run; nothing is left behind."""
    directory = fresh("two")
    first = subprocess.Popen(command("run.json", "sh", "-c", "echo started; read line; exit 3"), env=CLEAN, cwd=directory, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    tap.equal(first.stdout.readline(), "started\n")
    second = subprocess.Popen(command("run.json", "sh", "-c", "exit 4"), env={**CLEAN, **slurm(1, 2)}, cwd=directory, stderr=subprocess.PIPE,
                              text=True)
    talk = second.communicate(timeout=tap.PATIENCE_S)[1]
    aside = f"run.n17-{second.pid}.json"
    tap.equal(second.returncode, 4)
    tap.equal(talk, f"flyball: warning: another run that has not ended writes 'run.json', so this one writes '{aside}'; with %t in its name each "
                    "rank has a file of its own\n")
    first.communicate("\n", timeout=tap.PATIENCE_S)
    tap.equal((first.returncode, names(directory)), (3, sorted(["run.json", aside])))
    tap.equal([json.loads((directory / name).read_text())["exit_status"] for name in ("run.json", aside)], [3, 4])
    tap.equal((run("run.json", "sh", "-c", "exit 5", directory=directory).stderr, names(directory)), ("", sorted(["run.json", aside])))
    tap.equal(json.loads((directory / "run.json").read_text())["exit_status"], 5)


def test_a_killed_run_holds_nothing():
    directory = fresh("killed")
    first = subprocess.Popen(command("run.json", "sh", "-c", "echo started; read line"), env=CLEAN, cwd=directory, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    first.stdout.readline()
    first.kill()
    first.communicate(timeout=tap.PATIENCE_S)
    tap.equal((run("run.json", directory=directory).stderr, names(directory)), ("", ["run.json"]))


def test_many_at_once():
    """Whichever is first: as many reports as runs."""
    directory = fresh("many")
    started = [subprocess.Popen(command("run.json", "sh", "-c", "echo started; read line"), env={**CLEAN, **slurm(rank, 8)}, cwd=directory,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(8)]
    for process in started:
        tap.equal(process.stdout.readline(), "started\n")
    talk = "".join(process.communicate("\n", timeout=tap.PATIENCE_S)[1] for process in started)
    reports = [json.loads((directory / name).read_text()) for name in names(directory)]
    tap.equal(sorted(report["job"]["rank"] for report in reports), list(range(8)), talk)
    tap.equal(talk.count("another run that has not ended writes 'run.json'"), 7)


def test_a_pipe_may_have_many_writers():
    for _ in range(2):
        tap.equal(run("/dev/null", FLYBALL, "run", *NOTHING, "--quiet", "--output", "/dev/null", "--", "true").stderr, "")


def test_tally_counts_missing_ranks():
    directory = fresh("ranks")
    for rank in (0, 3, 3, 4):
        run("run-%t-%p.json", environment=slurm(rank, 9), directory=directory)
    result = tap.run([FLYBALL, "tally", str(directory)], env=CLEAN)
    tap.equal(result.returncode, 0)
    tap.contains(result.stdout, "; 6 of 9 ranks are missing\n")
    tap.contains(result.stderr, "6 of 9 ranks of job 'slurm-4711' have no report here (1-2,5-8); what only they measured is missing from the sum")
    document = json.loads(tap.run([FLYBALL, "tally", "--format", "json", str(directory)], env=CLEAN).stdout)
    tap.equal((document["total"]["ranks"], document["total"]["missing_ranks"], document["ranks"]), (9, 6, [
        {"job": "slurm-4711", "step": "0", "ranked_by": "Slurm", "world_size": 9, "reported": 3, "missing": 6, "missing_ranks": "1-2,5-8"}]))
    for rank in (1, 2, 5, 6, 7, 8):
        run("run-%t.json", environment=slurm(rank, 9), directory=directory)
    result = tap.run([FLYBALL, "tally", str(directory)], env=CLEAN)
    tap.equal(("missing" in result.stdout, "missing" in result.stderr), (False, False), result.stderr)


def test_tally_of_ranks_that_are_not_known():
    alone, endless = fresh("alone"), fresh("endless")
    run("run.json", directory=alone)
    document = json.loads(tap.run([FLYBALL, "tally", "--format", "json", str(alone)], env=CLEAN).stdout)
    tap.equal((document["ranks"], document["total"]["missing_ranks"], document["total"]["missing_ranks_unavailable"]),
              ([], None, "no report states how many ranks there are"))
    for rank in range(0, 400, 2):
        document = {"schema": "flyball.run/2", "start_unix_s": 1, "devices": [],
                    "job": {"id": "j", "node": "n", "rank": rank, "world_size": None if rank < 200 else 2_000}}
        (endless / f"{rank}.json").write_text(json.dumps(document))
    group, = json.loads(tap.run([FLYBALL, "tally", "--format", "json", str(endless)], env=CLEAN).stdout)["ranks"]
    tap.equal((group["world_size"], group["reported"], group["missing"], group["missing_ranks"][:6], group["missing_ranks"][-4:]),
              (2000, 200, 1800, "1,3,5,", ",..."))


tap.main(globals())
