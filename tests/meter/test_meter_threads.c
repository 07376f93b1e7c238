/* SPDX-License-Identifier: Apache-2.0 */
/* The meter among threads and processes, in real time: many at once, the sampler, fork, and switched off. */
#include "test.h"

#include <glob.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/control.h"
#include "meter_fixture.h"

enum { THREADS = 8, ROUNDS = 300, DEVICES = 2 };

/* Devices in real time. */
static void set_up_real(struct meter_fixture *fixture, size_t count)
{
    fixture_set_up(fixture, &fixture_counting, count);
    for (size_t i = 0; i < count; i++) {
        fixture->fakes[i].time = NULL;
        fixture->fakes[i].epoch = mono_after_s(mono_now(), -10.0);
    }
}

static void open_real(struct meter_fixture *fixture, double sample_hz, void (*synchronize)(void *data))
{
    const struct meter_parts parts = {.devices = &fixture->list,
                                      .sample_hz = sample_hz,
                                      .windows_max = 2 * THREADS,
                                      .synchronize = synchronize,
                                      .synchronize_data = fixture};

    assert_int_equal(meter_new(&parts, &fixture->meter, NULL), 0);
}

/* Windows that one thread begins and the next one ends. */
struct relay {
    struct fly_meter *meter;
    pthread_mutex_t lock;
    fly_window handed[THREADS];
    unsigned ended, refused, wrong;
};

static void end_one(struct relay *relay, fly_window window)
{
    struct fly_device_energy energies[DEVICES] = {{0}};
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energies, .device_capacity = DEVICES};
    bool wrong;

    if (fly_meter_end(relay->meter, window, &measured, NULL) < 0) {
        pthread_mutex_lock(&relay->lock);
        relay->refused++;
        pthread_mutex_unlock(&relay->lock);
        return;
    }
    wrong = strncmp(measured.name, "relay", 5) != 0;
    for (int i = 0; i < DEVICES; i++) {
        wrong |= energies[i].energy_j == 0.0 || energies[i].time_s < 0.0;
        wrong |= energies[i].source == FLY_ENERGY_UNAVAILABLE && energies[i].note[0] == '\0';
    }
    pthread_mutex_lock(&relay->lock);
    relay->ended++;
    relay->wrong += wrong;
    pthread_mutex_unlock(&relay->lock);
}

static void *run_relay(void *data)
{
    struct relay *relay = data;

    for (int round = 0; round < ROUNDS; round++) {
        fly_window mine = 0, other;
        struct device_reading reading;

        if (fly_meter_begin(relay->meter, "relay", &mine, NULL) < 0)
            mine = 0;
        (void)meter_latest(relay->meter, 0, &reading);
        pthread_mutex_lock(&relay->lock);
        other = relay->handed[round % THREADS];
        relay->handed[round % THREADS] = mine;
        pthread_mutex_unlock(&relay->lock);
        if (other != 0)
            end_one(relay, other);
    }
    return NULL;
}

static void test_threads(void **state)
{
    static struct meter_fixture fixture;
    static struct relay relay;
    pthread_t threads[THREADS];

    (void)state;
    set_up_real(&fixture, DEVICES);
    open_real(&fixture, 1000.0, NULL);
    relay = (struct relay){.meter = fixture.meter};
    pthread_mutex_init(&relay.lock, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_relay, &relay), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (relay.handed[i] != 0)
            end_one(&relay, relay.handed[i]);
    }
    assert_int_equal(relay.ended, THREADS * ROUNDS);
    assert_int_equal(relay.refused, 0);
    assert_int_equal(relay.wrong, 0);
    fixture_tear_down(&fixture);
}

/* Two threads at once with one handle: one of them gets the window. */
static void *end_same(void *data)
{
    end_one(data, ((struct relay *)data)->handed[0]);
    return NULL;
}

