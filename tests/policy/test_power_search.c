/* SPDX-License-Identifier: Apache-2.0 */
/* The just-in-time power-limit search against a made-up GPU whose answers are known. */
#include "test.h"

#include <stdlib.h>

#include <flyball/power_search.h>
#include <flyball/power_selector.h>

static const double limits_w[] = {100.0, 125.0, 150.0, 175.0, 200.0, 225.0, 250.0};
enum { LIMITS = COUNT(limits_w) };

/* A GPU that draws and takes what its limit says, and counts what it is told. */
struct gpu {
    double limit_w;
    double energy_j, time_s;               /* since ever */
    double window_energy_j, window_time_s; /* when the window was opened */
    bool window_open;
    unsigned sets, windows, step_calls;
    unsigned failing;     /* windows that will not be known */
    double wanted_time_s; /* a limit measured for less is measured on, */
    double limit_time_s;
    unsigned extended; /* so many times; */
    bool partly;       /* the last time at an epoch's end */
};

static double step_time_s(double limit_w)
{
    return 0.1 + 2.0 / (limit_w - 60.0);
}

static double step_power_w(double limit_w)
{
    return limit_w < 210.0 ? limit_w - 4.0 : 206.0;
}

static void carry_out(struct gpu *gpu, struct fly_power_search *search, struct fly_power_search_action action)
{
    while (action.close_window) {
        double energy_j = gpu->energy_j - gpu->window_energy_j, time_s = gpu->time_s - gpu->window_time_s;
        bool fails = gpu->failing > 0;

        assert_true(gpu->window_open);
        assert_false(action.set_limit || action.open_window);
        if (gpu->limit_time_s + time_s < gpu->wanted_time_s && !gpu->partly) {
            gpu->extended++;
            assert_int_equal(fly_power_search_extend(search, 7, &action), 0);
            gpu->partly = action.close_window;
            continue;
        }
        gpu->partly = false;
        gpu->limit_time_s += time_s;
        gpu->window_open = false;
        gpu->failing -= fails;
        assert_int_equal(fly_power_search_measured(search, fails ? NAN : energy_j, time_s, &action), 0);
    }
    if (action.set_limit) {
        assert_false(gpu->window_open);
        gpu->limit_time_s = action.limit_w == gpu->limit_w ? gpu->limit_time_s : 0.0;
        gpu->limit_w = action.limit_w;
        gpu->sets++;
    }
    if (action.open_window) {
        gpu->window_open = true;
        gpu->windows++;
        gpu->window_energy_j = gpu->energy_j;
        gpu->window_time_s = gpu->time_s;
    }
    if (gpu->sets > 0)
        check_double(fly_power_search_limit_w(search), gpu->limit_w);
}

static void run_step(struct gpu *gpu, struct fly_power_search *search)
{
    struct fly_power_search_action action;

    gpu->step_calls++;
    assert_int_equal(fly_power_search_step_begin(search, &action), 0);
    carry_out(gpu, search, action);
    gpu->energy_j += step_power_w(gpu->limit_w) * step_time_s(gpu->limit_w);
    gpu->time_s += step_time_s(gpu->limit_w);
}

static void end_epoch(struct gpu *gpu, struct fly_power_search *search)
{
    struct fly_power_search_action action;

    assert_int_equal(fly_power_search_epoch_end(search, &action), 0);
    carry_out(gpu, search, action);
    assert_false(gpu->window_open);
    gpu->energy_j += 1e4; /* evaluation, which no window may see */
    gpu->time_s += 50.0;
}

static struct fly_power_search_options options_of(enum fly_objective_kind kind)
{
    return (struct fly_power_search_options){
        .size = sizeof(struct fly_power_search_options),
        .limits_w = limits_w,
        .limit_count = LIMITS,
        .wait_steps = 1,
        .warmup_steps = 10,
        .profile_steps = 40,
        .objective = {.kind = kind, .eta = 0.5, .max_slowdown = INFINITY},
        .max_power_w = 250.0,
    };
}

static struct fly_power_search *search_new(const struct fly_power_search_options *options)
{
    struct fly_power_search *search;
    struct fly_error error;

    if (fly_power_search_new(options, &search, &error) < 0)
        fail_msg("%s", error.text);
    return search;
}

