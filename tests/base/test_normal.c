/* SPDX-License-Identifier: Apache-2.0 */
/* The normal distribution against the C library's erfc, Cholesky factors against what they factor, and sums
 * of weighted rows. */
#include <math.h>

#include "test.h"

#include "base/math/cholesky.h"
#include "base/math/normal.h"
#include "base/math/weighted_rows.h"

static void test_probability(void **state)
{
    (void)state;
    for (double z = -37.0; z <= 9.0; z += 0.01171875) {
        double expected = 0.5 * erfc(-z / sqrt(2.0)), got = normal_below(z);

        if (!(fabs(got - expected) <= 1e-12 * expected))
            fail_msg("below %g: %.17g, expected %.17g", z, got, expected);
    }
    assert_true(normal_below(-INFINITY) == 0.0);
    assert_true(normal_below(INFINITY) == 1.0);
    assert_true(isnan(normal_below(NAN)));
}

/* Many at once have the bits that each alone has. */
static void test_probabilities(void **state)
{
    double z[100], below[100];

    (void)state;
    for (size_t i = 0; i < COUNT(z); i++)
        below[i] = z[i] = ((double)i - 50.0) * 0.17 * (i % 7 == 0 ? 6.0 : 1.0);
    normal_below_all(below, COUNT(below));
    for (size_t i = 0; i < COUNT(z); i++)
        check_double(below[i], normal_below(z[i]));
    z[0] = -INFINITY;
    z[1] = NAN;
    z[2] = INFINITY;
    normal_below_all(z, 3);
    check_double(z[0], 0.0);
    assert_true(isnan(z[1]));
    check_double(z[2], 1.0);
}

static void test_density(void **state)
{
    (void)state;
    for (double z = -8.0; z <= 8.0; z += 0.25) {
        double step = 1e-5, slope = (normal_below(z + step) - normal_below(z - step)) / (2.0 * step);

        if (z <= 4.0 && !(fabs(normal_density(z) - slope) <= 1e-6 * slope + 1e-12))
            fail_msg("density at %g: %.17g, slope %.17g", z, normal_density(z), slope);
    }
}

/* Near -infinity the ratio is |z| + 1/|z| - 2/|z|^3 and so on. */
static void test_slope(void **state)
{
    (void)state;
    for (double z = -35.0; z <= 8.0; z += 0.0625) {
        double expected = normal_density(z) / normal_below(z);

        if (!(fabs(normal_slope(z) - expected) <= 1e-12 * expected))
            fail_msg("slope at %g: %.17g, expected %.17g", z, normal_slope(z), expected);
    }
    for (double z = 100.0; z <= 1e6; z *= 10.0) {
        double expected = z + 1.0 / z - 2.0 / (z * z * z);

        if (!(fabs(normal_slope(-z) - expected) <= 1e-9 * expected))
            fail_msg("slope at %g: %.17g, expected %.17g", -z, normal_slope(-z), expected);
    }
}

enum { SIZE = 7 };

/* L L' is the matrix again, L^-1 solves, and the logarithm is that of the determinant. */
static void test_cholesky(void **state)
{
    double factor[SIZE * SIZE], matrix[SIZE * SIZE], right[SIZE * 2], before[SIZE * 2];
    uint64_t random = 5;
    double log_diagonal, log_product = 0.0;

    (void)state;
    for (size_t i = 0; i < SIZE; i++) {
        for (size_t j = 0; j < SIZE; j++) {
            double apart = (double)i - (double)j;

            matrix[i * SIZE + j] = exp(-0.1 * apart * apart) + (i == j ? 0.3 : 0.0);
        }
    }
    for (size_t i = 0; i < SIZE * 2; i++)
        right[i] = before[i] = test_uniform(&random) - 0.5;
    memcpy(factor, matrix, sizeof factor);
    log_diagonal = cholesky_factor(factor, SIZE);
    cholesky_forward(factor, SIZE, right, 2);
    for (size_t i = 0; i < SIZE; i++) {
        log_product += log(factor[i * SIZE + i]);
        for (size_t j = 0; j <= i; j++) {
            double sum = 0.0;

            for (size_t k = 0; k <= j; k++)
                sum += factor[i * SIZE + k] * factor[j * SIZE + k];
            assert_true(fabs(sum - matrix[i * SIZE + j]) < 1e-14);
        }
        for (size_t column = 0; column < 2; column++) {
            double sum = 0.0;

            for (size_t k = 0; k <= i; k++)
                sum += factor[i * SIZE + k] * right[k * 2 + column];
            assert_true(fabs(sum - before[i * 2 + column]) < 1e-14);
        }
    }
    assert_true(fabs(log_diagonal - log_product) < 1e-13);
}

/* Of two equal rows the second pivot is nothing but rounding; the factor stays finite. */
static void test_singular(void **state)
{
    double matrix[4] = {2.0, 2.0, 2.0, 2.0};

    (void)state;
    assert_true(isfinite(cholesky_factor(matrix, 2)));
    assert_true(matrix[3] > 0.0);
}

enum { ROWS = 11, STRIDE = 9, STEP = 2 };

/* Whatever the number of rows, the bits are those of adding one after the other. */
static void test_weighted_rows(void **state)
{
    double rows[ROWS * STRIDE], weights[ROWS * STEP], sums[STRIDE], expected[STRIDE];
    uint64_t random = 9;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = test_uniform(&random) - 0.5;
    for (size_t i = 0; i < COUNT(weights); i++)
        weights[i] = test_uniform(&random) - 0.5;
    for (size_t count = 0; count <= ROWS; count++) {
        const struct weighted_rows of = {rows, STRIDE, weights, STEP, count, count % 2 == 0 ? 1.0 : -1.0};

        for (size_t i = 0; i < STRIDE; i++)
            sums[i] = expected[i] = (double)i;
        for (size_t row = 0; row < count; row++) {
            for (size_t i = 0; i < STRIDE; i++)
                expected[i] += of.sign * weights[row * STEP] * rows[row * STRIDE + i];
        }
        weighted_rows_add(&of, sums, STRIDE);
        for (size_t i = 0; i < STRIDE; i++)
            check_double(sums[i], expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probability), cmocka_unit_test(test_probabilities),
        cmocka_unit_test(test_density),     cmocka_unit_test(test_slope),
        cmocka_unit_test(test_cholesky),    cmocka_unit_test(test_weighted_rows),
        cmocka_unit_test(test_singular),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
