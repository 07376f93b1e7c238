/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/drift.h"

#include <math.h>

#include <flyball/cost.h>

#include "base/math/portable_math.h"

static const double shift_octaves = 4.0, jump_octaves = 3.0, sine_octaves = 2.0, sine_turns = 1.5,
                    level = 1.8, triple = 3.0, growth = 0.035, growth_most = 40.0;
static const double natural_log_of_2 = 0x1.62e42fefa39efp-1;

const char *const drift_names[] = {
    [DRIFT_NONE] = "none",     [DRIFT_SHIFT] = "shift",     [DRIFT_JUMP] = "jump",
    [DRIFT_SINE] = "sine",     [DRIFT_LEVEL] = "level",     [DRIFT_TRIPLE] = "triple",
    [DRIFT_GROWTH] = "growth", [DRIFT_UP_DOWN] = "up-down", [DRIFT_COUNT] = NULL};

/* Finds the best point of a batch size and the cost of an epoch there. */
static double best_epoch_cost_j(const struct workload *workload, size_t batch, size_t *out_point)
{
    const struct job_spec *spec = &workload->spec;
    double best_j = INFINITY;

    for (size_t p = workload->batches[batch].point_count; p-- > 0;) {
        const struct fly_power_point *point = &workload->batches[batch].points[p];
        double cost_j = fly_cost(spec->eta, spec->max_power_w, point->time_s * point->power_w, point->time_s);

        if (cost_j < best_j) {
            best_j = cost_j;
            *out_point = p;
        }
    }
    return best_j;
}

static bool always_reaches(const struct workload *workload, size_t batch)
{
    const struct workload_batch *trained = &workload->batches[batch];

    for (uint32_t i = 0; i < trained->path_count; i++) {
        if (!(trained->path_epochs[i] <= (double)workload->spec.max_epochs))
            return false;
    }
    return true;
}

int drift_init(struct drift *drift, enum drift_kind kind, const struct workload *workload,
               uint64_t recurrences, struct arena *arena, struct fly_error *out_error)
{
    size_t batches = workload->spec.batch_count;
    double *octaves = arena_alloc(arena, batches, sizeof octaves[0]);
    double *log_epochs = arena_alloc(arena, batches, sizeof log_epochs[0]);
    double *log_cost = arena_alloc(arena, batches, sizeof log_cost[0]);
    size_t *which = arena_alloc(arena, batches, sizeof which[0]);
    size_t *points = arena_alloc(arena, batches, sizeof points[0]);
    struct optimum optimum, unmoved = {.cost_j = INFINITY};
    size_t count = 0;

    if (kind != DRIFT_NONE && isfinite(oracle_allowed_s(workload)))
        return error_set(
            out_error, FLY_EUSAGE,
            "job '%.100s' has a bound on the slowdown, and the best choice within it is not known "
            "where scores drift; leave out the drift or the bound",
            workload->spec.name);
    if (octaves == NULL || log_epochs == NULL || log_cost == NULL || which == NULL || points == NULL)
        return error_no_memory(out_error);
    for (size_t b = 0; b < batches; b++) {
        double epochs = oracle_expected_epochs(workload, b);
        double cost_j = best_epoch_cost_j(workload, b, &points[count]);

        if (!always_reaches(workload, b)) {
            if (epochs * cost_j < unmoved.cost_j)
                unmoved = (struct optimum){b, points[count], epochs * cost_j};
            continue;
        }
        octaves[count] = portable_log(workload->spec.batches[b].size) / natural_log_of_2;
        log_epochs[count] = portable_log(epochs);
        log_cost[count] = portable_log(cost_j);
        which[count++] = b;
    }
    *drift = (struct drift){.kind = kind,
                            .workload = workload,
                            .recurrences = recurrences,
                            .direction = 1.0,
                            .octaves = octaves,
                            .log_epochs = log_epochs,
                            .log_cost = log_cost,
                            .batches = which,
                            .best_points = points,
                            .count = count,
                            .unmoved = unmoved};
    if (oracle_find(workload, &optimum, NULL) == 0 && 2 * optimum.batch >= batches)
        drift->direction = -1.0;
    return 0;
}

