/* SPDX-License-Identifier: Apache-2.0 */
/* How policies stand against each other: figures worked out by hand, and those of a campaign. */
#include "test.h"

#include "sim/standing.h"
#include "sim/world/synthetic.h"

enum { ZEUS, OURS, DEFAULT, POLICIES, JOBS = 3, SEEDS = 2 };

static const uint64_t horizons[] = {10};

/* Two GPUs of the workload "a", and the workload "b". */
static struct workload workloads[JOBS] = {{.gpu = "one", .job = {.name = "a"}},
                                          {.gpu = "two", .job = {.name = "a"}},
                                          {.gpu = "one", .job = {.name = "b"}}};

static const double regrets[JOBS][POLICIES][SEEDS] = {{{4.0, 6.0}, {2.0, 2.0}, {9.0, 9.0}},
                                                      {{8.0, 8.0}, {8.0, 4.0}, {9.0, 9.0}},
                                                      {{2.0, 2.0}, {3.0, 3.1}, {9.0, 9.0}}};

/* Energy of ours relative to the default's; time is 1.1 times it, cost 0.9 times. */
static const double energies[JOBS] = {0.5, 0.6, 1.2};

static double kept_regrets[JOBS * POLICIES * SEEDS];
static struct recurrence totals[JOBS * POLICIES * SEEDS];
static uint8_t dear[JOBS * POLICIES * SEEDS];
static double slowness[JOBS * POLICIES * SEEDS];
static struct comparison comparisons[JOBS * POLICIES * SEEDS];
static struct curve curves[JOBS * POLICIES * SEEDS];
static const struct campaign_plan plan = {.workloads = workloads,
                                          .workload_count = JOBS,
                                          .policy_count = POLICIES,
                                          .seed_count = SEEDS,
                                          .horizons = horizons,
                                          .horizon_count = 1};
static const struct campaign campaign = {.comparisons = comparisons, .curves = curves};

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(curves); i++) {
        size_t job = i / SEEDS / POLICIES, policy = i / SEEDS % POLICIES;
        double energy = policy == OURS ? energies[job] : 1.0;

        kept_regrets[i] = regrets[job][policy][i % SEEDS];
        totals[i] = (struct recurrence){.energy_j = energy,
                                        .time_s = policy == OURS ? 1.1 * energy : 1.0,
                                        .cost_j = policy == OURS ? 0.9 * energy : 1.0};
        dear[i] = (uint8_t)(policy == OURS ? 3 + (i == OURS * SEEDS) : 0); /* one run of six is dear */
        comparisons[i] = (struct comparison){.completed = 10};
        curves[i] = (struct curve){.positions = horizons,
                                   .count = 1,
                                   .taken = 1,
                                   .regret = &kept_regrets[i],
                                   .totals = &totals[i],
                                   .dear = &dear[i],
                                   .slowness = &slowness[i]};
        slowness[i] = job == 0 ? NAN : i % SEEDS == 0 ? 1.021 : 1.019; /* the first job has no bound */
    }
    return 0;
}

static struct standing stand(size_t first, size_t count, size_t policy)
{
    const struct standing_question question = {
        .first = first, .count = count, .policy = policy, .rival = ZEUS, .standard = DEFAULT};
    struct standing standing;

    assert_int_equal(standing_find(&plan, &campaign, &question, &standing, NULL), 0);
    return standing;
}

