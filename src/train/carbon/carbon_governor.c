/* SPDX-License-Identifier: Apache-2.0 */
/* What a tuner or a session asks and tells the governor; sets no limit itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "train/carbon/carbon_governor_private.h"
#include "train/carbon/carbon_head.h"

static int open_keeper(struct carbon_governor *governor, const struct carbon_governor_options *options,
                       struct fly_error *out_error)
{
    const struct carbon_keeper_options wanted = {
        .clock = options->clock,
        .meter = options->meter,
        .directory = options->carbon.directory,
        .head = governor->head,
        /* Rank 0 alone asks the network. */
        .cached_only = options->cached_only || options->rank != 0,
    };
    int code = carbon_keeper_open(&wanted, &governor->keeper, out_error);

    governor->keeper_owned = code == 0;
    return code;
}

int carbon_governor_open(const struct carbon_governor_options *options, struct carbon_governor **out_governor,
                         struct fly_error *out_error)
{
    struct carbon_governor *governor = calloc(1, sizeof *governor);
    int code;

    if (governor == NULL)
        return error_no_memory(out_error);
    code = carbon_governor_head(options, &governor->head, out_error);
    if (code == 0) {
        governor->clock = options->clock != NULL ? options->clock : &clock_real;
        governor->opened = governor->clock->now(governor->clock->state);
        governor->leads = options->rank == 0;
        governor->all_host_w = options->all_host_w > 0.0 ? options->all_host_w : options->carbon.host_w;
        governor->gpu_share = options->all_gpus > 0 ? (double)options->gpus / options->all_gpus : 1.0;
        governor->standing_w = governor->asked_w = NAN;
        governor->fresh = true;
        carbon_pace_init(&governor->pace);
        governor->keeper = options->keeper;
        if (governor->keeper == NULL)
            code = open_keeper(governor, options, out_error);
    }
    if (code < 0)
        carbon_governor_close(governor);
    else
        *out_governor = governor;
    return code;
}

void carbon_governor_close(struct carbon_governor *governor)
{
    struct carbon_keeper_summary summary;

    if (governor == NULL)
        return;
    if (governor->keeper_owned)
        carbon_keeper_close(governor->keeper, &summary);
    if (governor->plan_capacity > 0)
        carbon_plan_deinit(&governor->plan);
    carbon_ahead_deinit(&governor->ahead);
    free(governor);
}

int carbon_governor_profile(struct carbon_governor *governor, const struct fly_power_point *points,
                            size_t count, struct fly_error *out_error)
{
    const struct carbon_surroundings around = {governor->all_host_w, governor->head.surroundings.pue};
    struct fly_power_point own[CARBON_POINTS_MAX];
    struct carbon_profile profile;
    double fastest_s = INFINITY;
    int code = carbon_profile_init(&profile, points, count, &around, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        own[i] = points[i];
        own[i].power_w *= governor->gpu_share;
        fastest_s = fmin(fastest_s, points[i].time_s);
    }
    carbon_pace_profile(&governor->pace, &profile, fastest_s);
    carbon_pace_stands(&governor->pace, governor->standing_w, false);
    carbon_keeper_profile(governor->keeper, own, count);
    if (governor->plan_capacity > 0)
        carbon_plan_restart(&governor->plan);
    governor->decided.made = false;
    governor->fresh = true;
    return 0;
}

void carbon_governor_bound(struct carbon_governor *governor, double max_slowdown)
{
    if (governor->head.finish_by_s > 0 || !(max_slowdown >= 1.0) ||
        max_slowdown == governor->head.max_slowdown)
        return;
    governor->head.max_slowdown = max_slowdown;
    governor->decided.made = false;
}

void carbon_governor_stands(struct carbon_governor *governor, double limit_w)
{
    bool asked = limit_w == governor->asked_w;

    carbon_keeper_limit(governor->keeper, limit_w);
    carbon_pace_stands(&governor->pace, limit_w, asked);
    governor->asked_w = NAN;
    if (limit_w == governor->standing_w)
        return;
    governor->changes += asked && !governor->fresh;
    governor->standing_w = limit_w;
    governor->stands_since_s = governor_now_s(governor);
    governor->fresh = governor->fresh && !asked;
}

static void take_figures(struct carbon_governor *governor)
{
    if (governor->leads && carbon_ahead_take(&governor->ahead, governor->keeper, governor_date_s(governor)))
        governor->figures_changed = true;
}

void carbon_governor_count(struct carbon_governor *governor, double steps_done)
{
    double steps = steps_done - governor->steps_told;

    if (!governor->keeper_owned || !(steps > 0.0))
        return;
    carbon_keeper_steps(governor->keeper, (uint64_t)steps);
    governor->steps_told += floor(steps);
}

double carbon_governor_decide(struct carbon_governor *governor, const struct carbon_progress *progress)
{
    double now_s = governor_now_s(governor), wanted_w;

    carbon_governor_count(governor, progress->steps_done - progress->steps_earlier);
    take_figures(governor);
    governor->asked_w = NAN;
    if (!governor->leads || governor->pace.profile.count == 0)
        return NAN;
    carbon_pace_progress(&governor->pace, progress, now_s);
    governor_keep_plan(governor, now_s);
    if (!governor->decided.made)
        return NAN;
    wanted_w = governor_limit_w(governor, now_s);
    if (wanted_w == governor->standing_w) {
        governor->fresh = false;
        return NAN;
    }
    governor->asked_w = wanted_w;
    return wanted_w;
}

double carbon_governor_reference(struct carbon_governor *governor, int signal)
{
    take_figures(governor);
    return carbon_ahead_reference(&governor->ahead, signal, governor_date_s(governor));
}

enum carbon_reason carbon_governor_reason(const struct carbon_governor *governor)
{
    if (!governor->decided.made)
        return CARBON_UNKNOWN_GRID;
    return governor->decided.reason;
}

static const char *text_now(const struct carbon_governor *governor)
{
    if (!governor->leads)
        return "as rank 0 says";
    if (!governor->decided.made)
        return "the power profile is not measured yet";
    return governor->decided.text;
}

void carbon_governor_report(const struct carbon_governor *governor, struct fly_carbon_report *out_report)
{
    const struct decided *decided = &governor->decided;
    struct carbon_keeper_summary summary = carbon_keeper_look(governor->keeper);
    double now_s = governor_now_s(governor);
    struct fly_carbon_report report = {
        .size = out_report->size,
        .limit_w = NAN,
        .finish_s = NAN,
        .intensity_g_per_kwh = carbon_ahead_intensity(&governor->ahead, governor_date_s(governor)),
        .decisions = governor->decisions,
        .changes = governor->changes,
        .energy_j = summary.energy_j,
    };

    if (decided->made) {
        report.limit_w = governor_limit_w(governor, now_s);
        report.finish_s = decided->finish_s > now_s ? decided->finish_s - now_s : NAN;
    }
    snprintf(report.reason, sizeof report.reason, "%s", text_now(governor));
    snprintf(report.account, sizeof report.account, "%.255s", summary.path);
    snprintf(report.text, sizeof report.text, "%.255s", summary.text);
    *out_report = report;
}
