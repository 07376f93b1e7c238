/* SPDX-License-Identifier: Apache-2.0 */
/* A few places, of which the oldest is taken anew. */
#include "node/v1/v1_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

enum { PLACES = 16, BODY_MAX = 1 << 20 };
static const double valid_s = V1_CACHE_MS * 1e-3;

struct v1_cache {
    pthread_mutex_t lock;
    size_t oldest;
    struct {
        struct v1_cache_key key;
        struct mono_time until; /* 0: empty */
        struct buffer body;
    } places[PLACES];
};

int v1_cache_new(struct v1_cache **out_cache, struct fly_error *out_error)
{
    struct v1_cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&cache->lock, NULL);
    for (size_t i = 0; i < PLACES; i++)
        buffer_init(&cache->places[i].body, BODY_MAX);
    *out_cache = cache;
    return 0;
}

void v1_cache_free(struct v1_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < PLACES; i++)
        buffer_deinit(&cache->places[i].body);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void v1_cache_key(const struct v1_exchange *exchange, struct v1_cache_key *out_key)
{
    const struct node_v1_options *options = &exchange->v1->options;

    snprintf(out_key->id, sizeof out_key->id, "%s", exchange->id);
    admit_class_of(exchange->request, &out_key->who);
    out_key->watch = watch_stamp(options->watch);
    out_key->leases = leases_stamp(options->leases);
    out_key->rights = admit_stamp(options->admit);
}

static bool is_same(const struct v1_cache_key *one, const struct v1_cache_key *other)
{
    return one->watch == other->watch && one->leases == other->leases && one->rights == other->rights &&
           strcmp(one->id, other->id) == 0 && admit_class_is(&one->who, &other->who);
}

bool v1_cache_take(struct v1_cache *cache, const struct v1_cache_key *key, struct buffer *body)
{
    struct mono_time now = mono_now();
    bool found = false;

    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < PLACES && !found; i++) {
        found = now.ns < cache->places[i].until.ns && is_same(&cache->places[i].key, key);
        if (found)
            buffer_append(body, cache->places[i].body.data, cache->places[i].body.length);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void v1_cache_keep(struct v1_cache *cache, const struct v1_cache_key *key, const struct buffer *body)
{
    size_t place;

    pthread_mutex_lock(&cache->lock);
    place = cache->oldest;
    cache->oldest = (place + 1) % PLACES;
    buffer_clear(&cache->places[place].body);
    buffer_append(&cache->places[place].body, body->data, body->length);
    cache->places[place].key = *key;
    cache->places[place].until.ns =
        cache->places[place].body.error == 0 ? mono_after_s(mono_now(), valid_s).ns : 0;
    pthread_mutex_unlock(&cache->lock);
}
