/* SPDX-License-Identifier: Apache-2.0 */
/* What a look at a GPU adds to the rows of its ledger. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/share/share_rows.h"
#include "node/share/share_split.h"

enum { EMPTY_LOOKS = 2, MEMBERS_MAX = SPLIT_MEMBERS_MAX };

/* With nobody there: busier than that, somebody is who is not visible. */
static const double busy_share = 0.1, busy_factor = 1.5, busy_extra_w = 25.0;
/* Idle power is the mean of so much idle time. */
static const double floor_time_s = 60.0;
/* Between two of the driver's samples of use. */
static const double sample_s = 1.0 / 6.0;

/* All who were there at one of the two looks, by process. */
struct gathering {
    size_t count;
    uint64_t processes[MEMBERS_MAX];
    struct share_member members[MEMBERS_MAX];
};

/* ---- who is there ---- */

static int by_process(const void *one, const void *other)
{
    uint64_t a = ((const struct ledger_seen *)one)->process, b = ((const struct ledger_seen *)other)->process;

    return (a > b) - (a < b);
}

/* Two that have one number become one. */
static void merge_seen(struct ledger_seen *into, const struct ledger_seen *from)
{
    into->use += from->use;
    into->together = into->together || from->together;
    into->passive = into->passive && from->passive;
    into->age_s = fmax(into->age_s, from->age_s);
    if (into->memory_bytes != UINT64_MAX && from->memory_bytes != UINT64_MAX)
        into->memory_bytes += from->memory_bytes;
}

/* Sorts by process, each once; those beyond the maximum are others. */
static size_t sort_seen(const struct ledger_look *look, struct ledger_seen *out_seen)
{
    struct ledger_seen sorted[MEMBERS_MAX], others = {.process = LEDGER_OTHERS, .passive = true};
    size_t taken = look->count < MEMBERS_MAX ? look->count : MEMBERS_MAX, count = 0;
    bool more = false;

    memcpy(sorted, look->seen, taken * sizeof *sorted);
    qsort(sorted, taken, sizeof *sorted, by_process);
    for (size_t i = 0; i < taken; i++) {
        const struct ledger_seen *seen = &sorted[i];

        if (count > 0 && out_seen[count - 1].process == seen->process)
            merge_seen(&out_seen[count - 1], seen);
        else if (count < LEDGER_PRESENT_MAX || seen->process == LEDGER_INVISIBLE)
            out_seen[count++] = *seen;
        else
            merge_seen(&others, seen);
        more = more || count >= LEDGER_PRESENT_MAX;
    }
    if (!more || others.passive)
        return count;
    if (out_seen[0].process == LEDGER_OTHERS) {
        merge_seen(&out_seen[0], &others);
        return count;
    }
    memmove(&out_seen[1], &out_seen[0], count * sizeof *out_seen);
    out_seen[0] = others;
    return count + 1;
}

static bool is_at_work(const struct ledger_seen *seen, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!seen[i].passive)
            return true;
    }
    return false;
}

/* An appearance lies between the looks, and not before the process was started. */
static void add_member(struct gathering *all, const struct ledger_seen *before, const struct ledger_seen *now,
                       double duration_s)
{
    const struct ledger_seen *seen = now != NULL ? now : before;
    struct share_member *member = &all->members[all->count];
    double most = 1.0;

    if (all->count == MEMBERS_MAX)
        return;
    if (before == NULL && duration_s > 0.0)
        most = fmin(1.0, fmax(0.0, seen->age_s) / duration_s);
    *member = (struct share_member){.least = before != NULL && now != NULL ? 1.0 : 0.0,
                                    .most = most,
                                    .use = now == NULL ? seen->use / 2.0 : seen->use,
                                    .together = seen->together,
                                    .went = now == NULL};
    all->processes[all->count++] = seen->process;
}

