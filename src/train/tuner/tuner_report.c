/* SPDX-License-Identifier: Apache-2.0 */
/* What a tuner reports. */
#include <math.h>
#include <string.h>

#include "policy/limit_arms.h"
#include "train/tuner/tuner_choice.h"
#include "train/tuner/tuner_pace.h"
#include "train/tuner/workload_setting.h"

static const char *const reason_names[] = {
    "goes on",   "disabled",   "set failed", "unreadable", "foreign change", "no figure", "no choice",
    "no memory", "all-reduce", "other rank", "no knob",    "steered",        "no work",
};
_Static_assert(sizeof reason_names / sizeof reason_names[0] == FLY_TUNER_NO_WORK + 1, "a name for each");

static const char *const mark_names[] = {
    "not measured", "valid", "not honoured", "hot", "braked", "no energy", "enforced lower",
};
_Static_assert(sizeof mark_names / sizeof mark_names[0] == FLY_TUNER_ENFORCED_LOWER + 1, "a name for each");

static const char *const pace_names[] = {"GPU", "pauses", "waits", "flat", "unsteady", "scatter"};
_Static_assert(sizeof pace_names / sizeof pace_names[0] == FLY_TUNER_PACE_SCATTER + 1, "a name for each");

/* A report as callers of the first version know it ends here. */
static const size_t first_size = offsetof(struct fly_tuner_report, pauses);

const char *fly_tuner_reason_name(enum fly_tuner_reason reason)
{
    return (unsigned)reason <= FLY_TUNER_NO_WORK ? reason_names[reason] : "unknown";
}

const char *fly_tuner_mark_name(enum fly_tuner_mark mark)
{
    return (unsigned)mark <= FLY_TUNER_ENFORCED_LOWER ? mark_names[mark] : "unknown";
}

const char *fly_tuner_pace_name(enum fly_tuner_pace pace)
{
    return (unsigned)pace <= FLY_TUNER_PACE_SCATTER ? pace_names[pace] : "unknown";
}

enum fly_tuner_state fly_tuner_state(const struct fly_tuner *tuner)
{
    return tuner->state;
}

bool tuner_only_looks(const struct fly_tuner *tuner)
{
    return tuner->state == FLY_TUNER_SEARCHING && tuner->looking;
}

/* The profile that a setting is; none with another knob. */
static int profile_of(const struct fly_tuner *tuner, double setting)
{
    return tuner->options.knob == FLY_TUNER_PROFILE && !isnan(setting) ? workload_of_setting(setting)
                                                                       : FLY_TUNER_NO_PROFILE;
}

/*
 * Stores a setting under its name, limit or ceiling; the other one is NAN, unless a ceiling is tried under
 * that limit.
 */
