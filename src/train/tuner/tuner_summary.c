/* SPDX-License-Identifier: Apache-2.0 */
/* What a person wants to know of a tuner, in a sentence: what was chosen and what it saves, or what is
 * missing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"
#include "policy/limit_arms.h"
#include "train/tuner/tuner_private.h"
#include "train/tuner/workload_setting.h"

enum { SETTING_MAX = 64, DIFFERENCE_MAX = 64, COMPARED_MAX = 2 * DIFFERENCE_MAX + SETTING_MAX + 64 };

static const double percent = 100.0;
static const double fine = 1.0; /* below it, a difference in percent has a decimal */

/* How much more one takes than another, with half the width of the 95 % interval; both in percent. */
struct difference {
    double more, half;
};

static double step_energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

static struct difference time_difference(const struct fly_tuner_point *one,
                                         const struct fly_tuner_point *other)
{
    double ratio = one->time_s / other->time_s;

    return (struct difference){(ratio - 1.0) * percent, ratio * limit_half_width *
                                                            hypot(one->time_error, other->time_error) *
                                                            percent};
}

/* The steps' own scatter is in their energy too. */
static struct difference energy_difference(const struct fly_tuner_point *one,
                                           const struct fly_tuner_point *other)
{
    double ratio = step_energy_j(one) / step_energy_j(other);
    double half = hypot(hypot(one->energy_error, other->energy_error),
                        limit_half_width * hypot(one->time_error, other->time_error));

    return (struct difference){(ratio - 1.0) * percent, ratio * half * percent};
}

/* "15.9 % ± 1.2 less" */
static const char *difference_words(struct difference difference, const char *plus_minus, const char *less,
                                    const char *more, char text[DIFFERENCE_MAX])
{
    int decimals = difference.half < fine || (isnan(difference.half) && fabs(difference.more) < fine);
    int length = snprintf(text, DIFFERENCE_MAX, "%.*f %%", decimals, fabs(difference.more));

    if (isfinite(difference.half))
        length += snprintf(text + length, DIFFERENCE_MAX - (size_t)length, " %s %.*f", plus_minus, decimals,
                           difference.half);
    snprintf(text + length, DIFFERENCE_MAX - (size_t)length, " %s", difference.more < 0.0 ? less : more);
    return text;
}

/* The settings of the knob that was tuned first, against which the bound is held. */
static const struct fly_tuner_point *first_points(const struct fly_tuner *tuner, size_t *out_count)
{
    *out_count = tuner->is_second ? tuner->other.limit_count : tuner->limit_count;
    return tuner->is_second ? tuner->other.points : tuner->points;
}

static bool is_of_first(const struct fly_tuner *tuner, const struct fly_tuner_point *point)
{
    size_t count;
    const struct fly_tuner_point *first = first_points(tuner, &count);

    return point >= first && point < first + count;
}

/* "250 W", "1110 MHz", "250 W and 1110 MHz", "profile MAX_Q" */
static const char *setting_words(const struct fly_tuner *tuner, const struct fly_tuner_point *point,
                                 char text[SETTING_MAX])
{
    bool second = tuner->is_second && !is_of_first(tuner, point);
    enum fly_tuner_knob knob = tuner->is_second && !second ? FLY_TUNER_POWER_LIMIT : tuner->options.knob;
    char name[WORKLOAD_SETTING_MAX];

    if (knob == FLY_TUNER_PROFILE)
        snprintf(text, SETTING_MAX, "profile %s", workload_setting_text(point->limit_w, name));
    else if (second)
        snprintf(text, SETTING_MAX, "%g W and %g MHz", tuner->other.standing_w, point->limit_w);
    else
        snprintf(text, SETTING_MAX, "%g %s", point->limit_w, fly_tuner_knob_unit(knob));
    return text;
}

