/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state as bytes. Only the same version of the software writes and reads them: anything else is folded
 * anew, so nothing here must stay readable.
 */
#include "job/decide/state_snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/adler32.h"
#include "job/core/definition.h"
#include "job/core/definition_json.h"
#include "job/decide/brought.h"
#include "job/decide/line.h"
#include "shapes/shape.h"

enum { DEFINITION_TEXT_MAX = 1 << 16 };

bool job_state_saves(const struct job_state *state)
{
    return state->policy != NULL && state->policy->save != NULL && state->policy->load != NULL;
}

static void put_i64(struct buffer *bytes, int64_t value)
{
    bytes_put_u64(bytes, (uint64_t)value);
}

static int64_t get_i64(struct bytes_reader *bytes)
{
    return (int64_t)bytes_u64(bytes);
}

static uint32_t get_u32(struct bytes_reader *bytes)
{
    return (uint32_t)bytes_up_to(bytes, UINT32_MAX);
}

/* ---- what was observed of epochs, here and elsewhere ---- */

static void save_tally(const struct past_tally *tally, struct buffer *bytes)
{
    bytes_put_u64(bytes, tally->reached);
    bytes_put_double(bytes, tally->mean);
    bytes_put_double(bytes, tally->squares);
    bytes_put_u64(bytes, tally->stopped);
    bytes_put_double(bytes, tally->stopped_epochs);
    bytes_put_u64(bytes, tally->failed);
    bytes_put_double(bytes, tally->log_epoch_cost);
}

static struct past_tally load_tally(struct bytes_reader *bytes)
{
    struct past_tally tally;

    tally.reached = bytes_u64(bytes);
    tally.mean = bytes_double(bytes);
    tally.squares = bytes_double(bytes);
    tally.stopped = bytes_u64(bytes);
    tally.stopped_epochs = bytes_double(bytes);
    tally.failed = bytes_u64(bytes);
    tally.log_epoch_cost = bytes_double(bytes);
    return tally;
}

static void save_brought(const struct job_state *state, struct buffer *bytes)
{
    bytes_put_text(bytes, state->owners);
    bytes_put_text(bytes, state->revision);
    bytes_put_u64(bytes, state->brought.kind);
    bytes_put_text(bytes, state->brought.source);
    bytes_put_u64(bytes, state->brought.count);
    for (size_t i = 0; i < state->brought.count; i++) {
        const struct past_tally tally = brought_tally(&state->brought.batches[i]);

        bytes_put_u64(bytes, state->brought.batches[i].batch_size);
        save_tally(&tally, bytes);
    }
}

static int load_brought(struct job_state *state, struct bytes_reader *bytes, struct fly_error *out_error)
{
    struct job_brought *brought = &state->brought;

    bytes_text(bytes, state->owners, sizeof state->owners);
    bytes_text(bytes, state->revision, sizeof state->revision);
    brought->kind = (enum past_kind)bytes_up_to(bytes, PAST_KINDS - 1);
    bytes_text(bytes, brought->source, sizeof brought->source);
    brought->count = (size_t)bytes_up_to(bytes, JOB_BATCHES_MAX);
    if (brought->count == 0)
        return 0;
    brought->batches = arena_alloc(&state->arena, brought->count, sizeof brought->batches[0]);
    if (brought->batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < brought->count; i++) {
        uint32_t size = get_u32(bytes);
        const struct past_tally tally = load_tally(bytes);

        brought->batches[i] = brought_of(size, &tally);
    }
    return 0;
}

/* ---- lines ---- */

static void save_part(const struct profile_part *part, struct buffer *bytes)
{
    bytes_put_u64(bytes, part->count);
    for (size_t i = 0; i < part->count; i++) {
        bytes_put_double(bytes, part->points[i].limit_w);
        bytes_put_double(bytes, part->points[i].power_w);
        bytes_put_double(bytes, part->points[i].time_s);
    }
}

static int load_part(struct job_line *line, size_t batch, struct bytes_reader *bytes,
                     struct fly_error *out_error)
{
    size_t count = (size_t)bytes_up_to(bytes, JOB_KNOWN_MAX);
    int code = 0;

