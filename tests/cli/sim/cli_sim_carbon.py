# SPDX-License-Identifier: Apache-2.0
"""`flyball sim carbon` from outside.

usage: cli_sim_carbon.py FLYBALL

`foresight` is compared with a linear program that is written down here a second time
and solved by GLPK's glpsol; every other policy has to stay above it. What the recorded
series show is checked for California and Spain; scripts/reproduce does all of them.
"""
import csv
import datetime
import json
import math
import os
import pathlib
import random
import shutil

import tap
from sim_fixture import CLEAN, FLYBALL, Sandbox

BESIDE = tap.LIB.parents[2] / "shared" / "data"
DATA = pathlib.Path(os.environ.get("FLYBALL_TEST_DATA") or BESIDE).resolve()
PROFILE = ((100, 98.4, 1.929), (150, 144.6, 1.18), (200, 184.9, 1.053), (225, 205.4, 1.02), (250, 220.3, 1.0))
EPOCH = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)


def stamp(second):
    return (EPOCH + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def profile_text():
    return "limit_w,power_w,step_time_s\n" + "".join(f"{a},{b},{c}\n" for a, b, c in PROFILE)


def series(days=12, step=3600, seed=1, column="g_per_kwh", least=40):
    source = random.Random(seed)
    values = [max(least, 250 + 150 * math.sin(i * step / 86400 * 2 * math.pi) + source.uniform(-60, 60))
              for i in range(days * 86400 // step)]
    return values, f"timestamp,{column}\n" + "".join(f"{stamp(i * step)},{value!r}\n" for i, value in enumerate(values))


def carbon(box, *arguments, profile="profile.csv"):
    return tap.run([FLYBALL, "sim", "carbon", f"--profile={profile}", *arguments], cwd=box.path, env=CLEAN, timeout=tap.PATIENCE_S)


def document(box, *arguments, **options):
    result = carbon(box, "--format=json", "--quiet", *arguments, **options)
    tap.equal(result.returncode, 0, result.stderr)
    found = json.loads(result.stdout)
    return found, {row["policy"]: row for row in found["rows"]}


def make_box(text=None):
    box = Sandbox()
    pathlib.Path(box.path, "profile.csv").write_text(profile_text(), encoding="utf-8")
    pathlib.Path(box.path, "grid.csv").write_text(text or series()[1], encoding="utf-8")
    return box


def jobs_of(box, *arguments):
    """Rows of --jobs by (policy, start)."""
    document(box, "--jobs=jobs.csv", *arguments)
    with open(pathlib.Path(box.path, "jobs.csv"), encoding="utf-8", newline="") as file:
        return {(row["policy"], row["start"]): row for row in csv.DictReader(file)}


def linear_program(box, spans, work, host=0.0, pue=1.0, idle=None):
    """Least grams for `work` s at the fastest within spans of (duration_s, g/kWh): time at each limit in each span.

    Without pauses the job runs without a gap, so for every span in which it may end there is a program of its own.
    """
    best = math.inf
    fastest = min(time for _, _, time in PROFILE)
    for last in range(len(spans)):
        if idle is None and sum(duration for duration, _ in spans[:last + 1]) < work * (1 - 1e-12):
            continue
        if idle is not None and last < len(spans) - 1:
            continue
        names = [(i, p) for i in range(last + 1) for p in range(len(PROFILE))]
        costs = [(f"x{i}_{p}", spans[i][1] * (PROFILE[p][1] + host) * pue / 3.6e6) for i, p in names]
        if idle is not None:
            costs += [(f"o{i}", spans[i][1] * idle * pue / 3.6e6) for i in range(last + 1)]
        lines = ["Minimize", " cost: " + " + ".join(f"{cost:.17g} {name}" for name, cost in costs), "Subject To",
                 " work: " + " + ".join(f"{fastest / PROFILE[p][2]:.17g} x{i}_{p}" for i, p in names) + f" = {work:.17g}"]
        for i in range(last + 1):
            sign = "<=" if i == last else "="
            times = [f"x{i}_{p}" for p in range(len(PROFILE))] + ([f"o{i}"] if idle is not None else [])
            lines.append(f" t{i}: " + " + ".join(times) + f" {sign} {spans[i][0]:.17g}")
        pathlib.Path(box.path, "plan.lp").write_text("\n".join([*lines, "End", ""]), encoding="utf-8")
        result = tap.run(["glpsol", "--lp", "plan.lp", "--write", "plan.out"], cwd=box.path)
        tap.equal(result.returncode, 0, result.stdout)
        head = next(line.split() for line in pathlib.Path(box.path, "plan.out").read_text(encoding="utf-8").splitlines()
                    if line.startswith("s bas"))
        if head[4] == "f":
            best = min(best, float(head[-1]))
    return best


def spans_of(values, step, start, bound):
    spans, at = [], start
    while at < start + bound - 1e-9:
        end = min((at // step + 1) * step, start + bound)
        spans.append((end - at, values[int(at // step)]))
        at = end
    return spans


def second_of(text):
    return (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc) - EPOCH).total_seconds()


def compare_with_program(arguments, work, factor, step=3600, **options):
    if shutil.which("glpsol") is None:
        raise tap.Skip("glpsol is not installed")
    values, text = series(step=step)
    box = make_box(text)
    jobs = jobs_of(box, "--intensity=grid.csv", f"--work={work}s", f"--max-slowdown={factor}x", "--starts=4", *arguments)
    starts = sorted({start for _, start in jobs})
    tap.equal(len(starts), 4)
    for start in starts:
        least = linear_program(box, spans_of(values, step, second_of(start), work * factor), work, **options)
        got = float(jobs["foresight", start]["carbon_g"])
        if abs(got / least - 1) > 1e-7:
            raise AssertionError(f"{start}: foresight {got!r}, the linear program {least!r}")
        for policy in ("max", "static", "mix", "plan"):
            tap.equal(float(jobs[policy, start]["carbon_g"]) >= least * (1 - 1e-9), True, f"{policy} at {start} is below")


def test_foresight_is_the_linear_programs_optimum():
    compare_with_program([], 24 * 3600, 1.03)


def test_and_with_much_time_and_a_host():
    compare_with_program(["--host-power=120", "--pue=1.3"], 12 * 3600, 1.5, host=120, pue=1.3)


def test_and_with_free_pauses():
    compare_with_program(["--pause=idle=20"], 12 * 3600, 1.6, step=7200, idle=20)


def test_no_job_is_late_and_all_energy_is_there():
    box = make_box()
    for bound in ("0%", "1%", "3%", "20%", "100%"):
        _, rows = document(box, "--intensity=grid.csv", "--work=30h", f"--max-slowdown={bound}", "--starts=9")
        for policy in ("max", "static", "mix", "plan", "foresight"):
            tap.equal(rows[policy]["late_jobs"], 0, f"{policy} at {bound}")
        factor = 1 + float(bound[:-1]) / 100
        tap.equal(rows["plan"]["time_s_p90"] <= 30 * 3600 * factor * (1 + 1e-9), True)
        tap.equal(rows["foresight"]["carbon_g_mean"] <= rows["plan"]["carbon_g_mean"] * (1 + 1e-9), True)
        tap.equal(rows["max"]["time_s_mean"], 108000.0)
        tap.equal(math.isclose(rows["max"]["energy_j_mean"], 220.3 * 108000, rel_tol=1e-12), True)
        tap.equal(rows["max"]["actual_intensity_percent"], 100.0)


def test_mixture_uses_the_bound_up_at_a_constant_speed():
    box = make_box()
    found, rows = document(box, "--intensity=grid.csv", "--work=10h", "--max-slowdown=3%", "--policy=mix,plan", "--starts=5")
    tap.equal((found["schema"], list(rows)), ("flyball.sim.carbon/2", ["mix", "plan"]))
    tap.equal((rows["mix"]["time_change_percent_p10"], rows["mix"]["limit_changes_mean"]), (rows["mix"]["time_change_percent_p90"], 0))
    tap.equal(math.isclose(rows["mix"]["time_s_mean"], 36000 * 1.03, rel_tol=1e-9), True)
    # Between the points of 225 W and of 200 W.
    (_, high_w, high_s), (_, low_w, low_s) = PROFILE[3], PROFILE[2]
    share = (1 / 1.03 - 1 / low_s) / (1 / high_s - 1 / low_s)
    tap.equal(math.isclose(rows["mix"]["energy_j_mean"], 36000 * 1.03 * (low_w + share * (high_w - low_w)), rel_tol=1e-9), True)
    tap.equal(rows["mix"]["carbon_saving_against_mix_percent"], 0)
    tap.equal(math.isclose(rows["plan"]["carbon_saving_against_mix_percent"], rows["plan"]["carbon_saving_percent_mean"]
                           - rows["mix"]["carbon_saving_percent_mean"], abs_tol=1e-9), True)


def test_starts_are_drawn_by_a_seed():
    box = make_box()
    arguments = ("--intensity=grid.csv", "--work=2h", "--starts=6", "--policy=static")
    drawn = [sorted(start for _, start in jobs_of(box, *arguments, *extra)) for extra in ((), ("--seed=1",), ("--seed=1",), ("--seed=2",))]
    tap.equal(drawn[1], drawn[2])
    tap.equal(len({tuple(starts) for starts in drawn}), 3)


def test_short_jobs_are_no_worse_than_the_static_limit():
    """Where the published forecast is right, in every single job; what a forecast gets wrong nobody can rule out."""
    for step in (300, 1800, 3600):
        values, _ = series(step=step)
        text = "timestamp,actual_g_per_kwh,forecast_g_per_kwh\n" + "".join(
            f"{stamp(i * step)},{value!r},{value!r}\n" for i, value in enumerate(values))
        box = make_box(text)
        for work in (step // 2, step, 3 * step):
            for bound in ("2%", "5%", "10%"):
                jobs = jobs_of(box, "--intensity=grid.csv", f"--work={work}s", f"--max-slowdown={bound}", "--seed=5",
                               "--starts=12", "--policy=static,plan")
                means = {policy: math.fsum(float(row["carbon_g"]) for (name, _), row in jobs.items() if name == policy)
                         for policy in ("static", "plan")}
                if means["plan"] > means["static"] * 1.001:
                    raise AssertionError(f"{work} s at {bound}, periods of {step} s: {means}")


def test_constant_grid_is_the_best_mixture():
    box = make_box()
    for source in ("constant:400", "flat.csv"):
        pathlib.Path(box.path, "flat.csv").write_text(
            "timestamp,g_per_kwh\n" + "".join(f"{stamp(3600 * i)},400\n" for i in range(300)), encoding="utf-8")
        _, rows = document(box, f"--intensity={source}", "--work=24h", "--max-slowdown=4%", "--starts=3")
        tap.equal(math.isclose(rows["plan"]["carbon_g_mean"], rows["mix"]["carbon_g_mean"], rel_tol=1e-9), True)
        tap.equal(rows["plan"]["carbon_g_mean"] < rows["static"]["carbon_g_mean"], True)
        tap.equal((rows["plan"]["late_jobs"], rows["plan"]["limit_changes_mean"]), (0, 1))
        # No mixture gains anything where one limit uses the bound up.
        _, rows = document(box, f"--intensity={source}", "--work=24h", "--max-slowdown=2%", "--starts=3")
        tap.equal(rows["plan"]["carbon_g_mean"], rows["static"]["carbon_g_mean"])
        tap.equal(rows["plan"]["time_s_mean"], rows["static"]["time_s_mean"])


def test_gaps_zeros_and_disorder_are_seen():
    values, _ = series()
    rows = [f"{stamp(3600 * i)},{value!r}" for i, value in enumerate(values)]
    rows[250] = f"{stamp(3600 * 250)},0"
    rows[251] = f"{stamp(3600 * 251)},"
    del rows[255:260]
    rows[100], rows[101] = rows[101], rows[100]
    rows.append(rows[30])
    box = make_box("timestamp,g_per_kwh\n" + "\n".join(rows) + "\n")
    found, by_policy = document(box, "--intensity=grid.csv", "--work=40h", "--starts=3")
    remarks = found["intensity"]["remarks"]
    tap.equal((remarks["zero"], remarks["missing"], remarks["duplicates"]), (1, 6, 1))  # one without a value, and five that are absent
    tap.equal(by_policy["plan"]["actual_intensity_percent"] < 100, True)
    tap.equal(by_policy["plan"]["late_jobs"], 0)


def test_pauses_only_where_they_are_declared():
    box = make_box()
    plain = jobs_of(box, "--intensity=grid.csv", "--work=12h", "--deadline=24h", "--starts=5")
    tap.equal({row["pauses"] for row in plain.values()}, {"0"})
    pauses = jobs_of(box, "--intensity=grid.csv", "--work=12h", "--deadline=24h", "--starts=5",
                     "--pause=idle=10,checkpoint=2min,on=2h,off=1h")
    tap.equal(any(row["pauses"] != "0" for (policy, _), row in pauses.items() if policy == "plan"), True)
    tap.equal({row["late"] for (policy, _), row in pauses.items() if policy != "published"}, {"0"})
    for (policy, start), row in pauses.items():
        if policy == "foresight":
            tap.equal(float(row["carbon_g"]) <= float(plain[policy, start]["carbon_g"]) * (1 + 1e-9), True)
        if policy in ("max", "static"):
            tap.equal(row["carbon_g"], plain[policy, start]["carbon_g"])


def test_money_and_mixtures():
    box = make_box()
    pathlib.Path(box.path, "price.csv").write_text(series(seed=5, column="price_per_mwh", least=-30)[1], encoding="utf-8")
    common = ("--intensity=grid.csv", "--price=price.csv", "--work=24h", "--max-slowdown=5%", "--starts=5", "--policy=foresight")
    best = {}
    for objective in ("carbon", "money", "energy", "carbon=0.0001,money=1"):
        _, rows = document(box, *common, f"--objective={objective}")
        best[objective] = rows["foresight"]
    for key, objective in (("carbon_g_mean", "carbon"), ("money_mean", "money"), ("energy_j_mean", "energy")):
        least = min(row[key] for row in best.values())
        tap.equal(best[objective][key] <= least * (1 + 1e-9), True, objective)


def test_profiles_from_everywhere():
    box = make_box()
    points = [{"limit_w": a, "power_w": b, "time_s": c, "time_error": 0.001, "bound": "yes"} for a, b, c in PROFILE]
    pathlib.Path(box.path, "saved.json").write_text(json.dumps({"format": "flyball power profile 1", "gpu_count": 1,
                                                                "points": points}), encoding="utf-8")
    rows = [{"limit_w": a, "power_w": b, "step_time_s": c, "mark": ""} for a, b, c in PROFILE]
    rows.append({"limit_w": 300, "power_w": None, "step_time_s": None, "mark": "not measured"})
    pathlib.Path(box.path, "printed.json").write_text(json.dumps({"schema": "flyball.profile/1", "rows": rows}), encoding="utf-8")
    windows = "start_time,window_name,elapsed_time,gpu0_energy\n" + "".join(f"0,limit_{a},{c},{b * c!r}\n" for a, b, c in PROFILE)
    pathlib.Path(box.path, "windows.csv").write_text(windows, encoding="utf-8")
    expected = None
    for name in ("profile.csv", "saved.json", "printed.json", "windows.csv"):
        _, found = document(box, "--intensity=grid.csv", "--work=10h", "--starts=2", "--policy=plan", profile=name)
        expected = expected or found["plan"]["carbon_g_mean"]
        tap.equal(math.isclose(found["plan"]["carbon_g_mean"], expected, rel_tol=1e-9), True, name)


def test_threads_change_nothing():
    box = make_box()
    one, many = (carbon(box, "--format=json", "--intensity=grid.csv", "--work=20h", "--starts=7", f"--threads={threads}")
                 for threads in (1, 4))
    tap.equal(one.stdout, many.stdout)


def forecast(with_actual):
    """A record whose forecasts are right; the course of its days is chance, so that nothing else foretells it."""
    source = random.Random(5)
    values = [source.uniform(50, 450) for _ in range(12 * 24)]
    return "timestamp,actual_g_per_kwh,forecast_g_per_kwh\n" + "".join(
        f"{stamp(i * 3600)},{value if with_actual else ''},{value!r}\n" for i, value in enumerate(values))


def test_forecasts_count_as_far_ahead_as_they_were_known():
    arguments = ("--intensity=grid.csv", "--work=24h", "--max-slowdown=10%", "--starts=8", "--policy=plan,foresight")

    def above_optimum(box, *more):
        rows = document(box, *arguments, *more)[1]
        return rows["plan"]["carbon_g_mean"] / rows["foresight"]["carbon_g_mean"] - 1

    box = make_box(forecast(True))
    current, day, whole = above_optimum(box), above_optimum(box, "--known-ahead=8h"), above_optimum(box, "--known-ahead=all")
    assert whole < 0.002 < day < current, (whole, day, current)
    tap.equal(carbon(box, *arguments, "--known-ahead=soon").returncode, 64)
    # Without actual values there is nothing but forecasts: they count as far as they reach.
    alone = above_optimum(make_box(forecast(False)))
    assert alone < 0.002, alone


def test_refusals():
    box = make_box()
    for arguments, says in (
            ((), "there is no --intensity"), (("--objective=energy",), "no series of the grid"), (("--intensity=nowhere.csv",), "nowhere.csv"),
            (("--intensity=grid.csv", "--work=1000h"), "too short"), (("--intensity=grid.csv", "--work=0h"), "bad value '0h'"),
            (("--intensity=grid.csv", "--deadline=95h"), "cannot end within"),
            (("--intensity=grid.csv", "--deadline=99h", "--max-slowdown=3%"), "give one of them"),
            (("--intensity=grid.csv", "--pause=on=1h"), "bad value 'on=1h'"),
            (("--intensity=grid.csv", "--objective=money"), "no --price"),
            (("--intensity=grid.csv", "--objective=carbon=0"), "bad value"),
            (("--intensity=grid.csv", "traces:a,b"), "traces:DIR,gpu,workload,batch"),
            (("--intensity=grid.csv", "grid.csv"), "limit_w")):
        profile = arguments[-1] if arguments and not arguments[-1].startswith("--") else "profile.csv"
        result = carbon(box, *(word for word in arguments if word.startswith("--")), profile=profile)
        tap.equal(result.returncode != 0, True, f"{arguments} was taken")
        tap.contains(result.stderr, says, str(arguments))


def recorded():
    found = [DATA / "power_profiles" / "A40+resnet50+gpu0.csv", f"traces:{DATA / 'zeus_nsdi23'},v100,imagenet,256"]
    if not (DATA / "carbon").is_dir() or not found[0].is_file() or not (DATA / "zeus_nsdi23").is_dir():
        raise tap.Skip("the recorded series are not there")
    return found


def check_recorded(name, share):
    gained = []
    for profile in recorded():
        for work in ("24h", "96h"):
            _, rows = document(Sandbox(), f"--intensity={DATA / 'carbon' / name}", f"--work={work}", profile=profile)
            saved = {policy: row["carbon_saving_percent_mean"] for policy, row in rows.items()}
            gained.append((saved["plan"] - saved["static"]) / (saved["foresight"] - saved["static"]))
            tap.equal(saved["plan"] >= saved["static"] - 0.2, True, f"{profile} {work} {saved}")
            tap.equal(saved["plan"] <= saved["foresight"], True, f"{profile} {work} {saved}")
            tap.equal(sum(row["late_jobs"] for policy, row in rows.items() if policy != "published"), 0)
    mean = sum(gained) / len(gained)
    tap.equal(mean >= share, True, f"{name}: {gained}, {mean}")


def test_california_at_3_percent():
    check_recorded("us_ciso_2022.csv", 0.75)


def test_spain_at_3_percent():
    check_recorded("es_2023.csv", 0.65)


tap.main(globals())
