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
    const struct profile_measured measured = {.points = points, .count = LIMITS};
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

/* ---- a job in which everything happens, at random ---- */

enum { BATCHES = 5, EVENTS = 400, STATE_BYTES = 1 << 20 };

struct life {
    struct arena arena;
    struct decider decider;
};

static const struct batch_choice five_batches[BATCHES] = {{16, limits_w, LIMITS},
                                                          {32, limits_w, LIMITS},
                                                          {64, limits_w, LIMITS},
                                                          {128, limits_w, LIMITS},
                                                          {256, limits_w, LIMITS}};
static const struct fly_objective energy_within = {
    .kind = FLY_OBJECTIVE_ENERGY, .eta = 0.5, .max_slowdown = 1.2};

static void begin(struct life *life, const struct job_spec *job, const struct batch_policy *policy,
                  const struct policy_parameters *parameters)
{
    arena_init(&life->arena, 64 << 20);
    assert_int_equal(decider_init(&life->decider, job, policy, parameters, &life->arena, NULL), 0);
}

static void finish(struct life *life)
{
    decider_deinit(&life->decider);
    arena_deinit(&life->arena);
}

static void tell(struct life *life, const struct event *event)
{
    struct fly_error error;

    if (decider_fold(&life->decider, event, &error) < 0)
        fail_msg("%s", error.text);
}

static void tell_profile(struct life *life, size_t batch)
{
    const struct fly_power_point points[LIMITS] = {
        {100, 95, 1.5 + (double)batch}, {150, 130, 1.1 + (double)batch}, {200, 180, 1.0 + (double)batch}};

    tell(life,
         &(struct event){.kind = EVENT_PROFILE_MEASURED,
                         .measured = &(struct profile_measured){
                             .batch = batch, .points = points, .count = LIMITS, .units_per_epoch = 1.0}});
}

/* One whole trial, as it was proposed; what befalls it is drawn. */
static void live_through(struct life *life, const struct proposal *proposal, uint64_t recurrence,
                         uint64_t *random)
{
    /* Mostly good; at times each of the other ends. */
    enum trial_outcome outcome =
        (enum trial_outcome)(test_uniform(random) < 0.7 ? 0 : test_below(random, TRIAL_OUTCOME_COUNT));
    struct fly_trial ended = {.trial = life->decider.trials,
                              .recurrence = recurrence,
                              .batch = proposal->batch,
                              .outcome = outcome,
                              .epochs = 1.0 + test_below(random, 19),
                              .energy_j = 1000.0 * (1.0 + (double)proposal->batch + test_uniform(random)),
                              .time_s = 10.0 * (1.0 + test_uniform(random))};

    tell(life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    tell(life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = proposal});
    if (decider_wants_profile(&life->decider, proposal))
        tell_profile(life, proposal->batch);
    ended.limit_w = decider_limit_w(&life->decider, proposal);
    if (outcome == TRIAL_OUT_OF_MEMORY && proposal->batch < 3)
        ended.outcome = TRIAL_CRASHED; /* the smaller ones always fit */
    ended.crashed = ended.outcome == TRIAL_CRASHED;
    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
    if (ended.outcome == TRIAL_OUT_OF_MEMORY)
        tell(life, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = proposal->batch});
    if (ended.outcome == TRIAL_EXPIRED && test_below(random, 2) == 0) {
        ended.outcome = TRIAL_REACHED;
        ended.late = true;
        tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
    }
}

static bool same_proposal(int one_code, const struct proposal *one, int other_code,
                          const struct proposal *other)
{
    return one_code == other_code &&
           (one_code < 0 || (one->batch == other->batch && one->limit_rule == other->limit_rule &&
                             one->limit_w == other->limit_w && one->reason == other->reason &&
                             one->random_after.state == other->random_after.state));
}

