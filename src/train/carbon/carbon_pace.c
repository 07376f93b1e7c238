/* SPDX-License-Identifier: Apache-2.0 */
#include "train/carbon/carbon_pace.h"

#include <math.h>
#include <string.h>

/* The last minute tells how long the next steps take, the last ten what is usual. */
static const double soon_s = 60.0, usually_s = 600.0;
/* When both differ by this share it is no chance: the machine has changed. */
static const double changed = 0.02;
/* A stretch that takes this many times as long was held up, unless this many before it were. */
static const double held_up = 2.0;
enum { STALLS_MAX = 3 };
/* A shorter pause between two steps is not counted as a piece of anything else. */
static const double piece_least_s = 1.0;
/* A piece that is this many times as late as the last one does not come any more. */
static const double overdue = 1.5;
/* Steps are counted in lots: a piece that would come this share of a gap after the end still comes. */
static const double due_within = 0.1;
/* The clock is read twice for one moment. */
static const double rounding = 0.01;

void carbon_pace_init(struct carbon_pace *pace)
{
    *pace = (struct carbon_pace){.factor = 1.0, .usual = 1.0, .first_s = NAN};
}

static size_t find(const struct carbon_profile *profile, double limit_w)
{
    size_t at = 0;

    while (at < profile->count && profile->points[at].limit_w != limit_w)
        at++;
    return at;
}

/* The time at the fastest limit of what was done under this profile, by the ratios of the next one. */
static double judge(const struct carbon_pace *pace, const struct carbon_profile *next)
{
    double sum_s = pace->steps_mixed * pace->fastest_s;

    for (size_t i = 0; i < pace->profile.count; i++) {
        size_t at = find(next, pace->profile.points[i].limit_w);

        sum_s += pace->time_at_s[i] * (at < next->count ? next->points[at] : pace->profile.points[i]).rate;
    }
    return sum_s;
}

void carbon_pace_profile(struct carbon_pace *pace, const struct carbon_profile *profile, double fastest_s)
{
    pace->past_s += judge(pace, profile);
    pace->since_s = pace->block_told_s = pace->block_real_s = pace->steps_mixed = 0.0;
    memset(pace->time_at_s, 0, sizeof pace->time_at_s);
    pace->profile = *profile;
    pace->fastest_s = fastest_s;
    pace->factor = pace->usual = 1.0;
    pace->at = profile->count;
    pace->pure = false;
}

void carbon_pace_stands(struct carbon_pace *pace, double limit_w, bool at_once)
{
    size_t at = find(&pace->profile, limit_w);

    pace->pure = at < pace->profile.count && (at_once || (pace->pure && at == pace->at));
    pace->at = at;
}

/* The lesser of both: a block is so long that single steps do not make it less by chance. */
static double block_s(const struct carbon_pace *pace)
{
    return fmin(pace->block_told_s, pace->block_real_s);
}

static void close_block(struct carbon_pace *pace)
{
    pace->since_s += block_s(pace);
    pace->block_told_s = pace->block_real_s = 0.0;
}

/* Learns from steps that began and ended under one known limit. */
static void learn(struct carbon_pace *pace, double steps, double time_s)
{
    double told_s = steps * pace->fastest_s / pace->profile.points[pace->at].rate, factor;

    if (time_s > held_up * pace->factor * told_s && pace->stalls < STALLS_MAX) {
        pace->stalls++;
        pace->stalled_s += time_s - pace->factor * told_s;
        time_s = pace->factor * told_s;
    } else {
        pace->stalls = 0;
    }
    factor = time_s / told_s;
    pace->factor += (1.0 - exp(-time_s / soon_s)) * (factor - pace->factor);
    pace->usual += (1.0 - exp(-time_s / usually_s)) * (factor - pace->usual);
    pace->time_at_s[pace->at] += time_s;
    pace->block_told_s += steps * pace->fastest_s;
    pace->block_real_s += time_s * pace->profile.points[pace->at].rate;
    if (fabs(pace->factor - pace->usual) > changed * pace->usual) {
        pace->usual = pace->factor;
        close_block(pace);
    }
    if (pace->block_told_s > usually_s)
        close_block(pace);
}

