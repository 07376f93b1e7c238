/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/demo_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>

#include "demo/demo_machine.h"
#include "job/jobs.h"
#include "job/past/history.h"
#include "train/session/session.h"

/*
 * A training as far as it was run. A power limit changes no arithmetic, so another training with
 * the same luck and batch size reads its results here.
 */
struct lesson {
    struct digits_training training;
    uint32_t epochs;                   /* trained so far */
    uint32_t correct[DEMO_MAX_EPOCHS]; /* after each epoch */
};

enum { HISTORY_BYTES = 1 << 30 };

/* One side of a job: the policy's, or the default's. */
struct side {
    struct demo_run *run;
    struct demo_machine machine;
    struct fly_session_options options;
    struct session_parts parts;
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

static void describe(struct history *history, struct side *side, const char *policy)
{
    const struct demo_plan *plan = &history->demo->plan;
    const struct job_spec *spec = &history->job->workload.spec;
    bool as_before = strcmp(policy, "default") == 0;

    side->options = (struct fly_session_options){
        .size = sizeof side->options,
        .job_name = side->name,
        .objective = {FLY_OBJECTIVE_COST, spec->eta, INFINITY},
        .batch_sizes = history->batch_sizes,
        .batch_count = spec->batch_count,
        .default_batch_size = history->batch_sizes[spec->default_batch],
        .target = FLY_TARGET_AT_LEAST,
        .target_metric = (double)DEMO_TARGET / DIGITS_HELD_OUT,
        .max_epochs = DEMO_MAX_EPOCHS,
        .policy = policy,
        .beta = demo_beta,
        .seed = plan->seed,
        .store = plan->store,
        .run = "",
        .tries = DEMO_TRIES,
        .control_every = as_before ? 0 : DEMO_CONTROL_EVERY,
        .samples_per_epoch = DIGITS_TRAINED,
        .meter = side->machine.meter,
        .leave_limits = as_before,
        .turner = &demo_machine_turner,
        .turner_data = &side->machine,
        /* A training of one minute with an exact counter: few steps are enough to measure a limit. */
        .warmup_steps = 1,
        .profile_steps = 2,
        .energy_tolerance = 0.1,
    };
    side->parts =
        (struct session_parts){.clock = &side->machine.clock, .spool_directory = plan->spool_directory};
}

static int open_side(struct history *history, bool is_baseline, struct fly_error *out_error)
{
    struct side *side = is_baseline ? &history->baseline : &history->chosen;
    int code;

    side->run = is_baseline ? &history->job->baseline : &history->job->chosen;
    name_side(side->name, history->job, is_baseline);
    code = demo_machine_open(&side->machine, gpu_shape_find(demo_gpu), &history->job->load, out_error);
    if (code == 0)
        describe(history, side, is_baseline ? "default" : history->demo->plan.policy);
    return code;
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
                 &(struct digits_seed){philox_key(history->demo->plan.seed, "digits"),
                                       (uint64_t)(history->job - history->demo->jobs) << 32 | index},
                 status->batch_size);
}

