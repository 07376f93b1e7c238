/* SPDX-License-Identifier: Apache-2.0 */
/* What a reading of a counter shows of its updates, and what follows for windows that are open. */
#include "meter/tracking.h"

#include <math.h>

/* The age of a window's begin is not looked for any more after that. */
static const double settled_late_s = 5.0;
/* The last knot says nothing of how many updates came since, after that. */
static const double settled_knot_s = 0.25;

static struct phase_age age_at(const struct account *account, const struct account_edge *edge)
{
    return phase_age(&account->phase, edge->at, fmax(edge->counter.age_low_s - edge->read_s, 0.0),
                     edge->counter.age_high_s + edge->read_s);
}

static double age_middle_s(const struct phase_age *age)
{
    return 0.5 * (age->low_s + age->high_s);
}

/* Gives the begins of windows the updates that follow them. */
static void settle_marks(struct account *account, struct mono_time now)
{
    const struct knot *knot = &account->knots.last;

    for (uint32_t i = account->first_open; account->unsettled > 0 && i < account->mark_count;
         i = account->marks[i].after) {
        struct account_mark *mark = &account->marks[i];
        struct knot *place = mark->next[0].known ? &mark->next[1] : &mark->next[0];

        if (place->known || mark->begin.counter.total_uj == knot->total_uj)
            continue;
        if (!mark->begin.age.known && mono_elapsed_s(mark->begin.at, now) < settled_late_s)
            mark->begin.age = age_at(account, &mark->begin);
        if (knot->at.ns <= mark->begin.at.ns)
            continue;
        *place = *knot;
        account->unsettled -= mark->next[1].known;
    }
}

/* Returns whether the power from the last knot to an update then would be one that is expected. */
static bool is_likely(const struct account *account, const struct account_edge *edge, double age_s)
{
    double energy_j = (double)(int64_t)(edge->counter.total_uj - account->knots.last.total_uj) * 1e-6;
    double elapsed_s = mono_elapsed_s(account->knots.last.at, edge->at) - age_s;

    return elapsed_s > 0.5 * account->phase.line.period_s &&
           fabs(energy_j / elapsed_s - edge->expected_w) <= knots_surprise_w(&account->knots);
}

/*
 * Where one more update may or may not have come, the energy since the last knot may tell: over few
 * periods, one more makes much of a difference.
 */
static void settle_age(const struct account *account, struct account_edge *edge)
{
    double period_s = account->phase.line.period_s,
           since_s = mono_elapsed_s(account->knots.last.at, edge->at);
    double spread_s = phase_spread_s(&account->phase, edge->at);
    struct phase_age *age = &edge->age;
    bool newer, older;

    if (!age->known || age->high_s - age->low_s < 0.5 * period_s || !account->knots.last.known)
        return;
    if (edge->counter.total_uj == account->knots.last.total_uj && since_s >= age->low_s &&
        since_s <= age->high_s) {
        *age = (struct phase_age){true, fmax(age->low_s, since_s - spread_s),
                                  fmin(age->high_s, since_s + spread_s)};
        return;
    }
    if (since_s > settled_knot_s || age->high_s - age->low_s > period_s + 2.0 * spread_s + edge->read_s)
        return;
    newer = is_likely(account, edge, age->low_s);
    older = is_likely(account, edge, age->high_s);
    if (newer && !older)
        age->high_s = fmin(age->high_s, age->low_s + 2.0 * spread_s);
    if (older && !newer)
        age->low_s = fmax(age->low_s, age->high_s - 2.0 * spread_s);
}

void tracking_take(struct account *account, const struct device_reading *reading, struct account_edge *edge)
{
    double reading_w = edge->integral.known ? edge->integral.power_w : NAN;
    uint32_t breaks = edge->counter.resets + edge->counter.holes;
    struct phase_age *age = &edge->age;

    phase_take(&account->phase, reading->before, reading->after,
               (uint64_t)reading->values[QUANTITY_ENERGY].value);
    *age = age_at(account, edge);
    edge->expected_w = knots_power_w(&account->knots, reading_w);
    edge->change_w = knots_change_w(&account->knots, reading_w);
    settle_age(account, edge);
    /* Where one more update may or may not have come, the moment of the last one is not known. */
    if (!age->known || age->high_s - age->low_s > 0.5 * account->phase.line.period_s)
        return;
    if (!knots_take(&account->knots, mono_after_s(edge->at, -age_middle_s(age)), edge->counter.total_uj,
                    reading_w, breaks == account->breaks))
        return;
    account->breaks = breaks;
    edge->expected_w = knots_power_w(&account->knots, reading_w);
    edge->change_w = knots_change_w(&account->knots, reading_w);
    settle_marks(account, edge->at);
}
