/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `zeus` with the published generator against recorded runs of the
 * published code: every decision and every sampled path equal, numbers to a
 * relative 1e-12.
 */
#include "test.h"

#include <stdlib.h>

#include "sim_tries.h"
#include "test_data.h"

enum { FIELDS_MAX = 32 };
static const double tolerance = 1e-12;

static void load_workload(const char *gpu, const char *dataset, struct workload *out_workload)
{
    char directory[TEST_PATH_MAX];
    struct trace trace;
    struct fly_error error;
    const struct job_description *job = known_jobs;

    test_data_need("zeus_nsdi23", directory);
    while (strcmp(job->name, dataset) != 0)
        job++;
    if (trace_open(&trace, directory, gpu, &error) < 0 ||
        workload_open(out_workload, &trace, job, &error) < 0)
        fail_msg("%s", error.text);
    trace_close(&trace);
}

/* Runs a whole job; returns 0 or how it ended. */
static int simulate(struct workload *workload, double eta, const struct policy_parameters *parameters,
                    uint64_t recurrences, struct sim_tries *out_tries, struct fly_error *out_error)
{
    workload->spec.eta = eta;
    out_tries->count = 0;
    return sim_tries_run(workload, &batch_policy_zeus, parameters, recurrences, out_tries, out_error);
}

static void check_number(double ours, double theirs, const char *what, const char *where)
{
    if (!(fabs(ours - theirs) <= tolerance * fabs(theirs)))
        fail_msg("%s: %s is %.17g, recorded %.17g", where, what, ours, theirs);
}

enum history {
    H_GPU,
    H_DATASET,
    H_SEED,
    H_TRY,
    H_REC,
    H_BATCH,
    H_LIMIT,
    H_PATH,
    H_PATHS,
    H_PROFILED,
    H_BOUND,
    H_REACHED,
    H_ENERGY,
    H_TIME,
    H_COST,
    H_COUNT
};

static void check_row(const struct sim_tries *tries, char **fields)
{
    size_t at = strtoul(fields[H_TRY], NULL, 10);
    const struct try_record *record = &tries->records[at];
    char where[128], decision[128], recorded[128];

    snprintf(where, sizeof where, "%s/%s seed %s try %zu", fields[H_GPU], fields[H_DATASET], fields[H_SEED],
             at);
    if (at >= tries->count)
        fail_msg("%s: only %zu tries", where, tries->count);
    snprintf(decision, sizeof decision, "recurrence %llu batch %u limit %g path %u reached %d",
             (unsigned long long)record->recurrence, record->batch_size, record->power_limit_w, record->path,
             record->reached);
    snprintf(recorded, sizeof recorded, "recurrence %s batch %s limit %s path %s reached %s", fields[H_REC],
             fields[H_BATCH], fields[H_LIMIT], fields[H_PATH], fields[H_REACHED]);
    if (strcmp(decision, recorded) != 0)
        fail_msg("%s: %s; recorded: %s", where, decision, recorded);
    check_number(record->energy_j, strtod(fields[H_ENERGY], NULL), "energy", where);
    check_number(record->time_s, strtod(fields[H_TIME], NULL), "time", where);
    check_number(record->cost_j, strtod(fields[H_COST], NULL), "cost", where);
}

static void test_history(void **state)
{
    char path[TEST_PATH_MAX], line[1024], job[256] = "", gpu_and_dataset[256] = "";
    char *fields[FIELDS_MAX];
    struct sim_tries *tries = calloc(1, sizeof *tries);
    struct workload workload = {0};
    size_t rows = 0, jobs = 0, rows_of_job = 0;
    FILE *file;

    (void)state;
    test_data_need("golden/history.csv.xz", path);
    file = test_data_open(path);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        char key[256];

        assert_int_equal(test_data_split(line, fields, FIELDS_MAX), H_COUNT);
        snprintf(key, sizeof key, "%s,%s", fields[H_GPU], fields[H_DATASET]);
        if (strcmp(key, gpu_and_dataset) != 0) {
            workload_close(&workload);
            load_workload(fields[H_GPU], fields[H_DATASET], &workload);
            strcpy(gpu_and_dataset, key);
        }
        snprintf(key, sizeof key, "%s,%s,%s", fields[H_GPU], fields[H_DATASET], fields[H_SEED]);
        if (strcmp(key, job) != 0) {
            const struct policy_parameters parameters = {.beta = 2.0,
                                                         .seed = (uint32_t)strtoul(fields[H_SEED], NULL, 10),
                                                         .generator = GENERATOR_NUMPY};

            assert_int_equal(tries->count, rows_of_job);
            assert_int_equal(
                simulate(&workload, 0.5, &parameters, workload_recurrences(&workload), tries, NULL), 0);
            strcpy(job, key);
            rows_of_job = 0;
            jobs++;
        }
        check_row(tries, fields);
        rows_of_job++;
        rows++;
    }
    assert_int_equal(tries->count, rows_of_job);
    print_message("# %zu tries of %zu recorded jobs\n", rows, jobs);
    assert_true(rows > 0);
    pclose(file);
    workload_close(&workload);
    free(tries);
}