static double exhaustive_choice_w(const struct fly_power_search_options *options)
{
    struct fly_power_point points[LIMITS];
    size_t best;

    for (size_t i = 0; i < LIMITS; i++)
        points[i] =
            (struct fly_power_point){limits_w[i], step_power_w(limits_w[i]), step_time_s(limits_w[i])};
    assert_int_equal(fly_power_select(points, LIMITS, &options->objective, options->max_power_w, &best, NULL),
                     0);
    return points[best].limit_w;
}

static void check_profile(const struct fly_power_search *search)
{
    struct fly_power_point points[LIMITS];

    assert_int_equal(fly_power_search_profile(search, points, LIMITS), LIMITS);
    for (size_t i = 0; i < LIMITS; i++) {
        double limit_w = limits_w[LIMITS - 1 - i];

        check_double(points[i].limit_w, limit_w);
        check_close(points[i].power_w, step_power_w(limit_w), 1e-8);
        check_close(points[i].time_s, step_time_s(limit_w), 1e-8);
    }
}

/* wait + 1 + limits * (warm-up + profile) step beginnings, as the published optimizer needs. */
static void test_published_step_count(void **state)
{
    const struct fly_power_search_options options = options_of(FLY_OBJECTIVE_COST);
    struct fly_power_search *search = search_new(&options);
    struct gpu gpu = {.limit_w = 250.0};

    (void)state;
    assert_int_equal(fly_power_search_state(search), FLY_POWER_SEARCH_READY);
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE)
        run_step(&gpu, search);
    assert_int_equal(gpu.step_calls, 352);
    assert_int_equal(gpu.windows, LIMITS);
    check_profile(search);
    check_double(gpu.limit_w, exhaustive_choice_w(&options));
    for (int i = 0; i < 100; i++)
        run_step(&gpu, search);
    end_epoch(&gpu, search);
    assert_int_equal(gpu.windows, LIMITS);
    assert_int_equal(gpu.sets, LIMITS + 1);
    fly_power_search_free(search);
}

/* However short the epochs are, the profile gets done, is exact, and the choice is the exhaustive one. */
static void test_epochs_of_any_length(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct fly_power_search_options options = options_of((enum fly_objective_kind)(round % 4));
        struct fly_power_search *search;
        struct gpu gpu = {.limit_w = 250.0};
        uint32_t longest = 1 + test_below(&random, round % 2 ? 4 : 100);

        options.wait_steps = test_below(&random, 3);
        options.warmup_steps = test_below(&random, 12);
        options.profile_steps = 1 + test_below(&random, 50);
        options.objective.max_slowdown = round % 3 ? 1.0 + test_uniform(&random) : INFINITY;
        search = search_new(&options);
        while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE) {
            for (uint32_t steps = 1 + test_below(&random, longest); steps > 0; steps--)
                run_step(&gpu, search);
            end_epoch(&gpu, search);
            assert_true(gpu.step_calls < 10000);
        }
        check_profile(search);
        check_double(gpu.limit_w, exhaustive_choice_w(&options));
        /* Each limit costs its warm-up and window and no more, but for the step on which an epoch cut it. */
        assert_true(gpu.step_calls <= options.wait_steps + 1 +
                                          LIMITS * (options.warmup_steps + options.profile_steps + 1) +
                                          longest);
        fly_power_search_free(search);
    }
}

static void test_unknown_measurements(void **state)
{
    struct fly_power_search_options options = options_of(FLY_OBJECTIVE_ENERGY);
    struct fly_power_search *search = search_new(&options);
    struct fly_power_point points[LIMITS];
    struct gpu gpu = {.limit_w = 250.0, .failing = FLY_POWER_SEARCH_TRIES - 1};

    (void)state;
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE)
        run_step(&gpu, search);
    check_profile(search); /* tried again and known in the end */
    fly_power_search_free(search);

    search = search_new(&options);
    gpu = (struct gpu){.limit_w = 250.0, .failing = FLY_POWER_SEARCH_TRIES};
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE)
        run_step(&gpu, search);
    assert_int_equal(fly_power_search_profile(search, points, LIMITS), LIMITS - 1);
    check_double(points[0].limit_w, 225.0); /* the highest was left out */
    fly_power_search_free(search);

    search = search_new(&options);
    gpu = (struct gpu){.limit_w = 250.0, .failing = 1000};
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE) {
        run_step(&gpu, search);
        if (gpu.step_calls % 7 == 0)
            end_epoch(&gpu, search);
        assert_true(gpu.step_calls < 10000);
    }
    assert_int_equal(fly_power_search_profile(search, NULL, 0), 0);
    check_double(gpu.limit_w, 250.0); /* nothing is known, so nothing is limited */
    fly_power_search_free(search);
}

