/* SPDX-License-Identifier: Apache-2.0 */
/* A live job with a bound settles on the pair of batch size and power limit that 'flyball job pareto' names.
 */
#include "job_fixture.h"

#include <math.h>
#include <stdio.h>

#include "job/core/definition.h"
#include "job/past/job_frontier.h"

enum {
    SIZES = 5,
    LIMITS = 4,
    RECURRENCES = 60,
    SETTLED_FROM = 50,
    SEEDS = 3,
    DEFAULT = 1,
    MEMORY_MAX = 64 << 20
};

static const uint32_t sizes[SIZES] = {32, 64, 128, 256, 512};
static const double limits_w[LIMITS] = {150, 200, 250, 300};
static const double slower[LIMITS] = {1.4, 1.178, 1.044, 1.0}; /* an epoch, times that at the highest limit */

/*
 * Epochs to the target, give or take one, and seconds of an epoch at the highest limit, of which trials take
 * a tenth more than the profile tells. The data grow by `growth` a recurrence, which steps tell.
 */
struct world {
    double epochs[SIZES], epoch_s[SIZES];
    double max_slowdown;
    double growth;       /* 0: they do not */
    uint32_t batch_size; /* where the job must settle */
    double limit_w;
};

/* Steps of an epoch; the profile is of one of them. */
static uint32_t steps_of(const struct world *world, size_t batch, uint64_t recurrence)
{
    return (uint32_t)(64000.0 / sizes[batch] * pow(1.0 + world->growth, (double)recurrence));
}

static struct fly_power_point point_of(const struct world *world, size_t batch, size_t limit)
{
    return (struct fly_power_point){limits_w[limit], 0.9 * limits_w[limit],
                                    world->epoch_s[batch] * slower[limit] / steps_of(world, batch, 0)};
}

static size_t find_size(uint32_t size)
{
    size_t at = 0;

    while (sizes[at] != size)
        at++;
    return at;
}

/* Reports epochs until the job's answer is not to go on; returns whether the target was reached. */
static bool train(struct job_fixture *fixture, const struct world *world, const struct job_proposal *proposal,
                  uint64_t recurrence, bool profiles, uint64_t *random)
{
    size_t batch = find_size(proposal->batch_size), limit = 0;
    uint32_t steps = steps_of(world, batch, recurrence);
    double needed = world->epochs[batch] + (double)test_below(random, 3) - 1.0, epoch_s, energy_j;
    struct job_answered answered = {.answer = JOB_GO_ON};

    while (limits_w[limit] != proposal->limit_w)
        limit++;
    epoch_s = 1.1 * point_of(world, batch, limit).time_s * steps * (profiles ? 1.2 : 1.0);
    energy_j = 0.9 * limits_w[limit] * epoch_s;
    for (uint32_t epoch = 1; answered.answer == JOB_GO_ON; epoch++)
        answered = job_fixture_report(fixture, &(struct job_epoch){.job = "job",
                                                                   .trial = proposal->trial,
                                                                   .attempt = 1,
                                                                   .epoch = epoch,
                                                                   .metric = epoch >= needed ? 1.0 : 0.0,
                                                                   .steps = world->growth > 0.0 ? steps : 0,
                                                                   .energy_j = epoch * energy_j,
                                                                   .time_s = epoch * epoch_s,
                                                                   .reference_per_kwh = NAN});
    return answered.answer == JOB_REACHED;
}

/* One try; gives the limit that it ran at. */
static bool run_try(struct job_fixture *fixture, const struct world *world, uint64_t recurrence,
                    uint64_t *random, struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    struct fly_power_point points[LIMITS];
    struct job_choice choice;
    struct fly_error error;
    char submission[32];

    snprintf(submission, sizeof submission, "r%llu", (unsigned long long)recurrence);
    question.submission = submission;
    question.hardware.limits_w = limits_w;
    question.hardware.limit_count = LIMITS;
    *out_proposal = job_fixture_propose(fixture, &question);
    if (out_proposal->wants_profile) {
        for (size_t i = 0; i < LIMITS; i++)
            points[i] = point_of(world, find_size(out_proposal->batch_size), i);
        check_fine(fixture->jobs.backend->profile(
                       fixture->jobs.self,
                       &(struct job_profile){.job = "job",
                                             .trial = out_proposal->trial,
                                             .points = points,
                                             .point_count = LIMITS,
                                             .units_per_epoch = steps_of(
                                                 world, find_size(out_proposal->batch_size), recurrence)},
                       &choice, &error),
                   error);
        out_proposal->limit_w = choice.limit_w;
    }
    return train(fixture, world, out_proposal, recurrence, out_proposal->wants_profile, random);
}

