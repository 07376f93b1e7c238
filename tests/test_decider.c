/* SPDX-License-Identifier: Apache-2.0 */
/* What the decider does for policies, whatever they are: states come and go, profiles find their limit. */
#include "test.h"

#include "policy/decider.h"

enum { LIMITS = 3 };
static const double limits_w[LIMITS] = {100, 150, 200};
static const struct batch_choice batches[] = {{32, limits_w, LIMITS}};
static const struct job_spec spec = {
    .name = "job", .batches = batches, .batch_count = 1, .max_epochs = 20, .max_power_w = 200.0, .eta = 0.5};

/* Checks what it is told; refuses where it can say so. */
static int odd_choose(const struct power_policy *self, const struct fly_power_point *points, size_t count,
                      double eta, double max_power_w, size_t *out_index, struct fly_error *out_error)
{
    assert_string_equal(self->name, "odd");
    assert_int_equal(count, LIMITS);
    check_double(points[1].limit_w, 150.0);
    check_double(eta, 0.5);
    check_double(max_power_w, 200.0);
    if (out_error != NULL)
        return error_set(out_error, FLY_EDATA, "refused");
    *out_index = 0;
    return 0;
}

/* Another power policy chooses for whatever is profiled, and may refuse. */
static void test_power_policy(void **state)
{
    static const struct power_policy odd = {.name = "odd", .choose = odd_choose};
    static const struct fly_power_point points[LIMITS] = {{100, 95, 1.5}, {150, 130, 1.1}, {200, 180, 1.0}};
    const struct profile_measured measured = {0, points, LIMITS};
    const struct event event = {.kind = EVENT_PROFILE_MEASURED, .measured = &measured};
    struct fly_error error;
    struct proposal proposal;
    struct decider decider;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    assert_int_equal(decider_init(&decider, &spec, &batch_policy_zeus,
                                  &(struct policy_parameters){.beta = 2.0, .power = &odd}, &arena, NULL),
                     0);
    assert_int_equal(decider_fold(&decider, &(struct event){.kind = EVENT_RECURRENCE_BEGUN}, NULL), 0);
    assert_int_equal(decider_propose(&decider, 0, 0, &proposal, NULL), 0);
    assert_int_equal(decider_fold(&decider, &event, &error), FLY_EDATA);
    assert_true(decider_wants_profile(&decider, &proposal));
    assert_int_equal(decider_fold(&decider, &event, NULL), 0);
    check_double(decider_limit_w(&decider, &proposal), 100.0);
    arena_deinit(&arena);
}

static int counted; /* states of the policy below that are alive */

static int counting_create(const struct batch_policy *self, const struct job_spec *job,
                           const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                           struct fly_error *out_error)
{
    (void)job, (void)parameters, (void)arena, (void)out_error;
    assert_string_equal(self->name, "counting");
    counted++;
    *out_state = &counted;
    return 0;
}

static void counting_destroy(void *state)
{
    --*(int *)state;
}

/* Create learns which policy it makes a state of, and destroy gets that state back. */
static void test_states_are_destroyed(void **state)
{
    static const struct batch_policy counting = {
        .name = "counting", .create = counting_create, .destroy = counting_destroy};
    const struct policy_parameters parameters = {.beta = 2.0};
    struct decider decider;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    assert_int_equal(decider_init(&decider, &spec, &counting, &parameters, &arena, NULL), 0);
    assert_int_equal(counted, 1);
    decider_deinit(&decider);
    assert_int_equal(counted, 0);
    assert_int_equal(decider_init(&decider, &spec, &batch_policy_grid, &parameters, &arena, NULL), 0);
    decider_deinit(&decider);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_policy),
        cmocka_unit_test(test_states_are_destroyed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
