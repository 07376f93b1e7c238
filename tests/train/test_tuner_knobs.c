/* SPDX-License-Identifier: Apache-2.0 */
/* Limit and clock together, and one in place of the other, on emulated GPUs in virtual time. */
#include "knob_bench.h"

#include <glob.h>
#include <sys/mman.h>

#include "rank_join.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
static const struct fly_objective bounded = {FLY_OBJECTIVE_ENERGY, 0.0, 1.05};
static const struct training training = {350.0, 0.2, 0.6, 0.0, 0.0};

static struct fly_tuner_options options_for(enum fly_tuner_knob knob, struct fly_objective objective)
{
    return (struct fly_tuner_options){.size = sizeof(struct fly_tuner_options),
                                      .meter = bench.meter,
                                      .turner = &knob_turner,
                                      .turner_data = &bench.turner,
                                      .clock_turner = &clock_turner,
                                      .clock_turner_data = &bench.turner,
                                      .knob = knob,
                                      .objective = objective,
                                      .job_name = "job",
                                      .batch_size = 64};
}

static struct fly_tuner_report tuned_with(const struct fly_turner *turner, enum fly_tuner_knob knob,
                                          struct fly_objective objective, struct fly_tuner_point *out_chosen)
{
    struct fly_tuner_options options = options_for(knob, objective);
    struct fly_tuner_point points[64];
    struct fly_tuner *tuner;
    struct fly_tuner_report report;
    size_t count;

    options.turner = turner;
    tuner = open_tuner(&options);
    report = settle(tuner);
    count = fly_tuner_points(tuner, points, COUNT(points));
    if (report.state != FLY_TUNER_SETTLED)
        fail_msg("%s: %s", fly_tuner_reason_name(report.reason), report.text);
    *out_chosen = (struct fly_tuner_point){.time_s = NAN};
    for (size_t i = 0; i < count; i++) {
        bool limit = isnan(report.limit_w) ? isnan(points[i].limit_w) : points[i].limit_w == report.limit_w;
        bool ceiling = isnan(report.ceiling_mhz) ? isnan(points[i].ceiling_mhz)
                                                 : points[i].ceiling_mhz == report.ceiling_mhz;

        if (limit && ceiling)
            *out_chosen = points[i];
    }
    assert_int_equal(out_chosen->mark, FLY_TUNER_VALID);
    fly_tuner_free(tuner);
    return report;
}

static struct fly_tuner_report tuned(enum fly_tuner_knob knob, struct fly_objective objective,
                                     struct fly_tuner_point *out_chosen)
{
    return tuned_with(&knob_turner, knob, objective, out_chosen);
}

static void check_put_back(double limit_w)
{
    for (unsigned gpu = 0; gpu < bench.turner.count; gpu++) {
        check_double(emulator_limit_w(bench.machine.emulator, gpu), limit_w);
        assert_int_equal(emulator_ceiling_mhz(bench.machine.emulator, gpu), 0);
    }
}

static double energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

/* Both together take no more than the better of the two alone, within the bound of both together. */
static void test_both(void **state)
{
    static const struct fly_objective *const objectives[] = {&energy, &bounded};

    (void)state;
    for (size_t i = 0; i < COUNT(objectives); i++) {
        struct fly_tuner_point limit, both;
        struct fly_tuner_report report;

        start(2, &training, NULL);
        (void)tuned(FLY_TUNER_POWER_LIMIT, *objectives[i], &limit);
        report = tuned(FLY_TUNER_BOTH, *objectives[i], &both);
        assert_int_equal(report.knob, FLY_TUNER_BOTH);
        assert_string_equal(report.knob_note, "");
        check_double(report.start_limit_w, 400.0);
        check_double(report.start_ceiling_mhz, HIGHEST_MHZ);
        assert_int_equal(report.searches, 2);
        assert_true(energy_j(&both) <= 1.01 * energy_j(&limit));
        assert_true(report.slowdown <= 1.001 * objectives[i]->max_slowdown);
        check_put_back(400.0);
        knob_close(bench.knob, NULL);
        bench.knob = NULL;
        assert_int_equal(knob_machine_entries(&bench.machine), 0);
        stop();
    }
}

