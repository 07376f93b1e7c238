/* SPDX-License-Identifier: Apache-2.0 */
/* The live search on the recorded profiles: what it chooses, and what searching costs. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include <flyball/power_selector.h>

#include "policy/power_search_done.h"
#include "test_data.h"
#include "tuner_bench.h"

static const struct fly_objective objectives[] = {
    {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY},   {FLY_OBJECTIVE_TIME, 0.0, INFINITY},
    {FLY_OBJECTIVE_COST, 0.5, INFINITY},     {FLY_OBJECTIVE_COST, 0.9, INFINITY},
    {FLY_OBJECTIVE_ENERGY, 0.0, 1.03},       {FLY_OBJECTIVE_COST, 0.5, 1.10},
    {FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.03}, {FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.10},
};
enum { OBJECTIVES = COUNT(objectives) };
/* Tunings in each cell, a profile and an objective; FLYBALL_TEST_SEEDS for another number. */
enum { SEEDS = 1, AFTER_STEPS = 12000, AFTER_EXACT_STEPS = 16000 };

struct search_cost {
    double steps, time_s, energy_j;
    double extra_time_s, extra_energy_j;
};

/* The published optimizer: two steps, then every limit's warm-up and window. */
static struct search_cost published_cost(const struct tuner_profile *profile, double chosen_w)
{
    struct fly_power_point chosen = tuner_profile_truth(profile, tuner_profile_find(profile, chosen_w));
    struct search_cost cost = {0};

    for (size_t i = 0; i < profile->count; i++) {
        struct fly_power_point point = tuner_profile_truth(profile, i);
        double steps = 50.0 + (i == 0 ? 1.0 : 0.0);

        cost.steps += steps;
        cost.time_s += steps * point.time_s;
        cost.energy_j += steps * point.time_s * point.power_w;
    }
    cost.extra_time_s = cost.time_s - cost.steps * chosen.time_s;
    cost.extra_energy_j = cost.energy_j - cost.steps * chosen.time_s * chosen.power_w;
    return cost;
}

/* No limit that is better by anything is left out. */
static const double exact_tolerance = 1e-6;

/* Makes steps, and then more until the tuner is settled. */
static void go_on(struct tuner_bench *bench, struct fly_tuner *tuner, int steps)
{
    for (int step = 0; step < steps; step++)
        tuner_bench_step(bench, tuner);
    (void)tuner_bench_settle(bench, tuner, 0);
}

/*
 * Without noise: the limit that measuring all would choose, for less. These profiles are not smooth: single
 * limits are up to 10 % off what their neighbours let expect. Looks find them, once settled.
 */
static void test_exact(void **state)
{
    (void)state;
    for (size_t p = 0; p < TUNER_PROFILES; p++) {
        struct tuner_profile profile;
        struct tuner_bench bench;

        tuner_profile_read(tuner_profile_names[p], &profile);
        tuner_bench_start(&bench, &profile, "exact");
        for (size_t o = 0; o < OBJECTIVES; o++) {
            struct fly_tuner_options options = tuner_bench_options(&bench, objectives[o]);
            double best_w = tuner_profile_best_w(&profile, &objectives[o]);
            struct search_cost published = published_cost(&profile, best_w);
            struct fly_tuner_report report;
            struct fly_tuner *tuner;

            tuner_bench_reset(&bench, 1);
            options.energy_tolerance = exact_tolerance;
            tuner = tuner_bench_tuner(&bench, &options);
            report = tuner_bench_settle(&bench, tuner, 0);
            print_message("# %-28s %zu: %3.0f W; %3.0f of %3.0f steps, %6.1f of %6.1f s, %7.0f of %7.0f J; "
                          "beyond %6.1f / %6.1f s, %7.0f / %7.0f J\n",
                          tuner_profile_names[p], o, report.limit_w, (double)report.search_steps,
                          published.steps, report.search_time_s, published.time_s, report.search_energy_j,
                          published.energy_j, report.extra_time_s, published.extra_time_s,
                          report.extra_energy_j, published.extra_energy_j);
            assert_int_equal(report.state, FLY_TUNER_SETTLED);
            assert_true(2 * report.search_steps < published.steps);
            assert_true(report.search_time_s < published.time_s);
            assert_true(report.search_energy_j < published.energy_j);
            go_on(&bench, tuner, AFTER_EXACT_STEPS);
            check_double(tuner_bench_limit_w(&bench), best_w);
            fly_tuner_free(tuner);
            check_double(tuner_bench_limit_w(&bench), 300.0);
        }
        tuner_bench_stop(&bench);
    }
}

/*
 * With windows of 40 steps that vary by 2 %, the ratio of two times is known to 0.45 %, and the bound is kept
 * by leaving out what is nearer to it than twice that. A limit within this of the bound can be told from one
 * beyond it by no search of so few steps; the best of the others is what must be found.
 */
static const double tellable = 1.0 / 1.015;

struct tally {
    int count, near, near_strictly, kept;
};

