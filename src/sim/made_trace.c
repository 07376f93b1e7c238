/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/made_trace.h"

#include <math.h>

#include "base/number.h"
#include "base/philox.h"
#include "base/portable_math.h"
#include "base/ziggurat.h"

enum { SMALLEST_BATCH = 8, LARGEST_BATCH = 2048, DEFAULT_BATCH = 1024, MAX_EPOCHS = 100, RUNS = 5 };
enum { LOWEST_LIMIT_W = 100, HIGHEST_LIMIT_W = 250, LIMIT_STEP_W = 25 };

static const double idle_w = 70.0;
static const double samples = 50000.0;

const char made_trace_name[] = "made-up";

static double epochs_to_target(uint32_t batch_size, double z)
{
    double mean = 10.0 * (1.0 + batch_size / 512.0) * (1.0 + 8.0 / batch_size);

    return fmax(1.0, floor(mean * portable_exp(0.1 * z) + 0.5));
}

void made_trace_write_train(FILE *stream, uint32_t seed)
{
    const struct philox_key key = philox_key(seed, made_trace_name);

    fputs("dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n", stream);
    for (uint32_t b = SMALLEST_BATCH; b <= LARGEST_BATCH; b *= 2) {
        for (uint32_t run = 1; run <= RUNS; run++) {
            struct philox philox = philox_open(key, b, run, 0);
            double z = ziggurat_normal(ziggurat_tables(), philox_u64(&philox), philox_source, &philox);
            char epochs[NUMBER_TEXT_MAX];

            number_format(epochs_to_target(b, z), epochs);
            fprintf(stream, "%s,mlp,%u,sgd,0.1,%u,0.9,%s\n", made_trace_name, b, run,
                    b == LARGEST_BATCH && run > 1 ? "nan" : epochs);
        }
    }
}

static double cube_root(double x)
{
    return portable_exp(portable_log(x) / 3.0);
}

void made_trace_write_power(FILE *stream)
{
    fputs("dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n", stream);
    for (uint32_t b = SMALLEST_BATCH; b <= LARGEST_BATCH; b *= 2) {
        for (int limit_w = LOWEST_LIMIT_W; limit_w <= HIGHEST_LIMIT_W; limit_w += LIMIT_STEP_W) {
            double wanted_w = idle_w + 180.0 * b / (b + 48.0);
            double clock = limit_w < wanted_w ? cube_root((limit_w - idle_w) / (wanted_w - idle_w)) : 1.0;
            char time_s[NUMBER_TEXT_MAX], power_w[NUMBER_TEXT_MAX];

            number_format(samples * (100e-6 + 4e-3 / b) / clock, time_s);
            number_format(fmin(wanted_w, limit_w), power_w);
            fprintf(stream, "%s,mlp,%u,sgd,%d,%s,%s\n", made_trace_name, b, limit_w, time_s, power_w);
        }
    }
}

void made_trace_write_jobs(FILE *stream)
{
    fprintf(stream,
            "# The job of this made-up trace; nothing in it was measured.\n"
            "[%s]\nnetwork = mlp\noptimizer = sgd\ntarget_metric = 0.9\nmax_epochs = %d\ndefault_batch_size "
            "= %d\n",
            made_trace_name, MAX_EPOCHS, DEFAULT_BATCH);
}