/* When a ceiling beats a limit within the same bound, and when not. */
static void test_which_is_better(void **state)
{
    static const struct {
        const char *name;
        struct training training;
        double least, most; /* energy of the best ceiling against that of the best limit */
    } rows[] = {
        {"steady, 350 W", {350.0, 0.2, 0.6, 0.0, 0.0}, 0.95, 1.05},
        {"60 % at 390 W, the rest at 200 W", {390.0, 0.2, 0.6, 200.0, 0.4}, 1.0, 1.15},
        {"90 W, below the lowest limit", {90.0, 0.2, 0.6, 0.0, 0.0}, 0.5, 0.99},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_tuner_point limit, ceiling, both;

        start(1, &rows[i].training, NULL);
        (void)tuned(FLY_TUNER_POWER_LIMIT, bounded, &limit);
        (void)tuned_with(&clock_turner, FLY_TUNER_CLOCK, bounded, &ceiling);
        (void)tuned(FLY_TUNER_BOTH, bounded, &both);
        print_message("# %s: %g W %.2f J, %g MHz %.2f J, %g W and %g MHz %.2f J\n", rows[i].name,
                      limit.limit_w, energy_j(&limit), ceiling.ceiling_mhz, energy_j(&ceiling), both.limit_w,
                      both.ceiling_mhz, energy_j(&both));
        if (energy_j(&ceiling) < rows[i].least * energy_j(&limit) ||
            energy_j(&ceiling) > rows[i].most * energy_j(&limit))
            fail_msg("%s: a ceiling takes %g J, a limit %g J", rows[i].name, energy_j(&ceiling),
                     energy_j(&limit));
        assert_true(energy_j(&both) <= 1.01 * energy_j(&limit));
        stop();
    }
}

/* A ceiling's points have the limit that stood, and come behind those of the limits. */
static void test_points(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner_point points[64];
    struct fly_tuner *tuner;
    size_t count, limits = 0;

    (void)state;
    start(1, &training, NULL);
    options = options_for(FLY_TUNER_BOTH, bounded);
    tuner = open_tuner(&options);
    assert_int_equal(report_of(tuner).knob, FLY_TUNER_POWER_LIMIT);
    report = settle(tuner);
    count = fly_tuner_points(tuner, points, COUNT(points));
    for (size_t i = 0; i < count; i++) {
        bool is_limit = isnan(points[i].ceiling_mhz);

        limits += is_limit;
        assert_int_equal(is_limit, i < limits);
        assert_true(is_limit || points[i].limit_w == report.limit_w);
    }
    assert_int_equal(limits, 13);
    assert_int_equal(count, limits + CEILINGS);
    fly_tuner_free(tuner);
    stop();
}

/* The limit goes where it was when the tuner ends in the search for a ceiling, and a foreign limit stays. */
static void test_ends_under_way(void **state)
{
    static const double foreign_w[] = {0.0, 222.0};

    (void)state;
    for (size_t i = 0; i < COUNT(foreign_w); i++) {
        struct fly_tuner_options options;
        struct fly_tuner *tuner;

        start(1, &training, NULL);
        options = options_for(FLY_TUNER_BOTH, energy);
        tuner = open_tuner(&options);
        while (emulator_ceiling_mhz(bench.machine.emulator, 0) == 0)
            step(tuner);
        assert_true(emulator_limit_w(bench.machine.emulator, 0) < 400.0);
        if (foreign_w[i] > 0.0) {
            emulator_set_limit_w(bench.machine.emulator, 0, foreign_w[i], NULL);
            (void)settle(tuner);
            assert_int_equal(report_of(tuner).reason, FLY_TUNER_FOREIGN_CHANGE);
        }
        fly_tuner_free(tuner);
        knob_close(bench.knob, NULL);
        bench.knob = NULL;
        check_put_back(foreign_w[i] > 0.0 ? foreign_w[i] : 400.0);
        stop();
    }
}