static void judge(const struct tuner_profile *profile, const struct fly_objective *objective, double limit_w,
                  struct tally *tally)
{
    struct fly_objective surely = *objective;
    size_t best = tuner_profile_find(profile, tuner_profile_best_w(profile, objective)), sure;
    size_t chosen = tuner_profile_find(profile, limit_w);
    double score = tuner_score(profile, objective, chosen);

    surely.max_slowdown = fmax(surely.max_slowdown * tellable, 1.0);
    sure = tuner_profile_find(profile, tuner_profile_best_w(profile, &surely));
    tally->count++;
    tally->near += score <= 1.02 * tuner_score(profile, objective, sure);
    tally->near_strictly += score <= 1.02 * tuner_score(profile, objective, best);
    tally->kept += profile->step_s[chosen] <= objective->max_slowdown * profile->step_s[0];
}

/* What is run, and which shares of the tunings have to be near the best and to keep the bound. */
struct tunings {
    const char *sensor;
    double step_noise, visit_noise;
    const struct fly_objective *objectives;
    size_t objective_count;
    bool narrow; /* the bound is a little below what some limit takes, in place of the objective's */
    int count;   /* of each profile and objective */
    double near, kept;
};

static int asked_count(void)
{
    const char *text = getenv("FLYBALL_TEST_SEEDS");

    return text != NULL ? (int)strtol(text, NULL, 10) : SEEDS;
}

/* Whether a binomial test at 1 % does not reject that the share, below 1, holds. */
static bool may_hold(int good, int count, double share)
{
    double sum = 0.0;

    for (int i = 0; share > 0.0 && i <= good; i++)
        sum += exp(lgamma(count + 1.0) - lgamma(i + 1.0) - lgamma(count - i + 1.0) + i * log(share) +
                   (count - i) * log1p(-share));
    return !(share > 0.0) || sum > 0.01;
}

/* The hardest bound: the first limit that is clearly slower than the highest is 0.05 % beyond it. */
static double narrow_bound(const struct tuner_profile *profile)
{
    size_t place = 1;

    while (profile->step_s[place] < 1.02 * profile->step_s[0])
        place++;
    return profile->step_s[place] / profile->step_s[0] / 1.0005;
}

static struct tally run_cell(struct tuner_bench *bench, const struct tunings *tunings, size_t place)
{
    struct fly_objective objective = tunings->objectives[place];
    struct fly_tuner_options options;
    struct tally tally = {0};

    if (tunings->narrow)
        objective.max_slowdown = narrow_bound(bench->profile);
    options = tuner_bench_options(bench, objective);
    for (int seed = 1; seed <= tunings->count; seed++) {
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        tuner_bench_reset(bench, (uint64_t)seed * 7919 + place);
        bench->step_noise = tunings->step_noise;
        bench->visit_noise = tunings->visit_noise;
        tuner = tuner_bench_tuner(bench, &options);
        (void)tuner_bench_settle(bench, tuner, 0);
        go_on(bench, tuner, AFTER_STEPS);
        report = tuner_bench_report(tuner);
        if (report.state != FLY_TUNER_SETTLED)
            fail_msg("seed %d: %s: %s", seed, fly_tuner_reason_name(report.reason), report.text);
        judge(bench->profile, &objective, report.limit_w, &tally);
        fly_tuner_free(tuner);
    }
    return tally;
}

static void run_tunings(const struct tunings *tunings)
{
    struct tally all = {0};

    for (size_t p = 0; p < TUNER_PROFILES; p++) {
        struct tuner_profile profile;
        struct tuner_bench bench;

        tuner_profile_read(tuner_profile_names[p], &profile);
        tuner_bench_start(&bench, &profile, tunings->sensor);
        for (size_t o = 0; o < tunings->objective_count; o++) {
            struct tally tally = run_cell(&bench, tunings, o);

            print_message("# %-28s %zu: near the best %3d (of those told apart %3d), bound kept %3d of %d\n",
                          tuner_profile_names[p], o, tally.near_strictly, tally.near, tally.kept,
                          tally.count);
            assert_true(may_hold(tally.near, tally.count, tunings->near));
            assert_true(may_hold(tally.kept, tally.count, tunings->kept));
            all.count += tally.count;
            all.near += tally.near;
            all.kept += tally.kept;
        }
        tuner_bench_stop(&bench);
    }
    print_message("# all %d: near the best of those told apart %d, bound kept %d\n", all.count, all.near,
                  all.kept);
    assert_true(may_hold(all.near, all.count, tunings->near));
    assert_true(may_hold(all.kept, all.count, tunings->kept));
}

/* Every step's time and power vary by 2 %. */
static void test_noisy(void **state)
{
    const struct tunings tunings = {.sensor = "exact",
                                    .step_noise = 0.02,
                                    .objectives = objectives,
                                    .objective_count = OBJECTIVES,
                                    .count = asked_count(),
                                    .near = 0.95,
                                    .kept = 0.95};

    (void)state;
    run_tunings(&tunings);
}

