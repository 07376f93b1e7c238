/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/fusion.h"

#include <math.h>

/* The difference of two uniform errors of up to a step each, in 95 of 100 cases. */
static const double step_share = 0.78;
/* Powers that are closer than this, of the larger one, are no jump. */
static const double jump_share = 0.01;

static double age_of(const struct fusion_edge *edge)
{
    return 0.5 * (edge->age_low_s + edge->age_high_s);
}

static double age_half_j(const struct fusion_edge *edge)
{
    return 0.5 * (edge->age_high_s - edge->age_low_s) * edge->power_w;
}

/* Returns the energy of the first `age_s` of a stretch of `length_s` that has `energy_j` in all. */
static double part_j(double before_w, double after_w, double energy_j, double length_s, double age_s)
{
    double mean_w = energy_j / length_s, jump_s;

    if (fabs(after_w - before_w) <= jump_share * fmax(before_w, after_w) ||
        (mean_w - before_w) * (mean_w - after_w) > 0.0)
        return mean_w * age_s;
    jump_s = (after_w * length_s - energy_j) / (after_w - before_w);
    return before_w * fmin(age_s, jump_s) + after_w * fmax(age_s - jump_s, 0.0);
}

/* Returns the power after the first update that follows the begin. */
static double after_w(const struct fusion_window *window)
{
    const struct fusion_update *next = window->next;

    if (window->next_count < 2)
        return window->end.power_w;
    return (next[1].total_j - next[0].total_j) / (next[1].at_s - next[0].at_s);
}

/* Returns what is missed in a window in which the counter was not updated: its power is all that is known. */
static struct fusion of_power(const struct fusion_window *window)
{
    const struct fusion_edge *begin = &window->begin, *end = &window->end;
    double length_s = end->at_s - begin->at_s;
    double change_w = fmax(window->surprise_w, fmax(begin->change_w, end->change_w));

    return (struct fusion){end->power_w * length_s, hypot(change_w * length_s, window->summed_half_j)};
}

/* Gives the energy from the last update before the begin up to the begin, and what its spreading may miss. */
static void begin_part(const struct fusion_window *window, double *out_j, double *out_missed_j)
{
    const struct fusion_edge *begin = &window->begin;
    const struct fusion_update *next = &window->next[0];
    double age_s = age_of(begin), stretch_s = next->at_s - (begin->at_s - age_s), next_w = after_w(window);

    if (window->next_count == 0 || stretch_s < age_s) {
        *out_j = begin->power_w * age_s;
        *out_missed_j = fmax(window->surprise_w, begin->change_w) * age_s;
        return;
    }
    *out_j = part_j(begin->power_w, next_w, next->total_j - begin->total_j, stretch_s, age_s);
    *out_missed_j =
        fmax(window->surprise_w, fabs(next_w - begin->power_w)) * age_s * (stretch_s - age_s) / stretch_s;
}

struct fusion fusion_energy(const struct fusion_window *window)
{
    const struct fusion_edge *begin = &window->begin, *end = &window->end;
    double end_s = age_of(end), begin_j, begin_missed_j, changes_j, others_j;

    if (end->total_j == begin->total_j)
        return of_power(window);
    begin_part(window, &begin_j, &begin_missed_j);
    changes_j = hypot(begin_missed_j, fmax(window->surprise_w, end->change_w) * end_s);
    others_j = hypot(step_share * window->step_j, window->summed_half_j);
    return (struct fusion){end->total_j + end->power_w * end_s - begin->total_j - begin_j,
                           hypot(hypot(age_half_j(begin), age_half_j(end)), hypot(changes_j, others_j))};
}
