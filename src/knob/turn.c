/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a knob back, unless somebody else has turned it. */
#include "knob/turn.h"

#include "base/clock.h"
#include "base/error.h"
#include "knob/ceiling.h"

enum { WATT_MW = 1000 };

/* A driver may have rounded the value that it was asked for. */
static bool is_near(enum quantity quantity, int64_t asked, int64_t value)
{
    return quantity == QUANTITY_POWER_LIMIT ? value > asked - WATT_MW && value < asked + WATT_MW
                                            : value == asked;
}

bool turn_stands(const struct turn *turn, int64_t value)
{
    if (turn->earlier == turn->ours)
        return value == turn->ours;
    return value == turn->earlier || is_near(turn->quantity, turn->ours, value);
}

bool turn_is_open(const struct turn *turn)
{
    return turn->way != WAY_DRIVER && turn->earlier != turn->ours;
}

/* Puts back by the turn's own way, then by the others; the error is that of the first. */
static int put_back(struct site *site, const struct device *device, const struct turn *turn,
                    struct fly_error *out_error)
{
    struct way_result result;
    int first = site_set(site, turn->way, device, turn->quantity, turn->previous, &result, out_error);
    int code = first;

    for (int way = 0; way < WAY_COUNT && code < 0; way++) {
        if (way != (int)turn->way && site_offers(site, (enum way)way, device))
            code = site_set(site, (enum way)way, device, turn->quantity, turn->previous, &result, NULL);
    }
    return code < 0 ? first : 0;
}

/* An intent may not have been carried out yet, so a higher clock proves nothing. */
static enum turn_end ceiling_back(struct site *site, const struct device *device, const struct turn *turn,
                                  int64_t *out_clock, struct fly_error *out_error)
{
    if (turn->earlier == turn->ours && !ceiling_may_stand(device, turn->ours, out_clock))
        return TURN_FOREIGN;
    return put_back(site, device, turn, out_error) < 0 ? TURN_FAILED : TURN_RESTORED;
}

enum turn_end turn_back(struct site *site, const struct device *device, const struct turn *turn, bool insists,
                        int64_t *out_found, struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *now;

    *out_found = 0;
    if (turn->quantity == QUANTITY_CLOCK_CEILING)
        return ceiling_back(site, device, turn, out_found, out_error);
    now = &reading.values[turn->quantity];
    device_read(device, &clock_real, QUANTITY_BIT(turn->quantity), &reading);
    if (now->state != READING_OK) {
        error_set(out_error, FLY_EREAD,
                  "the %s of GPU %u cannot be read to put it back: %s; see 'flyball doctor'",
                  quantity_facts[turn->quantity].title, device->info.index, reading_state_clause(now->state));
        return TURN_FAILED;
    }
    *out_found = now->value;
    if (now->value == turn->previous && !(insists && turn_is_open(turn)))
        return TURN_UNNEEDED;
    if (!turn_stands(turn, now->value) && now->value != turn->previous)
        return TURN_FOREIGN;
    return put_back(site, device, turn, out_error) < 0 ? TURN_FAILED : TURN_RESTORED;
}