/* Goes through bytes and back; then both must decide alike. */
static void reincarnate(struct life *life, const struct job_spec *job, const struct batch_policy *policy,
                        const struct policy_parameters *parameters)
{
    struct life loaded;
    struct buffer bytes, again;
    struct bytes_reader reader;

    buffer_init(&bytes, STATE_BYTES);
    buffer_init(&again, STATE_BYTES);
    decider_save(&life->decider, &bytes);
    assert_int_equal(bytes.error, 0);
    begin(&loaded, job, policy, parameters);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_int_equal(decider_load(&loaded.decider, &reader, NULL), 0);
    assert_true(bytes_whole(&reader));
    decider_save(&loaded.decider, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.data, bytes.data, bytes.length);
    /* Half of it is no state. */
    if (bytes.length > 16) {
        struct life cut;

        begin(&cut, job, policy, parameters);
        reader = bytes_reader(bytes.data, bytes.length / 2);
        assert_int_equal(decider_load(&cut.decider, &reader, NULL), 1);
        finish(&cut);
    }
    buffer_deinit(&again);
    buffer_deinit(&bytes);
    finish(life);
    *life = loaded;
    life->decider.arena = &life->arena;
}

/* Two lives with equal events: one goes through a snapshot now and then. They never differ. */
static void test_snapshots(void **state)
{
    static const struct {
        const struct batch_policy *policy;
        struct policy_parameters parameters;
        const struct fly_objective *objective;
    } rows[] = {
        {&batch_policy_default, {.beta = 2.0}, NULL},
        {&batch_policy_fixed, {.beta = 2.0, .fixed_batch = 2, .fixed_limit_w = 150}, NULL},
        {&batch_policy_grid, {.beta = 2.0}, NULL},
        {&batch_policy_bayes, {.beta = 2.0}, NULL},
        {&batch_policy_bayes, {.beta = 2.0, .horizon = 200.0, .overlapping = true}, &energy_within},
        {&batch_policy_zeus, {.beta = 2.0, .seed = 3}, NULL},
        {&batch_policy_zeus, {.beta = 2.0, .seed = 4, .window = 5, .overlapping = true}, &energy_within},
        {&batch_policy_zeus,
         {.beta = 2.0, .seed = 5, .generator = GENERATOR_NUMPY, .overlapping = true},
         NULL},
    };

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        const struct job_spec job = {.name = "job",
                                     .batches = five_batches,
                                     .batch_count = BATCHES,
                                     .default_batch = 2,
                                     .max_epochs = 20,
                                     .max_power_w = 200.0,
                                     .eta = 0.5,
                                     .objective = rows[row].objective};
        struct life steady, reborn;
        uint64_t random = row + 1;

        begin(&steady, &job, rows[row].policy, &rows[row].parameters);
        begin(&reborn, &job, rows[row].policy, &rows[row].parameters);
        for (uint64_t i = 0; i < EVENTS; i++) {
            struct proposal one, other;
            int one_code = decider_propose(&steady.decider, i, 0, &one, NULL);
            int other_code = decider_propose(&reborn.decider, i, 0, &other, NULL);
            uint64_t luck = random;

            if (!same_proposal(one_code, &one, other_code, &other))
                fail_msg("row %zu, event %llu: proposals differ", row, (unsigned long long)i);
            if (one_code < 0)
                break;
            live_through(&steady, &one, i, &luck);
            live_through(&reborn, &one, i, &random);
            assert_int_equal(luck, random);
            if (test_below(&random, 5) == 0)
                reincarnate(&reborn, &job, rows[row].policy, &rows[row].parameters);
        }
        finish(&steady);
        finish(&reborn);
    }
}

/* What does not fit is never proposed, and the way down goes on past it. */
static void test_exclusion(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_grid, &batch_policy_zeus};

    (void)state;
    for (size_t p = 0; p < COUNT(policies); p++) {
        for (size_t fits = 1; fits < BATCHES; fits++) {
            const struct job_spec job = {.name = "job",
                                         .batches = five_batches,
                                         .batch_count = BATCHES,
                                         .default_batch = 3,
                                         .max_epochs = 20,
                                         .max_power_w = 200.0,
                                         .eta = 0.5};
            const struct policy_parameters parameters = {.beta = 2.0, .overlapping = true};
            size_t first = BATCHES, tried = 0, failures = 0;
            struct life life;

            begin(&life, &job, policies[p], &parameters);
            for (uint64_t i = 0; i < 100; i++) {
                struct fly_trial ended = {.trial = i, .energy_j = 1000, .time_s = 5};
                struct proposal proposal;

                assert_int_equal(decider_propose(&life.decider, i, 0, &proposal, NULL), 0);
                assert_true(proposal.batch < first);
                tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
                tell_profile(&life, proposal.batch);
                ended.batch = proposal.batch;
                ended.limit_w = decider_limit_w(&life.decider, &proposal);
                ended.outcome = proposal.batch < fits ? TRIAL_REACHED : TRIAL_OUT_OF_MEMORY;
                tell(&life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
                if (ended.outcome == TRIAL_OUT_OF_MEMORY) {
                    failures++;
                    first = proposal.batch;
                    tell(&life, &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = first});
                } else {
                    tried |= (size_t)1 << proposal.batch;
                }
            }
            assert_int_equal(tried, ((size_t)1 << fits) - 1);
            assert_true(failures >= 1 && failures <= BATCHES - fits);
            finish(&life);
        }
    }
}

