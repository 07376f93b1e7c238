/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, writes, reads and compares definitions. */
#include "job/core/definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/math/generator.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "model/job_spec.h"
#include "model/objective_check.h"
#include "policy/batch_policy.h"
#include "shapes/json_words.h"
#include "shapes/shape_rows.h"

const struct fly_job_definition job_definition_default = {
    .objective = {.kind = FLY_OBJECTIVE_ENERGY, .eta = NAN, .max_slowdown = NAN},
    .beta = 2.0,
    .pruning_rounds = 2,
    .explorations = 2,
    .max_metric_loss = NAN,
};

/* What is not named is not written (definition_objective). */
static const struct shape_field objective_rows[] = {
    {SHAPE_AT(fly_objective, kind), SHAPE_IS_WORD(job_objective_words, JOB_OBJECTIVES),
     .about = "what is made small"},
    {SHAPE_AT(fly_objective, eta), .kind = SHAPE_NUMBER, .need = SHAPE_SPARING, .range = SHAPE_FROM_0_TO_1,
     .about = "weight of energy against time in the score of 'cost'; missing: 0.5, and 'energy' is as good "
              "as not named"},
    {SHAPE_AT(fly_objective, max_slowdown), .kind = SHAPE_NUMBER, .need = SHAPE_SPARING,
     .null = SHAPE_ENDLESS, .range = SHAPE_FROM_1,
     .about = "of the default's time; null: none; missing: 1.05, none for cost, time"},
};
const struct shape shape_objective = {.name = "Objective",
                                      .about = "What the user wants of a job",
                                      SHAPE_OF(fly_objective, objective_rows),
                                      .defaults = &job_definition_default.objective};

static const struct shape_field definition_rows[] = {
    {SHAPE_AT(fly_job_definition, name), .kind = SHAPE_TEXT, .longest = JOB_NAME_MAX, .about = "of the job"},
#define SHAPE_ASKED SHAPE_OPTIONAL
#define ROW(member, needed, ...) {SHAPE_AT(fly_job_definition, member), .need = SHAPE_##needed, __VA_ARGS__},
#define FLY_TEXT(member, needed, bytes, option, unit, usual, text) \
    ROW(member, needed, .kind = SHAPE_TEXT, .longest = (bytes), .about = (text))
#define FLY_WHOLE(member, needed, lowest, highest, option, unit, usual, text) \
    ROW(member, needed, .kind = SHAPE_U32, .least = (lowest), .most = (highest), .about = (text))
#define FLY_REAL(member, needed, within, none, option, unit, usual, text) \
    ROW(member, needed, .kind = SHAPE_NUMBER, .range = SHAPE_##within, .null = SHAPE_##none, .about = (text))
#define FLY_FLAG(member, needed, option, text) ROW(member, needed, .kind = SHAPE_BOOL, .about = (text))
#define FLY_WORD(member, type, list, text)                           \
    ROW(member, OPTIONAL, .kind = SHAPE_WORD, .words = list##_words, \
        .word_count = sizeof list##_words / sizeof list##_words[0], .about = (text))
#define FLY_LIST(member, counted, entries, option, text)                                            \
    ROW(member, NEEDED, .kind = SHAPE_U32S, .beside = offsetof(struct fly_job_definition, counted), \
        .least = 1, .most = UINT32_MAX, .longest = (entries), .about = (text))
#define FLY_PART(member, type, inside, text) \
    ROW(member, OPTIONAL, .kind = SHAPE_STRUCT, .shape = &inside, .about = (text))
#define FLY_NOTE(member, bytes, text) \
    ROW(member, OPTIONAL, .kind = SHAPE_TEXT, .longest = (bytes), .free_text = true, .about = (text))
#define FLY_FLAGGED(flag, member, text)                                                          \
    ROW(member, FLAGGED, .kind = SHAPE_U32, .beside = offsetof(struct fly_job_definition, flag), \
        .most = UINT32_MAX, .about = (text))
#include <flyball/job_definition.def>
#undef ROW
#undef SHAPE_ASKED
};
const struct shape shape_definition = {.name = "DefinitionOnRecord",
                                       .about = "What a job is, with its name",
                                       SHAPE_OF(fly_job_definition, definition_rows),
                                       .defaults = &job_definition_default};
const struct shape shape_definition_asked = {.name = "Definition",
                                             .about = "What a job is. Registered once and never changed",
                                             .size = sizeof(struct fly_job_definition),
                                             .fields = definition_rows + 1,
                                             .count = sizeof definition_rows / sizeof definition_rows[0] - 1,
                                             .defaults = &job_definition_default};

void definition_settle(struct fly_job_definition *definition)
{
    const struct fly_job_definition *usual = &job_definition_default;
    uint64_t samples = (uint64_t)definition->report_every_steps * definition->default_batch_size;

    if (definition->objective.max_slowdown == 0.0)
        definition->objective.max_slowdown = usual->objective.max_slowdown;
#define FLY_WHOLE(member, ...)   \
    if (definition->member == 0) \
        definition->member = usual->member;
#define FLY_REAL(member, ...)      \
    if (definition->member == 0.0) \
        definition->member = usual->member;
#include <flyball/job_definition.def>
    if (definition->report_every_samples == 0 && samples <= UINT32_MAX)
        definition->report_every_samples = (uint32_t)samples;
}

bool definition_keep(struct fly_job_definition *definition, struct arena *arena)
{
    const char **const texts[] = {
        &definition->name,
#define FLY_TEXT(member, ...) &definition->member,
#define FLY_NOTE(member, ...) &definition->member,
#include <flyball/job_definition.def>
    };
    size_t bytes = definition->batch_count * sizeof definition->batch_sizes[0];
    uint32_t *sizes = arena_alloc(arena, 1, bytes + 1);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] != NULL && (*texts[i] = arena_strdup(arena, *texts[i])) == NULL)
            return false;
    }
    if (sizes == NULL)
        return false;
    if (bytes > 0)
        memcpy(sizes, definition->batch_sizes, bytes);
    definition->batch_sizes = sizes;
    return true;
}

