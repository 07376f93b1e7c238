/* SPDX-License-Identifier: Apache-2.0 */
/* The public simulator on the made-up trace. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#include <flyball/sim.h>

#include "own_directory.h"
#include "sim/world/made_trace.h"

enum { SEEDS = 3, RECURRENCES = 12, PATH_SIZE = 256 };

static char traces[OWN_DIRECTORY_MAX];
static const uint32_t seeds[SEEDS] = {4, 1, 9};
static const struct fly_sim_job made_up = {.size = sizeof made_up,
                                           .name = "made-up",
                                           .network = "mlp",
                                           .optimizer = "sgd",
                                           .target_metric = 0.9,
                                           .max_epochs = 100,
                                           .default_batch_size = 1024};

static struct fly_sim_options some_options(void)
{
    return (struct fly_sim_options){.size = sizeof(struct fly_sim_options),
                                    .traces = traces,
                                    .gpu_model = "made-up",
                                    .described = &made_up,
                                    .described_count = 1,
                                    .seeds = seeds,
                                    .seed_count = SEEDS,
                                    .recurrences = RECURRENCES,
                                    .bootstrap = -1};
}

static FILE *open_file(const char *name)
{
    char path[PATH_SIZE];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", traces, name);
    file = fopen(path, "we");
    assert_non_null(file);
    return file;
}

static int make_traces(void **state)
{
    FILE *file;

    (void)state;
    assert_true(own_directory_make("sim-open", traces));
    file = open_file("summary_train.csv");
    made_trace_write_train(file, 1);
    fclose(file);
    file = open_file("summary_power_made-up.csv");
    made_trace_write_power(file);
    fclose(file);
    return 0;
}

static int remove_traces(void **state)
{
    (void)state;
    return own_directory_remove(traces) ? 0 : -1;
}

/* The column of a key. */
static struct fly_sim_column column_of(const struct fly_sim_table *table, const char *key)
{
    struct fly_sim_column column = {.size = sizeof column};
    size_t place = 0;

    while (fly_sim_table_column(table, place, &column) == 0 && strcmp(column.key, key) != 0)
        place++;
    assert_string_equal(column.key, key);
    return column;
}

/* Every column has its list, and says why what it lacks is not known. */
static void check_columns(const struct fly_sim_table *table)
{
    struct fly_sim_column column = {.size = sizeof column};
    size_t place = 0;

    for (; fly_sim_table_column(table, place, &column) == 0; place++) {
        assert_true(column.help[0] != '\0');
        assert_int_equal((column.texts != NULL) + (column.wholes != NULL) + (column.reals != NULL), 1);
        for (size_t row = 0; row < fly_sim_table_rows(table); row++) {
            bool known = column.unknown == NULL || column.unknown[row] == NULL;

            if (column.type == FLY_SIM_REAL)
                assert_int_equal(known, !isnan(column.reals[row]));
            if (column.type == FLY_SIM_TEXT)
                assert_int_equal(known, column.texts[row] != NULL);
        }
    }
    assert_true(place > 0);
    assert_int_equal(fly_sim_table_column(table, place, &column), FLY_ENOTFOUND);
}

static void check_same_tables(const struct fly_sim_table *one, const struct fly_sim_table *other)
{
    struct fly_sim_column a = {.size = sizeof a}, b = {.size = sizeof b};

    assert_int_equal(fly_sim_table_rows(one), fly_sim_table_rows(other));
    for (size_t i = 0; fly_sim_table_column(one, i, &a) == 0; i++) {
        assert_int_equal(fly_sim_table_column(other, i, &b), 0);
        for (size_t row = 0; row < fly_sim_table_rows(one); row++) {
            if (a.type == FLY_SIM_REAL)
                check_same(a.reals[row], b.reals[row], 0.0);
            else if (a.type == FLY_SIM_WHOLE)
                assert_int_equal(a.wholes[row], b.wholes[row]);
            else if (a.texts[row] != NULL || b.texts[row] != NULL)
                assert_string_equal(a.texts[row], b.texts[row]);
        }
    }
}

