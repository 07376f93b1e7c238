/* SPDX-License-Identifier: Apache-2.0 */
/* Boards of recorded profiles: what is read of each kind of file, what is refused, and that they behave as
 * measured. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emulator/boards.h"
#include "emulator/control.h"
#include "emulator/measured.h"
#include "test_data.h"

static char file_path[64], state_path[80];

static void write_file(const char *text)
{
    FILE *file = fopen(file_path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- reading ---- */

static const char windows[] = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"
                              "1.5,step_300,10,2500,2700\n"
                              "13.5,step_200,11,2000,2200\n"
                              "25.5,step_200,13,2000,2200\n"
                              "40.5,_x_100,20,1900,2100\n";
static const char epochs[] = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
                             "imagenet,resnet50,64,sgd,100,20,98\n"
                             "imagenet,resnet50,64,sgd,150,14,147\n"
                             "imagenet,resnet50,64,sgd,200,12,180\n"
                             "imagenet,resnet50,128,sgd,100,21,99\n"
                             "imagenet,resnet50,128,sgd,150,15,148\n"
                             "imagenet,resnet50,128,sgd,200,13,181\n";
static const char rows[] = "limit_w,ceiling_mhz,power_w,step_time_s,step_energy_j,mark,bound\n"
                           "300,,520,0.1,52,valid,no\n"
                           "250,,,,,hot,unknown\n"
                           "200,,400,0.11,44,valid,yes\n"
                           "200,1200,300,0.19,57,valid,yes\n"
                           "100,,200,0.2,40,valid,yes\n";
static const char report[] =
    "{\"schema\": \"flyball.profile/2\", \"gpus\": [{\"name\": \"NVIDIA A40\"}, {\"name\": \"NVIDIA "
    "A40\"}],\n"
    " \"rows\": [{\"limit_w\": 300, \"power_w\": 520, \"step_time_s\": 0.1, \"mark\": \"valid\"},\n"
    "  {\"limit_w\": 250, \"power_w\": null, \"step_time_s\": null, \"mark\": \"hot\"},\n"
    "  {\"limit_w\": 200, \"power_w\": 400, \"step_time_s\": 0.11, \"mark\": \"valid\"},\n"
    "  {\"limit_w\": null, \"ceiling_mhz\": 1200, \"power_w\": 300, \"step_time_s\": 0.2, \"mark\": "
    "\"valid\"},\n"
    "  {\"limit_w\": 100, \"power_w\": 200, \"step_time_s\": 0.2, \"mark\": \"valid\"}]}\n";
static const char saved[] = "{\"format\": \"flyball power profile 1\", \"knob\": \"power\", \"gpu_model\": "
                            "\"NVIDIA H100 80GB HBM3\",\n"
                            " \"gpu_count\": 2, \"points\": [{\"limit_w\": 300, \"power_w\": 520, "
                            "\"time_s\": 0.1, \"time_error\": 0},\n"
                            "  {\"limit_w\": 200, \"power_w\": 400, \"time_s\": 0.11, \"time_error\": 0},\n"
                            "  {\"limit_w\": 100, \"power_w\": 200, \"time_s\": 0.2, \"time_error\": 0}]}\n";

static const struct reading_case {
    const char *text, *workload, *board;
    bool of_steps;
    size_t count;
    struct fly_power_point middle; /* the second point */
} reading_cases[] = {
    {windows, "", NULL, false, 3, {200, 2100 * 0.5 * (1 / 11.0 + 1 / 13.0), 12}},
    {epochs, "imagenet/resnet50/128/sgd", NULL, false, 3, {150, 148, 15}},
    {epochs, "imagenet/resnet50/64", NULL, false, 3, {150, 147, 14}},
    {rows, "", NULL, true, 3, {200, 200, 0.11}},
    {report, "", "a40", true, 3, {200, 200, 0.11}},
    {saved, "", "h100", true, 3, {200, 200, 0.11}},
};

