/* SPDX-License-Identifier: Apache-2.0 */
/* The belief against a dense reference that weighs every law alone, and against numerical integration. */
#include <math.h>

#include "test.h"

#include "policy/bayes_belief.h"

enum { N = 6 };

/* ---- the mixture, law by law ---- */

static const double octaves[N] = {-2.0, -1.0, 0.0, 1.0, 2.585, 4.0};

static double law(const struct law_prior *prior, size_t u, size_t v, double at)
{
    double sum = 0.0;

    if (prior->right.count > 0)
        sum += log(1.0 + pow(2.0, at - prior->right.first - prior->right.step * (double)u));
    if (prior->left.count > 0)
        sum += log(1.0 + pow(2.0, prior->left.first + prior->left.step * (double)v - at));
    return sum;
}

static double kernel(const struct law_prior *prior, double deviation, size_t i, size_t j)
{
    double steps = (octaves[i] - octaves[j]) / prior->length;
    double sum = prior->level_sd * prior->level_sd + deviation * deviation * exp(-0.5 * steps * steps);

    return i == j ? sum + prior->nugget * prior->nugget : sum;
}

/* Inverts a small matrix by Gauss-Jordan elimination with pivots; returns its determinant. */
static double invert(double matrix[N][N], size_t count, double out_inverse[N][N])
{
    double determinant = 1.0;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++)
            out_inverse[i][j] = i == j ? 1.0 : 0.0;
    }
    for (size_t i = 0; i < count; i++) {
        double pivot = matrix[i][i]; /* of a positive definite matrix: never 0 */

        determinant *= pivot;
        for (size_t j = 0; j < count; j++) {
            matrix[i][j] /= pivot;
            out_inverse[i][j] /= pivot;
        }
        for (size_t row = 0; row < count; row++) {
            double factor = matrix[row][i];

            for (size_t j = 0; row != i && j < count; j++) {
                matrix[row][j] -= factor * matrix[i][j];
                out_inverse[row][j] -= factor * out_inverse[i][j];
            }
        }
    }
    return determinant;
}

struct reference {
    double weight, mean[N], square[N][N];
};

/* Adds one law under one deviation to the mixture. */
static void add_law(struct reference *sums, const struct law_prior *prior,
                    const struct law_evidence *evidence, size_t s, size_t u, size_t v)
{
    double matrix[N][N], inverse[N][N], residual[N], mean[N], square = 0.0, weight;
    size_t seen[N], count = 0;

    for (size_t i = 0; i < N; i++) {
        if (evidence[i].precision > 0.0)
            seen[count++] = i;
    }
    for (size_t a = 0; a < count; a++) {
        residual[a] = evidence[seen[a]].value - law(prior, u, v, octaves[seen[a]]);
        for (size_t b = 0; b < count; b++)
            matrix[a][b] = kernel(prior, prior->deviations[s], seen[a], seen[b]) +
                           (a == b ? 1.0 / evidence[seen[a]].precision : 0.0);
    }
    weight = prior->weights[s] / sqrt(invert(matrix, count, inverse));
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++)
            square += residual[a] * inverse[a][b] * residual[b];
    }
    weight *= exp(-0.5 * square);
    for (size_t i = 0; i < N; i++) {
        mean[i] = law(prior, u, v, octaves[i]);
        for (size_t a = 0; a < count; a++) {
            for (size_t b = 0; b < count; b++)
                mean[i] += kernel(prior, prior->deviations[s], i, seen[a]) * inverse[a][b] * residual[b];
        }
        sums->mean[i] += weight * mean[i];
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            double covariance = kernel(prior, prior->deviations[s], i, j);

            for (size_t a = 0; a < count; a++) {
                for (size_t b = 0; b < count; b++)
                    covariance -= kernel(prior, prior->deviations[s], i, seen[a]) * inverse[a][b] *
                                  kernel(prior, prior->deviations[s], seen[b], j);
            }
            sums->square[i][j] += weight * (covariance + mean[i] * mean[j]);
        }
    }
    sums->weight += weight;
}

