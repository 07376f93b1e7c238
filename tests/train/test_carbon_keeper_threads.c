/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's threads in real time: nothing waits for the network, and energy adds up. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meter_fixture.h"
#include "own_directory.h"
#include "standin_gb.h"
#include "train/carbon/carbon_keeper.h"

static char directory[OWN_DIRECTORY_MAX], cache[80];

/* A loaded machine is slow; a request would take its time-out, which is set to a multiple of that. */
static const double at_once_s = 10.0, patience_s = 60.0;

static int make_directory(void **state)
{
    (void)state;
    if (!own_directory_make("keeper", directory))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", directory);
    setenv("FLYBALL_CARBON_TIMEOUT", "55", 1);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return own_directory_remove(directory) ? 0 : -1;
}

static void sleep_s(double time_s)
{
    clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), time_s));
}

static struct carbon_keeper_options options_of(struct fly_meter *meter, const char *source)
{
    struct carbon_keeper_options options = {
        .meter = meter,
        .directory = directory,
        .head = {.program = "a test", .max_slowdown = NAN, .surroundings = {0.0, 1.0}, .gpus = 2},
        .goodbye_s = at_once_s / 2.0};

    snprintf(options.head.sources[CARBON_INTENSITY], LEDGER_TEXT_MAX, "%s", source);
    return options;
}

static void open_meter(struct meter_fixture *fixture)
{
    const struct meter_parts parts = {.devices = &fixture->list, .sample_hz = 50.0};

    fixture_set_up(fixture, &fixture_counting, 2);
    for (size_t i = 0; i < 2; i++) {
        fixture->fakes[i].time = NULL;
        fixture->fakes[i].epoch = mono_after_s(mono_now(), -10.0);
    }
    assert_int_equal(meter_new(&parts, &fixture->meter, NULL), 0);
}

/* Cuts from the training's thread while the other writes: all adds up. */
static void add_up(void **state)
{
    static const struct fly_power_point points[] = {{300.0, 280.0, 0.3}, {200.0, 190.0, 0.5}};
    const struct grid_answer *answers[CARBON_SIGNALS];
    struct carbon_keeper_summary summary;
    struct carbon_keeper_options options;
    struct ledger_content content;
    struct fly_device_energy devices[2] = {{0}};
    struct fly_measurement measured = {.size = sizeof measured, .devices = devices, .device_capacity = 2};
    struct carbon_keeper *keeper;
    struct meter_fixture meter;
    double sum_j = 0.0, length_s = 0.0, steps = 0.0;
    struct arena arena;
    fly_window window;

    (void)state;
    open_meter(&meter);
    options = options_of(meter.meter, "constant:380");
    window = fixture_begin(&meter, "whole");
    assert_int_equal(carbon_keeper_open(&options, &keeper, NULL), 0);
    for (unsigned i = 0; i < 100; i++) {
        carbon_keeper_limit(keeper, 200.0 + i % 7);
        for (unsigned j = 0; j < 10; j++)
            carbon_keeper_steps(keeper, 1);
        if (i % 10 == 0)
            carbon_keeper_profile(keeper, points, COUNT(points));
        (void)carbon_keeper_take(keeper, answers);
        (void)carbon_keeper_look(keeper);
        sleep_s(0.01);
    }
    carbon_keeper_close(keeper, &summary);
    assert_int_equal(fly_meter_end(meter.meter, window, &measured, NULL), 0);
    assert_string_equal(summary.text, "");
    arena_init(&arena, 16 << 20);
    assert_int_equal(carbon_ledger_read(summary.path, &arena, &content, NULL), 0);
    assert_true(content.slice_count >= 100 && content.slice_count == summary.slices);
    for (size_t i = 0; i < content.slice_count; i++) {
        sum_j += content.slices[i].gpu_j;
        length_s += content.slices[i].end_s - content.slices[i].start_s;
        steps += content.slices[i].steps;
        if (i > 0 && !content.slices[i].jumped)
            check_double(content.slices[i].start_s, content.slices[i - 1].end_s);
    }
    check_double(steps, 1000.0);
    check_close(summary.energy_j, sum_j, 1e-9);
    /* 200 W; the window around is a little longer, but each end is known only as well as the meter says. */
    assert_true(length_s <= measured.time_s + 1e-5);
    check_close(sum_j, 200.0 * length_s, 0.1);
    assert_true(sum_j <= devices[0].energy_j + devices[0].uncertainty_j + devices[1].energy_j +
                             devices[1].uncertainty_j);
    assert_int_equal(content.point_count, 2);
    fixture_tear_down(&meter);
    arena_deinit(&arena);
}