static bool of_name_characters(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    return name[0] != '\0' && name[0] != '.' && strspn(name, allowed) == strlen(name);
}

struct fly_objective objective_settled(const struct fly_objective *named)
{
    return (struct fly_objective){.kind = named->kind,
                                  .eta = isnan(named->eta) ? 0.5 : named->eta,
                                  .max_slowdown = isnan(named->max_slowdown)
                                                      ? fly_objective_usual_bound(named->kind)
                                                      : named->max_slowdown};
}

struct fly_objective definition_objective(const struct fly_job_definition *definition)
{
    struct fly_objective named = definition->objective;

    if (isnan(named.max_slowdown) && definition->no_default)
        named.max_slowdown = INFINITY;
    return objective_settled(&named);
}

bool definition_names_policy(const struct fly_job_definition *definition)
{
    return definition->policy != NULL && definition->policy[0] != '\0' &&
           strcmp(definition->policy, JOB_POLICY_AUTO) != 0;
}

const char *job_shown_policy(const struct job_shown *shown)
{
    return shown->policy != NULL && shown->policy[0] != '\0' ? shown->policy : shown->definition.policy;
}

bool job_name_fits(const char *name)
{
    return of_name_characters(name) && strlen(name) <= JOB_NAME_MAX;
}

static int check_name(const char *name, struct fly_error *out_error)
{
    if (name == NULL || !of_name_characters(name))
        return error_set(out_error, FLY_EUSAGE,
                         "job name '%.100s': expected 1 to %d of a-z A-Z 0-9 - _ . without a dot in front",
                         name != NULL ? name : "", JOB_NAME_MAX);
    if (strlen(name) > JOB_NAME_MAX)
        return error_set(out_error, FLY_ELIMIT, "job name '%.40s...': longer than %d bytes; shorten it", name,
                         JOB_NAME_MAX);
    return 0;
}

static int check_batches(const struct fly_job_definition *definition, struct fly_error *out_error)
{
    const char *name = definition->name;
    bool has_default = false;

    if (definition->batch_count == 0 || definition->batch_sizes == NULL)
        return error_set(out_error, FLY_EUSAGE, "job '%s': batch_sizes is empty; name at least one", name);
    if (definition->batch_count > JOB_BATCHES_MAX)
        return error_set(out_error, FLY_ELIMIT, "job '%s': batch_sizes has %zu entries; at most %d", name,
                         definition->batch_count, JOB_BATCHES_MAX);
    for (size_t i = 0; i < definition->batch_count; i++) {
        uint32_t size = definition->batch_sizes[i];

        if (size == 0 || (i > 0 && size <= definition->batch_sizes[i - 1]))
            return error_set(out_error, FLY_EUSAGE,
                             "job '%s': batch_sizes: %u: expected ascending numbers above 0", name, size);
        has_default |= size == definition->default_batch_size;
    }
    if (!has_default)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s': default_batch_size %u is not in batch_sizes; add it", name,
                         definition->default_batch_size);
    return 0;
}

static int refuse(const struct fly_job_definition *definition, const char *field, const char *expected,
                  struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUSAGE, "job '%s': %s: expected %s", definition->name, field, expected);
}

