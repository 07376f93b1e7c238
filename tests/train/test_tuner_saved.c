/* SPDX-License-Identifier: Apache-2.0 */
/* Saved profiles: found again, and not believed when they are another's or broken. */
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tuner_bench.h"

static const struct fly_objective energy = {FLY_OBJECTIVE_ENERGY, 0.0, INFINITY};
static char directory[64];

static void empty_directory(void)
{
    char pattern[96];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/*", directory);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
}

/* The one file there. */
static void find_file(char path[256])
{
    char pattern[96];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/*.json", directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, 256, "%s", found.gl_pathv[0]);
    globfree(&found);
}

static struct fly_tuner_report run(struct tuner_bench *bench, const struct fly_tuner_options *options)
{
    struct fly_tuner *tuner = tuner_bench_tuner(bench, options);
    struct fly_tuner_report report = tuner_bench_settle(bench, tuner, 0);

    assert_int_equal(report.state, FLY_TUNER_SETTLED);
    fly_tuner_free(tuner);
    return report;
}

static void test_reused(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    struct fly_tuner_report first, second;

    (void)state;
    tuner_profile_made(&profile, 2);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    options.profile_directory = directory;
    first = run(&bench, &options);
    assert_false(first.reused);
    assert_string_equal(first.profile, "");
    second = run(&bench, &options);
    assert_true(second.reused);
    check_contains(second.profile, "reused");
    check_double(second.limit_w, first.limit_w);
    assert_true(second.search_steps <= 1);
    /* For another objective what is missing is measured, and no more. */
    options.objective.kind = FLY_OBJECTIVE_TIME;
    second = run(&bench, &options);
    assert_true(second.reused);
    check_double(second.limit_w, tuner_profile_best_w(&profile, &options.objective));
    /* What no longer fits is measured again at once. */
    options.objective = energy;
    bench.slower = 1.2;
    second = run(&bench, &options);
    assert_int_equal(second.searches, 2);
    assert_false(second.reused);
    tuner_bench_stop(&bench);
    empty_directory();
}

/* Another job, batch size, driver or GPU has another profile. */
static void test_keys(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options base, rows[5];

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    base = tuner_bench_options(&bench, energy);
    base.profile_directory = directory;
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = base;
    rows[1].job_name = "job/../other";
    rows[2].batch_size = 128;
    rows[3].driver = "2.0";
    rows[4].gpu_model = "Another GPU";
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_false(run(&bench, &rows[i]).reused);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_true(run(&bench, &rows[i]).reused);
    tuner_bench_stop(&bench);
    empty_directory();
}

static void test_bad_files(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{\"format\":\"flyball power profile 9\"}", "\\x00\\xff", "{\"points\":1e999}",
    };
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;
    char path[256];

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    options.profile_directory = directory;
    run(&bench, &options);
    find_file(path);
    for (size_t i = 0; i < COUNT(texts); i++) {
        FILE *file = fopen(path, "w");
        struct fly_tuner_report report;

        assert_non_null(file);
        fputs(texts[i], file);
        fclose(file);
        report = run(&bench, &options);
        assert_false(report.reused);
        check_contains(report.profile, path);
        check_contains(report.profile, "measuring anew");
        assert_true(run(&bench, &options).reused); /* it was written again */
    }
    tuner_bench_stop(&bench);
    empty_directory();
}

/* The file of one GPU under the name of another's; a limit that is not to be tried; a point twice. */
static void test_bad_content(void **state)
{
    static const struct {
        const char *points, *gpu, *part;
    } rows[] = {
        {"{\"limit_w\":300,\"power_w\":250,\"time_s\":0.1,\"time_error\":0,\"bound\":\"yes\"}", "A", NULL},
        {"{\"limit_w\":300,\"power_w\":250,\"time_s\":0.1,\"time_error\":0,\"bound\":\"yes\"}", "B",
         "other GPUs"},
        {"{\"limit_w\":299,\"power_w\":250,\"time_s\":0.1,\"time_error\":0}", "A", "not one to try"},
        {"{\"limit_w\":300,\"power_w\":0,\"time_s\":0.1,\"time_error\":0}", "A", "above 0"},
        {"{\"limit_w\":300,\"power_w\":\"250\",\"time_s\":0.1,\"time_error\":0}", "A", "above 0"},
        {"{\"limit_w\":300,\"power_w\":250,\"time_s\":0.1,\"time_error\":0},"
         "{\"limit_w\":300,\"power_w\":250,\"time_s\":0.1,\"time_error\":0}",
         "A", "twice"},
        {"", "A", "no points"},
    };
    const struct profile_key key = {"A", "1", "j", 8, 1, FLY_TUNER_POWER_LIMIT, 0.0};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_tuner_point points[2] = {{.limit_w = 300.0}, {.limit_w = 275.0}};
        struct fly_error error = {.text = ""};
        char text[1024];
        size_t read = 99;
        int code;

        snprintf(text, sizeof text,
                 "{\"format\":\"flyball power profile "
                 "1\",\"knob\":\"power\",\"gpu_model\":\"%s\",\"driver\":\"1\","
                 "\"job_name\":\"j\",\"batch_size\":8,\"gpu_count\":1,\"points\":[%s]}",
                 rows[i].gpu, rows[i].points);
        code = profile_read_text("name", text, strlen(text), &key, points, 2, &read, &error);
        if (rows[i].part == NULL) {
            assert_int_equal(code, 0);
            assert_int_equal(read, 1);
            assert_int_equal(points[0].mark, FLY_TUNER_VALID);
            continue;
        }
        assert_int_equal(code, FLY_EDATA);
        check_contains(error.text, rows[i].part);
        assert_int_equal(points[0].mark, FLY_TUNER_NOT_MEASURED); /* left alone */
    }
}

static void test_no_directory(void **state)
{
    struct tuner_profile profile;
    struct tuner_bench bench;
    struct fly_tuner_options options;

    (void)state;
    tuner_profile_made(&profile, 1);
    tuner_bench_start(&bench, &profile, "exact");
    options = tuner_bench_options(&bench, energy);
    options.profile_directory = "/nonexistent/place";
    check_contains(run(&bench, &options).profile, "not saved");
    tuner_bench_stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reused),       cmocka_unit_test(test_keys),
        cmocka_unit_test(test_bad_files),    cmocka_unit_test(test_bad_content),
        cmocka_unit_test(test_no_directory),
    };
    int failed;

    snprintf(directory, sizeof directory, "/tmp/flyball-profiles-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    empty_directory();
    rmdir(directory);
    return failed;
}
