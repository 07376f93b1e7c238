/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_CACHE_H
#define FLYBALL_GRID_GRID_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "grid/online.h"

/*
 * Decides whether a server may be asked now: two records, which all processes of a machine share
 * in files (grid_cache.h), and the rules over them. Uses no clock, no file and no random source
 * of its own.
 *
 * The record of a query, one kind of question about one place, says what was asked for and when.
 * A new request is made if a period has begun since the last one, or for times that were not
 * asked for. What ended more than ASK_REVISED_S before it was asked for is not asked for again. A
 * refusal (no such zone, no right to it) holds for ASK_REFUSED_S.
 *
 * The record of a service says how often it failed in a row, and until when to leave it alone:
 *
 *     failures         wait
 *     1, 2, 3, 4       30 s, 60 s, 120 s, 240 s, of which luck takes up to a half
 *     5 and more       the circuit is open: 15 min, 30 min, 1 h, likewise
 *     Retry-After      as long as it says, at most a day, and never shorter than above
 *
 * After a failure, one process at a time tries whether the service works again: it claims the try
 * for ASK_TRY_S before it asks. Times are seconds since 1970. A wait longer than any that these
 * rules set comes from a clock that was turned back, and is ignored.
 */
enum {
    ASK_REVISED_S = 7 * 86400,
    ASK_REFUSED_S = 600,
    ASK_TRY_S = 60,
    ASK_BREAK_AT = 5,
    ASK_RETRY_AFTER_MOST_S = 86400,
};

struct ask_query {
    int64_t from_s, to_s;    /* what was asked for and answered; from_s == to_s: nothing yet */
    int64_t asked_s;         /* when the newest of it was asked for */
    int64_t refused_until_s; /* 0: not refused */
};

/* Returns whether [from_s, to_s) has to be asked for; a period takes `step_s` > 0. */
bool ask_is_due(const struct ask_query *query, int64_t from_s, int64_t to_s, int64_t step_s, int64_t now_s);

/* Records an answer; a span that touches the recorded one is joined to it, any other replaces it. */
void ask_note_answer(struct ask_query *query, int64_t from_s, int64_t to_s, int64_t now_s);
void ask_note_refusal(struct ask_query *query, int64_t now_s);
bool ask_is_refused(const struct ask_query *query, int64_t now_s);

struct ask_service {
    uint32_t failures;       /* in a row */
    int64_t blocked_until_s; /* 0: not blocked */
};

/* Returns the seconds to wait before the service may be asked; 0: ask now. */
int64_t ask_wait_s(const struct ask_service *service, int64_t now_s);

/* Records that a process is about to ask. */
void ask_set_out(struct ask_service *service, int64_t now_s);

/* Records that the service answered, even if with a refusal. */
void ask_went_well(struct ask_service *service);

/*
 * Records a failure; `retry_after_s` is the wait that the service asks for, or 0; `luck` is a
 * random number.
 */
void ask_failed(struct ask_service *service, double retry_after_s, uint64_t luck, int64_t now_s);

/* The content of the cache's files (grid_cache.h). Pure except for memory. */

enum {
    CACHE_PERIODS_MAX = 1 << 16, /* of a series, the newest: seven months of five minutes each */
    CACHE_BYTES_MAX = 16 << 20,  /* of a file */
    CACHE_REASON_MAX = 200,
};

/* What is kept of one source. */
struct cache_content {
    struct grid_answer answer; /* settled; owned */
    struct ask_query queries[ONLINE_QUERY_COUNT];
    char reasons[ONLINE_QUERY_COUNT][CACHE_REASON_MAX]; /* of refusals */
};

void cache_content_deinit(struct cache_content *content);

/* Adds an answer; where both have a value for the same time, the newer one stays. */
int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error);

/*
 * Write the text of a source's file, and read it back; false for a text that is not of this
 * source. Pure except for memory.
 */
int cache_content_write(const struct cache_content *content, const char *source, struct buffer *out,
                        struct fly_error *out_error);
bool cache_content_read(const char *text, size_t length, const char *source, const struct grid_kind *kind,
                        struct cache_content *out_content);
void cache_service_write(const struct ask_service *service, const char *name, struct buffer *out);
bool cache_service_read(const char *text, size_t length, const char *name, struct ask_service *out_service);

/*
 * Keeps what services answered and when they were asked, in files that all processes of a user
 * share:
 *
 *     FLYBALL_CARBON_CACHE, $XDG_CACHE_HOME/flyball/carbon or ~/.cache/flyball/carbon
 *         gb-0123456789abcdef.source    figures of one source, and its queries
 *         gb-0123456789abcdef.lock      held by the process that asks for it
 *         gb-fedcba9876543210.service   the state of the service
 *         gb-fedcba9876543210.turn      held while that is changed
 *
 * A source is provider, address, place, signal and scope; a service is provider and address.
 * Files are replaced whole, are read without a lock, and have a checksum. A file that is torn, of
 * another version or of another source counts as missing, and the next answer replaces it. No
 * file contains a key or a token. Only the user can access the directory.
 */
enum { CACHE_PATH_MAX = 512, CACHE_NAME_MAX = 64, CACHE_SOURCE_MAX = 512 };

struct grid_cache {
    char directory[CACHE_PATH_MAX];
    char source[CACHE_SOURCE_MAX], service[CACHE_SOURCE_MAX]; /* as texts */
    char source_name[CACHE_NAME_MAX], service_name[CACHE_NAME_MAX];
    const atomic_bool *abandon; /* once it is set, no lock is waited for; NULL after opening */
};

/* Finds the directory, and makes it if needed. FLY_ENOTFOUND, FLY_EPERM, FLY_EWRITE, FLY_ELIMIT. */
int grid_cache_open(struct grid_cache *cache, const char *provider, const char *base, const char *place,
                    const struct grid_kind *kind, struct fly_error *out_error);

/* Loads what is kept, which may be nothing. */
void grid_cache_load(const struct grid_cache *cache, const struct grid_kind *kind,
                     struct cache_content *out_content);
int grid_cache_save(const struct grid_cache *cache, const struct cache_content *content,
                    struct fly_error *out_error);

/*
 * Waits at most that long for the source's lock. Gives a descriptor to close, or FLY_EBUSY,
 * FLY_EPERM, FLY_EWRITE.
 */
int grid_cache_lock(const struct grid_cache *cache, double wait_s, int *out_lock,
                    struct fly_error *out_error);

/*
 * Between these two calls nobody else changes the service's state. An unreadable state counts as
 * a good one.
 */
int grid_cache_take_service(const struct grid_cache *cache, struct ask_service *out_service, int *out_lock,
                            struct fly_error *out_error);
int grid_cache_give_service(const struct grid_cache *cache, const struct ask_service *service, int lock,
                            struct fly_error *out_error);

#endif
