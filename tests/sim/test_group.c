/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlapping submissions: against recorded runs of the published group
 * simulator, decision by decision, and the file format.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/adler32.h"
#include "sim/overlapping.h"
#include "test_data.h"

enum { RECORDS_MAX = 4096, FIELDS_MAX = 16 };
enum { H_GPU, H_GROUP, H_SEED, H_NUMBER, H_BATCH, H_LIMIT, H_REACHED, H_ENERGY, H_TIME, H_COUNT };

struct records {
    struct try_record items[RECORDS_MAX];
    size_t count;
};

static void keep(void *context, const struct try_record *record)
{
    struct records *records = context;

    assert_true(records->count < RECORDS_MAX);
    records->items[records->count++] = *record;
}

static const struct group *find_group(const struct group_file *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->groups[i].name, name) == 0)
            return &file->groups[i];
    }
    fail_msg("group %s is not in the input", name);
    return NULL;
}

static void load_workload(const char *gpu, const char *dataset, struct workload *out_workload)
{
    char directory[TEST_PATH_MAX];
    struct trace trace;
    const struct job_description *job = known_jobs;

    test_data_need("zeus_nsdi23", directory);
    while (strcmp(job->name, dataset) != 0)
        job++;
    assert_int_equal(trace_open(&trace, directory, gpu, NULL), 0);
    assert_int_equal(workload_open(out_workload, &trace, job, NULL), 0);
    trace_close(&trace);
    out_workload->spec.eta = 0.5;
}

static void simulate(const struct group_file *file, const struct group *group, const char *gpu,
                     struct records *out_records)
{
    const struct policy_parameters parameters = {
        .beta = 2.0, .seed = adler32(group->name), .generator = GENERATOR_NUMPY};
    struct workload workload;
    struct overlapping job;
    struct group_reader reader;
    struct submission submission;
    struct fly_error error = {0};

    load_workload(gpu, group->dataset, &workload);
    out_records->count = 0;
    assert_int_equal(overlapping_init(&job, &workload, group->name, &batch_policy_zeus, &parameters, NULL),
                     0);
    job.observer = keep;
    job.observer_context = out_records;
    assert_int_equal(group_reader_open(&reader, file, group, NULL), 0);
    while (group_reader_next(&reader, &submission, &error) > 0) {
        if (overlapping_submit(&job, &submission, &error) < 0)
            fail_msg("%s: %s", group->name, error.text);
    }
    assert_int_equal(overlapping_finish(&job, &error), 0);
    group_reader_close(&reader);
    overlapping_deinit(&job);
    workload_close(&workload);
}

static void check_record(const struct records *records, char **fields)
{
    size_t at = strtoul(fields[H_NUMBER], NULL, 10);
    const struct try_record *record = &records->items[at];
    char ours[128], theirs[128];

    if (at >= records->count)
        fail_msg("%s/%s: only %zu records", fields[H_GPU], fields[H_GROUP], records->count);
    snprintf(ours, sizeof ours, "%llu: batch %u limit %g reached %d", (unsigned long long)record->number,
             record->batch_size, record->power_limit_w, record->reached);
    snprintf(theirs, sizeof theirs, "%s: batch %s limit %s reached %s", fields[H_NUMBER], fields[H_BATCH],
             fields[H_LIMIT], fields[H_REACHED]);
    if (strcmp(ours, theirs) != 0)
        fail_msg("%s/%s: %s; recorded %s", fields[H_GPU], fields[H_GROUP], ours, theirs);
    check_close(record->energy_j, strtod(fields[H_ENERGY], NULL), 1e-12);
    check_close(record->time_s, strtod(fields[H_TIME], NULL), 1e-12);
}

