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
enum { OBJECTIVES = COUNT(objectives), BOUNDED = 4, SEEDS = 20, AFTER_STEPS = 16000 };

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
            go_on(&bench, tuner, 20000);
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
    int near, near_strictly, kept;
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
    tally->near += score <= 1.02 * tuner_score(profile, objective, sure);
    tally->near_strictly += score <= 1.02 * tuner_score(profile, objective, best);
    tally->kept += profile->step_s[chosen] <= objective->max_slowdown * profile->step_s[0];
}

/* What is run: for objectives from that one on; so many of 100 have to be near the best, and keep the bound.
 */
struct seeds {
    const char *sensor;
    double step_noise, visit_noise;
    size_t first_objective;
    int count, near, kept;
};

static void run_seeds(const struct seeds *seeds)
{
    bool quick = getenv("FLYBALL_TEST_QUICK") != NULL && seeds->count == SEEDS;
    int count = quick ? SEEDS / 4 : seeds->count;

    for (size_t p = 0; p < TUNER_PROFILES; p++) {
        struct tuner_profile profile;
        struct tuner_bench bench;

        tuner_profile_read(tuner_profile_names[p], &profile);
        tuner_bench_start(&bench, &profile, seeds->sensor);
        for (size_t o = seeds->first_objective; o < OBJECTIVES; o++) {
            struct fly_tuner_options options = tuner_bench_options(&bench, objectives[o]);
            struct tally tally = {0};

            for (uint64_t seed = 1; (int)seed <= count; seed++) {
                struct fly_tuner_report report;
                struct fly_tuner *tuner;

                tuner_bench_reset(&bench, seed * 7919 + o);
                bench.step_noise = seeds->step_noise;
                bench.visit_noise = seeds->visit_noise;
                tuner = tuner_bench_tuner(&bench, &options);
                report = tuner_bench_settle(&bench, tuner, 0);
                go_on(&bench, tuner, AFTER_STEPS);
                report = tuner_bench_report(tuner);
                if (report.state != FLY_TUNER_SETTLED)
                    fail_msg("seed %d: %s: %s", (int)seed, fly_tuner_reason_name(report.reason), report.text);
                judge(&profile, &objectives[o], report.limit_w, &tally);
                fly_tuner_free(tuner);
            }
            print_message("# %-28s %zu: near the best %3d (of those told apart %3d), bound kept %3d of %d\n",
                          tuner_profile_names[p], o, tally.near_strictly, tally.near, tally.kept, count);
            assert_true(tally.near * 100 >= count * seeds->near);
            assert_true(tally.kept * 100 >= count * seeds->kept);
        }
        tuner_bench_stop(&bench);
    }
}

/* Every step's time and power vary by 2 %. */
static void test_noisy(void **state)
{
    const struct seeds seeds = {"exact", 0.02, 0.0, 0, SEEDS, 90, 95};

    (void)state;
    run_seeds(&seeds);
}

/*
 * Whole windows vary by 2 %, and a longer one by no less. What is best is beyond so few
 * windows where the best two are near to each other, or to the bound; the bound is kept.
 */
static void test_noisy_windows(void **state)
{
    const struct seeds seeds = {"exact", 0.0, 0.02, BOUNDED, SEEDS, 0, 94};

    (void)state;
    run_seeds(&seeds);
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
                                       cmocka_unit_test(test_noisy_windows),
                                       cmocka_unit_test(test_spares_no_choice)};

    /* For looking, nothing is required: a coarse counter; noise that a longer window does not average out. */
    if (argc == 3) {
        bool steps = strcmp(argv[2], "steps") == 0;
        const struct seeds seeds = {argv[1], steps ? 0.02 : 0.0, steps ? 0.0 : 0.02, 0, SEEDS, 0, 0};

        run_seeds(&seeds);
    }
    return argc == 3 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
