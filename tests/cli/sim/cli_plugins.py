# SPDX-License-Identifier: Apache-2.0
"""Policies from shared objects: the examples, what they are told, and what is said of bad ones.

usage: cli_plugins.py FLYBALL ROOT
"""
import pathlib
import shutil
import sys

import sim_reference as reference
import tap
from sim_fixture import FLYBALL, Sandbox, power_text

BUILD, ROOT = pathlib.Path(FLYBALL).parent, pathlib.Path(sys.argv[2]).resolve()
EXAMPLES, PLUGINS = BUILD / "examples", BUILD / "tests" / "plugins"
CLIMB, LEAST_ENERGY = EXAMPLES / "policy_plugin.so", EXAMPLES / "power_policy_plugin.so"
SANITIZED = bool(tap.sanitizers(FLYBALL))


def plugin(name):
    return PLUGINS / f"{name}.so"


def without(row, *names):
    return {key: value for key, value in row.items() if key not in names}


def rows_of(document, policy):
    return [without(row, "policy") for row in document["rows"] if row["policy"] == policy]


# -- Good ones --


def test_examples_give_the_same_bytes_on_any_number_of_threads():
    box = Sandbox()
    arguments = [f"--policy=zeus,{CLIMB}", f"--power-policy={LEAST_ENERGY}", "--seeds=1-6"]
    known = box.simulate(*arguments, "--threads=1")
    tap.equal(box.simulate(*arguments, "--threads=3") == known, True)
    tap.equal([row["policy"] for row in known[0]["rows"]], ["zeus", "climb", "default", "oracle"] * 2)
    tap.equal(known[0]["settings"]["power_policy"], "least-energy")
    tap.equal(all(row["completed_runs"] == 6 for row in known[0]["rows"] if row["policy"] == "climb"), True)


def test_example_climbs():
    """From batch 64 to a cheaper one, neighbour by neighbour."""
    box = Sandbox()
    document, _ = box.simulate(f"--policy={CLIMB}", "--workload=cifar100", "--seeds=1-5")
    tap.equal(rows_of(document, "climb")[0]["last_five_cost_change_percent_mean"] < -5.0, True)
    for tries in reference.read_tries(box.out / "tries.csv").values():
        sizes = list(dict.fromkeys(row["batch_size"] for row in tries))
        tap.equal(sizes[:2], [64, 32])


def test_example_keeps_its_bound():
    box = Sandbox()
    box.simulate(f"--power-policy={LEAST_ENERGY}", "--seeds=1-2")
    limits = {row["power_limit_w"] for tries in reference.read_tries(box.out / "tries.csv").values() for row in tries}
    profiles = {}
    for line in power_text().splitlines()[2:]:
        dataset, _, size, _, limit, seconds, watts = line.split(",")
        profiles.setdefault((dataset, size), []).append((float(limit), float(seconds), float(watts)))
    allowed = {min((watts * seconds, limit) for limit, seconds, watts in profile
                   if seconds <= 1.03 * max(profile)[1])[1] for profile in profiles.values()}
    tap.equal(limits <= allowed, True, f"{limits} and {allowed}")


def test_plugin_equal_to_default_has_its_numbers():
    box = Sandbox()
    document, text = box.simulate(f"--policy=default,{plugin('default')}", "--seeds=1-4")
    tap.equal(rows_of(document, "default-again"), rows_of(document, "default"))
    tries = [line.split(",") for line in text.splitlines()[1:]]
    of = {name: [row[:2] + row[3:] for row in tries if row[2] == name] for name in ("default", "default-again")}
    tap.equal(of["default-again"] == of["default"], True)


def test_power_plugin_equal_to_the_built_in_one_has_its_numbers():
    box = Sandbox()
    arguments = ["--policy=zeus,grid", "--seeds=1-4", "--eta=0.3"]
    known = box.simulate(*arguments)
    document, text = box.simulate(*arguments, f"--power-policy={plugin('cost')}")
    tap.equal((document["rows"], text) == (known[0]["rows"], known[1]), True)


TOLD = ["--eta=0.25", "--beta=3", "--window=7", "--workload=cifar100", "--recurrences=60"]


def test_plugin_is_told_what_happens_and_draws_by_seed():
    box = Sandbox()
    box.simulate(f"--policy={plugin('uniform')}", *TOLD, "--seeds=1-8", "--threads=3")
    runs = reference.read_tries(box.out / "tries.csv")
    sizes = {key: tuple(row["batch_size"] for row in tries) for key, tries in runs.items()}
    tap.equal(len(set(sizes.values())), 8)
    tap.equal(set(sum(sizes.values(), ())), {8, 16, 32, 64})