    for (size_t i = 0; i < count && code == 0 && !bytes->failed; i++) {
        struct fly_power_point point;

        point.limit_w = bytes_double(bytes);
        point.power_w = bytes_double(bytes);
        point.time_s = bytes_double(bytes);
        code = profile_part_take(&line->parts[batch], &line->arena, &point, 1, out_error);
    }
    return code;
}

static void save_line(const struct job_line *line, struct buffer *bytes)
{
    bytes_put_text(bytes, line->gpu_model);
    bytes_put_u64(bytes, line->gpu_count);
    bytes_put_u64(bytes, line->world_size);
    bytes_put_u64(bytes, line->gpu_memory_bytes);
    bytes_put_double(bytes, line->spec->max_power_w);
    bytes_put_u64(bytes, line->limits_known ? line->spec->batches[0].limit_count : 0);
    for (size_t i = 0; line->limits_known && i < line->spec->batches[0].limit_count; i++)
        bytes_put_double(bytes, line->spec->batches[0].limits_w[i]);
    bytes_put_u64(bytes, line->described);
    bytes_put_u64(bytes, line->excluded);
    bytes_put_u64(bytes, line->overflowing);
    bytes_put_u64(bytes, line->recurrences);
    bytes_put_u64(bytes, line->baseline_runs);
    bytes_put_double(bytes, line->baseline_time_s);
    bytes_put_double(bytes, line->growth);
    bytes_put_u64(bytes, line->anew_trial);
    put_i64(bytes, line->anew_us);
    for (size_t i = 0; i < line->spec->batch_count; i++) {
        const struct batch_facts *facts = &line->facts[i];

        bytes_put_u64(bytes, facts->observed);
        bytes_put_u64(bytes, facts->reached);
        bytes_put_u64(bytes, facts->priced);
        bytes_put_double(bytes, facts->cost_j);
        bytes_put_double(bytes, facts->energy_j);
        bytes_put_double(bytes, facts->time_s);
        bytes_put_double(bytes, facts->reached_energy_j);
        bytes_put_double(bytes, facts->reached_time_s);
        bytes_put_double(bytes, facts->longest_s);
        bytes_put_u64(bytes, facts->reached_epochs);
        bytes_put_double(bytes, facts->units_per_epoch);
        bytes_put_u64(bytes, facts->final.count);
        bytes_put_double(bytes, facts->final.mean);
        bytes_put_double(bytes, facts->final.squares);
        bytes_put_u64(bytes, facts->worse);
        bytes_put_double(bytes, facts->first_steps);
        save_tally(&facts->tally, bytes);
        bytes_put_u64(bytes, facts->crashed);
        bytes_put_u64(bytes, facts->silent);
        bytes_put_u64(bytes, facts->unstarted);
        bytes_put_text(bytes, facts->crash_text);
        save_part(&line->parts[i], bytes);
    }
    decider_save(&line->decider, bytes);
}

static int load_facts(struct job_line *line, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = 0;

    line->described = bytes_bool(bytes);
    line->excluded = (size_t)bytes_up_to(bytes, line->spec->batch_count);
    line->overflowing = get_u32(bytes);
    line->recurrences = bytes_u64(bytes);
    line->baseline_runs = bytes_u64(bytes);
    line->baseline_time_s = bytes_double(bytes);
    line->growth = bytes_double(bytes);
    line->anew_trial = bytes_u64(bytes);
    line->anew_us = get_i64(bytes);
    for (size_t i = 0; i < line->spec->batch_count && code == 0; i++) {
        struct batch_facts *facts = &line->facts[i];

        facts->observed = bytes_u64(bytes);
        facts->reached = bytes_u64(bytes);
        facts->priced = bytes_u64(bytes);
        facts->cost_j = bytes_double(bytes);
        facts->energy_j = bytes_double(bytes);
        facts->time_s = bytes_double(bytes);
        facts->reached_energy_j = bytes_double(bytes);
        facts->reached_time_s = bytes_double(bytes);
        facts->longest_s = bytes_double(bytes);
        facts->reached_epochs = bytes_u64(bytes);
        facts->units_per_epoch = bytes_double(bytes);
        facts->final.count = bytes_u64(bytes);
        facts->final.mean = bytes_double(bytes);
        facts->final.squares = bytes_double(bytes);
        facts->worse = bytes_bool(bytes);
        facts->first_steps = bytes_double(bytes);
        facts->tally = load_tally(bytes);
        facts->crashed = bytes_u64(bytes);
        facts->silent = bytes_u64(bytes);
        facts->unstarted = bytes_u64(bytes);
        bytes_text(bytes, facts->crash_text, sizeof facts->crash_text);
        code = load_part(line, i, bytes, out_error);
    }
    return code;
}

