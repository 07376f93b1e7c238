/* SPDX-License-Identifier: Apache-2.0 */
#include "made_loads.h"

#include <math.h>

#define NEVER 0.0, 0.0, 0.0

const struct made_load made_loads[] = {
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
const unsigned made_load_count = sizeof made_loads / sizeof made_loads[0];

static double uniform(struct made_sequence *sequence)
{
    sequence->random = sequence->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(sequence->random >> 11) * 0x1p-53;
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
