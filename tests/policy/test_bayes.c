/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `bayes` in small worlds, through the decider as live jobs and simulations drive it. */
#include "bayes_world.h"

/* The first choices of `count` recurrences, a digit each. */
static void choose(const struct world *world, double horizon, size_t count, char *out_choices)
{
    struct life life;

    begin(&life, horizon);
    for (size_t i = 0; i < count; i++) {
        size_t first;

        recur(&life, world, &first, NULL);
        out_choices[i] = (char)('0' + first);
    }
    out_choices[count] = '\0';
    finish(&life);
}

/* Fixed worlds and the first choices in them: the default first, then the best batch size is found and kept.
 */
static void test_choices(void **state)
{
    static const struct {
        struct world world;
        double horizon;
        const char *choices;
    } rows[] = {
        {{.epochs = {20, 20, 20, 20, 22, 60}, .epoch_s = {160, 120, 100, 90, 85, 82}, .level = 1.0},
         50.0,
         "2035234443333333"},
        {{.epochs = {60, 40, 20, 40, 60, 0}, .epoch_s = {120, 110, 100, 95, 92, 90}, .level = 1.0},
         50.0,
         "2041222222232222"},
        {{.epochs = {6, 8, 20, 40, 60, 0}, .epoch_s = {120, 110, 100, 95, 92, 90}, .level = 1.0},
         50.0,
         "2000000000000000"},
        {{.epochs = {6, 8, 20, 40, 60, 0}, .epoch_s = {120, 110, 100, 95, 92, 90}, .level = 1.0},
         1.0,
         "2222222222222222"},
    };
    enum { RECURRENCES = 16 };

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        char choices[RECURRENCES + 1];

        choose(&rows[row].world, rows[row].horizon, RECURRENCES, choices);
        assert_string_equal(choices, rows[row].choices);
    }
}

/* What is hidden behind batch sizes that are worse is found by doubt, and not while a horizon is given. */
static void test_doubt(void **state)
{
    static const struct world hidden = {
        .epochs = {80, 60, 20, 30, 40, 8}, .epoch_s = {160, 120, 100, 90, 85, 82}, .level = 1.0};
    enum { RECURRENCES = 40 };
    char choices[RECURRENCES + 1];

    (void)state;
    choose(&hidden, 20.0, RECURRENCES, choices);
    if (choices[RECURRENCES - 1] != '2')
        fail_msg("without doubt: %s", choices);
    choose(&hidden, 0.0, RECURRENCES, choices);
    if (choices[RECURRENCES - 1] != '5')
        fail_msg("with doubt: %s", choices);
}

/* While nothing is known the default runs, without a bound, and so does what begins beside it. */
static void test_first(void **state)
{
    struct proposal proposal;
    struct life life;

    (void)state;
    begin(&life, 0.0);
    propose(&life, 0, &proposal);
    assert_int_equal(proposal.batch, DEFAULT);
    profile(&life, &larger_is_better, DEFAULT);
    assert_int_equal(cap(&life, &larger_is_better, DEFAULT), MAX_EPOCHS); /* no bound */
    /* While it runs, others run the default too. */
    propose(&life, 0, &proposal);
    assert_int_equal(proposal.batch, DEFAULT);
    finish(&life);
}

/* A default that never reaches its target: others are tried, and the job goes on. */
static void test_bad_default(void **state)
{
    static const struct world world = {
        .epochs = {0, 20, 0, 0, 0, 0}, .epoch_s = {160, 120, 100, 90, 85, 82}, .level = 1.0};
    struct life life;
    size_t last = N;

    (void)state;
    begin(&life, 0.0);
    for (size_t i = 0; i < 20; i++)
        recur(&life, &world, NULL, &last);
    assert_int_equal(last, 1);
    finish(&life);
}

/* Whatever happened before: a retry runs a batch size that reached its target, and says so. */
static void test_retry(void **state)
{
    uint64_t random = 17;

    (void)state;
    for (size_t round = 0; round < 40; round++) {
        struct world world = {.scatter = 0.3, .level = 1.0};
        struct life life;

        for (size_t i = 0; i < N; i++) {
            world.epochs[i] =
                i == DEFAULT || test_below(&random, 4) > 0 ? 3.0 + 30.0 * test_uniform(&random) : 0.0;
            world.epoch_s[i] = 50.0 + 100.0 * test_uniform(&random);
        }
        begin(&life, 0.0);
        for (size_t i = 0; i < 20; i++) {
            struct proposal retry;

            recur(&life, &world, NULL, NULL);
            assert_int_equal(decider_propose(&life.decider, life.recurrences, 1, &retry, NULL), 0);
            assert_int_equal(retry.reason, REASON_BEST_SEEN);
            assert_true(world.epochs[retry.batch] > 0.0);
        }
        finish(&life);
    }
}

/* Everything needs more epochs from some day on: no recurrence is lost to bounds of the past. */
static void test_level(void **state)
{
    static const double levels[] = {1.8, 3.0};

    (void)state;
    for (size_t row = 0; row < COUNT(levels); row++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct world world = larger_is_better;
            struct life life;
            uint32_t tries = 0;

            world.scatter = 0.2;
            begin(&life, 0.0);
            life.random = seed;
            for (size_t i = 0; i < 25; i++)
                recur(&life, &world, NULL, NULL);
            world.level = levels[row];
            for (size_t i = 0; i < 25; i++)
                tries += recur(&life, &world, NULL, NULL);
            if (tries > (levels[row] < 2.0 ? 28 : 32))
                fail_msg("level %g, seed %llu: %u tries", levels[row], (unsigned long long)seed, tries);
            finish(&life);
        }
    }
}

