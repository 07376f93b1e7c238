/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/cholesky.h"

#include <math.h>

#include "base/math/portable_math.h"
#include "base/math/weighted_rows.h"

static const double least_pivot = 1e-14; /* relative to the diagonal element */

double cholesky_factor(double *matrix, size_t count)
{
    double log_diagonal = 0.0;

    for (size_t row = 0; row < count; row++) {
        double *own = &matrix[row * count], rest = own[row], pivot;

        for (size_t column = 0; column < row; column++) {
            const double *other = &matrix[column * count];
            double sum = own[column];

            for (size_t i = 0; i < column; i++)
                sum -= own[i] * other[i];
            own[column] = sum / other[column];
            rest -= own[column] * own[column];
        }
        pivot = sqrt(fmax(rest, least_pivot * own[row]));
        own[row] = pivot;
        log_diagonal += portable_log(pivot);
    }
    return log_diagonal;
}

void cholesky_forward(const double *factor, size_t count, double *right, size_t columns)
{
    for (size_t row = 0; row < count; row++) {
        double *own = &right[row * columns], inverse = 1.0 / factor[row * count + row];

        weighted_rows_add(&(struct weighted_rows){.rows = right,
                                                  .stride = columns,
                                                  .weights = &factor[row * count],
                                                  .step = 1,
                                                  .count = row,
                                                  .sign = -1.0},
                          own, columns);
        for (size_t column = 0; column < columns; column++)
            own[column] *= inverse;
    }
}