static uint32_t crc32_of(const char *text, size_t length, uint32_t crc)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xEDB88320u & -(crc & 1));
    }
    return ~crc;
}

enum sweep {
    S_GPU,
    S_DATASET,
    S_ETA,
    S_BETA,
    S_WINDOW,
    S_SEED,
    S_RECURRENCES,
    S_LENGTH,
    S_NEVER_RAN,
    S_CRC,
    S_ENERGY,
    S_TIME,
    S_ERROR,
    S_COUNT
};

static void check_sweep(const struct sim_tries *tries, char **fields, const char *where)
{
    double energy_j = 0.0, time_s = 0.0;
    uint32_t crc = 0;

    assert_int_equal(tries->count, strtoul(fields[S_LENGTH], NULL, 10));
    for (size_t i = 0; i < tries->count; i++) {
        const struct try_record *record = &tries->records[i];
        char text[64];
        int length = snprintf(text, sizeof text, "%u,%g,%d;", record->batch_size, record->power_limit_w,
                              record->reached);

        crc = crc32_of(text, (size_t)length, crc);
        energy_j += record->energy_j;
        time_s += record->time_s;
    }
    if (crc != strtoul(fields[S_CRC], NULL, 10))
        fail_msg("%s: crc %u, recorded %s", where, crc, fields[S_CRC]);
    check_number(energy_j, strtod(fields[S_ENERGY], NULL), "total energy", where);
    check_number(time_s, strtod(fields[S_TIME], NULL), "total time", where);
}

static void test_sweep(void **state)
{
    char path[TEST_PATH_MAX], line[1024];
    char *fields[FIELDS_MAX];
    struct sim_tries *tries = calloc(1, sizeof *tries);
    size_t rows = 0, ended = 0;
    FILE *file;

    (void)state;
    test_data_need("golden/sweep.csv", path);
    file = test_data_open(path);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        struct workload workload;
        struct policy_parameters parameters = {.generator = GENERATOR_NUMPY};
        char where[256];
        int code;

        assert_int_equal(test_data_split(line, fields, FIELDS_MAX), S_COUNT);
        snprintf(where, sizeof where, "%s/%s eta %s beta %s window %s", fields[S_GPU], fields[S_DATASET],
                 fields[S_ETA], fields[S_BETA], fields[S_WINDOW]);
        parameters.beta = strtod(fields[S_BETA], NULL);
        parameters.window = (uint32_t)strtoul(fields[S_WINDOW], NULL, 10);
        parameters.seed = (uint32_t)strtoul(fields[S_SEED], NULL, 10);
        load_workload(fields[S_GPU], fields[S_DATASET], &workload);
        code = simulate(&workload, strtod(fields[S_ETA], NULL), &parameters,
                        strtoul(fields[S_RECURRENCES], NULL, 10), tries, NULL);
        if ((code < 0) != (fields[S_ERROR][0] != '\0'))
            fail_msg("%s: ended with %d, recorded '%s'", where, code, fields[S_ERROR]);
        if (code == 0)
            check_sweep(tries, fields, where);
        ended += code < 0;
        rows++;
        workload_close(&workload);
    }
    print_message("# %zu recorded runs, %zu of which ended in an error\n", rows, ended);
    assert_true(rows > 0);
    pclose(file);
    free(tries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_history), cmocka_unit_test(test_sweep)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
