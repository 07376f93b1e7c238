/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_LEASE_TABLE_H
#define FLYBALL_NODE_LEASE_LEASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * Who has leased the knobs of which GPUs, and what each GPU is to be set to because of that.
 *
 *     struct lease_table *table;
 *     struct lease lease;
 *     struct lease_effect effect;
 *
 *     lease_table_new(&(struct lease_table_options){.gpu_count = 2}, &table, out_error);
 *     lease_table_grant(table, &ask, now, "5f0c...", &lease, out_error);
 *     lease_table_effect(table, 0, &effect);      effect.wish.limit_mw is what GPU 0 is to have
 *     lease_table_end(table, lease.id, &lease, out_error);
 *     lease_table_free(table);
 *
 * A lease is a wish for some GPUs: the quantities that it asks for, each with one value. It ends
 * when it is given back, when its connection or its process ends, or when it is not renewed in
 * time. The table is pure: it reads no clock, looks at no process and calls no driver; time, ends
 * and ids come as arguments. It allocates nothing after lease_table_new. For one thread at a time.
 *
 * If two leases are on one GPU, the rule decides:
 *
 *     LEASE_RULE_REFUSE   the later is refused
 *     LEASE_RULE_LOWER    the lower power limit, the lower ceiling on a clock and the lower floor under it
 *                         win, whoever came first, and a floor above the ceiling becomes that. Profiles,
 * levels and persistence mode have no order: a lease that asks for another one than what is leased is
 * refused.
 */
enum { LEASE_ID_MAX = 40, LEASE_NAME_MAX = 64, LEASE_GPUS_MAX = 64 };

/* A moment of the boot-time clock, which goes on while the machine sleeps; 0: none. */
struct boot_time {
    int64_t ns;
};

/* What can be leased. */
enum {
    LEASE_GPU_CLOCK = QUANTITY_BIT(QUANTITY_CLOCK_FLOOR) | QUANTITY_BIT(QUANTITY_CLOCK_CEILING),
    LEASE_MEMORY_CLOCK =
        QUANTITY_BIT(QUANTITY_MEMORY_CLOCK_FLOOR) | QUANTITY_BIT(QUANTITY_MEMORY_CLOCK_CEILING),
    LEASE_QUANTITIES = QUANTITY_BIT(QUANTITY_POWER_LIMIT) | LEASE_GPU_CLOCK | LEASE_MEMORY_CLOCK |
                       QUANTITY_BIT(QUANTITY_WORKLOADS) | QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL) |
                       QUANTITY_BIT(QUANTITY_PERSISTENCE)
};

/*
 * What a lease asks for. A member counts only if its quantity is in `asked`.
 *
 * A clock is held between a floor and a ceiling, each of which may be asked for alone: then the other is
 * the clock's lowest, or its highest. "Lock the GPU's clock between 900 and 1200 MHz" is
 *
 *     struct lease_wish wish = {.asked = LEASE_GPU_CLOCK, .floor_mhz = 900, .ceiling_mhz = 1200};
 *
 * and freeing it again is leases_turn with LEASE_GPU_CLOCK in `dropped`, or a change to a wish without
 * those bits. The memory's clock: LEASE_MEMORY_CLOCK, memory_floor_mhz and memory_ceiling_mhz.
 */
struct lease_wish {
    quantity_set asked;                           /* of LEASE_QUANTITIES */
    int64_t limit_mw;                             /* > 0; QUANTITY_POWER_LIMIT */
    int64_t floor_mhz, ceiling_mhz;               /* > 0; QUANTITY_CLOCK_FLOOR, QUANTITY_CLOCK_CEILING */
    int64_t memory_floor_mhz, memory_ceiling_mhz; /* > 0; those of MEMORY_CLOCK */
    int64_t level;                                /* enum device_level; QUANTITY_PERFORMANCE_LEVEL */
    int64_t persistence;                          /* 0 or 1; QUANTITY_PERSISTENCE */
    struct workload_set workloads;                /* QUANTITY_WORKLOADS */
};

/* By whom a lease is held, and with what it ends. */
struct lease_holder {
    pid_t pid;            /* ends with this process; 0: with none */
    uint64_t start_ticks; /* of that process, since the boot; tells it from a later one of that number */
    uint64_t connection;  /* ends with this connection; 0: with none */
    uid_t uid;            /* of the peer; LEASE_NOBODY: came by TCP */
    pid_t elsewhere;      /* its process, if that is in other namespaces than the daemon, where root of a
                           * container has the uid of anybody; -1: and is not visible; 0: it is not */
    char token[LEASE_NAME_MAX];   /* the name of the token that was shown; "": none */
    char program[LEASE_NAME_MAX]; /* what the client calls itself, for people; "" if it does not say */
};
#define LEASE_NOBODY ((uid_t)-1)

/* Between which limits a GPU may be set, in mW; 0: no bound. If they cross, the ceiling wins. */
struct lease_bounds {
    int64_t floor_mw, ceiling_mw;
};

/* What is asked for in a new lease. */
struct lease_ask {
    struct lease_holder holder;
    uint64_t gpus; /* bit N is GPU N */
    struct lease_wish wish;
    struct lease_bounds bounds; /* of the holder's rights, the tightest of all its GPUs */
    struct boot_time expiry;    /* when it ends unless it is renewed; 0: it need not be renewed */
    bool plain;                 /* of a client that knows no leases; see leases_turn */
    bool overrules;             /* other users' work on the GPU does not keep it from turning */
};

