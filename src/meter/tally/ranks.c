/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/ranks.h"

#include <flyball/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_groups(const struct run_rank *a, const struct run_rank *b)
{
    int order = strcmp(a->job, b->job);

    if (order == 0)
        order = strcmp(a->step, b->step);
    return order == 0 ? strcmp(a->ranked, b->ranked) : order;
}

static int compare(const void *left, const void *right)
{
    const struct run_rank *a = left, *b = right;
    int order = compare_groups(a, b);

    return order == 0 ? (a->rank > b->rank) - (a->rank < b->rank) : order;
}

/* Adds the ranks from `first` to before `end` to those missing. */
static void add_missing(struct rank_group *group, int32_t first, int32_t end)
{
    static const char more[] = ",...";
    size_t length = strlen(group->which);
    const char *comma = length > 0 ? "," : "";
    char text[32];

    if (first >= end)
        return;
    group->missing += end - first;
    if (end - first == 1)
        snprintf(text, sizeof text, "%s%d", comma, first);
    else
        snprintf(text, sizeof text, "%s%d-%d", comma, first, end - 1);
    if (length + strlen(text) + sizeof more <= sizeof group->which)
        memcpy(group->which + length, text, strlen(text) + 1);
    else if (length + sizeof more <= sizeof group->which && group->which[length - 1] != '.')
        memcpy(group->which + length, more, sizeof more);
}

/* Fills in the group of the ranks from `first` to before `end`. */
static struct rank_group group_of(const struct run_rank *first, const struct run_rank *end)
{
    struct rank_group group = {
        .job = first->job, .step = first->step, .ranked = first->ranked, .world_size = -1};
    int32_t next = 0;

    for (const struct run_rank *rank = first; rank < end; rank++) {
        if (rank->world_size > group.world_size)
            group.world_size = rank->world_size;
        if (rank->rank < next)
            continue;
        add_missing(&group, next, rank->rank);
        next = rank->rank + 1;
        group.reported++;
    }
    add_missing(&group, next, group.world_size);
    if (group.world_size < 0) {
        group.missing = -1;
        group.which[0] = '\0';
    }
    return group;
}

int ranks_group(struct run_rank *ranks, size_t count, struct rank_group **out_groups, size_t *out_count)
{
    struct rank_group *groups = malloc((count + 1) * sizeof *groups);
    size_t filled = 0;

    if (groups == NULL)
        return FLY_ENOMEM;
    if (count > 0)
        qsort(ranks, count, sizeof *ranks, compare);
    for (size_t from = 0, end = 0; from < count; from = end) {
        while (end < count && compare_groups(&ranks[from], &ranks[end]) == 0)
            end++;
        groups[filled++] = group_of(&ranks[from], &ranks[end]);
    }
    *out_groups = groups;
    *out_count = filled;
    return 0;
}
