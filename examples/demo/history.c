/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recurrences of the demo's jobs. Each is a session of the job over the demo's store, as in a
 * training program. Beside it runs a session of `NAME-default`, which keeps batch size and limit as
 * they were, with the same luck.
 */
#include "demo/demo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A training as far as it was run. A power limit changes no arithmetic, so another training with
 * the same luck and batch size reads its results here.
 */
struct lesson {
    struct digits_training training;
    uint32_t epochs;                   /* trained so far */
    uint32_t correct[DEMO_MAX_EPOCHS]; /* after each epoch */
};

/* One side of a job: the policy's, or the default's. */
struct side {
    struct demo_run *run;
    struct gpu gpu;
    struct fly_session_options options;
    char name[64];
    struct lesson lesson;
};

struct history {
    const struct demo *demo;
    struct demo_job *job;
    uint32_t batch_sizes[DEMO_BATCHES];
    struct side chosen, baseline;
};

static void name_side(char name[64], const struct demo_job *job, bool is_baseline)
{
    snprintf(name, 64, "%s%s", job->name, is_baseline ? "-default" : "");
}

static int open_side(struct history *history, bool is_baseline, struct fly_error *out_error)
{
    const struct demo_plan *plan = &history->demo->plan;
    struct side *side = is_baseline ? &history->baseline : &history->chosen;
    const char *policy = is_baseline ? "default" : plan->policy;
    bool as_before = strcmp(policy, "default") == 0;

    side->run = is_baseline ? &history->job->baseline : &history->job->chosen;
    name_side(side->name, history->job, is_baseline);
    if (gpu_open(&side->gpu, history->job->clock_share, out_error) < 0)
        return out_error->code;
    side->options = (struct fly_session_options){
        .size = sizeof side->options,
        .job_name = side->name,
        .objective = {FLY_OBJECTIVE_COST, DEMO_ETA, INFINITY},
        .batch_sizes = history->batch_sizes,
        .batch_count = DEMO_BATCHES,
        .default_batch_size = history->batch_sizes[history->job->default_batch],
        .target = FLY_TARGET_AT_LEAST,
        .target_metric = (double)DEMO_TARGET / DIGITS_HELD_OUT,
        .max_epochs = DEMO_MAX_EPOCHS,
        .policy = policy,
        .beta = DEMO_BETA,
        .seed = plan->seed,
        .store = plan->store,
        .run = "",
        .tries = DEMO_TRIES,
        .control_every = as_before ? 0 : DEMO_CONTROL_EVERY,
        .samples_per_epoch = DIGITS_TRAINED,
        .meter = side->gpu.meter,
        .leave_limits = as_before,
        .turner = &gpu_turner,
        .turner_data = &side->gpu,
        /* A training of one minute with an exact counter: few steps are enough to measure a limit. */
        .warmup_steps = 1,
        .profile_steps = 2,
        .energy_tolerance = 0.1,
    };
    return 0;
}

static void begin_lesson(const struct history *history, struct lesson *lesson,
                         const struct fly_session_status *status)
{
    uint64_t index = status->recurrence * DEMO_TRIES + status->try_number;

    if (lesson == &history->chosen.lesson && status->try_number == 0 &&
        status->batch_size == history->baseline.options.default_batch_size) {
        *lesson = history->baseline.lesson;
        return;
    }
    lesson->epochs = 0;
    digits_begin(&lesson->training,
                 &(struct digits_seed){luck_key(history->demo->plan.seed, "digits"),
                                       (uint64_t)(history->job - history->demo->jobs) << 32 | index},
                 status->batch_size);
}

/*
 * Runs an epoch of the session. Each step trains the network, unless its result is already known,
 * and lets the GPU work.
 */
static enum fly_answer live_epoch(struct side *side, struct fly_session *session, uint32_t epoch)
{
    struct lesson *lesson = &side->lesson;
    uint32_t batch_size = fly_session_batch_size(session), steps = (DIGITS_TRAINED - 1) / batch_size + 1;
    bool is_new = epoch > lesson->epochs;

    if (is_new)
        digits_epoch(&lesson->training);
    fly_session_epoch_begin(session);
    for (uint32_t step = 0; step < steps; step++) {
        struct fly_virtual_work work;

        if (fly_session_step_begin(session) == FLY_STOP)
            return FLY_STOP;
        if (is_new)
            (void)digits_step(&lesson->training);
        work = gpu_work(side->gpu.clock_share, (double)DIGITS_TRAINED / steps, batch_size, side->gpu.limit_w);
        (void)fly_meter_pass(side->gpu.meter, &work, NULL);
    }
    fly_session_evaluation_begin(session);
    if (is_new)
        lesson->correct[lesson->epochs++] = digits_evaluate(&lesson->training);
    fly_session_evaluation_end(session);
    return fly_session_report(session, (double)lesson->correct[epoch - 1] / DIGITS_HELD_OUT);
}

/* Notes the try that ended. The window is of all of it: the session has figures up to its last report. */
static int note_try(struct side *side, fly_window window, const struct fly_session_status *status,
                    struct fly_error *out_error)
{
    struct fly_device_energy device = {.energy_j = NAN};
    struct fly_measurement whole = {.size = sizeof whole, .devices = &device, .device_capacity = 1};
    double energy_j = status->energy_j, time_s = status->time_s;