/* Those without work of their own count only if nobody else is there. */
static void gather(const struct ledger *ledger, const struct ledger_seen *now, size_t count,
                   double duration_s, struct gathering *out)
{
    bool at_work = is_at_work(ledger->present, ledger->present_count) || is_at_work(now, count);
    size_t i = 0, j = 0;

    out->count = 0;
    while (i < ledger->present_count || j < count) {
        const struct ledger_seen *before = i < ledger->present_count ? &ledger->present[i] : NULL;
        const struct ledger_seen *after = j < count ? &now[j] : NULL;

        if (before != NULL && after != NULL && before->process != after->process)
            *(before->process < after->process ? &after : &before) = NULL;
        i += before != NULL;
        j += after != NULL;
        if (!at_work || !(after != NULL ? after : before)->passive)
            add_member(out, before, after, duration_s);
    }
}

/* ---- what they get ---- */

static void credit(struct ledger *ledger, struct ledger_row *row, const struct share_part *part,
                   double duration_s)
{
    row->energy_uj += part->energy_uj;
    row->half_width_uj += part->half_width_uj;
    row->variance_uj2 += part->variance_uj2;
    row->time_s += part->time_s;
    row->power_w = duration_s > 0.0 ? (double)part->energy_uj * 1e-6 / duration_s : NAN;
    ledger->energy_uj += part->energy_uj;
}

static void credit_whole(struct ledger *ledger, struct ledger_row *row, int64_t energy_uj, double duration_s,
                         double gain)
{
    const struct share_part part = {
        .energy_uj = energy_uj, .half_width_uj = gain * (double)energy_uj, .time_s = duration_s};

    credit(ledger, row, &part, duration_s);
}

static void credit_members(struct ledger *ledger, const struct share_interval *interval,
                           const struct gathering *all)
{
    struct share_part parts[MEMBERS_MAX], rest;
    bool apart = share_split(interval, parts, &rest);

    for (size_t i = 0; i < all->count; i++) {
        struct ledger_row *row = ledger_row_of(ledger, all->processes[i]);

        credit(ledger, row, &parts[i], interval->duration_s);
        if (apart)
            continue;
        row->power_w = NAN;
        row->shared_s += parts[i].time_s;
    }
    if (apart && (rest.energy_uj > 0 || rest.time_s > 0.0))
        credit(ledger, &ledger->idle, &rest, interval->duration_s);
    if (!apart)
        credit(ledger, ledger_set_of(ledger, all->processes, all->count), &rest, interval->duration_s);
}

static bool is_busy(const struct ledger *ledger, const struct ledger_look *look, double power_w)
{
    if (isfinite(look->utilization))
        return look->utilization >= busy_share;
    return isfinite(ledger->floor_w) && power_w > ledger->floor_w * busy_factor + busy_extra_w;
}

static void learn_floor(struct ledger *ledger, double power_w, double duration_s)
{
    double part = fmin(1.0, duration_s / floor_time_s);

    if (!isfinite(ledger->floor_w))
        ledger->floor_w = power_w;
    else
        ledger->floor_w += part * (power_w - ledger->floor_w);
}

/* Nobody was there at both looks. After a process ends, the GPU takes a while to become idle. */
static void credit_nobody(struct ledger *ledger, const struct ledger_look *look, int64_t energy_uj,
                          double duration_s)
{
    double power_w = duration_s > 0.0 ? (double)energy_uj * 1e-6 / duration_s : NAN;
    bool busy = ledger->empty_looks >= EMPTY_LOOKS && is_busy(ledger, look, power_w);

    credit_whole(ledger, busy ? &ledger->unobserved : &ledger->idle, energy_uj, duration_s, look->gain);
    if (!busy && ledger->empty_looks >= EMPTY_LOOKS && isfinite(power_w) && look->listed && ledger->known)
        learn_floor(ledger, power_w, duration_s);
}

/* ---- who came and went ---- */

static bool is_among(const struct ledger_seen *seen, size_t count, uint64_t process)
{
    while (count > 0 && seen[count - 1].process != process)
        count--;
    return count > 0;
}

