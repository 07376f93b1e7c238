/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/job_list.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

enum { TEXTS_MAX = 16 << 20 };

void job_list_init(struct job_list *list)
{
    *list = (struct job_list){.count = known_job_count};
    arena_init(&list->arena, TEXTS_MAX);
    memcpy(list->jobs, known_jobs, known_job_count * sizeof known_jobs[0]);
}

void job_list_deinit(struct job_list *list)
{
    arena_deinit(&list->arena);
}

struct job_description *job_list_find(struct job_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->jobs[i].name, name) == 0)
            return &list->jobs[i];
    }
    return NULL;
}

const char *job_list_nearest(const struct job_list *list, const char *name)
{
    const char *names[JOB_LIST_MAX];
    int nearest;

    for (size_t i = 0; i < list->count; i++)
        names[i] = list->jobs[i].name;
    nearest = word_nearest(name, names, list->count);
    return nearest >= 0 ? names[nearest] : NULL;
}

int job_list_add(struct job_list *list, const char *name, struct job_description **out_job,
                 struct fly_error *out_error)
{
    char *copy = arena_strdup(&list->arena, name);

    if (copy == NULL)
        return error_no_memory(out_error);
    if (list->count == JOB_LIST_MAX)
        return error_set(out_error, FLY_ELIMIT, "more than %d jobs; split the job file", JOB_LIST_MAX);
    *out_job = &list->jobs[list->count++];
    **out_job = (struct job_description){.name = copy, .target_metric = NAN};
    return 0;
}

int job_list_check(struct job_description *job, const char *where, int code, struct fly_error *out_error)
{
    const struct {
        const char *name;
        bool missing;
    } needs[] = {{"network", job->network == NULL},
                 {"optimizer", job->optimizer == NULL},
                 {"target_metric", isnan(job->target_metric)},
                 {"max_epochs", job->max_epochs == 0},
                 {"default_batch_size", job->default_batch_size == 0}};

    if (job->dataset == NULL)
        job->dataset = job->name;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (needs[i].missing)
            return error_set(out_error, code,
                             "%s: job '%s' has no '%s'; say it in a job file or as an option", where,
                             job->name, needs[i].name);
    }
    return 0;
}
