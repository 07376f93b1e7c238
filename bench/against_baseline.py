# SPDX-License-Identifier: Apache-2.0
"""against_baseline.py BUILD_DIR TRACES [FILE]: what the program costs beside the commit that FILE (bench/baseline) names.

Builds that commit once, in BUILD_DIR/bench-baseline, runs both programs in turns with the same work, and
prints processor time and the ratio of each pair: median (least .. greatest). Nothing here passes or fails.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPETITIONS = 11


def stop(text):
    sys.exit(f"against_baseline: {text}")


def commit_named(name_file):
    """The whole hash of the commit that the file names."""
    name = name_file.read_text().strip()
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}"],
                           capture_output=True, text=True)
    if found.returncode != 0:
        stop(f"'{name_file}' names '{name}', which is no commit of the repository in '{ROOT}'; write the hash of one there, or "
             "fetch it (git fetch --unshallow)")
    return found.stdout.strip()


def build(commit, directory):
    """The program of the commit, built as this one is by default."""
    program = directory / commit / "build" / "flyball"
    if program.exists():
        return program
    print(f"building {commit} in '{directory}', once", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    (directory / commit / "source").mkdir(parents=True)
    with open(directory / "log", "w") as log:
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", commit], stdout=subprocess.PIPE)
        unpacked = subprocess.run(["tar", "-x", "-C", directory / commit / "source"], stdin=archive.stdout)
        if archive.wait() != 0 or unpacked.returncode != 0:
            stop(f"unpacking {commit} failed")
        for step in (["meson", "setup", "build", "source"], ["meson", "compile", "-C", "build", "flyball:executable"]):
            if subprocess.run(step, cwd=directory / commit, stdout=log, stderr=log).returncode != 0:
                stop(f"building {commit} failed: '{directory}/log' says why")
    return program


def processor_s(command):
    """Processor time of a process, in seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        stop(f"{' '.join(map(str, command))} failed: {said.decode().strip()}")
    return usage.ru_utime + usage.ru_stime


def compare(name, ours, theirs, arguments):
    pairs = [(processor_s([ours, *arguments]), processor_s([theirs, *arguments])) for _ in range(REPETITIONS)]
    mine, other = (statistics.median(side) for side in zip(*pairs))
    ratios = sorted(one / two for one, two in pairs)
    print(f"{name:33} {statistics.median(ratios):6.3f} ({ratios[0]:.3f} .. {ratios[-1]:.3f}) times the processor time; "
          f"{mine * 1e3:.1f} ms beside {other * 1e3:.1f} ms", flush=True)


def main():
    directory, traces, name_file = (pathlib.Path(word).absolute() for word in [*sys.argv[1:], ROOT / "bench" / "baseline"][:3])
    commit = commit_named(name_file)
    if not (traces / "summary_train.csv").exists():
        print(f"skipped: {traces} has no traces; set FLYBALL_TEST_DATA to the directory of the recorded data")
        return
    ours, theirs = directory / "flyball", build(commit, directory / "bench-baseline")
    job = ["--quiet", "--traces", traces, "--gpu", "v100", "--workload", "librispeech"]
    one = ["sim", "job", *job, "--seeds", "1", "--threads", "1"]
    groups = directory / "bench-baseline" / "groups.csv"
    subprocess.run([theirs, "sim", "make-groups", "--quiet", "--submissions", "300000", groups], check=True)
    print(f"beside commit {commit[:12]}, {REPETITIONS} runs of each in turns")
    compare("a million simulated recurrences", ours, theirs, [*one, "--recurrences", "1000000", "--policy", "zeus"])
    compare("the same as the published code", ours, theirs,
            [*one, "--recurrences", "300000", "--policy", "zeus", "--generator", "numpy"])
    compare("flyball sim job, a process", ours, theirs, one)
    compare("flyball sim group", ours, theirs,
            ["sim", "group", "--quiet", "--traces", traces, "--gpu", "v100", "--groups", groups, "--policy", "zeus", "--threads", "1"])
    compare("flyball sim pareto", ours, theirs, ["sim", "pareto", *job])
    compare("flyball version", ours, theirs, ["version"])


if __name__ == "__main__":
    main()
