/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/call_check.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

/* An energy of NAN is not known. */
static int check_amounts(double energy_j, double time_s, struct fly_error *out_error)
{
    if (!isnan(energy_j) && (!isfinite(energy_j) || energy_j < 0.0))
        return error_set(out_error, FLY_EDATA, "energy_j %s: expected a number from 0",
                         number_text(energy_j).text);
    if (!isfinite(time_s) || time_s < 0.0)
        return error_set(out_error, FLY_EDATA, "time_s %s: expected a number from 0",
                         number_text(time_s).text);
    return 0;
}

/* Of what is not reported time is unknown too. */
static int check_known_amounts(double energy_j, double time_s, struct fly_error *out_error)
{
    return isnan(energy_j) && isnan(time_s) ? 0 : check_amounts(energy_j, time_s, out_error);
}

/* A mean price may be below zero, and is no reference then; nothing of the grid has no end. */
static int check_reference(double reference_per_kwh, struct fly_error *out_error)
{
    if (isinf(reference_per_kwh))
        return error_set(out_error, FLY_EDATA, "reference_per_kwh %s: expected a finite number, or none",
                         number_text(reference_per_kwh).text);
    return 0;
}

int call_check_profile(const struct job_profile *profile, struct fly_error *out_error)
{
    size_t most = profile->partial ? JOB_KNOWN_MAX : JOB_LIMITS_MAX;

    if (profile->point_count == 0 || profile->point_count > most)
        return error_set(out_error, FLY_EUSAGE, "a profile of %zu points: expected 1 to %zu",
                         profile->point_count, most);
    if (!isfinite(profile->units_per_epoch) || profile->units_per_epoch < 0.0)
        return error_set(out_error, FLY_EUSAGE, "units_per_epoch %s: expected a number, 0 for unknown",
                         number_text(profile->units_per_epoch).text);
    for (size_t i = 0; profile->partial && i < profile->point_count; i++) {
        const struct fly_power_point *point = &profile->points[i];

        if (!isfinite(point->limit_w) || !isfinite(point->power_w) || !isfinite(point->time_s) ||
            point->limit_w <= 0.0 || point->power_w <= 0.0 || point->time_s <= 0.0)
            return error_set(out_error, FLY_EUSAGE, "a point of %s W, %s W, %s s: expected numbers above 0",
                             number_text(point->limit_w).text, number_text(point->power_w).text,
                             number_text(point->time_s).text);
    }
    return 0;
}

int call_check_beat(const struct job_beat *beat, struct fly_error *out_error)
{
    int code = check_known_amounts(beat->energy_j, beat->time_s, out_error);

    if (code == 0 && beat->attempt == 0)
        code = error_set(out_error, FLY_EUSAGE, "heartbeat: expected an attempt from 1");
    return code;
}

int call_check_epoch(const struct job_epoch *epoch, struct fly_error *out_error)
{
    int code = check_amounts(epoch->energy_j, epoch->time_s, out_error);

    if (code == 0)
        code = check_reference(epoch->reference_per_kwh, out_error);
    if (code == 0 && isinf(epoch->metric))
        code = error_set(out_error, FLY_EDATA, "metric %s: expected a finite number, or none",
                         number_text(epoch->metric).text);
    if (code == 0 && (epoch->epoch == 0 || epoch->epoch > JOB_EPOCHS_MAX || epoch->attempt == 0))
        code = error_set(out_error, FLY_EUSAGE, "epoch %u, attempt %u: expected numbers from 1", epoch->epoch,
                         epoch->attempt);
    return code;
}

int call_check_end(const struct job_end *end, struct fly_error *out_error)
{
    int code = check_known_amounts(end->energy_j, end->time_s, out_error);

    if (code == 0 && ((int)end->outcome < 0 || end->outcome >= TRIAL_EXPIRED || end->attempt == 0))
        code = error_set(out_error, FLY_EUSAGE,
                         "end of a trial: expected an outcome other than expiry, and an "
                         "attempt from 1");
    if (code == 0)
        code = check_reference(end->reference_per_kwh, out_error);
    if (code == 0 && end->text != NULL && strlen(end->text) > JOB_WHY_MAX)
        code = error_set(out_error, FLY_ELIMIT, "end of a trial: a text longer than %d bytes", JOB_WHY_MAX);
    return code;
}