/* A batch size that always crashes is given up after a few trials, wherever it lies; the others are found. */
static void test_given_up(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_grid, &batch_policy_zeus,
                                                          &batch_policy_zeus_server};
    enum { DEFAULT = 2 };

    (void)state;
    for (size_t p = 0; p < COUNT(policies) * BATCHES; p++) {
        const struct batch_policy *policy = policies[p / BATCHES];
        const struct job_spec job = {.name = "job",
                                     .batches = five_batches,
                                     .batch_count = BATCHES,
                                     .default_batch = DEFAULT,
                                     .max_epochs = 20,
                                     .max_power_w = 200.0,
                                     .eta = 0.5};
        const struct policy_parameters parameters = {
            .beta = 2.0, .overlapping = true, .pruning_rounds = 2, .explorations = 2};
        size_t bad = p % BATCHES, tried = 0, crashes = 0;
        struct life life;

        if (bad == DEFAULT)
            continue;
        begin(&life, &job, policy, &parameters);
        for (uint64_t i = 0; i < 80; i++) {
            struct fly_trial ended = {.trial = life.decider.trials, .energy_j = 1000, .time_s = 5};
            struct proposal proposal;

            assert_int_equal(decider_propose(&life.decider, i, 0, &proposal, NULL), 0);
            assert_false(decider_gave_up(&life.decider, proposal.batch));
            tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = &proposal});
            tell_profile(&life, proposal.batch);
            ended.batch = proposal.batch;
            ended.limit_w = decider_limit_w(&life.decider, &proposal);
            ended.crashed = proposal.batch == bad;
            ended.outcome = ended.crashed ? TRIAL_CRASHED : TRIAL_REACHED;
            tell(&life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
            crashes += ended.crashed;
            if (ended.crashed) { /* what runs in its place trains */
                ended.crashed = false;
                ended.batch = DEFAULT;
                ended.outcome = TRIAL_REACHED;
                tell(&life, &(struct event){.kind = EVENT_TRIAL_PROPOSED,
                                            .proposed = &(struct proposal){.batch = DEFAULT}});
                ended.trial = life.decider.trials - 1;
                tell(&life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
            } else {
                tried |= (size_t)1 << proposal.batch;
            }
            if (policy->save != NULL && i % 7 == 0)
                reincarnate(&life, &job, policy, &parameters);
        }
        if (crashes != CRASH_STREAK_LEAST || tried != (((size_t)1 << BATCHES) - 1) - ((size_t)1 << bad))
            fail_msg("policy %s, batch %zu: %zu crashes, tried %zx", policy->name, bad, crashes, tried);
        finish(&life);
    }
}

