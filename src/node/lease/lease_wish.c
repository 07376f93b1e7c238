/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes, bounds and holders: compared, joined and described. */
#include <stdio.h>
#include <string.h>

#include "base/harmless.h"
#include "node/lease/lease_table.h"

int64_t *lease_wish_number(struct lease_wish *wish, enum quantity quantity)
{
    switch (quantity) {
    case QUANTITY_POWER_LIMIT:
        return &wish->limit_mw;
    case QUANTITY_CLOCK_CEILING:
        return &wish->ceiling_mhz;
    case QUANTITY_CLOCK_FLOOR:
        return &wish->floor_mhz;
    case QUANTITY_MEMORY_CLOCK_CEILING:
        return &wish->memory_ceiling_mhz;
    case QUANTITY_MEMORY_CLOCK_FLOOR:
        return &wish->memory_floor_mhz;
    case QUANTITY_PERFORMANCE_LEVEL:
        return &wish->level;
    case QUANTITY_PERSISTENCE:
        return &wish->persistence;
    default:
        return NULL;
    }
}

int64_t lease_wish_value(const struct lease_wish *wish, enum quantity quantity)
{
    struct lease_wish copy = *wish;
    const int64_t *number = lease_wish_number(&copy, quantity);

    return number != NULL ? *number : 0;
}

static bool is_same(const struct lease_wish *one, const struct lease_wish *other, enum quantity quantity)
{
    return quantity == QUANTITY_WORKLOADS
               ? workload_equals(&one->workloads, &other->workloads)
               : lease_wish_value(one, quantity) == lease_wish_value(other, quantity);
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
    for (int i = 0; i < QUANTITY_NAMED_COUNT; i++) {
        int64_t *number = lease_wish_number(wish, (enum quantity)i);

        if ((added->asked & QUANTITY_BIT(i)) != 0 && number != NULL)
            *number = lease_wish_value(added, (enum quantity)i);
    }
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
