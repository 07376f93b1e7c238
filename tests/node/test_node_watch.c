/* SPDX-License-Identifier: Apache-2.0 */
/* The watch of a machine's devices, over GPUs that hang, are lost, come late and change their places. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/thread_group.h"
#include "node/watch/watch.h"

enum { GPUS = 3, PATIENCE_MS = 120000 };

/* What the made-up driver does. */
static struct {
    atomic_int gpus;      /* how many there are */
    atomic_bool reversed; /* in the other order */
    atomic_bool hangs[GPUS], is_lost[GPUS];
    atomic_int_least64_t counter_uj[GPUS];
    atomic_int opened, open, calls;
} driver;

static const char *const uuids[GPUS] = {"GPU-0", "GPU-1", "GPU-2"};

static void read_gpu(const struct device *device, quantity_set wanted, struct reading *values)
{
    size_t gpu = (size_t)(device->info.uuid[4] - '0');

    atomic_fetch_add(&driver.calls, 1);
    while (atomic_load(&driver.hangs[gpu]))
        usleep(1000);
    if (atomic_load(&driver.is_lost[gpu])) {
        readings_fail(values, wanted, READING_LOST, 15);
        return;
    }
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    values[QUANTITY_ENERGY] = (struct reading){
        .value = atomic_fetch_add(&driver.counter_uj[gpu], 1000) + 1000, .state = READING_OK};
    values[QUANTITY_POWER_INSTANT] = (struct reading){.value = 100000 + (int64_t)gpu, .state = READING_OK};
}

static void close_gpu(struct device *device)
{
    (void)device;
    atomic_fetch_sub(&driver.open, 1);
}

static const struct device_backend backend = {
    .name = "made-up", .kind = DEVICE_GPU, .close = close_gpu, .read = read_gpu};

static int open_list(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error)
{
    int gpus = atomic_load(&driver.gpus);

    (void)options;
    memset(out_list, 0, sizeof *out_list);
    atomic_fetch_add(&driver.opened, 1);
    for (int i = 0; i < gpus; i++) {
        int gpu = atomic_load(&driver.reversed) ? gpus - 1 - i : i;
        struct device_info info = {.kind = DEVICE_GPU, .name = "Made \"up\""};

        if (atomic_load(&driver.is_lost[gpu]))
            continue;
        snprintf(info.uuid, sizeof info.uuid, "%s", uuids[gpu]);
        assert_int_equal(device_list_add(out_list, &backend, &info, NULL, out_error), 0);
        atomic_fetch_add(&driver.open, 1);
    }
    return 0;
}

static struct watch *opened(int gpus, const char *state_path)
{
    const struct watch_options options = {
        .poll_s = 0.002, .retry_s = 0.01, .ring = 64, .open_list = open_list, .state_path = state_path};
    struct watch *watch;

    memset(&driver, 0, sizeof driver);
    atomic_store(&driver.gpus, gpus);
    assert_int_equal(watch_open(&options, &watch, NULL), 0);
    return watch;
}

static bool answers(struct watch *watch, size_t gpu)
{
    struct watch_sample sample;

    return watch_latest(watch, gpu, &sample, NULL) == 0;
}

#define WAIT_UNTIL(condition)                                    \
    for (int waited_ms = 0; !(condition); waited_ms++) {         \
        if (waited_ms > PATIENCE_MS)                             \
            fail_msg("line %d: never %s", __LINE__, #condition); \
        usleep(1000);                                            \
    }

static void test_samples(void **state)
{
    struct watch *watch = opened(2, NULL);
    struct watch_sample samples[64], latest;
    struct device_info info;
    uint64_t lost, last[2] = {0, 0};
    size_t count;

    (void)state;
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    assert_int_equal(watch_gpu_count(watch), 2);
    assert_int_equal(watch_cpu_count(watch), 0);
    watch_gpu_info(watch, 1, &info);
    assert_string_equal(info.uuid, "GPU-1");
    WAIT_UNTIL(watch_latest(watch, 0, &latest, NULL) == 0 && latest.id > 20);
    count = watch_since(watch, 2, samples, 64, &lost);
    assert_true(count + lost >= 18);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(samples[i].id, 3 + lost + i);
        if (last[samples[i].gpu] != 0)
            assert_true(samples[i].energy_j > 0.0009 && samples[i].energy_j < 0.0011);
        last[samples[i].gpu] = samples[i].id;
        assert_int_equal(samples[i].reading.values[QUANTITY_POWER_INSTANT].value, 100000 + samples[i].gpu);
    }
    assert_int_equal(watch_latest(watch, 2, &latest, NULL), FLY_ENOTFOUND);
    assert_int_equal(watch_latest(watch, 1000, &latest, NULL), FLY_ENOTFOUND);
    watch_close(watch);
    assert_int_equal(atomic_load(&driver.open), 0);
}

