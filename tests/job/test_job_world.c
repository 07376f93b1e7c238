/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings as the world makes them: programs that end early, noisy metrics, data that grows. */
#include <math.h>

#include "test.h"

#include "base/math/philox.h"
#include "base/math/ziggurat.h"
#include "job/decide/state.h"
#include "job_fixture.h"

static struct job_fixture fixture;

/* ---- what a policy is told ---- */

/* A policy that runs the default and remembers what it was told last. */
static struct {
    struct fly_trial ended;
    size_t ends;
} seen;

static int watch_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    (void)self;
    (void)parameters;
    (void)out_error;
    *out_state = arena_alloc(arena, 1, sizeof(size_t));
    *(size_t *)*out_state = spec->default_batch;
    return 0;
}

static void watch_fold(void *state, const struct event *event)
{
    (void)state;
    if (event->kind != EVENT_TRIAL_ENDED)
        return;
    seen.ended = *event->ended;
    seen.ends++;
}

static int watch_propose(const void *state, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    (void)question;
    (void)out_error;
    *out_proposal = (struct proposal){.batch = *(const size_t *)state, .reason = REASON_FIXED};
    return 0;
}

static const struct batch_policy watch = {.name = "watch",
                                          .summary = "for tests",
                                          .version = 1,
                                          .create = watch_create,
                                          .fold = watch_fold,
                                          .propose = watch_propose};
static const struct batch_policy *const watches[] = {&watch, NULL};

static void begin_watch(void)
{
    memset(&seen, 0, sizeof seen);
    fixture.options.plugins = watches;
    job_fixture_reopen(&fixture);
    job_fixture_begin(&fixture, "watch");
}

/*
 * A program that ends by itself has neither failed nor crashed, whatever its client calls it; the same words
 * after all epochs are a failure.
 */
static void test_early_end(void **state)
{
    static const struct {
        const char *name;
        uint32_t epochs;
        enum trial_outcome said, told;
        bool by_itself;
    } rows[] = {
        {"early", 7, TRIAL_NOT_REACHED, TRIAL_STOPPED, true},
        {"all epochs", 20, TRIAL_NOT_REACHED, TRIAL_NOT_REACHED, false},
        {"stopped", 7, TRIAL_STOPPED, TRIAL_STOPPED, false},
        {"crashed", 7, TRIAL_CRASHED, TRIAL_CRASHED, false},
    };
    struct job_question question = job_fixture_question("job");

    (void)state;
    begin_watch();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_proposal proposal;

        print_message("# %s\n", rows[i].name);
        job_fixture_train(&fixture, &question, rows[i].epochs, 1000, 10, 0.1, &proposal);
        job_fixture_over(&fixture, proposal.trial, 1, rows[i].said);
        assert_int_equal(seen.ends, i + 1);
        assert_int_equal(seen.ended.outcome, rows[i].told);
        assert_int_equal(seen.ended.by_itself, rows[i].by_itself);
        assert_int_equal(seen.ended.crashed, rows[i].said == TRIAL_CRASHED);
        check_double(seen.ended.epochs, rows[i].epochs);
        check_double(seen.ended.energy_j, 1000.0 * rows[i].epochs);
    }
    assert_int_equal(job_fixture_outcome(&fixture, "job", 1), TRIAL_NOT_REACHED);
}

/* ---- noisy metrics ---- */

/* Reports metrics one by one, a digit each, the target being 5; returns how many were asked for. */
static size_t report_all(const char *metrics, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    struct job_answered answered = {0};
    size_t count = 0;

    *out_proposal = job_fixture_propose(&fixture, &question);
    for (; metrics[count] != '\0' && answered.answer == JOB_GO_ON; count++) {
        uint32_t epoch = (uint32_t)count + 1;
        double metric = metrics[count] == '-' ? NAN : (double)(metrics[count] - '0');

        /* Each report is another process's, so a snapshot must keep what was held. */
        job_fixture_reopen(&fixture);
        answered = job_fixture_epoch(&fixture, out_proposal->trial, 1, epoch, 10.0 * epoch, epoch, metric);
    }
    assert_int_equal(answered.ended, answered.answer != JOB_GO_ON);
    return count;
}

