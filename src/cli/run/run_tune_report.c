/* SPDX-License-Identifier: Apache-2.0 */
/* What `flyball run --tune` tried and chose, and why, in both forms. */
#include <math.h>
#include <stdio.h>

#include "cli/kit/amount.h"
#include "cli/run/run_tune.h"
#include "shapes/shape_told.h"

enum { WISH_MAX = 96 };

static const double ms_per_s = 1e3, percent = 100, w_per_mw = 1e-3;

static const char *const bound_names[] = {
    [FLY_TUNER_BOUND_UNKNOWN] = "unknown", [FLY_TUNER_UNBOUND] = "no", [FLY_TUNER_BOUND] = "yes"};
static const char *const state_names[] = {[FLY_TUNER_SEARCHING] = "searching",
                                          [FLY_TUNER_CHECKING] = "checking",
                                          [FLY_TUNER_SETTLED] = "settled",
                                          [FLY_TUNER_STOPPED] = "stopped"};
static const char *const back_names[KNOB_STATE_COUNT] = {[KNOB_DENIED] = "not turned",
                                                         [KNOB_UNTURNED] = "put back",
                                                         [KNOB_TURNED] = "turned",
                                                         [KNOB_FOREIGN] = "left to another program",
                                                         [KNOB_STUCK] = "stuck"};

static bool is_clock(const struct run_tune *tune)
{
    return tune->turned == FLY_TUNER_CLOCK;
}

/* Returns a point's setting, in the knob's unit. */
static double setting_of(const struct fly_tuner_point *point)
{
    return isnan(point->limit_w) ? point->ceiling_mhz : point->limit_w;
}

/* Returns the point that was chosen; NULL while there is none. */
static const struct fly_tuner_point *chosen_point(const struct run_tune *tune)
{
    if (!tune->reported || tune->off[0] != '\0' ||
        (tune->report.state != FLY_TUNER_CHECKING && tune->report.state != FLY_TUNER_SETTLED))
        return NULL;
    for (size_t i = 0; i < tune->point_count; i++) {
        double standing = is_clock(tune) ? tune->report.ceiling_mhz : tune->report.limit_w;

        if (fabs(setting_of(&tune->points[i]) - standing) < 0.5)
            return &tune->points[i];
    }
    return NULL;
}

/* Returns what the profile promises, as a factor; NAN if it promises nothing. */
static double promised(const struct run_tune *tune, const struct fly_tuner_point *chosen)
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
        length = snprintf(text, WISH_MAX, "for the least cost with eta %g", objective->eta);
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

