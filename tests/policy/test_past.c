/* SPDX-License-Identifier: Apache-2.0 */
/* What is brought from elsewhere: how it is counted, weighed and heeded by the policy `bayes`. */
#include <math.h>

#include "test.h"

#include "policy/bayes_belief.h"
#include "policy/decider.h"

enum { N = 6, DEFAULT = 1, MAX_EPOCHS = 100, RUNS = 8 };

static const double limits_w[] = {200};
static const uint32_t sizes[N] = {32, 64, 128, 256, 512, 1024};
static const struct batch_choice choices[N] = {{32, limits_w, 1},  {64, limits_w, 1},  {128, limits_w, 1},
                                               {256, limits_w, 1}, {512, limits_w, 1}, {1024, limits_w, 1}};
static const struct job_spec spec = {.name = "job",
                                     .batches = choices,
                                     .batch_count = N,
                                     .default_batch = DEFAULT,
                                     .max_epochs = MAX_EPOCHS,
                                     .max_power_w = 200.0,
                                     .eta = 1.0};

/* Cost of a run there: least at 256. */
static const double epochs_there[N] = {10, 10, 10, 10, 20, 40}, costs_there[N] = {200, 120, 80, 50, 48, 47};

static struct past_brought past_of(enum past_kind kind, const double *epochs, struct past_batch batches[N])
{
    for (size_t i = 0; i < N; i++)
        batches[i] = (struct past_batch){i,
                                         {.reached = RUNS,
                                          .mean = log(epochs[i]),
                                          .squares = 0.01 * RUNS,
                                          .log_epoch_cost = log(costs_there[i])}};
    return (struct past_brought){kind, batches, N};
}

static void check_near_at(double value, double expected, double error, int line)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("line %d: %g is not within %g of %g", line, value, error, expected);
}
#define check_near(value, expected, error) check_near_at(value, expected, error, __LINE__)

/* ---- counting ---- */

static void test_a_tally_is_of_logarithms(void **state)
{
    struct past_tally tally = past_tally_none, more = past_tally_none, all = past_tally_none;
    const double epochs[] = {10, 12, 15, 9, 30};

    (void)state;
    assert_false(past_tally_shows(&tally));
    for (size_t i = 0; i < COUNT(epochs); i++) {
        past_tally_take(i < 2 ? &tally : &more, TRIAL_REACHED, epochs[i], MAX_EPOCHS);
        past_tally_take(&all, TRIAL_REACHED, epochs[i], MAX_EPOCHS);
    }
    check_near(tally.mean, (log(10) + log(12)) / 2.0, 1e-12);
    past_tally_add(&tally, &more);
    assert_int_equal(tally.reached, COUNT(epochs));
    check_near(tally.mean, all.mean, 1e-12);
    check_near(tally.squares, all.squares, 1e-12);
    assert_true(past_tally_possible(&tally));
}

static void test_a_tally_keeps_what_did_not_reach(void **state)
{
    struct past_tally tally = past_tally_none;

    (void)state;
    past_tally_take(&tally, TRIAL_CRASHED, 5, MAX_EPOCHS);
    past_tally_take(&tally, TRIAL_REFUSED, 0, MAX_EPOCHS);
    past_tally_take(&tally, TRIAL_STOPPED, 0, MAX_EPOCHS);
    assert_false(past_tally_shows(&tally));
    past_tally_take(&tally, TRIAL_STOPPED, 12, MAX_EPOCHS);
    past_tally_take(&tally, TRIAL_NOT_REACHED, 7, MAX_EPOCHS);
    assert_int_equal(tally.stopped, 2);
    assert_int_equal(tally.failed, 0);
    check_double(tally.stopped_epochs, 12);
    past_tally_take(&tally, TRIAL_NOT_REACHED, MAX_EPOCHS, MAX_EPOCHS);
    assert_int_equal(tally.failed, 1);
    tally.stopped_epochs = 0.0;
    assert_false(past_tally_possible(&tally));
}

static void test_the_cheapest_limit_counts(void **state)
{
    const struct fly_power_point points[] = {{100, 90, 2.0}, {200, 190, 1.0}};

    (void)state;
    check_near(past_log_epoch_cost(points, 2, 3.0, 1.0, 200), log(3 * 180.0), 1e-12);
    check_near(past_log_epoch_cost(points, 2, 3.0, 0.0, 200), log(3 * 200.0), 1e-12);
    assert_true(isnan(past_log_epoch_cost(points, 2, 0.0, 1.0, 200)));
    assert_true(isnan(past_log_epoch_cost(points, 0, 1.0, 1.0, 200)));
}

/* ---- weighing ---- */

struct believing {
    struct arena arena;
    struct belief belief;
};

