/* SPDX-License-Identifier: Apache-2.0 */
/* What `flyball run --tune` tried and chose, and why, for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "cli/run/run_tune.h"
#include "policy/limit_arms.h"
#include "train/tuner/tuner.h"

enum { WISH_MAX = 96 };

static const double ms_per_s = 1e3, percent = 100, w_per_mw = 1e-3;
static const double limit_rounding_w = 1; /* drivers round to whole watts */

enum fly_tuner_knob run_tune_knob(const struct run_tune *tune)
{
    return tune->reported ? tune->report.knob : tune->wish;
}

/* Returns whether ceilings are tried under the limit that was chosen, or in its place. */
static bool is_clock(const struct fly_tuner_report *report)
{
    return report->knob == FLY_TUNER_CLOCK || report->knob == FLY_TUNER_BOTH;
}

static bool is_profile(const struct fly_tuner_report *report)
{
    return report->knob == FLY_TUNER_PROFILE;
}

/* Writes a point's setting, in the unit of its knob, as wide as the others. */
static char *point_text(const struct run_tune *tune, size_t place, char text[WISH_MAX])
{
    const struct fly_tuner_point *point = &tune->points[place];
    char name[WORKLOAD_SETTING_MAX];

    if (is_profile(&tune->report))
        snprintf(text, WISH_MAX, "%-12s",
                 workload_setting_text(workload_setting(tune->profiles[place]), name));
    else if (isnan(point->ceiling_mhz))
        snprintf(text, WISH_MAX, "%4g %s", point->limit_w, fly_tuner_knob_unit(FLY_TUNER_POWER_LIMIT));
    else
        snprintf(text, WISH_MAX, "%4g %s", point->ceiling_mhz, fly_tuner_knob_unit(FLY_TUNER_CLOCK));
    return text;
}

static bool is_same(double one, double other)
{
    return isnan(one) ? isnan(other) : fabs(one - other) < 0.5;
}

const struct fly_tuner_point *run_tune_chosen(const struct run_tune *tune)
{
    const struct fly_tuner_report *report = &tune->report;

    if (!tune->reported || tune->off[0] != '\0' ||
        (report->state != FLY_TUNER_CHECKING && report->state != FLY_TUNER_SETTLED))
        return NULL;
    for (size_t i = 0; i < tune->point_count; i++) {
        if (tune->profiles[i] == report->workload_profile &&
            is_same(tune->points[i].limit_w, report->limit_w) &&
            is_same(tune->points[i].ceiling_mhz, report->ceiling_mhz))
            return &tune->points[i];
    }
    return NULL;
}

double run_tune_promised(const struct run_tune *tune, const struct fly_tuner_point *chosen)
{
    bool known = chosen != NULL && chosen->mark == FLY_TUNER_VALID && tune->points[0].mark == FLY_TUNER_VALID;

    return known ? chosen->time_s / tune->points[0].time_s : NAN;
}

/* "for the least energy within 5 % more time" */
static const char *wish_text(const struct run_tune *tune, char text[WISH_MAX])
{
    const struct fly_objective *objective = &tune->objective;
    int length;

    if (tune->carbon != NULL)
        length = snprintf(text, WISH_MAX, "at last, along the grid");
    else if (objective->kind == FLY_OBJECTIVE_COST)
        length = snprintf(text, WISH_MAX, "for the lowest score with eta %g", objective->eta);
    else
        length = snprintf(text, WISH_MAX, "for the least %s", run_tune_objective_name(objective->kind));
    if (isfinite(objective->max_slowdown))
        snprintf(text + length, WISH_MAX - (size_t)length, " within %.4g %% more time",
                 (objective->max_slowdown - 1) * percent);
    return text;
}

static size_t measured_count(const struct run_tune *tune)
{
    size_t count = 0;

    for (size_t i = 0; i < tune->point_count; i++)
        count += tune->points[i].mark == FLY_TUNER_VALID;
    return count;
}