/* For the time while there is a tuner. */
static void put_status(const struct run_tune *tune, char text[STATUS_TEXT_MAX])
{
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_tuner_report report = {.size = sizeof report};
    size_t limits = fly_tuner_points(tune->tuner, points, FLY_POWER_SEARCH_LIMITS_MAX), measured = 0;
    const char *unit = fly_tuner_knob_unit(tune->turned);
    unsigned long long steps = tune->lines.events[STEP_BEGIN];
    char wish[WISH_MAX];
    double standing;

    (void)fly_tuner_report(tune->tuner, &report);
    standing = is_clock(tune) ? report.ceiling_mhz : report.limit_w;
    for (size_t i = 0; i < limits && i < FLY_POWER_SEARCH_LIMITS_MAX; i++)
        measured += points[i].mark != FLY_TUNER_NOT_MEASURED;
    if (report.state == FLY_TUNER_STOPPED)
        snprintf(text, STATUS_TEXT_MAX, "flyball: tuning stopped: %.*s", STATUS_TEXT_MAX / 2, report.text);
    else if (report.state == FLY_TUNER_SEARCHING)
        snprintf(text, STATUS_TEXT_MAX, "flyball: trying %.4g %s: %zu of %zu limits measured, %llu steps",
                 standing, unit, measured, limits, steps);
    else
        snprintf(text, STATUS_TEXT_MAX, "flyball: %.4g %s chosen %s; %zu of %zu limits measured", standing,
                 unit, wish_text(tune, wish), measured, limits);
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

static void put_points(const struct run_tune *tune, struct buffer *out)
{
    for (size_t i = 0; i < tune->point_count; i++) {
        const struct fly_tuner_point *point = &tune->points[i];

        if (point->mark == FLY_TUNER_NOT_MEASURED)
            continue;
        if (point->mark != FLY_TUNER_VALID) {
            buffer_printf(out, "    %4g %s  %s\n", setting_of(point), fly_tuner_knob_unit(tune->turned),
                          fly_tuner_mark_name(point->mark));
            continue;
        }
        buffer_printf(out, "    %4g %s  %.4g ms and %.4g J", setting_of(point),
                      fly_tuner_knob_unit(tune->turned), point->time_s * ms_per_s,
                      point->power_w * point->time_s);
        if (isfinite(point->energy_error))
            buffer_printf(out, " %s %.0f %%", amount_plus_minus(), point->energy_error * percent);
        buffer_printf(out, " for a step, %.4g W drawn%s\n", point->power_w,
                      point->bound == FLY_TUNER_UNBOUND ? "; it never bound" : "");
    }
}

static void put_slowdown(const char *word, double factor, const char *before, struct buffer *out)
{
    if (isfinite(factor))
        buffer_printf(out, "%s%s %.1f %%", before, word, (factor - 1) * percent);
    else
        buffer_printf(out, "%s%s unknown", before, word);
}

/* Writes "250 W"; "a ceiling of 1110 MHz", or none if it is the highest. */
static const char *setting_text(const struct run_tune *tune, double setting, char text[WISH_MAX])
{
    if (!is_clock(tune))
        snprintf(text, WISH_MAX, "%g W", setting);
    else if (setting >= (double)tune->turner.highest_mhz)
        snprintf(text, WISH_MAX, "no ceiling on the clock");
    else
        snprintf(text, WISH_MAX, "a ceiling of %g MHz on the clock", setting);
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
    const struct fly_tuner_point *chosen = chosen_point(tune);
    char wish[WISH_MAX], now[WISH_MAX], before[WISH_MAX];
    const char *limit = is_clock(tune) ? "ceiling" : "limit";

    if (chosen == NULL) {
        if (tune->off[0] == '\0' && report->state == FLY_TUNER_SEARCHING)
            buffer_printf(out, "  tuning: the program ended during the search; nothing was chosen\n");
        return;
    }
    buffer_printf(
        out, "  tuning: %s %s, %s before; %zu of %zu %ss measured\n",
        setting_text(tune, setting_of(chosen), now), wish_text(tune, wish),
        setting_text(tune, is_clock(tune) ? report->start_ceiling_mhz : report->start_limit_w, before),
        measured_count(tune), tune->point_count, limit);
    buffer_printf(out, "    a step takes more time than at the highest %s by:", limit);
    put_slowdown("promised", promised(tune, chosen), " ", out);
    put_slowdown("measured", report->slowdown, ", ", out);
    if (report->backoffs > 0)
        buffer_printf(out, "; backed off %u times", report->backoffs);
    buffer_puts(out, "\n");
    put_pace(report, out);
}

static void put_cost(const struct fly_tuner_report *report, struct buffer *out)
{
    char time[AMOUNT_MAX], energy[AMOUNT_MAX];

    if (report->search_steps == 0)
        return;
    buffer_printf(out, "    searching took %llu steps, %s and %s", (unsigned long long)report->search_steps,
                  amount_time(report->search_time_s, time),
                  amount_energy(report->search_energy_j, NAN, amount_plus_minus(), energy));
    if (isfinite(report->extra_time_s) && isfinite(report->extra_energy_j))
        buffer_printf(out, "; %+.3g s and %+.3g J against the same steps at the chosen limit",
                      report->extra_time_s, report->extra_energy_j);
    buffer_puts(out, "\n");
}

void run_tune_put_back_text(const struct run_tune *tune, struct buffer *out)
{
    for (size_t i = 0; tune->knob_opened && i < tune->gpu_count; i++) {
        const struct knob_report *report = &tune->knob_reports[i];

        if (report->repaired[0] != '\0')
            buffer_printf(out, "    GPU %u: %s\n", tune->gpus[i]->info.index, report->repaired);
        if (report->state == KNOB_STUCK)
            buffer_printf(out, "    %s; 'flyball power restore -i %u' tries again\n", report->error.text,
                          tune->gpus[i]->info.index);
        else if (report->set_mw > 0 && report->state == KNOB_UNTURNED && tune->turner.fault != FLY_EPERM)
            buffer_printf(out, "    GPU %u: %g W again\n", tune->gpus[i]->info.index,
                          (double)report->previous_mw * w_per_mw);
        else if (report->state == KNOB_FOREIGN && report->found_clock_mhz > 0)
            buffer_printf(out, "    GPU %u: its clock is %lld MHz, as another program set it; left so\n",
                          tune->gpus[i]->info.index, (long long)report->found_clock_mhz);
        else if (is_clock(tune) && tune->turner.turns > 0 && report->state == KNOB_UNTURNED)
            buffer_printf(out, "    GPU %u: no ceiling on its clock again\n", tune->gpus[i]->info.index);
        else if (report->state == KNOB_FOREIGN)
            buffer_printf(out, "    GPU %u: %g W, as another program set it; left so\n",
                          tune->gpus[i]->info.index, (double)report->found_mw * w_per_mw);
    }
}

void run_tune_text(const struct run_tune *tune, struct buffer *out)
{
    const struct fly_tuner_report *report = &tune->report;

    if (tune->off[0] != '\0')
        buffer_printf(out, "  tuning off: %s\n", tune->off);
    if (tune->lines.events[STEP_MALFORMED] > 0)
        buffer_printf(out, "  %llu malformed lines from the program are no steps\n",
                      (unsigned long long)tune->lines.events[STEP_MALFORMED]);
    if (tune->reported) {
        if (report->state == FLY_TUNER_STOPPED)
            buffer_printf(out, "  tuning stopped, %s: %s\n", fly_tuner_reason_name(report->reason),
                          report->text);
        if (report->state == FLY_TUNER_STOPPED && report->reason == FLY_TUNER_NO_FIGURE)
            buffer_puts(out, "    more --profile-steps make windows longer\n");
        if (report->profile[0] != '\0')
            buffer_printf(out, "    profile: %s\n", report->profile);
        put_choice(tune, out);
        put_points(tune, out);
        put_cost(report, out);
    }
    run_tune_put_back_text(tune, out);
}

/* ---- for programs ---- */

static const char unmeasured[] = "it was not measured", no_choice[] = "no setting was chosen";
static const char not_begun[] = "tuning did not begin";
static const char no_search[] = "no search has ended, or its energy is not known";

/* Of the limit and the ceiling, here and below, the one that is not turned is left out. */
struct told_point {
    double ceiling_mhz, limit_w;
    const char *mark, *bound;
    double power_w, step_time_s, step_time_standard_error_s, step_energy_j, step_energy_uncertainty_j;
    const char *no_uncertainty; /* why it is not known */
};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(told_point, ceiling_mhz), TOLD_NUMBER, .need = SHAPE_SPARING},
    {SHAPE_AT(told_point, limit_w), TOLD_NUMBER, .need = SHAPE_SPARING},
    {SHAPE_AT(told_point, mark), TOLD_ANY_TEXT},
    {SHAPE_AT(told_point, bound), TOLD_ANY_TEXT},
    {SHAPE_AT(told_point, power_w), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_time_s), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_time_standard_error_s), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_energy_j), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_energy_uncertainty_j), TOLD_NUMBER, TOLD_ELSE_AT(told_point, no_uncertainty)},
};
static const struct shape point_shape = {SHAPE_OF(told_point, point_rows)};

