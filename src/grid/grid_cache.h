/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_CACHE_H
#define FLYBALL_GRID_GRID_CACHE_H

#include "grid/cache_content.h"

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