struct lease {
    char id[LEASE_ID_MAX];
    struct lease_ask ask;
    struct boot_time granted;
};

enum lease_rule { LEASE_RULE_REFUSE, LEASE_RULE_LOWER, LEASE_RULE_COUNT };

/* What all leases of a GPU come to. */
struct lease_effect {
    size_t leases;          /* on this GPU; 0: nothing is asked for */
    struct lease_wish wish; /* within the GPU's bounds */
};

struct lease_table;

struct lease_table_options {
    size_t gpu_count; /* at first; at most LEASE_GPUS_MAX */
    size_t maximum;   /* of leases; 0: 256 */
    size_t per_user;  /* of leases of one user, or of one token; 0: 64 */
    enum lease_rule rule;
};

/* FLY_ELIMIT, FLY_ENOMEM. */
int lease_table_new(const struct lease_table_options *options, struct lease_table **out_table,
                    struct fly_error *out_error);
void lease_table_free(struct lease_table *table);

/* From now on there are so many GPUs, at least as many as before and at most LEASE_GPUS_MAX. */
void lease_table_extend(struct lease_table *table, size_t gpu_count);

/* Sets the operator's bounds of a GPU; they hold for leases that exist, too. */
void lease_table_bound(struct lease_table *table, size_t gpu, const struct lease_bounds *bounds);
/* Sets the rule for grants and changes from now on. */
void lease_table_rule(struct lease_table *table, enum lease_rule rule);

/*
 * Grants a lease under an id that nobody can guess. FLY_EUSAGE for a wish without a quantity, a
 * value that cannot be or a GPU that is not there; FLY_ECONFLICT if another lease is in the way,
 * with its holder; FLY_ELIMIT for too many; FLY_ESTATE for an expiry that has passed, and for an
 * id that exists.
 */
int lease_table_grant(struct lease_table *table, const struct lease_ask *ask, struct boot_time now,
                      const char *id, struct lease *out_lease, struct fly_error *out_error);

/*
 * Replaces a lease's wish. FLY_ENOTFOUND, also for a lease whose time has passed; else the errors
 * of lease_table_grant, after which the wish is as before.
 */
int lease_table_change(struct lease_table *table, const char *id, const struct lease_wish *wish,
                       struct boot_time now, struct lease *out_lease, struct fly_error *out_error);

/* Moves the expiry, later or earlier. FLY_ENOTFOUND, also for a lease whose time has passed. */
int lease_table_renew(struct lease_table *table, const char *id, struct boot_time expiry,
                      struct boot_time now, struct lease *out_lease, struct fly_error *out_error);

/* Ends a lease. FLY_ENOTFOUND. */
int lease_table_end(struct lease_table *table, const char *id, struct lease *out_ended,
                    struct fly_error *out_error);

/*
 * Ends the leases for which `is_over` is true; at most `maximum` of them, the oldest first. Returns how many
 * were ended.
 */
size_t lease_table_end_if(struct lease_table *table, bool (*is_over)(const struct lease *, const void *state),
                          const void *state, struct lease *out_ended, size_t maximum);

/* Gives the lease of that id; FLY_ENOTFOUND. */
int lease_table_find(const struct lease_table *table, const char *id, struct lease *out_lease,
                     struct fly_error *out_error);

/* Lists leases, the oldest first, at most `maximum`; returns how many there are. */
size_t lease_table_list(const struct lease_table *table, struct lease *out_leases, size_t maximum);

/* Calls `visit` for each lease on a GPU, the oldest first. */
void lease_table_visit(const struct lease_table *table, size_t gpu,
                       void (*visit)(void *state, const struct lease *lease), void *state);

/* Gives what the leases of a GPU come to. */
void lease_table_effect(const struct lease_table *table, size_t gpu, struct lease_effect *out_effect);

/* Returns the limit within the bounds. */
int64_t lease_bounds_clip(const struct lease_bounds *bounds, int64_t limit_mw);

/* Returns whether two holders are the same process, or without one the same connection, token and user. */
bool lease_holder_is(const struct lease_holder *one, const struct lease_holder *other);

/*
 * Returns whether a lease of the one holder is the other's to change and end: they are of the same user,
 * or showed the same token. Processes in other namespaces have only leases of their own.
 */
bool lease_holder_may(const struct lease_holder *one, const struct lease_holder *other);

/* Writes who holds a lease, for people: "'flyball run', process 4711 of user 1000". */
enum { LEASE_HOLDER_TEXT_MAX = 200 };
char *lease_holder_text(const struct lease_holder *holder, char text[LEASE_HOLDER_TEXT_MAX]);

/* Returns where a wish has the number of a quantity; NULL for QUANTITY_WORKLOADS, and what is no wish. */
int64_t *lease_wish_number(struct lease_wish *wish, enum quantity quantity);
int64_t lease_wish_value(const struct lease_wish *wish, enum quantity quantity); /* 0 for those */

/* Returns whether two wishes are the same. */
bool lease_wish_equals(const struct lease_wish *one, const struct lease_wish *other);

/* Returns whether two wishes ask for the same of those quantities for which both ask. */
bool lease_wish_agrees(const struct lease_wish *one, const struct lease_wish *other, quantity_set among);

/* Adds what the second wish asks for to the first, over what that asks for. */
void lease_wish_add(struct lease_wish *wish, const struct lease_wish *added);

#endif
