/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/demo.h"

#include <math.h>
#include <stdlib.h>

#include <flyball/cost.h>

#include "sim/crew.h"
#include "sim/recurring.h"

enum { MEMORY_MAX = 1 << 20, RUNS_PER_JOB = 2 };

const double demo_eta = 0.5;
const double demo_beta = 3.0;
const char demo_gpu[] = "v100-like";

/*
 * A sample takes 2.5 ms and a step 40 ms besides, a batch of 8 wants half the
 * dynamic power: about what a large convolutional network asks of such a GPU.
 * DeepSpeech2's share of the clock, see gpu_model.h, or all of it.
 */
static const struct {
    const char *name;
    struct gpu_load load;
} described[DEMO_JOBS] = {
    {"digits", {.sample_s = 2.5e-3, .step_s = 40e-3, .half_busy_batch = 8.0, .clock_share = 0.65}},
    {"digits-tuned", {.sample_s = 2.5e-3, .step_s = 40e-3, .half_busy_batch = 8.0, .clock_share = 1.0}},
};

/* One policy at work on one job. */
struct history {
    struct demo *demo;
    struct demo_job *job;
    struct demo_run *run;
    const struct batch_policy *policy;
    struct digits_result last; /* training */
    int code;                  /* what kept it from running at all */
    struct fly_error error;
};

static void advance(const struct demo *demo)
{
    if (demo->plan.advance != NULL)
        demo->plan.advance(demo->plan.progress_context);
}

/*
 * One training; all share the split of the data. `kind` is the number of the job,
 * or DEMO_JOBS for the check, so that the check's luck is its own.
 */
static struct digits_result train(uint32_t seed, size_t kind, uint64_t index, uint32_t batch_size,
                                  uint32_t max_epochs)
{
    return digits_train(
        &(struct digits_plan){.seed = {philox_key(seed, "digits"), (uint64_t)kind << 32 | index},
                              .batch_size = batch_size,
                              .max_epochs = max_epochs,
                              .target = DEMO_TARGET});
}

/* The world of a job: its luck depends on recurrence and try, so policies share it. */
static double train_in_world(void *context, const struct training_order *order)
{
    struct history *history = context;
    const struct job_spec *spec = &history->job->workload.spec;

    history->last = train(history->demo->plan.seed, (size_t)(history->job - history->demo->jobs),
                          order->recurrence * RECURRING_TRIES_MAX + order->try_number,
                          spec->batches[order->batch].size, order->epoch_cap);
    return history->last.reached ? (double)history->last.epochs : NAN;
}

static void note_try(void *context, const struct try_record *record)
{
    struct history *history = context;

    history->run->tries[history->run->count++] = (struct demo_try){
        .recurrence = record->recurrence,
        .number = record->number,
        .batch_size = record->batch_size,
        .power_limit_w = record->power_limit_w,
        .reached = record->reached,
        .energy_j = record->energy_j,
        .time_s = record->time_s,
        .cost_j = record->cost_j,
        .epochs = history->last.epochs,
        .correct = history->last.correct,
    };
}

static void run_history(struct history *history)
{
    const struct demo_plan *plan = &history->demo->plan;
    const struct policy_parameters parameters = {
        .beta = demo_beta, .seed = plan->seed, .generator = GENERATOR_PHILOX};
    const struct training_world world = {train_in_world, history};
    struct demo_run *run = history->run;
    struct recurring job;

    history->code =
        recurring_init(&job, &history->job->workload, history->policy, &parameters, &history->error);
    if (history->code < 0)
        return;
    job.environment.world = &world;
    job.observer = note_try;
    job.observer_context = history;
    while (run->completed < plan->recurrences && run->ended == 0) {
        struct recurrence recurrence;

        run->ended = recurring_run(&job, &recurrence, &run->end);
        run->completed += run->ended == 0;
        advance(history->demo);
    }
    if (run->ended < 0 && run->ended != FLY_EEXHAUSTED) {
        history->code = run->ended;
        history->error = run->end;
    }
    recurring_deinit(&job);
}

/* The pieces of work: the histories of one job, then the trainings of the check, if any. */
struct shift {
    struct demo *demo;
    struct history histories[RUNS_PER_JOB];
};

