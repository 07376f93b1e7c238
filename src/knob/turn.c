/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a knob back, unless somebody else has turned it. */
#include "knob/turn.h"

#include "base/error.h"
#include "knob/ceiling.h"

enum { WATT_MW = 1000 };

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

bool turn_is_open(const struct turn *turn)
{
    return turn->way != WAY_DRIVER && turn_is_intent(turn);
}

/* Puts back by the turn's own way, then by the others; the error is that of the first. */
static int put_back(struct site *site, const struct device *device, const struct turn *turn,
                    struct fly_error *out_error)
{
    struct way_result result;
    int first = site_set(site, turn->way, device, turn->quantity, &turn->previous, &result, out_error);
    int code = first;

    for (int way = 0; way < WAY_COUNT && code < 0; way++) {
        if (way != (int)turn->way && site_offers(site, (enum way)way, device))
            code = site_set(site, (enum way)way, device, turn->quantity, &turn->previous, &result, NULL);
    }
    return code < 0 ? first : 0;
}

/* An intent may not have been carried out yet, so a higher clock proves nothing. */
static enum turn_end ceiling_back(struct site *site, const struct device *device, const struct turn *turn,
                                  int64_t *out_clock, struct fly_error *out_error)
{
    if (!turn_is_intent(turn) && !ceiling_may_stand(device, turn->quantity, turn->ours.number, out_clock))
        return TURN_FOREIGN;
    return put_back(site, device, turn, out_error) < 0 ? TURN_FAILED : TURN_RESTORED;
}

enum turn_end turn_back(struct site *site, const struct device *device, const struct turn *turn, bool insists,
                        struct setting *out_found, struct fly_error *out_error)
{
    enum reading_state state;

    *out_found = (struct setting){.number = 0};
    if (setting_is_clock(turn->quantity))
        return ceiling_back(site, device, turn, &out_found->number, out_error);
    state = setting_read(device, turn->quantity, out_found);
    if (state != READING_OK) {
        error_set(out_error, FLY_EREAD,
                  "the %s of GPU %u cannot be read to put it back: %s; see 'flyball doctor'",
                  quantity_facts[turn->quantity].title, device->info.index, reading_state_clause(state));
        return TURN_FAILED;
    }
    if (setting_equals(out_found, &turn->previous) && !(insists && turn_is_open(turn)))
        return TURN_UNNEEDED;
    if (!turn_stands(turn, out_found) && !setting_equals(out_found, &turn->previous))
        return TURN_FOREIGN;
    return put_back(site, device, turn, out_error) < 0 ? TURN_FAILED : TURN_RESTORED;
}
