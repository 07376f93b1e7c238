/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "device/recording/recording.h"
#include "meter/counter.h"

enum { TEXT_BYTES = 64 << 20 };

static const double ns_per_s = 1e9;
/* Power readings further apart tell nothing about the time between them. */
static const double gap_most_s = 30.0, gap_intervals = 5.0;

/* The state of a device while a recording is read. */
struct course {
    bool known;  /* a reading was made, at at_s */
    double at_s; /* of that reading */
    struct reading power;
    struct counter counter;
    struct counter_edge edge; /* of the last reading with a counter */
    bool open;                /* a window is open */
    struct tally_window window;
};

struct courses {
    struct recorded *recorded;
    const char *node;
    double since_s, until_s;
    struct course devices[DEVICES_MAX];
};

void recorded_init(struct recorded *recorded)
{
    *recorded = (struct recorded){.count = 0};
    arena_init(&recorded->arena, TEXT_BYTES);
}

void recorded_deinit(struct recorded *recorded)
{
    free(recorded->windows);
    arena_deinit(&recorded->arena);
    recorded->windows = NULL;
    recorded->count = recorded->capacity = 0;
}

static int end_window(struct recorded *recorded, struct course *course, struct fly_error *out_error)
{
    struct tally_window *windows;

    if (!course->open)
        return 0;
    course->open = false;
    windows = array_grow(recorded->windows, recorded->count, &recorded->capacity, sizeof windows[0]);
    if (windows == NULL)
        return error_no_memory(out_error);
    recorded->windows = windows;
    recorded->windows[recorded->count++] = course->window;
    return 0;
}

static int begin_window(struct courses *courses, const struct device_info *info, double begin_s,
                        struct course *course, struct fly_error *out_error)
{
    struct recorded *recorded = courses->recorded;

    course->window = (struct tally_window){.node = arena_strdup(&recorded->arena, courses->node),
                                           .kind = info->kind,
                                           .uuid = arena_strdup(&recorded->arena, info->uuid),
                                           .start_unix_s = begin_s,
                                           .uncertainty_j = NAN,
                                           .counted = true};
    recorded->emulated += info->emulated;
    course->open = true;
    return course->window.node != NULL && course->window.uuid != NULL ? 0 : error_no_memory(out_error);
}

static struct reading power_of(const struct reading *values)
{
    return values[QUANTITY_POWER_AVERAGE].state == READING_OK ? values[QUANTITY_POWER_AVERAGE]
                                                              : values[QUANTITY_POWER_INSTANT];
}

/* Returns the energy since the previous reading by the trapezoidal rule; NAN: unknown. */
static double integrated_j(const struct recording *recording, const struct course *course,
                           const struct reading *power, double elapsed_s)
{
    double gap_s = fmax(gap_most_s, gap_intervals * recording_interval_s(recording));

    if (power->state != READING_OK || course->power.state != READING_OK || elapsed_s > gap_s)
        return NAN;
    return 0.5e-3 * ((double)course->power.value + (double)power->value) * elapsed_s;
}

/* Returns the energy since the previous reading; NAN: unknown. */
static double energy_since(const struct recording *recording, const struct device_info *info,
                           struct course *course, const struct reading *values, int64_t t_ns,
                           double elapsed_s)
{
    const struct reading *energy = &values[QUANTITY_ENERGY], *most = &values[QUANTITY_POWER_LIMIT_MAX];
    struct reading power = power_of(values);
    double filled_j = integrated_j(recording, course, &power, elapsed_s);
    struct counter_edge before = course->edge;

    if (energy->state != READING_OK) {
        course->edge.known = false;
        return before.known ? NAN : filled_j;
    }
    course->counter.modulus_uj = info->energy_modulus_uj;
    if (most->state == READING_OK)
        course->counter.power_max_w = counter_power_max_w(most->value);
    course->edge =
        counter_take(&course->counter, (struct mono_time){t_ns}, (uint64_t)energy->value, filled_j);
    if (!before.known)
        return filled_j;
    return before.holes == course->edge.holes
               ? (double)(int64_t)(course->edge.total_uj - before.total_uj) * 1e-6
               : NAN;
}

/* Adds the part of the stretch that lies within the period. */
static int add(struct courses *courses, const struct device_info *info, struct course *course, double to_s,
               double energy_j, struct fly_error *out_error)
{
    double begin_s = fmax(course->at_s, courses->since_s), end_s = fmin(to_s, courses->until_s);
    int code = 0;

    if (!(end_s > begin_s))
        return 0;
    if (!course->open)
        code = begin_window(courses, info, begin_s, course, out_error);
    course->window.energy_j += energy_j * (end_s - begin_s) / (to_s - course->at_s);
    course->window.time_s = end_s - course->window.start_unix_s;
    return code;
}

static int visit(void *context, const struct recording *recording, size_t device, int64_t t_ns,
                 const struct reading *values, struct fly_error *out_error)
{
    struct courses *courses = context;
    struct course *course = &courses->devices[device];
    const struct device_info *info = recording_device(recording, device);
    double at_s = (double)recording_date(recording).ns / ns_per_s + (double)t_ns / ns_per_s;
    double energy_j = energy_since(recording, info, course, values, t_ns, at_s - course->at_s);
    int code = 0;

    if (!course->known)
        energy_j = NAN;
    if (isnan(energy_j))
        code = end_window(courses->recorded, course, out_error);
    else
        code = add(courses, info, course, at_s, energy_j, out_error);
    course->known = true;
    course->at_s = at_s;
    course->power = power_of(values);
    return code;
}

int recorded_read(struct recorded *recorded, const char *path, const char *node, double since_unix_s,
                  double until_unix_s, struct fly_error *out_error)
{
    struct courses *courses = calloc(1, sizeof *courses);
    int code;

    if (courses == NULL)
        return error_no_memory(out_error);
    courses->recorded = recorded;
    courses->node = node;
    courses->since_s = since_unix_s;
    courses->until_s = until_unix_s;
    code = recording_scan(path, visit, courses, out_error);
    for (size_t i = 0; i < DEVICES_MAX && code == 0; i++)
        code = end_window(recorded, &courses->devices[i], out_error);
    free(courses);
    return code;
}
