/* SPDX-License-Identifier: Apache-2.0 */
/* What the decider does for policies that choose pairs of batch size and power limit. */
#include <math.h>

#include "decider_life.h"

static const struct batch_choice batches[] = {{32, limits_w, LIMITS}};
static const struct job_spec spec = {
    .name = "job", .batches = batches, .batch_count = 1, .max_epochs = 20, .max_power_w = 200.0, .eta = 0.5};

/* A policy of pairs, whose choice is the point that its state says; -1 leaves it to the power policy. */
static int pair_point, profiles_kept;

static int pair_create(const struct batch_policy *self, const struct job_spec *job,
                       const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                       struct fly_error *out_error)
{
    (void)self, (void)job, (void)parameters, (void)arena, (void)out_error;
    *out_state = &pair_point;
    return 0;
}

static void pair_fold(void *state, const struct event *event)
{
    (void)state;
    profiles_kept += event->kind == EVENT_PROFILE_KEPT && event->measured->count == LIMITS &&
                     event->measured->units_per_epoch == 4.0;
}

static bool pair_choose(const void *state, const struct profile_measured *measured, size_t *out_point)
{
    const int *point = state;

    assert_int_equal(measured->count, LIMITS);
    check_double(measured->units_per_epoch, 4.0);
    if (*point < 0)
        return false;
    *out_point = (size_t)*point;
    return true;
}

static bool pair_keeps(const void *state, size_t batch)
{
    return *(const int *)state == (int)batch;
}

static void pair_save(const void *state, struct buffer *bytes)
{
    (void)state, (void)bytes;
}

static bool pair_load(void *state, struct bytes_reader *bytes)
{
    (void)state, (void)bytes;
    return true;
}

static const struct batch_policy pair_policy = {.name = "pairs",
                                                .create = pair_create,
                                                .fold = pair_fold,
                                                .choose_limit = pair_choose,
                                                .keeps_bound = pair_keeps,
                                                .save = pair_save,
                                                .load = pair_load};

/*
 * Within a bound a policy of pairs chooses the limit, anew for each trial; without one, or where it leaves
 * the choice, and for any other policy, the power policy does. A loaded state is told of its profiles.
 */
static void test_decider(void **state)
{
    static const struct fly_power_point points[LIMITS] = {{100, 95, 1.5}, {150, 130, 1.1}, {200, 180, 1.0}};
    static const struct {
        const struct batch_policy *policy;
        double max_slowdown;
        int point;
        bool pairs;
        double limit_w;
    } rows[] = {
        {&pair_policy, 1.2, 0, true, 100},           {&pair_policy, 1.2, 2, true, 200},
        {&pair_policy, 1.2, -1, true, 150},          {&pair_policy, INFINITY, 2, false, 100},
        {&batch_policy_default, 1.2, 2, false, 150},
    };
    const struct proposal proposal = {.limit_rule = LIMIT_PROFILED};
    const struct profile_measured measured = {.points = points, .count = LIMITS, .units_per_epoch = 4.0};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 1.0, rows[i].max_slowdown};
        struct job_spec job = spec;
        struct life life;
        size_t best;

        job.objective = &objective;
        job.eta = 1.0;
        pair_point = rows[i].point;
        begin(&life, &job, rows[i].policy);
        assert_int_equal(decider_chooses_pairs(&life.decider), rows[i].pairs);
        assert_int_equal(decider_choose(&life.decider, &measured, &best, NULL), 0);
        check_double(points[best].limit_w, rows[i].limit_w);
        tell(&life, &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &measured});
        check_double(decider_limit_w(&life.decider, &proposal), rows[i].limit_w);
        if (rows[i].pairs) {
            struct buffer bytes;
            struct bytes_reader reader;
            struct life loaded;

            pair_point = 1;
            check_double(decider_limit_w(&life.decider, &proposal), 150);
            assert_true(decider_keeps_bound(&life.decider, 1));
            assert_false(decider_keeps_bound(&life.decider, 0));
            buffer_init(&bytes, 1 << 12);
            decider_save(&life.decider, &bytes);
            begin(&loaded, &job, rows[i].policy);
            reader = bytes_reader(bytes.data, bytes.length);
            profiles_kept = 0;
            assert_int_equal(decider_load(&loaded.decider, &reader, NULL), 0);
            assert_int_equal(profiles_kept, 1);
            check_double(decider_limit_w(&loaded.decider, &proposal), 150);
            finish(&loaded);
            buffer_deinit(&bytes);
        }
        finish(&life);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decider),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
