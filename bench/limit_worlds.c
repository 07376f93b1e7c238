/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_worlds.h"

#include <math.h>

#include "base/math/philox.h"

enum family { CONVEX, PLATEAU, THROTTLE, TWO_MINIMA, OWN_DIP, ROUGH, PART_ROUGH, FAMILIES };

const char *const limit_families[] = {"convex",  "plateau", "throttle",  "two minima",
                                      "own dip", "rough",   "part rough"};
const size_t limit_family_count = FAMILIES;

static double uniform(struct philox *random, double from, double to)
{
    return from + (to - from) * ((double)(philox_u64(random) >> 11) * 0x1p-53);
}

static double log_uniform(struct philox *random, double from, double to)
{
    return exp(uniform(random, log(from), log(to)));
}

static double normal(struct philox *random)
{
    double radius = sqrt(-2.0 * log(uniform(random, 0x1p-54, 1.0)));

    return radius * cos(2.0 * 3.14159265358979323846 * uniform(random, 0.0, 1.0));
}

/* What all batch sizes of a job have in common. */
struct job {
    double low_need, high_need, middle, width; /* needs as shares of the highest limit */
    double share, exponent;
    double throttles_at, throttle_exponent;
    double dip_at, dip_depth; /* as a share of the way up from the lowest limit */
    double roughness;
};

static struct job draw_job(enum family family, struct philox *random)
{
    struct job job = {
        .low_need = uniform(random, 0.35, 0.8),
        .middle = uniform(random, 0.0, LIMIT_WORLD_BATCHES - 1),
        .width = uniform(random, 0.5, 2.0),
        .share = log_uniform(random, 0.02, 0.3),
        .exponent = uniform(random, 1.5, 4.0),
        .throttles_at = uniform(random, 0.0, 0.5),
        .throttle_exponent = uniform(random, 1.0, 4.0),
        .dip_at = uniform(random, 0.0, 1.0),
        .dip_depth = uniform(random, 0.02, 0.08),
        .roughness = log_uniform(random, 0.005, 0.06),
    };

    if (family == PLATEAU)
        job.low_need = uniform(random, 0.2, 0.5);
    job.high_need = uniform(random, job.low_need, family == PLATEAU ? 0.5 : 1.1);
    return job;
}

static double need_of(const struct job *job, size_t batch, struct philox *random)
{
    double way = 1.0 / (1.0 + exp((job->middle - (double)batch) / job->width));

    return fmax(job->low_need + way * (job->high_need - job->low_need) + 0.04 * normal(random), 0.1);
}

static void draw_batch(struct limit_world *world, const struct job *job, enum family family, size_t batch,
                       double lowest_w, struct philox *random)
{
    double need_w = need_of(job, batch, random) * world->max_power_w;
    double dip_at = family == OWN_DIP ? uniform(random, 0.0, 1.0) : job->dip_at;
    double dip = job->dip_depth * uniform(random, 0.5, 1.5), steps = (double)(world->count[batch] - 1);
    double way_down = (double)batch / (LIMIT_WORLD_BATCHES - 1);
    double rough = family == ROUGH        ? job->roughness
                   : family == PART_ROUGH ? job->roughness * pow(0.1, way_down)
                                          : 0.0;

    for (size_t i = 0; i < world->count[batch]; i++) {
        struct fly_power_point *point = &world->points[batch][i];
        double up = (double)i / steps, limit_w = lowest_w + up * (world->max_power_w - lowest_w);
        double throttles_w = lowest_w + job->throttles_at * (world->max_power_w - lowest_w);
        double r = fmin(limit_w / need_w, 1.0), off = (up - dip_at) * steps / 1.5;

        point->limit_w = limit_w;
        point->power_w = r * need_w * exp(rough * normal(random));
        point->time_s = (1.0 + job->share * (pow(r, -job->exponent) - 1.0)) * exp(rough * normal(random));
        if (family == THROTTLE && limit_w < throttles_w)
            point->time_s *= pow(throttles_w / limit_w, job->throttle_exponent);
        if (family == TWO_MINIMA || family == OWN_DIP)
            point->time_s *= 1.0 - dip * exp(-off * off);
    }
}

void limit_world_draw(struct limit_world *world, size_t family, uint64_t seed)
{
    struct philox random = philox_open(philox_key((uint32_t)seed, limit_families[family]), 0, 0, 0);
    struct job job = draw_job((enum family)family, &random);
    bool few = uniform(&random, 0.0, 1.0) < 0.5;

    world->max_power_w = few ? 300.0 : 500.0;
    world->batch_count = LIMIT_WORLD_BATCHES;
    world->default_batch = 3 + (size_t)uniform(&random, 0.0, 3.0);
    for (size_t i = 0; i < LIMIT_WORLD_BATCHES; i++) {
        world->octaves[i] = (double)i;
        world->count[i] = few ? 9 : 13;
        draw_batch(world, &job, (enum family)family, i, few ? 100.0 : 200.0, &random);
    }
}

void limit_world_of(struct limit_world *world, const struct workload *workload)
{
    world->max_power_w = workload->spec.max_power_w;
    world->batch_count = workload->spec.batch_count;
    world->default_batch = workload->spec.default_batch;
    for (size_t i = 0; i < world->batch_count; i++) {
        world->octaves[i] = log2((double)workload->spec.batches[i].size);
        world->count[i] = workload->batches[i].point_count;
        for (size_t k = 0; k < world->count[i]; k++)
            world->points[i][k] = workload->batches[i].points[k];
    }
}

void limit_world_measure(const struct limit_world *world, double noise, uint64_t seed,
                         struct limit_world *out_measured)
{
    struct philox random = philox_open(philox_key((uint32_t)seed, "noise"), 0, 0, 0);

    *out_measured = *world;
    for (size_t i = 0; i < world->batch_count; i++) {
        for (size_t k = 0; k < world->count[i]; k++) {
            out_measured->points[i][k].time_s *= exp(noise * normal(&random));
            out_measured->points[i][k].power_w *= exp(noise * normal(&random));
        }
    }
}
