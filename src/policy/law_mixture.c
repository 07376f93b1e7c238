/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A law is the sum of a row of u and a row of v, and both solving and the mean are linear. So each
 * row is solved once per deviation, and combinations only add what was solved.
 */
#include "policy/law_mixture.h"

#include <math.h>
#include <string.h>

#include "base/math/cholesky.h"
#include "base/math/portable_math.h"

static const double ln_2 = 0.69314718055994530942;
static const double widest_gap = 2.0;         /* octaves by which v may not lie above u */
static const double least_log_weight = -20.0; /* a law that weighs less, against the best one, is left out */

static size_t rows_of(const struct law_places *places)
{
    return places->count > 0 ? places->count : 1;
}

static double place(const struct law_places *places, size_t i)
{
    return places->first + places->step * (double)i;
}

/* Returns ln(1 + 2^octaves). */
static double knee(double octaves)
{
    return octaves > 50.0 ? octaves * ln_2 : portable_log(1.0 + portable_exp(octaves * ln_2));
}

static void fill_tables(struct law_mixture *mixture, const double *octaves)
{
    const struct law_prior *prior = mixture->prior;
    size_t n = mixture->count, rights = rows_of(&prior->right);

    for (size_t i = 0; i < n; i++) {
        for (size_t u = 0; u < prior->right.count; u++)
            mixture->laws[u * n + i] = knee(octaves[i] - place(&prior->right, u));
        for (size_t v = 0; v < prior->left.count; v++)
            mixture->laws[(rights + v) * n + i] = knee(place(&prior->left, v) - octaves[i]);
        for (size_t j = 0; j < n; j++) {
            double steps = (octaves[i] - octaves[j]) / prior->length;

            mixture->likeness[i * n + j] = portable_exp(-0.5 * steps * steps);
        }
    }
}

bool law_mixture_init(struct law_mixture *mixture, const struct law_prior *prior, const double *octaves,
                      size_t count, struct arena *arena)
{
    size_t laws = rows_of(&prior->right) + rows_of(&prior->left);
    size_t columns = 1 + laws + count;

    *mixture = (struct law_mixture){.prior = prior, .count = count};
    while (mixture->deviation_count < LAW_DEVIATIONS_MAX && prior->deviations[mixture->deviation_count] > 0.0)
        mixture->deviation_count++;
    mixture->laws = arena_alloc(arena, laws * count, sizeof(double));
    mixture->likeness = arena_alloc(arena, count * count, sizeof(double));
    mixture->work = arena_alloc(arena, count * (count + columns) + columns * count, sizeof(double));
    if (mixture->laws == NULL || mixture->likeness == NULL || mixture->work == NULL)
        return false;
    fill_tables(mixture, octaves);
    return true;
}

/* A fit under one deviation of the residual. */
struct fit {
    const struct law_mixture *mixture;
    size_t n, rights, lefts;
    size_t observed[LAW_BATCHES_MAX]; /* indices of batch sizes */
    size_t observed_count;
    double deviation;
    double *factor; /* [observed][observed] */
    double *solved; /* [observed][columns]: L^-1 of y, of the laws, of the covariance with each batch size */
    double *means;  /* [1 + laws][n]: what y and each law bring to the mean */
    size_t columns;
    double log_weight[LAW_PLACES_MAX][LAW_PLACES_MAX];
};

/* Gives the covariance of batch size i with the first `count`. */
static void covariances(const struct fit *fit, size_t i, size_t count, double *restrict out)
{
    const struct law_prior *prior = fit->mixture->prior;
    const double *restrict likeness = &fit->mixture->likeness[i * fit->n];
    double level = prior->level_sd * prior->level_sd, residual = fit->deviation * fit->deviation;

    for (size_t j = 0; j < count; j++)
        out[j] = level + residual * likeness[j];
    if (i < count)
        out[i] += prior->nugget * prior->nugget;
}

/* Factors the covariance of what was observed, and solves everything for it. Returns half its log
 * determinant. */
static double solve(struct fit *fit, const struct law_evidence *evidence)
{
    size_t count = fit->observed_count, laws = fit->rights + fit->lefts, n = fit->n;
    double log_diagonal;

    for (size_t row = 0; row < count; row++) {
        size_t i = fit->observed[row];
        double *right = &fit->solved[row * fit->columns];

        right[0] = evidence[i].value;
        for (size_t law = 0; law < laws; law++)
            right[1 + law] = fit->mixture->laws[law * n + i];
        covariances(fit, i, n, &right[1 + laws]);
        for (size_t column = 0; column <= row; column++)
            fit->factor[row * count + column] = right[1 + laws + fit->observed[column]];
        fit->factor[row * count + row] += 1.0 / evidence[i].precision;
    }
    log_diagonal = cholesky_factor(fit->factor, count);
    cholesky_forward(fit->factor, count, fit->solved, fit->columns);
    return log_diagonal;
}