/* Writes what stands now: "250 W", "1110 MHz", "profile MAX_Q". */
static void status_text(const struct fly_tuner_report *report, char text[WISH_MAX])
{
    char name[WORKLOAD_SETTING_MAX];

    if (is_profile(report))
        snprintf(text, WISH_MAX, "profile %s",
                 workload_setting_text(workload_setting(report->workload_profile), name));
    else if (is_clock(report))
        snprintf(text, WISH_MAX, "%.4g %s", report->ceiling_mhz, fly_tuner_knob_unit(FLY_TUNER_CLOCK));
    else
        snprintf(text, WISH_MAX, "%.4g %s", report->limit_w, fly_tuner_knob_unit(FLY_TUNER_POWER_LIMIT));
}

/* For the time while there is a tuner. */
static void put_status(const struct run_tune *tune, char text[STATUS_TEXT_MAX])
{
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_tuner_report report = {.size = sizeof report};
    size_t limits = fly_tuner_points(tune->tuner, points, FLY_POWER_SEARCH_LIMITS_MAX), measured = 0;
    unsigned long long steps = tune->lines.events[STEP_BEGIN];
    char wish[WISH_MAX], standing[WISH_MAX];

    (void)tuner_report_chosen(tune->tuner, &report);
    status_text(&report, standing);
    for (size_t i = 0; i < limits && i < FLY_POWER_SEARCH_LIMITS_MAX; i++)
        measured += points[i].mark != FLY_TUNER_NOT_MEASURED;
    if (report.state == FLY_TUNER_STOPPED)
        snprintf(text, STATUS_TEXT_MAX, "flyball: tuning stopped: %.*s", STATUS_TEXT_MAX / 2, report.text);
    else if (report.reason == FLY_TUNER_NO_WORK)
        snprintf(text, STATUS_TEXT_MAX, "flyball: %.*s so far, %llu steps", STATUS_TEXT_MAX / 2, report.text,
                 steps);
    else if (report.state == FLY_TUNER_SEARCHING)
        snprintf(text, STATUS_TEXT_MAX, "flyball: trying %s: %zu of %zu %s measured, %llu steps", standing,
                 measured, limits, is_profile(&report) ? "profiles" : "limits", steps);
    else
        snprintf(text, STATUS_TEXT_MAX, "flyball: %s chosen %s; %zu of %zu %s measured", standing,
                 wish_text(tune, wish), measured, limits, is_profile(&report) ? "profiles" : "limits");
}

void run_tune_status(const struct run_tune *tune, char text[STATUS_TEXT_MAX])
{
    if (tune->off[0] != '\0')
        snprintf(text, STATUS_TEXT_MAX, "flyball: not tuned: %.*s", STATUS_TEXT_MAX / 2, tune->off);
    else if (tune->tuner != NULL)
        put_status(tune, text);
    else
        snprintf(text, STATUS_TEXT_MAX, "flyball: waiting for the program's first step");
}

static bool is_enforced_lower(const struct run_tune *tune, size_t place)
{
    return tune->enforced_w[place] < tune->points[place].limit_w - limit_rounding_w;
}

/* Half the width of the 95 % interval, a fraction. */
static void put_error(double half, struct buffer *out)
{
    if (isfinite(half))
        buffer_printf(out, " %s %.*f %%", amount_plus_minus(), half * percent < 1, half * percent);
}

static void put_point(const struct run_tune *tune, size_t place, struct buffer *out)
{
    const struct fly_tuner_point *point = &tune->points[place];
    char text[WISH_MAX];

    buffer_printf(out, "    %s  ", point_text(tune, place, text));
    if (point->mark == FLY_TUNER_ENFORCED_LOWER) {
        buffer_printf(out, "not tried, since the board enforces %.4g W\n", tune->enforced_w[place]);
        return;
    }
    if (point->mark != FLY_TUNER_VALID) {
        buffer_printf(out, "%s\n", fly_tuner_mark_name(point->mark));
        return;
    }
    buffer_printf(out, "%.4g ms", point->time_s * ms_per_s);
    put_error(limit_half_width * point->time_error, out);
    buffer_printf(out, " and %.4g J", point->power_w * point->time_s);
    put_error(hypot(point->energy_error, limit_half_width * point->time_error), out);
    buffer_printf(out, " for a step, %.4g W drawn%s", point->power_w,
                  point->bound == FLY_TUNER_UNBOUND ? "; it never bound" : "");
    if (is_enforced_lower(tune, place))
        buffer_printf(out, "; enforced at %.4g W", tune->enforced_w[place]);
    buffer_puts(out, "\n");
}

