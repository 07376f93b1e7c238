/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A law is the sum of a row of u and a row of v, and both solving and the mean are linear. So each
 * row is solved once per deviation, and combinations only add what was solved.
 */
#include "policy/law/law_mixture.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/math/cholesky.h"
#include "base/math/portable_math.h"
#include "base/math/triangle.h"
#include "base/math/weighted_rows.h"

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

/* Returns whether a pair of laws is left out: the left one begins too far above the right one. */
static bool is_left_out(const struct law_prior *prior, size_t u, size_t v)
{
    return prior->right.count > 0 && prior->left.count > 0 &&
           place(&prior->left, v) >= place(&prior->right, u) + widest_gap;
}

static void count_pairs(struct law_mixture *mixture)
{
    const struct law_prior *prior = mixture->prior;

    for (size_t u = 0; u < rows_of(&prior->right); u++) {
        uint8_t lefts = 0;

        while (lefts < rows_of(&prior->left) && !is_left_out(prior, u, lefts))
            lefts++;
        mixture->lefts_of[u] = lefts;
        mixture->pair_count += lefts;
    }
}

bool law_mixture_init(struct law_mixture *mixture, const struct law_prior *prior, const double *octaves,
                      size_t count, struct arena *arena)
{
    size_t laws = rows_of(&prior->right) + rows_of(&prior->left);

    *mixture = (struct law_mixture){.prior = prior, .count = count};
    while (mixture->deviation_count < LAW_DEVIATIONS_MAX && prior->deviations[mixture->deviation_count] > 0.0)
        mixture->deviation_count++;
    mixture->laws = arena_alloc(arena, laws * count, sizeof(double));
    mixture->likeness = arena_alloc(arena, count * count, sizeof(double));
    if (mixture->laws == NULL || mixture->likeness == NULL)
        return false;
    fill_tables(mixture, octaves);
    count_pairs(mixture);
    return true;
}

enum {
    LAWS_MAX = 2 * LAW_PLACES_MAX,
    PAIRS_MAX = LAW_PLACES_MAX * LAW_PLACES_MAX,
    COLUMNS_MAX = 1 + LAWS_MAX + LAW_BATCHES_MAX
};

/* A pair of laws that counts. */
struct heavy {
    uint8_t u, v;
};

/* Room for a fit. One of few batch sizes touches little of it. */
struct room {
    double numbers[LAW_BATCHES_MAX * (LAW_BATCHES_MAX + COLUMNS_MAX + 1 + LAWS_MAX)];
    double log_weight[LAW_PLACES_MAX][LAW_PLACES_MAX];
    struct heavy heavy[PAIRS_MAX]; /* ascending, u first */
    double weights[PAIRS_MAX];     /* of the heavy */
};

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
    size_t heavy_count;
    struct room *room;
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

/* Weighs each law by its marginal likelihood; returns the greatest logarithm. */
static double weigh(const struct fit *fit, double log_prior)
{
    double greatest = -INFINITY;
    struct products products;

    multiply(fit, &products);
    for (size_t u = 0; u < fit->rights; u++) {
        double *log_weights = fit->room->log_weight[u];

        for (size_t v = 0; v < fit->mixture->lefts_of[u]; v++) {
            double square =
                products.y + products.law[u] + products.law[fit->rights + v] + 2.0 * products.pair[u][v];

            log_weights[v] = log_prior - 0.5 * square;
            greatest = log_weights[v] > greatest ? log_weights[v] : greatest;
        }
    }
    return greatest;
}

/* Finds the pairs of laws that count beside a weight of this logarithm, and weighs them by it. */
static void pick_heavy(struct fit *fit, double log_scale)
{
    struct room *room = fit->room;
    size_t count = 0;

    for (size_t u = 0; u < fit->rights; u++) {
        for (size_t v = 0; v < fit->mixture->lefts_of[u]; v++) {
            double log_weight = room->log_weight[u][v] - log_scale;

            if (log_weight < least_log_weight)
                continue;
            room->heavy[count] = (struct heavy){(uint8_t)u, (uint8_t)v};
            room->weights[count++] = log_weight;
        }
    }
    portable_exp_all(room->weights, count);
    fit->heavy_count = count;
}

/* Adds what a column of `solved` brings to its mean. */
static void bring_mean(const struct fit *fit, size_t column, double sign)
{
    weighted_rows_add(&(struct weighted_rows){.rows = &fit->solved[1 + fit->rights + fit->lefts],
                                              .stride = fit->columns,
                                              .weights = &fit->solved[column],
                                              .step = fit->columns,
                                              .count = fit->observed_count,
                                              .sign = sign},
                      &fit->means[column * fit->n], fit->n);
}

/* Computes what y (row 0) and each law that counts bring to the mean: K A^-1 y, and h - K A^-1 h. */
static void bring_means(const struct fit *fit)
{
    bool counts[1 + LAWS_MAX] = {true};
    size_t laws = fit->rights + fit->lefts, n = fit->n;

    for (size_t i = 0; i < fit->heavy_count; i++)
        counts[1 + fit->room->heavy[i].u] = counts[1 + fit->rights + fit->room->heavy[i].v] = true;
    memset(fit->means, 0, n * sizeof fit->means[0]);
    bring_mean(fit, 0, 1.0);
    for (size_t law = 1; law <= laws; law++) {
        if (!counts[law])
            continue;
        memcpy(&fit->means[law * n], &fit->mixture->laws[(law - 1) * n], n * sizeof fit->means[0]);
        bring_mean(fit, law, -1.0);
    }
}

