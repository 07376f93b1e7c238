/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 754 rounds + - * / and square roots the same everywhere; libm's exp and log differ in last bits. */
#include "demo/portable.h"

#include <math.h>
#include <pthread.h>

struct luck_key luck_key(uint32_t seed, const char *job)
{
    uint32_t hash = 2166136261u;

    for (; *job != '\0'; job++)
        hash = (hash ^ (unsigned char)*job) * 16777619u;
    return (struct luck_key){seed, hash};
}

struct luck luck_open(struct luck_key key, uint32_t stream, uint64_t index)
{
    return (struct luck){.key = key, .stream = stream, .index = index};
}

uint64_t luck_u64(struct luck *luck)
{
    uint32_t key0 = luck->key.seed, key1 = luck->key.job;
    uint32_t words[4] = {luck->draw, (uint32_t)luck->index, (uint32_t)(luck->index >> 32), luck->stream};

    luck->has_spare = !luck->has_spare;
    if (!luck->has_spare)
        return luck->spare;
    luck->draw++;
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53 * words[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57 * words[2];

        words[0] = (uint32_t)(product1 >> 32) ^ words[1] ^ key0;
        words[1] = (uint32_t)product1;
        words[2] = (uint32_t)(product0 >> 32) ^ words[3] ^ key1;
        words[3] = (uint32_t)product0;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    luck->spare = (uint64_t)words[3] << 32 | words[2];
    return (uint64_t)words[1] << 32 | words[0];
}

uint32_t luck_below(struct luck *luck, uint32_t bound)
{
    uint64_t product;

    /* Lemire, "Fast Random Integer Generation in an Interval", 2019: few draws need the remainder. */
    do {
        product = (luck_u64(luck) >> 32) * bound;
    } while ((uint32_t)product < bound && (uint32_t)product < -bound % bound);
    return (uint32_t)(product >> 32);
}

/*
 * Layer i is the strip under the density between the heights f(x[i]) and f(x[i - 1]); layer 0 is
 * the base with the tail beyond x[255].
 */
enum { LAYERS = 256 };
static const double tail_start = 3.6541528853610088, layer_area = 0.0049286732339746519;

static struct {
    uint64_t inside[LAYERS]; /* a 52-bit position below this lies under the density */
    double width[LAYERS];    /* of one step of the position */
    double height[LAYERS];   /* density at x[i], 1 at the centre */
} layers;
static pthread_once_t layers_once = PTHREAD_ONCE_INIT;

static double density(double x)
{
    return same_exp(-0.5 * x * x);
}

static void make_layers(void)
{
    double x[LAYERS];

    x[LAYERS - 1] = tail_start;
    for (int i = LAYERS - 2; i >= 1; i--)
        x[i] = sqrt(-2.0 * same_log(layer_area / x[i + 1] + density(x[i + 1])));
    x[0] = layer_area / density(tail_start);
    for (int i = 0; i < LAYERS; i++) {
        double inner = i == 0 ? tail_start : i == 1 ? 0.0 : x[i - 1];

        layers.inside[i] = (uint64_t)(inner / x[i] * 0x1p52);
        layers.width[i] = x[i] / 0x1p52;
        layers.height[i] = i == 0 ? 1.0 : density(x[i]);
    }
}

/* Uniform in [0, 1) with 53 bits. */
static double uniform(struct luck *luck)
{
    return (double)(luck_u64(luck) >> 11) * 0x1p-53;
}

/* The tail beyond tail_start, by Marsaglia's exponential method. */
static double tail(struct luck *luck)
{
    double x, y;

    do {
        x = -1.0 / tail_start * same_log(1.0 - uniform(luck));
        y = -same_log(1.0 - uniform(luck));
    } while (y + y <= x * x);
    return tail_start + x;
}

double luck_normal(struct luck *luck)
{
    pthread_once(&layers_once, make_layers);
    for (;;) {
        uint64_t bits = luck_u64(luck), position = bits >> 9 & 0xfffffffffffff;
        unsigned layer = bits & 0xff;
        bool negative = bits & 0x100;
        double x = (double)(int64_t)position * layers.width[layer];

        if (position >= layers.inside[layer]) {
            if (layer == 0) {
                x = tail(luck);
                negative = position >> 8 & 1;
            } else if ((layers.height[layer - 1] - layers.height[layer]) * uniform(luck) +
                           layers.height[layer] >=
                       density(x)) {
                continue;
            }
        }
        return negative ? -x : x;
    }
}

/* In two parts, so that k times the upper one is exact (Cody and Waite, 1980). */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

/* x = k ln 2 + r, then the series of e^r. */
double same_exp(double x)
{
    double k = floor(x / 0x1.62e42fefa39efp-1 + 0.5);
    double r = (x - k * ln2_high) - k * ln2_low, sum = 1.0;

    for (int n = 13; n >= 1; n--)
        sum = 1.0 + r / n * sum;
    return ldexp(sum, (int)k);
}

/* x = m 2^k with m in [sqrt(1/2), sqrt(2)), then the series of 2 artanh((m - 1) / (m + 1)). */
double same_log(double x)
{
    int k;
    double m = frexp(x, &k), s, z, sum = 0.0;

    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2.0;
        k--;
    }
    s = (m - 1.0) / (m + 1.0);
    z = s * s;
    for (int n = 23; n >= 3; n -= 2)
        sum = z * (1.0 / n + sum);
    return k * ln2_high + (2.0 * s + (2.0 * s * sum + k * ln2_low));
}