/* Sums over what was observed: of y, of each law, and of pairs of laws, all solved. */
struct products {
    double y;
    double law[2 * LAW_PLACES_MAX]; /* law^2 - 2 y law */
    double pair[LAW_PLACES_MAX][LAW_PLACES_MAX];
};

static void multiply(const struct fit *fit, struct products *products)
{
    size_t laws = fit->rights + fit->lefts;

    products->y = 0.0;
    memset(products->law, 0, laws * sizeof products->law[0]);
    for (size_t u = 0; u < fit->rights; u++)
        memset(products->pair[u], 0, fit->lefts * sizeof products->pair[u][0]);
    for (size_t row = 0; row < fit->observed_count; row++) {
        const double *restrict solved = &fit->solved[row * fit->columns + 1];
        const double *restrict lefts = &solved[fit->rights];
        double y = fit->solved[row * fit->columns];

        products->y += y * y;
        for (size_t law = 0; law < laws; law++)
            products->law[law] += solved[law] * (solved[law] - 2.0 * y);
        for (size_t u = 0; u < fit->rights; u++) {
            for (size_t v = 0; v < fit->lefts; v++)
                products->pair[u][v] += solved[u] * lefts[v];
        }
    }
}

/* Returns whether a pair of laws is left out: the left one begins too far above the right one. */
static bool is_left_out(const struct law_prior *prior, size_t u, size_t v)
{
    return prior->right.count > 0 && prior->left.count > 0 &&
           place(&prior->left, v) >= place(&prior->right, u) + widest_gap;
}

/* Returns how many pairs of laws there are. */
static double laws_of(const struct law_prior *prior)
{
    double laws = 0.0;

    for (size_t u = 0; u < rows_of(&prior->right); u++) {
        for (size_t v = 0; v < rows_of(&prior->left); v++)
            laws += !is_left_out(prior, u, v);
    }
    return laws;
}

/* Weighs each law by its marginal likelihood; returns the greatest logarithm. */
static double weigh(struct fit *fit, double log_prior)
{
    const struct law_prior *prior = fit->mixture->prior;
    double greatest = -INFINITY;
    struct products products;

    multiply(fit, &products);
    for (size_t u = 0; u < fit->rights; u++) {
        for (size_t v = 0; v < fit->lefts; v++) {
            double square =
                products.y + products.law[u] + products.law[fit->rights + v] + 2.0 * products.pair[u][v];

            fit->log_weight[u][v] = is_left_out(prior, u, v) ? -INFINITY : log_prior - 0.5 * square;
            if (fit->log_weight[u][v] > greatest)
                greatest = fit->log_weight[u][v];
        }
    }
    return greatest;
}

/* Computes what y (row 0) and each law bring to the mean: K A^-1 y, and h - K A^-1 h. */
static void bring_means(struct fit *fit)
{
    size_t laws = fit->rights + fit->lefts, n = fit->n;

    memset(fit->means, 0, n * sizeof fit->means[0]);
    memcpy(&fit->means[n], fit->mixture->laws, laws * n * sizeof fit->means[0]);
    for (size_t row = 0; row < fit->observed_count; row++) {
        const double *solved = &fit->solved[row * fit->columns];

        for (size_t law = 0; law <= laws; law++) {
            double *restrict mean = &fit->means[law * n], weight = law == 0 ? solved[0] : -solved[law];

            for (size_t i = 0; i < n; i++)
                mean[i] += weight * solved[1 + laws + i];
        }
    }
}

/* Moments of the mixture so far, unnormalised. */
struct moments {
    double log_scale; /* of the sums below */
    double weight;
    double *mean;
    double *square; /* lower triangle of the sum of weight * (covariance + mean mean') */
};

static void rescale(struct moments *moments, double log_scale, size_t n)
{
    double factor;

    if (log_scale <= moments->log_scale)
        return;
    factor = moments->weight > 0.0 ? portable_exp(moments->log_scale - log_scale) : 0.0;
    moments->log_scale = log_scale;
    moments->weight *= factor;
    for (size_t i = 0; i < n; i++)
        moments->mean[i] *= factor;
    for (size_t i = 0; i < n * n; i++)
        moments->square[i] *= factor;
}

/* Adds weight * one one' + one other' + other one' to the lower triangle. */
static void add_square(double *square, size_t n, double weight, const double *one, const double *other)
{
    for (size_t i = 0; i < n; i++) {
        double *restrict row = &square[i * n];
        double to_one = weight * one[i] + other[i], to_other = one[i];

        for (size_t j = 0; j <= i; j++)
            row[j] += to_one * one[j] + to_other * other[j];
    }
}