static void begin_belief(struct believing *of, const struct past_brought *brought)
{
    arena_init(&of->arena, 1 << 20);
    assert_true(belief_init(&of->belief, &belief_prior_default, sizes, N, DEFAULT, &of->arena));
    if (brought != NULL)
        belief_bring(&of->belief, brought);
    belief_fit_epochs(&of->belief);
    belief_fit_cost(&of->belief);
}

static void observe(struct believing *of, size_t batch, double epochs)
{
    belief_take_reached(&of->belief, batch, epochs);
    belief_fit_epochs(&of->belief);
}

static void test_what_holds_is_believed_the_more(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_JOB, epochs_there, batches);
    struct believing of;
    double before;

    (void)state;
    begin_belief(&of, &brought);
    observe(&of, DEFAULT, 30); /* three times as many as there: the level is no news */
    before = of.belief.past.epochs.weight;
    check_near(before, past_trusts[PAST_JOB].holds, 0.05);
    check_near(of.belief.past.epochs.mean[4] - of.belief.past.epochs.mean[DEFAULT], log(2), 0.1);
    observe(&of, 3, 30);
    observe(&of, 4, 60);
    assert_true(of.belief.past.epochs.weight > before);
    check_near(of.belief.epochs_mean[5], log(120), 0.35);
    belief_deinit(&of.belief);
    arena_deinit(&of.arena);
}

static void test_what_misleads_is_dropped(void **state)
{
    static const double wrong[N] = {100, 50, 25, 12, 6, 3};
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_REVISION, wrong, batches);
    struct believing of, without;

    (void)state;
    begin_belief(&of, &brought);
    begin_belief(&without, NULL);
    observe(&of, DEFAULT, 10);
    observe(&without, DEFAULT, 10);
    assert_true(of.belief.epochs_mean[2] < without.belief.epochs_mean[2] - 0.1);
    observe(&of, 2, 11);
    observe(&of, 3, 13);
    observe(&without, 2, 11);
    observe(&without, 3, 13);
    assert_true(of.belief.past.epochs.weight < 0.05);
    for (size_t i = 0; i < N; i++)
        check_near(of.belief.epochs_mean[i], without.belief.epochs_mean[i], 0.1);
    belief_deinit(&of.belief);
    arena_deinit(&of.arena);
    belief_deinit(&without.belief);
    arena_deinit(&without.arena);
}

static void test_a_stopped_run_speaks_against_it(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_HARDWARE, epochs_there, batches);
    struct believing of;

    (void)state;
    begin_belief(&of, &brought);
    assert_int_equal(belief_reached(&of.belief, 3), RUNS);
    for (int i = 0; i < 3; i++) {
        belief_take_stopped(&of.belief, 3, 60, true);
        belief_fit_epochs(&of.belief);
    }
    assert_true(of.belief.past.epochs.weight < 0.5);
    assert_int_equal(belief_reached(&of.belief, 3), 0); /* it vouches no longer */
    belief_deinit(&of.belief);
    arena_deinit(&of.arena);
}

/* Returns the doubt about the mean of a batch size that ran once here and so often elsewhere, all else equal.
 */
static double doubt_after_one_run(enum past_kind kind, double outlier, uint64_t elsewhere)
{
    struct belief_prior prior = belief_prior_default;
    struct past_batch batches[N];
    const struct past_brought brought = past_of(kind, epochs_there, batches);
    struct believing of;
    double variance;

    prior.outlier = outlier;
    prior.scatter_runs = 1e12; /* so runs do not change the scatter */
    begin_belief(&of, &brought);
    of.belief.prior = &prior;
    of.belief.past.tallies[DEFAULT].reached = elsewhere;
    observe(&of, DEFAULT, 10);
    variance = of.belief.epochs_covariance[triangle_at(DEFAULT, DEFAULT)];
    belief_deinit(&of.belief);
    arena_deinit(&of.arena);
    return variance;
}

/* One run may be an outlier; less so where other hardware showed what runs of this batch size take. */
static void test_known_runs_are_no_outliers(void **state)
{
    (void)state;
    assert_true(doubt_after_one_run(PAST_HARDWARE, 0.2, RUNS) <
                0.8 * doubt_after_one_run(PAST_HARDWARE, 0.2, 0));
    check_near(doubt_after_one_run(PAST_HARDWARE, 0.0, RUNS), doubt_after_one_run(PAST_HARDWARE, 0.0, 0),
               1e-9);
    check_near(doubt_after_one_run(PAST_REVISION, 0.2, RUNS), doubt_after_one_run(PAST_REVISION, 0.2, 0),
               1e-9);
}

