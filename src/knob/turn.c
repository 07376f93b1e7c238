/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a knob back, unless somebody else has turned it. */
#include "knob/turn.h"

#include "base/error.h"
#include "knob/ceiling.h"

enum { WATT_MW = 1000, READS = 3 };

/* A driver may have rounded the value that it was asked for. */
static bool is_near(enum quantity quantity, const struct setting *asked, const struct setting *value)
{
    return quantity == QUANTITY_POWER_LIMIT
               ? value->number > asked->number - WATT_MW && value->number < asked->number + WATT_MW
               : setting_equals(value, asked);
}

/* Of two sets, each may be on its way to the other: what both have stays, and no other is added. */
static bool is_between(const struct turn *turn, const struct setting *value)
{
    const struct workload_set *earlier = &turn->earlier.workloads, *ours = &turn->ours.workloads;
    struct workload_set both = workload_common(earlier, ours), either = workload_union(earlier, ours);

    return turn->quantity == QUANTITY_WORKLOADS && workload_is_within(&both, &value->workloads) &&
           workload_is_within(&value->workloads, &either);
}

bool turn_is_intent(const struct turn *turn)
{
    return !setting_equals(&turn->earlier, &turn->ours);
}

bool turn_stands(const struct turn *turn, const struct setting *value)
{
    if (!turn_is_intent(turn))
        return setting_equals(value, &turn->ours);
    return setting_equals(value, &turn->earlier) || is_near(turn->quantity, &turn->ours, value) ||
           is_between(turn, value);
}

/* What the driver took once and does not take any more, and so has moved to the nearest that it takes. */
static bool is_moved_from(const struct device *device, enum quantity quantity, const struct setting *from,
                          const struct setting *value)
{
    struct setting nearest = setting_nearest(device, quantity, from);

    return !setting_equals(&nearest, from) && setting_equals(value, &nearest);
}

bool turn_stands_on(const struct device *device, const struct turn *turn, const struct setting *value)
{
    return turn_stands(turn, value) || is_moved_from(device, turn->quantity, &turn->ours, value);
}

bool turn_is_open(const struct turn *turn)
{
    return turn->way != WAY_DRIVER && turn_is_intent(turn);
}

/* Sets a knob by the turn's own way, then by the others; the error is that of the first. */
static int set_by_any(const struct site *site, const struct device *device, const struct turn *turn,
                      const struct setting *goal, struct fly_error *out_error)
{
    struct way_result result;
    int first = site_set(site, turn->way, device, turn->quantity, goal, &result, out_error);
    int code = first;

    for (int way = 0; way < WAY_COUNT && code < 0; way++) {
        if (way != (int)turn->way && site_offers(site, (enum way)way, device))
            code = site_set(site, (enum way)way, device, turn->quantity, goal, &result, NULL);
    }
    return code < 0 ? first : 0;
}

/* An intent may not have been carried out yet, so a higher clock proves nothing. */
static enum turn_end ceiling_back(const struct site *site, const struct device *device,
                                  const struct turn *turn, int64_t *out_clock, struct fly_error *out_error)
{
    if (!turn_is_intent(turn) && !ceiling_may_stand(device, turn->quantity, turn->ours.number, out_clock))
        return TURN_FOREIGN;
    return set_by_any(site, device, turn, &turn->previous, out_error) < 0 ? TURN_FAILED : TURN_RESTORED;
}

static enum turn_end not_read(const struct device *device, const struct turn *turn, const char *when,
                              enum reading_state state, struct fly_error *out_error)
{
    error_set(out_error, FLY_EREAD, "the %s of GPU %u cannot be read %s: %s; see 'flyball doctor'",
              quantity_facts[turn->quantity].title, device->info.index, when, reading_state_clause(state));
    return TURN_FAILED;
}

static void note_it(const struct turn_note *note, const struct turn *turn)
{
    if (note != NULL)
        note->note(note->state, turn);
}

/* Sets the knob to that value, and looks where it stands then. */
static enum turn_end move_to(const struct site *site, const struct device *device, const struct turn *turn,
                             const struct setting *goal, struct setting *out_now, struct fly_error *out_error)
{
    struct setting before = *out_now;
    enum reading_state state = READING_NOT_READ;

    if (set_by_any(site, device, turn, goal, out_error) < 0)
        return TURN_FAILED;
    for (int i = 0; i < READS && state != READING_OK; i++)
        state = setting_read(device, turn->quantity, out_now);
    if (state != READING_OK)
        return not_read(device, turn, "after it was put back", state, out_error);
    if (is_near(turn->quantity, goal, out_now) || !setting_equals(out_now, &before))
        return TURN_RESTORED;
    error_set(out_error, FLY_EREAD,
              "the %s of GPU %u stands as before although its driver says that it was put back; see "
              "'flyball doctor'",
              quantity_facts[turn->quantity].title, device->info.index);
    return TURN_FAILED;
}

/* Brings the knob as near to its previous value as can be. */
static enum turn_end go_back(const struct site *site, const struct device *device, struct turn *turn,
                             const struct turn_note *note, const struct setting *found,
                             struct fly_error *out_error)
{
    struct setting goal = setting_nearest(device, turn->quantity, &turn->previous), now = *found;
    bool may_come = turn_is_open(turn), is_short = !setting_equals(&goal, &turn->previous);
    enum turn_end end = TURN_RESTORED;

    if (is_short) {
        turn->earlier = *found;
        turn->ours = goal;
        note_it(note, turn);
    }
    if (!setting_equals(found, &goal) || may_come)
        end = move_to(site, device, turn, &goal, &now, out_error);
    if (end == TURN_FAILED || (!is_short && is_near(turn->quantity, &turn->previous, &now)))
        return end;
    turn->earlier = turn->ours = now;
    note_it(note, turn);
    return TURN_SHORT;
}

enum turn_end turn_back(const struct site *site, const struct device *device, struct turn *turn, bool insists,
                        const struct turn_note *note, struct setting *out_found, struct fly_error *out_error)
{
    enum reading_state state;

    *out_found = (struct setting){.number = 0};
    if (setting_is_clock(turn->quantity))
        return ceiling_back(site, device, turn, &out_found->number, out_error);
    state = setting_read(device, turn->quantity, out_found);
    if (state != READING_OK)
        return not_read(device, turn, "to put it back", state, out_error);
    if (setting_equals(out_found, &turn->previous) && !(insists && turn_is_open(turn)))
        return TURN_UNNEEDED;
    /* It may have been put back as far as can be, by somebody who could not write that down. */
    if (!setting_equals(out_found, &turn->previous) && !turn_stands_on(device, turn, out_found) &&
        !is_moved_from(device, turn->quantity, &turn->previous, out_found))
        return TURN_FOREIGN;
    return go_back(site, device, turn, note, out_found, out_error);
}
