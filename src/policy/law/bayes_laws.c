/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list with the newest first, under a lock. It is short: one for each group of jobs that share their
 * batch sizes. Laws are computed without the lock, since every fork of the program would wait for it.
 */
#include "policy/law/bayes_laws.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/math/portable_math.h"
#include "base/thread/fork_lock.h"

enum { LAWS_BYTES_MAX = 1 << 20 };

static const double log_of_2 = 0.69314718055994530942;

/* What the laws follow from. */
struct laws_key {
    struct law_prior epochs, cost;
    size_t count, default_batch;
    uint32_t sizes[LAW_BATCHES_MAX];
};

struct held_laws {
    struct bayes_laws laws; /* first: borrowers have its address */
    struct laws_key key;
    struct held_laws *next;
    unsigned borrowers;
    struct arena arena;
};

static struct held_laws *held;
static struct fork_lock held_lock = FORK_LOCK_INIT;

static void free_laws(struct held_laws *entry)
{
    arena_deinit(&entry->arena);
    free(entry);
}

/* Returns whether the memory was enough. */
static bool fill(struct held_laws *entry)
{
    const struct laws_key *key = &entry->key;
    struct bayes_laws *laws = &entry->laws;

    laws->count = key->count;
    laws->octaves = arena_alloc(&entry->arena, key->count, sizeof laws->octaves[0]);
    if (laws->octaves == NULL)
        return false;
    for (size_t i = 0; i < key->count; i++)
        laws->octaves[i] =
            (portable_log((double)key->sizes[i]) - portable_log((double)key->sizes[key->default_batch])) /
            log_of_2;
    return law_mixture_init(&laws->epochs, &key->epochs, laws->octaves, key->count, &entry->arena) &&
           law_mixture_init(&laws->cost, &key->cost, laws->octaves, key->count, &entry->arena);
}

static struct held_laws *make_laws(const struct laws_key *key)
{
    struct held_laws *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return NULL;
    entry->key = *key;
    arena_init(&entry->arena, LAWS_BYTES_MAX);
    if (!fill(entry)) {
        free_laws(entry);
        return NULL;
    }
    return entry;
}

static bool same_places(const struct law_places *one, const struct law_places *other)
{
    return one->first == other->first && one->step == other->step && one->count == other->count;
}

static bool same_prior(const struct law_prior *one, const struct law_prior *other)
{
    bool same = same_places(&one->right, &other->right) && same_places(&one->left, &other->left) &&
                one->level_sd == other->level_sd && one->length == other->length &&
                one->nugget == other->nugget;

    for (size_t i = 0; i < LAW_DEVIATIONS_MAX; i++)
        same = same && one->deviations[i] == other->deviations[i] && one->weights[i] == other->weights[i];
    return same;
}

static bool same_key(const struct laws_key *one, const struct laws_key *other)
{
    return one->count == other->count && one->default_batch == other->default_batch &&
           memcmp(one->sizes, other->sizes, one->count * sizeof one->sizes[0]) == 0 &&
           same_prior(&one->epochs, &other->epochs) && same_prior(&one->cost, &other->cost);
}

/* Takes the laws of this key out of the list; NULL if they are not in it. */
static struct held_laws *take_out(const struct laws_key *key)
{
    struct held_laws **at = &held, *entry;

    while (*at != NULL && !same_key(&(*at)->key, key))
        at = &(*at)->next;
    entry = *at;
    if (entry != NULL)
        *at = entry->next;
    return entry;
}

/* Frees the oldest of those that nobody has borrowed, beyond those to spare. */
static void free_spare(void)
{
    struct held_laws **oldest = NULL;
    size_t spare = 0;

    for (struct held_laws **at = &held; *at != NULL; at = &(*at)->next) {
        if ((*at)->borrowers > 0)
            continue;
        oldest = at;
        spare++;
    }
    if (spare > BAYES_LAWS_SPARE) {
        struct held_laws *entry = *oldest;

        *oldest = entry->next;
        free_laws(entry);
    }
}

/* Borrows the laws of this key, from the list or else `made` (NULL: none), which then joins it. */
static struct held_laws *borrow(const struct laws_key *key, struct held_laws *made)
{
    struct held_laws *entry;

    fork_lock_take(&held_lock);
    entry = take_out(key);
    if (entry == NULL)
        entry = made;
    if (entry != NULL) {
        entry->borrowers++;
        entry->next = held;
        held = entry;
    }
    fork_lock_give(&held_lock);
    return entry;
}

const struct bayes_laws *bayes_laws_borrow(const struct law_prior *epochs, const struct law_prior *cost,
                                           const uint32_t *sizes, size_t count, size_t default_batch)
{
    struct held_laws *entry, *made;
    struct laws_key key = {.epochs = *epochs, .cost = *cost, .count = count, .default_batch = default_batch};

    memcpy(key.sizes, sizes, count * sizeof key.sizes[0]);
    entry = borrow(&key, NULL);
    if (entry == NULL) {
        made = make_laws(&key);
        entry = borrow(&key, made);
        /* Another thread was faster. */
        if (made != NULL && entry != made)
            free_laws(made);
    }
    return entry != NULL ? &entry->laws : NULL;
}

void bayes_laws_return(const struct bayes_laws *laws)
{
    fork_lock_take(&held_lock);
    for (struct held_laws *entry = held; entry != NULL; entry = entry->next) {
        if (&entry->laws == laws)
            entry->borrowers--;
    }
    free_spare();
    fork_lock_give(&held_lock);
}

size_t bayes_laws_bytes(const struct bayes_laws *laws)
{
    const struct held_laws *entry = (const struct held_laws *)laws; /* its first member */

    return sizeof *entry + entry->arena.used;
}

size_t bayes_laws_held(void)
{
    size_t count = 0;

    fork_lock_take(&held_lock);
    for (const struct held_laws *entry = held; entry != NULL; entry = entry->next)
        count++;
    fork_lock_give(&held_lock);
    return count;
}