static void test_target_hold(void **state)
{
    static const struct {
        const char *metrics;
        enum fly_target target;
        uint32_t hold;
        bool best;
        size_t reports; /* 0: it goes on */
        double metric;  /* at the end */
    } rows[] = {
        {"15", FLY_TARGET_AT_LEAST, 0, false, 2, 5},      {"15", FLY_TARGET_AT_LEAST, 1, false, 2, 5},
        {"1541566", FLY_TARGET_AT_LEAST, 2, false, 6, 6}, {"1541566", FLY_TARGET_AT_LEAST, 3, false, 7, 6},
        {"154", FLY_TARGET_AT_LEAST, 2, true, 3, 5},      {"5-5-55", FLY_TARGET_AT_LEAST, 2, false, 6, 5},
        {"5-", FLY_TARGET_AT_LEAST, 2, true, 2, 5},       {"9546", FLY_TARGET_AT_MOST, 2, false, 3, 4},
        {"9479", FLY_TARGET_AT_MOST, 3, true, 4, 4},      {"1551551", FLY_TARGET_AT_LEAST, 3, false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_job_definition definition = job_fixture_definition("job");
        struct job_proposal proposal;
        struct job_history history;
        struct fly_error error;
        size_t reports;

        definition.policy = "default";
        definition.target = rows[i].target;
        definition.target_metric = 5;
        definition.target_hold = rows[i].hold;
        definition.best_so_far = rows[i].best;
        job_fixture_define(&fixture, &definition);
        job_fixture_define(&fixture, &definition); /* the same again is no conflict */
        reports = report_all(rows[i].metrics, &proposal);
        print_message("# %s, %u\n", rows[i].metrics, rows[i].hold);
        assert_int_equal(reports, rows[i].reports > 0 ? rows[i].reports : strlen(rows[i].metrics));
        history = job_fixture_history(&fixture, &fixture.arena);
        assert_int_equal(history.rows[0].running, rows[i].reports == 0);
        if (rows[i].reports > 0) {
            assert_int_equal(history.rows[0].outcome, TRIAL_REACHED);
            check_double(history.rows[0].trial.metric, rows[i].metric);
            check_double(history.rows[0].trial.epochs, rows[i].reports);
        }
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

/* A requeued trial that goes back to a checkpoint has to hold its target anew; one that goes on does not. */
static void test_hold_after_requeue(void **state)
{
    struct job_question question = job_fixture_question("job");

    (void)state;
    question.run = "night";
    for (uint32_t back = 0; back < 2; back++) {
        struct fly_job_definition definition = job_fixture_definition("job");
        struct job_proposal proposal;
        struct fly_error error;

        definition.policy = "default";
        definition.target_hold = 2;
        job_fixture_define(&fixture, &definition);
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 1, 1, 10, 1, 0.1).answer, JOB_GO_ON);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 1, 2, 20, 2, 0.95).answer, JOB_GO_ON);
        assert_int_equal(job_fixture_propose(&fixture, &question).attempt, 2);
        assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 2, 3 - back, 10, 1, 0.95).answer,
                         back == 0 ? JOB_REACHED : JOB_GO_ON);
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

/* ---- how good the models are ---- */

static struct final_metrics metrics_of(const double *values, size_t count)
{
    struct final_metrics metrics = {0};

    for (size_t i = 0; i < count; i++)
        final_metrics_take(&metrics, values[i]);
    return metrics;
}

static void test_final_metrics(void **state)
{
    static const double good[] = {0.930, 0.940, 0.935}, bad[] = {0.900, 0.911, 0.904}, same[] = {0.9, 0.9},
                        wild[] = {0.99, 0.80, 0.93}, unknown[] = {NAN, 0.9, INFINITY};
    struct final_metrics usual = metrics_of(good, 3), worse = metrics_of(bad, 3);
    struct final_metrics fixed = metrics_of(same, 2), noisy = metrics_of(wild, 3);

    (void)state;
    check_double(usual.mean, 0.935);
    check_close(usual.squares, 5e-5, 1e-9);
    assert_int_equal(metrics_of(unknown, 3).count, 1);
    /* A difference of 0.03, whose standard error is 0.0043 with 3.95 degrees of freedom: above 0.0208. */
    assert_true(final_metrics_worse(&usual, &worse, 0.0207, true));
    assert_false(final_metrics_worse(&usual, &worse, 0.0213, true));
    assert_false(final_metrics_worse(&usual, &worse, 0.001, false)); /* as losses, they are better */
    assert_true(final_metrics_worse(&worse, &usual, 0.0207, false));
    assert_false(final_metrics_worse(&usual, &noisy, 0.001, true));
    assert_true(final_metrics_worse(&usual, &fixed, 0.001, true));
    worse = metrics_of(bad, 1);
    assert_false(final_metrics_worse(&usual, &worse, 0.001, true));
    assert_false(final_metrics_worse(&worse, &usual, 0.001, false));
}