static void define(struct job_fixture *fixture, enum fly_objective_kind kind, double max_slowdown)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    definition.batch_sizes = sizes;
    definition.batch_count = SIZES;
    definition.default_batch_size = sizes[DEFAULT];
    definition.max_epochs = 80;
    definition.objective = (struct fly_objective){kind, 0.5, max_slowdown};
    if (objective_of_grid(&definition.objective))
        definition.grid = "gb:national";
    definition.policy = "bayes";
    definition.control_every = 10;
    definition.one_at_a_time = true;
    job_fixture_define(fixture, &definition);
}

/* The pair that 'flyball job pareto' names. */
static struct fly_operating_point named(struct job_fixture *fixture)
{
    struct job_profiles profiles;
    struct job_frontier frontier;
    struct job_history history;
    struct fly_operating_point point;
    struct fly_error error;
    struct arena arena;

    arena_init(&arena, MEMORY_MAX);
    history = job_fixture_history(fixture, &arena);
    check_fine(job_profiles_read(&fixture->jobs, &history, &arena, &profiles, &error), error);
    check_fine(job_frontier_read(&fixture->jobs, &history, &profiles, 0, &arena, &frontier, &error), error);
    assert_true(frontier.points.default_point < frontier.points.count);
    assert_true(frontier.chosen < frontier.points.count);
    point = frontier.points.points[frontier.chosen];
    arena_deinit(&arena);
    return point;
}

static void check_settles(const struct world *world, enum fly_objective_kind kind, uint64_t seed)
{
    struct fly_operating_point point;
    struct job_fixture fixture;
    uint64_t random = seed;

    job_fixture_open(&fixture);
    define(&fixture, kind, world->max_slowdown);
    for (uint64_t recurrence = 0; recurrence < RECURRENCES; recurrence++) {
        struct job_proposal proposal;

        if (recurrence % 7 == 0)
            job_fixture_reopen(&fixture);
        while (!run_try(&fixture, world, recurrence, &random, &proposal))
            continue;
        if (recurrence >= SETTLED_FROM && recurrence % 10 != 0 &&
            (proposal.batch_size != world->batch_size || proposal.limit_w != world->limit_w))
            fail_msg("seed %llu, recurrence %llu: %u at %g W, expected %u at %g W", (unsigned long long)seed,
                     (unsigned long long)recurrence, proposal.batch_size, proposal.limit_w, world->batch_size,
                     world->limit_w);
    }
    if (world->growth > 0.0) { /* what trials took is of many sizes then */
        job_fixture_close(&fixture);
        return;
    }
    point = named(&fixture);
    assert_int_equal(point.batch_size, world->batch_size);
    check_double(point.power_limit_w, world->limit_w);
    job_fixture_close(&fixture);
}

/* The default's own limits leave 300 W within 3 %; a faster batch size reaches lower. */
static const struct world faster = {.epochs = {20, 20, 20, 26, 60},
                                    .epoch_s = {120, 100, 83, 80, 79},
                                    .max_slowdown = 1.03,
                                    .batch_size = 128,
                                    .limit_w = 200};
/* Every other batch size is slower; the bound leaves the default a lower limit. */
static const struct world default_best = {.epochs = {20, 20, 24, 40, 60},
                                          .epoch_s = {130, 100, 98, 96, 95},
                                          .max_slowdown = 1.1,
                                          .batch_size = 64,
                                          .limit_w = 250};
/* A batch size that needs less energy is beyond the bound at any limit. */
static const struct world beyond = {.epochs = {14, 20, 20, 40, 60},
                                    .epoch_s = {180, 100, 104, 96, 95},
                                    .max_slowdown = 1.03,
                                    .batch_size = 64,
                                    .limit_w = 300};

static void test_settles(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        check_settles(&faster, FLY_OBJECTIVE_ENERGY, seed);
        check_settles(&default_best, FLY_OBJECTIVE_ENERGY, seed);
    }
}

static void test_carbon(void **state)
{
    (void)state;
    check_settles(&faster, FLY_OBJECTIVE_CARBON, 1);
    check_settles(&faster, FLY_OBJECTIVE_MONEY, 1);
}

/* Growing data change neither the choice nor the bound. */
static void test_growth(void **state)
{
    struct world growing = faster;

    (void)state;
    growing.growth = 0.02;
    check_settles(&growing, FLY_OBJECTIVE_ENERGY, 1);
    check_settles(&growing, FLY_OBJECTIVE_ENERGY, 2);
}

static void test_beyond(void **state)
{
    (void)state;
    check_settles(&beyond, FLY_OBJECTIVE_ENERGY, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles),
        cmocka_unit_test(test_carbon),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_growth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