/*
 * Runs an epoch of the session. Each step trains the network, unless its result is already known,
 * and lets the machine work.
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
        if (fly_session_step_begin(session) == FLY_STOP)
            return FLY_STOP;
        if (is_new)
            (void)digits_step(&lesson->training);
        demo_machine_work(&side->machine, batch_size, (double)DIGITS_TRAINED / steps);
    }
    fly_session_evaluation_begin(session);
    if (is_new)
        lesson->correct[lesson->epochs++] = digits_evaluate(&lesson->training);
    fly_session_evaluation_end(session);
    return fly_session_report(session, (double)lesson->correct[epoch - 1] / DIGITS_HELD_OUT);
}

static int note_try(const struct history *history, struct side *side, struct fly_session *session,
                    const struct fly_session_status *status, struct fly_error *out_error)
{
    const struct job_spec *spec = &history->job->workload.spec;
    double energy_j = status->epoch > 0 ? status->energy_j : session_energy_j(session);
    double time_s = status->epoch > 0 ? status->time_s : session_time_s(session);

    if (status->text[0] != '\0' || isnan(energy_j))
        return error_set(out_error, FLY_EUNREACHABLE, "the session of the job '%s' is not tuned: %s",
                         side->name, status->text[0] != '\0' ? status->text : "it has no energy");
    side->run->tries[side->run->count] = (struct demo_try){
        .recurrence = status->recurrence,
        .number = side->run->count,
        .batch_size = status->batch_size,
        .power_limit_w = isnan(status->limit_w) ? spec->max_power_w : status->limit_w,
        .reached = status->answer == FLY_REACHED,
        .energy_j = energy_j,
        .time_s = time_s,
        .cost_j = fly_cost(spec->eta, spec->max_power_w, energy_j, time_s),
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
    int code = session_new(&side->options, &side->parts, &session, out_error);

    if (code < 0)
        return code;
    do {
        enum fly_answer answer = FLY_GO_ON;

        (void)fly_session_status(session, &status);
        begin_lesson(history, &side->lesson, &status);
        for (uint32_t epoch = 1; answer == FLY_GO_ON && epoch <= DEMO_MAX_EPOCHS; epoch++)
            answer = live_epoch(side, session, epoch);
        (void)fly_session_status(session, &status);
        code = note_try(history, side, session, &status, out_error);
    } while (code == 0 && fly_session_try_again(session));
    fly_session_close(session, FLY_SESSION_FINISHED);
    if (code == 0 && status.answer == FLY_REACHED)
        side->run->completed++;
    else if (code == 0)
        side->run->ended =
            error_set(&side->run->end, FLY_EEXHAUSTED, "recurrence %llu: no try of %d reached the target",
                      (unsigned long long)status.recurrence + 1, DEMO_TRIES);
    return code;
}

static int run_sides(struct history *history, bool (*go_on)(void *context), void *context,
                     struct fly_error *out_error)
{
    const struct demo_plan *plan = &history->demo->plan;
    struct side *const sides[] = {&history->baseline, &history->chosen};
    int code = 0;

    for (uint64_t r = 0; r < plan->recurrences && code == 0 && go_on(context); r++) {
        for (size_t i = 0; i < 2 && code == 0; i++) {
            code = live_recurrence(history, sides[i], out_error);
            if (plan->advance != NULL)
                plan->advance(plan->progress_context);
        }
        if (history->baseline.run->ended < 0 || history->chosen.run->ended < 0)
            break;
    }
    return code;
}

int demo_history_run(const struct demo *demo, struct demo_job *job, bool (*go_on)(void *context),
                     void *context, struct fly_error *out_error)
{
    struct history *history = calloc(1, sizeof *history);
    int code;

    if (history == NULL)
        return error_no_memory(out_error);
    history->demo = demo;
    history->job = job;
    for (size_t i = 0; i < DEMO_BATCHES; i++)
        history->batch_sizes[i] = job->workload.spec.batches[i].size;
    code = open_side(history, true, out_error);
    if (code == 0) {
        code = open_side(history, false, out_error);
        if (code == 0) {
            code = run_sides(history, go_on, context, out_error);
            demo_machine_close(&history->chosen.machine);
        }
        demo_machine_close(&history->baseline.machine);
    }
    free(history);
    return code;
}

/* FLY_ECONFLICT if the store has the job. */
static int check_absent(const struct jobs *jobs, const char *name, struct arena *arena,
                        struct fly_error *out_error)
{
    struct job_shown shown;
    int code = jobs->backend->show(jobs->self, name, arena, &shown, out_error);

    if (code == 0)
        return error_set(out_error, FLY_ECONFLICT,
                         "the store has a job '%s' already; give another store, or 'flyball job delete %s'",
                         name, name);
    return code == FLY_ENOTFOUND ? 0 : code;
}

int demo_history_check(const struct demo_plan *plan, const struct demo_job *jobs, struct fly_error *out_error)
{
    struct jobs store;
    struct arena arena;
    int code = jobs_open(plan->store, NULL, &store, out_error);

    if (code < 0)
        return code;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < (size_t)2 * DEMO_JOBS && code == 0; i++) {
        char name[64];

        name_side(name, &jobs[i / 2], i % 2 == 1);
        code = check_absent(&store, name, &arena, out_error);
    }
    arena_deinit(&arena);
    jobs_close(&store);
    return code;
}

int demo_history_savings(const struct demo_plan *plan, struct demo_job *job, struct fly_error *out_error)
{
    struct job_history history;
    struct jobs store;
    struct arena arena;
    int code = jobs_open(plan->store, NULL, &store, out_error);

    if (code < 0)
        return code;
    arena_init(&arena, HISTORY_BYTES);
    code = job_history_read(&store, job->name, &arena, &history, out_error);
    if (code == 0)
        code = job_savings_of(&history, 0, &job->savings, out_error);
    arena_deinit(&arena);
    jobs_close(&store);
    return code;
}
