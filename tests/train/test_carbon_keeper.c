/* SPDX-License-Identifier: Apache-2.0 */
/* What stands beside a training that follows the grid, in virtual time. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meter_fixture.h"
#include "own_directory.h"
#include "train/carbon/carbon_keeper.h"

static char directory[OWN_DIRECTORY_MAX];

/* The date where a scene begins, 90 s before a border. */
static const double begin_s = 1700000010.0;

static int make_directory(void **state)
{
    (void)state;
    return own_directory_make("keeper", directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return own_directory_remove(directory) ? 0 : -1;
}

/* A clock whose date a test may turn. */
struct turned_clock {
    const struct fake_time *time;
    int64_t turned_ns;
};

static struct mono_time turned_now(void *state)
{
    const struct turned_clock *clock = state;

    return (struct mono_time){clock->time->now_ns};
}

static struct wall_time turned_date(void *state)
{
    const struct turned_clock *clock = state;

    return (struct wall_time){INT64_C(1700000000000000000) + clock->time->now_ns + clock->turned_ns};
}

struct scene {
    struct meter_fixture meter;
    struct turned_clock turned;
    struct clock clock;
    struct carbon_keeper_options options;
    struct carbon_keeper *keeper;
    struct carbon_keeper_summary summary;
    struct arena arena;
    struct ledger_content content;
};

static void set_up(struct scene *scene, const struct fake_device *like, size_t count)
{
    memset(scene, 0, sizeof *scene);
    fixture_set_up(&scene->meter, like, count);
    fixture_open(&scene->meter, 0);
    scene->turned.time = &scene->meter.time;
    scene->clock =
        (struct clock){.name = "turned", .now = turned_now, .date = turned_date, .state = &scene->turned};
    scene->options = (struct carbon_keeper_options){
        .clock = &scene->clock,
        .meter = scene->meter.meter,
        .directory = directory,
        .head = {.run = "night", .max_slowdown = NAN, .surroundings = {0.0, 1.0}, .gpus = (uint32_t)count}};
    arena_init(&scene->arena, 16 << 20);
}

static void open_keeper(struct scene *scene)
{
    struct fly_error error;

    if (carbon_keeper_open(&scene->options, &scene->keeper, &error) < 0)
        fail_msg("%s", error.text);
}

/* Time passes, and the keeper wakes as its thread would. */
static void pass(struct scene *scene, double time_s)
{
    for (; time_s > 10.0; time_s -= 10.0) {
        fixture_pass(&scene->meter, 10.0);
        carbon_keeper_turn(scene->keeper);
    }
    fixture_pass(&scene->meter, time_s);
    carbon_keeper_turn(scene->keeper);
}

/* Closes it, and reads its account. */
static void end(struct scene *scene)
{
    carbon_keeper_close(scene->keeper, &scene->summary);
    if (scene->summary.path[0] != '\0')
        assert_int_equal(carbon_ledger_read(scene->summary.path, &scene->arena, &scene->content, NULL), 0);
}

static void tear_down(struct scene *scene)
{
    fixture_tear_down(&scene->meter);
    arena_deinit(&scene->arena);
}

static double sum_of(const struct scene *scene)
{
    double sum_j = 0.0;

    for (size_t i = 0; i < scene->content.slice_count; i++)
        sum_j += scene->content.slices[i].gpu_j;
    return sum_j;
}

struct expected_slice {
    double start_s, end_s; /* from the begin */
    double power_w;        /* NAN: unknown */
    double limit_w, steps;
    bool jumped;
};

static void check_slices(const struct scene *scene, const struct expected_slice *expected, size_t count)
{
    assert_int_equal(scene->content.slice_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct energy_slice *slice = &scene->content.slices[i];

        check_close(slice->start_s, begin_s + expected[i].start_s, 1e-15);
        check_close(slice->end_s, begin_s + expected[i].end_s, 1e-15);
        assert_int_equal(isnan(slice->gpu_j), isnan(expected[i].power_w));
        if (!isnan(slice->gpu_j))
            check_close(slice->gpu_j, expected[i].power_w * (expected[i].end_s - expected[i].start_s), 0.01);
        assert_int_equal(isnan(slice->limit_w), isnan(expected[i].limit_w));
        if (!isnan(slice->limit_w))
            check_double(slice->limit_w, expected[i].limit_w);
        check_double(slice->steps, expected[i].steps);
        assert_int_equal(slice->jumped, expected[i].jumped);
    }
}

/* Slices of two GPUs at 100 W add up to what one window over the whole of it says. */
static void keep_an_account(void **state)
{
    static const struct fly_power_point points[] = {{300.0, 280.0, 0.3}, {200.0, 190.0, 0.5}};
    static const struct expected_slice expected[] = {
        {0.0, 90.0, 200.0, 300.0, 40.0, false},   {90.0, 190.0, 200.0, 300.0, 7.0, false},
        {190.0, 390.0, 200.0, 250.0, 0.0, false}, {390.0, 490.0, 200.0, 250.0, 0.0, false},
        {490.0, 540.0, 200.0, NAN, 3.0, false},
    };
    struct fly_device_energy devices[2] = {{0}};
    struct fly_measurement measured = {.size = sizeof measured, .devices = devices, .device_capacity = 2};
    struct scene scene;
    fly_window window;

    (void)state;
    set_up(&scene, &fixture_counting, 2);
    open_keeper(&scene);
    window = fixture_begin(&scene.meter, "whole");
    carbon_keeper_limit(scene.keeper, 300.0);
    carbon_keeper_steps(scene.keeper, 40);
    pass(&scene, 90.0);
    carbon_keeper_steps(scene.keeper, 3);
    carbon_keeper_steps(scene.keeper, 4);
    pass(&scene, 100.0);
    carbon_keeper_limit(scene.keeper, 300.0); /* it stands already */
    carbon_keeper_limit(scene.keeper, 250.0);
    carbon_keeper_profile(scene.keeper, points, COUNT(points));
    pass(&scene, 300.0);
    carbon_keeper_limit(scene.keeper, NAN);
    carbon_keeper_steps(scene.keeper, 3);
    pass(&scene, 50.0);
    carbon_keeper_limit(scene.keeper, NAN);
    assert_int_equal(fly_meter_end(scene.meter.meter, window, &measured, NULL), 0);
    assert_int_equal(carbon_keeper_look(scene.keeper).slices, 4);
    end(&scene);
    assert_string_equal(scene.summary.text, "");
    assert_int_equal(scene.summary.slices, COUNT(expected));
    check_slices(&scene, expected, COUNT(expected));
    check_close(sum_of(&scene), devices[0].energy_j + devices[1].energy_j, 1e-12);
    check_close(scene.summary.energy_j, sum_of(&scene), 1e-12);
    assert_true(isnan(scene.content.slices[0].host_j));
    assert_int_equal(scene.content.head.start_s, (int64_t)begin_s);
    assert_string_not_equal(scene.content.head.host, "");
    assert_int_equal(scene.content.point_count, 2);
    tear_down(&scene);
}

/* Two programs, one after the other: from the first start to the last end, whatever borders pass before and
 * after. */
static void count_from_start_to_end(void **state)
{
    static const struct expected_slice expected[] = {{200.0, 250.0, 100.0, 300.0, 9.0, false},
                                                     {250.0, 320.0, 100.0, 250.0, 1.0, false}};
    struct scene scene;

    (void)state;
    set_up(&scene, &fixture_counting, 1);
    scene.options.rests = true;
    open_keeper(&scene);
    carbon_keeper_limit(scene.keeper, 300.0);
    pass(&scene, 200.0);
    carbon_keeper_go(scene.keeper);
    carbon_keeper_steps(scene.keeper, 7);
    pass(&scene, 50.0);
    carbon_keeper_rest(scene.keeper);
    carbon_keeper_limit(scene.keeper, NAN);
    carbon_keeper_steps(scene.keeper, 2);
    pass(&scene, 30.0);
    carbon_keeper_limit(scene.keeper, 250.0);
    carbon_keeper_go(scene.keeper);
    carbon_keeper_go(scene.keeper); /* it does already */
    pass(&scene, 40.0);
    carbon_keeper_rest(scene.keeper);
    carbon_keeper_limit(scene.keeper, NAN);
    carbon_keeper_steps(scene.keeper, 1);
    pass(&scene, 500.0);
    carbon_keeper_rest(scene.keeper);
    end(&scene);
    assert_string_equal(scene.summary.text, "");
    check_slices(&scene, expected, COUNT(expected));
    tear_down(&scene);
}

/* The first moments are too short for a meter that averages, and are told later. */
static void tell_short_ones_later(void **state)
{
    static const struct expected_slice expected[] = {{0.0, 0.01, 100.0, 300.0, 0.0, false},
                                                     {0.01, 0.02, 100.0, 275.0, 0.0, false},
                                                     {0.02, 30.0, 100.0, 250.0, 0.0, false}};
    struct scene scene;

    (void)state;
    set_up(&scene, &fixture_sensing, 1);
    open_keeper(&scene);
    carbon_keeper_limit(scene.keeper, 300.0);
    pass(&scene, 0.01);
    carbon_keeper_limit(scene.keeper, 275.0);
    pass(&scene, 0.01);
    carbon_keeper_limit(scene.keeper, 250.0);
    assert_int_equal(carbon_keeper_look(scene.keeper).slices, 0);
    assert_true(isnan(carbon_keeper_look(scene.keeper).energy_j));
    pass(&scene, 29.98);
    end(&scene);
    check_slices(&scene, expected, COUNT(expected));
    tear_down(&scene);
}

/* A counter that fails is followed by sampled power, and no joule moves from one slice to another. */
static void change_the_source(void **state)
{
    static const struct expected_slice expected[] = {
        {0.0, 90.0, 100.0, NAN, 0.0, false},
        {90.0, 390.0, 100.0, NAN, 0.0, false},
        {390.0, 690.0, 100.0, NAN, 0.0, false},
        {690.0, 700.0, 100.0, NAN, 0.0, false},
    };
    struct fake_device like = fixture_counting;
    struct scene scene;

    (void)state;
    like.counter_gain = 1.3; /* both differ */
    set_up(&scene, &like, 1);
    open_keeper(&scene);
    pass(&scene, 390.0);
    scene.meter.fakes[0].energy_state = READING_FAILED;
    pass(&scene, 310.0);
    end(&scene);
    assert_int_equal(scene.content.slice_count, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        check_close(scene.content.slices[i].gpu_j,
                    (i < 2 ? 130.0 : 100.0) * (expected[i].end_s - expected[i].start_s), 0.01);
    tear_down(&scene);
}

/* A GPU that is gone for a while: that time is unknown, and no other. */
static void lose_a_gpu(void **state)
{
    static const struct expected_slice expected[] = {
        {0.0, 90.0, 200.0, NAN, 0.0, false},     {90.0, 390.0, NAN, NAN, 0.0, false},
        {390.0, 690.0, NAN, NAN, 0.0, false},    {690.0, 990.0, 200.0, NAN, 0.0, false},
        {990.0, 1000.0, 200.0, NAN, 0.0, false},
    };
    struct scene scene;

    (void)state;
    set_up(&scene, &fixture_counting, 2);
    open_keeper(&scene);
    pass(&scene, 200.0);
    scene.meter.fakes[1].energy_state = scene.meter.fakes[1].power_state = READING_FAILED;
    pass(&scene, 300.0);
    scene.meter.fakes[1].energy_state = scene.meter.fakes[1].power_state = READING_NOT_READ;
    pass(&scene, 500.0);
    end(&scene);
    check_slices(&scene, expected, COUNT(expected));
    assert_true(isnan(scene.summary.energy_j));
    assert_int_equal(scene.summary.slices, COUNT(expected));
    tear_down(&scene);
}

static void know_no_energy(void **state)
{
    static const struct expected_slice expected[] = {{0.0, 90.0, NAN, 300.0, 5.0, false},
                                                     {90.0, 95.0, NAN, 300.0, 0.0, false}};
    struct scene scene;

    (void)state;
    set_up(&scene, &fixture_counting, 1);
    scene.options.meter = NULL;
    open_keeper(&scene);
    carbon_keeper_limit(scene.keeper, 300.0);
    carbon_keeper_steps(scene.keeper, 5);
    pass(&scene, 95.0);
    end(&scene);
    check_slices(&scene, expected, COUNT(expected));
    assert_true(isnan(scene.summary.energy_j));
    tear_down(&scene);
}

static void follow_a_clock_that_jumps(void **state)
{
    static const struct expected_slice expected[] = {
        {0.0, 90.0, 100.0, NAN, 0.0, false},
        {7290.0, 7300.0, 100.0, NAN, 0.0, true}, /* 10 s from 90 on, after a jump of two hours */
        {7300.0, 7590.0, 100.0, NAN, 0.0, false},
        {7590.0, 7600.0, 100.0, NAN, 0.0, false},
        {400.0, 410.0, 100.0, NAN, 0.0, true},
    };
    struct scene scene;

    (void)state;
    set_up(&scene, &fixture_counting, 1);
    open_keeper(&scene);
    pass(&scene, 90.0);
    scene.turned.turned_ns = 7200 * INT64_C(1000000000);
    pass(&scene, 10.0);
    pass(&scene, 300.0);
    carbon_keeper_limit(scene.keeper, 1.0);
    carbon_keeper_limit(scene.keeper, NAN);
    scene.turned.turned_ns = 0;
    pass(&scene, 10.0);
    end(&scene);
    check_slices(&scene, expected, COUNT(expected));
    check_close(sum_of(&scene), 100.0 * 410.0, 1e-3);
    tear_down(&scene);
}

/* Said once while it lasts, and nothing is lost but what never found room. */
static void live_with_a_full_disk(void **state)
{
    struct rlimit before, little;
    struct scene scene;
    struct stat status;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    set_up(&scene, &fixture_counting, 1);
    open_keeper(&scene);
    pass(&scene, 90.0);
    scene.summary = carbon_keeper_look(scene.keeper);
    assert_int_equal(stat(scene.summary.path, &status), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){(rlim_t)status.st_size + 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    pass(&scene, 900.0);
    scene.summary = carbon_keeper_look(scene.keeper);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    check_contains(scene.summary.text, "cannot be written: ");
    assert_int_equal(scene.summary.slices, 1);
    pass(&scene, 10.0);
    assert_string_equal(carbon_keeper_look(scene.keeper).text, "");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    end(&scene);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    check_contains(scene.summary.text, "1 stretches of time are missing in the account: ");
    assert_true(isnan(scene.summary.energy_j));
    assert_int_equal(scene.content.slice_count, 4);
    check_close(sum_of(&scene), 100.0 * 990.0, 1e-3);
    tear_down(&scene);
}

static void go_on_without_a_file(void **state)
{
    const struct grid_answer *answers[CARBON_SIGNALS];
    char file[96];
    struct scene scene;

    (void)state;
    snprintf(file, sizeof file, "%s/plain", directory);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    set_up(&scene, &fixture_counting, 1);
    scene.options.directory = file;
    snprintf(scene.options.head.sources[CARBON_INTENSITY], LEDGER_TEXT_MAX, "constant:380");
    open_keeper(&scene);
    check_contains(carbon_keeper_look(scene.keeper).text, "cannot be written: ");
    pass(&scene, 1000.0);
    assert_true(carbon_keeper_take(scene.keeper, answers));
    end(&scene);
    assert_string_equal(scene.summary.path, "");
    check_contains(scene.summary.text, "cannot be written: ");
    assert_int_equal(scene.summary.slices, 0);
    assert_true(isnan(scene.summary.energy_j));
    tear_down(&scene);
}

static void stay_out_of_children(void **state)
{
    const struct grid_answer *answers[CARBON_SIGNALS];
    struct scene scene;
    int waited;
    pid_t child;

    (void)state;
    set_up(&scene, &fixture_counting, 1);
    snprintf(scene.options.head.sources[CARBON_INTENSITY], LEDGER_TEXT_MAX, "constant:380");
    open_keeper(&scene);
    pass(&scene, 50.0);
    child = fork();
    if (child == 0) {
        bool bad = carbon_keeper_take(scene.keeper, answers) || answers[CARBON_INTENSITY] != NULL;

        carbon_keeper_limit(scene.keeper, 100.0);
        carbon_keeper_steps(scene.keeper, 100);
        fixture_pass(&scene.meter, 1000.0);
        carbon_keeper_turn(scene.keeper);
        carbon_keeper_close(scene.keeper, &scene.summary);
        bad |= scene.summary.path[0] != '\0' || strstr(scene.summary.text, "fork") == NULL ||
               !isnan(scene.summary.energy_j);
        _exit(bad ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &waited, 0), child);
    assert_int_equal(waited, 0);
    pass(&scene, 10.0);
    end(&scene);
    assert_int_equal(scene.content.slice_count, 1);
    check_close(sum_of(&scene), 6000.0, 1e-3);
    check_double(scene.content.slices[0].steps, 0.0);
    tear_down(&scene);
}

static void take_no_profile_that_is_too_long(void **state)
{
    struct fly_power_point points[CARBON_POINTS_MAX + 1];
    struct scene scene;

    (void)state;
    for (size_t i = 0; i < COUNT(points); i++)
        points[i] = (struct fly_power_point){100.0 + (double)i, 100.0, 1.0};
    set_up(&scene, &fixture_counting, 1);
    open_keeper(&scene);
    carbon_keeper_profile(scene.keeper, points, COUNT(points));
    check_contains(carbon_keeper_look(scene.keeper).text, "65 points");
    carbon_keeper_profile(scene.keeper, points, CARBON_POINTS_MAX);
    end(&scene);
    assert_int_equal(scene.content.point_count, CARBON_POINTS_MAX);
    carbon_keeper_close(NULL, NULL);
    tear_down(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(count_from_start_to_end),
        cmocka_unit_test(keep_an_account),
        cmocka_unit_test(tell_short_ones_later),
        cmocka_unit_test(change_the_source),
        cmocka_unit_test(lose_a_gpu),
        cmocka_unit_test(know_no_energy),
        cmocka_unit_test(follow_a_clock_that_jumps),
        cmocka_unit_test(live_with_a_full_disk),
        cmocka_unit_test(go_on_without_a_file),
        cmocka_unit_test(stay_out_of_children),
        cmocka_unit_test(take_no_profile_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