/* The first units are histories, the rest trainings for the check. */
static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    struct shift *shift = context;
    struct demo *demo = shift->demo;
    size_t check = unit->number - RUNS_PER_JOB;

    if (unit->number < RUNS_PER_JOB) {
        struct history *history = &shift->histories[unit->number];

        run_history(history);
        if (history->code < 0 && out_error != NULL)
            *out_error = history->error;
        return history->code;
    }
    /* The longest first, so that no thread is left with one. */
    demo->trained[DEMO_BATCHES - 1 - check / DEMO_CHECK_SEEDS][check % DEMO_CHECK_SEEDS] =
        train(demo->plan.seed, DEMO_JOBS, check % DEMO_CHECK_SEEDS,
              demo->jobs[0].workload.spec.batches[DEMO_BATCHES - 1 - check / DEMO_CHECK_SEEDS].size,
              DEMO_MAX_EPOCHS);
    advance(demo);
    return 0;
}

static void tick(void *context, uint64_t done, uint64_t total)
{
    const struct demo_plan *plan = &((struct shift *)context)->demo->plan;

    (void)done;
    (void)total;
    if (plan->tick != NULL)
        plan->tick(plan->progress_context);
}

static int run_shift(struct demo *demo, struct demo_job *job, size_t checks, struct fly_error *out_error)
{
    struct shift shift = {.demo = demo,
                          .histories = {{demo, job, &job->chosen, demo->plan.policy, {0}, 0, {0}},
                                        {demo, job, &job->baseline, &batch_policy_default, {0}, 0, {0}}}};
    const struct crew_plan crew = {.units = RUNS_PER_JOB + checks,
                                   .threads = demo->plan.threads,
                                   .run = run_unit,
                                   .context = &shift,
                                   .progress = tick,
                                   .progress_context = &shift};

    return crew_run(&crew, out_error);
}

/* What an epoch of a batch size takes under each power limit. */
static int add_batch(struct demo_job *job, struct workload_batch *batch, struct batch_choice *choice,
                     uint32_t size)
{
    const struct gpu_shape *shape = gpu_shape_find(demo_gpu);
    unsigned count = gpu_limit_count(shape);
    struct fly_power_point *points = arena_alloc(&job->workload.arena, count, sizeof points[0]);
    double *limits_w = arena_alloc(&job->workload.arena, count, sizeof limits_w[0]);
    double energy_j = 0.0, time_s = 0.0;

    if (points == NULL || limits_w == NULL)
        return FLY_ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        limits_w[i] = gpu_limit_w(shape, i);
        points[i] = gpu_work(shape, &job->load, DIGITS_TRAINED, size, limits_w[i]);
        energy_j += points[i].time_s * points[i].power_w;
        time_s += points[i].time_s;
    }
    *batch = (struct workload_batch){.points = points,
                                     .point_count = count,
                                     .mean_epoch_energy_j = energy_j / count,
                                     .mean_epoch_time_s = time_s / count};
    *choice = (struct batch_choice){size, limits_w, count};
    return 0;
}

static int open_workload(struct demo_job *job, struct fly_error *out_error)
{
    struct workload *workload = &job->workload;
    struct batch_choice *choices;
    int code = 0;

    arena_init(&workload->arena, MEMORY_MAX);
    choices = arena_alloc(&workload->arena, DEMO_BATCHES, sizeof choices[0]);
    workload->batches = arena_alloc(&workload->arena, DEMO_BATCHES, sizeof workload->batches[0]);
    if (choices == NULL || workload->batches == NULL)
        return error_no_memory(out_error);
    workload->gpu = demo_gpu;
    workload->spec = (struct job_spec){.name = job->name,
                                       .batches = choices,
                                       .batch_count = DEMO_BATCHES,
                                       .max_epochs = DEMO_MAX_EPOCHS,
                                       .max_power_w = gpu_shape_find(demo_gpu)->highest_limit_w,
                                       .eta = demo_eta};
    for (size_t i = 0; i < DEMO_BATCHES && code == 0; i++) {
        code = add_batch(job, &workload->batches[i], &choices[i], (uint32_t)DEMO_SMALLEST_BATCH << i);
        if (choices[i].size == DEMO_DEFAULT_BATCH)
            workload->spec.default_batch = i;
    }
    return code < 0 ? error_no_memory(out_error) : 0;
}

