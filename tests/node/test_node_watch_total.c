/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of a device as a total that goes on over restarts, and its file. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/watch/watch_state.h"

static const struct device_info gpu = {.kind = DEVICE_GPU, .uuid = "GPU-1"};

static struct device_reading reading_at(double s, int64_t counter_uj, int64_t power_mw)
{
    struct device_reading reading = {.before = {(int64_t)(s * 1e9)}, .after = {(int64_t)(s * 1e9)}};

    if (counter_uj >= 0)
        reading.values[QUANTITY_ENERGY] = (struct reading){.value = counter_uj, .state = READING_OK};
    if (power_mw >= 0)
        reading.values[QUANTITY_POWER_INSTANT] = (struct reading){.value = power_mw, .state = READING_OK};
    return reading;
}

/* Each row is a reading, and what the total is after it. */
struct step {
    double s;
    int64_t counter_uj, power_mw; /* -1: not read */
    int64_t energy_uj, unobserved_uj;
    double unknown_s;
};

static void follow(struct watch_total *total, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct device_reading reading = reading_at(steps[i].s, steps[i].counter_uj, steps[i].power_mw);
        int64_t before_uj = total->energy_uj, delta_uj = watch_total_take(total, &gpu, &reading);

        assert_int_equal(total->energy_uj - before_uj, delta_uj);
        if (total->energy_uj != steps[i].energy_uj || total->unobserved_uj != steps[i].unobserved_uj ||
            fabs(total->unknown_s - steps[i].unknown_s) > 1e-9)
            fail_msg("step %zu: %lld uJ, %lld unobserved, %g s unknown; expected %lld, %lld, %g", i,
                     (long long)total->energy_uj, (long long)total->unobserved_uj, total->unknown_s,
                     (long long)steps[i].energy_uj, (long long)steps[i].unobserved_uj, steps[i].unknown_s);
    }
}

static void test_counter(void **state)
{
    static const struct step steps[] = {
        {10.0, 5000000, 100000, 0, 0, 0},         /* what was before is nobody's */
        {10.1, 15000000, 100000, 10000000, 0, 0}, /* 10 J more */
        {10.2, -1, 100000, 10000000, 0, 0},       /* a failed reading; the next one tells */
        {10.3, 35000000, 100000, 30000000, 0, 0},
        {20.3, 135000000, 100000, 130000000, 100000000, 0},    /* ten seconds without a reading */
        {20.4, 2000000, 100000, 132000000, 100000000, 0},      /* the driver was loaded anew */
        {20.5, 900000000000, 100000, 142000000, 100000000, 0}, /* no device draws that much */
        {20.6, 900010000000, 100000, 152000000, 100000000, 0},
        {20.7, 0, 100000, 152000000, 100000000, 0}, /* a wrong reading */
        {20.8, 900030000000, 100000, 172000000, 100000000, 0},
        {20.9, 899827000000, 100000, 182000000, 100000000, 0}, /* 213 J back, for one reading */
        {21.0, 900050000000, 100000, 192000000, 100000000, 0},
        {21.1, 905060000000, 100000, 202000000, 100000000, 0}, /* 5 kJ too high, for one reading */
        {21.2, 900065000000, 100000, 207000000, 100000000, 0},
    };
    struct watch_total total = {.energy_uj = 0};

    (void)state;
    follow(&total, steps, sizeof steps / sizeof steps[0]);
    assert_int_equal(total.resets, 8);
}

static void test_power(void **state)
{
    static const struct step steps[] = {
        {10.0, -1, 100000, 0, 0, 0},
        {11.0, -1, 200000, 150000000, 0, 0},    /* the mean of both */
        {21.0, -1, 200000, 150000000, 0, 10.0}, /* a gap */
        {21.5, -1, 200000, 250000000, 0, 10.0},
    };
    struct watch_total total = {.energy_uj = 0};

    (void)state;
    follow(&total, steps, sizeof steps / sizeof steps[0]);
}

/* A counter alone that begins anew: what nothing tells is unknown, and not 0. */
static void test_counter_alone(void **state)
{
    static const struct step steps[] = {
        {10.0, 900000000000, -1, 0, 0, 0},
        {10.1, 900010000000, -1, 10000000, 0, 0},
        {10.2, 800000000000, -1, 10000000, 0, 0.1},
        {10.3, 800010000000, -1, 20000000, 0, 0.1},
    };
    struct watch_total total = {.energy_uj = 0};

    (void)state;
    follow(&total, steps, sizeof steps / sizeof steps[0]);
}

/* However short the intervals are, nothing of a microjoule gets lost. */
static void test_power_adds_up(void **state)
{
    struct watch_total total = {.energy_uj = 0};

    (void)state;
    for (int i = 0; i <= 1000000; i++) {
        struct device_reading reading = reading_at(1.0 + i * 1e-6, -1, 1333);

        (void)watch_total_take(&total, &gpu, &reading);
    }
    assert_in_range(total.energy_uj, 1333000 - 2, 1333000 + 2);
}