/* Who crashes and who trains, in turn, and which batch size is given up by that; 0: none. */
static void test_crash_streaks(void **state)
{
    static const struct {
        const char *course; /* a letter for a batch size; a capital crashes */
        const char *given_up;
    } rows[] = {
        {"AAAAAAAAAA", ""},                                      /* there is no other */
        {"AAABBBCCC", ""},                                       /* everything crashes */
        {"bbbbAAA", ""},                                         /* nothing else has run since */
        {"AAAb", ""},                                            /* not before it crashes again */
        {"AbAA", "a"},       {"AAbA", "a"},        {"AbAb", ""}, /* two are not enough */
        {"AbAabA", ""},                                          /* it trained in between */
        {"AbBAA", ""},                                           /* others crash as well */
        {"AbBAAAA", "a"},    {"ABABABABABAb", ""}, {"AcBcAcBcAcBcAcBc", "ab"},
        {"AbAAbbbaAb", "a"}, /* what was given up stays so */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct crash_streak streaks[3] = {{0}};
        char given_up[4] = "";

        for (const char *at = rows[i].course; *at != '\0'; at++) {
            bool crashed = *at < 'a';

            crash_streaks_take(streaks, COUNT(streaks), (size_t)(*at - (crashed ? 'A' : 'a')), crashed);
        }
        for (size_t b = 0, n = 0; b < COUNT(streaks); b++) {
            if (streaks[b].given_up)
                given_up[n++] = (char)('a' + b);
        }
        if (strcmp(given_up, rows[i].given_up) != 0)
            fail_msg("%s: given up '%s', expected '%s'", rows[i].course, given_up, rows[i].given_up);
    }
}

/* The objective's bound holds for power limits; without an objective eta alone chooses. */
static void test_objective(void **state)
{
    static const struct {
        struct fly_objective objective;
        double limit_w;
    } rows[] = {
        {{FLY_OBJECTIVE_ENERGY, 0.5, INFINITY}, 100},  {{FLY_OBJECTIVE_ENERGY, 0.5, 1.2}, 150},
        {{FLY_OBJECTIVE_ENERGY, 0.5, 1.0}, 200},       {{FLY_OBJECTIVE_TIME, 0.5, INFINITY}, 200},
        {{FLY_OBJECTIVE_LOWEST_LIMIT, 0.5, 1.2}, 150}, {{FLY_OBJECTIVE_COST, 1.0, INFINITY}, 100},
        {{FLY_OBJECTIVE_COST, 0.0, INFINITY}, 200},
    };
    static const struct fly_power_point points[LIMITS] = {{100, 80, 1.5}, {150, 130, 1.1}, {200, 180, 1.0}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct job_spec job = {.name = "job",
                                     .batches = batches,
                                     .batch_count = 1,
                                     .max_epochs = 20,
                                     .max_power_w = 400.0,
                                     .gpu_count = 2,
                                     .eta = objective_eta(&rows[i].objective),
                                     .objective = &rows[i].objective};
        const struct proposal proposal = {.limit_rule = LIMIT_PROFILED};
        struct life life;

        begin(&life, &job, &batch_policy_zeus, &(struct policy_parameters){.beta = 2.0});
        tell(&life,
             &(struct event){.kind = EVENT_PROFILE_MEASURED,
                             .measured = &(struct profile_measured){.points = points, .count = LIMITS}});
        check_double(decider_limit_w(&life.decider, &proposal), rows[i].limit_w);
        finish(&life);
    }
}

/* Target before the epochs before the cost; without a cap only the first two. */
static void test_judge(void **state)
{
    static const struct {
        uint32_t epoch, epochs;
        bool reached, capped;
        enum verdict verdict;
    } rows[] = {
        {1, 5, false, true, VERDICT_GO_ON},    {5, 5, false, true, VERDICT_COST},
        {5, 5, false, false, VERDICT_GO_ON},   {5, 5, true, true, VERDICT_REACHED},
        {20, 20, true, true, VERDICT_REACHED}, {20, 20, false, true, VERDICT_EPOCHS},
        {20, 5, false, false, VERDICT_EPOCHS},
    };
    struct life life;

    (void)state;
    begin(&life, &spec, &batch_policy_zeus, &(struct policy_parameters){.beta = 2.0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct epoch_reported reported = {.epoch = rows[i].epoch, .reached = rows[i].reached};

        assert_int_equal(decider_judge(&life.decider, &(struct progress_question){&reported, rows[i].epochs,
                                                                                  rows[i].capped}),
                         rows[i].verdict);
    }
    finish(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_policy), cmocka_unit_test(test_states_are_destroyed),
        cmocka_unit_test(test_snapshots),    cmocka_unit_test(test_exclusion),
        cmocka_unit_test(test_objective),    cmocka_unit_test(test_judge),
        cmocka_unit_test(test_given_up),     cmocka_unit_test(test_crash_streaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
