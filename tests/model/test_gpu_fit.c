/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a low point, and the fits of the GPU's model: to profiles that the model made, and to all
 * that were recorded, with their errors.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/math/simplex_search.h"
#include "model/gpu_fit.h"
#include "test_data.h"

enum { POINTS_MAX = 32, PROFILES_MAX = 256, KEY_MAX = 128 };

/* ---- the search ---- */

/* A bowl whose lowest point may lie outside of what is searched. */
struct bowl {
    double lowest[3];
};

static double bowl_height(const double *at, const void *data)
{
    const struct bowl *bowl = data;
    double height = 1.0;

    for (int i = 0; i < 3; i++)
        height += (1.0 + 10.0 * i) * (at[i] - bowl->lowest[i]) * (at[i] - bowl->lowest[i]);
    return height;
}

static void test_search_finds_the_bottom(void **state)
{
    static const struct {
        struct bowl bowl;
        double found[3];
    } cases[] = {
        {{{0.2, 0.7, 0.4}}, {0.2, 0.7, 0.4}},
        {{{0.0, 1.0, 0.5}}, {0.0, 1.0, 0.5}},
        {{{-1.0, 0.3, 2.0}}, {0.0, 0.3, 1.0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct simplex_task task = {bowl_height, &cases[i].bowl, 3, 0.2, 2000};
        double at[3] = {0.5, 0.5, 0.5}, expected = bowl_height(cases[i].found, &cases[i].bowl);

        check_close(simplex_search(&task, at), expected, 1e-6);
        for (int j = 0; j < 3; j++)
            assert_true(fabs(at[j] - cases[i].found[j]) < 1e-3);
    }
}

/* A curved valley, to whose floor straight steps do not lead. */
static double valley_height(const double *at, const void *data)
{
    double x = 4.0 * at[0] - 2.0, y = 4.0 * at[1] - 1.0;

    (void)data;
    return 100.0 * (y - x * x) * (y - x * x) + (1.0 - x) * (1.0 - x);
}

static void test_search_follows_a_valley(void **state)
{
    const struct simplex_task task = {valley_height, NULL, 2, 0.1, 2000};
    double at[2] = {0.1, 0.9};

    (void)state;
    assert_true(simplex_search(&task, at) < 1e-8);
    check_close(4.0 * at[0] - 2.0, 1.0, 1e-3);
}

static void test_search_is_never_worse_than_its_start(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < 500; i++) {
        const struct simplex_task task = {valley_height, NULL, 2, 0.3, 1 + test_below(&random, 40)};
        double at[2] = {test_uniform(&random), test_uniform(&random)}, start = valley_height(at, NULL);
        double found = simplex_search(&task, at);

        assert_true(found <= start);
        check_double(found, valley_height(at, NULL));
    }
}

/* ---- the fit ---- */

struct profile {
    char key[KEY_MAX];
    struct fly_power_point points[POINTS_MAX];
    size_t count;
};

/* Errors of a fit, as shares, in ascending order. */
struct errors {
    double time[POINTS_MAX], energy[POINTS_MAX];
    size_t count;
};

static int compare(const void *first, const void *second)
{
    double a = *(const double *)first, b = *(const double *)second;

    return a < b ? -1 : a > b;
}

static struct errors errors_of(const struct profile *profile, const struct gpu_fit *fit)
{
    struct errors errors = {.count = profile->count};

    for (size_t i = 0; i < profile->count; i++) {
        const struct fly_power_point *at = &profile->points[i];
        struct fly_power_point point = gpu_fit_at(fit, at->limit_w);

        errors.time[i] = fabs(point.time_s / at->time_s - 1.0);
        errors.energy[i] = fabs(point.time_s * point.power_w / (at->time_s * at->power_w) - 1.0);
    }
    qsort(errors.time, errors.count, sizeof errors.time[0], compare);
    qsort(errors.energy, errors.count, sizeof errors.energy[0], compare);
    return errors;
}

/* What is demanded of the median: 3 %, or half of the scatter of the recording itself. */
static double demanded(double scatter)
{
    return fmax(0.03, scatter / 2.0);
}

/* Close at the median, and at every limit within 5 % or the scatter of the recording itself. */
static bool is_close(const struct profile *profile, const struct gpu_fit *fit)
{
    struct errors errors = errors_of(profile, fit);
    struct gpu_scatter scatter = gpu_fit_scatter(profile->points, profile->count);
    double time = errors.time[errors.count - 1], energy = errors.energy[errors.count - 1];
    double median_time = errors.time[errors.count / 2], median_energy = errors.energy[errors.count / 2];
    bool close = median_time <= demanded(scatter.time) &&
                 median_energy <= demanded(scatter.time + scatter.power) &&
                 time <= fmax(0.05, scatter.time) && energy <= fmax(0.05, scatter.time + scatter.power);

    print_message("# %-52s time %4.1f %% median %5.1f %% most, energy %4.1f %% %5.1f %%; scatter %4.1f %% "
                  "%4.1f %%%s\n",
                  profile->key, median_time * 100.0, time * 100.0, median_energy * 100.0, energy * 100.0,
                  scatter.time * 100.0, scatter.power * 100.0, close ? "" : "  TOO FAR");
    return close;
}

static struct gpu_fit fit_of(const struct profile *profile)
{
    struct gpu_fit fit = {.full_clock_s = 0.0};
    struct fly_error error = {.text = ""};

    if (gpu_fit_of(profile->points, profile->count, &fit, &error) < 0)
        fail_msg("%s: %s", profile->key, error.text);
    return fit;
}

/* What the model itself says is fitted within two percent, whatever the work is like. */
static void test_fits_what_the_model_says(void **state)
{
    static const struct gpu_nature natures[] = {
        {.clock_share = 1.0},
        {.clock_share = 0.5},
        {.clock_share = 0.3, .memory_clock = 0.8},
        {.clock_share = 0.7, .power_spread = 0.5},
        {.clock_share = 0.8, .wait_share = 0.3, .wait_hidden = 1.0},
    };
    static const char *const boards[] = {"a40", "b200"};

    (void)state;
    for (size_t board = 0; board < COUNT(boards); board++) {
        const struct gpu_shape *shape = gpu_shape_find(boards[board]);

        for (size_t i = 0; i < COUNT(natures); i++) {
            const struct gpu_load load = {
                .sample_s = 1e-3, .step_s = 1e-2, .half_busy_batch = 8.0, .nature = natures[i]};
            struct profile profile = {.count = 9};
            struct gpu_fit fit;
            struct errors errors;

            for (size_t at = 0; at < profile.count; at++) {
                double limit_w = shape->lowest_limit_w +
                                 (shape->highest_limit_w - shape->lowest_limit_w) * (double)at / 8.0;

                profile.points[at] = gpu_work(shape, &load, 1000.0, 64.0, limit_w);
            }
            snprintf(profile.key, sizeof profile.key, "%s, made up, %zu", boards[board], i);
            fit = fit_of(&profile);
            errors = errors_of(&profile, &fit);
            if (errors.time[8] > 0.02 || errors.energy[8] > 0.02)
                fail_msg("%s: off by %g in time, %g in energy", profile.key, errors.time[8],
                         errors.energy[8]);
            check_double(fit.shape.lowest_limit_w, shape->lowest_limit_w);
            check_double(fit.shape.highest_limit_w, shape->highest_limit_w);
        }
    }
}

/* The same profile, in another order and another unit of time, has the same fit. */
static void test_fit_is_deterministic(void **state)
{
    struct profile profile = {.count = 4,
                              .points = {{100, 98, 3}, {150, 149, 2}, {200, 190, 1.8}, {250, 200, 1.78}}};
    struct gpu_fit one = fit_of(&profile), two = fit_of(&profile), slower;

    (void)state;
    assert_memory_equal(&one, &two, sizeof one);
    for (size_t i = 0; i < profile.count; i++)
        profile.points[i].time_s *= 3600.0;
    slower = fit_of(&profile);
    check_close(gpu_fit_at(&slower, 120.0).time_s, 3600.0 * gpu_fit_at(&one, 120.0).time_s, 0.01);
    check_close(gpu_fit_at(&slower, 120.0).power_w, gpu_fit_at(&one, 120.0).power_w, 0.01);
}

static void test_refusals(void **state)
{
    static const struct {
        struct fly_power_point points[3];
        size_t count;
        const char *message;
    } cases[] = {
        {{{100, 90, 1}, {150, 140, 1}}, 2, "not 2"},
        {{{100, 90, 1}, {150, 140, 1}, {150, 140, 1}}, 3, "the limit 150 W occurs twice"},
        {{{100, 90, 1}, {150, 0, 1}, {200, 140, 1}}, 3, "point 2 of the profile"},
        {{{100, 90, 1}, {150, 140, INFINITY}, {200, 140, 1}}, 3, "point 2 of the profile"},
        {{{100, 90, 1}, {150, 140, 1}, {NAN, 140, 1}}, 3, "point 3 of the profile"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gpu_fit fit;
        struct fly_error error = {.text = ""};

        assert_int_equal(gpu_fit_of(cases[i].points, cases[i].count, &fit, &error), FLY_EUSAGE);
        check_contains(error.text, cases[i].message);
    }
}

static void test_scatter(void **state)
{
    const struct fly_power_point points[] = {{300, 200, 1.1}, {200, 210, 1.0}, {100, 100, 2.0}};
    struct gpu_scatter scatter = gpu_fit_scatter(points, 3);

    (void)state;
    check_close(scatter.time, 0.1, 1e-12);
    check_close(scatter.power, 0.05, 1e-12);
    check_double(gpu_fit_scatter(points + 1, 2).time, 0.0);
    /* Limits far above what is drawn should not differ at all. */
    check_close(gpu_fit_scatter((struct fly_power_point[]){{300, 100, 1.0}, {200, 100, 1.2}}, 2).time, 0.2,
                1e-12);
}

/* ---- what was recorded ---- */

static void read_windows(const char *name, struct profile *profile)
{
    char file_name[256], path[TEST_PATH_MAX], line[1024];
    FILE *file;

    snprintf(file_name, sizeof file_name, "power_profiles/%s.csv", name);
    test_data_need(file_name, path);
    *profile = (struct profile){.count = 0};
    snprintf(profile->key, sizeof profile->key, "%s", name);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL && profile->count < POINTS_MAX) {
        struct fly_power_point *point = &profile->points[profile->count++];
        char *fields[8];
        size_t count = test_data_split(line, fields, COUNT(fields));

        assert_true(count > 3);
        point->limit_w = strtod(strrchr(fields[1], '_') + 1, NULL);
        point->time_s = strtod(fields[2], NULL);
        point->power_w = 0.0;
        for (size_t gpu = 3; gpu < count; gpu++)
            point->power_w += strtod(fields[gpu], NULL) / point->time_s / (double)(count - 3);
    }
    fclose(file);
}

static void test_fits_recorded_windows(void **state)
{
    static const char *const names[] = {
        "A40+bert-base-uncased+gpu0", "A40+resnet18+gpu0,1,2,3", "A40+resnet18+gpu0",
        "A40+resnet50+gpu0,1,2,3",    "A40+resnet50+gpu0",       "A40+shufflenetv2+gpu0",
    };
    unsigned far = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct profile profile;
        struct gpu_fit fit;

        read_windows(names[i], &profile);
        fit = fit_of(&profile);
        far += !is_close(&profile, &fit);
    }
    assert_int_equal(far, 0);
}

