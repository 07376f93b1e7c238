/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/made_trace.h"

#include <math.h>

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"
#include "base/number.h"
#include "model/gpu_model.h"

enum { SMALLEST_BATCH = 8, LARGEST_BATCH = 2048, DEFAULT_BATCH = 1024, MAX_EPOCHS = 100, RUNS = 5 };

static const double samples = 50000.0;
static const struct gpu_load load = {
    .sample_s = 100e-6, .step_s = 4e-3, .half_busy_batch = 48.0, .nature = {.clock_share = 1.0}};

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

void made_trace_write_power(FILE *stream)
{
    const struct gpu_shape *shape = gpu_shape_find("v100-like");

    fputs("dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n", stream);
    for (uint32_t b = SMALLEST_BATCH; b <= LARGEST_BATCH; b *= 2) {
        for (unsigned i = 0; i < gpu_limit_count(shape); i++) {
            struct fly_power_point epoch = gpu_work(shape, &load, samples, b, gpu_limit_w(shape, i));
            char time_s[NUMBER_TEXT_MAX], power_w[NUMBER_TEXT_MAX];

            number_format(epoch.time_s, time_s);
            number_format(epoch.power_w, power_w);
            fprintf(stream, "%s,mlp,%u,sgd,%g,%s,%s\n", made_trace_name, b, epoch.limit_w, time_s, power_w);
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
