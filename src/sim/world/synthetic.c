/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a job draws comes from streams keyed by its name: stream SHAPE for what it has once, and
 * one stream for each batch size. So a batch size's runs do not depend on how many there are.
 */
#include "sim/world/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <flyball/cost.h>

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"
#include "model/gpu_model.h"

enum { MEMORY_MAX = 1 << 20, SHAPE = 1, RUNS = 2, NAME_MAX_BYTES = 32 };
enum { FEWEST_BATCHES = 8, SMALLEST_OCTAVE = 2, MOST_SMALLEST_OCTAVES = 4, LEAST_MAX_EPOCHS = 10 };

static const double samples = 50000.0, default_eta = 0.5;
static const double dearest = 4.0, dearest_far = 16.0, far_octaves = 4.0; /* of a default */
static const double natural_log_of_2 = 0x1.62e42fefa39efp-1;

const char *const synthetic_names[] = {
    [SYNTHETIC_SMOOTH] = "smooth", [SYNTHETIC_NOISY] = "noisy", [SYNTHETIC_CLIFF] = "cliff",
    [SYNTHETIC_BUMPY] = "bumpy",   [SYNTHETIC_FLAT] = "flat",   [SYNTHETIC_FAR] = "far",
    [SYNTHETIC_COUNT] = NULL};

const char synthetic_gpu[] = "synthetic";

/* A job's law, before its runs are drawn. */
struct law {
    enum synthetic_kind kind;
    unsigned first_octave;
    size_t batches;
    double least_epochs;    /* e */
    double left, right;     /* l and r, in octaves */
    double spread;          /* s */
    double bumps;           /* deviation of a batch size's mean from the law, as a logarithm */
    double lowest, highest; /* octaves between which the target is reached */
    struct gpu_load load;
};

static double uniform(struct philox *draws, double from, double to)
{
    return from + (to - from) * (double)(philox_u64(draws) >> 11) * 0x1p-53;
}

static double normal(struct philox *draws)
{
    return ziggurat_normal(ziggurat_tables(), philox_u64(draws), philox_source, draws);
}

static double power_of_2(double exponent)
{
    return portable_exp(exponent * natural_log_of_2);
}

static double octave_of(const struct law *law, size_t batch)
{
    return (double)(law->first_octave + batch);
}

static void draw_load(struct law *law, struct philox *draws)
{
    law->load.sample_s = 100e-6 * portable_exp(0.5 * normal(draws));
    law->load.step_s = uniform(draws, 1e-3, 10e-3);
    law->load.half_busy_batch = power_of_2(uniform(draws, 3.0, 7.0));
    law->load.nature.clock_share = uniform(draws, 0.3, 1.0);
}

/* Draws what only some kinds have. `centre` is c. */
static void draw_kind(struct law *law, double centre, uint32_t number, struct philox *draws)
{
    switch (law->kind) {
    case SYNTHETIC_SMOOTH:
        law->spread = 0.05;
        break;
    case SYNTHETIC_NOISY:
        law->spread = uniform(draws, 0.2, 0.5);
        break;
    case SYNTHETIC_CLIFF:
        if (number % 2 == 0)
            law->highest = centre + uniform(draws, 0.5, 2.0);
        else
            law->lowest = centre - uniform(draws, 0.5, 2.0);
        break;
    case SYNTHETIC_BUMPY:
        law->bumps = 0.3;
        break;
    case SYNTHETIC_FLAT:
        law->spread = 0.05;
        law->bumps = 0.03;
        law->least_epochs = portable_exp(uniform(draws, portable_log(20.0), portable_log(60.0)));
        law->left = -INFINITY;
        law->right = INFINITY;
        law->load.step_s = 0.0;
        law->load.half_busy_batch = 0.125;
        break;
    default:
        break;
    }
}

static struct law draw_law(enum synthetic_kind kind, uint32_t number, struct philox *draws)
{
    struct law law = {.kind = kind, .spread = 0.1, .lowest = -INFINITY, .highest = INFINITY};
    double centre, width;

