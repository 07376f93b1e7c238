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
#include "job/decide/line.h"
#include "shapes/shape.h"

enum { DEFINITION_TEXT_MAX = 1 << 16 };

bool job_state_saves(const struct job_state *state)
{
    return state->policy != NULL && state->policy->save != NULL && state->policy->load != NULL;
}

/* ---- what is only copied ---- */

static const struct bytes_row fact_rows[] = {
    BYTES_AT(batch_facts, observed),
    BYTES_AT(batch_facts, reached),
    BYTES_AT(batch_facts, priced),
    BYTES_AT(batch_facts, cost_j),
    BYTES_AT(batch_facts, energy_j),
    BYTES_AT(batch_facts, time_s),
    BYTES_AT(batch_facts, reached_energy_j),
    BYTES_AT(batch_facts, reached_time_s),
    BYTES_AT(batch_facts, longest_s),
    BYTES_AT(batch_facts, reached_epochs),
    BYTES_AT(batch_facts, units_per_epoch),
    BYTES_AT(batch_facts, final.count),
    BYTES_AT(batch_facts, final.mean),
    BYTES_AT(batch_facts, final.squares),
    BYTES_AT(batch_facts, worse),
    BYTES_AT(batch_facts, first_steps),
    BYTES_AT(batch_facts, crashed),
    BYTES_AT(batch_facts, silent),
    BYTES_AT(batch_facts, unstarted),
    BYTES_AT(batch_facts, crash_text),
};

static const struct bytes_row line_rows[] = {
    BYTES_AT(job_line, described),   BYTES_AT(job_line, excluded),      BYTES_AT(job_line, overflowing),
    BYTES_AT(job_line, recurrences), BYTES_AT(job_line, baseline_runs), BYTES_AT(job_line, baseline_time_s),
    BYTES_AT(job_line, growth),      BYTES_AT(job_line, anew_trial),    BYTES_AT(job_line, anew_us),
};

static const struct bytes_row trial_rows[] = {
    BYTES_AT(job_trial, number),
    BYTES_AT(job_trial, index),
    BYTES_AT(job_trial, recurrence),
    BYTES_AT(job_trial, try_number),
    BYTES_AT(job_trial, line),
    BYTES_AT(job_trial, batch),
    BYTES_UP_TO(job_trial, reason, REASON_COUNT - 1),
    BYTES_AT(job_trial, epochs),
    BYTES_AT(job_trial, attempt),
    BYTES_AT(job_trial, epochs_done),
    BYTES_AT(job_trial, progress.held),
    BYTES_AT(job_trial, progress.best),
    BYTES_AT(job_trial, stop_by_us),
    BYTES_AT(job_trial, sign_us),
    BYTES_AT(job_trial, run),
    BYTES_AT(job_trial, submission),
    BYTES_AT(job_trial, limit_w),
    BYTES_AT(job_trial, heartbeat_s),
    BYTES_AT(job_trial, metric),
    BYTES_AT(job_trial, past_energy_j),
    BYTES_AT(job_trial, past_time_s),
    BYTES_AT(job_trial, energy_j),
    BYTES_AT(job_trial, time_s),
    BYTES_AT(job_trial, longest_s),
    BYTES_AT(job_trial, longest_epoch_s),
    BYTES_AT(job_trial, decided_energy_j),
    BYTES_AT(job_trial, decided_time_s),
    BYTES_AT(job_trial, reference_per_kwh),
    BYTES_AT(job_trial, growth),
    BYTES_AT(job_trial, steps),
    BYTES_AT(job_trial, past_startup_energy_j),
    BYTES_AT(job_trial, past_startup_time_s),
    BYTES_AT(job_trial, startup_energy_j),
    BYTES_AT(job_trial, startup_time_s),
    BYTES_AT(job_trial, later.epochs),
    BYTES_AT(job_trial, later.energy_j),
    BYTES_AT(job_trial, later.time_s),
    BYTES_AT(job_trial, wants_profile),
    BYTES_AT(job_trial, profiles),
    BYTES_AT(job_trial, counted),
    BYTES_AT(job_trial, capped),
    BYTES_AT(job_trial, last_try),
    BYTES_AT(job_trial, decided),
    BYTES_AT(job_trial, lost),
    BYTES_AT(job_trial, silent),
    BYTES_AT(job_trial, reported),
    BYTES_AT(job_trial, of_past),
    BYTES_AT(job_trial, startup_told),
};