/* What stood before, if it was measured; else the highest setting; NULL: neither was. */
static const struct fly_tuner_point *reference_of(const struct fly_tuner *tuner)
{
    double start_w = tuner->is_second ? tuner->other.start_w : tuner->start_limit_w;
    size_t count;
    const struct fly_tuner_point *points = first_points(tuner, &count);

    for (size_t i = 0; i < count; i++) {
        if (points[i].mark == FLY_TUNER_VALID && tuner_is_same(tuner, points[i].limit_w, start_w))
            return &points[i];
    }
    return count > 0 && points[0].mark == FLY_TUNER_VALID ? &points[0] : NULL;
}

/* "15.9 % ± 1.2 less energy and 1.9 % ± 0.3 more time" */
static const char *compared_words(const struct fly_tuner_point *one, const struct fly_tuner_point *other,
                                  const char *plus_minus, char text[COMPARED_MAX])
{
    char energy[DIFFERENCE_MAX], time[DIFFERENCE_MAX];

    snprintf(text, COMPARED_MAX, "%s energy and %s time",
             difference_words(energy_difference(one, other), plus_minus, "less", "more", energy),
             difference_words(time_difference(one, other), plus_minus, "less", "more", time));
    return text;
}

static double bound_of(const struct fly_tuner *tuner)
{
    return tuner->is_second ? tuner->whole_slowdown : tuner->options.objective.max_slowdown;
}

static size_t valid_count(const struct fly_tuner *tuner)
{
    size_t count = 0;

    for (size_t i = 0; i < tuner->limit_count; i++)
        count += tuner->points[i].mark == FLY_TUNER_VALID;
    return count;
}

static const char *noun_of(const struct fly_tuner *tuner)
{
    return tuner->options.knob == FLY_TUNER_CLOCK     ? "ceiling"
           : tuner->options.knob == FLY_TUNER_PROFILE ? "profile"
                                                      : "limit";
}

/* Why a measured difference in time says nothing of a limit; NULL: it does. */
static const char *doubt_of_time(enum fly_tuner_pace pace)
{
    return pace == FLY_TUNER_PACE_UNSTEADY  ? "step times changed under the same limit"
           : pace == FLY_TUNER_PACE_FLAT    ? "something else than the GPU sets the pace of the steps"
           : pace == FLY_TUNER_PACE_SCATTER ? "step times scatter"
                                            : NULL;
}

/* The cheapest point that the bound allows, other than the reference. */
static const struct fly_tuner_point *best_within_bound(const struct fly_tuner *tuner,
                                                       const struct fly_tuner_point *reference)
{
    const struct fly_tuner_point *best = NULL;

    for (size_t i = 0; reference != NULL && i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID && point != reference &&
            !(point->time_s > bound_of(tuner) * reference->time_s) &&
            step_energy_j(point) < step_energy_j(best != NULL ? best : reference))
            best = point;
    }
    return best;
}

/* A cheaper limit that was not chosen: why not. */
static void say_doubted(const struct fly_tuner *tuner, const struct fly_tuner_point *kept,
                        const struct fly_tuner_point *best, const char *plus_minus, char *text, size_t size)
{
    bool checked = tuner->report.backoffs > 0, bounded = isfinite(bound_of(tuner));
    char setting[SETTING_MAX], other[SETTING_MAX], cheaper[DIFFERENCE_MAX], more[SETTING_MAX] = "";

    if (bounded)
        snprintf(more, sizeof more, "%.3g %% more time", (bound_of(tuner) - 1.0) * percent);
    snprintf(text, size, "%s kept: %s looks %s, but %s%s", setting_words(tuner, kept, setting),
             setting_words(tuner, best, other),
             difference_words(energy_difference(best, kept), plus_minus, "cheaper", "", cheaper),
             !bounded  ? "that is not certain"
             : checked ? "steps took longer when it was checked, and the bound is "
                       : "it is not certain to keep within ",
             more);
}