/* Moments of the mixture so far, unnormalised. */
struct moments {
    double log_scale; /* of the sums below */
    double weight;
    double *mean;
    double *square; /* a triangle: the sum of weight * (covariance + mean mean') */
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
    for (size_t i = 0; i < triangle_size(n); i++)
        moments->square[i] *= factor;
}

/* Adds weight * one one'. */
static void add_own_square(double *square, size_t n, double weight, const double *one)
{
    for (size_t i = 0; i < n; i++) {
        double *restrict row = &square[triangle_row(i)];
        double to_one = weight * one[i];

        for (size_t j = 0; j <= i; j++)
            row[j] += to_one * one[j];
    }
}

/* Adds weight * one one' + one other' + other one'. */
static void add_square(double *square, size_t n, double weight, const double *one, const double *other)
{
    for (size_t i = 0; i < n; i++) {
        double *restrict row = &square[triangle_row(i)];
        double to_one = weight * one[i] + other[i], to_other = one[i];

        for (size_t j = 0; j <= i; j++)
            row[j] += to_one * one[j] + to_other * other[j];
    }
}

/* Adds the heavy laws from `first` on that have the same u: they differ in v alone. Returns the next one. */
static size_t add_right(const struct fit *fit, struct moments *moments, size_t first, double *of_left,
                        double *out_total)
{
    double base[LAW_BATCHES_MAX], sum[LAW_BATCHES_MAX], total = 0.0;
    size_t n = fit->n, u = fit->room->heavy[first].u, at = first;

    memset(sum, 0, n * sizeof sum[0]);
    for (; at < fit->heavy_count && fit->room->heavy[at].u == u; at++) {
        size_t v = fit->room->heavy[at].v;
        const double *restrict left = &fit->means[(1 + fit->rights + v) * n];
        double weight = fit->room->weights[at];

        total += weight;
        of_left[v] += weight;
        for (size_t i = 0; i < n; i++)
            sum[i] += weight * left[i];
    }
    for (size_t i = 0; i < n; i++) {
        base[i] = fit->means[i] + fit->means[(1 + u) * n + i];
        moments->mean[i] += total * base[i] + sum[i];
    }
    add_square(moments->square, n, total, base, sum);
    *out_total += total;
    return at;
}

/* Adds the covariance that all laws under this deviation have. */
static void add_covariance(const struct fit *fit, struct moments *moments, double weight)
{
    const double *solved = &fit->solved[1 + fit->rights + fit->lefts];
    double own[LAW_BATCHES_MAX];
    size_t n = fit->n;

    for (size_t i = 0; i < n; i++) {
        double *restrict row = &moments->square[triangle_row(i)];

        covariances(fit, i, i + 1, own);
        weighted_rows_add(&(struct weighted_rows){.rows = solved,
                                                  .stride = fit->columns,
                                                  .weights = &solved[i],
                                                  .step = fit->columns,
                                                  .count = fit->observed_count,
                                                  .sign = -1.0},
                          own, i + 1);
        for (size_t j = 0; j <= i; j++)
            row[j] += weight * own[j];
    }
}

/* Adds every law under this deviation. */
static void add(const struct fit *fit, struct moments *moments)
{
    double of_left[LAW_PLACES_MAX] = {0.0}, total = 0.0;
    size_t n = fit->n;

    for (size_t at = 0; at < fit->heavy_count;)
        at = add_right(fit, moments, at, of_left, &total);
    moments->weight += total;
    if (total == 0.0)
        return;
    for (size_t v = 0; v < fit->lefts; v++) {
        if (of_left[v] > 0.0)
            add_own_square(moments->square, n, of_left[v], &fit->means[(1 + fit->rights + v) * n]);
    }
    add_covariance(fit, moments, total);
}

/* Normalises the sums in place. */
static void finish(struct moments *moments, size_t n)
{
    double *mean = moments->mean;

    for (size_t i = 0; i < n; i++)
        mean[i] /= moments->weight;
    for (size_t i = 0; i < n; i++) {
        double *row = &moments->square[triangle_row(i)];

        for (size_t j = 0; j <= i; j++)
            row[j] = row[j] / moments->weight - mean[i] * mean[j];
        row[i] = fmax(row[i], 0.0);
    }
}

double law_mixture_fit(const struct law_mixture *mixture, const struct law_evidence *evidence,
                       double *out_mean, double *out_covariance)
{
    const struct law_prior *prior = mixture->prior;
    size_t n = mixture->count;
    struct room room;
    struct fit fit = {.mixture = mixture,
                      .n = n,
                      .rights = rows_of(&prior->right),
                      .lefts = rows_of(&prior->left),
                      .room = &room};
    struct moments moments = {.log_scale = -INFINITY, .mean = out_mean, .square = out_covariance};

    fit.columns = 1 + fit.rights + fit.lefts + n;
    for (size_t i = 0; i < n; i++) {
        if (evidence[i].precision > 0.0)
            fit.observed[fit.observed_count++] = i;
    }
    fit.factor = room.numbers;
    fit.solved = fit.factor + n * n;
    fit.means = fit.solved + n * fit.columns;
    memset(out_mean, 0, n * sizeof out_mean[0]);
    memset(out_covariance, 0, triangle_size(n) * sizeof out_covariance[0]);
    for (size_t s = 0; s < mixture->deviation_count; s++) {
        double log_diagonal;

        fit.deviation = prior->deviations[s];
        log_diagonal = solve(&fit, evidence);
        rescale(&moments, weigh(&fit, portable_log(prior->weights[s]) - log_diagonal), n);
        pick_heavy(&fit, moments.log_scale);
        bring_means(&fit);
        add(&fit, &moments);
    }
    finish(&moments, n);
    return moments.log_scale + portable_log(moments.weight / mixture->pair_count);
}