static struct told_point told_point(const struct fly_tuner_point *point)
{
    bool valid = point->mark == FLY_TUNER_VALID;
    double power_w = valid ? point->power_w : NAN, time_s = valid ? point->time_s : NAN;

    return (struct told_point){
        .ceiling_mhz = point->ceiling_mhz,
        .limit_w = point->limit_w,
        .mark = fly_tuner_mark_name(point->mark),
        .bound = bound_names[point->bound],
        .power_w = power_w,
        .step_time_s = time_s,
        .step_time_standard_error_s = time_s * point->time_error,
        .step_energy_j = power_w * time_s,
        .step_energy_uncertainty_j = power_w * time_s * point->energy_error,
        .no_uncertainty = valid ? "the meter does not say" : unmeasured,
    };
}

struct told_gpu {
    uint32_t index;
    enum knob_state end;
    double limit_before_w;
};

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(told_gpu, index), TOLD_U32},
    {SHAPE_AT(told_gpu, end), SHAPE_IS_WORD(back_names, KNOB_STATE_COUNT)},
    {SHAPE_AT(told_gpu, limit_before_w), TOLD_NUMBER, TOLD_ELSE("the driver does not say")},
};
static const struct shape gpu_shape = {SHAPE_OF(told_gpu, gpu_rows)};