static void test_figures(void **state)
{
    struct standing ours = stand(0, JOBS, OURS);

    (void)state;
    assert_int_equal(ours.runs, 6);
    assert_int_equal(ours.ended, 0);
    check_close(ours.regret, (2.0 + 6.0 + 3.05) / 3.0, 1e-12);
    check_close(ours.ratio, 11.05 / 15.0, 1e-12);
    check_close(ours.regret_p90, 6.0, 1e-12);
    check_close(ours.regret_p99, 7.8, 1e-12);
    check_double(ours.regret_worst, 8.0);
    assert_int_equal(ours.jobs_won, 2);
    check_close(ours.runs_won, 3.5 / 6.0, 1e-12); /* of six pairs three are won, and one is equal */
    check_close(ours.worst_excess, 1.05 - 2.0 * 0.05, 1e-9);
    assert_int_equal(ours.worst_excess_job, 2);
    check_close(ours.energy, cbrt(0.5 * 0.6 * 1.2), 1e-12);
    check_close(ours.time, 1.1 * cbrt(0.5 * 0.6 * 1.2), 1e-12);
    check_close(ours.worst_cost, 1.08, 1e-12);
    assert_int_equal(ours.worst_cost_job, 2);
    check_close(ours.runs_beyond, 0.5, 1e-12);
    assert_true(isnan(stand(0, 1, OURS).runs_beyond));
    check_close(ours.runs_dear, 1.0 / 6.0, 1e-12);
    check_close(ours.near_default, 2.0 / 3.0, 1e-12);
}

/* Both GPUs of "a" are drawn together: the replicates have two of "a", two of "b", or one of each. */
static void test_interval_is_over_workloads(void **state)
{
    struct standing ours = stand(0, JOBS, OURS);

    (void)state;
    check_close(ours.ratio_low, 8.0 / 13.0, 1e-12);
    check_close(ours.ratio_high, 3.05 / 2.0, 1e-12);
    ours = stand(0, 2, OURS);
    check_close(ours.ratio, 8.0 / 13.0, 1e-12);
    assert_true(isnan(ours.ratio_low) && isnan(ours.ratio_high)); /* one workload alone */
}

static void test_rival_against_itself(void **state)
{
    struct standing zeus = stand(0, JOBS, ZEUS);

    (void)state;
    check_double(zeus.ratio, 1.0);
    check_double(zeus.runs_won, 0.5);
    assert_int_equal(zeus.jobs_won, 0);
    check_double(zeus.cost, 1.0);
}

/* A run that ended early is counted; without a sample it enters no figure, and no pair. */
static void test_run_that_ended_early(void **state)
{
    struct standing ours;

    (void)state;
    comparisons[(1 * POLICIES + OURS) * SEEDS] = (struct comparison){.completed = 9, .ended = FLY_EEXHAUSTED};
    ours = stand(0, JOBS, OURS);
    assert_int_equal(ours.ended, 1);
    check_close(ours.regret, (2.0 + 6.0 + 3.05) / 3.0, 1e-12);
    curves[(1 * POLICIES + OURS) * SEEDS].taken = 0;
    ours = stand(0, JOBS, OURS);
    assert_int_equal(ours.ended, 1);
    check_close(ours.regret, (2.0 + 4.0 + 3.05) / 3.0, 1e-12);
    check_close(ours.runs_won, 3.0 / 5.0, 1e-12);
    check_double(ours.regret_worst, 4.0);
    comparisons[(1 * POLICIES + OURS) * SEEDS + 1] = (struct comparison){.ended = FLY_EEXHAUSTED};
    curves[(1 * POLICIES + OURS) * SEEDS + 1].taken = 0; /* nothing is known of this job */
    ours = stand(0, JOBS, OURS);
    assert_int_equal(ours.ended, 2);
    assert_true(isnan(ours.regret) && isnan(ours.ratio) && isnan(ours.cost));
    check_close(ours.worst_cost, 1.08, 1e-12);
    setup(NULL);
}

