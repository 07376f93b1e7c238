/* SPDX-License-Identifier: Apache-2.0 */
#include "made_loads.h"

#include <math.h>

#define NEVER 0.0, 0.0, 0.0

static const struct made_load one_of_each[MADE_LOADS] = {
    {"constant", 0, 1.0, 0.0, 1.0, 250.0, 250.0, NEVER},
    {"training, 0.32 s steps", 0, 0.32, 0.05, 0.85, 110.0, 300.0, 25.0, 3.0, 75.0},
    {"training, 0.09 s steps", 0, 0.09, 0.1, 0.8, 120.0, 280.0, 30.0, 2.0, 80.0},
    {"training, 2.5 s steps", 0, 2.5, 0.05, 0.9, 100.0, 330.0, 40.0, 4.0, 70.0},
    {"square, 30 ms", 0, 0.03, 0.1, 0.5, 80.0, 320.0, NEVER},
    {"square, 100 ms, jittered", MADE_PART_TIME, 0.1, 0.1, 0.5, 80.0, 320.0, NEVER},
    {"square, 240 ms", 0, 0.24, 0.1, 0.5, 80.0, 320.0, NEVER},
    {"square, 1 s", MADE_SECOND, 1.0, 0.1, 0.5, 80.0, 320.0, NEVER},
    {"square, 10 s", 0, 10.0, 0.1, 0.5, 80.0, 320.0, NEVER},
    {"short dips", 0, 0.5, 0.3, 0.94, 70.0, 300.0, NEVER},
    {"bursts", 0, 3.0, 0.9, 0.1, 60.0, 350.0, NEVER},
    {"rare bursts", 0, 40.0, 0.9, 0.05, 60.0, 350.0, NEVER},
    {"square, 100 ms exactly", MADE_PART_TIME | MADE_SECOND, 0.1, 0.0, 0.5, 80.0, 320.0, NEVER},
    {"training, 0.2 s steps", MADE_PART_TIME, 0.2, 0.03, 0.85, 110.0, 300.0, NEVER},
    {"training, 0.5 s exactly", MADE_PART_TIME, 0.5, 0.0, 0.85, 110.0, 300.0, NEVER},
    {"square, 333 ms exactly", MADE_SECOND, 0.333, 0.0, 0.5, 80.0, 320.0, NEVER},
};
const struct made_load *made_loads = one_of_each;

static double draw(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) * 0x1p-53;
}

static struct made_load draw_training(uint64_t *random)
{
    double low_w = 70.0 + 130.0 * draw(random);
    bool pauses = draw(random) < 0.6;

    return (struct made_load){
        .period_s = 0.05 * exp(draw(random) * log(100.0)),
        .jitter = 0.02 * exp(draw(random) * log(15.0)),
        .duty = 0.5 + 0.45 * draw(random),
        .low_w = low_w,
        .high_w = 220.0 + 160.0 * draw(random),
        .pause_every_s = pauses ? 20.0 + 40.0 * draw(random) : 0.0,
        .pause_s = pauses ? 3.0 : 0.0,
        .pause_w = pauses ? low_w - 10.0 : 0.0,
    };
}

void made_loads_draw(uint64_t seed)
{
    static struct made_load drawn[MADE_LOADS];
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;

    for (int i = 0; i < MADE_LOADS; i++)
        drawn[i] = draw_training(&random);
    made_loads = drawn;
}

static double uniform(struct made_sequence *sequence)
{
    return draw(&sequence->random);
}

static double exponential(struct made_sequence *sequence, double mean)
{
    return -mean * log(1.0 - uniform(sequence));
}

struct made_sequence made_sequence(const struct made_load *load, uint64_t seed)
{
    struct made_sequence sequence = {.load = load, .random = seed * 0x9e3779b97f4a7c15u + 1};

    sequence.period_s = load->period_s * (0.05 + uniform(&sequence));
    sequence.until_pause_s = exponential(&sequence, load->pause_every_s);
    return sequence;
}

void made_sequence_next(struct made_sequence *sequence, double *out_duration_s, double *out_power_w)
{
    const struct made_load *load = sequence->load;

    if (load->pause_every_s > 0.0 && sequence->until_pause_s <= 0.0) {
        *out_duration_s = 0.2 + exponential(sequence, load->pause_s);
        *out_power_w = load->pause_w;
        sequence->until_pause_s = exponential(sequence, load->pause_every_s);
        return;
    }
    sequence->high = !sequence->high;
    if (sequence->high)
        sequence->period_s = load->period_s * (1.0 + load->jitter * (2.0 * uniform(sequence) - 1.0));
    *out_duration_s = sequence->period_s * (sequence->high ? load->duty : 1.0 - load->duty);
    *out_power_w = sequence->high ? load->high_w : load->low_w;
    sequence->until_pause_s -= *out_duration_s;
}