static void test_slow_reader(void **state)
{
    struct watch *watch = opened(1, NULL);
    struct watch_sample samples[64], latest;
    uint64_t lost;
    size_t count;

    (void)state;
    WAIT_UNTIL(watch_latest(watch, 0, &latest, NULL) == 0 && latest.id > 80);
    count = watch_since(watch, 1, samples, 10, &lost);
    assert_int_equal(count, 10);
    assert_true(lost >= 15);
    assert_int_equal(samples[0].id, 2 + lost);
    assert_int_equal(watch_since(watch, 0, samples, 64, &lost), 64);
    assert_int_equal(lost, 0);
    assert_int_equal(watch_since(watch, UINT64_MAX - 1, samples, 64, &lost), 0);
    watch_close(watch);
}

static void test_hanging_gpu(void **state)
{
    struct watch *watch = opened(2, NULL);
    struct watch_sample sample;
    struct watch_device device;
    struct fly_error error;
    uint64_t id;

    (void)state;
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    atomic_store(&driver.hangs[0], true);
    WAIT_UNTIL(!answers(watch, 0));
    assert_int_equal(watch_latest(watch, 0, &sample, &error), FLY_EREAD);
    assert_non_null(strstr(error.text, "hung"));
    watch_look(watch, 0, &device);
    assert_true(device.silent_s > 0.0);
    assert_int_equal(watch_latest(watch, 1, &sample, NULL), 0);
    id = sample.id;
    WAIT_UNTIL(watch_latest(watch, 1, &sample, NULL) == 0 && sample.id > id + 5);
    atomic_store(&driver.hangs[0], false);
    WAIT_UNTIL(answers(watch, 0));
    watch_close(watch);
    assert_int_equal(atomic_load(&driver.open), 0);
}

static void test_close_leaves_what_hangs(void **state)
{
    struct watch *watch = opened(2, NULL);

    (void)state;
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    atomic_store(&driver.hangs[0], true);
    WAIT_UNTIL(!answers(watch, 0));
    watch_close(watch);
    assert_true(left_threads_any());
    atomic_store(&driver.hangs[0], false);
    WAIT_UNTIL(!left_threads_any());
}

/* A GPU that was lost comes back, and the others are read all the time. */
static void test_lost_gpu(void **state)
{
    struct watch *watch = opened(3, NULL);
    struct watch_sample sample;
    struct fly_error error;
    struct watch_device device;

    (void)state;
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1) && answers(watch, 2));
    atomic_store(&driver.is_lost[0], true);
    WAIT_UNTIL(!answers(watch, 0));
    assert_int_equal(watch_latest(watch, 0, &sample, &error), FLY_EREAD);
    assert_non_null(strstr(error.text, "lost"));
    assert_true(answers(watch, 1) && answers(watch, 2));
    watch_look(watch, 0, &device);
    assert_false(device.present);
    atomic_store(&driver.reversed, true);
    atomic_store(&driver.is_lost[0], false);
    WAIT_UNTIL(answers(watch, 0));
    watch_gpu_info(watch, 0, &device.info);
    assert_string_equal(device.info.uuid, "GPU-0");
    assert_int_equal(watch_gpu_count(watch), 3);
    watch_close(watch);
    assert_int_equal(atomic_load(&driver.open), 0);
}

static void test_late_driver(void **state)
{
    struct watch *watch = opened(0, NULL);

    (void)state;
    assert_int_equal(watch_gpu_count(watch), 0);
    WAIT_UNTIL(atomic_load(&driver.opened) > 2);
    atomic_store(&driver.gpus, 1);
    WAIT_UNTIL(watch_gpu_count(watch) == 1 && answers(watch, 0));
    watch_close(watch);
}

static void test_release(void **state)
{
    struct watch *watch = opened(2, NULL);
    const struct device *device;
    struct fly_error error;
    int calls;

    (void)state;
    WAIT_UNTIL(answers(watch, 0));
    assert_int_equal(watch_borrow(watch, 5, &device, NULL), FLY_EUNSUPPORTED);
    assert_int_equal(watch_borrow(watch, 0, &device, NULL), 0);
    assert_string_equal(device->info.uuid, "GPU-0");
    assert_int_equal(watch_release(watch, 0.05, &error), FLY_EBUSY);
    assert_true(atomic_load(&driver.open) > 0);
    watch_give_back(watch, 0);
    assert_int_equal(watch_release(watch, 120.0, &error), 0);
    assert_int_equal(atomic_load(&driver.open), 0);
    assert_int_equal(watch_borrow(watch, 0, &device, NULL), FLY_EUNSUPPORTED);
    calls = atomic_load(&driver.calls);
    usleep(30000);
    assert_int_equal(atomic_load(&driver.calls), calls);
    watch_resume(watch);
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    watch_close(watch);
}