/* The policy `default` once more, which counts what it is asked, by its data. */
struct own {
    const struct fly_batch_job *job;
    pthread_t thread;
    unsigned asked, ended;
    unsigned fail_at; /* 0: never */
};

static int own_create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    (void)out_reason;
    ((struct own *)job->data)->job = job;
    *out_state = job->data;
    return 0;
}

static int own_propose(const void *state, const struct fly_batch_question *question,
                       struct fly_batch_decision *out_decision)
{
    struct own *own = ((const struct own *)state)->job->data;

    assert_true(pthread_equal(pthread_self(), own->thread));
    own->asked++;
    if (own->fail_at > 0 && question->trial + 1 >= own->fail_at)
        return 7;
    out_decision->batch = own->job->default_batch;
    out_decision->limit_rule = FLY_LIMIT_FIXED;
    out_decision->limit_w = own->job->batches[own->job->default_batch]
                                .limits_w[own->job->batches[own->job->default_batch].limit_count - 1];
    return 0;
}

static void own_observe(void *state, const struct fly_trial *trial)
{
    assert_true(trial->energy_j > 0.0);
    ((struct own *)state)->ended++;
}

static const struct fly_batch_policy own_table = {.abi = FLY_PLUGIN_ABI,
                                                  .size = sizeof(struct fly_batch_policy),
                                                  .name = "default-again",
                                                  .version = 1,
                                                  .create = own_create,
                                                  .propose = own_propose,
                                                  .observe = own_observe};

static void test_rows_and_tries(void **state)
{
    const struct fly_sim_policy policies[] = {{.name = "zeus"}, {.name = "bayes"}};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows, *tries, *again;
    double summed = 0.0;

    (void)state;
    options.policies = policies;
    options.policy_count = COUNT(policies);
    options.threads = 2;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, &tries, NULL), 0);
    check_columns(rows);
    check_columns(tries);
    assert_int_equal(fly_sim_table_rows(rows), 4); /* with default and oracle */
    assert_string_equal(column_of(rows, "policy").texts[1], "bayes");
    for (int i = 0; i < 4; i++)
        assert_int_equal(column_of(rows, "completed_runs").wholes[i], SEEDS);
    check_double(column_of(rows, "whole_run_energy_change_percent_mean").reals[2], 0.0);
    /* The tries are those of the policies that were named. */
    summed = column_of(rows, "tries_mean").reals[0] + column_of(rows, "tries_mean").reals[1];
    check_close((double)fly_sim_table_rows(tries), summed * SEEDS, 1e-12);
    options.threads = 1;
    assert_int_equal(fly_sim_run_jobs(&options, &again, NULL, NULL), 0);
    check_same_tables(rows, again);
    fly_sim_table_free(again);
    fly_sim_table_free(rows);
    fly_sim_table_free(tries);
}

/* A table of the caller's runs on its thread, and its figures are those of the same policy built in. */
static void test_own_policy(void **state)
{
    struct own own = {.thread = pthread_self()};
    const struct fly_sim_policy policies[] = {{.table = &own_table, .data = &own}, {.name = "default"}};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows;
    struct fly_sim_column column = {.size = sizeof column};

    (void)state;
    options.policies = policies;
    options.policy_count = COUNT(policies);
    options.threads = 7;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, NULL), 0);
    assert_string_equal(column_of(rows, "policy").texts[0], "default-again");
    for (size_t i = 0; fly_sim_table_column(rows, i, &column) == 0; i++) {
        if (column.type == FLY_SIM_REAL)
            check_same(column.reals[0], column.reals[1], 1e-12);
    }
    assert_true(own.asked >= 2 * own.ended); /* every question is asked twice */
    assert_true(own.ended >= SEEDS * RECURRENCES);
    fly_sim_table_free(rows);
}

