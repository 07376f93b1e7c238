/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which of several GPUs that are one piece of hardware counts for all of them. */
#include "device/amd/amdsmi_share.h"

#include <stdio.h>

/* Returns the first die of a second die's card: the nearest before it on the bus that is not a second die. */
static size_t find_first_die(const struct amdsmi_crowd *crowd, size_t second)
{
    const struct amdsmi_candidate *it = &crowd->candidates[second];
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < crowd->count; i++) {
        const struct amdsmi_candidate *other = &crowd->candidates[i];

        if (other->bdf < it->bdf && (found == SIZE_MAX || other->bdf > crowd->candidates[found].bdf))
            found = i;
    }
    if (found == SIZE_MAX || crowd->candidates[found].sharing == AMDSMI_SECOND_DIE ||
        !amdsmi_two_dies(crowd->candidates[found].info.name))
        return SIZE_MAX;
    return found;
}

static void share_cards(struct amdsmi_crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct amdsmi_candidate *candidate = &crowd->candidates[i];

        if (amdsmi_is_second_die(candidate->info.name, &candidate->trial))
            candidate->sharing = AMDSMI_SECOND_DIE;
        else if (amdsmi_two_dies(candidate->info.name) && candidate->trial.power_before.state == READING_OK)
            candidate->sharing = AMDSMI_FIRST_DIE;
    }
    for (size_t i = 0; i < crowd->count; i++) {
        if (crowd->candidates[i].sharing == AMDSMI_SECOND_DIE)
            crowd->candidates[i].partner = find_first_die(crowd, i);
        if (crowd->candidates[i].partner != SIZE_MAX)
            crowd->candidates[crowd->candidates[i].partner].partner = i;
    }
}

/* Partitions differ at most in their function on the bus. */
static void share_partitions(struct amdsmi_crowd *crowd)
{
    for (size_t i = 1; i < crowd->count; i++) {
        struct amdsmi_candidate *candidate = &crowd->candidates[i];

        for (size_t j = 0; j < i; j++) {
            struct amdsmi_candidate *first = &crowd->candidates[j];

            if (first->bdf >> 3 != candidate->bdf >> 3 || first->sharing == AMDSMI_PARTITION)
                continue;
            first->sharing = AMDSMI_FIRST_PARTITION;
            candidate->sharing = AMDSMI_PARTITION;
            candidate->partner = j;
            break;
        }
    }
}

/* Returns whether the limit of one GPU holds for another, or for itself. */
static bool shares_limit(const struct amdsmi_crowd *crowd, size_t one, size_t other)
{
    const struct amdsmi_candidate *first = &crowd->candidates[one], *second = &crowd->candidates[other];

    return one == other || (first->sharing == AMDSMI_FIRST_DIE && first->partner == other) ||
           (first->sharing == AMDSMI_FIRST_PARTITION && first->bdf >> 3 == second->bdf >> 3);
}

/* Finds for whom a GPU's limit holds; nobody may turn it where one of them is not known. */
static void find_sharers(struct amdsmi_crowd *crowd, size_t place)
{
    struct amdsmi_candidate *candidate = &crowd->candidates[place];
    struct amdsmi_gpu *gpu = &candidate->gpu;
    bool known = candidate->sharing != AMDSMI_FIRST_DIE || candidate->partner != SIZE_MAX;

    for (size_t i = 0; i < crowd->count && known; i++) {
        if (!shares_limit(crowd, place, i))
            continue;
        known = crowd->candidates[i].kfd != 0 && gpu->kfd_count < AMDSMI_SHARERS_MAX;
        if (known)
            gpu->kfds[gpu->kfd_count++] = crowd->candidates[i].kfd;
    }
    if (!known)
        gpu->kfd_count = 0;
}

void amdsmi_share(struct amdsmi_crowd *crowd)
{
    share_cards(crowd);
    share_partitions(crowd);
    for (size_t i = 0; i < crowd->count; i++) {
        struct amdsmi_candidate *candidate = &crowd->candidates[i];

        candidate->gpu.elsewhere =
            candidate->sharing == AMDSMI_SECOND_DIE || candidate->sharing == AMDSMI_PARTITION;
        find_sharers(crowd, i);
    }
}

void amdsmi_note_sharing(const struct amdsmi_crowd *crowd, struct amdsmi_candidate *candidate)
{
    /* Texts with a partner, by its number and its place on the bus, and without one. */
    static const struct {
        const char *beside, *alone;
    } notes[] = {
        [AMDSMI_ALONE] = {"", ""},
        [AMDSMI_FIRST_DIE] =
            {"first die of a card: power, energy and limit are the card's, with GPU %u at %s",
             "first die of a card: power, energy and limit are the card's, with its second die"},
        [AMDSMI_SECOND_DIE] =
            {"second die of a card: its energy is counted with GPU %u at %s",
             "second die of a card: its energy is counted with the first, which is not to be "
             "seen here"},
        [AMDSMI_FIRST_PARTITION] = {"", "partition of a GPU: power, energy and limit are the whole GPU's"},
        [AMDSMI_PARTITION] = {"partition of a GPU: its energy is counted with GPU %u at %s", ""},
    };
    const char *note = notes[candidate->sharing].alone;

    _Static_assert(sizeof notes / sizeof notes[0] == AMDSMI_SHARING_COUNT, "notes for every kind");
    if (candidate->partner != SIZE_MAX) {
        const struct device_info *partner = &crowd->candidates[candidate->partner].info;

        snprintf(candidate->info.note, sizeof candidate->info.note, notes[candidate->sharing].beside,
                 partner->index, partner->pci);
        return;
    }
    snprintf(candidate->info.note, sizeof candidate->info.note, "%s", note);
}