    law.batches = FEWEST_BATCHES + philox_below(draws, SYNTHETIC_BATCHES_MAX - FEWEST_BATCHES + 1);
    law.first_octave = SMALLEST_OCTAVE + philox_below(draws, MOST_SMALLEST_OCTAVES);
    law.least_epochs = portable_exp(uniform(draws, portable_log(3.0), portable_log(60.0)));
    centre = uniform(draws, octave_of(&law, 0), octave_of(&law, law.batches - 1));
    width = kind == SYNTHETIC_FAR ? uniform(draws, 3.0, 8.0) : uniform(draws, 0.0, 6.0);
    law.left = centre - width / 2.0;
    law.right = centre + width / 2.0;
    draw_load(&law, draws);
    draw_kind(&law, centre, number, draws);
    return law;
}

/* Draws the recorded runs of one batch size. */
static int draw_runs(const struct law *law, size_t batch, struct philox_key key, struct arena *arena,
                     struct workload_batch *out_batch, struct fly_error *out_error)
{
    struct philox draws = philox_open(key, RUNS, law->first_octave + batch, 0);
    double octave = octave_of(law, batch);
    double mean = law->least_epochs * (1.0 + power_of_2(octave - law->right)) *
                  (1.0 + power_of_2(law->left - octave)) * portable_exp(law->bumps * normal(&draws));
    double *epochs = arena_alloc(arena, SYNTHETIC_RUNS, sizeof epochs[0]);

    if (epochs == NULL)
        return error_no_memory(out_error);
    for (size_t run = 0; run < SYNTHETIC_RUNS; run++) {
        double drawn = floor(mean * portable_exp(law->spread * normal(&draws)) + 0.5);

        epochs[run] = octave < law->lowest || octave > law->highest ? NAN : fmax(1.0, drawn);
    }
    out_batch->path_epochs = epochs;
    out_batch->path_count = SYNTHETIC_RUNS;
    return 0;
}

/* Computes the power points of one batch size. */
static int make_points(const struct law *law, struct arena *arena, struct batch_choice *choice,
                       struct workload_batch *batch, struct fly_error *out_error)
{
    const struct gpu_shape *shape = gpu_shape_find("v100-like");
    size_t count = gpu_limit_count(shape);
    struct fly_power_point *points = arena_alloc(arena, count, sizeof points[0]);
    double *limits_w = arena_alloc(arena, count, sizeof limits_w[0]);

    if (points == NULL || limits_w == NULL)
        return error_no_memory(out_error);
    for (unsigned i = 0; i < count; i++) {
        points[i] = gpu_work(shape, &law->load, samples, choice->size, gpu_limit_w(shape, i));
        limits_w[i] = points[i].limit_w;
        batch->mean_epoch_energy_j += points[i].time_s * points[i].power_w / (double)count;
        batch->mean_epoch_time_s += points[i].time_s / (double)count;
    }
    batch->points = points;
    batch->point_count = choice->limit_count = count;
    choice->limits_w = limits_w;
    return 0;
}

static int make_batches(struct workload *workload, const struct law *law, struct philox_key key,
                        struct fly_error *out_error)
{
    struct batch_choice *choices = arena_alloc(&workload->arena, law->batches, sizeof choices[0]);
    int code = 0;

    workload->batches = arena_alloc(&workload->arena, law->batches, sizeof workload->batches[0]);
    if (choices == NULL || workload->batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < law->batches && code == 0; i++) {
        choices[i].size = UINT32_C(1) << (law->first_octave + i);
        code = make_points(law, &workload->arena, &choices[i], &workload->batches[i], out_error);
        if (code == 0)
            code = draw_runs(law, i, key, &workload->arena, &workload->batches[i], out_error);
    }
    workload->spec.batches = choices;
    workload->spec.batch_count = law->batches;
    workload->spec.max_power_w = batch_highest_limit_w(&choices[0]);
    workload->limit_count = choices[0].limit_count;
    return code;
}

