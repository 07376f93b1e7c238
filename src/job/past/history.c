/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>

#include "base/array.h"
#include "job/core/definition_json.h"
#include "job/core/grid_amount.h"
#include "job/core/job_owner.h"
#include "job/core/job_words.h"
#include "job/core/trial_past.h"
#include "job/past/history_brought.h"

enum { TRIALS_MAX = 10000000 };

/* The log while it becomes rows. */
struct reading {
    struct arena *arena;
    struct job_history *history;
    struct brought_list brought;
    struct trial_past *pasts; /* owned; index: trial number - 1 */
    size_t count, capacity;
};

static void reading_deinit(struct reading *reading)
{
    for (size_t i = 0; i < reading->count; i++)
        trial_past_deinit(&reading->pasts[i]);
    free(reading->pasts);
}

static int read_defined(struct reading *reading, json_t *body, struct fly_error *out_error)
{
    int code = definition_from_json(body, reading->arena, &reading->history->definition, out_error);

    if (code < 0)
        return code;
    reading->history->objective = reading->history->definition.objective;
    reading->history->policy = reading->history->definition.policy;
    return 0;
}

static bool same_objective(const struct fly_objective *one, const struct fly_objective *other)
{
    return one->kind == other->kind && objective_eta(one) == objective_eta(other) &&
           one->max_slowdown == other->max_slowdown;
}

/* Setting a value to what it was is no change. */
static int read_set(struct reading *reading, const struct store_event *event, json_t *body,
                    struct fly_error *out_error)
{
    struct job_history *history = reading->history;
    struct job_setting setting;
    struct fly_error why;
    bool changed;

    if (record_read_setting(body, &setting, &why) < 0)
        return record_refuse(event, &why, out_error);
    changed = setting.set_objective && !same_objective(&setting.objective, &history->objective);
    if (setting.set_objective)
        history->objective = setting.objective;
    if (setting.set_pin) {
        changed |= setting.pin_batch_size != history->pin_batch_size ||
                   (setting.pin_batch_size > 0 && setting.pin_limit_w != history->pin_limit_w &&
                    !(isnan(setting.pin_limit_w) && isnan(history->pin_limit_w)));
        history->pin_batch_size = setting.pin_batch_size;
        history->pin_limit_w = setting.pin_limit_w;
    }
    if (setting.policy != NULL && setting.policy[0] != '\0')
        history->policy = arena_strdup(reading->arena, setting.policy);
    if (history->policy == NULL)
        return error_no_memory(out_error);
    if (changed) {
        history->wanted_us = event->time_us;
        history->wanted_from = reading->count + 1;
    }
    return 0;
}

/* The first trial on a kind of hardware describes it. */
static void describe_machine(struct reading *reading, const struct job_hardware *hardware)
{
    struct job_history *history = reading->history;
    struct job_machine *machine = &history->machines[history->machine_count++];
    size_t limits = hardware->limit_count;

    *machine = (struct job_machine){
        .gpu_model = arena_strdup(reading->arena, hardware->gpu_model),
        .gpu_count = hardware->gpu_count,
        .world_size = hardware->world_size,
        .gpu_memory_bytes = hardware->gpu_memory_bytes,
        .highest_limit_w = limits > 0 ? hardware->limits_w[limits - 1] : NAN,
    };
    machine->max_power_w =
        hardware->max_power_w > 0.0 ? hardware->max_power_w : machine->highest_limit_w * hardware->gpu_count;
}

static int read_machine(struct reading *reading, const struct store_event *event, json_t *body,
                        struct fly_error *out_error)
{
    struct job_history *history = reading->history;
    struct proposed_record record;
    struct fly_error why;
    struct arena arena;
    int code;

    arena_init(&arena, RECORD_ARENA_MAX);
    code = record_read_proposed(body, &arena, &record, &why);
    if (code == 0 && record.new_line && history->machine_count < JOB_HARDWARE_MAX)
        describe_machine(reading, &record.hardware);
    arena_deinit(&arena);
    if (code < 0)
        return record_refuse(event, &why, out_error);
    return record.line < history->machine_count
               ? 0
               : error_set(out_error, FLY_EDATA, "a trial runs on hardware that is not described");
}

/* Finds the place of a trial; trials begin in the order of their numbers. */
static int place(struct reading *reading, uint64_t trial, struct trial_past **out_past,
                 struct fly_error *out_error)
{
    struct trial_past *pasts;

    if (trial > reading->count + 1 || trial > TRIALS_MAX)
        return error_set(out_error, FLY_EDATA, "trial %" PRIu64 " comes after trial %zu", trial,
                         reading->count);
    pasts = array_grow(reading->pasts, reading->count, &reading->capacity, sizeof pasts[0]);
    if (pasts == NULL)
        return error_no_memory(out_error);
    if (trial == reading->count + 1)
        pasts[reading->count++] = trial_past_empty;
    reading->pasts = pasts;
    *out_past = &pasts[trial - 1];
    return 0;
}

