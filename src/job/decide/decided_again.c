/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds the log line by line. When an event changes the objective, the state needs the log from its
 * beginning, as in live jobs: the earlier events are folded again, but not decided again.
 */
#include "job/decide/decided_again.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/core/job_record.h"
#include "job/core/job_words.h"
#include "job/decide/decide.h"
#include "job/decide/state_fold.h"

struct replaying {
    const struct batch_policy *const *plugins;
    struct job_state state;
    const char *log, *end;
    job_replay_visit *visit;
    void *context;
    struct job_replay_sums sums;
};

/* ---- lines ---- */

static int read_line(const char *line, size_t length, uint64_t number, struct log_line *out_line,
                     struct fly_error *out_error)
{
    struct fly_error why;
    int code = log_line_read(line, length, number, out_line, &why);

    if (code == FLY_EUSAGE)
        return error_set(out_error, FLY_EDATA,
                         "line %" PRIu64 " %.200s; give a log that 'flyball job export' wrote", number,
                         why.text);
    if (code == FLY_EDATA)
        return error_set(out_error, FLY_EDATA,
                         "line %" PRIu64 ": %.300s; give a log that 'flyball job export' wrote", number,
                         why.text);
    return code < 0 ? error_no_memory(out_error) : 0;
}

/* Returns the length of a line, and stores in `out_next` where the next one begins. */
static size_t line_length(const struct replaying *replaying, const char *line, const char **out_next)
{
    const char *newline = memchr(line, '\n', (size_t)(replaying->end - line));

    *out_next = newline != NULL ? newline + 1 : replaying->end;
    return (size_t)((newline != NULL ? newline : replaying->end) - line);
}

static int fold(struct replaying *replaying, const struct log_line *line, struct fly_error *out_error)
{
    return job_state_fold_body(&replaying->state, &line->event, line->body, replaying->plugins, out_error);
}

/* Folds the first `count` lines into a state that forgot them. */
static int fold_again(struct replaying *replaying, uint64_t count, struct fly_error *out_error)
{
    const char *line = replaying->log;
    int code = 0;

    for (uint64_t number = 1; number <= count && code == 0; number++) {
        struct log_line read;
        const char *next;
        size_t length = line_length(replaying, line, &next);

        code = read_line(line, length, number, &read, out_error);
        if (code < 0)
            return code;
        code = fold(replaying, &read, out_error);
        log_line_deinit(&read);
        line = next;
    }
    return code == JOB_FOLD_ANEW ? error_set(out_error, FLY_EINTERNAL, "the fold of a log does not end")
                                 : code;
}

/* ---- comparing ---- */

/* Notes the first difference. */
static void differ(struct job_replayed *replayed, const char *what, const char *recorded, const char *decided)
{
    if (replayed->difference[0] == '\0')
        snprintf(replayed->difference, sizeof replayed->difference, "%s %s on record, %s now", what, recorded,
                 decided);
}

static void compare_numbers(struct job_replayed *replayed, const char *what, double recorded, double decided)
{
    char texts[2][32];

    if (recorded == decided || (isnan(recorded) && isnan(decided)))
        return;
    snprintf(texts[0], sizeof texts[0], "%.17g", recorded);
    snprintf(texts[1], sizeof texts[1], "%.17g", decided);
    differ(replayed, what, texts[0], texts[1]);
}

static void compare_words(struct job_replayed *replayed, const char *what, const char *recorded,
                          const char *decided)
{
    if (strcmp(recorded, decided) != 0)
        differ(replayed, what, recorded, decided);
}

static void compare_proposals(struct job_replayed *replayed, const struct proposed_record *recorded,
                              const struct proposed_record *decided)
{
    compare_numbers(replayed, "batch_size", recorded->batch_size, decided->batch_size);
    compare_words(replayed, "reason", job_reason_name(recorded->reason), job_reason_name(decided->reason));
    compare_numbers(replayed, "limit_w", recorded->limit_w, decided->limit_w);
    compare_numbers(replayed, "wants_profile", recorded->wants_profile, decided->wants_profile);
    compare_numbers(replayed, "epochs", recorded->epochs, decided->epochs);
    compare_numbers(replayed, "capped", recorded->capped, decided->capped);
    compare_numbers(replayed, "counted", recorded->counted, decided->counted);
    compare_numbers(replayed, "last_try", recorded->last_try, decided->last_try);
    compare_numbers(replayed, "recurrence", (double)recorded->recurrence, (double)decided->recurrence);
    compare_numbers(replayed, "try", recorded->try_number, decided->try_number);
    compare_numbers(replayed, "stop_by_us", (double)recorded->stop_by_us, (double)decided->stop_by_us);
}

static int tell(struct replaying *replaying, struct job_replay_count *count,
                const struct job_replayed *replayed, struct fly_error *out_error)
{
    count->compared++;
    count->different += replayed->difference[0] != '\0';
    return replaying->visit != NULL ? replaying->visit(replaying->context, replayed, out_error) : 0;
}

/* ---- proposals ---- */

static bool has_hardware(const struct job_state *state, const struct proposed_record *record)
{
    return record->new_line || record->line < state->line_count;
}

/* The trial's hardware as the log tells it: all of it when it was new, else what the job knows of it. */
static struct job_hardware hardware_of(const struct job_state *state, const struct proposed_record *record)
{
    const struct job_line *line;

