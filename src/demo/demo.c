/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/demo.h"

#include <math.h>
#include <stdlib.h>

#include <flyball/cost.h>

#include "demo/demo_history.h"
#include "sim/crew.h"

enum { MEMORY_MAX = 1 << 20, RUNS_PER_JOB = 2 };

/* The check has random numbers of its own: those of the jobs begin with the job's number. */
static const uint64_t CHECK_LUCK = (uint64_t)DEMO_JOBS << 32;

/*
 * A sample takes 2.5 ms and a step 40 ms more, and a batch of 8 needs half the dynamic power:
 * about what a large convolutional network demands of such a GPU. The clock's share is
 * DeepSpeech2's, see gpu_model.h, or all of it.
 */
static const struct {
    const char *name;
    struct gpu_load load;
} described[DEMO_JOBS] = {
    {"digits",
     {.sample_s = 2.5e-3, .step_s = 40e-3, .half_busy_batch = 8.0, .nature = {.clock_share = 0.65}}},
    {"digits-tuned",
     {.sample_s = 2.5e-3, .step_s = 40e-3, .half_busy_batch = 8.0, .nature = {.clock_share = 1.0}}},
};

static void advance(const struct demo *demo)
{
    if (demo->plan.advance != NULL)
        demo->plan.advance(demo->plan.progress_context);
}

/* The units of work: each job's history, then the trainings of the check, if any. */
struct shift {
    struct demo *demo;
    struct demo_job *job;
};

static bool goes_on(void *unit)
{
    return !crew_given_up(unit);
}

static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    const struct shift *shift = context;
    struct demo *demo = shift->demo;
    size_t check = unit->number - 1, batch, seed;

    if (unit->number == 0)
        return demo_history_run(demo, shift->job, goes_on, unit, out_error);
    /* The longest first, so that no thread starts one at the end. */
    batch = DEMO_BATCHES - 1 - check / DEMO_CHECK_SEEDS;
    seed = check % DEMO_CHECK_SEEDS;
    demo->trained[batch][seed] =
        digits_train(&(struct digits_plan){.seed = {philox_key(demo->plan.seed, "digits"), CHECK_LUCK | seed},
                                           .batch_size = demo->jobs[0].workload.spec.batches[batch].size,
                                           .max_epochs = DEMO_MAX_EPOCHS,
                                           .target = DEMO_TARGET});
    advance(demo);
    return 0;
}

static int tick(void *context, uint64_t done, uint64_t total)
{
    const struct demo_plan *plan = &((struct shift *)context)->demo->plan;

    (void)done;
    (void)total;
    if (plan->tick != NULL)
        plan->tick(plan->progress_context);
    return 0;
}

static int run_shift(struct demo *demo, struct demo_job *job, size_t checks, struct fly_error *out_error)
{
    struct shift shift = {demo, job};
    const struct crew_plan crew = {.units = 1 + checks,
                                   .threads = demo->plan.threads,
                                   .run = run_unit,
                                   .context = &shift,
                                   .progress = tick,
                                   .progress_context = &shift};

    return crew_run(&crew, out_error);
}

/* Computes what an epoch of a batch size takes under each power limit. */
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
    size_t tries = (size_t)demo->plan.recurrences * DEMO_TRIES;
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

/* Computes the cost of the check's trainings at every choice of the job. */
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
        code = demo_history_check(plan, demo->jobs, out_error);
    if (code == 0)
        code = run_shift(demo, &demo->jobs[0], (size_t)DEMO_BATCHES * DEMO_CHECK_SEEDS, out_error);
    if (code < 0)
        return code;
    price_checks(demo, &demo->jobs[0]);
    price_checks(demo, &demo->jobs[1]);
    tune_default(&demo->jobs[1]);
    code = run_shift(demo, &demo->jobs[1], 0, out_error);
    for (size_t i = 0; i < DEMO_JOBS && code == 0; i++)
        code = demo_history_savings(plan, &demo->jobs[i], out_error);
    return code;
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
