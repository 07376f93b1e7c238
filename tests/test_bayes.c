/* SPDX-License-Identifier: Apache-2.0 */
/* The policy `bayes` in small worlds, through the decider as live jobs and simulations drive it. */
#include <math.h>

#include "test.h"

#include "policy/decider.h"

enum { N = 6, DEFAULT = 2, LIMITS = 2, MAX_EPOCHS = 100, TRIES_MAX = 20, TOO_MANY = 65 };

static const double limits_w[LIMITS] = {100, 200};
static const struct batch_choice batches[N] = {{16, limits_w, LIMITS},  {32, limits_w, LIMITS},
                                               {64, limits_w, LIMITS},  {128, limits_w, LIMITS},
                                               {256, limits_w, LIMITS}, {512, limits_w, LIMITS}};
static const struct job_spec spec = {.name = "job",
                                     .batches = batches,
                                     .batch_count = N,
                                     .default_batch = DEFAULT,
                                     .max_epochs = MAX_EPOCHS,
                                     .max_power_w = 200.0,
                                     .eta = 0.5};

/* A world: epochs to the target, and seconds of an epoch, by batch size; epochs of 0 never reach it. */
struct world {
    double epochs[N], epoch_s[N];
    double scatter; /* relative, uniform */
    double level;   /* factor of all epochs */
};

static const struct world larger_is_better = {
    .epochs = {20, 20, 20, 20, 22, 60}, .epoch_s = {160, 120, 100, 90, 85, 82}, .level = 1.0};

struct life {
    struct arena arena;
    struct decider decider;
    uint64_t recurrences, random;
};

static void begin(struct life *life, double horizon)
{
    struct fly_error error;

    *life = (struct life){.random = 1};
    arena_init(&life->arena, 1 << 20);
    if (decider_init(&life->decider, &spec, &batch_policy_bayes,
                     &(struct policy_parameters){.beta = 2.0, .horizon = horizon}, &life->arena, &error) < 0)
        fail_msg("%s", error.text);
}

static void tell(struct life *life, const struct event *event)
{
    assert_int_equal(decider_fold(&life->decider, event, NULL), 0);
}

static void propose(struct life *life, uint32_t try_number, struct proposal *out_proposal)
{
    assert_int_equal(decider_propose(&life->decider, life->recurrences, try_number, out_proposal, NULL), 0);
    tell(life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal});
}

static double epoch_energy_j(const struct world *world, size_t batch)
{
    return 200.0 * world->epoch_s[batch];
}

static void profile(struct life *life, const struct world *world, size_t batch)
{
    double seconds = world->epoch_s[batch];
    const struct fly_power_point points[LIMITS] = {{100, 100, 3.0 * seconds}, {200, 200, seconds}};

    tell(life,
         &(struct event){.kind = EVENT_PROFILE_MEASURED,
                         .measured = &(struct profile_measured){
                             .batch = batch, .points = points, .count = LIMITS, .units_per_epoch = 1.0}});
}

static uint32_t cap(const struct life *life, const struct world *world, size_t batch)
{
    uint32_t epochs = 0;

    assert_int_equal(decider_epoch_cap(&life->decider, batch, epoch_energy_j(world, batch),
                                       world->epoch_s[batch], &epochs, NULL),
                     0);
    assert_true(epochs >= 1 && epochs <= MAX_EPOCHS);
    return epochs;
}

