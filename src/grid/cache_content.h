/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_CACHE_CONTENT_H
#define FLYBALL_GRID_CACHE_CONTENT_H

#include "base/buffer.h"
#include "grid/ask_rule.h"
#include "grid/online.h"

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

/* Makes an empty content of that kind. */
void cache_content_init(struct cache_content *content, const struct grid_kind *kind);

/* Adds an answer; where both have a value for the same time, the newer one stays. */
int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error);

#endif