def told(box, *arguments):
    """What the plug-in 'told' is told, call by call."""
    environment = {"FLYBALL_TOLD": str(box.path / "told")}
    box.simulate(f"--policy={plugin('told')}", "--seeds=1", "--threads=1", "--recurrences=2", *arguments,
                 environment=environment)
    lines = (box.path / "told").read_text(encoding="utf-8").splitlines()
    return {word: [line for line in lines if line.startswith(word)] for word in ("create", "measure", "bring", "cap")}


def test_plugin_is_told_all_that_policies_are():
    """Objective, bound, what profiling took, and a past: as live jobs tell it (test_job_plugin)."""
    calls = told(Sandbox(), "--workload=squad", "--objective=energy", "--max-slowdown=3%", "--profile-window=10%",
                 "--transfer-from=shift=0", "--transfer-recurrences=5")
    tap.contains(calls["create"][0], " objective 0 eta 1 max_slowdown 1.03 gpus 1 overlapping 0")
    watts, seconds = zip(*((float(watts), float(seconds)) for dataset, _, size, _, _, seconds, watts
                           in (line.split(",") for line in power_text().splitlines()) if (dataset, size) == ("squad", "32")))
    energy = 0.1 * sum(one * other for one, other in zip(watts, seconds)) / len(watts)
    tap.contains(calls["measure"][0], " points 4 chosen ")
    tap.contains(calls["measure"][0], f" units 1 window 0.1 energy {energy:.6g} time {0.1 * sum(seconds) / 4:.6g}")
    tap.contains(calls["bring"][0], "bring kind 2 batch 2 reached 5 ")
    tap.equal(calls["bring"][0].endswith(" following 0"), True, calls["bring"])
    tap.contains(calls["cap"][0], " left nan")
    calls = told(Sandbox(), "--workload=squad", "--eta=0.25")
    tap.contains(calls["create"][0], " objective 2 eta 0.25 max_slowdown inf ")
    tap.equal((calls["bring"], calls["measure"][0].split(" window ")[1].split()[0]), ([], "1"))


def test_words_paths_and_order_mix():
    box = Sandbox()
    shutil.copy(CLIMB, box.path / "mine.so")
    document, _ = box.simulate(f"--policy=mine.so,grid,{plugin('default')},oracle", "--workload=squad", "--seeds=1")
    tap.equal([row["policy"] for row in document["rows"]], ["climb", "grid", "default-again", "oracle", "default"])
    text = box.run("--policy=./mine.so", f"--power-policy={LEAST_ENERGY}", "--workload=squad", "--seeds=1").stdout
    tap.contains(text, "\n  climb     last 5 ")
    tap.contains(text, f"as 'least-energy' chooses ({LEAST_ENERGY})")
    text = box.run(f"--policy={plugin('default')}", "--workload=squad", "--seeds=1").stdout
    tap.contains(text, "\n  default-again last 5 ")


def test_nothing_left_is_a_result():
    box = Sandbox()
    document, _ = box.simulate(f"--policy={plugin('bad_nothing_left')}", "--workload=squad", "--seeds=1-3")
    row = rows_of(document, "bad")[0]
    tap.equal((row["completed_runs"], "bad_nothing_left.so' has no batch size left" in row["error"]), (0, True))


