/* SPDX-License-Identifier: Apache-2.0 */
/* The account of who uses GPUs: threads, series and the record, over a driver and a /proc that are made up.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/thread_group.h"
#include "device/device_processes.h"
#include "fake_tree.h"
#include "node/share/share.h"

enum {
    GPUS = 2,
    PATIENCE_MS = 120000,
    PROCESSES = 60,
    PATH_BYTES = 300,
    TEXT_BYTES = 512,
    METRICS_MAX = 1 << 20
};

static struct {
    atomic_int count[GPUS]; /* processes 1 to that number are there; below 0: the driver refuses */
    atomic_bool hangs;      /* the list of GPU 0 */
    atomic_int_least64_t counter_uj[GPUS];
} driver;

static size_t gpu_of(const struct device *device)
{
    return (size_t)(device->info.uuid[4] - '0');
}

static void read_gpu(const struct device *device, quantity_set wanted, struct reading *values)
{
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    values[QUANTITY_ENERGY] = (struct reading){
        .value = atomic_fetch_add(&driver.counter_uj[gpu_of(device)], 1001) + 1001, .state = READING_OK};
    values[QUANTITY_UTILIZATION] = (struct reading){.value = 0, .state = READING_OK};
}

static int list_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                          size_t maximum, size_t *out_count)
{
    size_t gpu = gpu_of(device);
    int count = atomic_load(&driver.count[gpu]);

    (void)kinds;
    while (gpu == 0 && atomic_load(&driver.hangs))
        usleep(1000);
    if (count < 0)
        return FLY_EUNSUPPORTED;
    for (int i = 0; i < count && (size_t)i < maximum; i++)
        processes[i] = (struct device_process){.pid = i + 1,
                                               .memory_bytes = 1000,
                                               .kind = DEVICE_PROCESS_COMPUTE,
                                               .instance = DEVICE_NO_INSTANCE};
    *out_count = (size_t)count;
    return 0;
}

/* Each keeps it as busy as any other. */
static enum reading_state sample_use(const struct device *device, int64_t since_us,
                                     struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    int count = atomic_load(&driver.count[gpu_of(device)]);

    for (int i = 0; i < count && (size_t)i < maximum; i++)
        samples[i] = (struct device_use_sample){.pid = i + 1, .at_us = since_us + 1, .sm_percent = 50};
    *out_count = (size_t)count;
    return READING_OK;
}

static void close_gpu(struct device *device)
{
    (void)device;
}

static const struct device_backend backend = {.name = "made-up",
                                              .kind = DEVICE_GPU,
                                              .close = close_gpu,
                                              .read = read_gpu,
                                              .processes = list_processes,
                                              .use = sample_use};

static int open_list(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error)
{
    (void)options;
    memset(out_list, 0, sizeof *out_list);
    for (int i = 0; i < GPUS; i++) {
        struct device_info info = {.kind = DEVICE_GPU, .name = "Made \"up\""};

        snprintf(info.uuid, sizeof info.uuid, "GPU-%d", i);
        assert_int_equal(device_list_add(out_list, &backend, &info, NULL, out_error), 0);
    }
    return 0;
}

/* Each process has a Slurm job of its own, but for the last two, which have one. */
static void put_process(int pid)
{
    char path[PATH_BYTES], text[TEXT_BYTES];

    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (work%d) R 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %d 1000 100 1844674407\n", pid, pid,
             1000 + pid);
    fake_tree_put(path, text);
    snprintf(path, sizeof path, "proc/%d/status", pid);
    fake_tree_put(path, "Name:\twork\nUid:\t1000\t1000\t1000\t1000\n");
    snprintf(path, sizeof path, "proc/%d/cgroup", pid);
    snprintf(text, sizeof text, "0::/system.slice/slurmstepd.scope/job_%d/step_0/user/task_0\n",
             pid == PROCESSES ? pid - 1 : pid);
    fake_tree_put(path, text);
}

static int set_up(void **state)
{
    (void)state;
    memset(&driver, 0, sizeof driver);
    fake_tree_make();
    for (int pid = 1; pid <= PROCESSES; pid++)
        put_process(pid);
    fake_tree_put("state/.keep", "");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_tree_remove();
    return 0;
}

/* ---- a daemon's part of it ---- */

struct both {
    struct watch *watch;
    struct share *share;
    char state[PATH_BYTES], totals[PATH_BYTES + 8];
};

static void name_places(struct both *both)
{
    snprintf(both->state, sizeof both->state, "%s/state", fake_tree_root());
    snprintf(both->totals, sizeof both->totals, "%s/totals", both->state);
}