/* Batch sizes of other hardware keep their own scatter; what else is brought tells of the scatter of all. */
static void test_other_hardware_shows_the_scatter_of_each(void **state)
{
    struct past_batch batches[N];

    (void)state;
    for (enum past_kind kind = 0; kind < PAST_KINDS; kind++) {
        struct past_brought brought = past_of(kind, epochs_there, batches);
        struct believing of;

        batches[2].tally.squares = 0.0;
        batches[4].tally.squares = 0.25 * RUNS;
        begin_belief(&of, &brought);
        if (kind == PAST_HARDWARE)
            assert_true(of.belief.scatter[4] > 2.0 * of.belief.scatter[2]);
        else
            check_double(of.belief.scatter[4], of.belief.scatter[2]);
        belief_deinit(&of.belief);
        arena_deinit(&of.arena);
    }
}

/* The cost of an epoch is known up to one factor as soon as one is measured. */
static void test_costs_keep_their_shape(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_HARDWARE, epochs_there, batches);
    struct believing of;

    (void)state;
    begin_belief(&of, &brought);
    belief_take_cost(&of.belief, 3, 5.0, true);
    belief_fit_cost(&of.belief);
    for (size_t i = 0; i < N; i++)
        check_near(of.belief.cost_mean[i], log(costs_there[i] / 10.0), 0.1);
    assert_true(sqrt(of.belief.cost_covariance[triangle_at(2, 2)]) < 0.2);
    belief_deinit(&of.belief);
    arena_deinit(&of.arena);
}

/* ---- heeding ---- */

struct life {
    struct arena arena;
    struct decider decider;
};

static void begin_life(struct life *life, const struct past_brought *brought)
{
    arena_init(&life->arena, 1 << 20);
    assert_int_equal(decider_init(&life->decider, &spec, &batch_policy_bayes,
                                  &(struct policy_parameters){.beta = 2.0}, &life->arena, NULL),
                     0);
    if (brought != NULL)
        assert_int_equal(decider_fold(&life->decider,
                                      &(struct event){.kind = EVENT_PAST_BROUGHT, .brought = brought}, NULL),
                         0);
}

static void end_life(struct life *life)
{
    decider_deinit(&life->decider);
    arena_deinit(&life->arena);
}

static struct proposal propose(const struct life *life, uint64_t recurrence, uint32_t try_number)
{
    struct proposal proposal;

    assert_int_equal(decider_propose(&life->decider, recurrence, try_number, &proposal, NULL), 0);
    return proposal;
}

static uint32_t cap(const struct life *life, size_t batch, double epoch_j)
{
    uint32_t epochs;

    assert_int_equal(decider_epoch_cap(&life->decider, batch, epoch_j, 1.0, &epochs, NULL), 0);
    return epochs;
}

static void end(struct life *life, size_t batch, enum trial_outcome outcome, double epochs)
{
    const struct proposal proposal = {.batch = batch};
    const struct fly_trial ended = {.batch = batch,
                                    .outcome = outcome,
                                    .epochs = epochs,
                                    .energy_j = epochs * costs_there[batch],
                                    .time_s = 1};

    assert_int_equal(decider_fold(&life->decider,
                                  &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal}, NULL),
                     0);
    assert_int_equal(
        decider_fold(&life->decider, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended}, NULL), 0);
}

/* Where only the hardware differs, the best there is best here, and a run of it is bounded. */
static void test_other_hardware_begins_with_the_best(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_HARDWARE, epochs_there, batches);
    struct life life;

    (void)state;
    begin_life(&life, &brought);
    assert_int_equal(propose(&life, 0, 0).batch, 3);
    assert_int_equal(propose(&life, 0, 0).reason, REASON_BEST_SEEN);
    /* An epoch here costs seven times as much as there: that is the level of all. */
    assert_in_range(cap(&life, 3, 7.0 * costs_there[3]), 28, 36);
    end_life(&life);
}

/* It may show no batch size that is as good as the default, which needs no past to run. */
static void test_other_hardware_begins_with_the_default_if_that_is_best(void **state)
{
    struct past_batch batches[N];
    struct past_brought brought = past_of(PAST_HARDWARE, epochs_there, batches);
    struct life life;

    (void)state;
    batches[0].batch = 4;
    batches[1].batch = 5;
    batches[0].tally.log_epoch_cost = batches[1].tally.log_epoch_cost = log(100);
    batches[0].tally.mean = log(40);
    batches[1].tally.mean = log(80);
    brought.count = 2;
    begin_life(&life, &brought);
    assert_int_equal(propose(&life, 0, 0).batch, DEFAULT);
    assert_int_equal(propose(&life, 0, 0).reason, REASON_EXPLORE);
    assert_int_equal(cap(&life, DEFAULT, 100.0), MAX_EPOCHS);
    end(&life, DEFAULT, TRIAL_REACHED, 10);
    assert_in_range(cap(&life, DEFAULT, 100.0), 1, MAX_EPOCHS - 1);
    end_life(&life);

    batches[2] = (struct past_batch){
        DEFAULT, {.stopped = 1, .failed = 1, .stopped_epochs = MAX_EPOCHS, .log_epoch_cost = NAN}};
    brought.count = 3;
    begin_life(&life, &brought);
    assert_int_equal(propose(&life, 0, 0).batch, 4);
    end_life(&life);
}

