/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, reads and compares definitions by their shape. */
#include "job/core/definition_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "job/core/definition.h"
#include "job/core/shapes.h"
#include "shapes/json_words.h"
#include "shapes/shape.h"

struct job_definition definition_on_record(const struct job_definition *definition)
{
    struct job_definition written = *definition;

    if (written.target == JOB_NO_TARGET)
        written.target_metric = NAN; /* without a target it means nothing */
    if (written.target == JOB_NO_TARGET || written.target_hold == 1)
        written.target_hold = 0;
    written.best_so_far &= written.target != JOB_NO_TARGET;
    written.like = written.revision = NULL;
    return written;
}

json_t *definition_to_json(const struct job_definition *definition)
{
    struct job_definition written = definition_on_record(definition);
    json_t *json = NULL;

    return shape_write(&shape_definition, &written, &json, NULL) == 0 ? json : NULL;
}

int definition_from_json(json_t *json, struct arena *arena, struct job_definition *out_definition,
                         struct fly_error *out_error)
{
    struct job_definition definition;
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
static bool same_policy(const struct job_definition *registered, const char *policy,
                        const struct job_definition *now)
{
    return !definition_names_policy(now) ||
           (strcmp(now->policy, policy) == 0 && strcmp(now->policy, registered->policy) != 0);
}

int definition_compare(const struct job_definition *registered, const char *policy,
                       const struct job_definition *now, struct fly_error *out_error)
{
    const struct job_definition before = definition_on_record(registered);
    struct job_definition after = definition_on_record(now);
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
