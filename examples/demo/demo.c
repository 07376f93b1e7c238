/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/findings.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The check has random numbers of its own: those of the jobs begin with the job's number. */
static const uint64_t CHECK_LUCK = (uint64_t)DEMO_JOBS << 32;

int demo_fail(struct fly_error *out_error, int code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    out_error->code = code;
    vsnprintf(out_error->text, sizeof out_error->text, format, values);
    va_end(values);
    return code;
}

void demo_advance(const struct demo *demo)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct timespec begun, drawn;
    static uint64_t done;
    uint64_t total = 2 * DEMO_JOBS * demo->plan.recurrences + (uint64_t)DEMO_BATCHES * DEMO_CHECK_SEEDS;
    struct timespec now;

    if (!demo->plan.progress)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    if (done++ == 0)
        begun = drawn = now;
    if (now.tv_sec > drawn.tv_sec) {
        drawn = now;
        fprintf(stderr, "\r%llu of %llu trainings (%.0f%%), %ld s\033[K", (unsigned long long)done,
                (unsigned long long)total, 100.0 * (double)done / (double)total,
                (long)(now.tv_sec - begun.tv_sec));
    }
    pthread_mutex_unlock(&lock);
}

/* The units of work: each job's history, then the trainings of the check, if any. */
struct shift {
    struct demo *demo;
    struct demo_job *job;
    size_t units;
    atomic_size_t next;
    int code; /* of the history */
    struct fly_error error;
};

static void check(struct demo *demo, size_t number)
{
    /* The longest first, so that no thread starts one at the end. */
    size_t batch = DEMO_BATCHES - 1 - number / DEMO_CHECK_SEEDS, seed = number % DEMO_CHECK_SEEDS;

    demo->trained[batch][seed] =
        digits_train(&(struct digits_plan){.seed = {luck_key(demo->plan.seed, "digits"), CHECK_LUCK | seed},
                                           .batch_size = (uint32_t)DEMO_SMALLEST_BATCH << batch,
                                           .max_epochs = DEMO_MAX_EPOCHS,
                                           .target = DEMO_TARGET});
    demo_advance(demo);
}

static void *work(void *data)
{
    struct shift *shift = data;
    size_t unit;

    while ((unit = atomic_fetch_add(&shift->next, 1)) < shift->units) {
        if (unit == 0)
            shift->code = history_run(shift->demo, shift->job, &shift->error);
        else
            check(shift->demo, unit - 1);
    }
    return NULL;
}

static int run_shift(struct demo *demo, struct demo_job *job, size_t checks, struct fly_error *out_error)
{
    struct shift shift = {.demo = demo, .job = job, .units = 1 + checks};
    pthread_t threads[DEMO_THREADS_MAX];
    unsigned started = 0;

    /* Whatever cannot be started is left to the others. */
    while (started + 1 < demo->plan.threads && started < checks &&
           pthread_create(&threads[started], NULL, work, &shift) == 0)
        started++;
    (void)work(&shift);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    if (shift.code < 0)
        *out_error = shift.error;
    return shift.code;
}

/* Computes the cost of the check's trainings at every choice of the job. */
static void price_checks(const struct demo *demo, struct demo_job *job)
{
    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = 0; l < GPU_LIMITS; l++) {
            double limit_w = GPU_LOWEST_W + GPU_LIMIT_STEP_W * (double)l;
            uint32_t batch_size = (uint32_t)DEMO_SMALLEST_BATCH << b;
            struct fly_virtual_work epoch = gpu_work(job->clock_share, DIGITS_TRAINED, batch_size, limit_w);

            for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++) {
                const struct digits_result *trained = &demo->trained[b][s];
                double time_s = epoch.time_s * trained->epochs, energy_j = time_s * epoch.power_w;

                job->checks[b][l][s] = (struct demo_try){
                    .recurrence = s,
                    .number = s,
                    .batch_size = batch_size,
                    .power_limit_w = limit_w,
                    .reached = trained->reached,
                    .energy_j = energy_j,
                    .time_s = time_s,
                    .cost_j = fly_cost(DEMO_ETA, GPU_HIGHEST_W, energy_j, time_s),
                    .epochs = trained->epochs,
                    .correct = trained->correct,
                };
            }
        }
    }
}

/* Makes the batch size of the cheapest choice the job's default. */
static void tune_default(struct demo_job *job)
{
    double least_j = INFINITY;

    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = 0; l < GPU_LIMITS; l++) {
            double cost_j = demo_check_cost_j(job, b, l);

            if (cost_j < least_j) {
                least_j = cost_j;
                job->default_batch = b;
            }
        }
    }
}

static int open_job(struct demo *demo, size_t number, struct fly_error *out_error)
{
    static const struct demo_job described[DEMO_JOBS] = {{.name = "digits", .clock_share = 0.65},
                                                         {.name = "digits-tuned", .clock_share = 1.0}};
    size_t tries = (size_t)demo->plan.recurrences * DEMO_TRIES;
    struct demo_job *job = &demo->jobs[number];

    *job = described[number];
    while (DEMO_SMALLEST_BATCH << job->default_batch != DEMO_DEFAULT_BATCH)
        job->default_batch++;
    job->chosen.tries = calloc(tries, sizeof job->chosen.tries[0]);
    job->baseline.tries = calloc(tries, sizeof job->baseline.tries[0]);
    if (job->chosen.tries == NULL || job->baseline.tries == NULL)
        return demo_fail(out_error, FLY_ENOMEM, "%s", fly_error_sentence(FLY_ENOMEM));
    return 0;
}

int demo_run(const struct demo_plan *plan, struct demo *out_demo, struct fly_error *out_error)
{
    struct demo *demo = out_demo;
    int code = 0;

    demo->plan = *plan;
    for (size_t i = 0; i < DEMO_JOBS && code == 0; i++)
        code = open_job(demo, i, out_error);
    if (code == 0)
        code = history_check(demo, out_error);
    if (code == 0)
        code = run_shift(demo, &demo->jobs[0], (size_t)DEMO_BATCHES * DEMO_CHECK_SEEDS, out_error);
    if (code == 0) {
        price_checks(demo, &demo->jobs[0]);
        price_checks(demo, &demo->jobs[1]);
        tune_default(&demo->jobs[1]);
        code = run_shift(demo, &demo->jobs[1], 0, out_error);
    }
    if (plan->progress)
        fputs("\r\033[K", stderr);
    for (size_t i = 0; i < DEMO_JOBS && code == 0; i++)
        code = history_saving(plan, &demo->jobs[i], out_error);
    return code;
}

void demo_free(struct demo *demo)
{
    for (size_t i = 0; i < DEMO_JOBS; i++) {
        free(demo->jobs[i].chosen.tries);
        free(demo->jobs[i].baseline.tries);
    }
}