static const struct bytes_row recurrence_rows[] = {
    BYTES_AT(job_recurrence, number),      BYTES_AT(job_recurrence, submission),
    BYTES_AT(job_recurrence, tries),       BYTES_AT(job_recurrence, line),
    BYTES_AT(job_recurrence, line_number), BYTES_AT(job_recurrence, policy_tries),
    BYTES_AT(job_recurrence, begun),
};

static const struct bytes_row policy_rows[] = {BYTES_AT(job_policy_set, from), BYTES_AT(job_policy_set, name),
                                               BYTES_AT(job_policy_set, sha256)};

static const struct bytes_row state_rows[] = {
    BYTES_UP_TO(job_state, objective.kind, FLY_OBJECTIVE_MONEY),
    BYTES_AT(job_state, objective.eta),
    BYTES_AT(job_state, objective.max_slowdown),
    BYTES_AT(job_state, objective_from),
    BYTES_AT(job_state, control_every),
    BYTES_AT(job_state, pin_batch_size),
    BYTES_AT(job_state, pin_limit_w),
    BYTES_AT(job_state, reference_per_kwh),
    BYTES_AT(job_state, number),
    BYTES_AT(job_state, last_us),
    BYTES_AT(job_state, trials),
    BYTES_AT(job_state, recurrences),
    BYTES_AT(job_state, recurrences_end),
    BYTES_AT(job_state, owners),
    BYTES_AT(job_state, revision),
    BYTES_UP_TO(job_state, brought.kind, PAST_KINDS - 1),
    BYTES_AT(job_state, brought.source),
};

static const struct bytes_row point_rows[] = {BYTES_AT(fly_power_point, limit_w),
                                              BYTES_AT(fly_power_point, power_w),
                                              BYTES_AT(fly_power_point, time_s)};

/* ---- what was observed elsewhere ---- */

static void save_brought(const struct job_brought *brought, struct buffer *bytes)
{
    bytes_put_u64(bytes, brought->count);
    for (size_t i = 0; i < brought->count; i++) {
        const struct past_tally tally = brought_tally(&brought->batches[i]);

        bytes_put_u64(bytes, brought->batches[i].batch_size);
        bytes_put_rows(bytes, PAST_TALLY_ROWS, &tally);
    }
}

static int load_brought(struct job_state *state, struct bytes_reader *bytes, struct fly_error *out_error)
{
    struct job_brought *brought = &state->brought;

    brought->count = (size_t)bytes_up_to(bytes, JOB_BATCHES_MAX);
    brought->batches = arena_alloc(&state->arena, brought->count + 1, sizeof brought->batches[0]);
    if (brought->batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < brought->count; i++) {
        uint32_t size = (uint32_t)bytes_up_to(bytes, UINT32_MAX);
        struct past_tally tally;

        bytes_rows(bytes, PAST_TALLY_ROWS, &tally);
        brought->batches[i] = brought_of(size, &tally);
    }
    return 0;
}

/* ---- lines ---- */

static void save_line(const struct job_line *line, struct buffer *bytes)
{
    size_t limits = line->limits_known ? line->spec->batches[0].limit_count : 0;

    bytes_put_text(bytes, line->gpu_model);
    bytes_put_u64(bytes, line->gpu_count);
    bytes_put_u64(bytes, line->world_size);
    bytes_put_u64(bytes, line->gpu_memory_bytes);
    bytes_put_double(bytes, line->spec->max_power_w);
    bytes_put_u64(bytes, limits);
    for (size_t i = 0; i < limits; i++)
        bytes_put_double(bytes, line->spec->batches[0].limits_w[i]);
    bytes_put_rows(bytes, BYTES_ROWS(line_rows), line);
    for (size_t i = 0; i < line->spec->batch_count; i++) {
        const struct profile_part *part = &line->parts[i];

        bytes_put_rows(bytes, BYTES_ROWS(fact_rows), &line->facts[i]);
        bytes_put_rows(bytes, PAST_TALLY_ROWS, &line->facts[i].tally);
        bytes_put_u64(bytes, part->count);
        for (size_t point = 0; point < part->count; point++)
            bytes_put_rows(bytes, BYTES_ROWS(point_rows), &part->points[point]);
    }
    decider_save(&line->decider, bytes);
}