/* Adds the laws with one u: they differ in v alone. `sum` and `base` have room for n numbers. */
static double add_right(const struct fit *fit, struct moments *moments, size_t u, double *of_left,
                        double *base, double *sum)
{
    size_t n = fit->n;
    double total = 0.0;

    memset(sum, 0, n * sizeof sum[0]);
    for (size_t v = 0; v < fit->lefts; v++) {
        const double *left = &fit->means[(1 + fit->rights + v) * n];
        double log_weight = fit->log_weight[u][v] - moments->log_scale, weight;

        if (log_weight < least_log_weight)
            continue;
        weight = portable_exp(log_weight);
        total += weight;
        of_left[v] += weight;
        for (size_t i = 0; i < n; i++)
            sum[i] += weight * left[i];
    }
    if (total == 0.0)
        return 0.0;
    for (size_t i = 0; i < n; i++) {
        base[i] = fit->means[i] + fit->means[(1 + u) * n + i];
        moments->mean[i] += total * base[i] + sum[i];
    }
    add_square(moments->square, n, total, base, sum);
    return total;
}

/* Adds the covariance that all laws under this deviation have. `own` has room for n numbers. */
static void add_covariance(const struct fit *fit, struct moments *moments, double weight,
                           double *restrict own)
{
    size_t n = fit->n, laws = fit->rights + fit->lefts;

    for (size_t i = 0; i < n; i++) {
        double *restrict row = &moments->square[i * n];

        covariances(fit, i, i + 1, own);
        for (size_t seen = 0; seen < fit->observed_count; seen++) {
            const double *restrict solved = &fit->solved[seen * fit->columns + 1 + laws];

            for (size_t j = 0; j <= i; j++)
                own[j] -= solved[i] * solved[j];
        }
        for (size_t j = 0; j <= i; j++)
            row[j] += weight * own[j];
    }
}

/* Adds every law under this deviation. */
static void add(const struct fit *fit, struct moments *moments, double *base, double *sum)
{
    double of_left[LAW_PLACES_MAX] = {0.0}, total = 0.0;
    size_t n = fit->n;

    for (size_t u = 0; u < fit->rights; u++)
        total += add_right(fit, moments, u, of_left, base, sum);
    moments->weight += total;
    if (total == 0.0)
        return;
    memset(sum, 0, n * sizeof sum[0]);
    for (size_t v = 0; v < fit->lefts; v++) {
        if (of_left[v] > 0.0)
            add_square(moments->square, n, of_left[v], &fit->means[(1 + fit->rights + v) * n], sum);
    }
    add_covariance(fit, moments, total, sum);
}

/* Normalises the sums in place, and mirrors the covariance. */
static void finish(struct moments *moments, size_t n)
{
    double *mean = moments->mean, *square = moments->square;

    for (size_t i = 0; i < n; i++)
        mean[i] /= moments->weight;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double covariance = square[i * n + j] / moments->weight - mean[i] * mean[j];

            if (i == j)
                covariance = fmax(covariance, 0.0);
            square[i * n + j] = square[j * n + i] = covariance;
        }
    }
}

double law_mixture_fit(const struct law_mixture *mixture, const struct law_evidence *evidence,
                       double *out_mean, double *out_covariance)
{
    const struct law_prior *prior = mixture->prior;
    size_t n = mixture->count;
    struct fit fit = {
        .mixture = mixture, .n = n, .rights = rows_of(&prior->right), .lefts = rows_of(&prior->left)};
    struct moments moments = {.log_scale = -INFINITY, .mean = out_mean, .square = out_covariance};
    double *scratch;

    fit.columns = 1 + fit.rights + fit.lefts + n;
    for (size_t i = 0; i < n; i++) {
        if (evidence[i].precision > 0.0)
            fit.observed[fit.observed_count++] = i;
    }
    fit.factor = mixture->work;
    fit.solved = fit.factor + n * n;
    fit.means = fit.solved + n * fit.columns;
    scratch = fit.means + (1 + fit.rights + fit.lefts) * n;
    memset(out_mean, 0, n * sizeof out_mean[0]);
    memset(out_covariance, 0, n * n * sizeof out_covariance[0]);
    for (size_t s = 0; s < mixture->deviation_count; s++) {
        double log_diagonal;

        fit.deviation = prior->deviations[s];
        log_diagonal = solve(&fit, evidence);
        rescale(&moments, weigh(&fit, portable_log(prior->weights[s]) - log_diagonal), n);
        bring_means(&fit);
        add(&fit, &moments, scratch, fit.factor);
    }
    finish(&moments, n);
    return moments.log_scale + portable_log(moments.weight / laws_of(prior));
}