/* A batch size whose profile is bad is left after its first epoch; a good one gets what it is worth. */
static void test_left_after_profile(void **state)
{
    struct world world = larger_is_better;
    struct life life;

    (void)state;
    begin(&life, 0.0);
    recur(&life, &world, NULL, NULL);
    world.epoch_s[3] = 1000.0;
    profile(&life, &world, 3);
    assert_int_equal(cap(&life, &world, 3), 1);
    world.epoch_s[3] = 70.0;
    profile(&life, &world, 3);
    assert_true(cap(&life, &world, 3) > 20);
    finish(&life);
}

/* A run too short for a whole profile is believed to cost what it would under the best limit. */
static void test_short_run(void **state)
{
    static const double dearer[] = {0.0, 1.0, 4.0};
    struct buffer bytes[COUNT(dearer)];

    (void)state;
    for (size_t i = 0; i < COUNT(dearer); i++) {
        struct life life;

        begin(&life, 0.0);
        life.decider.guarded = false; /* it would remember what the run itself took */
        recur(&life, &larger_is_better, NULL, NULL);
        if (dearer[i] > 0.0)
            end_dearer(&life, &larger_is_better, 4, 22, dearer[i]);
        else
            end(&life, &larger_is_better, 4, 22, true);
        buffer_init(&bytes[i], 1 << 16);
        decider_save(&life.decider, &bytes[i]);
        finish(&life);
        assert_int_equal(bytes[i].length, bytes[0].length);
        assert_memory_equal(bytes[i].data, bytes[0].data, bytes[0].length);
    }
    for (size_t i = 0; i < COUNT(dearer); i++)
        buffer_deinit(&bytes[i]);
}

/* What does not fit, or was given up, is not proposed, even if nothing else is known. */
static void test_barred(void **state)
{
    struct proposal proposal;
    struct life life;

    (void)state;
    begin(&life, 0.0);
    tell(&life, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = DEFAULT});
    propose(&life, 0, &proposal);
    assert_int_equal(proposal.batch, DEFAULT - 1);
    tell(&life, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = DEFAULT - 1});
    propose(&life, 0, &proposal);
    assert_int_equal(proposal.batch, 0);
    tell(&life, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = 0});
    assert_int_equal(decider_propose(&life.decider, 0, 0, &proposal, NULL), FLY_EEXHAUSTED);
    finish(&life);
}

/* The state as bytes; their length. */
static size_t state_bytes(const struct life *life, struct buffer *bytes)
{
    buffer_init(bytes, 1 << 16);
    decider_save(&life->decider, bytes);
    return bytes->length;
}

/* A run that it did not propose tells how many epochs its batch size needs, and only if it reached its
 * target. */
static void test_seen(void **state)
{
    struct fly_trial ended = {.batch = DEFAULT,
                              .limit_w = 200,
                              .outcome = TRIAL_NOT_REACHED,
                              .epochs = 12,
                              .energy_j = 1.0,
                              .time_s = 1.0};
    const struct event seen = {.kind = EVENT_TRIAL_SEEN, .ended = &ended};
    struct buffer before, after;
    struct life life;

    (void)state;
    begin(&life, 0.0);
    recur(&life, &larger_is_better, NULL, NULL);
    state_bytes(&life, &before);
    tell(&life, &seen);
    assert_int_equal(state_bytes(&life, &after), before.length);
    assert_memory_equal(after.data, before.data, before.length);
    buffer_deinit(&after);
    ended.outcome = TRIAL_REACHED;
    tell(&life, &seen);
    assert_int_equal(state_bytes(&life, &after), before.length);
    assert_memory_not_equal(after.data, before.data, before.length);
    buffer_deinit(&after);
    buffer_deinit(&before);
    finish(&life);
}

/* More batch sizes than it reckons with, or a horizon that is none, are refused. */
static void test_refusals(void **state)
{
    enum { TOO_MANY = 65 };
    static struct batch_choice many[TOO_MANY];
    const struct job_spec large = {.name = "large",
                                   .batches = many,
                                   .batch_count = TOO_MANY,
                                   .max_epochs = 10,
                                   .max_power_w = 200.0,
                                   .eta = 0.5};
    struct policy_parameters parameters = {.beta = 2.0};
    struct fly_error error;
    struct decider decider;
    struct arena arena;

    (void)state;
    for (size_t i = 0; i < TOO_MANY; i++)
        many[i] = (struct batch_choice){(uint32_t)i + 1, limits_w, LIMITS};
    arena_init(&arena, 1 << 20);
    assert_int_equal(decider_init(&decider, &large, &batch_policy_bayes, &parameters, &arena, &error),
                     FLY_EUSAGE);
    check_contains(error.text, "at most 64 batch sizes");
    parameters.horizon = NAN;
    assert_int_equal(decider_init(&decider, &spec, &batch_policy_bayes, &parameters, &arena, &error),
                     FLY_EUSAGE);
    check_contains(error.text, "horizon");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_bad_default),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_left_after_profile),
        cmocka_unit_test(test_barred),
        cmocka_unit_test(test_short_run),
        cmocka_unit_test(test_seen),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
