/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * Windows that overlap by less than this, or by less than this part of the shorter one, only meet
 * at their edges.
 */
static const double edge_s = 0.5, edge_part = 0.1;

/* Separate stretches of time, in order. */
struct coverage {
    struct stretch {
        double begin, end;
    } * stretches;
    size_t count;
};

static double length_within(const struct coverage *coverage, double begin, double end)
{
    double length = 0;

    for (size_t i = 0; i < coverage->count; i++) {
        double from = fmax(begin, coverage->stretches[i].begin);
        double to = fmin(end, coverage->stretches[i].end);

        if (to > from)
            length += to - from;
    }
    return length;
}

static double length_of(const struct coverage *coverage)
{
    return length_within(coverage, -INFINITY, INFINITY);
}

/* Adds a stretch and merges it with those that it meets. There must be room for one more. */
static void cover(struct coverage *coverage, double begin, double end)
{
    size_t kept = 0;
    size_t place;

    for (size_t i = 0; i < coverage->count; i++) {
        struct stretch at = coverage->stretches[i];

        if (at.end < begin || at.begin > end) {
            coverage->stretches[kept++] = at;
            continue;
        }
        begin = fmin(begin, at.begin);
        end = fmax(end, at.end);
    }
    for (place = kept; place > 0 && coverage->stretches[place - 1].begin > begin; place--)
        coverage->stretches[place] = coverage->stretches[place - 1];
    coverage->stretches[place] = (struct stretch){begin, end};
    coverage->count = kept + 1;
}

static int compare_numbers(double left, double right)
{
    return (left > right) - (left < right);
}

/* Orders by device. */
static int compare_devices(const struct tally_window *left, const struct tally_window *right)
{
    int order = strcmp(left->node, right->node);

    if (order == 0)
        order = (int)left->kind - (int)right->kind;
    return order != 0 ? order : strcmp(left->uuid, right->uuid);
}

/* Orders by device, and then as windows are taken. The order is total, so that sorting has one result. */
static int compare_windows(const void *left, const void *right)
{
    const struct tally_window *a = *(const struct tally_window *const *)left;
    const struct tally_window *b = *(const struct tally_window *const *)right;
    int order = compare_devices(a, b);

    if (order == 0)
        order = isnan(a->energy_j) - isnan(b->energy_j);
    if (order == 0)
        order = b->counted - a->counted;
    if (order == 0)
        order = compare_numbers(b->time_s, a->time_s);
    if (order == 0)
        order = compare_numbers(a->start_unix_s, b->start_unix_s);
    return order != 0 ? order : compare_numbers(b->energy_j, a->energy_j);
}

static void take_energy(const struct tally_window *window, double share, struct tally_device *device)
{
    double energy_j = window->energy_j * share;

    if (isnan(device->energy_j))
        device->energy_j = 0;
    device->energy_j += energy_j;
    if (isnan(window->uncertainty_j))
        device->without_bound = true;
    else
        device->uncertainty_j += window->uncertainty_j * share;
    if (share < 1) {
        device->uncertainty_j += energy_j;
        device->overlapped = true;
    }
}

static void take_window(const struct tally_window *window, struct coverage *covered, struct coverage *counted,
                        struct tally_device *device)
{
    double begin = window->start_unix_s;
    double end = begin + window->time_s;
    double within = length_within(covered, begin, end);
    double span = end - begin; /* of the dates, which are coarser than the time */

    device->windows++;
    if (isnan(window->energy_j) || span <= 0)
        return;
    if (window->counted && length_within(counted, begin, end) > fmin(edge_s, edge_part * span))
        device->counted_twice++;
    if (window->counted)
        cover(counted, begin, end);
    if (within < span)
        take_energy(window, (span - within) / span, device);
    cover(covered, begin, end);
}

/* Sums the windows of one device; there must be at least one. */
static void take_device(const struct tally_window *const *windows, size_t count, struct stretch *stretches,
                        struct tally_device *device)
{
    struct coverage covered = {stretches, 0};
    struct coverage counted = {stretches + count + 1, 0};
    double known_s;

    *device = (struct tally_device){
        .node = windows[0]->node, .kind = windows[0]->kind, .uuid = windows[0]->uuid, .energy_j = NAN};
    for (size_t i = 0; i < count; i++)
        take_window(windows[i], &covered, &counted, device);
    known_s = length_of(&covered);
    for (size_t i = 0; i < count; i++)
        cover(&covered, windows[i]->start_unix_s, windows[i]->start_unix_s + windows[i]->time_s);
    device->time_s = length_of(&covered);
    device->unknown_s = device->time_s - known_s;
}

int tally_make(const struct tally_window *windows, size_t count, struct tally *out_tally,
               struct fly_error *out_error)
{
    const struct tally_window **sorted = calloc(count + 1, sizeof *sorted);
    struct stretch *stretches = calloc(2 * count + 2, sizeof *stretches);
    struct tally tally = {.devices = calloc(count + 1, sizeof *tally.devices)};
    size_t next;

    if (sorted == NULL || stretches == NULL || tally.devices == NULL) {
        free(sorted);
        free(stretches);
        free(tally.devices);
        return error_no_memory(out_error);
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = &windows[i];
    qsort(sorted, count, sizeof *sorted, compare_windows);
    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && compare_devices(sorted[i], sorted[next]) == 0; next++)
            ;
        take_device(sorted + i, next - i, stretches, &tally.devices[tally.count++]);
    }
    free(sorted);
    free(stretches);
    *out_tally = tally;
    return 0;
}

void tally_deinit(struct tally *tally)
{
    free(tally->devices);
    *tally = (struct tally){.count = 0};
}
