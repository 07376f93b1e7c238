/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_RANKS_H
#define FLYBALL_METER_TALLY_RANKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Which ranks of a job have a report, and which have none. Pure; texts are borrowed.
 *
 *     ranks_group(ranks, count, &groups, &group_count);
 *     if (groups[0].missing > 0)
 *         ...groups[0].which
 *     free(groups);
 */
struct run_rank {
    const char *job;           /* "slurm-4711" */
    const char *step, *ranked; /* step of the job, and whose numbering it is, "torchrun"; "": none */
    int32_t rank, world_size;  /* -1: unknown */
};

enum { RANKS_TEXT_MAX = 128 };

/* The ranks of one numbering. */
struct rank_group {
    const char *job, *step, *ranked;
    int32_t world_size;         /* the largest that a report states; -1: none does */
    int32_t reported, missing;  /* different ranks; missing -1: unknown, since world_size is */
    char which[RANKS_TEXT_MAX]; /* those missing, "1-3,7"; ends with "..." where there are more */
};

/*
 * Sorts the ranks, and returns a list of their groups, owned by the caller; FLY_ENOMEM. A rank of several
 * reports counts once.
 */
int ranks_group(struct run_rank *ranks, size_t count, struct rank_group **out_groups, size_t *out_count);

#endif