static bool wait_until(const _Atomic unsigned *count, unsigned least)
{
    struct mono_time start = mono_now();

    while (atomic_load(count) < least && mono_elapsed_s(start, mono_now()) < patience_s)
        sleep_s(0.005);
    return atomic_load(count) >= least;
}

/* Whether the service is known to have failed, to all processes. */
static bool is_blamed(void)
{
    DIR *listing = opendir(cache);
    const struct dirent *entry;
    bool blamed = false;

    while (listing != NULL && (entry = readdir(listing)) != NULL)
        blamed |= strstr(entry->d_name, ".service") != NULL;
    if (listing != NULL)
        closedir(listing);
    return blamed;
}

static bool can_ask(struct carbon_keeper *keeper)
{
    struct carbon_keeper_summary summary = carbon_keeper_look(keeper);

    return strstr(summary.text, "libcurl") == NULL;
}

/* A service that never answers: neither opening nor steps nor closing wait for it, nor is it blamed for that.
 */
static void wait_for_no_answer(void **state)
{
    const struct grid_answer *answers[CARBON_SIGNALS];
    struct mono_time start = mono_now(), closing;
    struct carbon_keeper_options options = options_of(NULL, "gb:national");
    struct carbon_keeper_summary summary;
    struct carbon_keeper *keeper;
    struct standin_gb gb;

    (void)state;
    assert_true(standin_gb_start(&gb, cache));
    atomic_store(&gb.words->mood, GB_HANGS);
    assert_int_equal(carbon_keeper_open(&options, &keeper, NULL), 0);
    sleep_s(0.2);
    if (!can_ask(keeper)) {
        carbon_keeper_close(keeper, NULL);
        standin_gb_stop(&gb);
        skip();
    }
    assert_true(wait_until(&gb.words->requests, 1));
    assert_false(carbon_keeper_take(keeper, answers));
    carbon_keeper_limit(keeper, 300.0);
    carbon_keeper_steps(keeper, 5);
    closing = mono_now();
    carbon_keeper_close(keeper, &summary);
    assert_true(mono_elapsed_s(closing, mono_now()) < at_once_s);
    assert_true(mono_elapsed_s(start, mono_now()) < patience_s + 2.0 * at_once_s);
    check_contains(summary.text, "'gb:national' has not answered yet");
    assert_in_range(summary.slices, 1, 2);
    assert_false(is_blamed());
    standin_gb_stop(&gb);
}

/* What the network brings is given out when it has come. */
static void give_out_what_comes(void **state)
{
    const struct grid_answer *answers[CARBON_SIGNALS];
    struct carbon_keeper_options options = options_of(NULL, "gb:national");
    struct mono_time start = mono_now();
    struct carbon_keeper_summary summary;
    struct carbon_keeper *keeper;
    struct standin_gb gb;
    bool any = false;

    (void)state;
    assert_true(standin_gb_start(&gb, cache));
    atomic_store(&gb.words->now_s, (int64_t)time(NULL));
    assert_int_equal(carbon_keeper_open(&options, &keeper, NULL), 0);
    while (!any && can_ask(keeper) && mono_elapsed_s(start, mono_now()) < patience_s) {
        any = carbon_keeper_take(keeper, answers);
        sleep_s(0.005);
    }
    if (can_ask(keeper)) {
        assert_true(any);
        assert_true(answers[CARBON_INTENSITY]->actual.count > 13 * 48);
        check_double(answers[CARBON_INTENSITY]->actual.periods[100].value, 200.0);
        assert_true(answers[CARBON_INTENSITY]->published.count > 40);
    }
    carbon_keeper_close(keeper, &summary);
    standin_gb_stop(&gb);
}

/* A source whose lock another process holds, or that is being asked, or not yet: closing is quick. */
static void close_at_any_moment(void **state)
{
    struct carbon_keeper_options options = options_of(NULL, "gb:national");
    struct standin_gb gb;

    (void)state;
    snprintf(cache, sizeof cache, "%s/fresh", directory);
    assert_true(standin_gb_start(&gb, cache));
    atomic_store(&gb.words->mood, GB_HANGS);
    for (unsigned i = 0; i < 10; i++) {
        struct carbon_keeper *first, *second;
        struct mono_time start;

        assert_int_equal(carbon_keeper_open(&options, &first, NULL), 0);
        assert_int_equal(carbon_keeper_open(&options, &second, NULL), 0);
        sleep_s(0.005 * (double)i);
        start = mono_now();
        carbon_keeper_close(second, NULL);
        carbon_keeper_close(first, NULL);
        assert_true(mono_elapsed_s(start, mono_now()) < 2.0 * at_once_s);
    }
    standin_gb_stop(&gb);
}