/* A batch size that is worse by just what is allowed is called worse in one of twenty cases, not more. */
static void test_final_metrics_are_sure(void **state)
{
    enum { CASES = 4000 };
    const struct philox_key key = philox_key(7, "final");

    (void)state;
    for (size_t count = 2; count <= 8; count *= 2) {
        unsigned told = 0;

        for (uint64_t seed = 0; seed < CASES; seed++) {
            struct philox philox = philox_open(key, (uint32_t)count, seed, 0);
            struct final_metrics usual = {0}, other = {0};

            for (size_t i = 0; i < count; i++) {
                final_metrics_take(&usual,
                                   0.9 + 0.01 * ziggurat_normal(ziggurat_tables(), philox_u64(&philox),
                                                                philox_source, &philox));
                final_metrics_take(&other,
                                   0.88 + 0.02 * ziggurat_normal(ziggurat_tables(), philox_u64(&philox),
                                                                 philox_source, &philox));
            }
            told += final_metrics_worse(&usual, &other, 0.02, true);
        }
        print_message("# %zu trainings each: %u of %d\n", count, told, CASES);
        assert_true(told > CASES / 100 && told < CASES * 7 / 100);
    }
}

/* Reaches the target in its third epoch and trains on to the sixth, at a metric by batch size. */
static uint32_t train_whole(double worse_metric, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    double metric;

    job_fixture_reopen(&fixture);
    *out_proposal = job_fixture_propose(&fixture, &question);
    if (out_proposal->wants_profile)
        job_fixture_profile(&fixture, "job", out_proposal->trial);
    metric = out_proposal->batch_size == 64 ? worse_metric : 0.95;
    metric += 0.001 * (double)(out_proposal->trial % 3);
    for (uint32_t epoch = 1; epoch <= 6; epoch++)
        job_fixture_epoch(&fixture, out_proposal->trial, 1, epoch, 1000.0 * epoch, 10.0 * epoch,
                          epoch < 3   ? 0.5
                          : epoch < 6 ? 0.92
                                      : metric);
    job_fixture_over(&fixture, out_proposal->trial, 1, TRIAL_REACHED);
    return out_proposal->batch_size;
}

static void pin(uint32_t batch_size)
{
    const struct job_setting setting = {
        .job = "job", .set_pin = true, .pin_batch_size = batch_size, .pin_limit_w = NAN};
    struct fly_error error;

    check_fine(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), error);
}

/* A batch size with worse models is left, in a new process too; one within what is allowed is not. */
static void test_worse_models(void **state)
{
    static const struct {
        const char *policy;
        double metric, most; /* NAN: any */
        bool left;
    } rows[] = {{"zeus", 0.93, 0.01, true},
                {"bayes", 0.93, 0.01, true},
                {"grid", 0.93, 0.01, true},
                {"bayes", 0.93, 0.05, false},
                {"bayes", 0.93, NAN, false}};

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct fly_job_definition definition = job_fixture_definition("job");
        struct job_proposal proposal;
        struct fly_error error;

        definition.policy = rows[row].policy;
        definition.trains_on = true;
        definition.max_epochs = 6;
        definition.max_metric_loss = rows[row].most;
        job_fixture_define(&fixture, &definition);
        for (int i = 0; i < 6; i++) {
            pin(i % 2 == 0 ? 32 : 64);
            train_whole(rows[row].metric, &proposal);
        }
        pin(0);
        for (int i = 0; i < 12; i++) {
            uint32_t batch_size = train_whole(rows[row].metric, &proposal);

            if (batch_size == 64 && rows[row].left)
                fail_msg("row %zu: %s", row, proposal.why);
            assert_int_equal(strstr(proposal.why, "; batch size 64 is left: its 3 models end at a metric of "
                                                  "0.931, the default's at 0.95") != NULL,
                             rows[row].left);
        }
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

/* ---- data that grow ---- */

/*
 * A training to epoch 3 at most, whose epochs have so many samples, of 0.3 J and 3 ms each at every batch
 * size; `counts`: and it tells its steps.
 */
static struct job_answered train_samples(double samples, bool counts, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    struct job_answered answered = {0};
    uint32_t steps;

    *out_proposal = job_fixture_propose(&fixture, &question);
    steps = (uint32_t)(samples / out_proposal->batch_size);
    for (uint32_t epoch = 1; epoch <= 3 && answered.answer == JOB_GO_ON; epoch++)
        answered = job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                    .trial = out_proposal->trial,
                                                                    .attempt = 1,
                                                                    .epoch = epoch,
                                                                    .metric = epoch == 3 ? 0.95 : 0.0,
                                                                    .energy_j = 0.3 * samples * epoch,
                                                                    .time_s = 0.003 * samples * epoch,
                                                                    .steps = counts ? steps : 0});
    return answered;
}