static void put_points(const struct run_tune *tune, struct buffer *out)
{
    double under_w = NAN;

    for (size_t i = 0; i < tune->point_count; i++) {
        const struct fly_tuner_point *point = &tune->points[i];

        if (point->mark == FLY_TUNER_NOT_MEASURED)
            continue;
        if (!isnan(point->ceiling_mhz) && !is_same(point->limit_w, under_w)) {
            under_w = point->limit_w;
            buffer_printf(out, "    under %g W:\n", under_w);
        }
        put_point(tune, i, out);
    }
}

static void put_slowdown(const char *word, double factor, const char *before, struct buffer *out)
{
    if (isfinite(factor))
        buffer_printf(out, "%s%.1f %% %s time %s", before, fabs(factor - 1) * percent,
                      factor < 1 ? "less" : "more", word);
    else
        buffer_printf(out, "%snot measured %s", before, word);
}

/*
 * Writes "250 W"; "a ceiling of 1110 MHz on the clock", or none if it is the highest; or both; or
 * "profile MAX_Q".
 */
static const char *setting_text(const struct run_tune *tune, double limit_w, double ceiling_mhz, int profile,
                                char text[WISH_MAX])
{
    char name[WORKLOAD_SETTING_MAX];
    int length = 0;

    if (is_profile(&tune->report)) {
        snprintf(text, WISH_MAX, "profile %s", workload_setting_text(workload_setting(profile), name));
        return text;
    }
    if (!isnan(limit_w))
        length = snprintf(text, WISH_MAX, "%g W%s", limit_w, isnan(ceiling_mhz) ? "" : " and ");
    if (isnan(ceiling_mhz))
        return text;
    if (ceiling_mhz >= (double)tune->turner.highest_mhz)
        snprintf(text + length, WISH_MAX - (size_t)length, "no ceiling on the clock");
    else
        snprintf(text + length, WISH_MAX - (size_t)length, "a ceiling of %g MHz on the clock", ceiling_mhz);
    return text;
}

/* Why step times are not what the limit makes of them, and what helps; "%.0f" is a share in percent. */
static const char *const pace_texts[] = {
    [FLY_TUNER_PACE_GPU] = NULL,
    [FLY_TUNER_PACE_PAUSES] =
        "%.0f %% of the time were pauses of more than five steps: evaluation, checkpoints or data; these are "
        "in none of the figures of a step, and shortening them saves more time than any limit costs",
    [FLY_TUNER_PACE_WAITS] =
        "the GPUs had no work for %.0f %% of the steps' time: the steps wait for something else, such as "
        "data or the processor; more loader processes or a larger batch help, and limits cost little time",
    [FLY_TUNER_PACE_FLAT] =
        "the GPU does not set the pace of these steps: limits that held it down did not change their time, "
        "and something else did; find out what they wait for",
    [FLY_TUNER_PACE_UNSTEADY] =
        "the GPU does not set the pace of these steps: their time changed under the same limit; other "
        "programs on this machine, data or another phase of the training can do that; measure on a quiet "
        "machine, or with more --profile-steps",
    [FLY_TUNER_PACE_SCATTER] =
        "step times scatter so much that these two do not differ by more than chance; more --profile-steps "
        "make them more certain",
};

static void put_pace(const struct fly_tuner_report *report, struct buffer *out)
{
    const char *text = pace_texts[report->pace];
    double share = report->pace == FLY_TUNER_PACE_PAUSES ? report->pause_share : report->idle_share;

    if (text != NULL) {
        buffer_puts(out, "    ");
        buffer_printf(out, text, share * percent);
        buffer_puts(out, "\n");
    }
    if (report->pauses > 0 && report->pace != FLY_TUNER_PACE_PAUSES)
        buffer_printf(out, "    %llu pauses of more than five steps, %.1f %% of the time, were left out\n",
                      (unsigned long long)report->pauses, report->pause_share * percent);
}