static void test_reads_each_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(reading_cases); i++) {
        const struct reading_case *test = &reading_cases[i];
        struct measured measured;
        struct fly_error error = {.text = ""};

        write_file(test->text);
        if (measured_read(file_path, test->workload, &measured, &error) < 0)
            fail_msg("case %zu: %s", i, error.text);
        assert_int_equal(measured.count, test->count);
        assert_int_equal(measured.of_steps, test->of_steps);
        check_close(measured.points[1].limit_w, test->middle.limit_w, 1e-12);
        check_close(measured.points[1].power_w, test->middle.power_w, 1e-12);
        check_close(measured.points[1].time_s, test->middle.time_s, 1e-12);
        if (test->board != NULL)
            assert_int_equal(measured_board(measured.gpu), emulated_board_find(test->board));
    }
}

static void test_finds_boards_by_name(void **state)
{
    static const struct {
        const char *text, *board;
    } cases[] = {
        {"A40+resnet50+gpu0.csv", "a40"},  {"summary_power_v100.csv", "v100"},
        {"NVIDIA A100-SXM4-80GB", "a100"}, {"Tesla V100-SXM2-32GB", "v100-sxm2"},
        {"NVIDIA H200", "h200"},           {"NVIDIA B200", "b200"},
        {"Emulated A40 (Flyball)", "a40"}, {"NVIDIA A4000", NULL},
        {"summary_power_p100.csv", NULL},  {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int board = measured_board(cases[i].text);

        if (board != (cases[i].board != NULL ? emulated_board_find(cases[i].board) : -1))
            fail_msg("'%s' is taken for board %d", cases[i].text, board);
    }
}

/* Each error names the file, and line and field where there is one. */
static const struct {
    const char *text, *workload;
    int code;
    const char *message;
} refusals[] = {
    {"", "", FLY_EDATA, ":1: header: expected the columns of a recorded profile"},
    {"a,b\n1,2\n", "", FLY_EDATA, ":1: header: expected the columns of a recorded profile"},
    {"window_name,elapsed_time\nx_100,1\n", "", FLY_EDATA, "gpu0_energy"},
    {"window_name,elapsed_time,gpu0_energy\nx_100,1,90\nwarmup,2,100\n", "", FLY_EDATA,
     ":3: column 'window_name': expected a name that ends in _ and a power limit in W, such as step_250, "
     "found "
     "'warmup'"},
    {"window_name,elapsed_time,gpu0_energy\nx_100,-1,90\n", "", FLY_EDATA,
     ":2: column 'elapsed_time': expected a number above 0, found '-1'"},
    {"window_name,elapsed_time,gpu0_energy\nx_100,1,90\nx_150,1\n", "", FLY_EDATA, ":3: "},
    {"window_name,elapsed_time,gpu0_energy\nx_100,1,90\nx_150,1,nan\n", "", FLY_EDATA,
     ":3: column 'gpu0_energy': expected a number above 0, found 'nan'"},
    {"window_name,elapsed_time,gpu0_energy\nx_100,1,90\nx_150,1,140\n", "", FLY_EDATA,
     "2 power limits are not enough"},
    {"power_limit,time_per_epoch,average_power\n100,1,\n", "", FLY_EDATA,
     ":2: column 'average_power': expected a number above 0, found ''"},
    {"power_limit,time_per_epoch\n100,1\n", "", FLY_EDATA, "average_power"},
    {epochs, "", FLY_EUSAGE,
     "holds several workloads, such as 'imagenet/resnet50/64/sgd' and 'imagenet/resnet50/128/sgd'; choose "
     "one "
     "with --workload"},
    {epochs, "imagenet/resnet5", FLY_EUSAGE, "has no workload 'imagenet/resnet5'"},
    {"limit_w,power_w,time_s\n100,90,zero\n", "", FLY_EDATA,
     ":2: column 'time_s': expected a number above 0, found 'zero'"},
    {"{", "", FLY_EDATA, ":1: no JSON"},
    {"{\"schema\": \"flyball.run/1\"}", "", FLY_EDATA, "field 'schema': expected flyball.profile/3"},
    {"{\"schema\": \"flyball.profile/3\"}", "", FLY_EDATA, "field 'gpus': expected"},
    {"{\"schema\": \"flyball.profile/2\", \"gpus\": [{\"name\": \"A40\"}],\n\"rows\": [\n{\"limit_w\": "
     "\"high\"}]}",
     "", FLY_EDATA, ":3: field 'rows[0].limit_w': expected a number above 0"},
    {"{\"format\": \"flyball power profile 1\", \"knob\": \"clock\"}", "", FLY_EDATA,
     "field 'knob': expected power, found clock"},
    {"{\"format\": \"flyball power profile 1\", \"gpu_model\": \"A40\", \"gpu_count\": 1, \"points\": "
     "[{\"limit_w\": 100}]}",
     "", FLY_EDATA, ":1: field 'points[0].power_w': expected a number above 0, found nothing"},
    {report, "resnet50", FLY_EUSAGE, "only a CSV file has several workloads"},
    {"{\"schema\":\"flyball.recording/1\"\n", "", FLY_EDATA, ":1"},
};

static void test_refuses_with_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct measured measured;
        struct fly_error error = {.text = ""};
        int code;

        write_file(refusals[i].text);
        code = measured_read(file_path, refusals[i].workload, &measured, &error);
        if (code != refusals[i].code)
            fail_msg("case %zu: code %d, text '%s'", i, code, error.text);
        check_contains(error.text, file_path);
        check_contains(error.text, refusals[i].message);
    }
}