/* What policies are told of a training is at the first size of the data; a step more or less is none. */
static void test_growth_is_told(void **state)
{
    static const struct {
        uint32_t steps;
        double growth;
    } rows[] = {{100, 1.0}, {101, 1.0}, {99, 1.0}, {110, 1.1}, {111, 1.1}, {0, 1.1}, {200, 2.0}, {100, 1.0}};
    struct job_proposal proposal;
    struct job_history history;

    (void)state;
    begin_watch();
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t steps = rows[i].steps > 0 ? rows[i].steps : 110;

        train_samples(32.0 * steps, rows[i].steps > 0, &proposal);
        check_close(seen.ended.energy_j, 3 * 9.6 * steps / rows[i].growth, 1e-12);
        check_close(seen.ended.time_s, 3 * 0.096 * steps / rows[i].growth, 1e-12);
        check_double(seen.ended.epochs, 3);
    }
    history = job_fixture_history(&fixture, &fixture.arena);
    check_close(history.rows[3].trial.energy_j, 3 * 9.6 * 110, 1e-12);
}

static bool is_explored(const struct job_proposal *proposal)
{
    return strstr(proposal->why, "is explored") != NULL ||
           strncmp(proposal->why, "testing batch size", 18) == 0;
}

/*
 * Trains night after night while the data grow by 5 % each; returns how many trials of batch sizes that had
 * run before were stopped, at most one.
 */
static unsigned grow(const char *policy, bool counts, struct job_proposal *out_proposal)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct fly_error error;
    double samples = 32000.0;
    unsigned stopped = 0;

    definition.policy = policy;
    job_fixture_define(&fixture, &definition);
    for (int night = 0; night < 40 && stopped == 0; night++, samples *= 1.05) {
        struct job_answered answered;

        job_fixture_reopen(&fixture);
        do {
            answered = train_samples(samples, counts, out_proposal);
            stopped += answered.stop == JOB_STOP_COST && !is_explored(out_proposal);
        } while (answered.answer != JOB_REACHED && stopped == 0);
    }
    check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    return stopped;
}

/* However much the data grow, no trial is stopped for it where steps are counted. */
static void test_growth_is_no_drift(void **state)
{
    struct job_proposal proposal;

    (void)state;
    assert_int_equal(grow("zeus", true, &proposal), 0);
    assert_int_equal(grow("bayes", true, &proposal), 0);
    assert_true(grow("zeus", false, &proposal) > 0);
}

/* Epochs of the same steps at two batch sizes cannot have the same samples. */
static void test_same_steps(void **state)
{
    static const struct {
        uint32_t steps, other_steps, every;
        int code;
    } rows[] = {{100, 100, 0, FLY_EUSAGE}, {100, 50, 0, 0}, {40, 40, 0, 0}, {100, 100, 6400, 0}};

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct fly_job_definition definition = job_fixture_definition("job");
        struct job_question question = job_fixture_question("job");
        struct fly_error error;

        definition.policy = "default";
        definition.report_every_samples = rows[row].every;
        job_fixture_define(&fixture, &definition);
        for (int i = 0; i < 2; i++) {
            struct job_proposal proposal;
            struct job_answered answered;
            struct job_epoch epoch = {.job = "job", .attempt = 1, .metric = 0.1};
            int code = 0;

            pin(i == 0 ? 32 : 64);
            proposal = job_fixture_propose(&fixture, &question);
            epoch.trial = proposal.trial;
            epoch.steps = i == 0 ? rows[row].steps : rows[row].other_steps;
            for (epoch.epoch = 1; epoch.epoch <= 3 && code == 0; epoch.epoch++) {
                epoch.energy_j = epoch.time_s = epoch.epoch;
                code = fixture.jobs.backend->report(fixture.jobs.self, &epoch, &answered, &error);
            }
            assert_int_equal(code, i == 0 ? 0 : rows[row].code);
            if (code != 0)
                check_contains(error.text, "reports every 100 steps at batch size 64, as others did at 32");
        }
        check_fine(fixture.jobs.backend->remove(fixture.jobs.self, "job", &error), error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_early_end),
        job_test(test_target_hold),
        job_test(test_hold_after_requeue),
        cmocka_unit_test(test_final_metrics),
        cmocka_unit_test(test_final_metrics_are_sure),
        job_test(test_worse_models),
        job_test(test_growth_is_told),
        job_test(test_growth_is_no_drift),
        job_test(test_same_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
