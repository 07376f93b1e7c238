/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/made_groups.h"

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"

enum { SIZES_STREAM = 0, RUNS_STREAM = 1 };

static const double typical_s = 3600.0, spread = 0.3, gap_ratio = 1.5;

static double normal(struct philox *philox)
{
    return ziggurat_normal(ziggurat_tables(), philox_u64(philox), philox_source, philox);
}

/* Exponential with mean 1, never infinite. */
static double exponential(struct philox *philox)
{
    return -portable_log(((double)(philox_u64(philox) >> 11) + 0.5) * 0x1p-53);
}

static void write_group(FILE *stream, const struct made_groups *made, struct philox_key key, uint64_t group,
                        uint64_t submissions)
{
    struct philox philox = philox_open(key, RUNS_STREAM, group, 0);
    double runs_s = typical_s * portable_exp(normal(&philox)), start_s = 0.0;

    for (uint64_t i = 0; i < submissions; i++) {
        double ratio = portable_exp(spread * normal(&philox));

        fprintf(stream, "made-up-%llu,%.1f,%.1f,%s,%.6f\n", (unsigned long long)group, start_s,
                start_s + runs_s * ratio + 0.1, made->datasets[group % made->dataset_count], ratio);
        start_s += runs_s * gap_ratio * exponential(&philox);
    }
}

void made_groups_write(FILE *stream, const struct made_groups *made)
{
    const struct philox_key key = philox_key(made->seed, "made-up groups");
    double mean = (double)made->submissions / (double)made->groups;
    uint64_t left = made->submissions;

    fputs("group,start_time,end_time,dataset,runtime_ratio\n", stream);
    for (uint64_t group = 0; group < made->groups && left > 0; group++) {
        struct philox philox = philox_open(key, SIZES_STREAM, group, 0);
        uint64_t submissions = 1 + (uint64_t)((mean - 1.0) * exponential(&philox) + 0.5);

        if (submissions > left || group + 1 == made->groups)
            submissions = left;
        write_group(stream, made, key, group, submissions);
        left -= submissions;
    }
}
