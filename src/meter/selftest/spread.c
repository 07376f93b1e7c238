/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/selftest/spread.h"

#include <math.h>
#include <stdlib.h>

#include "base/math/order.h"

static double quantile(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank > 0 ? rank - 1 : 0];
}

struct spread spread_of(double *values, size_t count)
{
    if (count == 0)
        return (struct spread){0, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values, order_doubles);
    return (struct spread){count, values[0], quantile(values, count, 0.5), quantile(values, count, 0.99),
                           values[count - 1]};
}
