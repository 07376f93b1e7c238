/* SPDX-License-Identifier: Apache-2.0 */
/* What a job is and what is wanted of it: registers it, and takes what a user sets later. */
#include "job/local/job_local.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "job/core/definition.h"
#include "job/core/policy_choice.h"
#include "job/decide/line.h"
#include "model/objective_check.h"

/* ---- what a job brings from elsewhere ---- */

static bool told(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int refuse_source(const struct fly_job_definition *definition, const struct fly_error *why,
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

/*
 * Gathers the past of the job that a new job is to learn from; NULL if none is named, or the job is on record
 * already. The caller frees it. FLY_ENOTFOUND if there is no such job, FLY_EUSAGE if the two share no batch
 * size that was run.
 */
static int local_gather_like(struct job_local *local, const struct fly_job_definition *definition,
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

/*
 * Checks that a job on record learns from the job that it is to learn from, if one is named: FLY_ECONFLICT.
 * After a revision that is not known any more, and nothing is refused.
 */
static int local_check_like(const struct job_state *state, const struct fly_job_definition *definition,
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

static int local_append_like(struct local_change *change, const struct brought_record *record,
                             struct fly_error *out_error)
{
    return record == NULL ? 0 : local_append(change, RECORD_BROUGHT, 0, "", record, out_error);
}

/* Appends it, unless it is NULL; and that a revision begins, unless it is told already or not at all. */
static int local_append_revision(struct local_change *change, const char *revision,
                                 struct fly_error *out_error)
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

struct define_call {
    struct fly_job_definition definition;
    struct brought_record *like; /* NULL: nothing is brought from another job */
    struct job_registered registered;
};

/* Names the policy of a new job that names none. */
static void resolve_auto(struct fly_job_definition *definition)
{
    const struct batch_policy *policy;

    if (definition_names_policy(definition))
        return;
    policy = job_policy_auto(definition);
    definition->policy = policy->name;
    definition->policy_sha256 = policy->content;
    definition->policy_by_auto = true;
    definition->auto_policy_version = policy->version;
}

static void tell_registered(const struct job_state *state, bool known, struct job_registered *out_registered)
{
    *out_registered = (struct job_registered){.known = known, .trials = state->trials};
    snprintf(out_registered->policy, sizeof out_registered->policy, "%s", state->policy->name);
}

/* Registers a job that is not on record. */
static int define_new(struct local_change *change, struct define_call *define, struct fly_error *out_error)
{
    json_t *body;
    int code;

    resolve_auto(&define->definition);
    define->definition.objective = definition_objective(&define->definition);
    code = job_policy_heeds(job_policy_find(define->definition.policy, change->local->plugins),
                            &define->definition, out_error);
    if (code < 0)
        return code;
    body = definition_to_json(&define->definition);
    if (change->caller != NULL)
        body = record_write_owners(body, change->caller->name);
    code = local_append_body(change, RECORD_DEFINED, 0, "", body, out_error);
    /* The revision first, under which nothing was observed yet: what comes along is of the other job. */
    if (code == 0)
        code = local_append_revision(change, define->definition.revision, out_error);
    if (code == 0)
        code = local_append_like(change, define->like, out_error);
    if (code == 0)
        tell_registered(change->state, false, &define->registered);
    return code;
}

static int define_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct define_call *define = call;
    const struct job_state *state = change->state;
    int code;

    if (!state->defined)
        return define_new(change, define, out_error);
    tell_registered(state, true, &define->registered);
    code = definition_compare(&state->definition, state->policy->name, &define->definition, out_error);
    if (code == 0)
        code = local_check_like(state, &define->definition, out_error);
    return code < 0 ? code : local_append_revision(change, define->definition.revision, out_error);
}

/* Checks the policy that a definition names, if it names one, and takes its file's content. */
static int check_named_policy(const struct job_local *local, struct fly_job_definition *definition,
                              struct fly_error *out_error)
{
    const struct batch_policy *policy;
    const char *sha256 = definition->policy_sha256;
    bool named = definition_names_policy(definition);
    int code = named ? job_policy_check(definition->name, definition->policy, local->plugins, out_error) : 0;

    if (code < 0)
        return code;
    policy = named ? job_policy_find(definition->policy, local->plugins) : NULL;
    definition->policy_sha256 = policy != NULL ? policy->content : NULL;
    if (sha256 != NULL && sha256[0] != '\0' &&
        (definition->policy_sha256 == NULL || strcmp(definition->policy_sha256, sha256) != 0))
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s': policy_sha256 is not that of the policy '%s' here; leave it out",
                         definition->name, named ? definition->policy : JOB_POLICY_AUTO);
    return policy != NULL ? job_policy_takes(policy, definition, out_error) : 0;
}

int local_define(void *self, const struct fly_job_definition *definition,
                 struct job_registered *out_registered, struct fly_error *out_error)
{
    struct job_local *local = self;
    struct define_call call = {.definition = *definition};
    struct fly_job_definition settled = *definition;
    int code = job_definition_check(definition, out_error);

    settled.objective = definition_objective(definition);
    call.definition.policy_by_auto = false;
    if (code == 0)
        code = check_named_policy(local, &call.definition, out_error);
    if (code < 0)
        return code;
    code = local_gather_like(local, &settled, &call.like, out_error);
    if (code < 0)
        return code;
    code = local_call(local, definition->name, 0, true, define_within, &call, out_error);
    free(call.like);
    if (code == 0)
        *out_registered = call.registered;
    return code;
}

static int check_pin(const struct fly_job_definition *definition, const struct job_setting *setting,
                     struct fly_error *out_error)
{
    if (!isnan(setting->pin_limit_w) && !objective_positive(setting->pin_limit_w))
        return error_set(out_error, FLY_EUSAGE, "pinned power limit %s W: expected a number above 0",
                         number_text(setting->pin_limit_w).text);
    if (setting->pin_batch_size == 0)
        return 0;
    for (size_t i = 0; i < definition->batch_count; i++) {
        if (definition->batch_sizes[i] == setting->pin_batch_size)
            return 0;
    }
    return error_set(out_error, FLY_EUSAGE, "job '%s': batch size %u is not one of its batch sizes",
                     definition->name, setting->pin_batch_size);
}

/* Names the policy that is to be set and its file's content. */
static int settle_policy(const struct local_change *change, struct job_setting *setting,
                         struct fly_error *out_error)
{
    struct fly_job_definition wanted = change->state->definition;
    int code;

    if (setting->policy == NULL || setting->policy[0] == '\0')
        return 0;
    wanted.policy = setting->policy;
    wanted.policy_sha256 = setting->policy_sha256;
    resolve_auto(&wanted);
    code = job_definition_check(&wanted, out_error);
    if (code == 0)
        code = check_named_policy(change->local, &wanted, out_error);
    setting->policy = wanted.policy;
    setting->policy_sha256 = wanted.policy_sha256;
    return code;
}

static int set_within(struct local_change *change, void *call, struct fly_error *out_error)
{
    struct job_setting *setting = call;
    int code = local_lost_is_there(change, out_error);

    if (code == 0 && setting->set_pin)
        code = check_pin(&change->state->definition, setting, out_error);
    if (code == 0 && setting->set_objective)
        code = definition_allows(&change->state->definition, &setting->objective, out_error);
    if (code == 0 && setting->set_control_every)
        code = definition_allows_controls(&change->state->definition, setting->control_every, out_error);
    if (code == 0)
        code = settle_policy(change, setting, out_error);
    if (code == 0)
        code = local_append(change, RECORD_SET, 0, "", setting, out_error);
    return code;
}

static bool names_owners(const struct job_setting *setting)
{
    return setting->owners != NULL && setting->owners[0] != '\0' &&
           strcmp(setting->owners, JOB_OWNERS_NONE) != 0;
}

int local_set(void *self, const struct job_setting *setting, struct fly_error *out_error)
{
    struct job_setting call = *setting;
    int code = 0;

    call.objective = objective_settled(&setting->objective);
    if (setting->set_objective)
        code = objective_check(&call.objective, 1.0, out_error);
    if (code == 0 && names_owners(setting))
        code = job_owners_check(setting->owners, out_error);
    return code < 0 ? code : local_call(self, setting->job, 0, false, set_within, &call, out_error);
}
