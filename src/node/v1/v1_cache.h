/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_V1_V1_CACHE_H
#define FLYBALL_NODE_V1_V1_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "node/v1/v1_private.h"

/*
 * Answers that were made already, for callers who get the same: GPUs are read ten times a second, and
 * asked about thousands of times.
 *
 *     v1_cache_key(&exchange, &key);                before anything of the answer is read
 *     if (!v1_cache_take(cache, &key, &body)) {
 *         ... make the answer ...
 *         v1_cache_keep(cache, &key, &body);
 *     }
 *
 * A key has all that an answer depends on: what was asked, who asks as far as rights see him, and a stamp
 * of each part that is shown. So an answer is taken only as long as a new one would be the same, but for a
 * device that has just become silent or a user who has just joined a group: after V1_CACHE_MS it is made
 * anew in any case. Thread-safe.
 */
enum { V1_CACHE_MS = 50 };

struct v1_cache_key {
    char id[V1_ID_MAX]; /* of the route's GPU; "" for all */
    struct admit_class who;
    uint64_t watch, leases, rights; /* stamps */
};

struct v1_cache;

int v1_cache_new(struct v1_cache **out_cache, struct fly_error *out_error);
void v1_cache_free(struct v1_cache *cache); /* accepts NULL */

void v1_cache_key(const struct v1_exchange *exchange, struct v1_cache_key *out_key);

/* Appends the answer of that key, if there is one. */
bool v1_cache_take(struct v1_cache *cache, const struct v1_cache_key *key, struct buffer *body);

void v1_cache_keep(struct v1_cache *cache, const struct v1_cache_key *key, const struct buffer *body);

#endif
