/* SPDX-License-Identifier: Apache-2.0 */
/* The default definition, and the checks of definitions. */
#include "job/core/definition.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/job_spec.h"
#include "model/objective_check.h"
#include "policy/batch_policy.h"

const struct job_definition job_definition_default = {
    .objective = {.kind = FLY_OBJECTIVE_ENERGY, .eta = NAN, .max_slowdown = NAN},
    .beta = 2.0,
    .pruning_rounds = 2,
    .explorations = 2,
    .max_metric_loss = NAN,
};

enum { EXPLORATIONS_MAX = 1000 };

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

struct fly_objective definition_objective(const struct job_definition *definition)
{
    struct fly_objective named = definition->objective;

    if (isnan(named.max_slowdown) && definition->no_default)
        named.max_slowdown = INFINITY;
    return objective_settled(&named);
}

bool definition_names_policy(const struct job_definition *definition)
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

static int check_batches(const struct job_definition *definition, struct fly_error *out_error)
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

static int refuse(const struct job_definition *definition, const char *field, const char *expected,
                  struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUSAGE, "job '%s': %s: expected %s", definition->name, field, expected);
}

static int check_numbers(const struct job_definition *definition, struct fly_error *out_error)
{
    if (!(definition->beta > 0.0))
        return refuse(definition, "beta", "a number above 0, or none for never", out_error);
    if (definition->target != JOB_NO_TARGET && !isfinite(definition->target_metric))
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
        (definition->target == JOB_NO_TARGET || !definition->trains_on))
        return refuse(definition, "max_metric_loss",
                      "a job that trains on after its target; others end with the metric of the target",
                      out_error);
    if (definition->window > POLICY_WINDOW_MAX)
        return refuse(definition, "window", "0 to 65536", out_error);
    if (definition->explorations > EXPLORATIONS_MAX || definition->pruning_rounds > EXPLORATIONS_MAX)
        return refuse(definition, "explorations and pruning_rounds", "0 to 1000", out_error);
    if (!isfinite(definition->prior_mean) || !isfinite(definition->prior_precision) ||
        definition->prior_precision < 0.0)
        return refuse(definition, "prior_mean and prior_precision", "finite numbers, the latter from 0",
                      out_error);
    return 0;
}

int definition_allows_controls(const struct job_definition *definition, uint32_t control_every,
                               struct fly_error *out_error)
{
    return definition->no_default && control_every > 0
               ? refuse(definition, "control_every", "0, since it has no default", out_error)
               : 0;
}

int definition_allows(const struct job_definition *definition, const struct fly_objective *objective,
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

static int check_grid(const struct job_definition *definition, struct fly_error *out_error)
{
    if (definition->grid != NULL && strlen(definition->grid) > JOB_GRID_MAX)
        return error_set(out_error, FLY_ELIMIT, "job '%s': grid '%.40s...': longer than %d bytes; shorten it",
                         definition->name, definition->grid, JOB_GRID_MAX);
    if (has_controls(definition->grid))
        return refuse(definition, "grid", "no control characters", out_error);
    return definition_allows(definition, &definition->objective, out_error);
}

int job_definition_check(const struct job_definition *asked, struct fly_error *out_error)
{
    struct job_definition settled = *asked;
    const struct job_definition *definition = &settled;
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