/* The device that was lent stays open while others are opened anew. */
static void test_lent_while_lost(void **state)
{
    struct watch *watch = opened(2, NULL);
    const struct device *first, *second;

    (void)state;
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    assert_int_equal(watch_borrow(watch, 1, &first, NULL), 0);
    atomic_store(&driver.is_lost[0], true);
    WAIT_UNTIL(!answers(watch, 0));
    atomic_store(&driver.is_lost[0], false);
    WAIT_UNTIL(answers(watch, 0));
    assert_int_equal(watch_borrow(watch, 1, &second, NULL), 0);
    assert_ptr_equal(first, second);
    assert_string_equal(first->info.uuid, "GPU-1");
    watch_give_back(watch, 1);
    watch_give_back(watch, 1);
    watch_close(watch);
    assert_int_equal(atomic_load(&driver.open), 0);
}

static void count_call(void *state)
{
    atomic_fetch_add((atomic_int *)state, 1);
}

static void test_listener(void **state)
{
    struct watch *watch = opened(2, NULL);
    atomic_int calls = 0;
    int before;

    (void)state;
    watch_listen(watch, count_call, &calls);
    WAIT_UNTIL(atomic_load(&calls) > 10);
    watch_listen(watch, NULL, NULL);
    before = atomic_load(&calls);
    usleep(20000);
    assert_int_equal(atomic_load(&calls), before);
    watch_close(watch);
}

static void test_totals_go_on(void **state)
{
    char path[] = "/tmp/flyball-watch-XXXXXX";
    int file = mkstemp(path);
    struct watch *watch;
    struct watch_device device;
    int64_t before_uj;

    (void)state;
    close(file);
    unlink(path);
    watch = opened(1, path);
    WAIT_UNTIL(answers(watch, 0) && atomic_load(&driver.calls) > 5);
    watch_close(watch);
    before_uj = atomic_load(&driver.counter_uj[0]) - 1000; /* the first reading counts nothing */
    watch = opened(0, path);
    atomic_store(&driver.counter_uj[0], before_uj + 1000 + 5000000);
    atomic_store(&driver.gpus, 1);
    WAIT_UNTIL(answers(watch, 0));
    watch_look(watch, 0, &device);
    assert_true(device.total.energy_uj >= before_uj + 5000000);
    assert_int_equal(device.total.unobserved_uj, 5000000 + 1000);
    watch_close(watch);
    unlink(path);
}

static void test_metrics(void **state)
{
    struct watch *watch = opened(2, NULL);
    struct buffer text;

    (void)state;
    buffer_init(&text, 1 << 16);
    WAIT_UNTIL(answers(watch, 0) && answers(watch, 1));
    watch_write_metrics(watch, &text);
    assert_int_equal(text.error, 0);
    assert_non_null(strstr(text.data, "\nflyball_gpu_power_watts{gpu=\"1\",uuid=\"GPU-1\",model=\"Made "
                                      "\\\"up\\\"\",source=\"measured\"} 100.001"));
    assert_non_null(strstr(text.data, "flyball_gpu_energy_joules_total{gpu=\"0\""));
    assert_null(strstr(text.data, "temperature")); /* this device has none */
    atomic_store(&driver.hangs[1], true);
    WAIT_UNTIL(!answers(watch, 1));
    buffer_clear(&text);
    watch_write_metrics(watch, &text);
    assert_null(strstr(text.data, "flyball_gpu_power_watts{gpu=\"1\""));
    assert_non_null(
        strstr(text.data,
               "flyball_gpu_up{gpu=\"1\",uuid=\"GPU-1\",model=\"Made \\\"up\\\"\",source=\"measured\"} 0"));
    atomic_store(&driver.hangs[1], false);
    buffer_deinit(&text);
    watch_close(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),     cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_hanging_gpu), cmocka_unit_test(test_close_leaves_what_hangs),
        cmocka_unit_test(test_lost_gpu),    cmocka_unit_test(test_late_driver),
        cmocka_unit_test(test_release),     cmocka_unit_test(test_lent_while_lost),
        cmocka_unit_test(test_listener),    cmocka_unit_test(test_totals_go_on),
        cmocka_unit_test(test_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