static void test_ended_once(void **state)
{
    static struct meter_fixture fixture;
    static struct relay relay;

    (void)state;
    set_up_real(&fixture, DEVICES);
    open_real(&fixture, 10.0, NULL);
    relay = (struct relay){.meter = fixture.meter};
    pthread_mutex_init(&relay.lock, NULL);
    for (unsigned round = 1; round <= 50; round++) {
        pthread_t threads[2];

        relay.handed[0] = fixture_begin(&fixture, "relay");
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, end_same, &relay), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(relay.ended, round);
        assert_int_equal(relay.refused, round);
    }
    fixture_tear_down(&fixture);
}

static unsigned synchronized;

/* Holding a lock here would be a deadlock. */
static void count_synchronize(void *data)
{
    struct meter_fixture *fixture = data;
    struct device_reading reading;

    synchronized++;
    (void)meter_latest(fixture->meter, 0, &reading);
}

static void test_synchronize(void **state)
{
    static struct meter_fixture fixture;

    (void)state;
    set_up_real(&fixture, 1);
    open_real(&fixture, 10.0, count_synchronize);
    (void)fixture_end(&fixture, fixture_begin(&fixture, "w"));
    assert_int_equal(synchronized, 2);
    fixture_tear_down(&fixture);
}

/* How many threads of this process block all signals that can be blocked. */
static unsigned threads_without_signals(void)
{
    unsigned count = 0;
    glob_t tasks;

    if (glob("/proc/self/task/*/status", 0, NULL, &tasks) != 0)
        return 0;
    for (size_t i = 0; i < tasks.gl_pathc; i++) {
        FILE *status = fopen(tasks.gl_pathv[i], "r");
        unsigned long long blocked;
        char line[128];

        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            if (strncmp(line, "SigBlk:", 7) == 0) {
                blocked = strtoull(line + 7, NULL, 16);
                /* SIGINT, SIGTERM, SIGCHLD, SIGUSR1. */
                count += (blocked & 0x14202) == 0x14202;
            }
        }
        if (status != NULL)
            fclose(status);
    }
    globfree(&tasks);
    return count;
}

/* A thread that was joined may be seen for a moment longer. */
static void await_threads(unsigned count)
{
    for (int tries = 0; tries < 60000 && threads_without_signals() != count; tries++)
        clock_real.sleep_until(NULL, mono_after_s(mono_now(), 0.001));
    assert_int_equal(threads_without_signals(), count);
}

static void test_sampler(void **state)
{
    static struct meter_fixture fixture;
    unsigned before = threads_without_signals();
    struct mono_time start = mono_now();
    struct device_reading first, last;
    fly_window window;
    struct fly_device_energy energy;

    (void)state;
    set_up_real(&fixture, 1);
    open_real(&fixture, 100.0, NULL);
    await_threads(before + 1);
    assert_true(meter_latest(fixture.meter, 0, &first));
    window = fixture_begin(&fixture, "w");
    clock_real.sleep_until(NULL, mono_after_s(mono_now(), 0.5));
    energy = fixture_end(&fixture, window);
    assert_true(meter_latest(fixture.meter, 0, &last));
    assert_true(last.after.ns > first.after.ns);
    /* A hundred a second, less what a busy machine leaves out. */
    assert_in_range(energy.samples, 1, (uintmax_t)(100.0 * mono_elapsed_s(start, mono_now())) + 2);
    assert_true(meter_own_cpu_s(fixture.meter) > 0.0);
    fixture_tear_down(&fixture);
    await_threads(before);
}

static void test_allocates_nothing(void **state)
{
    static struct meter_fixture fixture;
    struct mallinfo2 before, after;

    (void)state;
    fixture_set_up(&fixture, &fixture_counting, 2);
    fixture_open(&fixture, 0);
    (void)fixture_measure(&fixture, 1.0);
    before = mallinfo2();
    for (int i = 0; i < 20; i++)
        (void)fixture_measure(&fixture, 30.0);
    after = mallinfo2();
    assert_int_equal(after.uordblks, before.uordblks);
    fixture_tear_down(&fixture);
}

