/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/profiles.h"

#include <string.h>

#include "job/core/job_record.h"

struct reading {
    struct arena *arena;
    const struct job_row *row; /* the trial that is read */
    struct job_profiles profiles;
    size_t capacity;
};

static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *record)
{
    struct reading *reading = fold;
    struct job_profiles *profiles = &reading->profiles;
    struct fly_power_point *points;

    if (!record->folded || record->count == 0)
        return 0;
    points = arena_alloc(reading->arena, record->count + 1, sizeof points[0]);
    if (points == NULL)
        return error_no_memory(at->error);
    if (profiles->count == reading->capacity) {
        size_t capacity = 2 * reading->capacity + 16;
        struct job_batch_profile *wider = arena_alloc(reading->arena, capacity, sizeof wider[0]);

        if (wider == NULL)
            return error_no_memory(at->error);
        if (profiles->count > 0)
            memcpy(wider, profiles->profiles, profiles->count * sizeof wider[0]);
        profiles->profiles = wider;
        reading->capacity = capacity;
    }
    memcpy(points, record->points, record->count * sizeof points[0]);
    profiles->profiles[profiles->count++] =
        (struct job_batch_profile){.machine = reading->row->machine,
                                   .batch_size = reading->row->trial.batch_size,
                                   .points = points,
                                   .count = record->count,
                                   .units_per_epoch = record->units_per_epoch};
    return 0;
}

static int visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    static const struct log_visitor visitor = {.on_profiled = on_profiled};

    return log_tell(&visitor, context, event, NULL, out_error);
}

int job_profiles_read(const struct jobs *jobs, const struct job_history *history, struct arena *arena,
                      struct job_profiles *out_profiles, struct fly_error *out_error)
{
    struct reading reading = {.arena = arena};
    int code = 0;

    for (size_t i = 0; i < history->count && code == 0; i++) {
        const struct job_row *row = &history->rows[i];
        const struct store_query query = {.trial = row->trial.trial};

        if (!row->whole_profile || row->revision != history->revision ||
            job_profiles_find(&reading.profiles, row->machine, row->trial.batch_size) != NULL)
            continue;
        reading.row = row;
        code = jobs->backend->read(jobs->self, history->definition.name, &query, visit, &reading, out_error);
    }
    if (code < 0)
        return code;
    *out_profiles = reading.profiles;
    return 0;
}

const struct job_batch_profile *job_profiles_find(const struct job_profiles *profiles, size_t machine,
                                                  uint32_t batch_size)
{
    for (size_t i = 0; i < profiles->count; i++) {
        if (profiles->profiles[i].machine == machine && profiles->profiles[i].batch_size == batch_size)
            return &profiles->profiles[i];
    }
    return NULL;
}
