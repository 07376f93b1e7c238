/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/job_unknown.h"

#include "base/words.h"

enum { NAMES_BYTES = 64 << 20 };

/* Returns the store's name nearest to `name`, or NULL; it is in the arena. */
static const char *find_nearest(const struct jobs *jobs, const char *name, struct arena *arena,
                                size_t *out_count)
{
    struct job_list list = {.count = 0};
    const char **names;
    int nearest;

    *out_count = 0;
    if (jobs->backend == NULL || jobs->backend->list(jobs->self, arena, &list, NULL) < 0)
        return NULL;
    *out_count = list.count;
    names = arena_alloc(arena, list.count + 1, sizeof names[0]);
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < list.count; i++)
        names[i] = list.jobs[i].name;
    nearest = word_nearest(name, names, list.count);
    return nearest >= 0 ? names[nearest] : NULL;
}

int job_unknown_explain(const struct jobs *jobs, const char *name, int code, struct fly_error *out_error)
{
    struct arena arena;
    const char *nearest;
    size_t count;

    if (code != FLY_ENOTFOUND)
        return code;
    arena_init(&arena, NAMES_BYTES);
    nearest = find_nearest(jobs, name, &arena, &count);
    if (nearest != NULL)
        error_set(out_error, code, "no job '%.100s' in the store; did you mean '%s'?", name, nearest);
    else
        error_set(out_error, code, "no job '%.100s' in the store, which has %zu; %s", name, count,
                  count > 0 ? "'flyball job list' shows them" : "name another store");
    arena_deinit(&arena);
    return code;
}
