/* SPDX-License-Identifier: Apache-2.0 */
/* What a job brings from elsewhere: another job's past, or its own before a revision or on other hardware. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/decide/brought.h"
#include "job/decide/line.h"
#include "job/local/job_local.h"

static bool told(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int refuse_source(const struct job_definition *definition, const struct fly_error *why,
                         struct fly_error *out_error)
{
    if (why->code != FLY_ENOTFOUND)
        return error_set(out_error, why->code, "%s", why->text);
    return error_set(
        out_error, FLY_ENOTFOUND,
        "job '%s' is to learn from the job '%.100s', and there is none; 'flyball job list' names "
        "those on record",
        definition->name, definition->like);
}

int local_gather_like(struct job_local *local, const struct job_definition *definition,
                      struct brought_record **out_record, struct fly_error *out_error)
{
    struct brought_record *record;
    struct job_state *state;
    struct fly_error why;

    *out_record = NULL;
    if (!told(definition->like) || local_look(local, definition->name, &state, NULL) == 0)
        return 0;
    if (local_look(local, definition->like, &state, &why) < 0)
        return refuse_source(definition, &why, out_error);
    record = calloc(1, sizeof *record);
    if (record == NULL)
        return error_no_memory(out_error);
    record->kind = PAST_JOB;
    record->source = definition->like;
    record->revision = "";
    brought_gather(state, definition, &definition->objective, record);
    if (record->count == 0) {
        free(record);
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s' is to learn from the job '%.100s', which has run none of its batch sizes; "
                         "add some that it has run, or leave it out",
                         definition->name, definition->like);
    }
    *out_record = record;
    return 0;
}

int local_check_like(const struct job_state *state, const struct job_definition *definition,
                     struct fly_error *out_error)
{
    bool brought = state->brought.kind == PAST_JOB && state->brought.count > 0;

    if (!told(definition->like) || state->revision[0] != '\0' ||
        (brought && strcmp(state->brought.source, definition->like) == 0))
        return 0;
    return error_set(out_error, FLY_ECONFLICT,
                     "job '%s' is on record and learns from %s%.100s%s, not from '%.100s': only a new job "
                     "learns from another; leave that out, or use another name",
                     definition->name, brought ? "'" : "", brought ? state->brought.source : "no other job",
                     brought ? "'" : "", definition->like);
}

int local_append_like(struct local_change *change, const struct brought_record *record,
                      struct fly_error *out_error)
{
    return record == NULL ? 0 : local_append(change, RECORD_BROUGHT, 0, "", record, out_error);
}

int local_append_revision(struct local_change *change, const char *revision, struct fly_error *out_error)
{
    const struct job_state *state = change->state;
    struct brought_record *record;
    char before[JOB_TEXT_MAX];
    int code;

    if (!told(revision) || strcmp(revision, state->revision) == 0)
        return 0;
    record = calloc(1, sizeof *record);
    if (record == NULL)
        return error_no_memory(out_error);
    snprintf(before, sizeof before, "%s", state->revision);
    record->kind = PAST_REVISION;
    record->source = before;
    record->revision = revision;
    brought_gather(state, &state->definition, &state->objective, record);
    code = local_append(change, RECORD_BROUGHT, 0, "", record, out_error);
    free(record);
    return code;
}

/* Says in words what was brought for all hardware. */
int local_tell_past(const struct job_state *state, struct arena *arena, struct job_shown *out_shown,
                    struct fly_error *out_error)
{
    const struct job_brought *brought = &state->brought;
    char text[JOB_WHY_MAX] = "";
    uint64_t runs = 0;

    for (size_t i = 0; i < brought->count; i++)
        runs += brought->batches[i].reached;
    if (brought->count > 0 && state->policy->heeds_past)
        snprintf(text, sizeof text, "%" PRIu64 " run%s of %zu batch size%s %s%.100s%s", runs,
                 runs == 1 ? "" : "s", brought->count, brought->count == 1 ? "" : "s",
                 brought->kind == PAST_JOB ? "of the job '" : "before the revision",
                 brought->kind == PAST_JOB ? brought->source : "", brought->kind == PAST_JOB ? "'" : "");
    out_shown->revision = arena_strdup(arena, state->revision);
    out_shown->past = arena_strdup(arena, text);
    return out_shown->revision != NULL && out_shown->past != NULL ? 0 : error_no_memory(out_error);
}

/* ---- from other hardware ---- */

/* Whether a run reached its target under the revision that holds. */
static bool observed_here(const struct job_state *state)
{
    uint64_t reached = 0;

    for (size_t i = 0; i < state->line_count; i++) {
        for (size_t batch = 0; batch < state->lines[i].spec->batch_count; batch++)
            reached += state->lines[i].facts[batch].tally.reached;
    }
    return reached > 0;
}

int local_bring_hardware(struct local_change *change, const struct job_hardware *hardware,
                         struct fly_error *out_error)
{
    const struct job_state *state = change->state;
    struct brought_record *record;
    int code = 0;

    if (!state->policy->heeds_past || !observed_here(state) || state->line_count == JOB_HARDWARE_MAX ||
        job_state_line(state, hardware) < state->line_count)
        return 0;
    record = calloc(1, sizeof *record);
    if (record == NULL)
        return error_no_memory(out_error);
    record->kind = PAST_HARDWARE;
    record->source = state->lines[0].gpu_model;
    record->revision = "";
    record->of_line = true;
    record->line = state->line_count;
    record->hardware = *hardware;
    brought_gather(state, &state->definition, &state->objective, record);
    code = local_append(change, RECORD_BROUGHT, 0, "", record, out_error);
    free(record);
    return code;
}