static void test_ratio_of_a_job(void **state)
{
    struct standing_question question = {
        .first = 2, .count = 1, .policy = OURS, .rival = ZEUS, .standard = DEFAULT};
    struct standing_ratio ratio;

    (void)state;
    /* Regrets of 3 and 3.1 against 2 and 2: the differences are 0.05 from their mean. */
    assert_int_equal(standing_ratio_of_job(&plan, &campaign, &question, &ratio, NULL), 0);
    check_close(ratio.ratio, 3.05 / 2.0, 1e-12);
    check_close(ratio.high - ratio.ratio, 1.96 * 0.05 / 2.0, 1e-12);
    check_close(ratio.ratio - ratio.low, 1.96 * 0.05 / 2.0, 1e-12);
    question.policy = ZEUS;
    assert_int_equal(standing_ratio_of_job(&plan, &campaign, &question, &ratio, NULL), 0);
    check_double(ratio.low, 1.0);
}

static void test_worst_runs(void **state)
{
    const struct standing_question question = {
        .first = 0, .count = JOBS, .policy = OURS, .rival = ZEUS, .standard = DEFAULT};
    double worst[8];
    size_t count = 0;

    (void)state;
    assert_int_equal(standing_worst_runs(&plan, &campaign, &question, 3, worst, &count, NULL), 0);
    assert_int_equal(count, 3);
    check_double(worst[0], 8.0);
    check_double(worst[1], 4.0);
    check_double(worst[2], 3.1);
    assert_int_equal(standing_worst_runs(&plan, &campaign, &question, 8, worst, &count, NULL), 0);
    assert_int_equal(count, JOBS * SEEDS);
}

/* At the last horizon a campaign's curves say what its comparisons say of the whole run. */
static void test_horizons_of_a_campaign(void **state)
{
    static const struct campaign_policy policies[] = {{"zeus", &batch_policy_zeus, false},
                                                      {"oracle", NULL, false},
                                                      {"default", &batch_policy_default, false}};
    static const uint64_t after[] = {3, 7};
    static const uint32_t seeds[] = {1, 2};
    struct workload jobs[2];
    struct campaign_plan whole = {.workloads = jobs,
                                  .workload_count = COUNT(jobs),
                                  .policies = policies,
                                  .policy_count = COUNT(policies),
                                  .seeds = seeds,
                                  .seed_count = COUNT(seeds),
                                  .recurrences = 7,
                                  .parameters = {.beta = 2.0},
                                  .threads = 2,
                                  .curves = true,
                                  .horizons = after,
                                  .horizon_count = COUNT(after)};
    struct campaign ran;

    (void)state;
    for (uint32_t i = 0; i < COUNT(jobs); i++) {
        assert_int_equal(synthetic_make(&jobs[i], SYNTHETIC_SMOOTH, i + 1, NULL), 0);
        jobs[i].spec.eta = 0.5;
    }
    assert_int_equal(campaign_run(&whole, &ran, NULL), 0);
    for (size_t i = 0; i < COUNT(jobs) * COUNT(seeds); i++) {
        size_t job = i / COUNT(seeds), seed = i % COUNT(seeds);
        const struct comparison *zeus = &campaign_cell(&whole, &ran, job, 0)[seed];
        const struct curve *ours = &campaign_curves(&whole, &ran, job, 0)[seed];
        const struct curve *theirs = &campaign_curves(&whole, &ran, job, 2)[seed];

        assert_int_equal(ours->taken, 2);
        check_double(ours->regret[1], zeus->figures[FIGURE_REGRET]);
        check_close((ours->totals[1].energy_j / theirs->totals[1].energy_j - 1.0) * 100.0,
                    zeus->figures[FIGURE_WHOLE_ENERGY], 1e-9);
        assert_true(ours->totals[0].cost_j < ours->totals[1].cost_j);
        assert_true(ours->totals[0].time_s < ours->totals[1].time_s);
    }
    campaign_free(&ran);
    workload_close(&jobs[0]);
    workload_close(&jobs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_interval_is_over_workloads),
        cmocka_unit_test(test_rival_against_itself),
        cmocka_unit_test(test_run_that_ended_early),
        cmocka_unit_test(test_ratio_of_a_job),
        cmocka_unit_test(test_worst_runs),
        cmocka_unit_test(test_horizons_of_a_campaign),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
