/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/ziggurat.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/math/portable_math.h"

enum { LAYERS = 256 };

/* Where the tail begins, and the area of every layer, for 256 layers. */
static const double tail_start = 3.6541528853610088;
static const double layer_area = 0.0049286732339746519;

static struct ziggurat shared_tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static double density(double x)
{
    return portable_exp(-0.5 * x * x);
}

static void tables_make(void)
{
    const double steps = 0x1p52;
    double x[LAYERS];

    x[LAYERS - 1] = tail_start;
    for (int i = LAYERS - 2; i >= 1; i--)
        x[i] = sqrt(-2.0 * portable_log(layer_area / x[i + 1] + density(x[i + 1])));
    x[0] = layer_area / density(tail_start);
    for (int i = 0; i < LAYERS; i++) {
        double inner = i == 0 ? tail_start : i == 1 ? 0.0 : x[i - 1];

        shared_tables.inside[i] = (uint64_t)(inner / x[i] * steps);
        shared_tables.width[i] = x[i] / steps;
        shared_tables.height[i] = i == 0 ? 1.0 : density(x[i]);
    }
}

const struct ziggurat *ziggurat_tables(void)
{
    pthread_once(&tables_once, tables_make);
    return &shared_tables;
}

/* Uniform in [0, 1) with 53 bits. */
static double uniform(ziggurat_source *source, void *generator)
{
    return (double)(source(generator) >> 11) * 0x1p-53;
}

/* The tail beyond tail_start, by Marsaglia's exponential method. */
static double tail(ziggurat_source *source, void *generator)
{
    double x, y;

    do {
        /* log1p(-u) = log(1 - u), and 1 - u is exact for 53-bit u. */
        x = -1.0 / tail_start * portable_log(1.0 - uniform(source, generator));
        y = -portable_log(1.0 - uniform(source, generator));
    } while (y + y <= x * x);
    return tail_start + x;
}

double ziggurat_edge(const struct ziggurat *tables, uint64_t bits, ziggurat_source *source, void *generator)
{
    for (;; bits = source(generator)) {
        unsigned layer = bits & 0xff;
        bool negative = bits & 0x100;
        uint64_t position = bits >> 9 & 0xfffffffffffff;
        double x = (double)(int64_t)position * tables->width[layer];

        if (position >= tables->inside[layer]) {
            if (layer == 0) {
                x = tail(source, generator);
                negative = position >> 8 & 1;
            } else if ((tables->height[layer - 1] - tables->height[layer]) * uniform(source, generator) +
                           tables->height[layer] >=
                       density(x)) {
                continue;
            }
        }
        return negative ? -x : x;
    }
}