/* A knob that the driver refuses gives way to the other, and the report says so. */
static void test_refused(void **state)
{
    static const struct {
        const char *script;
        enum fly_tuner_knob wish, knob;
        const char *note;
    } rows[] = {
        {"call nvmlDeviceSetPowerManagementLimit no-permission", FLY_TUNER_AUTO, FLY_TUNER_CLOCK,
         "the power limit may not be set: "},
        {"call nvmlDeviceSetPowerManagementLimit return NOT_SUPPORTED", FLY_TUNER_AUTO, FLY_TUNER_CLOCK,
         "the clock is tuned alone"},
        {"gpu 1 call nvmlDeviceSetPowerManagementLimit no-permission", FLY_TUNER_BOTH, FLY_TUNER_CLOCK,
         "the clock is tuned alone"},
        {"call nvmlDeviceSetGpuLockedClocks no-permission", FLY_TUNER_BOTH, FLY_TUNER_POWER_LIMIT,
         "the power limit is tuned alone"},
        {"call nvmlDeviceGetSupportedGraphicsClocks return NOT_SUPPORTED", FLY_TUNER_BOTH,
         FLY_TUNER_POWER_LIMIT, "the clock may not be set: "},
        {"call nvmlDeviceSetGpuLockedClocks no-permission", FLY_TUNER_AUTO, FLY_TUNER_POWER_LIMIT, ""},
        {"call nvmlDeviceGetPowerManagementLimit return NOT_SUPPORTED\n"
         "call nvmlDeviceGetPowerManagementLimitConstraints return NOT_SUPPORTED\n"
         "call nvmlDeviceGetFieldValues return NOT_SUPPORTED\n",
         FLY_TUNER_AUTO, FLY_TUNER_CLOCK, "the power limit may not be set: "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_tuner_point chosen;
        struct fly_tuner_report report;

        start(2, &training, rows[i].script);
        report = tuned(rows[i].wish, energy, &chosen);
        if (report.knob != rows[i].knob || strstr(report.knob_note, rows[i].note) == NULL ||
            (rows[i].note[0] == '\0') != (report.knob_note[0] == '\0'))
            fail_msg("with '%s': knob %s, '%s'", rows[i].script, fly_tuner_knob_name(report.knob),
                     report.knob_note);
        assert_int_equal(isnan(report.ceiling_mhz), rows[i].knob == FLY_TUNER_POWER_LIMIT);
        assert_int_equal(isnan(report.limit_w), rows[i].knob == FLY_TUNER_CLOCK);
        check_put_back(400.0);
        stop();
    }
}

/* Where neither may be set, tuning ends as with one knob; a limit that was set once does not give way. */
static void test_both_refused(void **state)
{
    static const char *const scripts[] = {
        "call nvmlDeviceSetPowerManagementLimit no-permission\ncall nvmlDeviceSetGpuLockedClocks "
        "no-permission",
        "call nvmlDeviceSetPowerManagementLimit from 3 no-permission",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct fly_tuner_options options;
        struct fly_tuner_report report;
        struct fly_tuner *tuner;

        start(1, &training, scripts[i]);
        options = options_for(FLY_TUNER_AUTO, energy);
        tuner = open_tuner(&options);
        report = settle(tuner);
        assert_int_equal(report.reason, FLY_TUNER_SET_FAILED);
        assert_int_equal(report.knob, i == 0 ? FLY_TUNER_CLOCK : FLY_TUNER_POWER_LIMIT);
        fly_tuner_free(tuner);
        knob_machine_fault(&bench.machine, "");
        stop();
    }
}

/* What a rank does, in its process: rank 1 may set no limits. */
struct ranks {
    struct rank_join join;
    enum fly_tuner_knob knobs[RANKS];
    double ceilings_mhz[RANKS];
    char notes[RANKS][FLY_TUNER_TEXT_MAX];
};

static void run_rank(void *data, int number)
{
    struct ranks *ranks = data;
    struct rank rank = {&ranks->join, number};
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    start(1, &training, number == 1 ? "call nvmlDeviceSetPowerManagementLimit no-permission" : NULL);
    options = options_for(FLY_TUNER_BOTH, energy);
    options.all_reduce = rank_all_reduce;
    options.all_reduce_data = &rank;
    options.rank = (uint32_t)number;
    tuner = open_tuner(&options);
    report = settle(tuner);
    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    check_double(emulator_limit_w(bench.machine.emulator, 0), 400.0);
    ranks->knobs[number] = report.knob;
    ranks->ceilings_mhz[number] = report.ceiling_mhz;
    memcpy(ranks->notes[number], report.knob_note, sizeof report.knob_note);
    fly_tuner_free(tuner);
    check_put_back(400.0);
    stop();
}

/* The knob of one rank that is refused gives way on all. */
static void test_ranks(void **state)
{
    struct ranks *ranks = rank_memory(sizeof *ranks);

    (void)state;
    rank_join_init(&ranks->join);
    rank_processes(run_rank, ranks);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks->knobs[i], FLY_TUNER_CLOCK);
        check_double(ranks->ceilings_mhz[i], ranks->ceilings_mhz[0]);
        check_contains(ranks->notes[i], i == 1 ? "the power limit may not be set: " : ": on another rank");
    }
    munmap(ranks, sizeof *ranks);
}