/* Makes the line anew, and restores what it knew. */
static int load_line(struct job_state *state, struct bytes_reader *bytes, struct fly_error *out_error)
{
    char gpu_model[JOB_TEXT_MAX];
    double limits_w[JOB_LIMITS_MAX];
    struct job_hardware hardware = {.gpu_model = gpu_model, .limits_w = limits_w};
    struct job_line *line;
    int code;

    bytes_text(bytes, gpu_model, sizeof gpu_model);
    hardware.gpu_count = get_u32(bytes);
    hardware.world_size = get_u32(bytes);
    hardware.gpu_memory_bytes = bytes_u64(bytes);
    hardware.max_power_w = bytes_double(bytes);
    hardware.limit_count = (size_t)bytes_up_to(bytes, JOB_LIMITS_MAX);
    for (size_t i = 0; i < hardware.limit_count; i++)
        limits_w[i] = bytes_double(bytes);
    if (bytes->failed || hardware.world_size == 0 || hardware.gpu_count == 0)
        return 1;
    code = job_state_add_line(state, &hardware, out_error);
    if (code < 0)
        return code == FLY_ENOMEM ? code : 1;
    line = &state->lines[state->line_count - 1];
    code = load_facts(line, bytes, out_error);
    if (code < 0)
        return code;
    code = bytes->failed ? 1 : decider_load(&line->decider, bytes, out_error);
    return code == 0 ? job_line_tell_left(line, out_error) : code;
}

/* ---- trials and recurrences ---- */

/* What a trial has that is only copied. */
/* clang-format off */
#define TRIAL_NUMBERS(X) \
    X(limit_w) X(heartbeat_s) X(metric) X(past_energy_j) X(past_time_s) X(energy_j) X(time_s) X(longest_s) \
    X(decided_energy_j) X(decided_time_s) X(reference_per_kwh) X(progress.best) X(growth) X(steps) \
    X(past_startup_energy_j) X(past_startup_time_s) X(startup_energy_j) X(startup_time_s) X(later.epochs) \
    X(later.energy_j) X(later.time_s) X(longest_epoch_s)
#define TRIAL_MARKS(X) \
    X(wants_profile) X(profiles) X(counted) X(capped) X(last_try) X(decided) X(lost) X(silent) X(reported) \
    X(of_past) X(startup_told)
/* clang-format on */
#define PUT_NUMBER(member) bytes_put_double(bytes, trial->member);
#define GET_NUMBER(member) trial->member = bytes_double(bytes);
#define PUT_MARK(member) bytes_put_u64(bytes, trial->member);
#define GET_MARK(member) trial->member = bytes_bool(bytes);

static void save_trial(const struct job_trial *trial, struct buffer *bytes)
{
    bytes_put_u64(bytes, trial->number);
    bytes_put_u64(bytes, trial->index);
    bytes_put_u64(bytes, trial->recurrence);
    bytes_put_u64(bytes, trial->try_number);
    bytes_put_u64(bytes, trial->line);
    bytes_put_u64(bytes, trial->batch);
    bytes_put_u64(bytes, trial->reason);
    bytes_put_u64(bytes, trial->epochs);
    bytes_put_u64(bytes, trial->attempt);
    bytes_put_u64(bytes, trial->epochs_done);
    bytes_put_u64(bytes, trial->progress.held);
    put_i64(bytes, trial->stop_by_us);
    put_i64(bytes, trial->sign_us);
    bytes_put_text(bytes, trial->run);
    bytes_put_text(bytes, trial->submission);
    TRIAL_NUMBERS(PUT_NUMBER)
    TRIAL_MARKS(PUT_MARK)
}

