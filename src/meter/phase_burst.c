/* SPDX-License-Identifier: Apache-2.0 */
/* Which readings a phase asks for besides those of others, and what a burst of them comes to. */
#include "meter/phase_private.h"

#include <math.h>

/* A burst that searches covers a bit more than one period; others the update that they aim at. */
enum { COUNTED = 3, SEARCH_READS = 13, COARSE_READS = 7, NARROW_READS = 4, CHECK_READS = 3, MISSES_LOST = 3 };
static const double search_share = 1.2;
/* Where the period is known to this share, readings twice as far apart find an update, too. */
static const double coarse_share = 0.005;

/* What is allowed at once, and its refill: at most 60 in any minute. */
static const double allowance_most = 30.0, allowance_per_s = 30.0 / 60.0;
/* A new counter is found out about at once: so much of what is refilled in the first minute is there at its
 * begin. */
static const double allowance_ahead = 25.0, ahead_s = 60.0;

/* An update is aimed at only if it is known to this share of a period, and not closer than this. */
static const double aimed_share = 0.2, aimed_least_s = 0.3e-3, aimed_margin = 1.1;
/* The furthest one is aimed at that is known to this many times the next one, or the scatter: to more of them
 * the fewer readings are left. */
static const double aimed_growth = 2.0, aimed_saving = 60.0, aimed_scatters = 3.0, aimed_fine_share = 0.015;

static const double scatter_shrinks = 0.9, scatter_grows = 2.0;
static const double pause_most_s = 8.0, retry_s = 0.3;
static const double missed_weight = 0.1;
/* A period from updates that were lost again is uncertain by this share at least. */
static const double believed_least = 0.5e-3;
/* After a failed reading, and where there is no period to be found. */
static const double rest_s = 5.0;
static const double search_least_s = 0.004, search_most_s = 2.0;

/* Moments closer than this are the same. */
static const double resolution_s = 1e-6;

/* This share of all pairs differs: there is no period to be seen at that step. */
static const double on_read_share = 0.6;
/* Readings that see whether a counter is fresh are so far apart, and so many of them have to differ. */
static const double dense_step_s = 0.5e-3, dense_least_s = 0.25e-3;
enum { FRESH_CHANGES = 3 };
/* A fresh counter is at most so old, and is looked at again after so long. */
static const double fresh_most_s = 0.005, fresh_again_s = 30.0;

/* What was allowed by a moment, besides allowance_most, since the first reading. */
static double allowed_by(double at_s)
{
    return allowance_per_s * at_s + allowance_ahead * fmax(1.0 - at_s / ahead_s, 0.0);
}

static void refill(struct phase *phase, double now_s)
{
    double most = allowance_most + allowance_ahead * fmax(1.0 - now_s / ahead_s, 0.0);

    phase->allowance += allowed_by(now_s) - allowed_by(phase->allowed_at_s);
    if (!phase->allowed || phase->allowance > most)
        phase->allowance = most;
    phase->allowed = true;
    phase->allowed_at_s = now_s;
}

static void open_burst(struct phase *phase, double start_s, double step_s, int count)
{
    int reads = count + 1; /* and one to look later */

    /* With a period that is known badly the first updates have to be found one soon after the other. */
    if (phase->failures > 0 && phase->found < PHASE_FOUND_LEAST)
        reads += (PHASE_FOUND_LEAST - 1 - (int)phase->found) * (NARROW_READS + 1);
    if (phase->allowance < reads)
        return;
    phase->burst = (struct phase_burst){.open = true,
                                        .searches = phase->found == 0,
                                        .thorough = phase->found == 0 && phase->failures % 2 == 1,
                                        .start_s = start_s,
                                        .step_s = step_s,
                                        .count = count,
                                        .found_before = phase->found};
}

/* Returns half of what a burst around an update has to cover. */
static double half_of(const struct phase *phase, double due_s)
{
    return fmax(aimed_margin * phase_spread_at_s(phase, due_s), aimed_least_s);
}

/*
 * Returns the number of the update to aim at: the one furthest ahead that is known nearly as well as
 * the next. So the moment is narrowed down first, and the period as the updates found reach further.
 * The first updates, and those that are in doubt, are the next ones.
 */