static void test_saved_profile(void **state)
{
    struct fly_power_search_options options = options_of(FLY_OBJECTIVE_COST);
    struct fly_power_search *search = search_new(&options);
    struct fly_power_point points[LIMITS];
    struct gpu gpu = {.limit_w = 250.0};

    (void)state;
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE)
        run_step(&gpu, search);
    assert_int_equal(fly_power_search_profile(search, points, LIMITS), LIMITS);
    fly_power_search_free(search);

    options.profile = points;
    options.profile_count = LIMITS;
    options.objective.kind = FLY_OBJECTIVE_TIME; /* the same profile serves another objective */
    search = search_new(&options);
    assert_int_equal(fly_power_search_state(search), FLY_POWER_SEARCH_DONE);
    gpu = (struct gpu){.limit_w = 100.0};
    run_step(&gpu, search);
    assert_int_equal(gpu.windows, 0);
    check_double(gpu.limit_w, exhaustive_choice_w(&options));
    run_step(&gpu, search);
    assert_int_equal(gpu.sets, 1);
    fly_power_search_free(search);

    options.profile_count = 3; /* half a profile: only the rest is measured */
    search = search_new(&options);
    gpu = (struct gpu){.limit_w = 250.0};
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE)
        run_step(&gpu, search);
    assert_int_equal(gpu.windows, LIMITS - 3);
    check_profile(search);
    fly_power_search_free(search);
}

static void test_refused(void **state)
{
    const struct fly_power_point foreign = {123.0, 100.0, 1.0}, empty = {100.0, 0.0, 1.0};
    const double doubled[] = {100.0, 100.0}, negative[] = {-1.0}, unknown[] = {NAN};
    struct fly_power_search_options base = options_of(FLY_OBJECTIVE_COST), rows[8];
    static const char *const words[] = {"size",    "0 power limits", "twice", "above 0",
                                        "above 0", "profile_steps",  "123 W", "0 W"};
    static const int codes[] = {FLY_EUSAGE, FLY_EUSAGE, FLY_EUSAGE, FLY_EUSAGE,
                                FLY_EUSAGE, FLY_EUSAGE, FLY_EDATA,  FLY_EDATA};
    struct fly_power_search *search = NULL;
    struct fly_power_search_action action;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = base;
    rows[0].size = 8;
    rows[1].limit_count = 0;
    rows[2].limits_w = doubled, rows[2].limit_count = 2;
    rows[3].limits_w = negative, rows[3].limit_count = 1;
    rows[4].limits_w = unknown, rows[4].limit_count = 1;
    rows[5].profile_steps = 0;
    rows[6].profile = &foreign, rows[6].profile_count = 1;
    rows[7].profile = &empty, rows[7].profile_count = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_error error;

        assert_int_equal(fly_power_search_new(&rows[i], &search, &error), codes[i]);
        assert_null(search);
        check_contains(error.text, words[i]);
    }
    base.objective.eta = 2.0;
    assert_int_equal(fly_power_search_new(&base, &search, NULL), FLY_EUSAGE);
    base.objective.eta = 0.5;
    search = search_new(&base);
    assert_int_equal(fly_power_search_measured(search, 1.0, 1.0, &action), FLY_ESTATE);
    fly_power_search_free(search);
    fly_power_search_free(NULL);
}

/* A measurement that is owed must come before anything else. */
static void test_owed_measurement(void **state)
{
    struct fly_power_search_options options = options_of(FLY_OBJECTIVE_COST);
    struct fly_power_search *search;
    struct fly_power_search_action action = {0};

    (void)state;
    options.warmup_steps = 0;
    search = search_new(&options);
    while (!action.close_window)
        assert_int_equal(fly_power_search_step_begin(search, &action), 0);
    assert_int_equal(fly_power_search_step_begin(search, &action), FLY_ESTATE);
    assert_int_equal(fly_power_search_epoch_end(search, &action), FLY_ESTATE);
    assert_int_equal(fly_power_search_measured(search, 100.0, 1.0, &action), 0);
    assert_true(action.set_limit && action.open_window);
    fly_power_search_free(search);
}