/* Puts a row of epochs to the others of its workload. */
static void take_epoch(struct profile *profiles, size_t *count, const char *gpu, char *line)
{
    char *fields[8], key[KEY_MAX];
    struct profile *profile = profiles;

    assert_int_equal(test_data_split(line, fields, COUNT(fields)), 7);
    snprintf(key, sizeof key, "%s, %s, %s, %s, %s", gpu, fields[0], fields[1], fields[2], fields[3]);
    while (profile < profiles + *count && strcmp(profile->key, key) != 0)
        profile++;
    if (profile == profiles + *count) {
        assert_true(*count < PROFILES_MAX);
        (*count)++;
        *profile = (struct profile){.count = 0};
        snprintf(profile->key, sizeof profile->key, "%s", key);
    }
    profile->points[profile->count++] =
        (struct fly_power_point){strtod(fields[4], NULL), strtod(fields[6], NULL), strtod(fields[5], NULL)};
}

static void test_fits_recorded_epochs(void **state)
{
    static const char *const gpus[] = {"a40", "v100", "p100"};
    static struct profile profiles[PROFILES_MAX];
    size_t count = 0;
    unsigned far = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(gpus); i++) {
        char name[64], path[TEST_PATH_MAX], line[1024];
        FILE *file;

        snprintf(name, sizeof name, "zeus_nsdi23/summary_power_%s.csv", gpus[i]);
        test_data_need(name, path);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        while (fgets(line, sizeof line, file) != NULL)
            take_epoch(profiles, &count, gpus[i], line);
        fclose(file);
    }
    for (size_t i = 0; i < count; i++) {
        struct gpu_fit fit = fit_of(&profiles[i]);

        far += !is_close(&profiles[i], &fit);
    }
    assert_int_equal(far, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_finds_the_bottom),
        cmocka_unit_test(test_search_follows_a_valley),
        cmocka_unit_test(test_search_is_never_worse_than_its_start),
        cmocka_unit_test(test_fits_what_the_model_says),
        cmocka_unit_test(test_fit_is_deterministic),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_fits_recorded_windows),
        cmocka_unit_test(test_fits_recorded_epochs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
