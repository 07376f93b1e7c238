/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is an array in the order of the grants. There are few leases, so each question is one
 * pass over it.
 */
#include "node/lease/lease_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { MAXIMUM = 256, PER_USER = 64 };
/* What has no order, so that two leases must ask for the same. */
enum {
    UNORDERED = QUANTITY_BIT(QUANTITY_WORKLOADS) | QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL) |
                QUANTITY_BIT(QUANTITY_PERSISTENCE)
};

struct lease_table {
    struct lease_table_options options;
    struct lease_bounds bounds[LEASE_GPUS_MAX];
    size_t count;
    struct lease leases[];
};

int lease_table_new(const struct lease_table_options *options, struct lease_table **out_table,
                    struct fly_error *out_error)
{
    size_t maximum = options->maximum != 0 ? options->maximum : MAXIMUM;
    struct lease_table *table;

    if (options->gpu_count > LEASE_GPUS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%zu GPUs are more than the %d that can be leased",
                         options->gpu_count, LEASE_GPUS_MAX);
    table = calloc(1, sizeof *table + maximum * sizeof table->leases[0]);
    if (table == NULL)
        return error_no_memory(out_error);
    table->options = *options;
    table->options.maximum = maximum;
    if (options->per_user == 0)
        table->options.per_user = PER_USER;
    *out_table = table;
    return 0;
}

void lease_table_free(struct lease_table *table)
{
    free(table);
}

void lease_table_extend(struct lease_table *table, size_t gpu_count)
{
    if (gpu_count > table->options.gpu_count && gpu_count <= LEASE_GPUS_MAX)
        table->options.gpu_count = gpu_count;
}

void lease_table_bound(struct lease_table *table, size_t gpu, const struct lease_bounds *bounds)
{
    if (gpu < LEASE_GPUS_MAX)
        table->bounds[gpu] = *bounds;
}

void lease_table_rule(struct lease_table *table, enum lease_rule rule)
{
    table->options.rule = rule;
}

static bool is_late(const struct lease_ask *ask, struct boot_time now)
{
    return ask->expiry.ns != 0 && ask->expiry.ns <= now.ns;
}

/* Returns the place of the lease, or table->count. */
static size_t place_of(const struct lease_table *table, const char *id)
{
    size_t i = 0;

    while (i < table->count && strcmp(table->leases[i].id, id) != 0)
        i++;
    return i;
}

/* Returns the lease, or NULL if it has ended or its time has passed. */
static struct lease *find_valid(struct lease_table *table, const char *id, struct boot_time now)
{
    size_t place = place_of(table, id);

    return place < table->count && !is_late(&table->leases[place].ask, now) ? &table->leases[place] : NULL;
}

static int not_found(const char *id, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ENOTFOUND,
                     "there is no lease '%.40s', or it has ended; ask for a new one", id);
}

static int check_clock(const struct lease_wish *wish, enum quantity ceiling, enum quantity floor,
                       struct fly_error *out_error)
{
    long long ceiling_mhz = lease_wish_value(wish, ceiling), floor_mhz = lease_wish_value(wish, floor);
    bool has_ceiling = (wish->asked & QUANTITY_BIT(ceiling)) != 0,
         has_floor = (wish->asked & QUANTITY_BIT(floor)) != 0;

    if ((has_ceiling && ceiling_mhz <= 0) || (has_floor && floor_mhz <= 0))
        return error_set(out_error, FLY_EUSAGE, "a %s of %lld MHz cannot be; give one above 0",
                         quantity_facts[has_ceiling && ceiling_mhz <= 0 ? ceiling : floor].title,
                         has_ceiling && ceiling_mhz <= 0 ? ceiling_mhz : floor_mhz);
    if (has_ceiling && has_floor && floor_mhz > ceiling_mhz)
        return error_set(out_error, FLY_EUSAGE,
                         "a %s of %lld MHz cannot be above the ceiling of %lld MHz; give a lower one",
                         quantity_facts[floor].title, floor_mhz, ceiling_mhz);
    return 0;
}

