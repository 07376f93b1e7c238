/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_CACHE_H
#define FLYBALL_GRID_GRID_CACHE_H

#include "base/buffer.h"
#include "grid/ask_rule.h"
#include "grid/online.h"

/*
 * What services said and when they were asked, in files that all processes of a user share:
 *
 *     FLYBALL_CARBON_CACHE, $XDG_CACHE_HOME/flyball/carbon or ~/.cache/flyball/carbon
 *         gb-0123456789abcdef.source    figures of one source, and its queries
 *         gb-0123456789abcdef.lock      held by who asks for it
 *         gb-fedcba9876543210.service   how the service fares
 *         gb-fedcba9876543210.turn      held while that is changed
 *
 * A source is provider, address, place, signal and scope; a service provider and address. Files
 * are replaced whole, are read without a lock, and have a checksum: one that is torn, of
 * another version or of another source is as good as none, and replaced at the next
 * answer. No key and no token is in any. The directory is the user's alone.
 */
enum { CACHE_PATH_MAX = 512, CACHE_NAME_MAX = 64, CACHE_REASON_MAX = 200, CACHE_SOURCE_MAX = 512 };

/* Periods of a series that are kept, the newest: seven months of five minutes. */
enum { CACHE_PERIODS_MAX = 1 << 16, CACHE_BYTES_MAX = 16 << 20 };

struct grid_cache {
    char directory[CACHE_PATH_MAX];
    char source[CACHE_SOURCE_MAX], service[CACHE_SOURCE_MAX]; /* in words */
    char source_name[CACHE_NAME_MAX], service_name[CACHE_NAME_MAX];
};

/* What is kept of a source. */
struct cache_content {
    struct grid_answer answer; /* settled; owned */
    struct ask_query queries[ONLINE_QUERY_COUNT];
    char reasons[ONLINE_QUERY_COUNT][CACHE_REASON_MAX]; /* of refusals */
};

/* Finds the directory, and makes it. FLY_ECONFIG, FLY_EPERM, FLY_EWRITE, FLY_ELIMIT. */
int grid_cache_open(struct grid_cache *cache, const char *provider, const char *base, const char *place,
                    const struct grid_kind *kind, struct fly_error *out_error);

/* What is there, which may be nothing. */
void grid_cache_load(const struct grid_cache *cache, const struct grid_kind *kind,
                     struct cache_content *out_content);
int grid_cache_save(const struct grid_cache *cache, const struct cache_content *content,
                    struct fly_error *out_error);
void cache_content_deinit(struct cache_content *content);

/* Joins what came; the newer of two that say something of the same time stays. */
int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error);

/* Waits at most so long for the source. A descriptor to close, or FLY_EBUSY, FLY_EPERM, FLY_EWRITE. */
int grid_cache_lock(const struct grid_cache *cache, double wait_s, int *out_lock,
                    struct fly_error *out_error);

/* Between the two nobody else changes the service's state. A state that cannot be read is a good one. */
int grid_cache_take_service(const struct grid_cache *cache, struct ask_service *out_service, int *out_lock,
                            struct fly_error *out_error);
int grid_cache_give_service(const struct grid_cache *cache, const struct ask_service *service, int lock,
                            struct fly_error *out_error);

/* The text of a source's file, and back: false for a text that is none of this source. Pure but for memory.
 */
int cache_content_write(const struct cache_content *content, const char *source, struct buffer *out,
                        struct fly_error *out_error);
bool cache_content_read(const char *text, size_t length, const char *source, const struct grid_kind *kind,
                        struct cache_content *out_content);
void cache_service_write(const struct ask_service *service, const char *name, struct buffer *out);
bool cache_service_read(const char *text, size_t length, const char *name, struct ask_service *out_service);

#endif
