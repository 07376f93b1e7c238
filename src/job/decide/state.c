/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "job/core/definition.h"
#include "job/core/job_record.h"
#include "job/core/policy_choice.h"
#include "job/decide/line.h"
#include "model/objective_check.h"

enum { DEFINITION_BYTES = 1 << 20 };

/* The steps that a live power profile takes under each limit, warm-up included. */
static const double live_profile_steps = 50.0;

void job_state_init(struct job_state *state)
{
    *state = (struct job_state){.pin_limit_w = NAN, .reference_per_kwh = NAN};
    arena_init(&state->arena, DEFINITION_BYTES);
}

void job_state_deinit(struct job_state *state)
{
    for (size_t i = 0; i < state->line_count; i++)
        job_line_deinit(&state->lines[i]);
    free(state->lines);
    free(state->open);
    free(state->unfinished);
    arena_deinit(&state->arena);
}

/* Finds the policy that holds for the whole fold. */
static int find_policy(struct job_state *state, const struct batch_policy *const *plugins,
                       struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &state->definition;
    bool set = state->policy_set.from > 0;
    const char *name = set ? state->policy_set.name : definition->policy;
    const char *sha256 = set ? state->policy_set.sha256 : definition->policy_sha256;
    const struct batch_policy *policy = job_policy_find(name, plugins);

    if (policy == NULL)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "job '%s': no policy '%s' here; name its plug-in's file in FLYBALL_PLUGINS, or use a newer "
            "version",
            definition->name, name);
    if (sha256 != NULL && sha256[0] != '\0' &&
        (policy->content == NULL || strcmp(policy->content, sha256) != 0))
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "job '%s': its policy is the plug-in '%s' with SHA-256 %.12s..., and the one here has %.12s...; "
            "name that file in FLYBALL_PLUGINS, or register the job under another name",
            definition->name, name, sha256, policy->content != NULL ? policy->content : "none");
    state->policy = policy;
    return 0;
}

int job_state_define(struct job_state *state, const struct fly_job_definition *definition,
                     const struct batch_policy *const *plugins, struct fly_error *out_error)
{
    int code;

    state->definition = *definition;
    code = find_policy(state, plugins, out_error);
    if (code < 0)
        return code;
    state->parameters = (struct policy_parameters){.beta = definition->beta,
                                                   .window = definition->window,
                                                   .seed = definition->seed,
                                                   .generator = definition->generator,
                                                   .overlapping = !definition->one_at_a_time,
                                                   .guard = GUARD_ON,
                                                   .pruning_rounds = definition->pruning_rounds,
                                                   .explorations = definition->explorations,
                                                   .prior_mean = definition->prior_mean,
                                                   .prior_precision = definition->prior_precision,
                                                   .no_default = definition->no_default,
                                                   .profile_window = JOB_PROFILE_WINDOW,
                                                   .profile_steps = live_profile_steps};
    if (state->objective_from == 0)
        state->objective = definition->objective;
    state->control_every = definition->control_every;
    state->lines = calloc(JOB_HARDWARE_MAX, sizeof state->lines[0]);
    state->unfinished = calloc(JOB_UNFINISHED_MAX + 1, sizeof state->unfinished[0]);
    if (state->lines == NULL || state->unfinished == NULL)
        return error_no_memory(out_error);
    state->defined = true;
    return 0;
}

/* ---- the tables ---- */

struct job_trial *job_state_trial(const struct job_state *state, uint64_t number)
{
    /* Ordered by number; the newest are asked for most. */
    for (size_t i = state->open_count; i-- > 0 && state->open[i].number >= number;) {
        if (state->open[i].number == number)
            return &state->open[i];
    }
    return NULL;
}

int job_state_open(struct job_state *state, const struct job_trial *trial, struct fly_error *out_error)
{
    struct job_trial *open;

    if (state->open_count == JOB_OPEN_MAX)
        return error_set(out_error, FLY_ELIMIT, "job '%s': %d trials run at once, and no more may; end some",
                         state->definition.name, JOB_OPEN_MAX);
    open = array_grow(state->open, state->open_count, &state->open_capacity, sizeof open[0]);
    if (open == NULL)
        return error_no_memory(out_error);
    state->open = open;
    state->open[state->open_count++] = *trial;
    return 0;
}

void job_state_shut(struct job_state *state, const struct job_trial *trial)
{
    size_t at = (size_t)(trial - state->open);

    state->open_count--;
    memmove(&state->open[at], &state->open[at + 1], (state->open_count - at) * sizeof state->open[0]);
}

/* When there are too many silent trials, forgets the one that has been silent longest. */
void job_state_forget_silent(struct job_state *state)
{
    const struct job_trial *oldest = NULL;
    size_t silent = 0;

    for (size_t i = 0; i < state->open_count; i++) {
        if (!state->open[i].silent)
            continue;
        silent++;
        if (oldest == NULL)
            oldest = &state->open[i];
    }
    if (silent > JOB_SILENT_MAX)
        job_state_shut(state, oldest);
}

struct job_recurrence *job_state_recurrence(const struct job_state *state, uint64_t number)
{
    for (size_t i = state->unfinished_count; i-- > 0;) {
        if (state->unfinished[i].number == number)
            return &state->unfinished[i];
    }
    return NULL;
}

struct job_recurrence *job_state_submission(const struct job_state *state, const char *submission)
{
    for (size_t i = state->unfinished_count; i-- > 0 && submission[0] != '\0';) {
        if (strcmp(state->unfinished[i].submission, submission) == 0)
            return &state->unfinished[i];
    }
    return NULL;
}

struct job_recurrence *job_state_submit(struct job_state *state, uint64_t number)
{
    if (state->unfinished_count == JOB_UNFINISHED_MAX)
        job_state_finish(state, &state->unfinished[0]);
    state->unfinished[state->unfinished_count] = (struct job_recurrence){.number = number};
    return &state->unfinished[state->unfinished_count++];
}

void job_state_finish(struct job_state *state, const struct job_recurrence *recurrence)
{
    size_t at = (size_t)(recurrence - state->unfinished);

    state->unfinished_count--;
    memmove(&state->unfinished[at], &state->unfinished[at + 1],
            (state->unfinished_count - at) * sizeof state->unfinished[0]);
}

/* ---- expiry ---- */

struct target_progress job_trial_progress(const struct fly_job_definition *definition,
                                          const struct job_trial *trial, uint32_t epoch, double metric)
{
    struct target_progress before = trial->progress;

    if (epoch <= trial->epochs_done)
        before.held = 0;
    return target_progress_after(definition, before, metric);
}

int64_t job_trial_expires_us(const struct job_trial *trial)
{
    double allowed_s = JOB_SILENCE_MAX_S;

    if (trial->reported)
        allowed_s = JOB_SILENCE_INTERVALS * trial->longest_s;
    else if (trial->heartbeat_s > 0.0)
        allowed_s = JOB_SILENCE_INTERVALS * trial->heartbeat_s;
    allowed_s = fmin(fmax(allowed_s, JOB_SILENCE_MIN_S), 1e9);
    return trial->sign_us + (int64_t)(allowed_s * 1e6);
}