static double aimed_number(const struct phase *phase, double first, double last)
{
    double growth = fmax(aimed_growth, aimed_saving / phase->allowance);
    double number = last,
           enough_s = fmax(growth * phase_spread_at_s(phase, phase_due_s(phase, first)),
                           fmax(aimed_scatters * phase->scatter_s, aimed_fine_share * phase->line.period_s));

    if (phase->found < PHASE_FOUND_LEAST || phase->state == PHASE_DOUBTED)
        return first;
    enough_s = fmin(enough_s, aimed_share / aimed_margin * phase->line.period_s);
    while (number > first && phase_spread_at_s(phase, phase_due_s(phase, number)) > enough_s)
        number = fmax(first, floor(first + 0.7 * (number - first)));
    return number;
}

static void aim(struct phase *phase, double now_s)
{
    double period_s = phase->line.period_s, first = phase_last_due(phase, now_s) + 1.0;
    double due_s =
        phase_due_s(phase, aimed_number(phase, first, phase_last_due(phase, now_s + pause_most_s) + 1.0));
    double half_s = half_of(phase, due_s);
    int reads = phase_line_error_s(phase, due_s) > fmax(phase->scatter_s, aimed_fine_share * period_s)
                    ? NARROW_READS
                    : CHECK_READS;

    if (half_s > aimed_share * period_s) {
        double error_s = 1.5 * sqrt(phase->line.period_var_s2);

        phase->state = phase->scatter_s > 0.5 * aimed_share * period_s ? PHASE_UNSTEADY : PHASE_SEARCHED;
        phase_search(phase, period_s, phase->failures + 1);
        phase->prior_error_s = fmin(phase->prior_error_s, fmax(error_s, believed_least * period_s));
        return;
    }
    if (due_s - half_s <= now_s)
        due_s += period_s;
    open_burst(phase, due_s - half_s, 2.0 * half_s / (reads - 1), reads);
}

static void open_search(struct phase *phase, double now_s)
{
    double period_s = phase->line.period_s;
    bool known = phase->prior_error_s < coarse_share * period_s && phase->failures % 2 == 0;
    int reads = known ? COARSE_READS : SEARCH_READS;

    open_burst(phase, now_s, search_share * period_s / (reads - 1), reads);
}

static void plan(struct phase *phase, double now_s)
{
    if (phase->state == PHASE_FRESH || phase->seems_fresh) {
        open_burst(phase, now_s,
                   phase->state == PHASE_FRESH ? fmax(0.5 * phase->fresh_s, dense_least_s) : dense_step_s,
                   SEARCH_READS);
        phase->burst.dense = phase->burst.thorough = phase->burst.open;
        return;
    }
    if (phase->found > 0)
        aim(phase, now_s);
    if (phase->found == 0 && !phase->burst.open)
        open_search(phase, now_s);
}

/* Returns when the burst's next reading is due. */
static double due_in_burst_s(struct phase *phase, double now_s)
{
    struct phase_burst *burst = &phase->burst;

    if (burst->dense)
        return burst->next == 0 ? burst->start_s : phase->read_after_s + burst->step_s;
    /* Moments that have passed meanwhile are one reading. */
    while (!burst->looks_later && burst->next + 1 < burst->count &&
           burst->start_s + (burst->next + 1) * burst->step_s <= now_s)
        burst->next++;
    if (phase->found == burst->found_before)
        burst->found_at = burst->next;
    return burst->looks_later ? burst->start_s + 0.5 * phase->line.period_s
                              : burst->start_s + burst->next * burst->step_s;
}

struct mono_time phase_next_read(struct phase *phase, struct mono_time now)
{
    const struct mono_time never = {INT64_MAX};
    double now_s = phase_since_s(phase, now), due_s;

    if (phase->state == PHASE_NONE || !phase->read)
        return never;
    refill(phase, now_s);
    if (!phase->burst.open && now_s >= phase->rest_until_s)
        plan(phase, now_s);
    if (!phase->burst.open)
        return never;
    due_s = due_in_burst_s(phase, now_s);
    return due_s <= now_s + resolution_s ? now : mono_after_s(phase->origin, due_s);
}

static void rest(struct phase *phase, double now_s, double duration_s)
{
    phase->burst.open = false;
    phase->rest_until_s = now_s + duration_s;
}

/* Returns the longest time between two updates that a burst leaves possible. */
static double longest_s(const struct phase_burst *burst)
{
    return burst->changes >= FRESH_CHANGES ? (burst->until_s - burst->from_s) / (burst->changes - 1)
                                           : INFINITY;
}

static void become_fresh(struct phase *phase, double now_s)
{
    double longest = longest_s(&phase->burst);

    phase->fresh_s = phase->state == PHASE_FRESH ? fmin(phase->fresh_s, longest) : longest;
    phase_search(phase, phase->stated_s, 0);
    phase->state = PHASE_FRESH;
    rest(phase, now_s, fresh_again_s);
}