static struct told_gpu told_gpu(const struct device *gpu, const struct knob_report *report)
{
    return (struct told_gpu){gpu->info.index, report->state,
                             report->previous_mw > 0 ? (double)report->previous_mw * w_per_mw : NAN};
}

static const struct shape_field search_rows[] = {
    {SHAPE_AT_AS("steps", fly_tuner_report, search_steps), TOLD_U64},
    {SHAPE_AT_AS("time_s", fly_tuner_report, search_time_s), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT_AS("energy_j", fly_tuner_report, search_energy_j), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT(fly_tuner_report, extra_time_s), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT(fly_tuner_report, extra_energy_j), TOLD_NUMBER, TOLD_ELSE(no_search)},
};
static const struct shape search_shape = {SHAPE_OF(fly_tuner_report, search_rows)};

struct told_tune {
    const char *state, *off, *reason, *reason_text, *objective;
    double eta, max_slowdown;
    uint64_t steps, malformed_lines;
    const char *knob;
    bool of_clock, of_power;
    double start_ceiling_mhz, chosen_ceiling_mhz, start_limit_w, chosen_limit_w;
    double promised_slowdown, measured_slowdown;
    const char *pace;
    uint64_t pauses;
    double pause_share, idle_share;
    uint32_t searches, backoffs;
    int64_t ties; /* below 0: nothing was chosen */
    const struct fly_tuner_report *search;
    const char *profile;
    struct told_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct told_gpu gpus[DEVICES_MAX];
    size_t point_count, gpu_count;
};

