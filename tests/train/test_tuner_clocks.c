/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning the ceiling on the clock, by the guarded knob, on emulated GPUs in virtual time. */
#include "knob_bench.h"

#include <flyball/power_selector.h>

static struct fly_tuner_options options_for(struct fly_objective objective)
{
    return (struct fly_tuner_options){.size = sizeof(struct fly_tuner_options),
                                      .meter = bench.meter,
                                      .turner = &clock_turner,
                                      .turner_data = &bench.turner,
                                      .knob = FLY_TUNER_CLOCK,
                                      .objective = objective,
                                      .job_name = "job",
                                      .batch_size = 64};
}

/* What a ceiling does, by the emulator's model. */
static struct fly_power_point truth(unsigned ceiling_mhz, double limit_w)
{
    const struct gpu_shape *shape = gpu_shape_find("a100");
    double clock =
        fmin((double)ceiling_mhz / HIGHEST_MHZ, gpu_clock(shape, bench.training.wanted_w, limit_w));

    return (struct fly_power_point){.limit_w = ceiling_mhz,
                                    .power_w = (double)bench.turner.count *
                                               gpu_power_w(shape, bench.training.wanted_w, clock),
                                    .time_s = step_time_s(clock)};
}

static double best_mhz(const struct fly_objective *objective, double limit_w)
{
    struct fly_power_point points[CEILINGS];
    size_t best;

    for (unsigned i = 0; i < CEILINGS; i++)
        points[i] = truth(HIGHEST_MHZ - i * STEP_MHZ, limit_w);
    assert_int_equal(
        fly_power_select(points, CEILINGS, objective, 400.0 * (double)bench.turner.count, &best, NULL), 0);
    return points[best].limit_w;
}

/* For every training and objective, the ceiling that measuring all of them finds; and it is lifted. */
static void test_finds_the_best(void **state)
{
    static const struct training trainings[] = {
        {350.0, 0.2, 0.9, 0.0, 0.0}, {350.0, 0.2, 0.5, 0.0, 0.0}, {250.0, 0.15, 0.2, 0.0, 0.0},
        {400.0, 0.3, 0.7, 0.0, 0.0}, {120.0, 0.2, 0.4, 0.0, 0.0},
    };
    static const struct fly_objective objectives[] = {
        {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY}, {FLY_OBJECTIVE_TIME, 0.0, INFINITY},
        {FLY_OBJECTIVE_COST, 0.5, INFINITY},   {FLY_OBJECTIVE_COST, 0.9, INFINITY},
        {FLY_OBJECTIVE_ENERGY, 0.0, 1.03},     {FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, 1.10},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(trainings) * COUNT(objectives); i++) {
        const struct fly_objective *objective = &objectives[i % COUNT(objectives)];
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start(i % 4 == 3 ? 2 : 1, &trainings[i / COUNT(objectives)], NULL);
        options = options_for(*objective);
        options.energy_tolerance = 1e-6; /* nothing that is better by anything is left out */
        tuner = open_tuner(&options);
        report = settle(tuner);
        if (report.state != FLY_TUNER_SETTLED || report.ceiling_mhz != best_mhz(objective, 400.0))
            fail_msg("case %zu: %s at %g MHz, expected %g MHz: %s", i, fly_tuner_reason_name(report.reason),
                     report.ceiling_mhz, best_mhz(objective, 400.0), report.text);
        assert_int_equal(report.knob, FLY_TUNER_CLOCK);
        check_double(report.start_ceiling_mhz, HIGHEST_MHZ);
        assert_true(isnan(report.limit_w) && isnan(report.start_limit_w));
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0),
                         report.ceiling_mhz == HIGHEST_MHZ ? 0 : (unsigned)report.ceiling_mhz);
        fly_tuner_free(tuner);
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0), 0);
        assert_int_equal(knob_machine_entries(&bench.machine), 0);
        stop();
    }
}