static void test_own_policy_fails(void **state)
{
    struct own own = {.thread = pthread_self(), .fail_at = 5};
    const struct fly_sim_policy policies[] = {{.table = &own_table, .data = &own}};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows = NULL;
    struct fly_error error;

    (void)state;
    options.policies = policies;
    options.policy_count = 1;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EDATA);
    check_contains(error.text, "'default-again': 'propose' in recurrence");
    check_contains(error.text, "failed with 7");
    assert_null(rows);
}

static void test_tables_that_are_none(void **state)
{
    struct fly_batch_policy table = own_table;
    const struct fly_sim_policy policies[] = {{.table = &table}};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows;
    struct fly_error error;

    (void)state;
    options.policies = policies;
    options.policy_count = 1;
    table.abi = FLY_PLUGIN_ABI + 1;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EUNSUPPORTED);
    table = own_table;
    table.size = 3;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EUNSUPPORTED);
    table = own_table;
    table.propose = NULL;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EDATA);
    check_contains(error.text, "'propose'");
    table = own_table;
    table.name = NULL;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EDATA);
    table.name = "zeus";
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_EDATA);
    check_contains(error.text, "another policy");
}

static int give_up(void *data, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)data;
}

/* A progress that gives up is heard with worker threads, without, and while the spread is found. */
static void test_given_up(void **state)
{
    struct own own = {.thread = pthread_self()};
    const struct fly_sim_policy policies[] = {{.table = &own_table, .data = &own}};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows = NULL;
    struct fly_error error;
    int called = 0;

    (void)state;
    options.progress = give_up;
    options.progress_data = &called;
    options.recurrences = 100000;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_ESTATE);
    assert_int_equal(called, 1);
    options.policies = policies;
    options.policy_count = 1;
    options.recurrences = 10000000; /* more than any machine does in a tenth of a second */
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, &error), FLY_ESTATE);
    assert_int_equal(called, 2);
    assert_null(rows);
}

static void count_note(void *data, const char *text)
{
    assert_true(text[0] != '\0');
    ++*(int *)data;
}

static void test_frontier(void **state)
{
    struct fly_objective objective = {FLY_OBJECTIVE_ENERGY, 0.5, 1.1};
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows;
    int notes = 0, defaults = 0, chosen = 0, on_frontier = 0;
    double last_j = INFINITY;

    (void)state;
    options.objective = &objective;
    options.note = count_note;
    options.note_data = &notes;
    assert_int_equal(fly_sim_pareto(&options, &rows, NULL), 0);
    check_columns(rows);
    for (size_t i = 0; i < fly_sim_table_rows(rows); i++) {
        bool frontier = column_of(rows, "on_frontier").wholes[i] != 0;

        on_frontier += frontier;
        defaults += column_of(rows, "default").wholes[i] != 0;
        chosen += column_of(rows, "chosen").wholes[i] != 0;
        if (frontier) /* fastest first: energy falls along it */
            assert_true(column_of(rows, "energy_j").reals[i] < last_j);
        if (frontier)
            last_j = column_of(rows, "energy_j").reals[i];
        if (column_of(rows, "chosen").wholes[i] != 0) {
            assert_true(column_of(rows, "time_change_percent").reals[i] <= 10.0);
            assert_true(column_of(rows, "energy_change_percent").reals[i] < 0.0);
        }
    }
    assert_int_equal(defaults, 1);
    assert_int_equal(chosen, 1);
    assert_true(on_frontier > 1);
    assert_true(notes >= 1); /* the paper's jobs are not in this trace */
    fly_sim_table_free(rows);
}