/*
 * A limit that is just beyond the bound is taken for one that keeps it in 5 of 100 tunings. Steps vary by
 * 2 %, or whole windows do, and longer ones by no less.
 */
static void test_narrow_bound(void **state)
{
    static const struct fly_objective narrow[] = {{.kind = FLY_OBJECTIVE_ENERGY},
                                                  {.kind = FLY_OBJECTIVE_LOWEST_LIMIT}};
    struct tunings tunings = {.sensor = "exact",
                              .objectives = narrow,
                              .objective_count = COUNT(narrow),
                              .narrow = true,
                              .count = 3 * asked_count(),
                              .kept = 0.95};

    (void)state;
    tunings.step_noise = 0.02;
    run_tunings(&tunings);
    tunings.step_noise = 0.0;
    tunings.visit_noise = 0.02;
    run_tunings(&tunings);
}

/* The published traces: a job and batch size on a GPU, under each of its limits. */
enum { GROUPS_MAX = 256 };
struct group {
    char key[128];
    struct fly_power_point points[TUNER_LIMITS_MAX];
    size_t count;
};

static int higher_first(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return (a->limit_w < b->limit_w) - (a->limit_w > b->limit_w);
}

static size_t read_groups(const char *name, struct group *groups)
{
    char path[TEST_PATH_MAX], line[512];
    size_t count = 0;
    FILE *file;

    test_data_need(name, path);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[7], key[128];
        struct group *group = groups;

        assert_int_equal(test_data_split(line, fields, COUNT(fields)), COUNT(fields));
        snprintf(key, sizeof key, "%s,%s,%s,%s", fields[0], fields[1], fields[2], fields[3]);
        while (group < groups + count && strcmp(group->key, key) != 0)
            group++;
        if (group == groups + count) {
            assert_true(count++ < GROUPS_MAX);
            memset(group, 0, sizeof *group);
            snprintf(group->key, sizeof group->key, "%s", key);
        }
        assert_true(group->count < TUNER_LIMITS_MAX);
        group->points[group->count++] = (struct fly_power_point){
            strtod(fields[4], NULL), strtod(fields[6], NULL), strtod(fields[5], NULL)};
    }
    fclose(file);
    return count;
}

static double choose(const struct fly_power_point *points, size_t count,
                     const struct fly_objective *objective)
{
    size_t best;

    assert_int_equal(fly_power_select(points, count, objective, points[0].limit_w, &best, NULL), 0);
    return points[best].limit_w;
}

/* How many limits are measured before the rest is spared. */
static size_t measured_limits(const struct group *group, const struct fly_objective *objective)
{
    struct power_search_point points[TUNER_LIMITS_MAX];

    for (size_t i = 0; i < group->count; i++) {
        points[i].point = group->points[i];
        points[i].error = 0.0;
        points[i].binds = points[i].point.power_w >= 0.9 * points[i].point.limit_w;
        if (power_search_done(points, i + 1, objective, group->points[0].limit_w))
            return i + 1;
    }
    return group->count;
}

/* What is spared is never the choice, on three GPUs and all their jobs and batch sizes. */
static void test_spares_no_choice(void **state)
{
    static const char *const gpus[] = {"a40", "p100", "v100"};
    static struct group groups[GROUPS_MAX];
    size_t limits = 0, spared = 0, cases = 0;

    (void)state;
    for (size_t g = 0; g < COUNT(gpus); g++) {
        char name[64];
        size_t count;

        snprintf(name, sizeof name, "zeus_nsdi23/summary_power_%s.csv", gpus[g]);
        count = read_groups(name, groups);
        for (size_t i = 0; i < count * OBJECTIVES; i++) {
            struct group *group = &groups[i / OBJECTIVES];
            const struct fly_objective *objective = &objectives[i % OBJECTIVES];
            size_t measured;

            qsort(group->points, group->count, sizeof group->points[0], higher_first);
            measured = measured_limits(group, objective);
            if (choose(group->points, measured, objective) != choose(group->points, group->count, objective))
                fail_msg("%s: %s, objective %zu", gpus[g], group->key, i % OBJECTIVES);
            cases++;
            limits += group->count;
            spared += group->count - measured;
        }
    }
    print_message("# %zu of %zu limits spared in %zu cases\n", spared, limits, cases);
    assert_true(spared > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_noisy),
                                       cmocka_unit_test(test_narrow_bound),
                                       cmocka_unit_test(test_spares_no_choice)};

    /* For looking, nothing is required: a coarse counter; noise that a longer window does not average out. */
    if (argc == 3) {
        bool steps = strcmp(argv[2], "steps") == 0;
        const struct tunings tunings = {.sensor = argv[1],
                                        .step_noise = steps ? 0.02 : 0.0,
                                        .visit_noise = steps ? 0.0 : 0.02,
                                        .objectives = objectives,
                                        .objective_count = OBJECTIVES,
                                        .count = asked_count()};

        run_tunings(&tunings);
    }
    return argc == 3 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
