/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_CACHE_H
#define FLYBALL_GRID_GRID_CACHE_H

#include "grid/cache_content.h"

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
enum { CACHE_PATH_MAX = 512, CACHE_NAME_MAX = 64, CACHE_SOURCE_MAX = 512 };

struct grid_cache {
    char directory[CACHE_PATH_MAX];
    char source[CACHE_SOURCE_MAX], service[CACHE_SOURCE_MAX]; /* in words */
    char source_name[CACHE_NAME_MAX], service_name[CACHE_NAME_MAX];
    const atomic_bool *abandon; /* once it is set no lock is waited for; NULL, as opened */
};

/* Finds the directory, and makes it. FLY_ENOTFOUND, FLY_EPERM, FLY_EWRITE, FLY_ELIMIT. */
int grid_cache_open(struct grid_cache *cache, const char *provider, const char *base, const char *place,
                    const struct grid_kind *kind, struct fly_error *out_error);

/* What is there, which may be nothing. */
void grid_cache_load(const struct grid_cache *cache, const struct grid_kind *kind,
                     struct cache_content *out_content);
int grid_cache_save(const struct grid_cache *cache, const struct cache_content *content,
                    struct fly_error *out_error);

/* Waits at most so long for the source. A descriptor to close, or FLY_EBUSY, FLY_EPERM, FLY_EWRITE. */
int grid_cache_lock(const struct grid_cache *cache, double wait_s, int *out_lock,
                    struct fly_error *out_error);

/* Between the two nobody else changes the service's state. A state that cannot be read is a good one. */
int grid_cache_take_service(const struct grid_cache *cache, struct ask_service *out_service, int *out_lock,
                            struct fly_error *out_error);
int grid_cache_give_service(const struct grid_cache *cache, const struct ask_service *service, int lock,
                            struct fly_error *out_error);

#endif