/* Returns the expected cost of a training at the best limit if it may run as long as it needs; infinite if
 * it never reaches the target. */
static double expected_cost_j(const struct workload *workload, size_t batch)
{
    const struct workload_batch *trained = &workload->batches[batch];
    double epochs = 0.0, epoch_j = INFINITY;

    for (uint32_t i = 0; i < trained->path_count; i++)
        epochs += trained->path_epochs[i] / trained->path_count;
    for (size_t p = 0; p < trained->point_count; p++) {
        const struct fly_power_point *point = &trained->points[p];

        epoch_j = fmin(epoch_j, fly_cost(default_eta, workload->spec.max_power_w,
                                         point->time_s * point->power_w, point->time_s));
    }
    return isnan(epochs) ? INFINITY : epochs * epoch_j;
}

static size_t best_batch(const struct workload *workload)
{
    size_t best = 0;

    for (size_t i = 1; i < workload->spec.batch_count; i++) {
        if (expected_cost_j(workload, i) < expected_cost_j(workload, best))
            best = i;
    }
    return best;
}

static double octaves_between(size_t one, size_t other)
{
    return fabs((double)one - (double)other);
}

/* Draws the default among the batch sizes that are cheap enough and, with `far`, far enough from the best. */
static size_t draw_default(const struct workload *workload, enum synthetic_kind kind, struct philox *draws)
{
    size_t best = best_batch(workload), candidates[SYNTHETIC_BATCHES_MAX], count = 0, farthest = best;
    double most_j = expected_cost_j(workload, best) * (kind == SYNTHETIC_FAR ? dearest_far : dearest);

    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        if (expected_cost_j(workload, i) > most_j)
            continue;
        if (octaves_between(i, best) > octaves_between(farthest, best))
            farthest = i;
        if (kind != SYNTHETIC_FAR || octaves_between(i, best) >= far_octaves)
            candidates[count++] = i;
    }
    return count > 0 ? candidates[philox_below(draws, (uint32_t)count)] : farthest;
}

static void choose_default(struct workload *workload, enum synthetic_kind kind, struct philox *draws)
{
    const struct workload_batch *standard;
    double longest = 0.0;

    workload->spec.default_batch = draw_default(workload, kind, draws);
    standard = &workload->batches[workload->spec.default_batch];
    for (uint32_t i = 0; i < standard->path_count; i++)
        longest = fmax(longest, standard->path_epochs[i]);
    workload->spec.max_epochs = (uint32_t)fmax(2.0 * longest, LEAST_MAX_EPOCHS);
}

static void describe(struct workload *workload)
{
    const struct job_spec *spec = &workload->spec;

    workload->gpu = synthetic_gpu;
    workload->job = (struct job_description){.name = spec->name,
                                             .dataset = spec->name,
                                             .network = synthetic_gpu,
                                             .optimizer = synthetic_gpu,
                                             .max_epochs = spec->max_epochs,
                                             .default_batch_size = spec->batches[spec->default_batch].size};
}

int synthetic_make(struct workload *workload, enum synthetic_kind kind, uint32_t number,
                   struct fly_error *out_error)
{
    char name[NAME_MAX_BYTES];
    struct philox_key key;
    struct philox draws;
    struct law law;
    int code;

    snprintf(name, sizeof name, "%s-%u", synthetic_names[kind], number);
    *workload = (struct workload){.gpu = synthetic_gpu};
    arena_init(&workload->arena, MEMORY_MAX);
    workload->spec.name = arena_strdup(&workload->arena, name);
    key = philox_key(0, name);
    draws = philox_open(key, SHAPE, 0, 0);
    law = draw_law(kind, number, &draws);
    code = workload->spec.name != NULL ? make_batches(workload, &law, key, out_error)
                                       : error_no_memory(out_error);
    if (code < 0) {
        workload_close(workload);
        return code;
    }
    choose_default(workload, kind, &draws);
    describe(workload);
    return 0;
}