static void refer(const struct law_prior *prior, const struct law_evidence *evidence, struct reference *sums)
{
    size_t rights = prior->right.count > 0 ? prior->right.count : 1;
    size_t lefts = prior->left.count > 0 ? prior->left.count : 1;

    *sums = (struct reference){0};
    for (size_t s = 0; s < LAW_DEVIATIONS_MAX && prior->deviations[s] > 0.0; s++) {
        for (size_t u = 0; u < rights; u++) {
            for (size_t v = 0; v < lefts; v++) {
                bool crossed = prior->right.count > 0 && prior->left.count > 0 &&
                               prior->left.first + prior->left.step * (double)v >=
                                   prior->right.first + prior->right.step * (double)u + 2.0;

                if (!crossed)
                    add_law(sums, prior, evidence, s, u, v);
            }
        }
    }
    for (size_t i = 0; i < N; i++)
        sums->mean[i] /= sums->weight;
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++)
            sums->square[i][j] = sums->square[i][j] / sums->weight - sums->mean[i] * sums->mean[j];
    }
}

static void check_fit(const struct law_prior *prior, const struct law_evidence *evidence)
{
    double mean[N], covariance[N * (N + 1) / 2];
    struct law_mixture mixture;
    struct reference expected;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    assert_true(law_mixture_init(&mixture, prior, octaves, N, &arena));
    law_mixture_fit(&mixture, evidence, mean, covariance);
    refer(prior, evidence, &expected);
    for (size_t i = 0; i < N; i++) {
        if (!(fabs(mean[i] - expected.mean[i]) <= 1e-7))
            fail_msg("mean %zu: %.12g, expected %.12g", i, mean[i], expected.mean[i]);
        for (size_t j = 0; j < N; j++) {
            double own = covariance[triangle_at(i, j)];

            if (!(fabs(own - expected.square[i][j]) <= 1e-7))
                fail_msg("covariance %zu, %zu: %.12g, expected %.12g", i, j, own, expected.square[i][j]);
        }
    }
    arena_deinit(&arena);
}

static void test_mixture(void **state)
{
    const struct law_prior *priors[] = {&belief_prior_default.epochs, &belief_prior_default.epoch_cost};
    uint64_t random = 11;

    (void)state;
    for (size_t round = 0; round < 60; round++) {
        struct law_evidence evidence[N] = {{0.0, 0.0}};

        for (size_t i = 0; i < N; i++) {
            if (test_below(&random, 2) == 0)
                evidence[i] = (struct law_evidence){1.0 + 200.0 * test_uniform(&random),
                                                    3.0 + test_uniform(&random) * 2.0};
        }
        check_fit(priors[round % 2], evidence);
    }
}

/* ---- what runs tell ---- */

/* One law alone: the belief about a batch size is then one normal number, and its moments are exact. */
static const struct belief_prior plain = {
    .epochs = {.level_sd = 1.5, .deviations = {0.3}, .weights = {1.0}, .length = 1.0, .nugget = 0.02},
    .epoch_cost = {.level_sd = 1.5, .deviations = {0.3}, .weights = {1.0}, .length = 1.0, .nugget = 0.02},
    .scatter = 0.12,
    .scatter_runs = 4.0,
    .outlier = 0.2,
    .reaches = 0.9,
    .fails_beyond = 0.3,
    .fails_known = 0.02,
    .failure_cost = 1.5,
};

static const uint32_t sizes[N] = {16, 32, 64, 128, 256, 512};
enum { DEFAULT = 2 };

static void open(struct belief *belief, const struct belief_prior *prior, struct arena *arena)
{
    arena_init(arena, 1 << 20);
    assert_true(belief_init(belief, prior, sizes, N, DEFAULT, arena));
}

static void close_belief(struct belief *belief, struct arena *arena)
{
    belief_deinit(belief);
    arena_deinit(arena);
}