def test_manual_leads_to_a_plugin():
    """The C text and the command of docs/howto/plugins.md and of the header, as a reader would copy them."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise tap.Skip("there is no compiler")
    box = Sandbox()
    manual = (ROOT / "docs/howto/plugins.md").read_text(encoding="utf-8")
    box.write("mine.c", manual.split("```c\n")[1].split("```")[0])
    header = (ROOT / "include" / "flyball" / "plugin.h").read_text(encoding="utf-8")
    sample = header.split("This is a whole one:\n")[1].split(" *     $ cc")[0]
    box.write("in_turn.c", "".join(line.removeprefix(" *").strip() + "\n" for line in sample.splitlines()))
    for name in ("mine", "in_turn"):
        tap.equal(tap.run([compiler, "-shared", "-fPIC", f"{name}.c", "-I", ROOT / "include", "-o", f"{name}.so"],
                          cwd=box.path).stderr, "")
    document, _ = box.simulate("--policy=zeus,./mine.so,./in_turn.so", "--workload=squad", "--seeds=1-3")
    tap.equal([row["completed_runs"] for row in document["rows"]], [3] * 5)


# -- Bad ones --

USUAL = ["--tries=out/tries.csv", "--seeds=1-3", "--quiet"]


def refuse(status, *words, arguments, settings="", environment=None, copies=()):
    """One line on stderr with the words in order, that status, and no file."""
    box = Sandbox()
    box.write("flyball.ini", settings)
    for source, name in copies:
        shutil.copy(source, box.path / name)
    for threads in ("1", "3"):
        result = box.run(*USUAL, f"--threads={threads}", *arguments, environment=environment or {})
        tap.equal((result.returncode, result.stdout, result.stderr.count("\n")), (status, "", 1),
                  f"{arguments} {result.stderr}")
        at = 0
        for word in words:
            if word not in result.stderr[at:]:
                raise AssertionError(f"expected {word!r} behind column {at} of {result.stderr!r}")
            at = result.stderr.index(word, at) + len(word)
        tap.equal(box.files(), [], "files left behind")


WRONG = {  # --policy: status and words behind the plug-in's path
    "batch_index": (65, "'propose' in recurrence 4, try 1, gave batch index", "set it to one from 0 to"),
    "forgotten": (65, "gave batch index 18446744073709551615 of a job with"),
    "limit": (65, "gave a power limit of 123.25 W, which batch size", "one of its limits_w"),
    "limit_nan": (65, "gave a power limit of nan W"),
    "limit_rule": (65, "gave limit rule 9"),
    "epochs": (65, "'epoch_cap' gave 101 epochs; return at most max_epochs, which is 100"),
    "create": (65, "'create' failed with 7 for job", "it is too late; mend"),
    "propose": (65, "'propose' in recurrence 4, try 1, failed with -5"),
    "two_answers": (65, "gave two answers to one question"),
    "abi": (69, "'fly_batch_policy_plugin' has abi 99, and this program has 1; compile it again"),
    "size": (69, "'fly_batch_policy_plugin' has size 8, and this program expects"),
    "no_name": (65, "bad name ''"),
    "csv_name": (65, "bad name 'a,b'", "expected 1 to 40 letters"),
    "formula_name": (65, "bad name '=1+1'"),
    "long_name": (65, "bad name 'a23456"),
    "known_name": (65, "has the name 'zeus', and so has another policy"),
    "core_name": (65, "has the name 'fixed', and so has another policy"),
    "no_propose": (65, "leaves out 'propose'"),
    "no_create": (65, "leaves out 'create'"),
}


def test_wrong_answers_name_the_plugin():
    for name, (status, *words) in WRONG.items():
        path = plugin(f"bad_{name}")
        refuse(status, f"plug-in '{path}", *words, arguments=[f"--policy=grid,{path}", "--workload=cifar100"])


def test_wrong_answers_about_power_name_the_plugin():
    for name, status, words in (
            ("power_index", 65, "'choose' gave index 4 of a profile with 4 points; set it to one from 0 to 3"),
            ("power_fails", 65, "'choose' failed with -1"), ("no_choose", 65, "leaves out 'choose'"),
            ("abi", 69, "'fly_power_policy_plugin' has abi 99"), ("size", 69, "'fly_power_policy_plugin' has size 8"),
            ("csv_name", 65, "bad name 'a,b' in 'fly_power_policy_plugin'")):
        path = plugin(f"bad_{name}")
        refuse(status, f"plug-in '{path}", words, arguments=[f"--power-policy={path}", "--workload=squad"])


def test_files_that_are_no_plugins():
    for path, status, words in ((plugin("empty"), 65, "has no symbol 'fly_batch_policy_plugin'"),
                                (LEAST_ENERGY, 65, "has no symbol 'fly_batch_policy_plugin'"),
                                ("nowhere.so", 66, "cannot be read: No such file"),
                                ("./nowhere", 66, "cannot be read: No such file"),
                                ("libm.so", 66, "cannot be read: No such file"),
                                ("traces/", 65, "is no regular file"),
                                ("traces/summary_train.csv", 65, "cannot be loaded: "),
                                ("cut.so", 65, "cannot be loaded: ")):
        copies = [(ROOT / "README.md", "cut.so")]
        refuse(status, f"'{path}'", words, arguments=[f"--policy={path}"], copies=copies)
    refuse(65, f"'{CLIMB}' has no symbol 'fly_power_policy_plugin'", arguments=[f"--power-policy={CLIMB}"])


def test_unresolved_symbols_are_named():
    compiler = shutil.which("cc")
    if compiler is None:
        raise tap.Skip("there is no compiler")
    box = Sandbox()
    box.write("lost.c", "int lost(void);\nint (*found)(void) = lost;\n")
    tap.equal(tap.run([compiler, "-shared", "-fPIC", "lost.c", "-o", "lost.so"], cwd=box.path).stderr, "")
    refuse(65, "'./lost.so' cannot be loaded: undefined symbol: lost", arguments=["--policy=./lost.so"],
           copies=[(box.path / "lost.so", "lost.so")])


def test_names_that_clash():
    refuse(65, "'./other.so' has the name 'climb', and so has another policy",
           arguments=["--policy=./mine.so,./other.so"], copies=[(CLIMB, "mine.so"), (CLIMB, "other.so")])


def test_unknown_words_are_refused_as_before():
    refuse(64, "bad value 'zues,./mine.so' of '--policy'", "or paths of shared objects such as ./mine.so",
           "(did you mean 'zeus'?)", arguments=["--policy=zues,./mine.so"])
    refuse(64, "each once", arguments=["--policy=./mine.so,./mine.so"])


def test_configuration_files_bring_no_code():
    refuse(78, "./flyball.ini:2: bad value './mine.so' of 'sim.policy'", "a file must not bring code along",
           settings="[sim]\npolicy = zeus,./mine.so\n", arguments=[], copies=[(CLIMB, "mine.so")])
    box = Sandbox()
    shutil.copy(CLIMB, box.path / "mine.so")
    document, _ = box.simulate("--seeds=1", environment={"FLYBALL_SIM_POLICY": "./mine.so"})
    tap.equal(document["rows"][0]["policy"], "climb")


def test_crashes_name_the_plugin():
    for name, what in (("segv", "crashed in 'propose' (SIGSEGV)"), ("bus", "crashed in 'propose' (SIGBUS)"),
                       ("fpe", "crashed in 'propose' (SIGFPE)"), ("ill", "crashed in 'propose' (SIGILL)"),
                       ("abort", "crashed in 'propose' (SIGABRT)"), ("exit", "called exit in 'propose'"),
                       ("observe", "crashed in 'observe' (SIGSEGV)"), ("destroy", "crashed in 'destroy' (SIGSEGV)"),
                       ("loading", "crashed in 'loading' (SIGSEGV)"), ("bare_exit", "called _exit in 'propose'"),
                       ("plain_exit", "called _Exit in 'propose'"), ("quick_exit", "called exit in 'propose'"),
                       ("thread_segv", "crashed in a thread of its own (SIGSEGV)"),
                       ("thread_abort", "crashed in a thread of its own (SIGABRT)"),
                       ("thread_exit", "called exit in a thread of its own"),
                       ("thread_bare_exit", "called _exit in a thread of its own"),
                       ("wild_name", "crashed in 'its table' (SIGSEGV)"), ("wild_reason", "crashed in 'create' (SIGSEGV)")):
        if SANITIZED and name == "thread_abort":
            continue  # its handlers have a stack of their own, which does not lead to who called abort
        path = plugin(f"bad_{name}")
        refuse(70, f"flyball: plug-in '{path}' {what}; ", arguments=[f"--policy=zeus,{path}"])
    path = plugin("bad_choose")
    refuse(70, f"flyball: plug-in '{path}' crashed in 'choose' (SIGSEGV); ", arguments=[f"--power-policy={path}"])


def test_endless_recursion_names_the_plugin():
    if SANITIZED:
        raise tap.Skip("sanitizers have their own ideas of a stack")
    path = plugin("bad_stack")
    refuse(70, f"flyball: plug-in '{path}' crashed in 'propose' (SIGSEGV); ", arguments=[f"--policy={path}"])


NO_NAMELESS_FILES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

int open64(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    va_list arguments;
    int mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, int);
    va_end(arguments);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (strstr(path, ".flyball-") != NULL)
        (void)!write(2, "named\\n", 6);
    return next(path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));
"""