/* As it ends under limits under which it costs so many times as much, which is told. */
static void end_dearer(struct life *life, const struct world *world, size_t batch, double epochs,
                       double dearer)
{
    const struct trial_ended ended = {.trial = life->decider.trials - 1,
                                      .recurrence = life->recurrences,
                                      .batch = batch,
                                      .limit_w = 200,
                                      .outcome = TRIAL_REACHED,
                                      .epochs = epochs,
                                      .energy_j = epochs * dearer * epoch_energy_j(world, batch),
                                      .time_s = epochs * dearer * world->epoch_s[batch],
                                      .dearer = dearer};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

static void end(struct life *life, const struct world *world, size_t batch, double epochs, bool reached)
{
    const struct trial_ended ended = {.trial = life->decider.trials - 1,
                                      .recurrence = life->recurrences,
                                      .batch = batch,
                                      .limit_w = 200,
                                      .outcome = reached ? TRIAL_REACHED : TRIAL_NOT_REACHED,
                                      .epochs = epochs,
                                      .energy_j = epochs * epoch_energy_j(world, batch),
                                      .time_s = epochs * world->epoch_s[batch]};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

/* Runs one recurrence; returns its tries, and the first and the last batch size. */
static uint32_t recur(struct life *life, const struct world *world, size_t *out_first, size_t *out_last)
{
    tell(life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    for (uint32_t i = 0; i < TRIES_MAX; i++) {
        struct proposal proposal;
        double needed;
        uint32_t epochs;
        bool reached;

        propose(life, i, &proposal);
        if (decider_wants_profile(&life->decider, &proposal))
            profile(life, world, proposal.batch);
        check_double(decider_limit_w(&life->decider, &proposal), 200.0);
        epochs = proposal.uncapped ? MAX_EPOCHS : cap(life, world, proposal.batch);
        needed = ceil(world->level * world->epochs[proposal.batch] *
                      (1.0 + world->scatter * (test_uniform(&life->random) - 0.5)));
        reached = needed > 0.0 && needed <= epochs;
        end(life, world, proposal.batch, reached ? needed : epochs, reached);
        if (i == 0 && out_first != NULL)
            *out_first = proposal.batch;
        if (reached) {
            if (out_last != NULL)
                *out_last = proposal.batch;
            life->recurrences++;
            return i + 1;
        }
    }
    fail_msg("recurrence %llu did not end", (unsigned long long)life->recurrences);
    return 0;
}

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
    arena_deinit(&life.arena);
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
    arena_deinit(&life.arena);
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
    arena_deinit(&life.arena);
}

/* A trial whose program ended by itself. */
static void end_early(struct life *life, const struct world *world, size_t batch, double epochs)
{
    const struct trial_ended ended = {.trial = life->decider.trials - 1,
                                      .batch = batch,
                                      .limit_w = 200,
                                      .outcome = TRIAL_STOPPED,
                                      .by_itself = true,
                                      .epochs = epochs,
                                      .energy_j = epochs * epoch_energy_j(world, batch),
                                      .time_s = epochs * world->epoch_s[batch]};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

/*
 * Programs that end by themselves: the best known batch size keeps its place and its bound, and where nothing
 * has reached its target yet others get their turn.
 */
static void test_early_ends(void **state)
{
    struct proposal proposal;
    struct life life;
    bool others = false;
    uint32_t before;

    (void)state;
    begin(&life, 0.0);
    for (size_t i = 0; i < 20; i++)
        recur(&life, &larger_is_better, NULL, NULL);
    before = cap(&life, &larger_is_better, 3);
    for (size_t i = 0; i < 5; i++) {
        propose(&life, 1, &proposal);
        assert_int_equal(proposal.batch, 3);
        end_early(&life, &larger_is_better, 3, 15);
    }
    assert_true(cap(&life, &larger_is_better, 3) >= before && cap(&life, &larger_is_better, 3) < 2 * before);
    arena_deinit(&life.arena);

    begin(&life, 0.0);
    for (size_t i = 0; i < 4; i++) {
        propose(&life, 0, &proposal);
        others |= proposal.batch != DEFAULT;
        end_early(&life, &larger_is_better, proposal.batch, 5);
    }
    assert_true(others);
    arena_deinit(&life.arena);
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
        arena_deinit(&life.arena);
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
            arena_deinit(&life.arena);
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
    arena_deinit(&life.arena);
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
        arena_deinit(&life.arena);
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
    arena_deinit(&life.arena);
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
    struct trial_ended ended = {.batch = DEFAULT,
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
    arena_deinit(&life.arena);
}

/* More batch sizes than it reckons with, or a horizon that is none, are refused. */
static void test_refusals(void **state)
{
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
        cmocka_unit_test(test_choices),    cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_first),      cmocka_unit_test(test_bad_default),
        cmocka_unit_test(test_early_ends), cmocka_unit_test(test_retry),
        cmocka_unit_test(test_level),      cmocka_unit_test(test_left_after_profile),
        cmocka_unit_test(test_barred),     cmocka_unit_test(test_short_run),
        cmocka_unit_test(test_seen),       cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
