/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/simplex_search.h"

#include <math.h>
#include <string.h>

/* A simplex has one corner more than there are numbers. */
struct simplex {
    const struct simplex_task *task;
    double corners[SIMPLEX_SIZE_MAX + 1][SIMPLEX_SIZE_MAX];
    double heights[SIMPLEX_SIZE_MAX + 1];
    unsigned evaluations;
    size_t lowest, highest, second; /* of the corners; `second` is the second highest */
};

static double ask(struct simplex *simplex, const double *at)
{
    simplex->evaluations++;
    return simplex->task->height(at, simplex->task->data);
}

static void place(struct simplex *simplex, size_t corner, const double *at, double height)
{
    memcpy(simplex->corners[corner], at, simplex->task->size * sizeof *at);
    simplex->heights[corner] = height;
}

/* A step goes up, or down where there is no room above. */
static void begin(struct simplex *simplex, const double *start)
{
    double at[SIMPLEX_SIZE_MAX];
    size_t size = simplex->task->size;

    memcpy(at, start, size * sizeof *at);
    place(simplex, 0, at, ask(simplex, at));
    for (size_t i = 0; i < size; i++) {
        at[i] = start[i] + simplex->task->reach <= 1.0 ? start[i] + simplex->task->reach
                                                       : fmax(start[i] - simplex->task->reach, 0.0);
        place(simplex, i + 1, at, ask(simplex, at));
        at[i] = start[i];
    }
}

static void rank(struct simplex *simplex)
{
    const double *heights = simplex->heights;

    simplex->lowest = 0;
    simplex->highest = heights[0] > heights[1] ? 0 : 1;
    simplex->second = 1 - simplex->highest;
    for (size_t i = 1; i <= simplex->task->size; i++) {
        if (heights[i] < heights[simplex->lowest])
            simplex->lowest = i;
        if (i == simplex->highest || i == simplex->second)
            continue;
        if (heights[i] > heights[simplex->highest]) {
            simplex->second = simplex->highest;
            simplex->highest = i;
        } else if (heights[i] > heights[simplex->second]) {
            simplex->second = i;
        }
    }
}

/* The point on the line from the highest corner through the middle of the others, `factor` behind it. */
static double beyond(struct simplex *simplex, double factor, double *out_at)
{
    size_t size = simplex->task->size;

    for (size_t i = 0; i < size; i++) {
        double middle = 0.0;

        for (size_t corner = 0; corner <= size; corner++)
            middle += corner != simplex->highest ? simplex->corners[corner][i] / (double)size : 0.0;
        out_at[i] = fmin(fmax(middle + factor * (middle - simplex->corners[simplex->highest][i]), 0.0), 1.0);
    }
    return ask(simplex, out_at);
}

static void shrink(struct simplex *simplex, double factor)
{
    const double *lowest = simplex->corners[simplex->lowest];

    for (size_t corner = 0; corner <= simplex->task->size; corner++) {
        double at[SIMPLEX_SIZE_MAX];

        if (corner == simplex->lowest)
            continue;
        for (size_t i = 0; i < simplex->task->size; i++)
            at[i] = lowest[i] + factor * (simplex->corners[corner][i] - lowest[i]);
        place(simplex, corner, at, ask(simplex, at));
    }
}

static void step(struct simplex *simplex)
{
    double size = fmax((double)simplex->task->size, 2.0);
    double contraction = 0.75 - 0.5 / size;
    double near[SIMPLEX_SIZE_MAX], far[SIMPLEX_SIZE_MAX];
    double height = beyond(simplex, 1.0, near), further;

    if (height < simplex->heights[simplex->lowest]) {
        further = beyond(simplex, 1.0 + 2.0 / size, far);
        place(simplex, simplex->highest, further < height ? far : near, fmin(further, height));
    } else if (height < simplex->heights[simplex->second]) {
        place(simplex, simplex->highest, near, height);
    } else {
        double factor = height < simplex->heights[simplex->highest] ? contraction : -contraction;

        further = beyond(simplex, factor, far);
        if (further < fmin(height, simplex->heights[simplex->highest]))
            place(simplex, simplex->highest, far, further);
        else
            shrink(simplex, 1.0 - 1.0 / size);
    }
}

double simplex_search(const struct simplex_task *task, double *at)
{
    struct simplex simplex = {.task = task};

    begin(&simplex, at);
    rank(&simplex);
    while (simplex.evaluations < task->evaluations) {
        step(&simplex);
        rank(&simplex);
    }
    memcpy(at, simplex.corners[simplex.lowest], task->size * sizeof *at);
    return simplex.heights[simplex.lowest];
}