static double chance_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* A stopped run leaves the mean and the variance of the truncated normal, by numerical integration. */
static void test_stopped(void **state)
{
    static const double stopped_at[] = {1.0, 4.0, 20.0, 60.0, 300.0};

    (void)state;
    for (size_t row = 0; row < COUNT(stopped_at); row++) {
        double mass = 0.0, mean = 0.0, square = 0.0, before, variance, scatter;
        struct belief belief;
        struct arena arena;

        open(&belief, &plain, &arena);
        belief_take_reached(&belief, DEFAULT, 20.0);
        belief_fit_epochs(&belief);
        before = belief.epochs_mean[3];
        variance = belief.epochs_covariance[triangle_at(3, 3)];
        scatter = belief.scatter[3];
        for (int i = -15000; i <= 15000; i++) {
            double z = 1e-3 * i, value = before + z * sqrt(variance);
            double weight = exp(-0.5 * z * z) * chance_below((value - log(stopped_at[row])) / sqrt(scatter));

            mass += weight;
            mean += weight * value;
            square += weight * value * value;
        }
        mean /= mass;
        square = square / mass - mean * mean;
        belief_take_stopped(&belief, 3, stopped_at[row], false);
        belief_fit_epochs(&belief);
        check_close(belief.epochs_mean[3], mean, 1e-5);
        check_close(belief.epochs_covariance[triangle_at(3, 3)], square, 1e-4);
        assert_int_equal(belief.arms[3].failures, 0);
        /* Reaching the target makes it forget. */
        belief_take_reached(&belief, 3, 21.0);
        assert_true(belief.arms[3].stopped_precision == 0.0);
        close_belief(&belief, &arena);
    }
}

/* Runs of one batch size whose epochs scatter by a tenth around `epochs`, `growth` more each time. */
static void run(struct belief *belief, size_t batch, double epochs, double growth, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        belief_take_reached(belief, batch, epochs * (i % 2 == 0 ? 0.95 : 1.05));
        epochs *= growth;
    }
    belief_fit_epochs(belief);
}

/* While one batch size moves, what is known of the others ages, and they are taken to move half as far. */
static void test_drift(void **state)
{
    struct belief belief;
    struct arena arena;
    double known, doubt, apart;

    (void)state;
    open(&belief, &belief_prior_default, &arena);
    run(&belief, 2, 30.0, 1.0, 2);
    run(&belief, 3, 20.0, 1.0, 30);
    assert_false(belief.drifts);
    check_double(belief.level, 0.0);
    known = belief.epochs_mean[2];
    doubt = belief.epochs_covariance[triangle_at(2, 2)];
    run(&belief, 3, 20.0, 1.03, 25);
    assert_true(belief.drifts);
    /* The newest runs count most: it took 40 at last, and 25 in the mean of all 55. */
    assert_true(belief.epochs_mean[3] > log(32.0));
    apart = belief.epochs_mean[2] - known;
    assert_true(apart > 0.1 && apart < 0.6 * (belief.epochs_mean[3] - log(20.0)));
    assert_true(belief.epochs_covariance[triangle_at(2, 2)] > 1.2 * doubt);
    close_belief(&belief, &arena);
}

/* A belief that drifts is saved and read back whole. */
static void test_drift_is_saved(void **state)
{
    struct belief belief, again;
    struct arena arena, room;
    struct buffer bytes;
    struct bytes_reader reader;

    (void)state;
    open(&belief, &belief_prior_default, &arena);
    open(&again, &belief_prior_default, &room);
    run(&belief, 2, 30.0, 1.0, 2);
    run(&belief, 3, 20.0, 1.05, 25);
    assert_true(belief.drifts);
    buffer_init(&bytes, 1 << 16);
    belief_save(&belief, &bytes);
    reader = bytes_reader(bytes.data, bytes.length);
    assert_true(belief_load(&again, &reader));
    assert_true(bytes_whole(&reader));
    run(&belief, 1, 40.0, 1.0, 1);
    run(&again, 1, 40.0, 1.0, 1);
    assert_true(again.drifts);
    for (size_t i = 0; i < N; i++) {
        check_double(again.epochs_mean[i], belief.epochs_mean[i]);
        for (size_t j = 0; j <= i; j++)
            check_double(again.epochs_covariance[triangle_at(i, j)],
                         belief.epochs_covariance[triangle_at(i, j)]);
    }
    buffer_deinit(&bytes);
    close_belief(&belief, &arena);
    close_belief(&again, &room);
}

