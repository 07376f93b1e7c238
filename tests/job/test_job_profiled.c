/* SPDX-License-Identifier: Apache-2.0 */
/* A trial that its power profile ends, and how many steps an epoch is expected to have. */
#include "job_fixture.h"

#include "job/decide/line.h"

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static void set(struct job_setting setting)
{
    struct fly_error error;

    setting.job = "job";
    check_fine(at()->set(fixture.jobs.self, &setting, &error), error);
}

static struct job_choice profile(uint64_t trial, double epoch_s, double units)
{
    const struct fly_power_point points[] = {{150, 130, epoch_s / units}, {200, 185, epoch_s / units}};
    struct job_choice choice;
    struct fly_error error;

    check_fine(at()->profile(fixture.jobs.self,
                             &(struct job_profile){.job = "job",
                                                   .trial = trial,
                                                   .points = points,
                                                   .point_count = COUNT(points),
                                                   .units_per_epoch = units},
                             &choice, &error),
               error);
    return choice;
}

static void refuse(uint64_t trial)
{
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = trial,
                                                .attempt = 1,
                                                .outcome = TRIAL_REFUSED,
                                                .energy_j = 900,
                                                .time_s = 7});
    assert_int_equal(job_fixture_outcome(&fixture, "job", trial), TRIAL_REFUSED);
}

/* Two epochs of 1300 J, of which the second one reaches the target. */
static void reach(uint64_t trial)
{
    assert_int_equal(job_fixture_epoch(&fixture, trial, 1, 1, 1300, 10, 0.1).answer, JOB_GO_ON);
    assert_int_equal(job_fixture_epoch(&fixture, trial, 1, 2, 2600, 20, 0.95).answer, JOB_REACHED);
}

/*
 * A batch size whose profile shows that no epoch is worth it is left, though recurrences may overlap, and
 * not proposed again.
 */
static void test_left_after_profile(void **state)
{
    static const char *const policies[] = {"zeus", "bayes"};

    for (size_t i = 0; i < COUNT(policies); i++) {
        struct job_question question = job_fixture_question("job");
        struct job_proposal proposal;
        uint32_t left;

        job_fixture_begin(&fixture, policies[i]);
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(profile(proposal.trial, 10, 1000).epochs, 20);
        reach(proposal.trial);
        question.submission = "second";
        proposal = job_fixture_propose(&fixture, &question);
        left = proposal.batch_size;
        assert_int_not_equal(left, 32);
        check_double(proposal.known_units_per_epoch, 32000.0 / left);
        assert_int_equal(profile(proposal.trial, 100, 32000.0 / left).epochs, 0);
        job_fixture_reopen(&fixture);
        refuse(proposal.trial);
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.try_number, 1);
        question.submission = "";
        for (int night = 0; night < 30; night++) {
            assert_int_not_equal(proposal.batch_size, left);
            if (proposal.wants_profile)
                assert_true(profile(proposal.trial, 10, 32000.0 / proposal.batch_size).epochs >= 2);
            reach(proposal.trial);
            proposal = job_fixture_propose(&fixture, &question);
        }
        job_fixture_teardown(state);
        job_fixture_setup(state);
    }
}

/* Once an epoch has ended a trial is not refused any more; it ends with the epochs that it has. */
static void test_profile_after_an_epoch(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    proposal = job_fixture_propose(&fixture, &question);
    profile(proposal.trial, 10, 1000);
    reach(proposal.trial);
    proposal = job_fixture_propose(&fixture, &question);
    job_fixture_epoch(&fixture, proposal.trial, 1, 1, 1300, 10, 0.1);
    assert_int_equal(profile(proposal.trial, 100, 1000).epochs, 1);
    /* The last try is the best known choice, which no profile ends. */
    question.tries = 1;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.batch_size, 32);
    assert_int_equal(proposal.epochs, 20);
}

