/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/final_metric.h"

#include <math.h>

#include "base/math/student.h"

enum { RUNS_LEAST = 2 };

void final_metrics_take(struct final_metrics *metrics, double metric)
{
    double distance = metric - metrics->mean;

    if (!isfinite(metric))
        return;
    metrics->count++;
    metrics->mean += distance / (double)metrics->count;
    metrics->squares += distance * (metric - metrics->mean);
}

/* The variance of the mean. */
static double doubt(const struct final_metrics *metrics)
{
    double count = (double)metrics->count;

    return metrics->squares / (count - 1.0) / count;
}

bool final_metrics_worse(const struct final_metrics *usual, const struct final_metrics *other, double most,
                         bool larger_is_better)
{
    double loss = larger_is_better ? usual->mean - other->mean : other->mean - usual->mean;
    double one, two, all;

    if (usual->count < RUNS_LEAST || other->count < RUNS_LEAST || !(loss > most))
        return false;
    one = doubt(usual);
    two = doubt(other);
    all = one + two;
    if (!(all > 0.0)) /* equal seeds give equal metrics */
        return true;
    return (loss - most) / sqrt(all) >
           student_95(all * all /
                      (one * one / ((double)usual->count - 1.0) + two * two / ((double)other->count - 1.0)));
}
