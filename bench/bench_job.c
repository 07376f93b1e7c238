/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeping a job costs: proposals and reports, compared with bare durable inserts into a plain table, and
 * a decision after few trials and after many. Nothing here passes or fails.
 *
 *     bench_job STORE [TRIALS...]
 *
 * STORE is a path that does not exist yet, or postgresql://...; TRIALS are the lengths of the logs after
 * which a decision is timed (10, 1000 and 100000 unless given).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_inserts.h"
#include "base/clock.h"
#include "base/math/order.h"
#include "job/core/definition.h"
#include "job/core/job_record.h"
#include "job/core/job_words.h"
#include "job/jobs.h"

enum { ROUNDS = 300, DECISIONS = 50, LENGTHS = 3, TEXT_MAX = 1 << 30 };

static const uint32_t sizes[] = {8, 16, 32, 64, 128};
static const double limits_w[] = {100, 150, 200};

__attribute__((noreturn)) static void die(const char *what, const struct fly_error *error)
{
    fprintf(stderr, "bench_job: %s: %s\n", what, error->text);
    exit(1);
}

/* Prints the median, which it returns, and the 99th percentile of `count` durations in s. */
static double show(const char *what, double *took_s, size_t count, double reference_s)
{
    double total_s = 0.0;

    for (size_t i = 0; i < count; i++)
        total_s += took_s[i];
    qsort(took_s, count, sizeof took_s[0], order_doubles);
    printf("%-44s %8.0f /s  median %8.3f ms  p99 %8.3f ms", what, (double)count / total_s,
           1e3 * took_s[count / 2], 1e3 * took_s[count * 99 / 100]);
    if (reference_s > 0.0)
        printf("  %.2f bare inserts", took_s[count / 2] / reference_s);
    printf("\n");
    return took_s[count / 2];
}

static struct fly_job_definition define(const char *name)
{
    struct fly_job_definition definition = job_definition_default;

    definition.name = name;
    definition.batch_sizes = sizes;
    definition.batch_count = sizeof sizes / sizeof sizes[0];
    definition.default_batch_size = 32;
    definition.target = FLY_TARGET_AT_LEAST;
    definition.target_metric = 0.9;
    definition.max_epochs = 20;
    return definition;
}

static struct job_question ask(const char *name)
{
    return (struct job_question){.job = name,
                                 .hardware = {.gpu_model = "GPU",
                                              .gpu_count = 1,
                                              .world_size = 1,
                                              .limits_w = limits_w,
                                              .limit_count = sizeof limits_w / sizeof limits_w[0]}};
}

static double time_bare(struct bare *bare)
{
    struct mono_time start = mono_now();

    bare_insert(bare);
    return mono_elapsed_s(start, mono_now());
}

/* Bare inserts alternate with what is measured, so that both see the same disk. */
static void time_trials(const char *address, struct bare *bare)
{
    const struct fly_job_definition definition = define("bench-trials");
    const struct job_question question = ask("bench-trials");
    double bare_s[ROUNDS], proposals_s[ROUNDS], reports_s[ROUNDS], both_s[ROUNDS], reference_s;
    struct job_registered registered;
    struct fly_error error;
    struct jobs jobs;

    if (jobs_open(address, NULL, &jobs, &error) < 0 ||
        jobs.backend->define(jobs.self, &definition, &registered, &error) < 0)
        die(address, &error);
    for (int i = 0; i < ROUNDS; i++) {
        struct job_epoch epoch = {.job = definition.name,
                                  .attempt = 1,
                                  .epoch = 1,
                                  .metric = 0.95,
                                  .energy_j = 1000 + i % 7,
                                  .time_s = 10};
        struct mono_time start = mono_now(), middle;
        struct job_proposal proposal;
        struct job_answered answered;

        if (jobs.backend->propose(jobs.self, &question, &proposal, &error) < 0)
            die("propose", &error);
        middle = mono_now();
        epoch.trial = proposal.trial;
        if (jobs.backend->report(jobs.self, &epoch, &answered, &error) < 0)
            die("report", &error);
        proposals_s[i] = mono_elapsed_s(start, middle);
        reports_s[i] = mono_elapsed_s(middle, mono_now());
        both_s[i] = proposals_s[i] + reports_s[i];
        bare_s[i] = time_bare(bare);
    }
    jobs_close(&jobs);
    reference_s = show("a bare durable insert", bare_s, ROUNDS, 0.0);
    show("a proposal", proposals_s, ROUNDS, reference_s);
    show("a report that ends its trial", reports_s, ROUNDS, reference_s);
    show("both", both_s, ROUNDS, reference_s);
}