static void note_present(struct ledger *ledger, const struct ledger_look *look, const struct ledger_seen *now,
                         size_t count)
{
    for (size_t i = 0; i < ledger->present_count; i++) {
        struct ledger_row *row = ledger_row_of(ledger, ledger->present[i].process);

        if (is_among(now, count, ledger->present[i].process))
            continue;
        row->ended_unix_ms = look->unix_ms;
        row->power_w = NAN;
        row->memory_bytes = UINT64_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        struct ledger_row *row = ledger_row_of(ledger, now[i].process);

        if (row->began_unix_ms == 0)
            row->began_unix_ms = look->unix_ms;
        row->ended_unix_ms = 0;
        row->memory_bytes = now[i].memory_bytes;
    }
    ledger->present_count = count;
    memcpy(ledger->present, now, count * sizeof *now);
    ledger->empty_looks = count > 0 ? 0 : ledger->empty_looks + 1;
}

static void clear_powers(struct ledger *ledger)
{
    ledger->idle.power_w = ledger->unobserved.power_w = ledger->others.power_w = 0.0;
    for (size_t i = 0; i < ledger->set_count; i++)
        ledger->sets[i].row.power_w = 0.0;
}

/* Of the energy since the last look: what nobody can say of who drew it. */
static int64_t missed_of(const struct ledger *ledger, const struct ledger_look *look, int64_t energy_uj)
{
    int64_t missed_uj = look->unobserved_uj - ledger->unobserved_uj;

    if (!look->listed)
        return look->utilization <= 0.0 && ledger->at.ns != 0 ? 0 : energy_uj;
    if (!ledger->known || missed_uj > energy_uj)
        return energy_uj;
    return missed_uj > 0 ? missed_uj : 0;
}

/* Who was there gets the energy that is left. */
static void credit_seen(struct ledger *ledger, const struct ledger_look *look, const struct ledger_seen *now,
                        size_t count, int64_t energy_uj, double duration_s)
{
    struct gathering all = {.count = 0};

    if (ledger->known && look->listed)
        gather(ledger, now, count, duration_s, &all);
    if (all.count > 0) {
        const struct share_interval interval = {.energy_uj = energy_uj,
                                                .duration_s = duration_s,
                                                .floor_w = ledger->floor_w,
                                                .lag_s = look->lag_s,
                                                .gain = look->gain,
                                                .sample_s = sample_s,
                                                .open = ledger->present_count == 0 || count == 0,
                                                .count = all.count,
                                                .members = all.members};

        credit_members(ledger, &interval, &all);
    } else if (energy_uj > 0) {
        credit_nobody(ledger, look, energy_uj, duration_s);
    }
}

void ledger_take(struct ledger *ledger, const struct ledger_look *look)
{
    struct ledger_seen now[LEDGER_PRESENT_MAX + 2];
    int64_t energy_uj = look->energy_uj - ledger->energy_uj, missed_uj;
    bool first = ledger->at.ns == 0;
    double duration_s = first ? 0.0 : mono_elapsed_s(ledger->at, look->at);
    size_t count;

    if (energy_uj < 0 || (!first && look->at.ns <= ledger->at.ns))
        return;
    count = look->listed ? sort_seen(look, now) : 0;
    missed_uj = missed_of(ledger, look, energy_uj);
    clear_powers(ledger);
    if (missed_uj > 0)
        credit_whole(ledger, &ledger->unobserved, missed_uj, energy_uj > missed_uj ? 0.0 : duration_s,
                     look->gain);
    if (energy_uj > missed_uj || missed_uj == 0)
        credit_seen(ledger, look, now, count, energy_uj - missed_uj, duration_s);
    if (look->listed)
        note_present(ledger, look, now, count);
    ledger->known = look->listed;
    ledger->at = look->at;
    ledger->unobserved_uj = look->unobserved_uj;
}