static int check_wish(const struct lease_wish *wish, struct fly_error *out_error)
{
    int code;

    if (wish->asked == 0 || (wish->asked & ~(quantity_set)LEASE_QUANTITIES) != 0)
        return error_set(out_error, FLY_EUSAGE, "the lease asks for nothing that can be leased");
    if ((wish->asked & QUANTITY_BIT(QUANTITY_POWER_LIMIT)) != 0 && wish->limit_mw <= 0)
        return error_set(out_error, FLY_EUSAGE, "a power limit of %lld mW cannot be; give one above 0",
                         (long long)wish->limit_mw);
    code = check_clock(wish, QUANTITY_CLOCK_CEILING, QUANTITY_CLOCK_FLOOR, out_error);
    if (code == 0)
        code = check_clock(wish, QUANTITY_MEMORY_CLOCK_CEILING, QUANTITY_MEMORY_CLOCK_FLOOR, out_error);
    if (code < 0)
        return code;
    if ((wish->asked & QUANTITY_BIT(QUANTITY_PERSISTENCE)) != 0 && wish->persistence != 0 &&
        wish->persistence != 1)
        return error_set(out_error, FLY_EUSAGE, "persistence mode is 0 or 1, not %lld",
                         (long long)wish->persistence);
    return 0;
}

static int check_ask(const struct lease_table *table, const struct lease_ask *ask,
                     struct fly_error *out_error)
{
    size_t count = table->options.gpu_count;

    if (ask->gpus == 0 || (count < LEASE_GPUS_MAX && ask->gpus >> count != 0))
        return error_set(out_error, FLY_EUSAGE, "the lease names %s; there are %zu",
                         ask->gpus == 0 ? "no GPU" : "a GPU that is not there", count);
    return check_wish(&ask->wish, out_error);
}

/* The number of leases of one user, or of one token. A user elsewhere takes no room of the machine's own. */
static size_t leases_of(const struct lease_table *table, const struct lease_holder *holder)
{
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct lease_holder *other = &table->leases[i].ask.holder;

        count += other->uid == holder->uid && (other->elsewhere == 0) == (holder->elsewhere == 0) &&
                 strcmp(other->token, holder->token) == 0;
    }
    return count;
}

static int check_room(const struct lease_table *table, const struct lease_holder *holder,
                      struct fly_error *out_error)
{
    if (table->count == table->options.maximum)
        return error_set(out_error, FLY_ELIMIT, "all %zu leases are taken; end some", table->options.maximum);
    if (leases_of(table, holder) >= table->options.per_user)
        return error_set(out_error, FLY_ELIMIT,
                         "you have %zu leases already, as many as one user may; end some",
                         table->options.per_user);
    return 0;
}

/* Looks for a lease in the way of this wish; `own` is not. */
static int check_conflicts(const struct lease_table *table, uint64_t gpus, const struct lease_wish *wish,
                           const struct lease *own, struct fly_error *out_error)
{
    char text[LEASE_HOLDER_TEXT_MAX];

    for (size_t i = 0; i < table->count; i++) {
        const struct lease *other = &table->leases[i];

        if (other == own || (other->ask.gpus & gpus) == 0)
            continue;
        if (table->options.rule == LEASE_RULE_LOWER && lease_wish_agrees(&other->ask.wish, wish, UNORDERED))
            continue;
        return error_set(out_error, FLY_ECONFLICT,
                         "GPU %d is leased already by %.150s; wait for that lease to end, or use another GPU",
                         __builtin_ctzll(other->ask.gpus & gpus),
                         lease_holder_text(&other->ask.holder, text));
    }
    return 0;
}

int lease_table_grant(struct lease_table *table, const struct lease_ask *ask, struct boot_time now,
                      const char *id, struct lease *out_lease, struct fly_error *out_error)
{
    struct lease *lease = &table->leases[table->count];
    int code = check_ask(table, ask, out_error);

    if (code == 0 && is_late(ask, now))
        code = error_set(out_error, FLY_ESTATE, "the lease would end before it begins; ask for more time");
    if (code == 0 && (place_of(table, id) < table->count || id[0] == '\0' || strlen(id) >= LEASE_ID_MAX))
        code = error_set(out_error, FLY_ESTATE, "the id '%.40s' of a lease is none, or not new", id);
    if (code == 0)
        code = check_conflicts(table, ask->gpus, &ask->wish, NULL, out_error);
    if (code == 0)
        code = check_room(table, &ask->holder, out_error);
    if (code < 0)
        return code;
    *lease = (struct lease){.ask = *ask, .granted = now};
    snprintf(lease->id, sizeof lease->id, "%s", id);
    table->count++;
    *out_lease = *lease;
    return 0;
}

int lease_table_change(struct lease_table *table, const char *id, const struct lease_wish *wish,
                       struct boot_time now, struct lease *out_lease, struct fly_error *out_error)
{
    struct lease *lease = find_valid(table, id, now);
    int code;

