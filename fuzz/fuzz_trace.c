/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: any two files either open with rows in the documented ranges, or are refused by name; every known
 * job that can be made from them runs.
 *
 * The input is the train file, a line "----", and the power file.
 */
#include "sim/world/trace.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "policy/batch_policy.h"
#include "sim/recurring.h"
#include "sim/world/oracle.h"
#include "sim/world/workload.h"

enum { RECURRENCES = 5, PATH_SIZE = 512 };
static const char marker[] = "----\n";

static char directory[PATH_SIZE];
static char train_path[PATH_SIZE + 32], power_path[PATH_SIZE + 32];

static void remove_directory(void)
{
    unlink(train_path);
    unlink(power_path);
    rmdir(directory);
}

/* One directory for the whole process. */
static void make_directory(void)
{
    const char *place = getenv("TMPDIR");

    if (directory[0] != '\0')
        return;
    snprintf(directory, sizeof directory, "%s/flyball-fuzz-XXXXXX", place != NULL ? place : "/tmp");
    FUZZ_CHECK(mkdtemp(directory) != NULL);
    snprintf(train_path, sizeof train_path, "%s/summary_train.csv", directory);
    snprintf(power_path, sizeof power_path, "%s/summary_power_f.csv", directory);
    atexit(remove_directory);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    FUZZ_CHECK(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static void write_traces(const uint8_t *data, size_t size)
{
    const uint8_t *middle = memmem(data, size, marker, sizeof marker - 1);
    size_t train_size = middle != NULL ? (size_t)(middle - data) : size;
    size_t power_at = middle != NULL ? train_size + sizeof marker - 1 : size;

    make_directory();
    write_file(train_path, data, train_size);
    write_file(power_path, data + power_at, size - power_at);
}

static void check_trace(const struct trace *trace)
{
    for (size_t i = 0; i < trace->train_count; i++) {
        const struct train_row *row = &trace->train[i];

        FUZZ_CHECK(row->dataset[0] != '\0' && row->network[0] != '\0' && row->optimizer[0] != '\0');
        FUZZ_CHECK(row->batch_size >= 1 && isfinite(row->target_metric));
        FUZZ_CHECK(isnan(row->target_epoch) || (isfinite(row->target_epoch) && row->target_epoch >= 1.0));
    }
    for (size_t i = 0; i < trace->power_count; i++) {
        const struct power_row *row = &trace->power[i];

        FUZZ_CHECK(trace_word(trace, row->dataset) == row->dataset);
        FUZZ_CHECK(row->batch_size >= 1 && isfinite(row->limit_w) && row->limit_w > 0.0);
        FUZZ_CHECK(isfinite(row->epoch_time_s) && row->epoch_time_s > 0.0);
        FUZZ_CHECK(isfinite(row->power_w) && row->power_w > 0.0);
    }
}

static void check_workload(const struct workload *workload)
{
    const struct job_spec *spec = &workload->spec;

    FUZZ_CHECK(spec->batch_count >= 1 && spec->default_batch < spec->batch_count);
    FUZZ_CHECK(workload->limit_count >= 1);
    for (size_t i = 0; i < spec->batch_count; i++) {
        const struct workload_batch *batch = &workload->batches[i];

        FUZZ_CHECK(i == 0 || spec->batches[i].size > spec->batches[i - 1].size);
        FUZZ_CHECK(batch->path_count >= 1 && batch->point_count >= 1);
        for (size_t p = 1; p < batch->point_count; p++)
            FUZZ_CHECK(batch->points[p].limit_w > batch->points[p - 1].limit_w);
        FUZZ_CHECK(batch->points[batch->point_count - 1].limit_w <= spec->max_power_w);
    }
}

static void check_try(void *context, const struct try_record *record)
{
    uint64_t *tries = context;

    FUZZ_CHECK(record->number == (*tries)++);
    FUZZ_CHECK(record->energy_j >= 0.0 && record->time_s >= 0.0 && record->cost_j >= 0.0); /* and no NaN */
}

static void run_job(const struct workload *workload, const struct batch_policy *policy,
                    const struct policy_parameters *parameters)
{
    struct fly_error error = {.code = 0};
    struct recurrence recurrence;
    struct recurring job;
    uint64_t tries = 0;
    int code = 0;

    FUZZ_CHECK(recurring_init(&job, workload, policy, parameters, &error) == 0);
    job.observer = check_try;
    job.observer_context = &tries;
    for (int i = 0; i < RECURRENCES && code == 0; i++)
        code = recurring_run(&job, &recurrence, &error);
    FUZZ_CHECK(code == 0 || (code == FLY_EEXHAUSTED && error.text[0] != '\0'));
    FUZZ_CHECK(tries == job.tries && tries + job.refused <= RECURRENCES * RECURRING_TRIES_MAX);
    recurring_deinit(&job);
}

static void run_workload(struct workload *workload)
{
    static const struct policy_parameters parameters[] = {
        {.beta = 2.0, .seed = 1, .generator = GENERATOR_NUMPY},
        {.beta = 1.01, .seed = 2, .window = 2, .generator = GENERATOR_PHILOX},
    };
    struct optimum optimum;

    check_workload(workload);
    workload->spec.eta = 0.5;
    if (oracle_find(workload, &optimum, NULL) == 0)
        FUZZ_CHECK(optimum.batch < workload->spec.batch_count && isfinite(optimum.cost_j));
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        run_job(workload, &batch_policy_zeus, &parameters[i]);
        run_job(workload, &batch_policy_grid, &parameters[i]);
    }
}

static void run_known_jobs(const struct trace *trace)
{
    for (size_t i = 0; i < known_job_count; i++) {
        struct fly_error error = {.code = 0};
        struct workload workload;
        int code = workload_open(&workload, trace, &known_jobs[i], &error);

        if (code == 0) {
            run_workload(&workload);
            workload_close(&workload);
        } else {
            FUZZ_CHECK(code == FLY_ENOTFOUND || code == FLY_EDATA || code == FLY_ELIMIT);
            FUZZ_CHECK(strstr(error.text, directory) != NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fly_error error = {.code = 0};
    struct trace trace;
    int code;

    write_traces(data, size);
    code = trace_open(&trace, directory, "f", &error);
    if (code == 0) {
        check_trace(&trace);
        run_known_jobs(&trace);
        trace_close(&trace);
    } else {
        FUZZ_CHECK(code == FLY_EDATA || code == FLY_ELIMIT);
        FUZZ_CHECK(strncmp(error.text, directory, strlen(directory)) == 0);
    }
    return 0;
}
