/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes, bounds and holders: compared, joined and described. */
#include <stdio.h>
#include <string.h>

#include "base/harmless.h"
#include "node/lease/lease_table.h"

static bool is_same(const struct lease_wish *one, const struct lease_wish *other, enum quantity quantity)
{
    switch (quantity) {
    case QUANTITY_POWER_LIMIT:
        return one->limit_mw == other->limit_mw;
    case QUANTITY_CLOCK_CEILING:
        return one->ceiling_mhz == other->ceiling_mhz;
    case QUANTITY_PERFORMANCE_LEVEL:
        return one->level == other->level;
    case QUANTITY_PERSISTENCE:
        return one->persistence == other->persistence;
    case QUANTITY_WORKLOADS:
        return workload_equals(&one->workloads, &other->workloads);
    default:
        return true;
    }
}

bool lease_wish_agrees(const struct lease_wish *one, const struct lease_wish *other, quantity_set among)
{
    quantity_set both = one->asked & other->asked & among;

    for (int quantity = 0; quantity < QUANTITY_NAMED_COUNT; quantity++) {
        if ((both & QUANTITY_BIT(quantity)) != 0 && !is_same(one, other, (enum quantity)quantity))
            return false;
    }
    return true;
}

bool lease_wish_equals(const struct lease_wish *one, const struct lease_wish *other)
{
    return one->asked == other->asked && lease_wish_agrees(one, other, LEASE_QUANTITIES);
}

void lease_wish_add(struct lease_wish *wish, const struct lease_wish *added)
{
    if ((added->asked & QUANTITY_BIT(QUANTITY_POWER_LIMIT)) != 0)
        wish->limit_mw = added->limit_mw;
    if ((added->asked & QUANTITY_BIT(QUANTITY_CLOCK_CEILING)) != 0)
        wish->ceiling_mhz = added->ceiling_mhz;
    if ((added->asked & QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL)) != 0)
        wish->level = added->level;
    if ((added->asked & QUANTITY_BIT(QUANTITY_PERSISTENCE)) != 0)
        wish->persistence = added->persistence;
    if ((added->asked & QUANTITY_BIT(QUANTITY_WORKLOADS)) != 0)
        wish->workloads = added->workloads;
    wish->asked |= added->asked;
}

int64_t lease_bounds_clip(const struct lease_bounds *bounds, int64_t limit_mw)
{
    if (bounds->floor_mw > 0 && limit_mw < bounds->floor_mw)
        limit_mw = bounds->floor_mw;
    if (bounds->ceiling_mw > 0 && limit_mw > bounds->ceiling_mw)
        limit_mw = bounds->ceiling_mw;
    return limit_mw;
}

bool lease_holder_is(const struct lease_holder *one, const struct lease_holder *other)
{
    if (one->uid != other->uid || one->pid != other->pid || one->elsewhere != other->elsewhere ||
        strcmp(one->token, other->token) != 0)
        return false;
    return one->pid != 0 ? one->start_ticks == other->start_ticks : one->connection == other->connection;
}

bool lease_holder_may(const struct lease_holder *one, const struct lease_holder *other)
{
    return one->uid == other->uid && strcmp(one->token, other->token) == 0 &&
           (one->uid != LEASE_NOBODY || one->token[0] != '\0') && one->elsewhere == other->elsewhere &&
           one->elsewhere >= 0;
}

char *lease_holder_text(const struct lease_holder *holder, char text[LEASE_HOLDER_TEXT_MAX])
{
    size_t length = 0;

    if (holder->program[0] != '\0')
        length += (size_t)snprintf(text, LEASE_HOLDER_TEXT_MAX, "'%.60s', ", holder->program);
    if (holder->pid != 0)
        length += (size_t)snprintf(text + length, LEASE_HOLDER_TEXT_MAX - length, "process %lld",
                                   (long long)holder->pid);
    else
        length += (size_t)snprintf(text + length, LEASE_HOLDER_TEXT_MAX - length, "a client");
    if (holder->uid != LEASE_NOBODY)
        snprintf(text + length, LEASE_HOLDER_TEXT_MAX - length, " of user %lld", (long long)holder->uid);
    else if (holder->token[0] != '\0')
        snprintf(text + length, LEASE_HOLDER_TEXT_MAX - length, " with the token '%.60s'", holder->token);
    harmless_make_ascii(text);
    return text;
}