/* Both profiles are saved, the second says under which limit, and both are used again. */
static void test_saved(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report first, second;
    struct fly_tuner *tuner;
    char pattern[KNOB_PATH_MAX + 16];
    glob_t found;

    (void)state;
    start(1, &training, NULL);
    options = options_for(FLY_TUNER_BOTH, energy);
    options.profile_directory = bench.machine.directory;
    tuner = open_tuner(&options);
    first = settle(tuner);
    fly_tuner_free(tuner);
    snprintf(pattern, sizeof pattern, "%s/flyball-*.json", bench.machine.directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    globfree(&found);
    tuner = open_tuner(&options);
    second = settle(tuner);
    assert_true(second.reused);
    check_double(second.limit_w, first.limit_w);
    check_double(second.ceiling_mhz, first.ceiling_mhz);
    assert_true(second.search_steps < first.search_steps / 2);
    fly_tuner_free(tuner);
    stop();
}

/* Another workload: both knobs are searched again, the limit first. */
static void test_drift(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner_report report;
    struct fly_tuner *tuner;

    (void)state;
    start(1, &training, NULL);
    options = options_for(FLY_TUNER_BOTH, bounded);
    options.check_every_steps = 50;
    options.remeasure_distance_steps = 100;
    tuner = open_tuner(&options);
    (void)settle(tuner);
    bench.training.step_s *= 1.5;
    for (int i = 0; i < 400; i++)
        step(tuner);
    while (report_of(tuner).knob != FLY_TUNER_BOTH || fly_tuner_state(tuner) != FLY_TUNER_SETTLED)
        step(tuner);
    report = report_of(tuner);
    assert_int_equal(report.searches, 4);
    assert_true(report.slowdown < 1.06);
    fly_tuner_free(tuner);
    check_put_back(400.0);
    stop();
}

/* Options from before there was a second knob, and those that go together with none. */
static void test_options(void **state)
{
    struct fly_tuner_options options;
    struct fly_tuner *tuner = NULL;
    struct fly_error error = {.text = ""};

    (void)state;
    start(1, &training, NULL);
    options = options_for(FLY_TUNER_POWER_LIMIT, energy);
    options.size = offsetof(struct fly_tuner_options, clock_turner);
    fly_tuner_free(open_tuner(&options));
    options.size--;
    assert_int_equal(tuner_new(&options, &bench.clock, &tuner, &error), FLY_EUSAGE);
    options = options_for(FLY_TUNER_BOTH, energy);
    options.carbon = &(struct fly_carbon_options){.size = sizeof(struct fly_carbon_options)};
    assert_int_equal(tuner_new(&options, &bench.clock, &tuner, &error), FLY_EUSAGE);
    check_contains(error.text, "the knob is 'both'");
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_ends_under_way),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_both_refused),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_which_is_better),
        cmocka_unit_test(test_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