static void load_trial(const struct job_state *state, struct bytes_reader *bytes, struct job_trial *trial)
{
    trial->number = bytes_up_to(bytes, state->trials);
    trial->index = bytes_u64(bytes);
    trial->recurrence = bytes_u64(bytes);
    trial->try_number = get_u32(bytes);
    trial->line = (size_t)bytes_up_to(bytes, state->line_count - 1);
    trial->batch = (size_t)bytes_up_to(bytes, state->lines[trial->line].spec->batch_count - 1);
    trial->reason = (enum reason)bytes_up_to(bytes, REASON_COUNT - 1);
    trial->epochs = get_u32(bytes);
    trial->attempt = get_u32(bytes);
    trial->epochs_done = get_u32(bytes);
    trial->progress.held = get_u32(bytes);
    trial->stop_by_us = get_i64(bytes);
    trial->sign_us = get_i64(bytes);
    bytes_text(bytes, trial->run, sizeof trial->run);
    bytes_text(bytes, trial->submission, sizeof trial->submission);
    TRIAL_NUMBERS(GET_NUMBER)
    TRIAL_MARKS(GET_MARK)
}

static void save_recurrence(const struct job_recurrence *recurrence, struct buffer *bytes)
{
    bytes_put_u64(bytes, recurrence->number);
    bytes_put_text(bytes, recurrence->submission);
    bytes_put_u64(bytes, recurrence->tries);
    bytes_put_u64(bytes, recurrence->line);
    bytes_put_u64(bytes, recurrence->line_number);
    bytes_put_u64(bytes, recurrence->policy_tries);
    bytes_put_u64(bytes, recurrence->begun);
}

static void load_recurrence(const struct job_state *state, struct bytes_reader *bytes,
                            struct job_recurrence *recurrence)
{
    recurrence->number = bytes_u64(bytes);
    bytes_text(bytes, recurrence->submission, sizeof recurrence->submission);
    recurrence->tries = get_u32(bytes);
    recurrence->line = (size_t)bytes_up_to(bytes, state->line_count);
    recurrence->line_number = bytes_u64(bytes);
    recurrence->policy_tries = get_u32(bytes);
    recurrence->begun = bytes_bool(bytes);
}

/* ---- the whole ---- */

static void save_body(const struct job_state *state, struct buffer *bytes)
{
    json_t *definition = definition_to_json(&state->definition);
    char *text = definition != NULL ? json_dumps(definition, JSON_COMPACT) : NULL;

    bytes_put_text(bytes, text != NULL ? text : "");
    free(text);
    json_decref(definition);
    bytes_put_u64(bytes, state->policy_set.from);
    bytes_put_text(bytes, state->policy_set.name);
    bytes_put_text(bytes, state->policy_set.sha256);
    bytes_put_text(bytes, state->policy->name);
    bytes_put_u64(bytes, state->policy->version);
    bytes_put_u64(bytes, DECIDER_STATE_VERSION);
    bytes_put_u64(bytes, state->objective.kind);
    bytes_put_double(bytes, state->objective.eta);
    bytes_put_double(bytes, state->objective.max_slowdown);
    bytes_put_u64(bytes, state->objective_from);
    bytes_put_u64(bytes, state->control_every);
    bytes_put_u64(bytes, state->pin_batch_size);
    bytes_put_double(bytes, state->pin_limit_w);
    bytes_put_double(bytes, state->reference_per_kwh);
    bytes_put_u64(bytes, state->number);
    put_i64(bytes, state->last_us);
    bytes_put_u64(bytes, state->trials);
    bytes_put_u64(bytes, state->recurrences);
    bytes_put_u64(bytes, state->recurrences_end);
    save_brought(state, bytes);
    bytes_put_u64(bytes, state->line_count);
    for (size_t i = 0; i < state->line_count; i++)
        save_line(&state->lines[i], bytes);
    bytes_put_u64(bytes, state->open_count);
    for (size_t i = 0; i < state->open_count; i++)
        save_trial(&state->open[i], bytes);
    bytes_put_u64(bytes, state->unfinished_count);
    for (size_t i = 0; i < state->unfinished_count; i++)
        save_recurrence(&state->unfinished[i], bytes);
}