    if (lease == NULL)
        return not_found(id, out_error);
    code = check_wish(wish, out_error);
    if (code == 0)
        code = check_conflicts(table, lease->ask.gpus, wish, lease, out_error);
    if (code < 0)
        return code;
    lease->ask.wish = *wish;
    *out_lease = *lease;
    return 0;
}

int lease_table_renew(struct lease_table *table, const char *id, struct boot_time expiry,
                      struct boot_time now, struct lease *out_lease, struct fly_error *out_error)
{
    struct lease *lease = find_valid(table, id, now);

    if (lease == NULL)
        return not_found(id, out_error);
    lease->ask.expiry = expiry;
    *out_lease = *lease;
    return 0;
}

size_t lease_table_end_if(struct lease_table *table, bool (*is_over)(const struct lease *, const void *state),
                          const void *state, struct lease *out_ended, size_t maximum)
{
    size_t kept = 0, ended = 0;

    for (size_t i = 0; i < table->count; i++) {
        if (ended < maximum && is_over(&table->leases[i], state))
            out_ended[ended++] = table->leases[i];
        else if (kept++ != i)
            table->leases[kept - 1] = table->leases[i];
    }
    table->count = kept;
    return ended;
}

static bool has_id(const struct lease *lease, const void *id)
{
    return strcmp(lease->id, id) == 0;
}

int lease_table_end(struct lease_table *table, const char *id, struct lease *out_ended,
                    struct fly_error *out_error)
{
    return lease_table_end_if(table, has_id, id, out_ended, 1) == 1 ? 0 : not_found(id, out_error);
}

int lease_table_find(const struct lease_table *table, const char *id, struct lease *out_lease,
                     struct fly_error *out_error)
{
    size_t place = place_of(table, id);

    if (place == table->count)
        return not_found(id, out_error);
    *out_lease = table->leases[place];
    return 0;
}

size_t lease_table_list(const struct lease_table *table, struct lease *out_leases, size_t maximum)
{
    size_t given = table->count < maximum ? table->count : maximum;

    if (given > 0)
        memcpy(out_leases, table->leases, given * sizeof *out_leases);
    return table->count;
}

void lease_table_visit(const struct lease_table *table, size_t gpu,
                       void (*visit)(void *state, const struct lease *lease), void *state)
{
    for (size_t i = 0; gpu < LEASE_GPUS_MAX && i < table->count; i++) {
        if ((table->leases[i].ask.gpus >> gpu & 1) != 0)
            visit(state, &table->leases[i]);
    }
}

static const enum quantity ordered[] = {QUANTITY_POWER_LIMIT, QUANTITY_CLOCK_CEILING, QUANTITY_CLOCK_FLOOR,
                                        QUANTITY_MEMORY_CLOCK_CEILING, QUANTITY_MEMORY_CLOCK_FLOOR};

/* Joins a lease's wish to the effect: of what has an order, the lower. */
static void join(struct lease_wish *effect, const struct lease_ask *ask)
{
    struct lease_wish wish = ask->wish;

    wish.limit_mw = lease_bounds_clip(&ask->bounds, wish.limit_mw);
    for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++) {
        int64_t *number = lease_wish_number(&wish, ordered[i]);
        int64_t before = lease_wish_value(effect, ordered[i]);

        if ((effect->asked & QUANTITY_BIT(ordered[i])) != 0 && before < *number)
            *number = before;
    }
    lease_wish_add(effect, &wish);
}

static void join_lease(void *state, const struct lease *lease)
{
    struct lease_effect *effect = state;

    join(&effect->wish, &lease->ask);
    effect->leases++;
}

/* The floor of one lease may be above the ceiling of another; 0: it has none. */
static void lower_floor(int64_t *floor_mhz, int64_t ceiling_mhz)
{
    if (ceiling_mhz > 0 && *floor_mhz > ceiling_mhz)
        *floor_mhz = ceiling_mhz;
}

void lease_table_effect(const struct lease_table *table, size_t gpu, struct lease_effect *out_effect)
{
    struct lease_effect effect = {.leases = 0};

    lease_table_visit(table, gpu, join_lease, &effect);
    if ((effect.wish.asked & QUANTITY_BIT(QUANTITY_POWER_LIMIT)) != 0)
        effect.wish.limit_mw = lease_bounds_clip(&table->bounds[gpu], effect.wish.limit_mw);
    lower_floor(&effect.wish.floor_mhz, effect.wish.ceiling_mhz);
    lower_floor(&effect.wish.memory_floor_mhz, effect.wish.memory_ceiling_mhz);
    *out_effect = effect;
}
