/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/part.h"

#include <string.h>

#include "job/core/job.h"

/* The index of a limit, or where it would be inserted. */
static size_t find(const struct profile_part *part, double limit_w)
{
    size_t at = 0;

    while (at < part->count && part->points[at].limit_w < limit_w)
        at++;
    return at;
}

static bool is_at(const struct profile_part *part, size_t at, double limit_w)
{
    return at < part->count && part->points[at].limit_w == limit_w;
}

/* Doubles the room, so that little is left unused in the arena. */
static int make_room(struct profile_part *part, struct arena *arena, struct fly_error *out_error)
{
    size_t capacity = part->capacity > 0 ? 2 * part->capacity : 16;
    struct fly_power_point *points;

    if (part->count < part->capacity)
        return 0;
    points = arena_alloc(arena, capacity, sizeof points[0]);
    if (points == NULL)
        return error_no_memory(out_error);
    if (part->count > 0)
        memcpy(points, part->points, part->count * sizeof points[0]);
    part->points = points;
    part->capacity = capacity;
    return 0;
}

int profile_part_take(struct profile_part *part, struct arena *arena, const struct fly_power_point *points,
                      size_t count, struct fly_error *out_error)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = find(part, points[i].limit_w);

        if (!is_at(part, at, points[i].limit_w)) {
            if (part->count == JOB_KNOWN_MAX)
                continue;
            if (make_room(part, arena, out_error) < 0)
                return FLY_ENOMEM;
            memmove(&part->points[at + 1], &part->points[at], (part->count - at) * sizeof part->points[0]);
            part->count++;
        }
        part->points[at] = points[i];
    }
    return 0;
}

bool profile_part_has(const struct profile_part *part, const struct fly_power_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = find(part, points[i].limit_w);

        if (!is_at(part, at, points[i].limit_w) || part->points[at].power_w != points[i].power_w ||
            part->points[at].time_s != points[i].time_s)
            return false;
    }
    return true;
}
