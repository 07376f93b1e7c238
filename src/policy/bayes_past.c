/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/bayes_past.h"

#include <math.h>
#include <string.h>

#include "base/math/cholesky.h"
#include "base/math/portable_math.h"
#include "base/math/triangle.h"

const struct past_trust past_trusts[] = {
    [PAST_HARDWARE] = {.holds = 0.95, .level_sd = 0.15, .epochs_sd = 0.05, .cost_sd = 0.15, .vouches = true},
    [PAST_REVISION] = {.holds = 0.7, .level_sd = 10.0, .epochs_sd = 0.1, .cost_sd = 0.1},
    [PAST_JOB] = {.holds = 0.1, .level_sd = 10.0, .epochs_sd = 0.2, .cost_sd = 0.2},
};
_Static_assert(sizeof past_trusts / sizeof past_trusts[0] == PAST_KINDS, "one for every kind");

static const double least_level_sd = 0.5; /* of a past that does not hold: its level is as near by chance */

/* ---- what there was ---- */

bool belief_past_init(struct belief_past *past, size_t count, struct arena *arena)
{
    if (past->cost.covariance != NULL)
        return true;
    past->tallies = arena_alloc(arena, count, sizeof past->tallies[0]);
    past->epochs.mean = arena_alloc(arena, count, sizeof(double));
    past->epochs.covariance = arena_alloc(arena, triangle_size(count), sizeof(double));
    past->cost.mean = arena_alloc(arena, count, sizeof(double));
    if (past->tallies == NULL || past->epochs.mean == NULL || past->epochs.covariance == NULL ||
        past->cost.mean == NULL)
        return false;
    past->cost.covariance = arena_alloc(arena, triangle_size(count), sizeof(double));
    return past->cost.covariance != NULL;
}

void past_view_note(struct past_view *view, const double *mean, const double *covariance, size_t count)
{
    memcpy(view->mean, mean, count * sizeof mean[0]);
    memcpy(view->covariance, covariance, triangle_size(count) * sizeof covariance[0]);
    view->weight = 1.0;
}

/* ---- weighing it ---- */

/* Adds the covariance of the level and of the residual to what was believed there. */
static void widen(const struct past_view *view, const struct law_mixture *law, double level_sd, double sd,
                  double *covariance)
{
    size_t n = law->count;
    double level = level_sd * level_sd, nugget = law->prior->nugget * law->prior->nugget;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            size_t at = triangle_at(i, j);

            covariance[at] =
                view->covariance[at] + level + sd * sd * law->likeness[i * n + j] + (i == j ? nugget : 0.0);
        }
    }
}

/* A Gaussian while it is conditioned on evidence. */
struct conditioning {
    size_t n, observed_count;
    size_t observed[LAW_BATCHES_MAX];
    double mean[LAW_BATCHES_MAX], covariance[LAW_BATCHES_MAX * (LAW_BATCHES_MAX + 1) / 2];
    double factor[LAW_BATCHES_MAX * LAW_BATCHES_MAX];       /* [observed][observed] */
    double solved[LAW_BATCHES_MAX * (1 + LAW_BATCHES_MAX)]; /* [observed][1 + n]: of the distances from the
                                                               mean, of the covariances */
};

/* Subtracts from mean and covariance what the evidence told. */
static void subtract(struct conditioning *of)
{
    size_t n = of->n;

    for (size_t row = 0; row < of->observed_count; row++) {
        const double *solved = &of->solved[row * (1 + n)];

        for (size_t i = 0; i < n; i++) {
            of->mean[i] += solved[0] * solved[1 + i];
            for (size_t j = 0; j <= i; j++)
                of->covariance[triangle_at(i, j)] -= solved[1 + i] * solved[1 + j];
        }
    }
}

/* Conditions it; returns the log likelihood of the evidence, without the powers of 2 pi. */
static double condition(struct conditioning *of, const struct law_evidence *evidence)
{
    size_t n = of->n, count = of->observed_count;
    double log_likelihood = 0.0;

    for (size_t row = 0; row < count; row++) {
        size_t i = of->observed[row];
        double *right = &of->solved[row * (1 + n)];

        right[0] = evidence[i].value - of->mean[i];
        for (size_t j = 0; j < n; j++)
            right[1 + j] = of->covariance[triangle_at(i, j)];
        for (size_t column = 0; column <= row; column++)
            of->factor[row * count + column] = of->covariance[triangle_at(i, of->observed[column])];
        of->factor[row * count + row] += 1.0 / evidence[i].precision;
    }
    log_likelihood -= cholesky_factor(of->factor, count);
    cholesky_forward(of->factor, count, of->solved, 1 + n);
    for (size_t row = 0; row < count; row++)
        log_likelihood -= 0.5 * of->solved[row * (1 + n)] * of->solved[row * (1 + n)];
    subtract(of);
    return log_likelihood;
}