static void conclude_dense(struct phase *phase, double now_s)
{
    bool late = phase->burst.changes == phase->burst.pairs;

    phase->seems_fresh = false;
    if (longest_s(&phase->burst) <= fresh_most_s) {
        become_fresh(phase, now_s);
    } else if (late) { /* readings came too late to tell */
        phase->seems_fresh = phase->state != PHASE_FRESH;
        rest(phase, now_s, retry_s);
    } else if (phase->state == PHASE_FRESH) {
        phase_is_not_fresh(phase);
    } else {
        rest(phase, now_s, retry_s);
    }
}

/* Settles what the changes among a search's readings say of the period. */
static void conclude_search(struct phase *phase, double now_s)
{
    const struct phase_burst burst = phase->burst;
    double period_s = phase->line.period_s;

    if (!burst.thorough) {
        phase->seems_fresh = burst.contradicted;
        if (phase->found == 0 || burst.contradicted)
            phase_search(phase, period_s, phase->failures + 1);
        if (phase->found == 0 && !burst.contradicted)
            rest(phase, now_s, retry_s);
        return;
    }
    if (burst.pairs < SEARCH_READS / 2) { /* readings came too late to tell */
        rest(phase, now_s, retry_s);
    } else if (burst.changes == 0) {
        rest(phase, now_s, retry_s);
        period_s = period_s < search_most_s ? 1.5 * period_s : phase->stated_s;
        phase_search(phase, period_s, COUNTED);
    } else if (burst.changes >= on_read_share * burst.pairs) {
        if (longest_s(&burst) <= fresh_most_s) {
            become_fresh(phase, now_s);
            return;
        }
        rest(phase, now_s, retry_s);
        phase_search(phase, fmax(period_s / 6.0, search_least_s), COUNTED);
    } else if (burst.changes > 1) {
        double counted_s = (burst.last_change_s - burst.first_change_s) / (burst.changes - 1);

        if (counted_s < 0.8 * period_s)
            phase_search(phase, counted_s, COUNTED);
    }
}

static void conclude(struct phase *phase, double now_s)
{
    bool searched = phase->burst.searches, skipped;
    bool hit = phase->found > phase->burst.found_before && !phase->burst.contradicted;

    phase->burst.open = false;
    if (searched && phase->burst.dense)
        conclude_dense(phase, now_s);
    else if (searched)
        conclude_search(phase, now_s);
    if (searched)
        return;
    skipped = !hit && phase->burst.changes == 0;
    phase->missed_share += missed_weight * ((hit ? 0.0 : 1.0) - phase->missed_share);
    phase->skipped_share += missed_weight * ((skipped ? 1.0 : 0.0) - phase->skipped_share);
    if (hit) {
        phase->misses = 0;
        if (phase->found >= PHASE_UPDATES / 2)
            phase->failures = -1; /* if it is lost now, its period was right */
        phase->scatter_s = fmax(scatter_shrinks * phase->scatter_s, phase_seen_scatter_s(phase));
        phase->rest_until_s = 0.0;
    } else if (++phase->misses >= MISSES_LOST) {
        phase->state = phase->missed_share > 0.5 ? PHASE_UNSTEADY : PHASE_SEARCHED;
        phase_search(phase, phase->line.period_s, phase->failures + 1);
        return;
    } else if (!skipped) {
        phase_forget(phase);
        phase_doubt_period(phase);
        phase->scatter_s = scatter_grows * phase->scatter_s;
    }
    phase_settle(phase, now_s, !hit && !skipped);
}

void phase_extra_read(struct phase *phase, struct mono_time now)
{
    struct phase_burst *burst = &phase->burst;

    phase->allowance -= 1.0;
    if (!burst->open)
        return;
    burst->next++;
    if (phase->found == burst->found_before)
        burst->found_at = burst->next;
    /* One more reading after a change shows that it was a single one. */
    if (burst->next < burst->count && (burst->thorough || burst->next <= burst->found_at + 1))
        return;
    if (!burst->searches && !burst->looks_later && phase->found == burst->found_before) {
        burst->looks_later = true;
        burst->count = burst->next + 1;
        return;
    }
    conclude(phase, phase_since_s(phase, now));
}

void phase_read_failed(struct phase *phase, struct mono_time now)
{
    phase->allowance -= 1.0;
    rest(phase, phase_since_s(phase, now), rest_s);
}
