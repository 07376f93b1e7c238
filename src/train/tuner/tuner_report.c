/* SPDX-License-Identifier: Apache-2.0 */
/* What a tuner reports. */
#include <math.h>

#include "train/tuner/tuner_private.h"

static const char *const reason_names[] = {
    "goes on",   "disabled",  "set failed", "unreadable", "foreign change", "no figure",
    "no choice", "no memory", "all-reduce", "other rank", "no knob",        "steered",
};
_Static_assert(sizeof reason_names / sizeof reason_names[0] == FLY_TUNER_STEERED + 1, "a name for each");

static const char *const mark_names[] = {
    "not measured", "valid", "not honoured", "hot", "braked", "no energy",
};
_Static_assert(sizeof mark_names / sizeof mark_names[0] == FLY_TUNER_NO_ENERGY + 1, "a name for each");

const char *fly_tuner_reason_name(enum fly_tuner_reason reason)
{
    return (unsigned)reason <= FLY_TUNER_STEERED ? reason_names[reason] : "unknown";
}

const char *fly_tuner_mark_name(enum fly_tuner_mark mark)
{
    return (unsigned)mark <= FLY_TUNER_NO_ENERGY ? mark_names[mark] : "unknown";
}

enum fly_tuner_state fly_tuner_state(const struct fly_tuner *tuner)
{
    return tuner->state;
}

bool tuner_only_looks(const struct fly_tuner *tuner)
{
    return tuner->state == FLY_TUNER_SEARCHING && tuner->looking;
}

/* Stores a setting under its name, limit or ceiling; the other one is NAN. */
static void say(const struct fly_tuner *tuner, double limit_w, double *out_limit_w, double *out_ceiling_mhz)
{
    bool clock = tuner->options.knob == FLY_TUNER_CLOCK;

    *out_limit_w = clock ? NAN : limit_w;
    *out_ceiling_mhz = clock ? limit_w : NAN;
}

size_t tuner_measured_points(const struct fly_tuner *tuner,
                             struct fly_power_point out_points[FLY_POWER_SEARCH_LIMITS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID)
            out_points[count++] = (struct fly_power_point){point->limit_w, point->power_w, point->time_s};
    }
    return count;
}

int fly_tuner_report(const struct fly_tuner *tuner, struct fly_tuner_report *out_report)
{
    struct fly_tuner_report report = tuner->report;

    if (out_report->size < sizeof report)
        return FLY_EUSAGE;
    report.size = out_report->size;
    report.state = tuner->state;
    report.reason = tuner->reason;
    report.knob = tuner->options.knob;
    say(tuner, tuner->start_limit_w, &report.start_limit_w, &report.start_ceiling_mhz);
    say(tuner, tuner->standing_w, &report.limit_w, &report.ceiling_mhz);
    *out_report = report;
    return 0;
}

size_t fly_tuner_points(const struct fly_tuner *tuner, struct fly_tuner_point *out_points, size_t capacity)
{
    for (size_t i = 0; i < tuner->limit_count && i < capacity; i++) {
        out_points[i] = tuner->points[i];
        say(tuner, tuner->points[i].limit_w, &out_points[i].limit_w, &out_points[i].ceiling_mhz);
    }
    return tuner->limit_count;
}