static void say_kept(const struct fly_tuner *tuner, const struct fly_tuner_point *kept,
                     const char *plus_minus, char *text, size_t size)
{
    static const char *const better[] = {
        [FLY_OBJECTIVE_ENERGY] = "takes less energy", [FLY_OBJECTIVE_TIME] = "takes less time",
        [FLY_OBJECTIVE_COST] = "has a better score",  [FLY_OBJECTIVE_LOWEST_LIMIT] = "keeps the bound",
        [FLY_OBJECTIVE_CARBON] = "emits less",        [FLY_OBJECTIVE_MONEY] = "costs less",
    };
    const struct fly_tuner_point *best = best_within_bound(tuner, kept);
    char setting[SETTING_MAX], bound[SETTING_MAX] = "";
    size_t others = valid_count(tuner) - 1;

    setting_words(tuner, kept, setting);
    if (isfinite(bound_of(tuner)))
        snprintf(bound, sizeof bound, " within %.3g %% more time", (bound_of(tuner) - 1.0) * percent);
    if (others == 0)
        snprintf(text, size, "%s kept: no other %s had to be measured", setting, noun_of(tuner));
    else if (best != NULL && tuner->options.objective.kind == FLY_OBJECTIVE_ENERGY)
        say_doubted(tuner, kept, best, plus_minus, text, size);
    else
        snprintf(text, size, "%s kept: none of the %zu other %ss that were measured %s%s", setting, others,
                 noun_of(tuner), better[tuner->options.objective.kind], bound);
}

static void say_choice(const struct fly_tuner *tuner, const struct fly_tuner_report *report,
                       const char *plus_minus, char *text, size_t size)
{
    const struct fly_tuner_point *chosen = &tuner->points[tuner->chosen], *reference = reference_of(tuner);
    struct difference energy = {NAN, NAN};
    const char *doubt = doubt_of_time(report->pace);
    char now[SETTING_MAX], before[SETTING_MAX], compared[COMPARED_MAX], bound[SETTING_MAX] = "";
    size_t count;

    if (reference != NULL && chosen->mark == FLY_TUNER_VALID)
        energy = energy_difference(chosen, reference);
    if (report->pace == FLY_TUNER_PACE_WAITS && !(energy.more + energy.half < 0.0)) {
        snprintf(
            text, size,
            "nothing saved: the GPU had no work for %.0f %% of the steps' time; steps wait for data or the "
            "processor",
            report->idle_share * percent);
        return;
    }
    setting_words(tuner, chosen, now);
    if (isnan(energy.more)) {
        snprintf(text, size,
                 "%s chosen; what that saves is not known, since what stood before was not measured", now);
        return;
    }
    if (chosen == reference) {
        say_kept(tuner, chosen, plus_minus, text, size);
        return;
    }
    setting_words(tuner, reference, before);
    if (doubt != NULL) {
        snprintf(text, size,
                 "%s chosen: steps take %s energy than at %s; how much more time is not known, since %s", now,
                 difference_words(energy, plus_minus, "less", "more", compared), before, doubt);
        return;
    }
    if (isfinite(bound_of(tuner)) && reference == first_points(tuner, &count))
        snprintf(bound, sizeof bound, " (bound %.3g %%)", (bound_of(tuner) - 1.0) * percent);
    snprintf(text, size, "%s chosen: steps take %s than at %s%s", now,
             compared_words(chosen, reference, plus_minus, compared), before, bound);
}

/* Rounds up to one digit. */
static double round_number(double number)
{
    double digit = number > 0.0 ? pow(10.0, floor(log10(number))) : 1.0;

    return ceil(number / digit) * digit;
}

