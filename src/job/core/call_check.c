/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/call_check.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

static int check_list(const char *text, const char *what, size_t size, bool needed,
                      struct fly_error *out_error)
{
    if (text == NULL || (needed && text[0] == '\0'))
        return needed ? error_set(out_error, FLY_EUSAGE, "%s is missing; name it", what) : 0;
    if (strlen(text) >= size)
        return error_set(out_error, FLY_ELIMIT, "%s '%.40s...': longer than %zu bytes; shorten it", what,
                         text, size - 1);
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return error_set(out_error, FLY_EUSAGE, "%s has a control character; leave it out", what);
    }
    return 0;
}

static int check_text(const char *text, const char *what, bool needed, struct fly_error *out_error)
{
    return check_list(text, what, JOB_TEXT_MAX, needed, out_error);
}

static int check_hardware(const struct job_hardware *hardware, struct fly_error *out_error)
{
    int code = check_text(hardware->gpu_model, "gpu_model", true, out_error);

    if (code < 0)
        return code;
    if (hardware->gpu_count == 0 || hardware->world_size == 0)
        return error_set(out_error, FLY_EUSAGE, "gpu_count %u, world_size %u: expected numbers from 1",
                         hardware->gpu_count, hardware->world_size);
    if (hardware->limit_count > JOB_LIMITS_MAX)
        return error_set(out_error, FLY_ELIMIT, "limits_w has %zu entries; at most %d", hardware->limit_count,
                         JOB_LIMITS_MAX);
    for (size_t i = 0; i < hardware->limit_count; i++) {
        double limit_w = hardware->limits_w[i];

        if (!isfinite(limit_w) || limit_w <= (i > 0 ? hardware->limits_w[i - 1] : 0.0))
            return error_set(out_error, FLY_EUSAGE, "limits_w: %s: expected ascending numbers above 0",
                             number_text(limit_w).text);
    }
    if (!isfinite(hardware->max_power_w) || hardware->max_power_w < 0.0)
        return error_set(out_error, FLY_EUSAGE, "max_power_w %s: expected a number above 0, or 0 for unknown",
                         number_text(hardware->max_power_w).text);
    return 0;
}

int call_check_question(const struct job_question *question, struct fly_error *out_error)
{
    int code = check_hardware(&question->hardware, out_error);

    if (code == 0)
        code = check_text(question->request, "request", false, out_error);
    if (code == 0)
        code = check_text(question->run, "run", false, out_error);
    if (code == 0)
        code = check_text(question->submission, "submission", false, out_error);
    if (code == 0)
        code = check_text(question->origin.user, "user", false, out_error);
    if (code == 0)
        code = check_text(question->origin.account, "account", false, out_error);
    if (code == 0)
        code = check_text(question->origin.host, "host", false, out_error);
    if (code == 0)
        code = check_list(question->origin.gpus, "gpus", JOB_GPUS_MAX, false, out_error);
    if (code == 0 && (!isfinite(question->heartbeat_s) || question->heartbeat_s < 0.0))
        code = error_set(out_error, FLY_EUSAGE, "heartbeat_s %s: expected a number from 0",
                         number_text(question->heartbeat_s).text);
    if (code == 0 && question->ran_batch_size != 0 && !isnan(question->ran_limit_w) &&
        !(isfinite(question->ran_limit_w) && question->ran_limit_w > 0.0))
        code = error_set(out_error, FLY_EUSAGE, "ran_limit_w %s: expected a number above 0",
                         number_text(question->ran_limit_w).text);
    if (code == 0 && question->finish_by_us < 0)
        code = error_set(out_error, FLY_EUSAGE, "finish_by: expected a time since 1970, or none");
    return code;
}

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

/* When nothing was reported, time is unknown too. */
static int check_known_amounts(double energy_j, double time_s, struct fly_error *out_error)
{
    return isnan(energy_j) && isnan(time_s) ? 0 : check_amounts(energy_j, time_s, out_error);
}

/* A mean price may be below zero, and then it is no reference; nothing of the grid is infinite. */
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
