/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_CACHE_CONTENT_H
#define FLYBALL_GRID_CACHE_CONTENT_H

#include "base/buffer.h"
#include "grid/ask_rule.h"
#include "grid/online.h"

/* What the cache's files (grid_cache.h) hold. Pure but for memory. */

enum {
    CACHE_PERIODS_MAX = 1 << 16, /* of a series that are kept, the newest: seven months of five minutes */
    CACHE_BYTES_MAX = 16 << 20,  /* of a file */
    CACHE_REASON_MAX = 200,
};

/* What is kept of a source. */
struct cache_content {
    struct grid_answer answer; /* settled; owned */
    struct ask_query queries[ONLINE_QUERY_COUNT];
    char reasons[ONLINE_QUERY_COUNT][CACHE_REASON_MAX]; /* of refusals */
};

void cache_content_deinit(struct cache_content *content);

/* Nothing yet, of that kind. */
void cache_content_init(struct cache_content *content, const struct grid_kind *kind);

/* Joins what came; the newer of two that say something of the same time stays. */
int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error);

#endif
