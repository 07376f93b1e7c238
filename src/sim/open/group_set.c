/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/group_set.h"

#include <string.h>

/* Returns the workload of a dataset, which is opened when the dataset first occurs. */
static int find_workload(struct sim_set *set, const struct group_file *file, const struct group *group,
                         size_t *out_workload, struct fly_error *out_error)
{
    const struct job_description *job;
    const char *nearest;

    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->items[i].job.name, group->dataset) == 0) {
            *out_workload = i;
            return 0;
        }
    }
    job = job_list_find(&set->list, group->dataset);
    if (job != NULL) {
        *out_workload = set->count;
        return sim_set_add(set, job, out_error);
    }
    nearest = job_list_nearest(&set->list, group->dataset);
    return error_set(
        out_error, FLY_EDATA,
        "%s:%zu: column 'dataset': expected the name of a known job, found '%.60s'%s%s%s; describe it in a "
        "job file",
        file->name, group->line, group->dataset, nearest != NULL ? "; did you mean '" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

int group_set_open(struct sim_set *set, const struct group_file *file, struct arena *arena,
                   size_t **out_group_workloads, struct fly_error *out_error)
{
    size_t *workloads = arena_alloc(arena, file->count, sizeof workloads[0]);
    int code = workloads != NULL ? 0 : error_no_memory(out_error);

    for (size_t i = 0; i < file->count && code == 0; i++)
        code = find_workload(set, file, &file->groups[i], &workloads[i], out_error);
    if (code == 0)
        *out_group_workloads = workloads;
    return code;
}