static void put_choice(const struct run_tune *tune, struct buffer *out)
{
    const struct fly_tuner_report *report = &tune->report;
    const struct fly_tuner_point *chosen = run_tune_chosen(tune);
    char wish[WISH_MAX], now[WISH_MAX], before[WISH_MAX];
    bool profile = is_profile(report);
    const char *limit = report->knob == FLY_TUNER_CLOCK ? "ceiling" : profile ? "profile" : "limit";

    if (chosen == NULL) {
        if (tune->off[0] == '\0' && report->state == FLY_TUNER_SEARCHING)
            buffer_printf(out, "  tuning: the program ended during the search; nothing was chosen\n");
        return;
    }
    buffer_printf(out, "  tuning: %s %s, %s before; %zu of %zu %ss%s measured\n",
                  setting_text(tune, chosen->limit_w, chosen->ceiling_mhz, report->workload_profile, now),
                  wish_text(tune, wish),
                  setting_text(tune, report->start_limit_w, report->start_ceiling_mhz,
                               report->start_workload_profile, before),
                  measured_count(tune), tune->point_count, limit,
                  report->knob == FLY_TUNER_BOTH ? " and ceilings" : "");
    buffer_printf(out, "    a step against one %s%s:", profile ? "without a " : "at the highest ", limit);
    put_slowdown("in the search", run_tune_promised(tune, chosen), " ", out);
    put_slowdown("in the newest check", report->slowdown, "; ", out);
    if (report->backoffs > 0)
        buffer_printf(out, "; a higher %s was chosen %u time%s, since steps took longer", limit,
                      report->backoffs, report->backoffs == 1 ? "" : "s");
    buffer_puts(out, "\n");
    if (is_enforced_lower(tune, (size_t)(chosen - tune->points)))
        buffer_printf(out, "    the board enforces %.4g W of these %g W\n",
                      tune->enforced_w[chosen - tune->points], chosen->limit_w);
    put_pace(report, out);
}

static void put_cost(const struct fly_tuner_report *report, struct buffer *out)
{
    char time[AMOUNT_MAX], energy[AMOUNT_MAX];

    if (report->give_backs > 0)
        buffer_printf(
            out,
            "    %u time%s no step came for long, and what stood before was put back until the next "
            "one\n",
            report->give_backs, report->give_backs == 1 ? "" : "s");
    if (report->search_steps == 0)
        return;
    buffer_printf(out, "    searching took %llu steps, %s and %s", (unsigned long long)report->search_steps,
                  amount_time(report->search_time_s, time),
                  amount_energy(report->search_energy_j, NAN, amount_plus_minus(), energy));
    if (isfinite(report->extra_time_s) && isfinite(report->extra_energy_j))
        buffer_printf(out, "; at the chosen setting these steps would have taken %s and %s",
                      amount_time(report->search_time_s - report->extra_time_s, time),
                      amount_energy(report->search_energy_j - report->extra_energy_j, NAN,
                                    amount_plus_minus(), energy));
    buffer_puts(out, "\n");
}

/* What was put back on a GPU. */
static void put_back(const struct run_tune *tune, const char *indent, uint32_t index,
                     const struct knob_report *report, struct buffer *out)
{
    char profiles[WORKLOAD_TEXT_MAX];

    if (report->set_mw > 0 && tune->turner.fault != FLY_EPERM)
        buffer_printf(out, "%sGPU %u: %g W again\n", indent, index, (double)report->previous_mw * w_per_mw);
    if (report->workloads_asked && tune->turner.fault != FLY_EPERM)
        buffer_printf(out, "%sGPU %u: workload profiles %s again\n", indent, index,
                      workload_text(&report->workloads_before, profiles));
    if (tune->turner.clock_turns > 0 && tune->turner.clock_fault != FLY_EPERM)
        buffer_printf(out, "%sGPU %u: no ceiling on its clock again\n", indent, index);
}

