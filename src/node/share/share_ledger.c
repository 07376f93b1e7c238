/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a ledger: made, found, resumed and folded. What a look adds to them is in share_take.c. */
#include "node/share/share_rows.h"

#include <math.h>
#include <string.h>

double ledger_half_width_uj(const struct ledger_row *row)
{
    return row->half_width_uj + 3.0 * sqrt(row->variance_uj2);
}

static void init_row(struct ledger_row *row, uint64_t process)
{
    *row = (struct ledger_row){.process = process, .power_w = NAN, .memory_bytes = UINT64_MAX};
}

void ledger_init(struct ledger *ledger, struct ledger_row *rows, size_t maximum)
{
    *ledger = (struct ledger){.rows = rows, .maximum = maximum, .floor_w = NAN, .set_count = 1};
    init_row(&ledger->idle, 0);
    init_row(&ledger->unobserved, 0);
    init_row(&ledger->others, 0);
    init_row(&ledger->sets[0].row, 0);
}

struct ledger_row *ledger_find(struct ledger *ledger, uint64_t process)
{
    for (size_t i = 0; i < ledger->count; i++) {
        if (ledger->rows[i].process == process)
            return &ledger->rows[i];
    }
    return NULL;
}

struct ledger_row *ledger_row_of(struct ledger *ledger, uint64_t process)
{
    struct ledger_row *row = NULL;

    if (process == LEDGER_INVISIBLE)
        return &ledger->unobserved;
    if (process != LEDGER_OTHERS)
        row = ledger_find(ledger, process);
    if (row == NULL && process != LEDGER_OTHERS && ledger->count < ledger->maximum) {
        row = &ledger->rows[ledger->count++];
        init_row(row, process);
    }
    return row != NULL ? row : &ledger->others;
}

static bool is_set(const struct ledger_set *set, const uint64_t *processes, size_t count)
{
    return set->count == count && memcmp(set->processes, processes, count * sizeof *processes) == 0;
}

struct ledger_row *ledger_set_of(struct ledger *ledger, const uint64_t *processes, size_t count)
{
    struct ledger_set *made;

    if (count > LEDGER_SHARERS_MAX)
        return &ledger->sets[0].row;
    for (size_t i = 0; i < ledger->set_count; i++) {
        if (is_set(&ledger->sets[i], processes, count))
            return &ledger->sets[i].row;
    }
    if (ledger->set_count == LEDGER_SETS_MAX)
        return &ledger->sets[0].row;
    made = &ledger->sets[ledger->set_count++];
    made->count = count;
    memcpy(made->processes, processes, count * sizeof *processes);
    init_row(&made->row, 0);
    return &made->row;
}

static void add_row(struct ledger_row *to, const struct ledger_row *from)
{
    to->energy_uj += from->energy_uj;
    to->half_width_uj += from->half_width_uj;
    to->variance_uj2 += from->variance_uj2;
    to->time_s += from->time_s;
    to->shared_s += from->shared_s;
    to->told_uj += from->told_uj;
    if (to->began_unix_ms == 0 || (from->began_unix_ms != 0 && from->began_unix_ms < to->began_unix_ms))
        to->began_unix_ms = from->began_unix_ms;
}

void ledger_resume_row(struct ledger *ledger, struct ledger_row *row, const struct ledger_row *saved)
{
    add_row(row, saved);
    row->ended_unix_ms = saved->ended_unix_ms;
    ledger->energy_uj += saved->energy_uj;
}

struct ledger_row *ledger_resume_process(struct ledger *ledger, const struct ledger_row *saved)
{
    struct ledger_row *row = ledger_row_of(ledger, saved->process);

    ledger_resume_row(ledger, row, saved);
    return row;
}

struct ledger_row *ledger_resume_set(struct ledger *ledger, const struct ledger_set *saved)
{
    struct ledger_row *row = ledger_set_of(ledger, saved->processes, saved->count);

    ledger_resume_row(ledger, row, &saved->row);
    return row;
}

static bool is_folded(struct ledger *ledger, const struct ledger_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (ledger_find(ledger, set->processes[i]) != NULL)
            return false;
    }
    return true;
}

void ledger_fold(struct ledger *ledger, uint64_t process)
{
    struct ledger_row *row = ledger_find(ledger, process);

    if (row == NULL)
        return;
    add_row(&ledger->others, row);
    *row = ledger->rows[--ledger->count];
    for (size_t i = 1; i < ledger->set_count; i++) {
        if (!is_folded(ledger, &ledger->sets[i]))
            continue;
        add_row(&ledger->sets[0].row, &ledger->sets[i].row);
        ledger->sets[i--] = ledger->sets[--ledger->set_count];
    }
}