/* Matches the two hypotheses, the first with this weight, by one Gaussian in place of the second. */
static void match(double weight, const struct conditioning *first, double *mean, double *covariance)
{
    size_t n = first->n;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            size_t at = triangle_at(i, j);

            covariance[at] =
                weight * first->covariance[at] + (1.0 - weight) * covariance[at] +
                weight * (1.0 - weight) * (first->mean[i] - mean[i]) * (first->mean[j] - mean[j]);
        }
    }
    for (size_t i = 0; i < n; i++)
        mean[i] += weight * (first->mean[i] - mean[i]);
}

/* Mixes one part in; `residual_sd` and `level_sd` are those of its kind. */
static void mix(struct belief_past *past, struct past_view *view, double level_sd, double residual_sd,
                const struct past_fit *fit)
{
    double holds = past_trusts[past->kind].holds, log_odds;
    size_t n = fit->law->count;
    struct conditioning first;

    first.n = n;
    first.observed_count = 0;
    for (size_t i = 0; i < n; i++) {
        if (fit->evidence[i].precision > 0.0)
            first.observed[first.observed_count++] = i;
    }
    memcpy(first.mean, view->mean, n * sizeof first.mean[0]);
    widen(view, fit->law, first.observed_count > 0 ? level_sd : 0.0, residual_sd, first.covariance);
    view->weight = 1.0;
    if (first.observed_count > 0) {
        log_odds = portable_log(holds / (1.0 - holds)) + condition(&first, fit->evidence) -
                   fit->log_likelihood -
                   portable_log(fit->law->prior->level_sd / fmax(level_sd, least_level_sd));
        view->weight = 1.0 / (1.0 + portable_exp(fmin(fmax(-log_odds, -500.0), 500.0)));
    }
    match(view->weight, &first, fit->mean, fit->covariance);
}

void belief_past_mix_epochs(struct belief_past *past, const struct past_fit *fit)
{
    const struct past_trust *trust = &past_trusts[past->kind];

    if (past->brought)
        mix(past, &past->epochs, trust->level_sd, trust->epochs_sd, fit);
}

void belief_past_mix_cost(struct belief_past *past, const struct past_fit *fit)
{
    if (past->brought)
        mix(past, &past->cost, fit->law->prior->level_sd, past_trusts[past->kind].cost_sd, fit);
}

/* ---- what follows ---- */

bool belief_past_likely(const struct belief_past *past)
{
    return past->brought && past->epochs.weight >= 0.5;
}

uint64_t belief_past_vouched(const struct belief_past *past, size_t batch)
{
    return past_trusts[past->kind].vouches ? belief_past_tally(past, batch)->reached : 0;
}

uint64_t belief_past_runs(const struct belief_past *past, size_t count)
{
    uint64_t runs = 0;

    for (size_t i = 0; i < count; i++)
        runs += belief_past_vouched(past, i);
    return runs;
}

const struct past_tally *belief_past_tally(const struct belief_past *past, size_t batch)
{
    return past->trusted ? &past->tallies[batch] : &past_tally_none;
}

/* ---- bytes ---- */

void belief_past_save(const struct belief_past *past, size_t count, struct buffer *bytes)
{
    bytes_put_u64(bytes, past->brought ? 1 + (uint64_t)past->kind : 0);
    for (size_t i = 0; i < count && past->brought; i++)
        bytes_put_rows(bytes, PAST_TALLY_ROWS, &past->tallies[i]);
}

bool belief_past_load(struct bytes_reader *bytes, size_t count, struct past_batch *batches,
                      struct past_brought *out_brought)
{
    uint64_t kind = bytes_up_to(bytes, PAST_KINDS);
    bool possible = true;

    *out_brought = (struct past_brought){.batches = batches, .count = kind > 0 ? count : 0};
    if (kind > 0)
        out_brought->kind = (enum past_kind)(kind - 1);
    for (size_t i = 0; i < out_brought->count; i++) {
        batches[i].batch = i;
        bytes_rows(bytes, PAST_TALLY_ROWS, &batches[i].tally);
        possible = possible && past_tally_possible(&batches[i].tally);
    }
    return !bytes->failed && possible;
}