/* The scatter of all batch sizes counts for each, its own runs for more. */
static void test_scatter(void **state)
{
    static const double first[] = {10.0, 12.0, 11.0}, second[] = {20.0, 40.0};
    double squares[2] = {0.0, 0.0}, mean[2] = {0.0, 0.0}, pooled;
    struct belief belief;
    struct arena arena;

    (void)state;
    open(&belief, &belief_prior_default, &arena);
    check_close(belief.scatter[0], 0.0144, 1e-12);
    for (size_t i = 0; i < COUNT(first); i++) {
        belief_take_reached(&belief, 1, first[i]);
        mean[0] += log(first[i]) / 3.0;
    }
    for (size_t i = 0; i < COUNT(second); i++) {
        belief_take_reached(&belief, 2, second[i]);
        mean[1] += log(second[i]) / 2.0;
    }
    belief_fit_epochs(&belief);
    for (size_t i = 0; i < COUNT(first); i++)
        squares[0] += pow(log(first[i]) - mean[0], 2.0);
    for (size_t i = 0; i < COUNT(second); i++)
        squares[1] += pow(log(second[i]) - mean[1], 2.0);
    pooled = (4.0 * 0.0144 + squares[0] + squares[1]) / (4.0 + 3.0);
    check_close(belief.scatter[0], pooled, 1e-9);
    check_close(belief.scatter[1], (4.0 * pooled + squares[0]) / 6.0, 1e-9);
    check_close(belief.scatter[2], (4.0 * pooled + squares[1]) / 5.0, 1e-9);
    close_belief(&belief, &arena);
}

static void test_failures(void **state)
{
    struct belief belief;
    struct arena arena;

    (void)state;
    open(&belief, &belief_prior_default, &arena);
    check_close(belief.failure[4], 1.0 - 0.7225, 1e-12); /* two octaves from the default */
    belief_take_reached(&belief, DEFAULT, 10.0);
    belief_fit_epochs(&belief);
    check_close(belief.failure[DEFAULT], 0.02 / 2.0, 1e-12);
    check_close(belief.failure[3], 0.15, 1e-12);
    belief_take_stopped(&belief, 3, 30.0, true);
    belief_fit_epochs(&belief);
    check_close(belief.failure[3], 1.15 / 2.0, 1e-12);
    check_close(belief.failure[4], 0.3, 1e-12);  /* beyond one that failed */
    check_close(belief.failure[1], 0.15, 1e-12); /* on the other side */
    belief_take_reached(&belief, 3, 12.0);
    belief_fit_epochs(&belief);
    check_close(belief.failure[3], 1.02 / 3.0, 1e-12);
    check_close(belief.failure[4], 0.15, 1e-12);
    close_belief(&belief, &arena);
}

/* The cost of an epoch is exact once it is known; a trial's own never replaces a profile's. */
static void test_cost(void **state)
{
    struct belief belief;
    struct arena arena;

    (void)state;
    open(&belief, &belief_prior_default, &arena);
    belief_take_cost(&belief, 2, 1000.0, false);
    belief_take_cost(&belief, 2, 1100.0, true);
    belief_take_cost(&belief, 2, 1300.0, false);
    belief_take_cost(&belief, 4, 800.0, false);
    belief_take_cost(&belief, 4, 700.0, false);
    belief_take_cost(&belief, 4, NAN, false);
    belief_fit_cost(&belief);
    check_close(exp(belief.cost_mean[2]), 1100.0, 1e-12);
    check_close(exp(belief.cost_mean[4]), 700.0, 1e-12);
    check_double(belief.cost_covariance[triangle_at(2, 2)], 0.0);
    check_double(belief.cost_covariance[triangle_at(2, 3)], 0.0);
    assert_true(belief.cost_covariance[triangle_at(3, 3)] > 0.0);
    assert_true(belief.cost_covariance[triangle_at(5, 5)] > belief.cost_covariance[triangle_at(3, 3)]);
    assert_true(belief.cost_mean[0] > belief.cost_mean[1]); /* small batch sizes cost more per epoch */
    close_belief(&belief, &arena);
}

/* In other units of cost the same is believed. */
static void test_units(void **state)
{
    struct belief belief[2];
    struct arena arena[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double unit = i == 0 ? 1.0 : 1000.0;

        open(&belief[i], &belief_prior_default, &arena[i]);
        belief_take_cost(&belief[i], 2, 3.0 * unit, true);
        belief_take_cost(&belief[i], 3, 2.0 * unit, true);
        belief_fit_cost(&belief[i]);
    }
    for (size_t i = 0; i < N; i++)
        check_close(belief[1].cost_mean[i] - log(1000.0), belief[0].cost_mean[i], 0.02);
    for (size_t i = 0; i < 2; i++)
        close_belief(&belief[i], &arena[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drift),   cmocka_unit_test(test_drift_is_saved),
        cmocka_unit_test(test_mixture), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_scatter), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_cost),    cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