/*
 * Where nothing lets the thread go, a key that is to be read from a pipe here, closing lets go of the thread;
 * it ends by itself once it can.
 */
static void let_go_of_a_thread_that_is_held(void **state)
{
    struct carbon_keeper_options options = options_of(NULL, "electricity-maps:DE");
    struct carbon_keeper_summary summary;
    struct carbon_keeper *keeper;
    struct mono_time start = mono_now();
    char key[96];
    int writer;

    (void)state;
    snprintf(key, sizeof key, "%s/key", directory);
    assert_int_equal(mkfifo(key, 0600), 0);
    setenv("FLYBALL_ELECTRICITY_MAPS_KEY_FILE", key, 1);
    setenv("FLYBALL_CARBON_CACHE", directory, 1);
    assert_int_equal(carbon_keeper_open(&options, &keeper, NULL), 0);
    /* Succeeds once somebody reads, and is closed behind the closing. */
    while ((writer = open(key, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
        if (mono_elapsed_s(start, mono_now()) > patience_s)
            fail_msg("nobody reads %s", key);
        sleep_s(0.005);
    }
    start = mono_now();
    carbon_keeper_close(keeper, &summary);
    assert_true(mono_elapsed_s(start, mono_now()) < at_once_s);
    assert_int_equal(summary.slices, 1);
    close(writer);
    unsetenv("FLYBALL_ELECTRICITY_MAPS_KEY_FILE");
}

/* Forks while threads run: the child closes its copy and ends, the parent's goes on. */
static void survive_forks(void **state)
{
    struct carbon_keeper_options options;
    struct carbon_keeper_summary summary;
    struct carbon_keeper *keeper;
    struct meter_fixture meter;

    (void)state;
    open_meter(&meter);
    options = options_of(meter.meter, "constant:380");
    assert_int_equal(carbon_keeper_open(&options, &keeper, NULL), 0);
    for (unsigned i = 0; i < 10; i++) {
        int waited;
        pid_t child;

        carbon_keeper_limit(keeper, 100.0 + i);
        child = fork();
        if (child == 0) {
            alarm(60);
            carbon_keeper_limit(keeper, 7.0);
            carbon_keeper_close(keeper, &summary);
            _exit(summary.path[0] != '\0' ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &waited, 0), child);
        assert_int_equal(waited, 0);
        sleep_s(0.02);
    }
    carbon_keeper_close(keeper, &summary);
    assert_string_equal(summary.text, "");
    assert_in_range(summary.slices, 10, 11); /* one more where the first limit comes late */
    fixture_tear_down(&meter);
}

/* What is on disk when the process is killed: whole lines, all that was cut before. */
static void survive_a_kill(void **state)
{
    char place[80], **paths;
    struct ledger_content content;
    struct arena arena;
    size_t count = 0;
    int pipes[2], waited;
    char byte = 0;
    pid_t child;

    (void)state;
    snprintf(place, sizeof place, "%s/killed", directory);
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        struct carbon_keeper_options options = options_of(NULL, "constant:380");
        struct carbon_keeper *keeper;

        alarm(60);
        options.directory = place;
        if (carbon_keeper_open(&options, &keeper, NULL) < 0)
            _exit(1);
        for (unsigned i = 0;; i++) {
            carbon_keeper_limit(keeper, 100.0 + i);
            sleep_s(0.002);
            if (carbon_keeper_look(keeper).slices >= 20)
                (void)!write(pipes[1], &byte, 1);
        }
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &waited, 0), child);
    close(pipes[0]);
    arena_init(&arena, 16 << 20);
    assert_int_equal(carbon_ledger_list(place, &arena, &paths, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(carbon_ledger_read(paths[0], &arena, &content, NULL), 0);
    assert_true(content.slice_count >= 20);
    for (size_t i = 1; i < content.slice_count; i++)
        assert_true(content.slices[i].jumped || content.slices[i].start_s == content.slices[i - 1].end_s);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survive_a_kill), /* forks to start threads, so it comes before there are any */
        cmocka_unit_test(add_up),
        cmocka_unit_test(wait_for_no_answer),
        cmocka_unit_test(give_out_what_comes),
        cmocka_unit_test(close_at_any_moment),
        cmocka_unit_test(let_go_of_a_thread_that_is_held),
        cmocka_unit_test(survive_forks),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