static void test_refusals(void **state)
{
    static const char *const unknown[] = {"made-upp"}, *const twice[] = {"made-up", "made-up"};
    static const uint32_t doubled[] = {3, 3};
    static const struct fly_sim_policy nobody[] = {{.name = "zeuss"}},
                                       both[] = {{.name = "zeus"}, {.name = "zeus"}};
    static const struct fly_objective lowest = {FLY_OBJECTIVE_LOWEST_LIMIT, 0.5, INFINITY};
    struct fly_sim_job nameless = made_up, lacking = made_up;
    const struct {
        struct fly_sim_options change;
        int code;
        const char *says;
    } cases[] = {
        {{.jobs = unknown, .job_count = 1}, FLY_ENOTFOUND, "did you mean 'made-up'"},
        {{.jobs = twice, .job_count = 2}, FLY_EUSAGE, "named twice"},
        {{.seeds = doubled, .seed_count = 2}, FLY_EUSAGE, "seed 3"},
        {{.policies = nobody, .policy_count = 1}, FLY_EUSAGE, "did you mean 'zeus'"},
        {{.policies = both, .policy_count = 2}, FLY_EUSAGE, "named twice"},
        {{.drift = "jumpy"}, FLY_EUSAGE, "did you mean 'jump'"},
        {{.guard = "perhaps"}, FLY_EUSAGE, "guard"},
        {{.generator = "numpie"}, FLY_EUSAGE, "did you mean 'numpy'"},
        {{.beta = -1.0}, FLY_EUSAGE, "beta"},
        {{.profile_window = 1.5}, FLY_EUSAGE, "profile_window"},
        {{.threads = 1000}, FLY_EUSAGE, "threads"},
        {{.bootstrap = 5000}, FLY_EUSAGE, "bootstrap"},
        {{.objective = &lowest}, FLY_EUSAGE, "lowest-limit"},
        {{.described = &nameless, .described_count = 1}, FLY_EUSAGE, "no name"},
        {{.described = &lacking, .described_count = 1}, FLY_EUSAGE, "max_epochs"},
        {{.gpu_model = "none"}, FLY_ENOTFOUND, "summary_power_none.csv"},
    };

    (void)state;
    nameless.name = "";
    lacking.max_epochs = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_sim_options options = some_options();
        const struct fly_sim_options *change = &cases[i].change;
        struct fly_sim_table *rows = NULL;
        struct fly_error error = {0};

        options.jobs = change->jobs, options.job_count = change->job_count;
        if (change->seeds != NULL)
            options.seeds = change->seeds, options.seed_count = change->seed_count;
        if (change->described != NULL)
            options.described = change->described;
        if (change->gpu_model != NULL)
            options.gpu_model = change->gpu_model;
        options.policies = change->policies, options.policy_count = change->policy_count;
        options.drift = change->drift, options.guard = change->guard, options.generator = change->generator;
        options.beta = change->beta, options.profile_window = change->profile_window;
        options.threads = change->threads;
        options.bootstrap = change->bootstrap != 0 ? change->bootstrap : -1;
        options.objective = change->objective;
        if (fly_sim_run_jobs(&options, &rows, NULL, &error) != cases[i].code)
            fail_msg("case %zu: code %d, '%s'", i, error.code, error.text);
        check_contains(error.text, cases[i].says);
        assert_null(rows);
    }
}

/* Of the groups a, with two submissions, and b with one; frees the table. */
static void check_group_tries(struct fly_sim_table *tries)
{
    size_t firsts = 0;

    for (size_t i = 0; i < fly_sim_table_rows(tries); i++) {
        firsts += column_of(tries, "try").wholes[i] == 0;
        assert_true(column_of(tries, "recurrence").wholes[i] <= 'b' - *column_of(tries, "group").texts[i]);
    }
    assert_int_equal(firsts, 2 * SEEDS); /* those of the one policy that was named */
    fly_sim_table_free(tries);
}

