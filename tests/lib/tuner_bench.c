/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner_bench.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <flyball/power_selector.h>

#include "base/error.h"
#include "device/backend.h"
#include "test_data.h"

const char *const tuner_profile_names[] = {
    "A40+bert-base-uncased+gpu0", "A40+resnet18+gpu0,1,2,3", "A40+resnet18+gpu0",
    "A40+resnet50+gpu0,1,2,3",    "A40+resnet50+gpu0",       "A40+shufflenetv2+gpu0",
};

void tuner_profile_read(const char *name, struct tuner_profile *out_profile)
{
    char file_name[256], path[TEST_PATH_MAX], line[1024];
    FILE *file;

    snprintf(file_name, sizeof file_name, "power_profiles/%s.csv", name);
    test_data_need(file_name, path);
    memset(out_profile, 0, sizeof *out_profile);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[4 + TUNER_GPUS_MAX];
        size_t at = out_profile->count++, count = test_data_split(line, fields, COUNT(fields));
        double window_s = strtod(fields[2], NULL);

        assert_true(count >= 4 && at < TUNER_LIMITS_MAX);
        out_profile->gpus = count - 3;
        out_profile->limit_w[at] = strtod(strrchr(fields[1], '_') + 1, NULL);
        out_profile->step_s[at] = window_s / TUNER_PROFILE_STEPS;
        for (size_t gpu = 0; gpu < out_profile->gpus; gpu++)
            out_profile->power_w[at][gpu] = strtod(fields[3 + gpu], NULL) / window_s;
    }
    fclose(file);
    assert_true(out_profile->count > 1);
}

void tuner_profile_made(struct tuner_profile *out_profile, size_t gpus)
{
    memset(out_profile, 0, sizeof *out_profile);
    out_profile->gpus = gpus;
    for (double limit_w = 300.0; limit_w >= 100.0; limit_w -= 25.0) {
        size_t at = out_profile->count++;
        double drawn_w = fmin(limit_w, 260.0);

        out_profile->limit_w[at] = limit_w;
        out_profile->step_s[at] = 0.2 * (0.5 + 0.5 * cbrt(200.0 / (drawn_w - 60.0)));
        for (size_t gpu = 0; gpu < gpus; gpu++)
            out_profile->power_w[at][gpu] = drawn_w;
    }
}

struct fly_power_point tuner_profile_truth(const struct tuner_profile *profile, size_t place)
{
    struct fly_power_point point = {profile->limit_w[place], 0.0, profile->step_s[place]};

    for (size_t gpu = 0; gpu < profile->gpus; gpu++)
        point.power_w += fmin(profile->power_w[place][gpu], profile->limit_w[place]);
    return point;
}

size_t tuner_profile_find(const struct tuner_profile *profile, double limit_w)
{
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->limit_w[i] == limit_w)
            return i;
    }
    fail_msg("no limit of %g W", limit_w);
    return 0;
}

double tuner_max_power_w(const struct tuner_profile *profile)
{
    return profile->limit_w[0] * (double)profile->gpus;
}

double tuner_profile_best_w(const struct tuner_profile *profile, const struct fly_objective *objective)
{
    struct fly_power_point points[TUNER_LIMITS_MAX];
    size_t best;

    for (size_t i = 0; i < profile->count; i++)
        points[i] = tuner_profile_truth(profile, i);
    assert_int_equal(
        fly_power_select(points, profile->count, objective, tuner_max_power_w(profile), &best, NULL), 0);
    return points[best].limit_w;
}

double tuner_score(const struct tuner_profile *profile, const struct fly_objective *objective, size_t place)
{
    struct fly_power_point point = tuner_profile_truth(profile, place);

    switch (objective->kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_CARBON:
    case FLY_OBJECTIVE_MONEY:
        return point.power_w * point.time_s;
    case FLY_OBJECTIVE_TIME:
        return point.time_s;
    case FLY_OBJECTIVE_COST:
        return (objective->eta * point.power_w + (1.0 - objective->eta) * tuner_max_power_w(profile)) *
               point.time_s;
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        break;
    }
    return point.limit_w;
}