static void say(const struct fly_tuner *tuner, double setting, double held_w, double *out_limit_w,
                double *out_ceiling_mhz)
{
    bool clock = tuner->options.knob == FLY_TUNER_CLOCK;

    if (tuner->options.knob == FLY_TUNER_PROFILE) {
        *out_limit_w = *out_ceiling_mhz = NAN;
        return;
    }
    *out_limit_w = !clock ? setting : tuner->is_second ? held_w : NAN;
    *out_ceiling_mhz = clock ? setting : NAN;
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

/* The lowest limit that holds the GPUs down; NULL for none. */
static const struct fly_tuner_point *lowest_bound(const struct fly_tuner *tuner)
{
    for (size_t i = tuner->limit_count; i-- > 1;) {
        if (tuner->points[i].mark == FLY_TUNER_VALID && tuner->points[i].bound == FLY_TUNER_BOUND)
            return &tuner->points[i];
    }
    return NULL;
}

static struct pace_facts pace_facts(const struct fly_tuner *tuner, const struct fly_tuner_report *report)
{
    const struct fly_tuner_point *highest = &tuner->points[0], *chosen = &tuner->points[tuner->chosen];
    const struct fly_tuner_point *lowest = lowest_bound(tuner);
    struct pace_facts facts = {.profile_s = NAN,
                               .checked_s = report->step_time_s,
                               .pause_share = report->pause_share,
                               .idle_share = report->idle_share,
                               .lowest_per_highest_s = NAN,
                               .lowest_per_highest_w = NAN};

    if (tuner->state == FLY_TUNER_SEARCHING || tuner->limit_count == 0 || chosen->mark != FLY_TUNER_VALID)
        return facts;
    facts.profile_s = chosen->time_s;
    facts.error = limit_half_width * hypot(chosen->time_error, tuner->check.time_error);
    if (lowest == NULL || highest->mark != FLY_TUNER_VALID)
        return facts;
    facts.lowest_per_highest_s = lowest->time_s / highest->time_s;
    facts.lowest_per_highest_w = lowest->power_w / highest->power_w;
    return facts;
}

static void say_pace(const struct fly_tuner *tuner, struct fly_tuner_report *report)
{
    const struct tuner_windows *windows = &tuner->windows;
    double steps_s = windows->time_s - windows->pause_s;
    struct pace_facts facts;

    report->pauses = windows->pauses;
    report->pause_share = windows->time_s > 0.0 ? windows->pause_s / windows->time_s : NAN;
    report->idle_share = NAN;
    /* A GPU is taken to be idle in pauses. */
    if (windows->idle_known_s > 0.0 && steps_s > 0.0)
        report->idle_share = fmax(
            (windows->idle_s / windows->idle_known_s * windows->time_s - windows->pause_s) / steps_s, 0.0);
    facts = pace_facts(tuner, report);
    report->pace = pace_judge(&facts);
}

/* What stands now is what stood at the start. */
static void say_given_back(const struct fly_tuner *tuner, struct fly_tuner_report *report)
{
    double stands = idle_turner_start(tuner->options.turner_data);

    say(tuner, stands, tuner->is_second ? idle_turner_start(tuner->other.data) : NAN, &report->limit_w,
        &report->ceiling_mhz);
    report->workload_profile = profile_of(tuner, stands);
}

static void say_no_work(const struct fly_tuner *tuner, struct fly_tuner_report *report)
{
    report->reason = FLY_TUNER_NO_WORK;
    tuner_work_text(tuner, report->text);
    report->profile[0] = '\0';
    report->idle_share = 1.0;
    report->pace = FLY_TUNER_PACE_WAITS;
}

int fly_tuner_report(const struct fly_tuner *tuner, struct fly_tuner_report *out_report)
{
    struct fly_tuner_report report = tuner->report;
    size_t size = out_report->size;

    if (size < first_size)
        return FLY_EUSAGE;
    report.state = tuner->state;
    report.reason = tuner->reason;
    report.knob = tuner->is_second ? FLY_TUNER_BOTH : tuner->options.knob;
    say(tuner, tuner->start_limit_w, tuner->other.start_w, &report.start_limit_w, &report.start_ceiling_mhz);
    say(tuner, tuner->standing_w, tuner->other.standing_w, &report.limit_w, &report.ceiling_mhz);
    report.start_workload_profile = profile_of(tuner, tuner->start_limit_w);
    report.workload_profile = profile_of(tuner, tuner->standing_w);
    report.given_back = idle_turner_is_idle(tuner->idle);
    report.give_backs = atomic_load(&tuner->idle->times);
    if (report.given_back)
        say_given_back(tuner, &report);
    say_pace(tuner, &report);
    if (tuner->work.state == TUNER_WORK_NONE && tuner->work.held && report.reason == FLY_TUNER_GOES_ON)
        say_no_work(tuner, &report);
    report.size = size;
    memcpy(out_report, &report, size < sizeof report ? size : sizeof report);
    return 0;
}

int tuner_report_chosen(const struct fly_tuner *tuner, struct fly_tuner_report *out_report)
{
    int code = fly_tuner_report(tuner, out_report);

    if (code == 0 && out_report->given_back) {
        say(tuner, tuner->standing_w, tuner->other.standing_w, &out_report->limit_w,
            &out_report->ceiling_mhz);
        out_report->workload_profile = profile_of(tuner, tuner->standing_w);
    }
    if (code == 0 && tuner->state == FLY_TUNER_CHECKING && tuner->looking)
        say(tuner, tuner->points[tuner->chosen].limit_w, tuner->other.standing_w, &out_report->limit_w,
            &out_report->ceiling_mhz);
    return code;
}

size_t fly_tuner_points(const struct fly_tuner *tuner, struct fly_tuner_point *out_points, size_t capacity)
{
    const struct tuner_side *other = &tuner->other;
    size_t before = tuner->is_second ? other->limit_count : 0, count = before + tuner->limit_count;

    for (size_t i = 0; i < before && i < capacity; i++) {
        out_points[i] = other->points[i];
        out_points[i].ceiling_mhz = NAN;
    }
    for (size_t i = before; i < count && i < capacity; i++) {
        const struct fly_tuner_point *point = &tuner->points[i - before];

        out_points[i] = *point;
        say(tuner, point->limit_w, other->standing_w, &out_points[i].limit_w, &out_points[i].ceiling_mhz);
    }
    return count;
}

int fly_tuner_point_profile(const struct fly_tuner *tuner, size_t place)
{
    return place < tuner->limit_count ? profile_of(tuner, tuner->points[place].limit_w)
                                      : FLY_TUNER_NO_PROFILE;
}

double fly_tuner_enforced_w(const struct fly_tuner *tuner, size_t place)
{
    size_t limits = tuner->is_second                               ? tuner->other.limit_count
                    : tuner->options.knob == FLY_TUNER_POWER_LIMIT ? tuner->limit_count
                                                                   : 0;

    return place < limits && isfinite(tuner->enforced_w[place]) ? tuner->enforced_w[place] : NAN;
}
