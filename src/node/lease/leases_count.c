/* SPDX-License-Identifier: Apache-2.0 */
/* Counts for Prometheus: what was granted and refused, and how leases ended. */
#include "node/lease/leases_private.h"

static const char *const end_words[] = {
#define LEASE_END_WORD(name, word, text) word,
    LEASE_END_MAP(LEASE_END_WORD)
#undef LEASE_END_WORD
};
_Static_assert(sizeof end_words / sizeof end_words[0] == LEASE_END_COUNT, "each end has a word");

static const struct {
    const char *word;
    int code;
} refusals[] = {
#define LEASE_REFUSAL_ROW(name, word, code) {word, code},
    LEASE_REFUSAL_MAP(LEASE_REFUSAL_ROW)
#undef LEASE_REFUSAL_ROW
};
_Static_assert(sizeof refusals / sizeof refusals[0] == LEASE_REFUSAL_COUNT, "each refusal has a row");

const char *lease_end_word(enum lease_end end)
{
    return end_words[end];
}

const char *lease_refusal_word(enum lease_refusal refusal)
{
    return refusals[refusal].word;
}

void leases_refuse(struct leases *leases, int code)
{
    size_t refusal = 0;

    while (refusal < LEASE_REFUSAL_OTHER && refusals[refusal].code != code)
        refusal++;
    atomic_fetch_add(&leases->refused[refusal], 1);
}

uint64_t leases_stamp(struct leases *leases)
{
    return atomic_load(&leases->changes);
}

void leases_count(struct leases *leases, struct leases_counts *out_counts)
{
    struct lease none;

    pthread_mutex_lock(&leases->group.lock);
    out_counts->held = lease_table_list(leases->table, &none, 0);
    pthread_mutex_unlock(&leases->group.lock);
    out_counts->granted = atomic_load(&leases->granted);
    for (size_t i = 0; i < LEASE_REFUSAL_COUNT; i++)
        out_counts->refused[i] = atomic_load(&leases->refused[i]);
    for (size_t i = 0; i < LEASE_END_COUNT; i++)
        out_counts->ended[i] = atomic_load(&leases->lease_ends[i]);
}