    if (record->new_line)
        return record->hardware;
    line = &state->lines[record->line];
    return (struct job_hardware){.gpu_model = line->gpu_model,
                                 .gpu_count = line->gpu_count,
                                 .world_size = line->world_size,
                                 .gpu_memory_bytes = line->gpu_memory_bytes};
}

static int on_proposed(void *fold, const struct log_event *at, const struct proposed_record *recorded)
{
    struct replaying *replaying = fold;
    struct decision decision = {.batch = 0};
    struct job_replayed replayed = {.kind = RECORD_PROPOSED, .trial = at->event->trial};
    struct job_question question;
    int code = 0;

    if (!has_hardware(&replaying->state, recorded)) /* the fold reports it */
        return 0;
    question = (struct job_question){
        .run = recorded->run,
        .submission = recorded->submission,
        .tries = recorded->tries,
        .heartbeat_s = recorded->heartbeat_s,
        .finish_by_us = recorded->finish_by_us,
        .hardware = hardware_of(&replaying->state, recorded),
        .ran_batch_size = recorded->reason == REASON_UNASKED ? recorded->batch_size : 0,
        .ran_limit_w = recorded->limit_w,
    };
    code = decide_proposal(&replaying->state, &question, at->event->time_us, &decision, at->error);
    if (code < 0)
        return code;
    replayed.recorded = recorded;
    replayed.decided = &decision.record;
    compare_proposals(&replayed, recorded, &decision.record);
    return tell(replaying, &replaying->sums.proposals, &replayed, at->error);
}

/* ---- profiles and reports ---- */

static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *recorded)
{
    struct replaying *replaying = fold;
    const struct job_trial *trial = job_state_trial(&replaying->state, at->event->trial);
    struct job_replayed replayed = {.kind = RECORD_PROFILED, .trial = at->event->trial};
    struct profiled_record *decided;
    int code;

    if (trial == NULL)
        return 0;
    decided = calloc(1, sizeof *decided);
    if (decided == NULL)
        return error_no_memory(at->error);
    decided->count = recorded->count;
    decided->units_per_epoch = recorded->units_per_epoch;
    memcpy(decided->points, recorded->points, recorded->count * sizeof recorded->points[0]);
    code = decide_profile(&replaying->state, trial, decided, at->error);
    compare_numbers(&replayed, "limit_w", recorded->limit_w, decided->limit_w);
    compare_numbers(&replayed, "epochs", recorded->epochs, decided->epochs);
    compare_numbers(&replayed, "refused", recorded->refused, decided->refused);
    free(decided);
    return code < 0 ? code : tell(replaying, &replaying->sums.profiles, &replayed, at->error);
}

static int on_epoch(void *fold, const struct log_event *at, const struct epoch_record *recorded)
{
    struct replaying *replaying = fold;
    const struct job_trial *trial = job_state_trial(&replaying->state, at->event->trial);
    struct job_replayed replayed = {.kind = RECORD_EPOCH, .trial = at->event->trial};
    struct epoch_record decided = *recorded;
    int code;

    if (trial == NULL || recorded->late || recorded->attempt != trial->attempt)
        return 0;
    code = decide_report(&replaying->state, trial, at->event->time_us, &decided, at->error);
    if (code < 0)
        return code;
    replayed.epoch = recorded->epoch;
    compare_words(&replayed, "answer", job_answer_words[recorded->answer], job_answer_words[decided.answer]);
    compare_words(&replayed, "stop", job_stop_words[recorded->stop], job_stop_words[decided.stop]);
    compare_numbers(&replayed, "epochs", recorded->epochs, decided.epochs);
    return tell(replaying, &replaying->sums.reports, &replayed, at->error);
}

/* ---- the log ---- */

static const struct log_visitor visitor = {
    .on_proposed = on_proposed, .on_profiled = on_profiled, .on_epoch = on_epoch};

static int take(struct replaying *replaying, const char *line, size_t length, uint64_t number,
                struct fly_error *out_error)
{
    struct fly_error why = {.text = ""};
    struct log_line read;
    int code = read_line(line, length, number, &read, out_error);

    if (code < 0)
        return code;
    if (replaying->state.defined)
        code = log_tell(&visitor, replaying, &read.event, read.body, &why);
    if (code == 0)
        code = fold(replaying, &read, &why);
    log_line_deinit(&read);
    if (code == JOB_FOLD_ANEW)
        return fold_again(replaying, number, out_error);
    return code < 0 ? error_set(out_error, code, "line %" PRIu64 ": %.300s", number, why.text) : 0;
}

int job_replay(const char *log, size_t length, const struct batch_policy *const *plugins,
               job_replay_visit *visit, void *context, struct job_replay_sums *out_sums,
               struct fly_error *out_error)
{
    struct replaying replaying = {
        .plugins = plugins, .log = log, .end = log + length, .visit = visit, .context = context};
    const char *next = log;
    int code = 0;

    job_state_init(&replaying.state);
    for (uint64_t number = 1; next < replaying.end && code == 0; number++) {
        const char *line = next;
        size_t bytes = line_length(&replaying, line, &next);

        code = take(&replaying, line, bytes, number, out_error);
        replaying.sums.events = number;
    }
    if (code == 0 && !replaying.state.defined)
        code = error_set(out_error, FLY_EDATA,
                         "there are no events; give a log that 'flyball job export' wrote");
    if (code == 0) {
        snprintf(replaying.sums.job, sizeof replaying.sums.job, "%s", replaying.state.definition.name);
        *out_sums = replaying.sums;
    }
    job_state_deinit(&replaying.state);
    return code;
}