/* 0 when a child's copy of the meter is inert, otherwise what is wrong with it. */
static int try_in_child(struct meter_fixture *fixture, fly_window window)
{
    struct fly_measurement measured = {.size = sizeof measured};
    struct fly_error error;
    fly_window begun = 5;

    if (fly_meter_begin(fixture->meter, "child", &begun, &error) != FLY_ESTATE || begun != 5)
        return 1;
    if (strstr(error.text, "fork") == NULL)
        return 2;
    if (fly_meter_end(fixture->meter, window, &measured, NULL) != FLY_ESTATE)
        return 3;
    if (fly_meter_device_count(fixture->meter) != 1)
        return 4;
    fly_meter_close(fixture->meter);
    return 0;
}

static void test_fork(void **state)
{
    static struct meter_fixture fixture;
    struct fly_device_energy energy;
    fly_window window;
    int status = 0;
    pid_t child;

    (void)state;
    set_up_real(&fixture, 1);
    open_real(&fixture, 1000.0, NULL);
    window = fixture_begin(&fixture, "parent");
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(try_in_child(&fixture, window));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    clock_real.sleep_until(NULL, mono_after_s(mono_now(), 0.1));
    energy = fixture_end(&fixture, window);
    assert_int_equal(energy.source, FLY_ENERGY_COUNTER);
    fixture_tear_down(&fixture);
}

static void test_disabled(void **state)
{
    struct fly_meter_options options = {.size = sizeof options};
    struct fly_measurement measured = {.size = sizeof measured};
    struct fly_meter *meter = NULL;
    fly_window window;

    (void)state;
    setenv("FLYBALL_DISABLE", "1", 1);
    assert_int_equal(fly_meter_open(&options, &meter, NULL), 0);
    unsetenv("FLYBALL_DISABLE");
    assert_int_equal(fly_meter_device_count(meter), 0);
    assert_int_equal(fly_meter_begin(meter, "w", &window, NULL), 0);
    assert_int_equal(fly_meter_end(meter, window, &measured, NULL), 0);
    assert_int_equal(measured.device_count, 0);
    fly_meter_close(meter);
    fly_meter_close(NULL);
}

static struct fly_meter *open_gpus(const char *library, const char *gpus)
{
    const struct fly_meter_options options = {.size = sizeof options, .gpus = gpus, .nvml_path = library};
    struct fly_meter *meter = NULL;

    assert_int_equal(fly_meter_open(&options, &meter, NULL), 0);
    return meter;
}

/* A meter inside another leaves counting to it, of the devices that both have. */
static void check_counted_once(const char *library)
{
    struct fly_meter *outer = open_gpus(library, "0,1"), *inner = open_gpus(library, "1,2"), *later;

    assert_string_equal(fly_meter_device_counted_by(outer, 0), "");
    assert_string_equal(fly_meter_device_counted_by(outer, 1), "");
    check_contains(fly_meter_device_counted_by(inner, 0), "process ");
    assert_string_equal(fly_meter_device_counted_by(inner, 1), "");
    assert_null(fly_meter_device_counted_by(inner, fly_meter_device_count(inner)));
    assert_int_equal(fly_meter_device_index(inner, fly_meter_device_count(inner)), -1);
    fly_meter_close(outer);
    later = open_gpus(library, "0,1,2");
    assert_string_equal(fly_meter_device_counted_by(later, 1), "");
    check_contains(fly_meter_device_counted_by(later, 2), "process ");
    fly_meter_close(later);
    fly_meter_close(inner);
}