static const struct shape_field tune_rows[] = {
    {SHAPE_AT(told_tune, state), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, off), TOLD_TEXT},
    {SHAPE_AT(told_tune, reason), TOLD_TEXT},
    {SHAPE_AT(told_tune, reason_text), TOLD_TEXT},
    {SHAPE_AT(told_tune, objective), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, eta), TOLD_NUMBER},
    {SHAPE_AT(told_tune, max_slowdown), TOLD_NUMBER, TOLD_ELSE("there is no bound")},
    {SHAPE_AT(told_tune, steps), TOLD_U64},
    {SHAPE_AT(told_tune, malformed_lines), TOLD_U64},
    {SHAPE_AT(told_tune, knob), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, start_ceiling_mhz), TOLD_NUMBER, TOLD_ELSE(not_begun),
     SHAPE_IF(told_tune, of_clock)},
    {SHAPE_AT(told_tune, chosen_ceiling_mhz), TOLD_NUMBER, TOLD_ELSE(no_choice),
     SHAPE_IF(told_tune, of_clock)},
    {SHAPE_AT(told_tune, start_limit_w), TOLD_NUMBER, TOLD_ELSE(not_begun), SHAPE_IF(told_tune, of_power)},
    {SHAPE_AT(told_tune, chosen_limit_w), TOLD_NUMBER, TOLD_ELSE(no_choice), SHAPE_IF(told_tune, of_power)},
    {SHAPE_AT(told_tune, promised_slowdown), TOLD_NUMBER, TOLD_ELSE(no_choice)},
    {SHAPE_AT(told_tune, measured_slowdown), TOLD_NUMBER, TOLD_ELSE("the chosen limit was not checked")},
    {SHAPE_AT(told_tune, pace), TOLD_TEXT},
    {SHAPE_AT(told_tune, pauses), TOLD_U64},
    {SHAPE_AT(told_tune, pause_share), TOLD_NUMBER, TOLD_ELSE(not_begun)},
    {SHAPE_AT(told_tune, idle_share), TOLD_NUMBER, TOLD_ELSE("the driver does not say")},
    {SHAPE_AT(told_tune, searches), TOLD_U32},
    {SHAPE_AT(told_tune, ties), TOLD_I64, TOLD_ELSE(no_choice)},
    {SHAPE_AT(told_tune, backoffs), TOLD_U32},
    {SHAPE_AT(told_tune, search), TOLD_POINTED(&search_shape)},
    {SHAPE_AT(told_tune, profile), TOLD_TEXT},
    {SHAPE_AT(told_tune, points), SHAPE_IS_STRUCTS_HERE(&point_shape, told_tune, points, point_count)},
    {SHAPE_AT(told_tune, gpus), SHAPE_IS_STRUCTS_HERE(&gpu_shape, told_tune, gpus, gpu_count)},
};
static const struct shape tune_shape = {SHAPE_OF(told_tune, tune_rows)};

json_t *run_tune_json(const struct run_tune *tune)
{
    const struct fly_tuner_report *report = &tune->report; /* zero unless reported */
    const struct fly_tuner_point *chosen = chosen_point(tune);
    struct told_tune told = {
        .state = !tune->reported || tune->off[0] != '\0' ? "off" : state_names[report->state],
        .off = tune->off,
        .reason = tune->reported ? fly_tuner_reason_name(report->reason) : NULL,
        .reason_text = report->text,
        .objective = run_tune_objective_name(tune->objective.kind),
        .eta = tune->objective.eta,
        .max_slowdown = tune->objective.max_slowdown,
        .steps = tune->lines.events[STEP_BEGIN],
        .malformed_lines = tune->lines.events[STEP_MALFORMED],
        .knob = fly_tuner_knob_name(tune->turned),
        .of_clock = is_clock(tune),
        .of_power = !is_clock(tune),
        .start_ceiling_mhz = tune->reported ? report->start_ceiling_mhz : NAN,
        .chosen_ceiling_mhz = chosen != NULL ? chosen->ceiling_mhz : NAN,
        .start_limit_w = tune->reported ? report->start_limit_w : NAN,
        .chosen_limit_w = chosen != NULL ? chosen->limit_w : NAN,
        .promised_slowdown = promised(tune, chosen),
        .measured_slowdown = chosen != NULL && report->slowdown > 0 ? report->slowdown : NAN,
        .pace = tune->reported ? fly_tuner_pace_name(report->pace) : NULL,
        .pauses = report->pauses,
        .pause_share = tune->reported ? report->pause_share : NAN,
        .idle_share = tune->reported ? report->idle_share : NAN,
        .searches = report->searches,
        .backoffs = report->backoffs,
        .ties = chosen != NULL ? (int64_t)report->ties : -1,
        .search = report,
        .profile = report->profile,
        .point_count = tune->point_count,
        .gpu_count = tune->knob_opened ? tune->gpu_count : 0,
    };

    for (size_t i = 0; i < told.point_count; i++)
        told.points[i] = told_point(&tune->points[i]);
    for (size_t i = 0; i < told.gpu_count; i++)
        told.gpus[i] = told_gpu(tune->gpus[i], &tune->knob_reports[i]);
    return shape_tell(&tune_shape, &told);
}