static int bench_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    const struct tuner_bench *bench = data;
    const struct tuner_profile *profile = bench->profile;

    (void)out_error;
    *out_range = (struct fly_turner_range){
        .lowest = bench->lowest_w > 0.0 ? bench->lowest_w : profile->limit_w[profile->count - 1],
        .highest = profile->limit_w[0],
        .step = 25.0,
    };
    return 0;
}

static int bench_set(void *data, double limit_w, struct fly_error *out_error)
{
    struct tuner_bench *bench = data;

    if (bench->sets_until_failing == 0) {
        bench->sets_until_failing = bench->fails_once ? -1 : 0;
        return error_set(out_error, FLY_EPERM, "no permission");
    }
    bench->sets_until_failing -= bench->sets_until_failing > 0;
    bench->sets++;
    if (bench->clamp_w > 0.0)
        limit_w = fmin(limit_w, bench->clamp_w);
    for (unsigned gpu = 0; gpu < bench->gpus; gpu++) {
        if (emulator_is_lost(bench->emulator, gpu))
            return error_set(out_error, FLY_EREAD, "GPU %u is lost", gpu);
        assert_int_equal(emulator_set_limit_w(bench->emulator, gpu, limit_w, NULL), 0);
    }
    return 0;
}

static int bench_standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    struct tuner_bench *bench = data;

    if (bench->unreadable || emulator_is_lost(bench->emulator, 0))
        return error_set(out_error, FLY_EREAD, "GPU 0 does not answer");
    *out_limit_w = emulator_limit_w(bench->emulator, 0);
    return 0;
}

const struct fly_turner tuner_bench_turner = {
    .range = bench_range, .set = bench_set, .standing = bench_standing};

