/* SPDX-License-Identifier: Apache-2.0 */
/* What measuring power limits costs if it takes a share of a batch size's first epoch. */
#include "test.h"

#include "sim/overlapping.h"
#include "sim/recurring.h"
#include "sim/world/synthetic.h"

static struct workload workload;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(synthetic_make(&workload, SYNTHETIC_SMOOTH, 1, NULL), 0);
    workload.spec.eta = 0.5;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workload_close(&workload);
    return 0;
}

/* A policy that tries another batch size first, leaves it when it knows the profile, and runs the default. */
struct leaver {
    size_t other, standard;
};

static int leaver_create(const struct batch_policy *self, const struct job_spec *spec,
                         const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    struct leaver *leaver = arena_alloc(arena, 1, sizeof *leaver);

    (void)self;
    (void)parameters;
    (void)out_error;
    leaver->standard = spec->default_batch;
    leaver->other = spec->default_batch > 0 ? spec->default_batch - 1 : 1;
    *out_state = leaver;
    return 0;
}

static int leaver_propose(const void *opaque, const struct batch_question *question,
                          struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct leaver *leaver = opaque;

    (void)out_error;
    *out_proposal = (struct proposal){.batch = question->try_number == 0 ? leaver->other : leaver->standard,
                                      .limit_rule = LIMIT_PROFILED,
                                      .reason = REASON_EXPLORE};
    return 0;
}

static int leaver_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                            struct fly_error *out_error)
{
    const struct leaver *leaver = opaque;

    (void)out_error;
    *out_epochs = question->batch == leaver->standard ? workload.spec.max_epochs : 0;
    return 0;
}

static const struct batch_policy leaver_policy = {.name = "leaver",
                                                  .summary = "leaves",
                                                  .version = 1,
                                                  .create = leaver_create,
                                                  .propose = leaver_propose,
                                                  .epoch_cap = leaver_epoch_cap};

enum { TRIES_MAX = 8 };

struct seen {
    struct try_record tries[TRIES_MAX];
    size_t count;
};

static void see(void *context, const struct try_record *record)
{
    struct seen *seen = context;

    if (seen->count < TRIES_MAX)
        seen->tries[seen->count++] = *record;
}

/* Runs recurrences of one job and gives their tries. */
static void run(const struct batch_policy *policy, double window, int recurrences, struct seen *out_seen,
                struct recurring *out_job)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 1, .profile_window = window};
    struct recurrence recurrence;

    *out_seen = (struct seen){.count = 0};
    assert_int_equal(recurring_init(out_job, &workload, policy, &parameters, NULL), 0);
    out_job->observer = see;
    out_job->observer_context = out_seen;
    for (int i = 0; i < recurrences; i++)
        assert_int_equal(recurring_run(out_job, &recurrence, NULL), 0);
    recurring_deinit(out_job);
}

static void test_training_takes_the_window_from_its_first_epoch(void **state)
{
    const struct workload_batch *batch = &workload.batches[2];
    double time_s = batch->points[3].time_s, energy_j = time_s * batch->points[3].power_w;
    static const double windows[] = {0.0, 0.05, 0.1, 0.5, 1.0};

    (void)state;
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct training training = environment_train(&workload, 2, 3, 12.0, 100, windows[i]);

        assert_true(training.reached);
        check_close(training.time_s, windows[i] * batch->mean_epoch_time_s + (12.0 - windows[i]) * time_s,
                    1e-15);
        check_close(training.energy_j,
                    windows[i] * batch->mean_epoch_energy_j + (12.0 - windows[i]) * energy_j, 1e-15);
        training = environment_train(&workload, 2, 3, 12.0, 0, windows[i]); /* left after the profile */
        assert_false(training.ran || training.reached);
        check_double(training.epochs, 0.0);
        check_close(training.time_s, windows[i] * batch->mean_epoch_time_s, 1e-15);
        check_close(training.energy_j, windows[i] * batch->mean_epoch_energy_j, 1e-15);
    }
}

static void test_share_that_is_profiled(void **state)
{
    struct environment environment;

    (void)state;
    environment_init(&environment, &workload, "any", 1, GENERATOR_PHILOX);
    check_double(environment_profiled(&environment, true, 5), 1.0); /* as published */
    check_double(environment_profiled(&environment, true, 0), 0.0);
    environment.profile_window = 0.1;
    check_double(environment_profiled(&environment, true, 5), 0.1);
    check_double(environment_profiled(&environment, true, 0), 0.1);
    check_double(environment_profiled(&environment, false, 5), 0.0);
}