static void test_resume(void **state)
{
    static const struct step same[] = {{10.0, 7000000, -1, 102000000, 3000000, 0},
                                       {10.1, 8000000, -1, 103000000, 3000000, 0}};
    static const struct step other[] = {{10.0, 7000000, -1, 107000000, 8000000, 0}};
    const struct watch_total saved = {
        .energy_uj = 100000000, .unobserved_uj = 1000000, .counts = true, .counter_uj = 5000000};
    struct watch_total total, rebooted = saved;

    (void)state;
    watch_total_resume(&total, &saved);
    follow(&total, same, 2);
    watch_total_reboot(&rebooted);
    watch_total_resume(&total, &rebooted);
    follow(&total, other, 1);
}

static void test_file(void **state)
{
    const struct watch_saved saved[] = {
        {"GPU-1",
         {.energy_uj = 81230000000,
          .unobserved_uj = 7,
          .unknown_s = 1.5,
          .resets = 2,
          .counts = true,
          .counter_uj = UINT64_MAX},
         {.idle_s = 1.5,
          .idle_known_s = 2.5,
          .idle_j = 30.25,
          .idle_known_j = 40.0,
          .capped_s = 5.0,
          .heat_s = 6.0,
          .brake_s = 7.0,
          .held_s = 8.0,
          .throttle_known_s = 9.125}},
        {"GPU-2", {.energy_uj = 0}, {.idle_s = 0}},
    };
    char path[] = "/tmp/flyball-watch-XXXXXX", boot[WATCH_BOOT_MAX];
    int file = mkstemp(path);
    struct watch_saved read[4];
    struct fly_error error;
    size_t count;

    (void)state;
    assert_true(file >= 0);
    close(file);
    assert_int_equal(watch_state_write(path, saved, 2, "abc", &error), 0);
    assert_int_equal(watch_state_read(path, read, 4, &count, boot, &error), 0);
    assert_int_equal(count, 2);
    assert_string_equal(boot, "abc");
    assert_string_equal(read[0].uuid, "GPU-1");
    assert_true(read[0].total.energy_uj == 81230000000 && read[0].total.unobserved_uj == 7 &&
                read[0].total.unknown_s == 1.5 && read[0].total.resets == 2 && read[0].total.counts &&
                read[0].total.counter_uj == UINT64_MAX);
    assert_memory_equal(&read[0].shares, &saved[0].shares, sizeof saved[0].shares);
    assert_false(read[1].total.counts);
    assert_int_equal(watch_state_read(path, read, 1, &count, boot, &error), FLY_EDATA);
    unlink(path);
    assert_int_equal(watch_state_read(path, read, 4, &count, boot, &error), 0);
    assert_int_equal(count, 0);
}

/* What a daemon before this one wrote: no shares. */
static void test_first_version(void **state)
{
    struct watch_saved read[2];
    char boot[WATCH_BOOT_MAX];
    size_t count;

    (void)state;
    assert_int_equal(watch_state_parse("flyball.watch.totals/1 boot b\nGPU-1 9 2 0.5 3 7\nGPU-2 1 0 0 0 -\n",
                                       "totals", read, 2, &count, boot, NULL),
                     0);
    assert_int_equal(count, 2);
    assert_string_equal(boot, "b");
    assert_true(read[0].total.energy_uj == 9 && read[0].total.counter_uj == 7 && !read[1].total.counts);
    assert_true(read[0].shares.idle_s == 0.0 && read[0].shares.throttle_known_s == 0.0);
}

static void test_damaged(void **state)
{
    static const char *const texts[] = {
        "",
        "flyball.watch.totals/3 boot a\n",
        "flyball.watch.totals/2 boot a\nGPU-1 1 0 0 0 5\n", /* without shares */
        "flyball.watch.totals/2 boot a\nGPU-1 1 0 0 0 5 1 1 1 1 1 1 1 1 -1\n",
        "flyball.watch.totals/2 boot a\nGPU-1 1 0 0 0 5 1 1 1 1 1 1 1 1 inf\n",
        "flyball.watch.totals/2 boot a\nGPU-1 1 0 0 0 5 1 1 1 1 1 1 1 1 1 1\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1 2 0 0 5\n", /* more unobserved than all */
        "flyball.watch.totals/1 boot a\nGPU-1 1 0 nan 0 5\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1 0 0 0 5 6\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1 0 0 0 x\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1 0 0 0 -5\n",
        "flyball.watch.totals/1 boot a\nGPU-1 1 0 0 0 99999999999999999999\n",
    };
    struct watch_saved saved[4];
    char boot[WATCH_BOOT_MAX];
    struct fly_error error;
    size_t count;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int code = watch_state_parse(texts[i], "totals", saved, 4, &count, boot, &error);

        if (code != FLY_EDATA)
            fail_msg("text %zu: %d", i, code);
        assert_memory_equal(error.text, "totals:", 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),       cmocka_unit_test(test_counter_alone),
        cmocka_unit_test(test_power),         cmocka_unit_test(test_power_adds_up),
        cmocka_unit_test(test_resume),        cmocka_unit_test(test_file),
        cmocka_unit_test(test_first_version), cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