/* Without its warm-up, a limit costs that much less; the profile is the same. */
static void test_skipped_warmup(void **state)
{
    const struct fly_power_search_options options = options_of(FLY_OBJECTIVE_ENERGY);
    struct fly_power_search *search = search_new(&options);
    struct gpu gpu = {.limit_w = 250.0};

    (void)state;
    assert_int_equal(fly_power_search_skip_warmup(search), FLY_ESTATE);
    while (fly_power_search_state(search) != FLY_POWER_SEARCH_DONE) {
        run_step(&gpu, search);
        if (fly_power_search_state(search) == FLY_POWER_SEARCH_WARMUP)
            assert_int_equal(fly_power_search_skip_warmup(search), 0);
    }
    check_profile(search);
    assert_int_equal(gpu.step_calls, 2 + LIMITS * 41);
    assert_int_equal(fly_power_search_skip_warmup(search), FLY_ESTATE);
    fly_power_search_free(search);
}

/* Finished at any step, it chooses among what it has, and nothing more is measured. */
static void test_finished(void **state)
{
    const struct fly_power_search_options options = options_of(FLY_OBJECTIVE_ENERGY);

    (void)state;
    for (int steps = 0; steps < 360; steps++) {
        struct fly_power_search *search = search_new(&options);
        struct fly_power_search_action action;
        struct fly_power_point points[LIMITS];
        struct gpu gpu = {.limit_w = 250.0};
        size_t count, best = 0;

        for (int i = 0; i < steps; i++)
            run_step(&gpu, search);
        count = fly_power_search_profile(search, points, LIMITS);
        if (fly_power_search_state(search) == FLY_POWER_SEARCH_DONE) {
            assert_int_equal(fly_power_search_finish(search, &action), FLY_ESTATE);
        } else {
            assert_int_equal(fly_power_search_finish(search, &action), 0);
            assert_true(action.set_limit && !action.open_window && !action.close_window);
            if (count > 0)
                assert_int_equal(fly_power_select(points, count, &options.objective, 250.0, &best, NULL), 0);
            check_double(action.limit_w, count > 0 ? points[best].limit_w : 250.0);
        }
        assert_int_equal(fly_power_search_step_begin(search, &action), 0);
        assert_false(action.set_limit || action.open_window || action.close_window);
        assert_int_equal(fly_power_search_profile(search, points, LIMITS), count);
        fly_power_search_free(search);
    }
}

/* Windows that are too short go on, in mid-epoch and across epochs' ends. */
static void test_extended(void **state)
{
    static const unsigned epochs[] = {0, 1, 7, 50, 53};
    const struct fly_power_search_options options = options_of(FLY_OBJECTIVE_ENERGY);

    (void)state;
    for (size_t i = 0; i < COUNT(epochs); i++) {
        struct fly_power_search *search = search_new(&options);
        struct gpu gpu = {.limit_w = 250.0, .wanted_time_s = 10.0};

        for (unsigned step = 1; fly_power_search_state(search) != FLY_POWER_SEARCH_DONE; step++) {
            run_step(&gpu, search);
            if (epochs[i] != 0 && step % epochs[i] == 0)
                end_epoch(&gpu, search);
        }
        check_profile(search);
        check_double(gpu.limit_w, exhaustive_choice_w(&options));
        assert_true(gpu.extended >= LIMITS);
        assert_true(gpu.time_s > LIMITS * gpu.wanted_time_s);
        fly_power_search_free(search);
    }
}

static void test_extension_refused(void **state)
{
    const struct fly_power_search_options options = options_of(FLY_OBJECTIVE_ENERGY);
    struct fly_power_search *search = search_new(&options);
    struct fly_power_search_action action = {0};

    (void)state;
    assert_int_equal(fly_power_search_extend(search, 1, &action), FLY_ESTATE);
    while (!action.close_window)
        assert_int_equal(fly_power_search_step_begin(search, &action), 0);
    assert_int_equal(fly_power_search_extend(search, 0, &action), FLY_EUSAGE);
    assert_int_equal(fly_power_search_extend(search, UINT32_MAX, &action), FLY_EUSAGE);
    assert_true(action.close_window);
    assert_int_equal(fly_power_search_extend(search, UINT32_MAX - options.profile_steps, &action), 0);
    assert_false(action.close_window || action.set_limit || action.open_window);
    assert_int_equal(fly_power_search_extend(search, 1, &action), FLY_ESTATE);
    fly_power_search_free(search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_step_count),
        cmocka_unit_test(test_epochs_of_any_length),
        cmocka_unit_test(test_unknown_measurements),
        cmocka_unit_test(test_saved_profile),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_owed_measurement),
        cmocka_unit_test(test_skipped_warmup),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_extended),
        cmocka_unit_test(test_extension_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