def test_crash_removes_a_temporary_file():
    """Where files need a name while they are written, as on a file system without O_TMPFILE."""
    compiler = shutil.which("cc")
    if SANITIZED or compiler is None:
        raise tap.Skip("a function cannot be put in front of open here")
    box = Sandbox()
    box.write("open.c", NO_NAMELESS_FILES)
    tap.equal(tap.run([compiler, "-shared", "-fPIC", "open.c", "-o", "open.so"], cwd=box.path).stderr, "")
    shown = box.run(*USUAL, f"--policy={plugin('default')}", environment={"LD_PRELOAD": "./open.so"})
    tap.equal((shown.returncode, shown.stderr), (0, "named\n"))
    (box.out / "tries.csv").unlink()
    result = box.run(*USUAL, f"--policy={plugin('bad_segv')}", environment={"LD_PRELOAD": "./open.so"})
    tap.equal((result.returncode, result.stderr[:6], box.files()), (70, "named\n", []))


def test_replaced_file_stays_as_it_was():
    box = Sandbox()
    box.write("out/tries.csv", "mine\n")
    tap.equal(box.run(*USUAL, f"--policy={plugin('bad_segv')}").returncode, 70)
    tap.equal((box.out / "tries.csv").read_text(), "mine\n")


tap.main(globals())