static void open_both(struct both *both, size_t series, double keep_s, bool with_totals)
{
    struct watch_options watching = {
        .poll_s = 0.002, .retry_s = 0.01, .ring = 64, .open_list = open_list, .save_s = 0.05};
    struct share_options options = {
        .poll_s = 0.004, .keep_s = keep_s, .series = series, .save_s = 0.05, .root = fake_tree_root()};

    name_places(both);
    watching.state_path = with_totals ? both->totals : NULL;
    options.state = both->state;
    assert_int_equal(watch_open(&watching, &both->watch, NULL), 0);
    options.watch = both->watch;
    assert_int_equal(share_open(&options, &both->share, NULL), 0);
}

static void close_both(struct both *both)
{
    share_close(both->share);
    watch_close(both->watch);
}

#define WAIT_UNTIL(condition)                                    \
    for (int waited_ms = 0; !(condition); waited_ms++) {         \
        if (waited_ms > PATIENCE_MS)                             \
            fail_msg("line %d: never %s", __LINE__, #condition); \
        usleep(1000);                                            \
    }

/* Adds up some rows of a GPU; all rows of each GPU must add up to what it counted. */
static int64_t energy_of(struct both *both, enum usage_kind kind, size_t gpu, uint64_t pid)
{
    struct share_told told;
    int64_t sums_uj[GPUS] = {0}, found_uj = 0;

    assert_int_equal(share_tell(both->share, &told, NULL), 0);
    for (size_t i = 0; i < told.row_count; i++) {
        const struct usage_row *row = &told.rows[i];
        size_t of = (size_t)(row->uuid[4] - '0');

        sums_uj[of] += row->energy_uj;
        if (row->kind == kind && of == gpu && row->pid == pid)
            found_uj += row->energy_uj;
    }
    for (size_t i = 0; i < told.gpu_count; i++)
        assert_int_equal(sums_uj[i], told.gpus[i].energy_uj);
    share_told_free(&told);
    return found_uj;
}

static size_t rows_ended(struct both *both)
{
    struct share_told told;
    size_t count = 0;

    assert_int_equal(share_tell(both->share, &told, NULL), 0);
    for (size_t i = 0; i < told.row_count; i++)
        count += told.rows[i].pid != 0 && told.rows[i].ended_unix_ms != 0;
    share_told_free(&told);
    return count;
}

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;

    for (; (text = strstr(text, word)) != NULL; text++)
        count++;
    return count;
}

static void write_metrics(struct both *both, struct buffer *text)
{
    buffer_clear(text);
    share_write_metrics(both->share, text);
    assert_int_equal(text->error, 0);
}

static bool has(struct both *both, struct buffer *text, const char *words)
{
    write_metrics(both, text);
    return strstr(text->data, words) != NULL;
}

/* ---- tests ---- */

static void test_hang(void **state)
{
    struct both both;
    int64_t before_uj;
    (void)state;

    atomic_store(&driver.count[1], 1);
    open_both(&both, 0, 100, false);
    WAIT_UNTIL(energy_of(&both, USAGE_PROCESS, 1, 1) > 0);
    WAIT_UNTIL(energy_of(&both, USAGE_IDLE, 0, 0) > 0);
    atomic_store(&driver.hangs, true);
    usleep(20000);
    before_uj = energy_of(&both, USAGE_PROCESS, 1, 1);
    WAIT_UNTIL(energy_of(&both, USAGE_PROCESS, 1, 1) > before_uj + 10000);
    /* Afterwards nothing is missing: nobody was there all the time. */
    before_uj = energy_of(&both, USAGE_IDLE, 0, 0);
    atomic_store(&driver.hangs, false);
    WAIT_UNTIL(energy_of(&both, USAGE_IDLE, 0, 0) > before_uj + 10000);
    close_both(&both);
    assert_false(left_threads_any());
}

static void test_refused_list(void **state)
{
    struct both both;
    (void)state;

    atomic_store(&driver.count[0], -1);
    open_both(&both, 0, 100, false);
    WAIT_UNTIL(energy_of(&both, USAGE_IDLE, 0, 0) > 0); /* its utilisation is 0 */
    close_both(&both);
}

/* More owners than series: the sum over all series stays what was counted. */
static void test_series(void **state)
{
    struct both both;
    struct buffer text;
    double sum_j = 0;
    (void)state;

    buffer_init(&text, METRICS_MAX);
    atomic_store(&driver.count[0], PROCESSES);
    open_both(&both, 60, 100, false);
    /* Of 60, each GPU takes 6; the rest is for 24 owners, with energy and power. */
    WAIT_UNTIL(has(&both, &text, "flyball_attribution_series_left_out 35\n"));
    WAIT_UNTIL(has(&both, &text, "kind=\"left_out\""));
    assert_int_equal(count_words(text.data, "flyball_gpu_attributed_energy_joules_total{gpu=\"0\""), 24 + 3);
    assert_true(count_words(text.data, "\nflyball_gpu_attributed_") <= 60);
    check_contains(text.data, "model=\"Made \\\"up\\\"\",source=\"measured\",kind=\"process\",user=\"");
    for (const char *at = text.data; (at = strstr(at, "joules_total{gpu=\"0\",uuid=\"GPU-0\"")) != NULL;) {
        at = strstr(at, "} ") + 2;
        sum_j += strtod(at, NULL);
    }
    assert_true(sum_j > 0 && sum_j * 1e6 <= (double)atomic_load(&driver.counter_uj[0]) + 0.5);
    /* They go; what they had stays. */
    atomic_store(&driver.count[0], 0);
    WAIT_UNTIL(rows_ended(&both) == PROCESSES);
    share_keep(both.share, 0);
    WAIT_UNTIL(rows_ended(&both) == 0);
    assert_true(has(&both, &text, "kind=\"ended\""));
    assert_int_equal(count_words(text.data, "kind=\"process\""), 0);
    check_contains(text.data, "flyball_attribution_series_left_out 0\n");
    close_both(&both);
    buffer_deinit(&text);
}