static void test_groups(void **state)
{
    struct fly_sim_options options = some_options();
    struct fly_objective bounded = {FLY_OBJECTIVE_COST, 0.5, 1.1};
    struct fly_sim_table *rows, *tries = NULL;
    char path[PATH_SIZE];
    FILE *file = open_file("groups.csv");

    (void)state;
    fputs("group,start_time,end_time,dataset,runtime_ratio\na,0,9,made-up,1\na,3,12,made-up,1\n"
          "b,1,5,made-up,2\n",
          file);
    fclose(file);
    snprintf(path, sizeof path, "%s/groups.csv", traces);
    assert_int_equal(fly_sim_run_groups(&options, path, &rows, &tries, NULL), 0);
    check_columns(rows);
    check_columns(tries);
    check_group_tries(tries);
    assert_int_equal(fly_sim_table_rows(rows), 6); /* three policies, of one workload and of all */
    assert_int_equal(column_of(rows, "groups").wholes[0], 2 * SEEDS);
    assert_int_equal(column_of(rows, "submissions").wholes[1], 3 * SEEDS);
    fly_sim_table_free(rows);
    tries = NULL;
    assert_int_equal(fly_sim_run_groups(&options, NULL, &rows, NULL, NULL), FLY_EUSAGE);
    options.objective = &bounded;
    assert_int_equal(fly_sim_run_groups(&options, path, &rows, &tries, NULL), FLY_EUSAGE);
    assert_null(tries);
}

static void test_comparison(void **state)
{
    static const char *const kinds[] = {"smooth", "flat"}, *const scenarios[] = {"steady", "growth"};
    static const uint32_t horizons[] = {9, 4};
    const struct fly_sim_comparison comparison = {.size = sizeof comparison,
                                                  .synthetic = kinds,
                                                  .synthetic_count = 2,
                                                  .synthetic_jobs = 1,
                                                  .horizons = horizons,
                                                  .horizon_count = 2,
                                                  .scenarios = scenarios,
                                                  .scenario_count = 2};
    struct fly_sim_options options = some_options();
    struct fly_sim_comparison none = comparison;
    struct fly_sim_table *rows;

    (void)state;
    options.traces = NULL;
    assert_int_equal(fly_sim_compare(&options, &comparison, &rows, NULL), 0);
    check_columns(rows);
    /* Scenarios, sets (all, and each kind), horizons, and policies with default and oracle. */
    assert_int_equal(fly_sim_table_rows(rows), 2 * 3 * 2 * 7);
    assert_int_equal(column_of(rows, "recurrences").wholes[0], 4);
    assert_string_equal(column_of(rows, "against").texts[0], "zeus");
    fly_sim_table_free(rows);
    none.synthetic_jobs = -1;
    assert_int_equal(fly_sim_compare(&options, &none, &rows, NULL), FLY_EUSAGE);
    none.size = 0;
    assert_int_equal(fly_sim_compare(&options, &none, &rows, NULL), FLY_EUSAGE);
}

static void test_sizes(void **state)
{
    struct fly_sim_options options = some_options();
    struct fly_sim_table *rows;
    struct fly_sim_column column = {.size = 0};

    (void)state;
    options.size = 1;
    assert_int_equal(fly_sim_run_jobs(&options, &rows, NULL, NULL), FLY_EUSAGE);
    assert_int_equal(fly_sim_pareto(&options, &rows, NULL), FLY_EUSAGE);
    assert_int_equal(fly_sim_table_column(NULL, 0, &column), FLY_EUSAGE);
    column.size = sizeof column;
    assert_int_equal(fly_sim_table_column(NULL, 0, &column), FLY_ENOTFOUND);
    assert_int_equal(fly_sim_table_rows(NULL), 0);
    fly_sim_table_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_and_tries),   cmocka_unit_test(test_own_policy),
        cmocka_unit_test(test_own_policy_fails), cmocka_unit_test(test_tables_that_are_none),
        cmocka_unit_test(test_given_up),         cmocka_unit_test(test_frontier),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_groups),
        cmocka_unit_test(test_comparison),       cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests_name("sim_open", tests, make_traces, remove_traces);
}