static int check_numbers(const struct fly_job_definition *definition, struct fly_error *out_error)
{
    if (!(definition->beta > 0.0))
        return refuse(definition, "beta", "a number above 0, or none for never", out_error);
    if ((unsigned)definition->target > FLY_TARGET_AT_MOST || definition->generator > GENERATOR_NUMPY)
        return refuse(definition, "target and generator", "values of their enumerations", out_error);
    if (definition->target != FLY_TARGET_NONE && !isfinite(definition->target_metric))
        return refuse(definition, "target_metric", "a finite number", out_error);
    if (definition->max_epochs == 0 || definition->max_epochs > JOB_EPOCHS_MAX)
        return refuse(definition, "max_epochs", "1 to 1000000", out_error);
    if (definition->report_every_steps > 0 && definition->report_every_samples == 0)
        return refuse(definition, "report_every_steps", "report_every_samples with it, of at most 4294967295",
                      out_error);
    if (definition->target_hold > definition->max_epochs)
        return refuse(definition, "target_hold", "at most max_epochs", out_error);
    if (!isnan(definition->max_metric_loss) && definition->no_default)
        return refuse(definition, "max_metric_loss", "none, since it has no default", out_error);
    if (!isnan(definition->max_metric_loss) && !(definition->max_metric_loss > 0.0))
        return refuse(definition, "max_metric_loss", "a number above 0, or none", out_error);
    if (!isnan(definition->max_metric_loss) &&
        (definition->target == FLY_TARGET_NONE || !definition->trains_on))
        return refuse(definition, "max_metric_loss",
                      "a job that trains on after its target; others end with the metric of the target",
                      out_error);
    if (definition->window > POLICY_WINDOW_MAX)
        return refuse(definition, "window", "0 to 65536", out_error);
    if (definition->explorations > JOB_EXPLORATIONS_MAX || definition->pruning_rounds > JOB_EXPLORATIONS_MAX)
        return refuse(definition, "explorations and pruning_rounds", "0 to 1000", out_error);
    if (!isfinite(definition->prior_mean) || !isfinite(definition->prior_precision) ||
        definition->prior_precision < 0.0)
        return refuse(definition, "prior_mean and prior_precision", "finite numbers, the latter from 0",
                      out_error);
    return 0;
}

int definition_allows_controls(const struct fly_job_definition *definition, uint32_t control_every,
                               struct fly_error *out_error)
{
    return definition->no_default && control_every > 0
               ? refuse(definition, "control_every", "0, since it has no default", out_error)
               : 0;
}

int definition_allows(const struct fly_job_definition *definition, const struct fly_objective *objective,
                      struct fly_error *out_error)
{
    bool has_grid = definition->grid != NULL && definition->grid[0] != '\0';
    bool has_prices = definition->objective.kind == FLY_OBJECTIVE_MONEY;

    if (definition->no_default && isfinite(objective->max_slowdown))
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s': it has no default, so its time cannot be bounded by the default's; leave "
                         "out max_slowdown",
                         definition->name);
    if (objective_of_grid(objective) && !has_grid)
        return error_set(
            out_error, FLY_EUSAGE,
            "job '%s': objective '%s' counts by a grid, and the job names none; give it when the "
            "job is registered",
            definition->name, objective->kind == FLY_OBJECTIVE_MONEY ? "money" : "carbon");
    if (objective_of_grid(objective) && (objective->kind == FLY_OBJECTIVE_MONEY) != has_prices)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s': its grid '%.100s' gives %s; for the objective '%s' register it under "
                         "another name",
                         definition->name, definition->grid, has_prices ? "prices" : "intensities",
                         has_prices ? "carbon" : "money");
    return 0;
}

static bool has_controls(const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    }
    return false;
}

static int check_grid(const struct fly_job_definition *definition, struct fly_error *out_error)
{
    if (definition->grid != NULL && strlen(definition->grid) > JOB_GRID_MAX)
        return error_set(out_error, FLY_ELIMIT, "job '%s': grid '%.40s...': longer than %d bytes; shorten it",
                         definition->name, definition->grid, JOB_GRID_MAX);
    if (has_controls(definition->grid))
        return refuse(definition, "grid", "no control characters", out_error);
    return definition_allows(definition, &definition->objective, out_error);
}

int job_definition_check(const struct fly_job_definition *asked, struct fly_error *out_error)
{
    struct fly_job_definition settled = *asked;
    const struct fly_job_definition *definition = &settled;
    int code = check_name(definition->name, out_error);

    settled.objective = definition_objective(asked);

    if (code == 0)
        code = check_batches(definition, out_error);
    if (code == 0)
        code = objective_check(&definition->objective, 1.0, out_error);
    if (code == 0)
        code = check_numbers(definition, out_error);
    if (code == 0)
        code = definition_allows_controls(definition, definition->control_every, out_error);
    if (code == 0)
        code = check_grid(definition, out_error);
    if (code == 0 && definition->policy != NULL && strlen(definition->policy) >= JOB_TEXT_MAX)
        code = refuse(definition, "policy", "a policy's name", out_error);
    else if (code == 0 && definition->revision != NULL && strlen(definition->revision) >= JOB_TEXT_MAX)
        code = refuse(definition, "revision", "at most 127 bytes", out_error);
    else if (code == 0 && has_controls(definition->revision))
        code = refuse(definition, "revision", "no control characters", out_error);
    else if (code == 0 && definition->client != NULL && strlen(definition->client) > JOB_CLIENT_MAX)
        code = refuse(definition, "client", "at most 4096 bytes", out_error);
    else if (code == 0 && definition_names_policy(definition) &&
             strcmp(definition->policy, batch_policy_fixed.name) == 0)
        code = refuse(definition, "policy 'fixed'", "another; to hold a choice, pin it", out_error);
    return code;
}