/* The row of a process is kept as long as another one of its job is there. */
static void test_job_goes_on(void **state)
{
    struct both both;
    (void)state;

    atomic_store(&driver.count[0], PROCESSES);
    open_both(&both, 0, 0, false);
    WAIT_UNTIL(energy_of(&both, USAGE_PROCESS, 0, PROCESSES) > 0);
    atomic_store(&driver.count[0], PROCESSES - 1);
    WAIT_UNTIL(rows_ended(&both) == 1);
    atomic_store(&driver.count[0], 1);
    /* The last two have one job, which ends now. */
    WAIT_UNTIL(energy_of(&both, USAGE_PROCESS, 0, 0) > 0 && rows_ended(&both) == 0);
    assert_int_equal(energy_of(&both, USAGE_PROCESS, 0, PROCESSES), 0);
    close_both(&both);
}

static void copy_file(const char *directory, const char *name, const char *to)
{
    char path[PATH_BYTES], piece[4096];
    FILE *from, *into;
    size_t got;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    from = fopen(path, "r");
    snprintf(path, sizeof path, "%s/%s", to, name);
    if (from == NULL) {
        (void)unlink(path);
        return;
    }
    into = fopen(path, "w");
    assert_non_null(into);
    while ((got = fread(piece, 1, sizeof piece, from)) > 0)
        assert_int_equal(fwrite(piece, 1, got, into), got);
    fclose(from);
    fclose(into);
}

static void copy_state(const char *from, const char *to)
{
    copy_file(from, "totals", to);
    copy_file(from, USAGE_ENDED_FILE, to);
    copy_file(from, USAGE_NOW_FILE, to);
}

/* What the copy knows of process 1, which has not ended. */
static int64_t saved_energy(const char *directory)
{
    char path[PATH_BYTES + 32], line[8192];
    int64_t energy_uj = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, USAGE_NOW_FILE);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "\"energy_uj\":");

        if (strstr(line, "\"pid\":1,") != NULL && strstr(line, "GPU-0") != NULL && at != NULL)
            energy_uj = strtoll(at + strlen("\"energy_uj\":"), NULL, 10);
    }
    fclose(file);
    return energy_uj;
}

static int64_t counted(struct both *both, size_t gpu)
{
    struct share_told told;
    int64_t energy_uj;

    assert_int_equal(share_tell(both->share, &told, NULL), 0);
    assert_true(gpu < told.gpu_count);
    energy_uj = told.gpus[gpu].energy_uj;
    share_told_free(&told);
    return energy_uj;
}

/* A crash leaves what stood on disk at any moment; the counter went on. */
static void test_crashes(void **state)
{
    char saved[PATH_BYTES];
    uint64_t random = 3;
    int64_t last_uj = 0;
    (void)state;

    fake_tree_put("saved/.keep", "");
    snprintf(saved, sizeof saved, "%s/saved", fake_tree_root());
    for (int round = 0; round < 12; round++) {
        struct both both;

        name_places(&both);
        if (round > 0)
            copy_state(saved, both.state);
        open_both(&both, 0, 0.05, round % 3 != 2); /* sometimes the totals are lost */
        WAIT_UNTIL(round == 0 || energy_of(&both, USAGE_PROCESS, 0, 1) >= last_uj);
        for (int i = 0; i < 6; i++) {
            atomic_store(&driver.count[0], (int)test_below(&random, 5));
            usleep(test_below(&random, 30000));
        }
        atomic_store(&driver.count[0], 1);
        WAIT_UNTIL(energy_of(&both, USAGE_PROCESS, 0, 1) > 0);
        copy_state(both.state, saved);
        last_uj = saved_energy(saved);
        /* Nothing was counted twice. */
        assert_true(counted(&both, 0) <= atomic_load(&driver.counter_uj[0]));
        assert_true(energy_of(&both, USAGE_IDLE, 1, 0) <= atomic_load(&driver.counter_uj[1]));
        close_both(&both);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hang, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_job_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crashes, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