static void test_recorded_groups(void **state)
{
    char input[TEST_PATH_MAX], path[TEST_PATH_MAX], line[1024], running[256] = "";
    char *fields[FIELDS_MAX];
    static struct records records;
    struct group_file file;
    size_t rows = 0, groups = 0, of_group = 0;
    FILE *history;

    (void)state;
    test_data_need("golden/group_input.csv", input);
    test_data_need("golden/group_history.csv.xz", path);
    assert_int_equal(group_file_open(&file, input, input, NULL), 0);
    history = test_data_open(path);
    assert_non_null(fgets(line, sizeof line, history));
    while (fgets(line, sizeof line, history) != NULL) {
        char key[256];

        assert_int_equal(test_data_split(line, fields, FIELDS_MAX), H_COUNT);
        snprintf(key, sizeof key, "%s,%s", fields[H_GPU], fields[H_GROUP]);
        if (strcmp(key, running) != 0) {
            assert_int_equal(records.count, of_group);
            simulate(&file, find_group(&file, fields[H_GROUP]), fields[H_GPU], &records);
            assert_int_equal(adler32(fields[H_GROUP]), strtoul(fields[H_SEED], NULL, 10));
            strcpy(running, key);
            of_group = 0;
            groups++;
        }
        check_record(&records, fields);
        of_group++;
        rows++;
    }
    assert_int_equal(records.count, of_group);
    print_message("# %zu records of %zu groups\n", rows, groups);
    assert_true(groups > 0);
    pclose(history);
    group_file_close(&file);
}

static const char header[] = "group,start_time,end_time,dataset,runtime_ratio\n";

/* Writes `rows` behind the header to a temporary file and opens it. */
static int open_rows(const char *rows, struct group_file *out_file, struct fly_error *out_error)
{
    char path[] = "/tmp/flyball-groups-XXXXXX";
    int fd = mkstemp(path), code;
    FILE *stream = fdopen(fd, "w");

    assert_non_null(stream);
    fprintf(stream, "%s%s", header, rows);
    assert_int_equal(fclose(stream), 0);
    code = group_file_open(out_file, path, "g.csv", out_error);
    unlink(path);
    return code;
}

static void test_malformed_groups(void **state)
{
    static const struct {
        const char *rows, *words;
    } bad[] = {
        {"a,0,10,cifar100,1\na,5,4,cifar100,1\n",
         "g.csv:3: column 'end_time': expected a time not before start_time"},
        {"a,5,10,cifar100,1\na,4,9,cifar100,1\n",
         "g.csv:3: column 'start_time': expected a time not before the group's"},
        {"a,0,1,cifar100,1\nb,0,1,cifar100,1\na,2,3,cifar100,1\n",
         "g.csv:4: column 'group': group 'a' began in line 2"},
        {"a,0,1,cifar100,1\na,2,3,imagenet,1\n", "g.csv:3: column 'dataset'"},
        {"a,0,1,cifar100,0\n", "g.csv:2: column 'runtime_ratio': expected a number above 0, found '0'"},
        {"a,x,1,cifar100,1\n", "g.csv:2: column 'start_time'"},
        {"a,0,nan,cifar100,1\n", "g.csv:2: column 'end_time'"},
        {",0,1,cifar100,1\n", "g.csv:2: column 'group': expected a name"},
        {"a,0,1,,1\n", "g.csv:2: column 'dataset': expected a name"},
        {"a,0,1,cifar100\n", "g.csv:2: expected 5 fields"},
        {"", "g.csv:1: the file has a header and no rows"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct group_file file;
        struct fly_error error;

        assert_int_equal(open_rows(bad[i].rows, &file, &error), FLY_EDATA);
        check_contains(error.text, bad[i].words);
    }
}

static void test_index(void **state)
{
    struct group_file file;

    (void)state;
    assert_int_equal(open_rows("a,0,10,x,1\na,5,6,x,2\n\nb,-3,1,y,1\n", &file, NULL), 0);
    assert_int_equal(file.count, 2);
    assert_int_equal(file.submissions, 3);
    assert_string_equal(file.groups[1].name, "b");
    assert_string_equal(file.groups[1].dataset, "y");
    assert_int_equal(file.groups[1].line, 5);
    assert_int_equal(file.groups[0].submissions, 2);
    group_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_groups),
        cmocka_unit_test(test_malformed_groups),
        cmocka_unit_test(test_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