/* The power limit holds the GPU below the first ceilings: they do not bind, and the lower ones do. */
static void test_marks_what_binds(void **state)
{
    static const struct training training = {400.0, 0.2, 0.6, 0.0, 0.0};
    const struct fly_objective objective = {FLY_OBJECTIVE_LOWEST_LIMIT, 0.0, INFINITY};
    struct fly_tuner_options options;
    struct fly_tuner_point points[32];
    struct fly_tuner *tuner;
    unsigned unbound = 0;
    size_t count;

    (void)state;
    start(1, &training, NULL);
    assert_int_equal(emulator_set_limit_w(bench.machine.emulator, 0, 200.0, NULL), 0);
    options = options_for(objective);
    tuner = open_tuner(&options);
    tuner_measure_every_limit(tuner);
    check_double(settle(tuner).ceiling_mhz, LOWEST_TRIED_MHZ);
    count = fly_tuner_points(tuner, points, COUNT(points));
    assert_int_equal(count, CEILINGS);
    for (size_t i = 0; i < count; i++) {
        struct fly_power_point expected = truth((unsigned)points[i].ceiling_mhz, 200.0);
        /* The clock under 200 W is 1045 MHz; next to it both hold. */
        bool near = fabs(points[i].ceiling_mhz - 1045.0) < 0.12 * 1045.0;

        check_double(points[i].ceiling_mhz, HIGHEST_MHZ - (double)i * STEP_MHZ);
        assert_true(isnan(points[i].limit_w));
        assert_int_equal(points[i].mark, FLY_TUNER_VALID);
        check_close(points[i].time_s, expected.time_s, 0.01);
        check_close(points[i].power_w, expected.power_w, 0.02);
        if (!near)
            assert_int_equal(points[i].bound,
                             points[i].ceiling_mhz < 1045.0 ? FLY_TUNER_BOUND : FLY_TUNER_UNBOUND);
        unbound += points[i].bound == FLY_TUNER_UNBOUND;
    }
    assert_true(unbound > 1);
    fly_tuner_free(tuner);
    check_double(emulator_limit_w(bench.machine.emulator, 0), 200.0);
    stop();
}

/* In mid-search another program lifts our ceiling, or sets its own. */
static void test_another_program(void **state)
{
    static const struct training training = {350.0, 0.2, 0.6, 0.0, 0.0};
    static const unsigned theirs_mhz[] = {0, 600};

    (void)state;
    for (size_t i = 0; i < COUNT(theirs_mhz); i++) {
        const struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start(2, &training, NULL);
        options = options_for(objective);
        tuner = open_tuner(&options);
        tuner_measure_every_limit(tuner);
        assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
        while (emulator_ceiling_mhz(bench.machine.emulator, 0) != 1110)
            step(tuner);
        assert_int_equal(emulator_set_ceiling_mhz(bench.machine.emulator, 1, theirs_mhz[i], NULL), 0);
        report = settle(tuner);
        assert_int_equal(report.state, FLY_TUNER_STOPPED);
        assert_int_equal(report.reason, FLY_TUNER_FOREIGN_CHANGE);
        check_contains(report.text, "another program has set clocks");
        fly_tuner_free(tuner);
        knob_close(bench.knob, NULL);
        bench.knob = NULL;
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0), 0);
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 1), theirs_mhz[i]);
        stop();
    }
}

/* What goes wrong with the knob ends tuning with the clock as it was, and says why. */
static void test_faults(void **state)
{
    static const struct {
        const char *script;
        enum fly_tuner_reason reason;
        const char *text;
    } cases[] = {
        {"call nvmlDeviceSetGpuLockedClocks no-permission", FLY_TUNER_SET_FAILED, "the ceiling of 1350 MHz"},
        {"call nvmlDeviceSetGpuLockedClocks from 4 return UNKNOWN", FLY_TUNER_SET_FAILED, "could not be set"},
        {"gpu 1 call nvmlDeviceSetGpuLockedClocks from 3 return TIMEOUT", FLY_TUNER_SET_FAILED, "1230 MHz"},
    };
    static const struct training training = {350.0, 0.2, 0.6, 0.0, 0.0};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start(2, &training, cases[i].script);
        options = options_for(objective);
        tuner = open_tuner(&options);
        tuner_measure_every_limit(tuner);
        report = settle(tuner);
        if (report.reason != cases[i].reason || strstr(report.text, cases[i].text) == NULL)
            fail_msg("with '%s': %s: %s", cases[i].script, fly_tuner_reason_name(report.reason), report.text);
        fly_tuner_free(tuner);
        knob_close(bench.knob, NULL);
        bench.knob = NULL;
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 0), 0);
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, 1), 0);
        assert_int_equal(knob_machine_entries(&bench.machine), 0);
        stop();
    }
}

static void check_refused(const struct fly_tuner_options *options, const char *text)
{
    struct fly_tuner *tuner = NULL;
    struct fly_error error = {.text = ""};

    assert_true(fly_tuner_new(options, &tuner, &error) < 0);
    check_contains(error.text, text);
    assert_null(tuner);
}