static void open_machine(struct tuner_bench *bench)
{
    static char library[512];
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct device_options options = {.nvml_path = library, .clock = &bench->clock};
    struct fly_error error;

    snprintf(library, sizeof library, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    if (device_backend_nvml.open(&options, &bench->list, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(bench->list.count, bench->gpus);
}

void tuner_bench_start(struct tuner_bench *bench, const struct tuner_profile *profile, const char *sensor)
{
    struct emulator_settings settings = emulator_default_settings;
    struct meter_parts parts = {
        .devices = &bench->list, .clock = &bench->clock, .threadless = true, .sample_hz = 2.0};
    char text[96];
    static int number;
    struct fly_error error;

    memset(bench, 0, sizeof *bench);
    bench->profile = profile;
    bench->gpus = profile->gpus;
    snprintf(bench->path, sizeof bench->path, "/tmp/flyball-test-tuner-%d-%d", (int)getpid(), number++);
    unlink(bench->path);
    setenv("FLYBALL_EMULATOR_STATE", bench->path, 1);
    settings.ideal = true;
    snprintf(text, sizeof text, "gpus=%zu,seed=1,time=virtual,model=a40,sensor=%s", bench->gpus, sensor);
    if (emulator_settings_parse(&settings, text, &error) < 0 ||
        emulator_create(bench->path, &settings, &bench->emulator, &error) < 0)
        fail_msg("%s", error.text);
    bench->clock = emulator_clock(bench->emulator);
    open_machine(bench);
    /* Facts come from a table of boards, and no board has a sensor that is always fresh. */
    for (size_t i = 0; i < bench->list.count && strcmp(sensor, "exact") == 0; i++)
        bench->list.devices[i].info.sensor = (struct sensor_facts){1e-3, 1e-3, 1e-3, false, 0.0, "a test"};
    assert_int_equal(meter_new(&parts, &bench->meter, NULL), 0);
    tuner_bench_reset(bench, 1);
}

void tuner_bench_stop(struct tuner_bench *bench)
{
    fly_meter_close(bench->meter);
    device_list_close(&bench->list);
    emulator_close(bench->emulator);
    emulator_remove(bench->path, NULL);
}

void tuner_bench_reset(struct tuner_bench *bench, uint64_t seed)
{
    bench->slower = 1.0;
    bench->step_noise = bench->visit_noise = bench->visited_w = 0.0;
    bench->random = seed;
    bench->sets_until_failing = -1;
    bench->unreadable = bench->fails_once = false;
    bench->clamp_w = bench->lowest_w = 0.0;
    bench->sets = 0;
    tuner_bench_enforce(bench, 0.0);
    for (unsigned gpu = 0; gpu < bench->gpus; gpu++)
        assert_int_equal(emulator_set_limit_w(bench->emulator, gpu, bench->profile->limit_w[0], NULL), 0);
}

void tuner_bench_enforce(struct tuner_bench *bench, double enforced_w)
{
    bench->enforced_w = enforced_w;
    for (unsigned gpu = 0; gpu < bench->gpus; gpu++)
        emulator_set_enforced_w(bench->emulator, gpu, enforced_w);
}

struct fly_tuner_options tuner_bench_options(struct tuner_bench *bench, struct fly_objective objective)
{
    return (struct fly_tuner_options){.size = sizeof(struct fly_tuner_options),
                                      .meter = bench->meter,
                                      .turner = &tuner_bench_turner,
                                      .turner_data = bench,
                                      .objective = objective,
                                      .job_name = "job",
                                      .driver = "1.0",
                                      .batch_size = 64};
}

struct fly_tuner *tuner_bench_tuner(struct tuner_bench *bench, const struct fly_tuner_options *options)
{
    struct fly_tuner *tuner;
    struct fly_error error;

    if (tuner_new(options, &bench->clock, &tuner, &error) < 0)
        fail_msg("%s", error.text);
    return tuner;
}

void tuner_bench_pass(struct tuner_bench *bench, double duration_s)
{
    struct mono_time until = mono_after_s(bench->clock.now(bench->clock.state), duration_s);

    while (meter_next_sample(bench->meter).ns <= until.ns) {
        bench->clock.sleep_until(bench->clock.state, meter_next_sample(bench->meter));
        meter_sample(bench->meter);
    }
    bench->clock.sleep_until(bench->clock.state, until);
}

/* 1 on average, nearly normal: a sum of uniforms. */
static double noisy(struct tuner_bench *bench, double spread)
{
    double sum = -6.0;

    if (spread == 0.0)
        return 1.0;
    for (int i = 0; i < 12; i++)
        sum += test_uniform(&bench->random);
    return 1.0 + spread * sum;
}

double tuner_bench_limit_w(struct tuner_bench *bench)
{
    return emulator_limit_w(bench->emulator, 0);
}

void tuner_bench_work(struct tuner_bench *bench)
{
    double limit_w = bench->enforced_w > 0.0 ? fmin(tuner_bench_limit_w(bench), bench->enforced_w)
                                             : tuner_bench_limit_w(bench);
    size_t place = tuner_profile_find(bench->profile, limit_w);
    double power = noisy(bench, bench->step_noise), time = noisy(bench, bench->step_noise);

    if (limit_w != bench->visited_w) {
        bench->visited_w = limit_w;
        bench->visit_time = noisy(bench, bench->visit_noise);
        bench->visit_power = noisy(bench, bench->visit_noise);
    }
    for (unsigned gpu = 0; gpu < bench->gpus; gpu++)
        emulator_set_load(bench->emulator, gpu,
                          bench->profile->power_w[place][gpu] * power * bench->visit_power);
    tuner_bench_pass(bench, bench->profile->step_s[place] * time * bench->visit_time * bench->slower);
}

void tuner_bench_step(struct tuner_bench *bench, struct fly_tuner *tuner)
{
    assert_int_equal(fly_tuner_step_begin(tuner), 0);
    tuner_bench_work(bench);
}

struct fly_tuner_report tuner_bench_report(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};

    assert_int_equal(fly_tuner_report(tuner, &report), 0);
    return report;
}

struct fly_tuner_report tuner_bench_settle(struct tuner_bench *bench, struct fly_tuner *tuner,
                                           unsigned epoch_steps)
{
    assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
    for (unsigned step = 1;
         fly_tuner_state(tuner) != FLY_TUNER_SETTLED && fly_tuner_state(tuner) != FLY_TUNER_STOPPED; step++) {
        assert_true(step < 100000);
        tuner_bench_step(bench, tuner);
        if (epoch_steps == 0 || step % epoch_steps != 0)
            continue;
        assert_int_equal(fly_tuner_epoch_end(tuner), 0);
        tuner_bench_pass(bench, 5.0); /* evaluation, which no window may see */
        assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
    }
    return tuner_bench_report(tuner);
}
