/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/drift_watch.h"

#include <math.h>

enum { FEWEST = 6, COUNTED = 40 };

static const double deviations = 3.5; /* of the share that drift has of the variance, if there is none */

void drift_watch_take(struct drift_watch *watch, double value)
{
    double before = watch->mean, step = value - watch->newest;
    double kept = watch->count >= COUNTED ? 1.0 - 1.0 / COUNTED : 1.0;

    watch->steps = watch->count > 0 ? kept * watch->steps + step * step : 0.0;
    watch->count++;
    watch->newest = value;
    watch->mean += (value - before) / (double)(watch->count < COUNTED ? watch->count : COUNTED);
    watch->squares = kept * watch->squares + (value - before) * (value - watch->mean);
}

/* The share has a standard deviation of about 1 / sqrt(count) where nothing drifts. */
bool drift_watch_drifts(const struct drift_watch *watch)
{
    double count = (double)(watch->count < COUNTED ? watch->count : COUNTED);

    return watch->count >= FEWEST &&
           watch->squares - 0.5 * watch->steps > deviations / sqrt(count) * watch->squares;
}

void drift_watch_save(const struct drift_watch *watch, struct buffer *bytes)
{
    bytes_put_u64(bytes, watch->count);
    bytes_put_double(bytes, watch->newest);
    bytes_put_double(bytes, watch->mean);
    bytes_put_double(bytes, watch->squares);
    bytes_put_double(bytes, watch->steps);
}

bool drift_watch_load(struct drift_watch *watch, struct bytes_reader *bytes)
{
    watch->count = bytes_u64(bytes);
    watch->newest = bytes_double(bytes);
    watch->mean = bytes_double(bytes);
    watch->squares = bytes_double(bytes);
    watch->steps = bytes_double(bytes);
    return isfinite(watch->newest) && isfinite(watch->mean) && isfinite(watch->squares) &&
           watch->squares >= 0.0 && isfinite(watch->steps) && watch->steps >= 0.0;
}