/* sin(2 pi turns): the series where |turns| <= 1/4, and symmetry elsewhere. */
static double sine_of(double turns)
{
    double x = turns - floor(turns + 0.5), square, sum = 0.0;

    if (fabs(x) > 0.25)
        x = (x > 0.0 ? 0.5 : -0.5) - x;
    x *= 0x1.921fb54442d18p+2;
    square = x * x;
    for (int n = 17; n >= 3; n -= 2)
        sum = -square / (n * (n - 1)) * (1.0 + sum);
    return x * (1.0 + sum);
}

static double moved_octaves(const struct drift *drift, uint64_t recurrence)
{
    double done = (double)recurrence / (double)(drift->recurrences > 1 ? drift->recurrences - 1 : 1);

    switch (drift->kind) {
    case DRIFT_SHIFT:
        return drift->direction * shift_octaves * done;
    case DRIFT_JUMP:
        return 2 * recurrence >= drift->recurrences ? drift->direction * jump_octaves : 0.0;
    case DRIFT_SINE:
        return drift->direction * sine_octaves * sine_of(sine_turns * done);
    default:
        return 0.0;
    }
}

/* Returns the logarithm of the epochs at a point between the recorded batch sizes. */
static double log_epochs_at(const struct drift *drift, double octave)
{
    size_t i = 1;

    if (octave <= drift->octaves[0])
        return drift->log_epochs[0];
    while (i < drift->count && drift->octaves[i] < octave)
        i++;
    if (i == drift->count)
        return drift->log_epochs[drift->count - 1];
    return drift->log_epochs[i - 1] + (drift->log_epochs[i] - drift->log_epochs[i - 1]) *
                                          (octave - drift->octaves[i - 1]) /
                                          (drift->octaves[i] - drift->octaves[i - 1]);
}

/* Returns the least log cost of a choice after the optimum has moved, and which batch size has it. */
static double least_log_cost(const struct drift *drift, double moved, size_t *out_at)
{
    double least = INFINITY;

    for (size_t i = 0; i < drift->count; i++) {
        double cost = drift->log_cost[i] + log_epochs_at(drift, drift->octaves[i] - moved);

        if (cost < least) {
            least = cost;
            *out_at = i;
        }
    }
    return least;
}

/* Returns how many times the epochs all batch sizes need. */
static double level_factor(enum drift_kind kind, uint64_t recurrences, uint64_t recurrence)
{
    switch (kind) {
    case DRIFT_LEVEL:
        return 2 * recurrence >= recurrences ? level : 1.0;
    case DRIFT_TRIPLE:
        return 2 * recurrence >= recurrences ? triple : 1.0;
    case DRIFT_GROWTH:
        return fmin(portable_exp((double)recurrence * portable_log(1.0 + growth)), growth_most);
    case DRIFT_UP_DOWN:
        return 3 * recurrence >= recurrences && 3 * recurrence < 2 * recurrences ? level : 1.0;
    default:
        return 1.0;
    }
}

void drift_raise_max_epochs(struct workload *workload, enum drift_kind kind, uint64_t recurrences)
{
    uint64_t dearest = kind == DRIFT_GROWTH ? recurrences : recurrences - recurrences / 2;
    double most = ceil(level_factor(kind, recurrences, dearest)) * (double)workload->spec.max_epochs;

    workload->spec.max_epochs = (uint32_t)fmin(most, UINT32_MAX);
}

double drift_factor(const struct drift *drift, uint64_t recurrence, size_t batch)
{
    double moved = moved_octaves(drift, recurrence),
           factor = level_factor(drift->kind, drift->recurrences, recurrence);
    size_t at = 0, unused = 0;

    while (at < drift->count && drift->batches[at] != batch)
        at++;
    if (at == drift->count || moved == 0.0)
        return factor;
    return portable_exp(log_epochs_at(drift, drift->octaves[at] - moved) - drift->log_epochs[at] +
                        least_log_cost(drift, 0.0, &unused) - least_log_cost(drift, moved, &unused));
}

struct optimum drift_optimum(const struct drift *drift, uint64_t recurrence)
{
    double factor = level_factor(drift->kind, drift->recurrences, recurrence), still_j = INFINITY;
    struct optimum optimum = drift->unmoved;
    size_t at = 0;

    if (drift->count > 0)
        still_j = portable_exp(least_log_cost(drift, 0.0, &at));
    if (still_j <= optimum.cost_j && drift->count > 0) {
        least_log_cost(drift, moved_octaves(drift, recurrence), &at);
        optimum = (struct optimum){drift->batches[at], drift->best_points[at], still_j};
    }
    optimum.cost_j *= factor;
    return optimum;
}