/* Reads what an event tells about the job; a trial's events also go to the trial. */
static int read_job(struct reading *reading, const struct store_event *event, enum record_kind kind,
                    struct fly_error *out_error)
{
    json_t *body;
    int code;

    if (kind != RECORD_DEFINED && kind != RECORD_SET && kind != RECORD_PROPOSED && kind != RECORD_BROUGHT)
        return 0;
    code = record_parse(event, &body, out_error);
    if (code < 0)
        return code;
    if (kind == RECORD_DEFINED)
        code = read_defined(reading, body, out_error);
    else if (kind == RECORD_BROUGHT)
        code =
            brought_list_add(&reading->brought, event, body, reading->count + 1, reading->arena, out_error);
    else if (kind == RECORD_SET)
        code = read_set(reading, event, body, out_error);
    else
        code = read_machine(reading, event, body, out_error);
    json_decref(body);
    return code;
}

static int read_event(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct reading *reading = context;
    enum record_kind kind = record_kind_parse(event->kind);
    struct trial_past *past = NULL;
    int code = read_job(reading, event, kind, out_error);

    if (code < 0 || event->trial == 0)
        return code;
    code = place(reading, event->trial, &past, out_error);
    if (past == NULL)
        return code;
    code = trial_past_visit(past, event, out_error);
    if (code == 0 && (kind == RECORD_ENDED || kind == RECORD_CLOSED) && !isnan(past->run_reference_per_kwh))
        reading->history->reference_per_kwh = past->run_reference_per_kwh;
    return code;
}

/* ---- rows ---- */

double job_history_limit_w(const struct job_history *history, const struct job_row *trial)
{
    const struct job_machine *machine = &history->machines[trial->machine];
    bool own = isnan(machine->highest_limit_w) || trial->left_alone;

    return own && isnan(trial->limit_w) ? machine->max_power_w / machine->gpu_count : trial->limit_w;
}

const char *job_row_outcome(const struct job_row *row)
{
    return row->running ? "running" : row->nothing_learnt ? "nothing_learnt" : job_outcome_name(row->outcome);
}

bool job_row_is_untold(const struct job_row *row)
{
    return row->running && row->epochs == 0 && !(row->time_s > 0.0);
}

static const char *copy(struct reading *reading, const char *text, bool *fits)
{
    const char *copied = text != NULL && text[0] != '\0' ? arena_strdup(reading->arena, text) : "";

    *fits &= copied != NULL;
    return copied != NULL ? copied : "";
}

static struct job_row make_row(struct reading *reading, uint64_t trial, const struct trial_past *past,
                               bool *fits)
{
    const struct job_history *history = reading->history;
    const struct job_machine *machine = &history->machines[past->record.line];
    bool over = past->ended || past->silent;
    double known_j =
               past->past_energy_j + (over ? trial_told_j(past->energy_j, past->time_s) : past->energy_j),
           known_s = past->past_time_s + past->time_s;
    double eta = objective_eta(&history->objective);
    char user[JOB_USER_MAX];
    struct job_row row = {
        .trial = trial,
        .attempts = past->attempt,
        .recurrence = past->record.recurrence,
        .try_number = past->record.try_number,
        .running = !over,
        .late = past->expired && past->ended,
        .nothing_learnt = past->ended && past->how.nothing_learnt,
        .outcome = past->how.outcome,
        .stop = past->how.stop,
        .reason = past->record.reason,
        .machine = past->record.line,
        .batch_size = past->record.batch_size,
        .limit_w = past->limit_w,
        .profiled = past->record.wants_profile && (past->profiled || past->parted),
        .left_alone = past->record.wants_profile && !past->profiled && !past->parted,
        .epochs = past->ended ? past->how.epochs : past->epochs_done,
        .metric = trial_past_metric(past, &history->definition),
        .energy_j = past->ended ? past->how.energy_j : known_j,
        .time_s = past->ended ? past->how.time_s : known_s,
        .startup_energy_j =
            past->ended ? past->how.startup_energy_j : past->past_startup_energy_j + past->startup_energy_j,
        .startup_time_s =
            past->ended ? past->how.startup_time_s : past->past_startup_time_s + past->startup_time_s,
        .proposed_us = past->proposed_us,
        .ended_us = over ? past->ended_us : 0,
        .user = copy(reading, job_user_told(past->origin.user, user), fits),
        .account = copy(reading, past->origin.account, fits),
        .host = copy(reading, past->origin.host, fits),
        .gpus = copy(reading, past->origin.gpus, fits),
        .text = copy(reading, past->how.text, fits),
    };

    row.run_energy_j = past->closed ? past->run_energy_j : fmax(row.energy_j, known_j);
    row.run_time_s = past->closed ? past->run_time_s : fmax(row.time_s, known_s);
    row.reference_per_kwh = over ? past->run_reference_per_kwh : past->reference_per_kwh;
    row.grid_amount = job_grid_amount(row.energy_j, row.reference_per_kwh);
    row.run_grid_amount = job_grid_amount(row.run_energy_j, row.reference_per_kwh);
    row.cost_j = eta == 1.0 ? row.energy_j : fly_cost(eta, machine->max_power_w, row.energy_j, row.time_s);
    return row;
}