static int open_job(struct demo *demo, size_t number, struct fly_error *out_error)
{
    struct demo_job *job = &demo->jobs[number];
    size_t tries = (size_t)demo->plan.recurrences * RECURRING_TRIES_MAX;
    int code;

    job->name = described[number].name;
    job->load = described[number].load;
    code = open_workload(job, out_error);
    if (code < 0)
        return code;
    job->chosen.tries = calloc(tries, sizeof job->chosen.tries[0]);
    job->baseline.tries = calloc(tries, sizeof job->baseline.tries[0]);
    job->checks = calloc(DEMO_BATCHES * demo_limit_count(job) * DEMO_CHECK_SEEDS, sizeof job->checks[0]);
    if (job->chosen.tries == NULL || job->baseline.tries == NULL || job->checks == NULL)
        return error_no_memory(out_error);
    return 0;
}

/* Prices the trainings of the check at every choice of the job. */
static void price_checks(const struct demo *demo, struct demo_job *job)
{
    const struct job_spec *spec = &job->workload.spec;
    struct demo_try *check = job->checks;

    for (size_t b = 0; b < DEMO_BATCHES; b++) {
        for (size_t l = 0; l < demo_limit_count(job); l++) {
            const struct fly_power_point *epoch = &job->workload.batches[b].points[l];

            for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++, check++) {
                const struct digits_result *trained = &demo->trained[b][s];
                double time_s = epoch->time_s * trained->epochs, energy_j = time_s * epoch->power_w;

                *check = (struct demo_try){
                    .recurrence = s,
                    .number = s,
                    .batch_size = spec->batches[b].size,
                    .power_limit_w = epoch->limit_w,
                    .reached = trained->reached,
                    .energy_j = energy_j,
                    .time_s = time_s,
                    .cost_j = fly_cost(spec->eta, spec->max_power_w, energy_j, time_s),
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
        for (size_t l = 0; l < demo_limit_count(job); l++) {
            double cost_j = demo_check_cost_j(job, b, l);

            if (cost_j < least_j) {
                least_j = cost_j;
                job->workload.spec.default_batch = b;
            }
        }
    }
}

uint64_t demo_advances(const struct demo_plan *plan)
{
    return DEMO_JOBS * RUNS_PER_JOB * plan->recurrences + DEMO_BATCHES * DEMO_CHECK_SEEDS;
}

size_t demo_limit_count(const struct demo_job *job)
{
    return job->workload.batches[0].point_count;
}

const struct demo_try *demo_checks(const struct demo_job *job, size_t batch, size_t limit)
{
    return &job->checks[(batch * demo_limit_count(job) + limit) * DEMO_CHECK_SEEDS];
}

double demo_check_cost_j(const struct demo_job *job, size_t batch, size_t limit)
{
    const struct demo_try *checks = demo_checks(job, batch, limit);
    double cost_j = 0.0, reached = 0.0;

    for (size_t s = 0; s < DEMO_CHECK_SEEDS; s++) {
        cost_j += checks[s].cost_j;
        reached += checks[s].reached;
    }
    return reached > 0.0 ? cost_j / reached : INFINITY;
}

int demo_run(const struct demo_plan *plan, struct demo *out_demo, struct fly_error *out_error)
{
    struct demo *demo = out_demo;
    int code = 0;

    *demo = (struct demo){.plan = *plan};
    for (size_t i = 0; i < DEMO_JOBS && code == 0; i++)
        code = open_job(demo, i, out_error);
    if (code == 0)
        code = run_shift(demo, &demo->jobs[0], (size_t)DEMO_BATCHES * DEMO_CHECK_SEEDS, out_error);
    if (code < 0)
        return code;
    price_checks(demo, &demo->jobs[0]);
    price_checks(demo, &demo->jobs[1]);
    tune_default(&demo->jobs[1]);
    return run_shift(demo, &demo->jobs[1], 0, out_error);
}

void demo_free(struct demo *demo)
{
    for (size_t i = 0; i < DEMO_JOBS; i++) {
        free(demo->jobs[i].chosen.tries);
        free(demo->jobs[i].baseline.tries);
        free(demo->jobs[i].checks);
        arena_deinit(&demo->jobs[i].workload.arena);
    }
}
