/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that no training was long enough for: what is on record of them goes to the next. */
#include "job_fixture.h"

#include <math.h>

static struct job_fixture fixture;

static int setup(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    (void)state;
    job_fixture_open(&fixture);
    job_fixture_define(&fixture, &definition);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    job_fixture_close(&fixture);
    return 0;
}

static const struct fly_power_point low = {100, 95, 14}, middle = {150, 130, 10.5}, high = {200, 185, 10};

static struct job_choice tell(uint64_t trial, const struct fly_power_point *points, size_t count)
{
    const struct job_profile part = {
        .job = "job", .trial = trial, .points = points, .point_count = count, .partial = true};
    struct job_choice choice;
    struct fly_error error;

    check_fine(fixture.jobs.backend->profile(fixture.jobs.self, &part, &choice, &error), error);
    return choice;
}

static void check_known(const struct job_proposal *proposal, const struct fly_power_point *points,
                        size_t count)
{
    assert_true(proposal->wants_profile);
    assert_int_equal(proposal->known_count, count);
    for (size_t i = 0; i < count; i++) {
        check_double(proposal->known[i].limit_w, points[i].limit_w);
        check_double(proposal->known[i].power_w, points[i].power_w);
        check_double(proposal->known[i].time_s, points[i].time_s);
    }
}

/* What job_fixture_profile told, whoever runs the batch size next. */
static void check_whole(const struct job_proposal *proposal)
{
    assert_int_equal(proposal->known_count, FIXTURE_LIMITS);
    for (size_t i = 0; i < proposal->known_count; i++)
        check_double(proposal->known[i].limit_w, job_fixture_limits_w[i]);
    check_double(proposal->known_units_per_epoch, 1.0);
}

/* Each training adds what it measured; the whole profile ends that. */
static void test_goes_on(void **state)
{
    const struct fly_power_point both[] = {middle, high}, newer[] = {{150, 131, 10.4}, high},
                                 all[] = {low, newer[0], high};
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal = job_fixture_propose(&fixture, &question);
    struct job_choice choice;

    (void)state;
    assert_int_equal(proposal.known_count, 0);
    choice = tell(1, &high, 1);
    assert_true(isnan(choice.limit_w));
    assert_int_equal(choice.epochs, 20);
    assert_false(choice.repeated);
    assert_false(tell(1, both, 2).repeated);
    assert_true(tell(1, both, 2).repeated);
    assert_true(tell(1, &high, 1).repeated);
    assert_int_equal(job_fixture_count(&fixture, "job", "profiled_part", 1), 2);
    proposal = job_fixture_propose(&fixture, &question); /* beside it */
    assert_int_equal(proposal.batch_size, 32);
    check_known(&proposal, both, 2);
    tell(2, newer, 1); /* of a limit the newest counts */
    job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                .trial = 1,
                                                .attempt = 1,
                                                .outcome = TRIAL_CRASHED,
                                                .energy_j = NAN,
                                                .time_s = NAN});
    assert_false(tell(1, &low, 1).repeated); /* it comes late */
    job_fixture_reopen(&fixture);
    proposal = job_fixture_propose(&fixture, &question);
    check_known(&proposal, all, 3);
    choice = job_fixture_profile(&fixture, "job", 3);
    check_double(choice.limit_w, 150.0);
    proposal = job_fixture_propose(&fixture, &question);
    assert_false(proposal.wants_profile);
    check_whole(&proposal);
    assert_true(tell(2, &low, 1).repeated); /* too late to be of use */
}

/* A part belongs to its batch size and hardware, also after many events, out of a snapshot. */
static void test_belongs(void **state)
{
    struct job_question question = job_fixture_question("job"), other = question;
    struct job_proposal proposal = job_fixture_propose(&fixture, &question);
    struct job_setting setting = {.job = "job", .set_pin = true, .pin_batch_size = 64, .pin_limit_w = NAN};
    struct fly_error error;

    (void)state;
    tell(1, &middle, 1);
    other.hardware.gpu_model = "Another GPU";
    proposal = job_fixture_propose(&fixture, &other);
    check_known(&proposal, NULL, 0);
    tell(2, &low, 1);
    check_fine(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), error);
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.batch_size, 64);
    check_known(&proposal, NULL, 0);
    for (int i = 0; i < 3 * LOCAL_SNAPSHOT_EVERY; i++)
        check_fine(fixture.jobs.backend->heartbeat(
                       fixture.jobs.self,
                       &(struct job_beat){
                           .job = "job", .trial = 3, .attempt = 1, .energy_j = 1.0 * i, .time_s = 0.1 * i},
                       &error),
                   error);
    job_fixture_reopen(&fixture);
    setting.pin_batch_size = 32;
    check_fine(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), error);
    proposal = job_fixture_propose(&fixture, &question);
    check_known(&proposal, &middle, 1);
    proposal = job_fixture_propose(&fixture, &other);
    check_known(&proposal, &low, 1);
    /* Another objective folds the whole log anew. */
    setting = (struct job_setting){
        .job = "job", .set_objective = true, .objective = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY}};
    check_fine(fixture.jobs.backend->set(fixture.jobs.self, &setting, &error), error);
    proposal = job_fixture_propose(&fixture, &question);
    check_known(&proposal, &middle, 1);
}

/* More limits than are kept: the first ones stay. */
static void test_full(void **state)
{
    struct fly_power_point points[JOB_KNOWN_MAX];
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_propose(&fixture, &question);
    for (size_t i = 0; i < JOB_KNOWN_MAX; i++)
        points[i] = (struct fly_power_point){100.0 + (double)i, 90.0, 10.0};
    tell(1, points, JOB_KNOWN_MAX);
    for (size_t i = 0; i < JOB_KNOWN_MAX; i++)
        points[i].limit_w += i > 0 ? 1000.0 : 0.0, points[i].power_w = 80.0;
    tell(1, points, JOB_KNOWN_MAX);
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.known_count, JOB_KNOWN_MAX);
    check_double(proposal.known[0].power_w, 80.0);
    check_double(proposal.known[1].power_w, 90.0);
    check_double(proposal.known[JOB_KNOWN_MAX - 1].limit_w, 99.0 + JOB_KNOWN_MAX);
}

static void test_refused(void **state)
{
    static const struct {
        struct fly_power_point point;
        uint64_t trial;
        size_t count;
        int code;
        const char *words;
    } rows[] = {
        {{100, 95, 14}, 1, 0, FLY_EUSAGE, "0 points"},
        {{100, 95, 14}, 1, JOB_KNOWN_MAX + 1, FLY_EUSAGE, "257 points"},
        {{100, 95, 14}, 7, 1, FLY_ENOTFOUND, "7"},
        {{0, 95, 14}, 1, 1, FLY_EUSAGE, "above 0"},
        {{100, (double)NAN, 14}, 1, 1, FLY_EUSAGE, "above 0"},
        {{100, 95, (double)INFINITY}, 1, 1, FLY_EUSAGE, "above 0"},
    };
    struct job_question question = job_fixture_question("job");
    struct job_choice choice;
    struct fly_error error;

    (void)state;
    job_fixture_propose(&fixture, &question);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct job_profile part = {.job = "job",
                                         .trial = rows[i].trial,
                                         .points = &rows[i].point,
                                         .point_count = rows[i].count,
                                         .partial = true};

        check_fails(fixture.jobs.backend->profile(fixture.jobs.self, &part, &choice, &error), rows[i].code,
                    error, rows[i].words);
    }
    assert_int_equal(job_fixture_count(&fixture, "job", "profiled_part", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_belongs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