void job_state_save(const struct job_state *state, struct buffer *bytes)
{
    size_t from = bytes->length;

    save_body(state, bytes);
    if (bytes->error == 0)
        bytes_put_u64(bytes, adler32_of(bytes->data + from, bytes->length - from));
}

/* Returns 0, 1 for another version's bytes, or an error. */
static int load_definition(struct job_state *state, struct bytes_reader *bytes,
                           const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    char *text = malloc(DEFINITION_TEXT_MAX), policy[JOB_TEXT_MAX];
    struct job_definition definition = {0};
    json_t *json = NULL;
    int code;

    if (text == NULL)
        return error_no_memory(out_error);
    bytes_text(bytes, text, DEFINITION_TEXT_MAX);
    (void)shape_parse(text, strlen(text), &json, NULL); /* what is no JSON is refused below */
    free(text);
    code = definition_from_json(json, &state->arena, &definition, NULL);
    json_decref(json);
    state->policy_set.from = bytes_u64(bytes);
    bytes_text(bytes, state->policy_set.name, sizeof state->policy_set.name);
    bytes_text(bytes, state->policy_set.sha256, sizeof state->policy_set.sha256);
    if (code == 0 && job_definition_check(&definition, NULL) == 0)
        code = job_state_define(state, &definition, plugins, out_error);
    else if (code != FLY_ENOMEM)
        code = 1;
    bytes_text(bytes, policy, sizeof policy);
    if (code != 0)
        return code == FLY_ENOMEM ? error_no_memory(out_error) : 1;
    return bytes_u64(bytes) != state->policy->version || strcmp(policy, state->policy->name) != 0 ||
           bytes_u64(bytes) != DECIDER_STATE_VERSION || !job_state_saves(state);
}

static void load_numbers(struct job_state *state, struct bytes_reader *bytes)
{
    state->objective.kind = (enum fly_objective_kind)bytes_up_to(bytes, FLY_OBJECTIVE_MONEY);
    state->objective.eta = bytes_double(bytes);
    state->objective.max_slowdown = bytes_double(bytes);
    state->objective_from = bytes_u64(bytes);
    state->control_every = get_u32(bytes);
    state->pin_batch_size = get_u32(bytes);
    state->pin_limit_w = bytes_double(bytes);
    state->reference_per_kwh = bytes_double(bytes);
    state->number = bytes_u64(bytes);
    state->last_us = get_i64(bytes);
    state->trials = bytes_u64(bytes);
    state->recurrences = bytes_u64(bytes);
    state->recurrences_end = bytes_u64(bytes);
}

static int load_tables(struct job_state *state, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = load_brought(state, bytes, out_error);
    uint64_t count = bytes_up_to(bytes, JOB_HARDWARE_MAX);

    for (uint64_t i = 0; i < count && code == 0; i++)
        code = load_line(state, bytes, out_error);
    count = bytes_up_to(bytes, state->line_count > 0 ? JOB_OPEN_MAX : 0);
    for (uint64_t i = 0; i < count && code == 0 && !bytes->failed; i++) {
        struct job_trial trial = {0};

        load_trial(state, bytes, &trial);
        code = job_state_open(state, &trial, out_error);
    }
    count = bytes_up_to(bytes, JOB_UNFINISHED_MAX);
    for (uint64_t i = 0; i < count && code == 0; i++)
        load_recurrence(state, bytes, job_state_submit(state, 0));
    return code != 0 ? code : !bytes_whole(bytes);
}

int job_state_load(struct job_state *state, const void *bytes, size_t length,
                   const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    struct bytes_reader reader, sum;
    int code;

    if (length < sizeof(uint64_t))
        return 1;
    length -= sizeof(uint64_t);
    sum = bytes_reader((const char *)bytes + length, sizeof(uint64_t));
    if (bytes_u64(&sum) != adler32_of(bytes, length))
        return 1;
    reader = bytes_reader(bytes, length);
    code = load_definition(state, &reader, plugins, out_error);
    if (code != 0)
        return code;
    load_numbers(state, &reader);
    code = reader.failed ? 1 : load_tables(state, &reader, out_error);
    job_lines_tell_left(state);
    return code;
}