static int make_rows(struct reading *reading, struct fly_error *out_error)
{
    struct job_history *history = reading->history;
    const struct job_brought_past *began;
    size_t revision = 0;
    bool fits = true;

    history->rows =
        arena_alloc(reading->arena, reading->count > 0 ? reading->count : 1, sizeof history->rows[0]);
    if (history->rows == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < reading->count; i++) {
        if (reading->pasts[i].proposed == NULL || reading->pasts[i].record.recurrence > i)
            return error_set(out_error, FLY_EDATA,
                             "trial %zu was never proposed, or its recurrence never began", i + 1);
        while ((began = job_history_revision(history, revision + 1)) != NULL && began->before <= i + 1)
            revision++;
        history->rows[i] = make_row(reading, i + 1, &reading->pasts[i], &fits);
        history->rows[i].revision = revision;
    }
    history->count = reading->count;
    return fits ? 0 : error_no_memory(out_error);
}

int job_history_read(const struct jobs *jobs, const char *job, struct arena *arena,
                     struct job_history *out_history, struct fly_error *out_error)
{
    static const struct store_query everything = {0};
    struct job_history history = {.pin_limit_w = NAN,
                                  .reference_per_kwh = NAN,
                                  .machines =
                                      arena_alloc(arena, JOB_HARDWARE_MAX, sizeof history.machines[0])};
    struct reading reading = {.arena = arena, .history = &history};
    int code = 0;

    if (history.machines == NULL)
        return error_no_memory(out_error);
    code = jobs->backend->read(jobs->self, job, &everything, read_event, &reading, out_error);
    history.brought = reading.brought.items;
    history.brought_count = reading.brought.count;
    history.revision = reading.brought.revisions;
    if (code == 0)
        code = make_rows(&reading, out_error);
    reading_deinit(&reading);
    if (code == 0)
        *out_history = history;
    return code;
}

/* ---- operating points ---- */

static struct fly_operating_point *find_point(struct job_points *points, uint32_t batch_size, double limit_w)
{
    for (size_t i = 0; i < points->count; i++) {
        if (points->points[i].batch_size == batch_size && points->points[i].power_limit_w == limit_w)
            return &points->points[i];
    }
    points->points[points->count] =
        (struct fly_operating_point){.batch_size = batch_size, .power_limit_w = limit_w};
    points->trials[points->count] = 0;
    return &points->points[points->count++];
}

int job_history_points(const struct job_history *history, size_t machine, struct arena *arena,
                       struct job_points *out_points, struct fly_error *out_error)
{
    size_t room = history->count > 0 ? history->count : 1;
    struct job_points points = {.points = arena_alloc(arena, room, sizeof points.points[0]),
                                .trials = arena_alloc(arena, room, sizeof points.trials[0])};

    if (points.points == NULL || points.trials == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        struct fly_operating_point *point;

        if (row->running || row->outcome != TRIAL_REACHED || row->profiled || isnan(row->limit_w) ||
            isnan(row->energy_j) || row->machine != machine || row->revision != history->revision)
            continue;
        point = find_point(&points, row->batch_size, row->limit_w);
        point->energy_j += row->energy_j;
        point->time_s += row->time_s;
        points.trials[point - points.points]++;
    }
    for (size_t i = 0; i < points.count; i++) {
        points.points[i].energy_j /= (double)points.trials[i];
        points.points[i].time_s /= (double)points.trials[i];
    }
    *out_points = points;
    return 0;
}

struct job_grid_sum job_history_grid_sum(const struct job_history *history)
{
    struct job_grid_sum sum = {0};

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];

        if (row->running || !(row->run_energy_j > 0.0))
            continue;
        if (isnan(row->run_grid_amount)) {
            sum.unknown++;
            continue;
        }
        sum.known++;
        sum.amount += row->run_grid_amount;
    }
    if (sum.known == 0)
        sum.amount = NAN;
    return sum;
}