/* A past of another job, or of before a revision, is no evidence that a batch size reaches its target. */
static void test_another_job_begins_with_the_default(void **state)
{
    struct past_batch batches[N];

    (void)state;
    for (enum past_kind kind = PAST_REVISION; kind < PAST_KINDS; kind++) {
        const struct past_brought brought = past_of(kind, epochs_there, batches);
        struct life life, without;
        struct proposal next;

        begin_life(&life, &brought);
        begin_life(&without, NULL);
        assert_int_equal(propose(&life, 0, 0).batch, DEFAULT);
        assert_int_equal(cap(&life, DEFAULT, 100.0), MAX_EPOCHS);
        end(&life, DEFAULT, TRIAL_REACHED, 10);
        end(&without, DEFAULT, TRIAL_REACHED, 10);
        next = propose(&life, 1, 0);
        assert_int_equal(next.batch, 3); /* farther than one would go without the past */
        assert_true(propose(&without, 1, 0).batch <= 2);
        assert_int_equal(next.reason, REASON_EXPLORE);
        assert_in_range(cap(&life, 3, costs_there[3]), 20, MAX_EPOCHS - 1);
        assert_int_equal(propose(&life, 1, 1).batch, DEFAULT); /* a retry is what reached its target here */
        end_life(&life);
        end_life(&without);
    }
}

static void test_what_failed_there_is_left_alone(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_REVISION, epochs_there, batches);
    struct life life;

    (void)state;
    batches[3].tally = (struct past_tally){
        .stopped = 2, .failed = 2, .stopped_epochs = MAX_EPOCHS, .log_epoch_cost = log(50)};
    begin_life(&life, &brought);
    end(&life, DEFAULT, TRIAL_REACHED, 10);
    assert_int_equal(propose(&life, 1, 0).batch, 2);
    end_life(&life);
}

static void test_a_past_is_saved(void **state)
{
    struct past_batch batches[N];
    const struct past_brought brought = past_of(PAST_HARDWARE, epochs_there, batches);
    struct life life, loaded;
    struct buffer bytes, again;
    struct bytes_reader reader;

    (void)state;
    begin_life(&life, &brought);
    end(&life, 3, TRIAL_REACHED, 11);
    end(&life, 2, TRIAL_STOPPED, 9);
    buffer_init(&bytes, 1 << 16);
    buffer_init(&again, 1 << 16);
    decider_save(&life.decider, &bytes);
    begin_life(&loaded, NULL);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_int_equal(decider_load(&loaded.decider, &reader, NULL), 0);
    assert_true(bytes_whole(&reader));
    decider_save(&loaded.decider, &again);
    assert_int_equal(bytes.length, again.length);
    assert_memory_equal(bytes.data, again.data, bytes.length);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(cap(&life, i, costs_there[i]), cap(&loaded, i, costs_there[i]));
    assert_int_equal(propose(&life, 2, 0).batch, propose(&loaded, 2, 0).batch);
    end_life(&life);
    end_life(&loaded);
    buffer_deinit(&bytes);
    buffer_deinit(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tally_is_of_logarithms),
        cmocka_unit_test(test_a_tally_keeps_what_did_not_reach),
        cmocka_unit_test(test_the_cheapest_limit_counts),
        cmocka_unit_test(test_what_holds_is_believed_the_more),
        cmocka_unit_test(test_what_misleads_is_dropped),
        cmocka_unit_test(test_a_stopped_run_speaks_against_it),
        cmocka_unit_test(test_known_runs_are_no_outliers),
        cmocka_unit_test(test_other_hardware_shows_the_scatter_of_each),
        cmocka_unit_test(test_costs_keep_their_shape),
        cmocka_unit_test(test_other_hardware_begins_with_the_best),
        cmocka_unit_test(test_other_hardware_begins_with_the_default_if_that_is_best),
        cmocka_unit_test(test_another_job_begins_with_the_default),
        cmocka_unit_test(test_what_failed_there_is_left_alone),
        cmocka_unit_test(test_a_past_is_saved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