/* Units of other batch sizes count while they are steps over as many samples. */
static void test_steps_of_an_epoch(void **state)
{
    static const struct {
        double shown, expected; /* at 32 and, first, at 16 */
        double other;           /* shown at 64; 0: nothing */
    } rows[] = {{1000, 2000, 0}, {1001, 2002, 500}, {1000, NAN, 1000}, {3, 6, 0}, {3, 6, 1}, {1, NAN, 0}};
    struct job_setting setting = {.job = "job", .set_pin = true, .pin_limit_w = NAN};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_question question = job_fixture_question("job");
        struct job_proposal proposal;

        job_fixture_begin(&fixture, "zeus");
        proposal = job_fixture_propose(&fixture, &question);
        assert_true(isnan(proposal.known_units_per_epoch));
        profile(proposal.trial, 10, rows[i].shown);
        setting.pin_batch_size = 64;
        set(setting);
        proposal = job_fixture_propose(&fixture, &question);
        if (rows[i].other > 0.0)
            profile(proposal.trial, 10, rows[i].other);
        setting.pin_batch_size = 16;
        set(setting);
        proposal = job_fixture_propose(&fixture, &question);
        assert_true(proposal.wants_profile);
        if (isnan(rows[i].expected))
            assert_true(isnan(proposal.known_units_per_epoch));
        else
            check_double(proposal.known_units_per_epoch, rows[i].expected);
        job_fixture_teardown(state);
        job_fixture_setup(state);
    }
}

/* A trial that wants a profile is told those of the nearest other batch sizes, unless there is a bound. */
static void test_others(void **state)
{
    static const struct fly_power_point falling[] = {{200, 185, 10}, {150, 130, 10.5}, {100, 95, 14}};
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_setting setting = {.job = "job", .set_pin = true, .pin_limit_w = NAN};

    for (int bounded = 0; bounded < 2; bounded++) {
        struct job_question question = job_fixture_question("job");
        struct job_proposal proposal;
        struct job_profile told = {
            .job = "job", .points = falling, .point_count = COUNT(falling), .units_per_epoch = 100};
        struct job_choice choice;
        struct fly_error error;

        definition.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.5, bounded ? 1.1 : INFINITY};
        job_fixture_define(&fixture, &definition);
        for (uint32_t size = 128; size >= 32; size /= 2) {
            setting.pin_batch_size = size;
            set(setting);
            proposal = job_fixture_propose(&fixture, &question);
            assert_int_equal(proposal.other_count, bounded ? 0 : 3 * (size == 64) + 6 * (size == 32));
            told.trial = proposal.trial;
            told.point_count = COUNT(falling);
            check_fine(at()->profile(fixture.jobs.self, &told, &choice, &error), error);
        }
        assert_int_equal(job_fixture_propose(&fixture, &question).other_count, 0);
        setting.pin_batch_size = 16;
        set(setting);
        job_fixture_reopen(&fixture);
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.other_count, bounded ? 0 : 9);
        for (size_t i = 0; i < proposal.other_count; i++) {
            assert_int_equal(proposal.others[i].batch_size, 32 << (i / 3));
            check_double(proposal.others[i].limit_w, falling[2 - i % 3].limit_w);
            check_double(proposal.others[i].power_w, falling[2 - i % 3].power_w);
            check_double(proposal.others[i].time_s, falling[2 - i % 3].time_s);
        }
        job_fixture_teardown(state);
        job_fixture_setup(state);
    }
}

/* What limits cost that a training could not leave, as the nearest profiled batch size shows. */
static void test_dearer(void **state)
{
    static const struct batch_choice batches[] = {{16, NULL, 0}, {32, NULL, 0}, {64, NULL, 0}};
    struct job_spec spec = {
        .batches = batches, .batch_count = COUNT(batches), .max_power_w = 200, .eta = 1.0};
    struct fly_power_point steep[] = {{100, 100, 1.0}, {150, 150, 1.0}, {200, 200, 1.0}};
    struct fly_power_point flat[] = {{100, 110, 1.0}, {200, 121, 1.0}}, part[] = {{100, 9, 9}, {150, 9, 9}};
    struct decider_profile profiles[COUNT(batches)] = {{.count = 0}};
    struct profile_part parts[COUNT(batches)] = {{.count = 0}};
    struct job_line line = {.spec = &spec, .decider = {.profiles = profiles}, .parts = parts};

    (void)state;
    check_double(job_line_dearer(&line, 0), 0.0);
    profiles[0] = (struct decider_profile){.points = steep, .count = COUNT(steep)};
    check_double(job_line_dearer(&line, 0), 0.0);
    check_double(job_line_dearer(&line, 2), 2.0);
    parts[2] = (struct profile_part){.points = part, .count = COUNT(part)};
    check_double(job_line_dearer(&line, 2), 1.25);
    profiles[1] = (struct decider_profile){.points = flat, .count = COUNT(flat)};
    check_double(job_line_dearer(&line, 2), 1.0);
    parts[2].count = 0;
    check_double(job_line_dearer(&line, 2), 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_left_after_profile), job_test(test_profile_after_an_epoch),
        job_test(test_steps_of_an_epoch),  job_test(test_others),
        cmocka_unit_test(test_dearer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