static int load_facts(struct job_line *line, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = 0;

    bytes_rows(bytes, BYTES_ROWS(line_rows), line);
    bytes->failed |= line->excluded > line->spec->batch_count;
    for (size_t i = 0; i < line->spec->batch_count; i++) {
        size_t points;

        bytes_rows(bytes, BYTES_ROWS(fact_rows), &line->facts[i]);
        bytes_rows(bytes, PAST_TALLY_ROWS, &line->facts[i].tally);
        points = (size_t)bytes_up_to(bytes, JOB_KNOWN_MAX);
        for (size_t at = 0; at < points && code == 0 && !bytes->failed; at++) {
            struct fly_power_point point;

            bytes_rows(bytes, BYTES_ROWS(point_rows), &point);
            code = profile_part_take(&line->parts[i], &line->arena, &point, 1, out_error);
        }
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
    hardware.gpu_count = (uint32_t)bytes_up_to(bytes, UINT32_MAX);
    hardware.world_size = (uint32_t)bytes_up_to(bytes, UINT32_MAX);
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

/* ---- the whole ---- */

static void save_body(const struct job_state *state, struct buffer *bytes)
{
    json_t *definition = definition_to_json(&state->definition);
    char *text = definition != NULL ? json_dumps(definition, JSON_COMPACT) : NULL;

    bytes_put_text(bytes, text != NULL ? text : "");
    free(text);
    json_decref(definition);
    bytes_put_rows(bytes, BYTES_ROWS(policy_rows), &state->policy_set);
    bytes_put_text(bytes, state->policy->name);
    bytes_put_u64(bytes, state->policy->version);
    bytes_put_u64(bytes, DECIDER_STATE_VERSION);
    bytes_put_rows(bytes, BYTES_ROWS(state_rows), state);
    save_brought(&state->brought, bytes);
    bytes_put_u64(bytes, state->line_count);
    for (size_t i = 0; i < state->line_count; i++)
        save_line(&state->lines[i], bytes);
    bytes_put_u64(bytes, state->open_count);
    for (size_t i = 0; i < state->open_count; i++)
        bytes_put_rows(bytes, BYTES_ROWS(trial_rows), &state->open[i]);
    bytes_put_u64(bytes, state->unfinished_count);
    for (size_t i = 0; i < state->unfinished_count; i++)
        bytes_put_rows(bytes, BYTES_ROWS(recurrence_rows), &state->unfinished[i]);
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
    struct fly_job_definition definition = {0};
    json_t *json = NULL;
    int code;

    if (text == NULL)
        return error_no_memory(out_error);
    bytes_text(bytes, text, DEFINITION_TEXT_MAX);
    (void)shape_parse(text, strlen(text), &json, NULL); /* what is no JSON is refused below */
    free(text);
    code = definition_from_json(json, &state->arena, &definition, NULL);
    json_decref(json);
    bytes_rows(bytes, BYTES_ROWS(policy_rows), &state->policy_set);
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

static int load_tables(struct job_state *state, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = load_brought(state, bytes, out_error);
    uint64_t count = bytes_up_to(bytes, JOB_HARDWARE_MAX);

    for (uint64_t i = 0; i < count && code == 0; i++)
        code = load_line(state, bytes, out_error);
    count = bytes_up_to(bytes, state->line_count > 0 ? JOB_OPEN_MAX : 0);
    for (uint64_t i = 0; i < count && code == 0 && !bytes->failed; i++) {
        struct job_trial trial = {0};

        bytes_rows(bytes, BYTES_ROWS(trial_rows), &trial);
        bytes->failed |= trial.number > state->trials || trial.line >= state->line_count ||
                         trial.batch >= state->lines[trial.line].spec->batch_count;
        code = bytes->failed ? 1 : job_state_open(state, &trial, out_error);
    }
    count = bytes_up_to(bytes, JOB_UNFINISHED_MAX);
    for (uint64_t i = 0; i < count && code == 0; i++) {
        struct job_recurrence *recurrence = job_state_submit(state, 0);

        bytes_rows(bytes, BYTES_ROWS(recurrence_rows), recurrence);
        bytes->failed |= recurrence->line > state->line_count;
    }
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
    bytes_rows(&reader, BYTES_ROWS(state_rows), state);
    code = reader.failed ? 1 : load_tables(state, &reader, out_error);
    job_lines_tell_left(state);
    return code;
}