static void test_options(void **state)
{
    static const struct training training = {350.0, 0.2, 0.6, 0.0, 0.0};
    const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY},
                               cost = {FLY_OBJECTIVE_COST, 0.5, INFINITY};
    const double inside[] = {1200.0, 900.0}, outside[] = {1200.0, 1500.0};
    struct fly_tuner_options options;
    struct fly_tuner_point points[4];
    struct fly_tuner *tuner;

    (void)state;
    start(1, &training, NULL);
    options = options_for(energy);
    options.ceilings_mhz = inside;
    options.ceiling_count = 2;
    tuner = open_tuner(&options);
    assert_int_equal(fly_tuner_points(tuner, points, COUNT(points)), 2);
    check_double(points[1].ceiling_mhz, 900.0);
    fly_tuner_free(tuner);
    options.ceilings_mhz = outside;
    check_refused(&options, "ceiling 1500 MHz; the GPU takes 210 to 1410 MHz");
    options = options_for(energy);
    options.limits_w = inside;
    options.limit_count = 2;
    check_refused(&options, "the knob is 'clock'");
    options.knob = (enum fly_tuner_knob)7;
    check_refused(&options, "no knob 7");
    knob_machine_fault(&bench.machine, "call nvmlDeviceGetPowerManagementLimitConstraints return UNKNOWN");
    options = options_for(cost);
    check_refused(&options, "give max_power_w");
    options.max_power_w = 400.0;
    fly_tuner_free(open_tuner(&options));
    knob_machine_fault(&bench.machine, "call nvmlDeviceGetSupportedGraphicsClocks return NOT_SUPPORTED");
    options = options_for(energy);
    check_refused(&options, "not known");
    stop();
}

/* A profile of clocks is reused for clocks alone. */
static void test_saved(void **state)
{
    static const struct training training = {350.0, 0.2, 0.6, 0.0, 0.0};
    const struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
    struct fly_tuner_options options;
    struct fly_tuner_report first, second;
    struct fly_tuner *tuner;

    (void)state;
    start(1, &training, NULL);
    options = options_for(objective);
    options.profile_directory = bench.machine.directory;
    tuner = open_tuner(&options);
    first = settle(tuner);
    assert_int_equal(first.state, FLY_TUNER_SETTLED);
    assert_false(first.reused);
    fly_tuner_free(tuner);
    tuner = open_tuner(&options);
    second = settle(tuner);
    assert_true(second.reused);
    check_double(second.ceiling_mhz, first.ceiling_mhz);
    assert_true(second.search_steps < first.search_steps);
    fly_tuner_free(tuner);
    options.knob = FLY_TUNER_POWER_LIMIT;
    options.turner = &knob_turner;
    tuner = open_tuner(&options);
    assert_false(report_of(tuner).reused);
    assert_string_equal(report_of(tuner).profile, "");
    fly_tuner_free(tuner);
    stop();
}

/* A profile of one knob is taken for no other's. */
static void test_profile_of_knob(void **state)
{
    static const char form[] =
        "{\"format\":\"flyball power profile 1\",%s\"gpu_model\":\"g\",\"driver\":\"d\",\"job_name\":\"j\","
        "\"batch_size\":8,\"gpu_count\":1,\"points\":[{\"%s\":250,\"power_w\":200,\"time_s\":1,"
        "\"time_error\":0,\"bound\":\"yes\"}]}";
    static const struct {
        const char *knob, *setting;
        bool limits, clocks;
    } cases[] = {
        {"", "limit_w", false, false},
        {"\"knob\":\"power\",", "limit_w", true, false},
        {"\"knob\":\"clock\",", "ceiling_mhz", false, true},
        {"\"knob\":\"clock\",", "limit_w", false, false},
        {"", "ceiling_mhz", false, false},
        {"\"knob\":\"valve\",", "limit_w", false, false},
        {"\"knob\":1,", "limit_w", false, false},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        struct profile_key key = {"g", "d", "j", 8, 1, i % 2 ? FLY_TUNER_CLOCK : FLY_TUNER_POWER_LIMIT, 0.0};
        struct fly_tuner_point point = {.limit_w = 250.0};
        char text[512];
        size_t count = 0;
        bool good = i % 2 ? cases[i / 2].clocks : cases[i / 2].limits;

        snprintf(text, sizeof text, form, cases[i / 2].knob, cases[i / 2].setting);
        if ((profile_read_text("p", text, strlen(text), &key, &point, 1, &count, NULL) == 0) != good)
            fail_msg("read for the %s: %s", fly_tuner_knob_name(key.knob), text);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(fly_tuner_knob_name(FLY_TUNER_POWER_LIMIT), "power");
    assert_string_equal(fly_tuner_knob_unit(FLY_TUNER_POWER_LIMIT), "W");
    assert_string_equal(fly_tuner_knob_name(FLY_TUNER_CLOCK), "clock");
    assert_string_equal(fly_tuner_knob_unit(FLY_TUNER_CLOCK), "MHz");
    assert_string_equal(fly_tuner_knob_unit((enum fly_tuner_knob)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_best),  cmocka_unit_test(test_marks_what_binds),
        cmocka_unit_test(test_another_program), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_options),         cmocka_unit_test(test_saved),
        cmocka_unit_test(test_profile_of_knob), cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