void run_tune_put_back_text(const struct run_tune *tune, const char *indent, struct buffer *out)
{
    for (size_t i = 0; tune->knob_opened && i < tune->gpu_count; i++) {
        const struct knob_report *report = &tune->knob_reports[i];
        uint32_t index = tune->gpus[i]->info.index;
        char profiles[WORKLOAD_TEXT_MAX];

        if (report->repaired[0] != '\0')
            buffer_printf(out, "%sGPU %u: %s\n", indent, index, report->repaired);
        if (report->state == KNOB_STUCK)
            buffer_printf(out, "%s%s; 'flyball power restore -i %u' tries again\n", indent,
                          report->error.text, index);
        else if (report->state == KNOB_OWED)
            buffer_printf(out, "%s%s\n", indent, report->error.text);
        else if (report->state == KNOB_UNTURNED)
            put_back(tune, indent, index, report, out);
        else if (report->state == KNOB_FOREIGN && report->found_clock_mhz > 0)
            buffer_printf(out, "%sGPU %u: its clock is %lld MHz, as another program set it; left so\n",
                          indent, index, (long long)report->found_clock_mhz);
        else if (report->state == KNOB_FOREIGN && report->workloads_foreign)
            buffer_printf(out, "%sGPU %u: workload profiles %s, as another program set them; left so\n",
                          indent, index, workload_text(&report->workloads_found, profiles));
        else if (report->state == KNOB_FOREIGN)
            buffer_printf(out, "%sGPU %u: %g W, as another program set it; left so\n", indent, index,
                          (double)report->found_mw * w_per_mw);
    }
}

/* "nothing saved: " and why; what would help has a line of its own. */
static void put_off(const struct run_tune *tune, struct buffer *out)
{
    const char *rest = strstr(tune->off, "; ");
    int length = rest != NULL ? (int)(rest - tune->off) : (int)strlen(tune->off);

    buffer_printf(out, "%s: %.*s\n", tune->report.search_steps > 0 ? "tuning stopped" : "nothing saved",
                  length, tune->off);
    if (rest != NULL)
        buffer_printf(out, "  %s\n", rest + 2);
}

/* "The search cost 284 J. GPU 0: 400 W again", or what else became of the GPUs. */
static void put_price(const struct run_tune *tune, struct buffer *out)
{
    double extra_j = tune->report.extra_energy_j;
    char energy[AMOUNT_MAX];

    if (tune->reported && tune->report.search_steps > 0 && extra_j > 0)
        buffer_printf(out, "  The search cost %s\n",
                      amount_energy(extra_j, NAN, amount_plus_minus(), energy));
    run_tune_put_back_text(tune, "  ", out);
}

void run_tune_answer(const struct run_tune *tune, bool brief, struct buffer *out)
{
    if (tune->off[0] != '\0')
        put_off(tune, out);
    else
        buffer_printf(out, "%s\n", tune->summary);
    if (!brief)
        return;
    if (tune->off[0] == '\0' && tune->next[0] != '\0')
        buffer_printf(out, "  %s\n", tune->next);
    put_price(tune, out);
}

void run_tune_text(const struct run_tune *tune, struct buffer *out)
{
    const struct fly_tuner_report *report = &tune->report;
    char hook[STEP_HOOK_SENTENCE_MAX];

    if (tune->lines.events[STEP_BEGIN] > 0 &&
        step_hook_sentence(&tune->lines.hook, tune->lines.events[STEP_BEGIN], hook)[0] != '\0')
        buffer_printf(out, "  steps: %llu; %s\n", (unsigned long long)tune->lines.events[STEP_BEGIN], hook);
    if (tune->lines.events[STEP_MALFORMED] > 0)
        buffer_printf(out, "  %llu malformed lines from the program are no steps\n",
                      (unsigned long long)tune->lines.events[STEP_MALFORMED]);
    if (tune->reported && report->reason != FLY_TUNER_NO_WORK) {
        if (report->state == FLY_TUNER_STOPPED && report->reason == FLY_TUNER_NO_FIGURE)
            buffer_puts(out, "    more --profile-steps make windows longer\n");
        if (report->profile[0] != '\0')
            buffer_printf(out, "    profile: %s\n", report->profile);
        if (report->knob_note[0] != '\0' && report->state != FLY_TUNER_STOPPED)
            buffer_printf(out, "  tuning: %s\n", report->knob_note);
        put_choice(tune, out);
        put_points(tune, out);
        put_cost(report, out);
    }
    run_tune_put_back_text(tune, "    ", out);
}