static void put(struct buffer *text, uint64_t *number, enum record_kind kind, uint64_t trial, json_t *body)
{
    char *dumped = json_dumps(body, JSON_COMPACT);

    buffer_printf(text,
                  "{\"number\":%" PRIu64 ",\"time_us\":1,\"kind\":\"%s\",\"trial\":%" PRIu64
                  ",\"key\":\"\",\"body\":%s}\n",
                  ++*number, record_kind_name(kind), trial, dumped);
    free(dumped);
    json_decref(body);
}

static void make_log(const struct fly_job_definition *definition, uint64_t trials, struct buffer *text)
{
    uint64_t number = 0;

    put(text, &number, RECORD_DEFINED, 0, definition_to_json(definition));
    for (uint64_t i = 1; i <= trials; i++) {
        uint32_t size = sizes[i % (sizeof sizes / sizeof sizes[0])];
        const struct proposed_record proposed = {.recurrence = i - 1,
                                                 .new_line = i == 1,
                                                 .hardware = ask("").hardware,
                                                 .batch_size = size,
                                                 .limit_w = 150,
                                                 .reason = REASON_EXPLORE,
                                                 .counted = true,
                                                 .epochs = 20};
        const struct ended_record ended = {.outcome = TRIAL_REACHED,
                                           .stop = JOB_STOP_TARGET,
                                           .attempt = 1,
                                           .epochs = 1,
                                           .metric = 0.95,
                                           .energy_j = 1000.0 + (double)(i % 17) + size,
                                           .time_s = 10};

        put(text, &number, RECORD_PROPOSED, i, record_write(RECORD_PROPOSED, &proposed));
        put(text, &number, RECORD_ATTEMPT, i,
            record_write(RECORD_ATTEMPT, &(struct attempt_record){.attempt = 1}));
        put(text, &number, RECORD_ENDED, i, record_write(RECORD_ENDED, &ended));
    }
}

/*
 * A proposal after so many trials, by a process that has just opened the store and by one that has had it
 * open.
 */
static void time_decisions(const char *address, uint64_t trials, struct bare *bare)
{
    char name[JOB_NAME_MAX], what[JOB_NAME_MAX];
    double bare_s[DECISIONS], cold_s[DECISIONS], warm_s[DECISIONS], reference_s;
    struct fly_job_definition definition;
    struct job_question question;
    struct buffer text;
    struct fly_error error;
    struct jobs jobs;

    snprintf(name, sizeof name, "bench-%" PRIu64, trials);
    definition = define(name);
    question = ask(name);
    buffer_init(&text, TEXT_MAX);
    make_log(&definition, trials, &text);
    if (jobs_open(address, NULL, &jobs, &error) < 0 ||
        jobs.backend->import(jobs.self, name, text.data, text.length, &error) < 0)
        die("import", &error);
    buffer_deinit(&text);
    jobs_close(&jobs);
    for (int i = 0; i < DECISIONS; i++) {
        struct mono_time start;
        struct job_proposal proposal;

        if (jobs_open(address, NULL, &jobs, &error) < 0)
            die(address, &error);
        start = mono_now();
        if (jobs.backend->propose(jobs.self, &question, &proposal, &error) < 0)
            die("propose", &error);
        cold_s[i] = mono_elapsed_s(start, mono_now());
        start = mono_now();
        if (jobs.backend->propose(jobs.self, &question, &proposal, &error) < 0)
            die("propose", &error);
        warm_s[i] = mono_elapsed_s(start, mono_now());
        jobs_close(&jobs);
        bare_s[i] = time_bare(bare);
    }
    snprintf(what, sizeof what, "a decision after %" PRIu64 " trials", trials);
    reference_s = show("a bare durable insert", bare_s, DECISIONS, 0.0);
    show(what, warm_s, DECISIONS, reference_s);
    show("  by a process that just began", cold_s, DECISIONS, reference_s);
}

int main(int argc, char **argv)
{
    static const uint64_t usual[LENGTHS] = {10, 1000, 100000};
    struct bare bare;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_job STORE [TRIALS...]\n");
        return 64;
    }
    bare_open(&bare, argv[1]);
    time_trials(argv[1], &bare);
    for (int i = 2; i < argc; i++)
        time_decisions(argv[1], strtoull(argv[i], NULL, 10), &bare);
    for (int i = 0; argc == 2 && i < LENGTHS; i++)
        time_decisions(argv[1], usual[i], &bare);
    bare_close(&bare);
    return 0;
}
