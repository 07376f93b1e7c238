/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/target_progress.h"

#include <math.h>

const struct target_progress target_progress_none = {.best = NAN};

static bool meets(const struct fly_job_definition *definition, double metric)
{
    switch (definition->target) {
    case FLY_TARGET_AT_LEAST:
        return metric >= definition->target_metric;
    case FLY_TARGET_AT_MOST:
        return metric <= definition->target_metric;
    case FLY_TARGET_NONE:
        break;
    }
    return false;
}

double target_counted(const struct fly_job_definition *definition, const struct target_progress *progress,
                      double metric)
{
    return definition->best_so_far ? progress->best : metric;
}

struct target_progress target_progress_after(const struct fly_job_definition *definition,
                                             struct target_progress before, double metric)
{
    struct target_progress after = before;

    /* Neither of the two lets an unknown metric win. */
    after.best =
        definition->target == FLY_TARGET_AT_MOST ? fmin(before.best, metric) : fmax(before.best, metric);
    after.held = meets(definition, target_counted(definition, &after, metric)) ? before.held + 1 : 0;
    return after;
}

bool target_reached(const struct fly_job_definition *definition, const struct target_progress *progress)
{
    uint32_t needed = definition->target_hold > 1 ? definition->target_hold : 1;

    return progress->held >= needed;
}