/* ---- as JSON ---- */

struct fly_job_definition definition_on_record(const struct fly_job_definition *definition)
{
    struct fly_job_definition written = *definition;

    if (written.target == FLY_TARGET_NONE)
        written.target_metric = NAN; /* without a target it means nothing */
    if (written.target == FLY_TARGET_NONE || written.target_hold == 1)
        written.target_hold = 0;
    written.best_so_far &= written.target != FLY_TARGET_NONE;
    written.like = written.revision = NULL;
    return written;
}

json_t *definition_to_json(const struct fly_job_definition *definition)
{
    struct fly_job_definition written = definition_on_record(definition);
    json_t *json = NULL;

    return shape_write(&shape_definition, &written, &json, NULL) == 0 ? json : NULL;
}

int definition_from_json(json_t *json, struct arena *arena, struct fly_job_definition *out_definition,
                         struct fly_error *out_error)
{
    struct fly_job_definition definition;
    int code = shape_read(&shape_definition, json, SHAPE_LENIENT, arena, &definition, out_error);

    if (code < 0)
        return code;
    if (!definition_names_policy(&definition))
        return error_set(out_error, FLY_EDATA,
                         "member 'policy' is missing: a definition on record names one");
    /* What an old record leaves out was energy without a bound. */
    if (isnan(definition.objective.max_slowdown))
        definition.objective.max_slowdown = INFINITY;
    definition.objective = definition_objective(&definition);
    *out_definition = definition;
    return 0;
}

json_t *objective_to_json(const struct fly_objective *objective)
{
    json_t *json = NULL;

    return shape_write(&shape_objective, objective, &json, NULL) == 0 ? json : NULL;
}

/* ---- comparing ---- */

enum { SHOWN_MAX = 1 << 16 /* bytes of a field in a message, which are then cut */ };

static void describe_difference(void *context, const char *name, const json_t *before, const json_t *now)
{
    struct buffer *text = context;
    char *was = before != NULL ? json_words(before, SHOWN_MAX) : NULL;
    char *is = now != NULL ? json_words(now, SHOWN_MAX) : NULL;

    buffer_printf(text, "%s%s (%.60s, now %.60s)", text->length > 0 ? ", " : "", name,
                  was != NULL ? was : "none", is != NULL ? is : "none");
    free(was);
    free(is);
}

/* Whether naming that policy now contradicts nothing. */
static bool same_policy(const struct fly_job_definition *registered, const char *policy,
                        const struct fly_job_definition *now)
{
    return !definition_names_policy(now) ||
           (strcmp(now->policy, policy) == 0 && strcmp(now->policy, registered->policy) != 0);
}

int definition_compare(const struct fly_job_definition *registered, const char *policy,
                       const struct fly_job_definition *now, struct fly_error *out_error)
{
    const struct fly_job_definition before = definition_on_record(registered);
    struct fly_job_definition after = definition_on_record(now);
    struct buffer text;
    int code;

    if (same_policy(registered, policy, now)) {
        after.policy = before.policy;
        after.policy_sha256 = before.policy_sha256;
    }
    if (after.objective.kind == FLY_OBJECTIVE_ENERGY && isnan(after.objective.eta))
        after.objective.kind = before.objective.kind;
    if (isnan(after.objective.eta))
        after.objective.eta = after.objective.kind == before.objective.kind ? before.objective.eta : 0.5;
    if (isnan(after.objective.max_slowdown))
        after.objective.max_slowdown = before.objective.max_slowdown;
    after.policy_by_auto = before.policy_by_auto;
    after.auto_policy_version = before.auto_policy_version;
    buffer_init(&text, 1 << 16);
    code = shape_differences(&shape_definition, &before, &after, describe_difference, &text, NULL);
    if (code < 0)
        code = error_no_memory(out_error);
    else if (text.length > 0)
        code = error_set(out_error, FLY_ECONFLICT,
                         "job '%s' is on record with another definition: %.300s; use another name for it",
                         registered->name, text.data);
    buffer_deinit(&text);
    return code;
}