    if (fly_meter_end(side->gpu.meter, window, &whole, out_error) < 0)
        return out_error->code;
    if (status->epoch == 0) {
        energy_j = device.energy_j;
        time_s = whole.time_s;
    }
    if (status->text[0] != '\0' || isnan(energy_j))
        return demo_fail(out_error, FLY_EUNREACHABLE, "the session of the job '%s' is not tuned: %s",
                         side->name, status->text[0] != '\0' ? status->text : "it has no energy");
    side->run->tries[side->run->count] = (struct demo_try){
        .recurrence = status->recurrence,
        .number = side->run->count,
        .batch_size = status->batch_size,
        .power_limit_w = isnan(status->limit_w) ? GPU_HIGHEST_W : status->limit_w,
        .reached = status->answer == FLY_REACHED,
        .energy_j = energy_j,
        .time_s = time_s,
        .cost_j = fly_cost(DEMO_ETA, GPU_HIGHEST_W, energy_j, time_s),
        .epochs = status->epoch,
        .correct = status->epoch > 0 ? side->lesson.correct[status->epoch - 1] : 0,
    };
    side->run->count++;
    return 0;
}

/* Runs one submission: what a training program does, from open to close. */
static int live_recurrence(struct history *history, struct side *side, struct fly_error *out_error)
{
    struct fly_session_status status = {.size = sizeof status};
    struct fly_session *session;
    fly_window window;
    int code = fly_session_open(&side->options, &session, out_error);

    if (code < 0)
        return code;
    do {
        enum fly_answer answer = FLY_GO_ON;

        code = fly_meter_begin(side->gpu.meter, "try", &window, out_error);
        if (code < 0)
            break;
        (void)fly_session_status(session, &status);
        begin_lesson(history, &side->lesson, &status);
        for (uint32_t epoch = 1; answer == FLY_GO_ON && epoch <= DEMO_MAX_EPOCHS; epoch++)
            answer = live_epoch(side, session, epoch);
        (void)fly_session_status(session, &status);
        code = note_try(side, window, &status, out_error);
    } while (code == 0 && fly_session_try_again(session));
    fly_session_close(session, FLY_SESSION_FINISHED);
    if (code == 0 && status.answer == FLY_REACHED) {
        side->run->completed++;
    } else if (code == 0) {
        side->run->ended = FLY_EEXHAUSTED;
        snprintf(side->run->end, sizeof side->run->end, "recurrence %llu: no try of %d reached the target",
                 (unsigned long long)status.recurrence + 1, DEMO_TRIES);
    }
    return code;
}

int history_run(const struct demo *demo, struct demo_job *job, struct fly_error *out_error)
{
    struct history *history = calloc(1, sizeof *history);
    struct side *sides[2];
    int code;

    if (history == NULL)
        return demo_fail(out_error, FLY_ENOMEM, "%s", fly_error_sentence(FLY_ENOMEM));
    history->demo = demo;
    history->job = job;
    sides[0] = &history->baseline;
    sides[1] = &history->chosen;
    for (size_t i = 0; i < DEMO_BATCHES; i++)
        history->batch_sizes[i] = (uint32_t)DEMO_SMALLEST_BATCH << i;
    code = open_side(history, true, out_error);
    if (code == 0)
        code = open_side(history, false, out_error);
    for (uint64_t r = 0; r < demo->plan.recurrences && code == 0; r++) {
        for (size_t i = 0; i < 2 && code == 0; i++) {
            code = live_recurrence(history, sides[i], out_error);
            demo_advance(demo);
        }
        if (job->baseline.ended < 0 || job->chosen.ended < 0)
            break;
    }
    gpu_close(&history->baseline.gpu);
    gpu_close(&history->chosen.gpu);
    free(history);
    return code;
}

int history_check(const struct demo *demo, struct fly_error *out_error)
{
    struct fly_jobs *jobs;
    size_t count;
    int code = fly_jobs_open(demo->plan.store, 0.0, &jobs, out_error);

    if (code == FLY_ENOTFOUND) /* the first session makes it */
        return 0;
    if (code < 0)
        return code;
    code = fly_jobs_list(jobs, &count, out_error);
    for (size_t i = 0; i < (size_t)2 * DEMO_JOBS && code == 0; i++) {
        char name[64];

        name_side(name, &demo->jobs[i / 2], i % 2 == 1);
        for (size_t place = 0; place < count && code == 0; place++) {
            struct fly_job_summary summary = {.size = sizeof summary};

            if (fly_jobs_summary(jobs, place, &summary) == 0 && strcmp(summary.name, name) == 0)
                code = demo_fail(
                    out_error, FLY_ECONFLICT,
                    "the store has a job '%s' already; give another store, or 'flyball job delete %s'", name,
                    name);
        }
    }
    fly_jobs_close(jobs);
    return code;
}

int history_saving(const struct demo_plan *plan, struct demo_job *job, struct fly_error *out_error)
{
    struct fly_jobs *jobs;
    struct fly_job *log;
    int code = fly_jobs_open(plan->store, 0.0, &jobs, out_error);

    if (code < 0)
        return code;
    code = fly_job_read(jobs, job->name, &log, out_error);
    if (code == 0) {
        job->saving = (struct fly_job_saving){.size = sizeof job->saving};
        code = fly_job_saving(log, 0, &job->saving, out_error);
        if (code == 0)
            snprintf(job->doubt, sizeof job->doubt, "%s", job->saving.doubt);
        fly_job_free(log);
    }
    fly_jobs_close(jobs);
    return code;
}