static double other_sum_s(const struct carbon_pace *pace)
{
    double step_time_s = pace->seen.step_time_s - pace->stalled_s - pace->first_step_time_s;

    return pace->now_s - pace->first_s - step_time_s;
}

/* Notices the pieces in which evaluation comes, usually after the same number of steps. */
static void see_other(struct carbon_pace *pace)
{
    double other_s = other_sum_s(pace), steps = pace->seen.steps_done - pace->first_steps;

    if (other_s > pace->other_seen_s + piece_least_s && steps > pace->piece_steps) {
        pace->piece_s = other_s - pace->other_seen_s;
        pace->piece_gap = steps - pace->piece_steps;
        pace->piece_steps = steps;
    }
    pace->other_seen_s = other_s;
}

void carbon_pace_progress(struct carbon_pace *pace, const struct carbon_progress *progress, double now_s)
{
    double steps = progress->steps_done - pace->seen.steps_done;
    double time_s = progress->step_time_s - pace->seen.step_time_s;
    /* Steps of long ago that become known only now say nothing of the newest ones. */
    bool lived = time_s <= (now_s - pace->now_s) * (1.0 + rounding);

    if (pace->profile.count == 0)
        return; /* they count with the first profile */
    if (steps > 0.0 && time_s > 0.0) {
        if (pace->pure && lived) {
            learn(pace, steps, time_s);
        } else {
            pace->steps_mixed += steps;
            pace->since_s += steps * pace->fastest_s * fmin(pace->usual, 1.0);
        }
    }
    if (isnan(pace->first_s)) {
        pace->first_s = now_s;
        pace->first_steps = progress->steps_done;
        pace->first_step_time_s = progress->step_time_s;
    }
    pace->now_s = now_s;
    pace->seen = *progress;
    pace->pure = pace->at < pace->profile.count;
    see_other(pace);
}

double carbon_pace_work_s(const struct carbon_pace *pace)
{
    return pace->seen.steps_left * pace->fastest_s * pace->factor;
}

double carbon_pace_allowed_s(const struct carbon_pace *pace, double max_slowdown)
{
    double left_s = pace->seen.steps_left * pace->fastest_s * fmin(pace->usual, 1.0);

    return max_slowdown * (pace->past_s + pace->since_s + block_s(pace) + left_s) -
           (pace->seen.step_time_s - pace->stalled_s);
}

double carbon_pace_spare_s(const struct carbon_pace *pace, double max_slowdown,
                           const struct carbon_progress *progress, double step_s)
{
    double seen_s = pace->past_s + judge(pace, &pace->profile);
    double left_s = progress->steps_left * step_s;
    double done_s = seen_s + (progress->steps_done - pace->seen.steps_done) * step_s;

    return max_slowdown * (done_s + left_s) - (progress->step_time_s - pace->stalled_s) - left_s;
}

double carbon_pace_other_s(const struct carbon_pace *pace)
{
    double steps = pace->seen.steps_done - pace->first_steps;
    double other_s = other_sum_s(pace);

    return steps > 0.0 && other_s > 0.0 ? other_s / steps : 0.0;
}

/* The pieces up to the end, with the one after the last step. */
static double pieces_left(const struct carbon_pace *pace)
{
    double steps = pace->seen.steps_done - pace->first_steps, since = steps - pace->piece_steps;

    if (!(pace->piece_gap > 0.0) || since > overdue * pace->piece_gap)
        return 0.0;
    return floor((since + pace->seen.steps_left) / pace->piece_gap + due_within);
}

double carbon_pace_other_left_s(const struct carbon_pace *pace)
{
    double even_s = pace->seen.steps_left * carbon_pace_other_s(pace);

    if (isnan(even_s))
        return NAN;
    /* Spread evenly, the time would leave nothing for the last piece. */
    return fmax(even_s, fmin(pieces_left(pace) * pace->piece_s, even_s + pace->piece_s));
}
