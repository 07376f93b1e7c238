/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_unknown_last(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    if (!isfinite(a) || !isfinite(b))
        return isfinite(b) - isfinite(a);
    return (a > b) - (a < b);
}

double statistics_quantile(const double *sorted, size_t count, double fraction)
{
    double at;
    size_t below;

    if (count == 0)
        return NAN;
    at = fraction * (double)(count - 1);
    below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct statistics statistics_of(double *values, size_t count)
{
    struct statistics result = {.mean = NAN, .standard_error = NAN, .p10 = NAN, .p90 = NAN};
    double sum = 0.0, squares = 0.0;

    qsort(values, count, sizeof values[0], compare_unknown_last);
    while (result.count < count && isfinite(values[result.count]))
        sum += values[result.count++];
    if (result.count == 0)
        return result;
    result.mean = sum / (double)result.count;
    for (size_t i = 0; i < result.count; i++)
        squares += (values[i] - result.mean) * (values[i] - result.mean);
    if (result.count > 1)
        result.standard_error = sqrt(squares / (double)(result.count - 1) / (double)result.count);
    result.p10 = statistics_quantile(values, result.count, 0.1);
    result.p90 = statistics_quantile(values, result.count, 0.9);
    return result;
}