static void test_batch_size_that_is_left_costs_the_window(void **state)
{
    static const double windows[] = {0.1, 1.0};
    struct recurring job;
    struct seen seen;
    struct leaver leaver = {.standard = workload.spec.default_batch};

    (void)state;
    leaver.other = leaver.standard > 0 ? leaver.standard - 1 : 1;
    for (size_t i = 0; i < COUNT(windows); i++) {
        run(&leaver_policy, windows[i], 2, &seen, &job);
        assert_int_equal(seen.count, 3); /* the second time it is refused at once, and costs nothing */
        assert_int_equal(seen.tries[0].batch_size, workload.spec.batches[leaver.other].size);
        assert_false(seen.tries[0].reached);
        check_close(seen.tries[0].time_s, windows[i] * workload.batches[leaver.other].mean_epoch_time_s,
                    1e-15);
        check_close(seen.tries[0].energy_j, windows[i] * workload.batches[leaver.other].mean_epoch_energy_j,
                    1e-15);
        assert_true(seen.tries[1].reached && seen.tries[2].reached);
        assert_int_equal(job.tries, 3);
        assert_int_equal(job.refused, 1);
    }
    run(&leaver_policy, 0.0, 2, &seen, &job); /* as published: what was refused cost nothing */
    assert_int_equal(seen.count, 2);
    assert_int_equal(job.refused, 2);
}

/* With a window the published search only pays less for its first trainings. */
static void test_window_shortens_first_trainings(void **state)
{
    struct recurring job;
    struct seen whole, window;
    const struct workload_batch *standard = &workload.batches[workload.spec.default_batch];

    (void)state;
    run(&batch_policy_zeus, 0.0, 1, &whole, &job);
    run(&batch_policy_zeus, 0.1, 1, &window, &job);
    assert_int_equal(whole.count, 1);
    assert_int_equal(window.count, 1);
    assert_int_equal(window.tries[0].path, whole.tries[0].path);
    {
        size_t point = workload_find_limit(standard, whole.tries[0].power_limit_w);

        check_close(whole.tries[0].time_s - window.tries[0].time_s,
                    0.9 * (standard->mean_epoch_time_s - standard->points[point].time_s), 1e-9);
    }
    run(&batch_policy_zeus, 0.0, 3, &whole, &job);
    run(&batch_policy_zeus, 1.0, 3, &window, &job); /* the whole epoch, said outright */
    assert_int_equal(window.count, whole.count);
    for (size_t i = 0; i < whole.count; i++)
        check_double(window.tries[i].cost_j, whole.tries[i].cost_j);
}

/* Where submissions overlap, a batch size that is left costs its window too. */
static void test_overlapping_submissions(void **state)
{
    const struct policy_parameters parameters = {.beta = 2.0, .seed = 1};
    struct overlapping job;
    struct seen seen = {.count = 0};

    (void)state;
    assert_int_equal(overlapping_init(&job, &workload, "group", &leaver_policy, &parameters, NULL), 0);
    job.environment.profile_window = 0.1;
    job.observer = see;
    job.observer_context = &seen;
    assert_int_equal(
        overlapping_submit(&job, &(struct submission){.start_s = 0, .end_s = 10, .runtime_ratio = 2.0}, NULL),
        0);
    assert_int_equal(overlapping_finish(&job, NULL), 0);
    assert_int_equal(seen.count, 2);
    assert_false(seen.tries[0].reached);
    assert_true(seen.tries[1].reached);
    check_close(seen.tries[0].time_s,
                2.0 * 0.1 *
                    workload.batches[workload.spec.default_batch > 0 ? workload.spec.default_batch - 1 : 1]
                        .mean_epoch_time_s,
                1e-15);
    overlapping_deinit(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_takes_the_window_from_its_first_epoch),
        cmocka_unit_test(test_share_that_is_profiled),
        cmocka_unit_test(test_batch_size_that_is_left_costs_the_window),
        cmocka_unit_test(test_window_shortens_first_trainings),
        cmocka_unit_test(test_overlapping_submissions),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