static void test_refuses_missing_files(void **state)
{
    struct measured measured;
    struct fly_error error = {.text = ""};

    (void)state;
    assert_int_equal(measured_read("/nonexistent/profile.csv", "", &measured, &error), FLY_ENOTFOUND);
    check_contains(error.text, "/nonexistent/profile.csv");
    assert_true(measured_read("/", "", &measured, &error) < 0);
}

/* A recording under three limits; its first second under each does not count. */
static void test_reads_recordings(void **state)
{
    static const char head[] =
        "{\"schema\":\"flyball.recording/1\",\"flyball\":\"0.2.0\",\"date\":\"2026-11-21T16:20:00Z\","
        "\"interval_s\":0.5,\"devices\":1}\n"
        "{\"device\":0,\"kind\":\"GPU\",\"backend\":\"nvml\",\"name\":\"NVIDIA "
        "A40\",\"uuid\":\"GPU-1\",\"sensor\":{}}\n";
    static const struct {
        int limit_w, power_w, clock_mhz;
    } held[] = {{300, 240, 1740}, {200, 199, 1300}, {150, 149, 1000}};
    struct measured measured;
    struct fly_error error = {.text = ""};
    FILE *file = fopen(file_path, "w");
    long long t_ns = 0;

    (void)state;
    assert_non_null(file);
    fputs(head, file);
    for (size_t i = 0; i < COUNT(held); i++) {
        for (int j = 0; j < 20; j++, t_ns += 500000000)
            fprintf(file,
                    "{\"t\":%lld,\"d\":0,\"power_mw\":%d,\"power_limit_mw\":%d,\"clock_gpu_mhz\":%d,"
                    "\"utilization_percent\":100}\n",
                    t_ns, (j < 2 ? 280 : held[i].power_w) * 1000, held[i].limit_w * 1000,
                    j < 2 ? 1740 : held[i].clock_mhz);
    }
    fprintf(file, "{\"t\":%lld,\"end\":true}\n", t_ns);
    fclose(file);
    if (measured_read(file_path, "", &measured, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(measured.count, 3);
    assert_false(measured.of_steps);
    assert_int_equal(measured_board(measured.gpu), emulated_board_find("a40"));
    for (size_t i = 0; i < COUNT(held); i++) {
        check_double(measured.points[i].limit_w, held[i].limit_w);
        check_close(measured.points[i].power_w, held[i].power_w, 1e-12);
        check_close(measured.points[i].time_s, 1740.0 / held[i].clock_mhz, 1e-12);
    }
}

/* ---- behaving ---- */

static struct emulator *start(const char *profile, const char *more)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};

    unlink(state_path);
    if (emulator_settings_parse(&settings, more, &error) < 0 ||
        emulator_settings_set(&settings, "profile", profile, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        fail_msg("%s", error.text);
    return emulator;
}

static void stop(struct emulator *emulator)
{
    emulator_close(emulator);
    assert_int_equal(emulator_remove(state_path, NULL), 0);
}

/* Works for a while under a limit: mean power, and by how much the work is slowed. */
static struct fly_power_point work_under(struct emulator *emulator, double limit_w)
{
    const struct emulator_workload *work = emulator_workload_of(emulator);
    struct fly_power_point point = {.limit_w = limit_w};
    struct mono_time begin;
    struct emulator_load load = {work->wanted_w, 1.0, 0, true, work->nature};
    int slot = 0;

    assert_int_equal(emulator_set_limit_w(emulator, 0, limit_w, NULL), 0);
    assert_int_equal(emulator_work_begin(emulator, 0, &load, &slot, NULL), 0);
    emulator_advance_s(emulator, 5.0);
    begin = emulator_now(emulator);
    emulator_advance_s(emulator, 20.0);
    point.power_w = (emulator_truth_energy_j(emulator, 0, emulator_now(emulator)) -
                     emulator_truth_energy_j(emulator, 0, begin)) /
                    20.0;
    point.time_s = emulator_slowdown(emulator, 0);
    emulator_work_end(emulator, 0, slot);
    return point;
}

/* The emulated board does under each limit what the fit says, in virtual time and with its regulator. */
static void check_behaves(const char *path)
{
    struct emulator *emulator = start(path, "gpus=1,time=virtual");
    struct measured measured;
    struct gpu_fit fit;

    assert_int_equal(measured_read(path, "", &measured, NULL), 0);
    assert_int_equal(gpu_fit_of(measured.points, measured.count, &fit, NULL), 0);
    check_double(emulator_shape(emulator, 0)->highest_limit_w, fit.shape.highest_limit_w);
    assert_int_equal(emulator_set_limit_w(emulator, 0, fit.shape.lowest_limit_w - 1.0, NULL), FLY_EUSAGE);
    for (size_t i = 0; i < measured.count; i++) {
        struct fly_power_point point = work_under(emulator, measured.points[i].limit_w);
        struct fly_power_point expected = gpu_fit_at(&fit, measured.points[i].limit_w);

        check_close(point.power_w, expected.power_w, 1e-4);
        check_close(point.time_s, expected.time_s / fit.full_clock_s, 1e-4);
    }
    stop(emulator);
}

static void test_behaves_as_its_fit(void **state)
{
    (void)state;
    write_file(windows);
    check_behaves(file_path);
}

static void test_behaves_as_recorded(void **state)
{
    char path[TEST_PATH_MAX];
    struct emulator *emulator;

    (void)state;
    test_data_need("power_profiles/A40+resnet50+gpu0.csv", path);
    check_behaves(path);
    emulator = start(path, "gpus=1,time=virtual");
    assert_int_equal(emulator_settings_of(emulator)->board, emulated_board_find("a40"));
    stop(emulator);
    emulator = start(path, "gpus=1,time=virtual,model=h100");
    assert_int_equal(emulator_settings_of(emulator)->board, emulated_board_find("h100"));
    stop(emulator);
}

static void test_a_bad_profile_starts_nothing(void **state)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator = NULL;
    struct fly_error error = {.text = ""};

    (void)state;
    write_file("limit_w,power_w,time_s\n100,90,zero\n");
    unlink(state_path);
    assert_int_equal(emulator_settings_set(&settings, "profile", file_path, NULL), 0);
    assert_int_equal(emulator_create(state_path, &settings, &emulator, &error), FLY_EDATA);
    check_contains(error.text, ":2: column 'time_s'");
    assert_int_not_equal(access(state_path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_each_kind),     cmocka_unit_test(test_finds_boards_by_name),
        cmocka_unit_test(test_refuses_with_place),  cmocka_unit_test(test_refuses_missing_files),
        cmocka_unit_test(test_reads_recordings),    cmocka_unit_test(test_behaves_as_its_fit),
        cmocka_unit_test(test_behaves_as_recorded), cmocka_unit_test(test_a_bad_profile_starts_nothing),
    };
    int failed;

    snprintf(file_path, sizeof file_path, "/tmp/flyball-test-recorded-%d", (int)getpid());
    snprintf(state_path, sizeof state_path, "%s.state", file_path);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file_path);
    unlink(state_path);
    return failed;
}