static void say_search(const struct fly_tuner *tuner, const char *plus_minus, char *text, size_t size)
{
    const struct fly_tuner_point *best = best_within_bound(tuner, reference_of(tuner));
    size_t measured = valid_count(tuner), left = 0;
    double steps = (double)tuner->count.begun;
    char setting[SETTING_MAX], cheaper[DIFFERENCE_MAX], more[SETTING_MAX] = "more";

    for (size_t i = 0; i < tuner->limit_count; i++)
        left += tuner->points[i].mark == FLY_TUNER_NOT_MEASURED;
    if (best == NULL) {
        snprintf(text, size, "nothing saved yet: %.0f %s enough for %zu of %zu %ss", steps,
                 steps == 1.0 ? "step was" : "steps were", measured, tuner->limit_count, noun_of(tuner));
        return;
    }
    if (steps > 0.0)
        snprintf(more, sizeof more, "some %.0f more",
                 round_number(steps / (double)measured * (double)(left > 0 ? left : 1)));
    snprintf(
        text, size, "nothing saved yet: %s looks %s; %s steps would tell",
        setting_words(tuner, best, setting),
        difference_words(energy_difference(best, reference_of(tuner)), plus_minus, "cheaper", "", cheaper),
        more);
}

static bool began(const struct fly_tuner_report *report)
{
    return report->reason != FLY_TUNER_DISABLED && report->reason != FLY_TUNER_NO_KNOB &&
           report->reason != FLY_TUNER_STEERED && report->reason != FLY_TUNER_NO_FIGURE &&
           report->reason != FLY_TUNER_NO_CHOICE && report->reason != FLY_TUNER_SET_FAILED;
}

char *tuner_summary(const struct fly_tuner *tuner, const char *plus_minus, char text[FLY_TUNER_SUMMARY_MAX])
{
    struct fly_tuner_report report = {.size = sizeof report};

    (void)tuner_report_chosen(tuner, &report);
    if (report.state == FLY_TUNER_STOPPED)
        snprintf(text, FLY_TUNER_SUMMARY_MAX, "%s: %s", began(&report) ? "tuning stopped" : "nothing saved",
                 report.text[0] != '\0' ? report.text : fly_tuner_reason_name(report.reason));
    else if (report.reason == FLY_TUNER_NO_WORK)
        snprintf(text, FLY_TUNER_SUMMARY_MAX, "%s: nothing to tune", report.text);
    else if (report.state == FLY_TUNER_SEARCHING)
        say_search(tuner, plus_minus, text, FLY_TUNER_SUMMARY_MAX);
    else if (tuner->carbon.governor != NULL)
        snprintf(text, FLY_TUNER_SUMMARY_MAX, "the limit follows the grid: %g W at last", tuner->standing_w);
    else
        say_choice(tuner, &report, plus_minus, text, FLY_TUNER_SUMMARY_MAX);
    return text;
}

char *tuner_summary_next(const struct fly_tuner *tuner, const char *plus_minus,
                         char text[FLY_TUNER_SUMMARY_MAX])
{
    const struct fly_tuner_point *reference = reference_of(tuner);
    char setting[SETTING_MAX], before[SETTING_MAX], compared[COMPARED_MAX];

    text[0] = '\0';
    if ((tuner->state != FLY_TUNER_SETTLED && tuner->state != FLY_TUNER_CHECKING) || reference == NULL)
        return text;
    for (size_t i = tuner->chosen + 1; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = &tuner->points[i];

        if (point->mark == FLY_TUNER_VALID && point->time_s > bound_of(tuner) * reference->time_s) {
            snprintf(text, FLY_TUNER_SUMMARY_MAX, "%s would take %s than at %s",
                     setting_words(tuner, point, setting),
                     compared_words(point, reference, plus_minus, compared),
                     setting_words(tuner, reference, before));
            break;
        }
    }
    return text;
}

int fly_tuner_summary(const struct fly_tuner *tuner, char *text, size_t size)
{
    char whole[FLY_TUNER_SUMMARY_MAX];

    if (size == 0)
        return FLY_EUSAGE;
    words_fit(text, size, snprintf(text, size, "%s", tuner_summary(tuner, "\xc2\xb1", whole)));
    return 0;
}