/* As programs open it: through the driver library, with GPUs by name or as the environment shows them. */
static void test_public(void **state)
{
    static const struct {
        const char *gpus, *visible;
        int code;
        size_t gpu_count;
    } cases[] = {
        {NULL, NULL, 0, 3},           {"1", NULL, 0, 1}, {"2,0", NULL, 0, 2}, {"none", NULL, 0, 0},
        {NULL, "0,2", 0, 2},          {NULL, "", 0, 0},  {"all", "1", 0, 3},  {"7", NULL, FLY_ENOTFOUND, 0},
        {"0,0", NULL, FLY_EUSAGE, 0},
    };
    struct emulator_settings settings = emulator_default_settings;
    char library[512], path[64];
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    struct emulator *emulator;

    (void)state;
    snprintf(library, sizeof library, "%s/libnvidia-ml.so.1",
             directory != NULL ? directory : "build/emulator");
    snprintf(path, sizeof path, "/tmp/flyball-test-meter-%d", (int)getpid());
    unlink(path);
    setenv("FLYBALL_EMULATOR_STATE", path, 1);
    assert_int_equal(emulator_settings_parse(&settings, "gpus=3,model=a100,ideal", NULL), 0);
    assert_int_equal(emulator_create(path, &settings, &emulator, NULL), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct fly_meter_options options = {
            .size = sizeof options, .gpus = cases[i].gpus, .nvml_path = library};
        struct fly_meter *meter = NULL;
        size_t gpu_count = 0;

        if (cases[i].visible != NULL)
            setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
        else
            unsetenv("CUDA_VISIBLE_DEVICES");
        assert_int_equal(fly_meter_open(&options, &meter, NULL), cases[i].code);
        for (size_t k = 0; meter != NULL && k < fly_meter_device_count(meter); k++)
            gpu_count += strcmp(fly_meter_device_kind(meter, k), "GPU") == 0;
        assert_int_equal(gpu_count, cases[i].gpu_count);
        fly_meter_close(meter);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    check_counted_once(library);
    emulator_close(emulator);
    emulator_remove(path, NULL);
}

static void test_options(void **state)
{
    static const struct {
        struct fly_meter_options options;
        const char *text;
    } cases[] = {
        {{.size = 8}, "options.size is 8"},
        {{.size = sizeof(struct fly_meter_options), .sample_hz = -1.0}, "the rate of sampling is -1 Hz"},
        {{.size = sizeof(struct fly_meter_options), .sample_hz = 1001.0}, "at most 1000"},
        {{.size = sizeof(struct fly_meter_options), .sample_hz = NAN}, "the rate of sampling is"},
        {{.size = sizeof(struct fly_meter_options), .windows_max = 65537}, "65537 windows"},
    };

    (void)state;
    setenv("FLYBALL_DISABLE", "1", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_meter *meter = NULL;
        struct fly_error error;

        assert_int_equal(fly_meter_open(&cases[i].options, &meter, &error), FLY_EUSAGE);
        check_contains(error.text, cases[i].text);
        assert_null(meter);
    }
    unsetenv("FLYBALL_DISABLE");
    assert_string_equal(fly_energy_source_name(FLY_ENERGY_COUNTER), "counter");
    assert_string_equal(fly_energy_source_name((enum fly_energy_source)99), "unavailable");
}

/* Where the meters say what they count. */
static char runtime[] = "/tmp/flyball-test-meter-XXXXXX";

static int make_runtime(void **state)
{
    (void)state;
    return mkdtemp(runtime) == NULL || setenv("XDG_RUNTIME_DIR", runtime, 1) != 0;
}

static int remove_runtime(void **state)
{
    char inner[64];

    (void)state;
    snprintf(inner, sizeof inner, "%s/flyball", runtime);
    return rmdir(inner) != 0 || rmdir(runtime) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_ended_once),
        cmocka_unit_test(test_synchronize),
        cmocka_unit_test(test_sampler),
        cmocka_unit_test(test_allocates_nothing),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_disabled),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_public),
    };

    return cmocka_run_group_tests(tests, make_runtime, remove_runtime);
}
