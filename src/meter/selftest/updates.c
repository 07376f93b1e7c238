/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/selftest/updates.h"

#include <math.h>

/* If at least this share of polls shows a change, the updates may have been faster than the polls. */
static const double share_of_polls = 0.5;

void updates_init(struct updates *updates, double *periods_s, size_t capacity)
{
    *updates = (struct updates){.periods_s = periods_s, .capacity = capacity};
}

void updates_add(struct updates *updates, struct mono_time when, int64_t value)
{
    if (updates->polls++ == 0)
        updates->first = when;
    else if (value != updates->value) {
        /* The first change ends a period whose start was not seen. */
        if (updates->changes++ > 0 && updates->count < updates->capacity)
            updates->periods_s[updates->count++] = mono_elapsed_s(updates->changed, when);
        updates->changed = when;
    }
    updates->value = value;
    updates->last = when;
}

struct update_finding updates_find(struct updates *updates)
{
    struct update_finding finding = {.polls = updates->polls, .changes = updates->changes, .poll_s = NAN};

    if (updates->polls > 1)
        finding.poll_s = mono_elapsed_s(updates->first, updates->last) / (double)(updates->polls - 1);
    finding.period_s = spread_of(updates->periods_s, updates->count);
    finding.at_most =
        updates->count > 0 && (double)updates->changes > share_of_polls * (double)updates->polls;
    return finding;
}
