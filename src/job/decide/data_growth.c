/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/data_growth.h"

#include <math.h>

/* Batch sizes differ by more than 1 %, and so do the steps of their epochs. */
enum { STEPS_TOLD_APART = 100 };

static double growth_by(const struct job_line *line, size_t batch, double steps)
{
    double first = line->facts[batch].first_steps;

    if (!(steps > 0.0) || !(first > 0.0) || fabs(steps - first * line->growth) <= 1.0)
        return line->growth;
    return fabs(steps - first) <= 1.0 ? 1.0 : steps / first;
}

/* Whether the steps are those of the epoch before, too. */
static bool agrees(const struct job_trial *trial, double steps)
{
    return steps > 0.0 && trial->steps > 0.0 && fabs(steps - trial->steps) <= 1.0;
}

double data_growth_of(const struct job_line *line, const struct job_trial *trial, double steps)
{
    if (trial->growth > 0.0)
        return trial->growth;
    return growth_by(line, trial->batch, agrees(trial, steps) ? steps : 0.0);
}

void data_growth_note(struct job_line *line, struct job_trial *trial, double steps)
{
    double *first = &line->facts[trial->batch].first_steps;
    bool known = agrees(trial, steps);

    trial->steps = steps;
    if (!known || trial->growth > 0.0)
        return;
    trial->growth = line->growth = growth_by(line, trial->batch, steps);
    if (!(*first > 0.0))
        *first = steps / trial->growth;
}

size_t data_growth_same_steps(const struct job_line *line, const struct job_trial *trial, uint32_t steps)
{
    size_t other = 0, none = line->spec->batch_count;

    if (steps < STEPS_TOLD_APART || trial->steps != steps || line->growth != 1.0)
        return none;
    while (other < none && (other == trial->batch || line->facts[other].first_steps != steps))
        other++;
    return other;
}

double data_growth_steps(const struct job_trial *trial, const struct epoch_record *record)
{
    return record->epoch > trial->epochs_done
               ? (double)record->steps / (double)(record->epoch - trial->epochs_done)
               : 0.0;
}

double data_growth_units(const struct job_line *line, const struct job_trial *trial, double units)
{
    if (!(units > 1.0))
        return units;
    return units / (trial->growth > 0.0 ? trial->growth : growth_by(line, trial->batch, units));
}
