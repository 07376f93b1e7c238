/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/bayes_choice.h"

#include <math.h>
#include <string.h>

#include "base/math/normal.h"
#include "base/math/portable_math.h"

static const double log_least_stop = 0.09531017980432486;   /* 1.1 */
static const double log_greatest_stop = 1.0986122886681098; /* 3 */

/* The positive nodes of Gauss-Hermite integration over a standard normal number, and their weights. */
enum { NODES = 15, HALF = NODES / 2 };
static const double nodes[HALF + 1] = {0.0,
                                       0.799129068324548,
                                       1.6067100690287297,
                                       2.432436827009758,
                                       3.2890824243987664,
                                       4.1962077112690155,
                                       5.190093591304781,
                                       6.363947888829839};
static const double node_weights[HALF + 1] = {
    0.31825951825951826,   0.23246229360973222,   0.0894177953998444,    0.017365774492137605,
    0.0015673575035499562, 5.642146405189017e-05, 5.975419597920605e-07, 8.58964989963327e-10};

static const uint32_t repeats[] = {1, 2, 4, 8};

static const double farthest =
    2.001; /* octaves to what was tried, for a first trial; logarithms are rounded */

/* What doubt adds to the standard deviation of log cost, and the factor of the gain. */
static const double doubt_deviation = 0.25, doubt_gain = 3.0;

static double at(const struct choice *choice, size_t one, size_t other)
{
    return choice->covariance[one * choice->question.belief->count + other];
}

/* Returns the logarithm of the factor by which failures with probability q raise the expected cost. */
static double log_penalty(const struct belief *belief, double q)
{
    return portable_log(1.0 + belief->prior->failure_cost * q / (1.0 - q));
}

/* ---- the question for all batch sizes ---- */

/* Observing the mean of some trials of a batch size leaves the means as expected, and narrows the rest. */
static void count_pending(struct choice *choice, size_t batch, uint32_t trials)
{
    const struct belief *belief = choice->question.belief;
    size_t n = belief->count;
    double column[LAW_BATCHES_MAX] = {0.0};
    double total = at(choice, batch, batch) + belief->scatter[batch] / (double)trials;

    for (size_t i = 0; i < n; i++)
        column[i] = at(choice, i, batch);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            choice->covariance[i * n + j] -= column[i] * column[j] / total;
    }
}

static bool knows_a_cost(const struct belief *belief)
{
    bool knows = false;

    for (size_t i = 0; i < belief->count; i++)
        knows |= belief->arms[i].cost_known;
    return knows;
}

/*
 * Replaces what is believed of one batch size's cost of an epoch by what it is. The first one tells the
 * level of all, of which a past says nothing.
 */
static void know_cost(struct choice *choice, const struct epoch_cost *exact)
{
    const struct belief *belief = choice->question.belief;
    size_t n = belief->count, row = exact->batch * n;
    double known = belief->epochs_mean[exact->batch] + portable_log(exact->cost);
    double apart = known - choice->mean[exact->batch];

    for (size_t i = 0; i < n && !knows_a_cost(belief); i++)
        choice->mean[i] += apart;
    choice->mean[exact->batch] = known;
    for (size_t i = 0; i < n; i++)
        choice->covariance[row + i] = choice->covariance[i * n + exact->batch] =
            belief->epochs_covariance[row + i];
}

/* Returns the logarithm of a run's expected cost. */
static double log_expected(const struct choice *choice, size_t batch)
{
    return choice->mean[batch] + 0.5 * (at(choice, batch, batch) + choice->question.belief->scatter[batch]) +
           choice->penalty[batch];
}

/* Returns whether the batch size may be the best known one. */
static bool can_be_best(const struct choice *choice, size_t batch)
{
    const struct pair *pairs = choice->question.pairs;

    return belief_reached(choice->question.belief, batch) > 0 && !choice->question.cannot_run[batch] &&
           (pairs == NULL || pairs[batch].keeps);
}

/* Takes the one nearest to the bound if none keeps it. */
static void find_nearest(struct choice *choice)
{
    const struct choice_question *question = &choice->question;

    for (size_t i = 0; question->pairs != NULL && i < question->belief->count; i++) {
        if (belief_reached(question->belief, i) > 0 && !question->cannot_run[i] &&
            (choice->best == question->belief->count ||
             question->pairs[i].log_over < question->pairs[choice->best].log_over))
            choice->best = i;
    }
}

static void find_best(struct choice *choice)
{
    const struct belief *belief = choice->question.belief;

    choice->best = belief->count;
    choice->log_best_cost = INFINITY;
    for (size_t i = 0; i < belief->count; i++) {
        double value = log_expected(choice, i);

        if (!can_be_best(choice, i) || !(value < choice->log_best_cost))
            continue;
        choice->best = i;
        choice->log_best_cost = value;
    }
    if (choice->best == belief->count)
        find_nearest(choice);
    if (choice->best < belief->count)
        choice->log_best_cost = log_expected(choice, choice->best);
    choice->best_cost = portable_exp(choice->log_best_cost);
}

/*
 * Returns whether what is believed of a batch size is doubted. What is beyond one that failed is not: there
 * it is known what to expect.
 */
static bool is_doubted(const struct choice *choice, size_t batch)
{
    const struct choice_question *question = &choice->question;
    const struct belief *belief = question->belief;

    return question->prospect.doubt == (batch > choice->best ? DOUBT_LARGER : DOUBT_SMALLER) &&
           belief_reached(belief, batch) == 0 && belief->arms[batch].failures == 0 &&
           belief->failure[batch] < belief->prior->fails_beyond;
}

static void count_doubt(struct choice *choice)
{
    size_t n = choice->question.belief->count;

    for (size_t i = 0; i < n; i++) {
        if (is_doubted(choice, i))
            choice->covariance[i * n + i] += doubt_deviation * doubt_deviation;
    }
}

struct choice choice_open(const struct choice_question *question, double *room)
{
    const struct belief *belief = question->belief;
    size_t n = belief->count;
    struct choice choice = {
        .question = *question, .covariance = room, .penalty = room + n * n, .mean = room + n * n + n};

    for (size_t i = 0; i < n * n; i++)
        choice.covariance[i] = belief->epochs_covariance[i] + belief->cost_covariance[i];
    for (size_t i = 0; i < n; i++)
        choice.mean[i] =
            belief_mean(belief, i) + (question->pairs != NULL ? question->pairs[i].log_cost : 0.0);
    if (question->exact != NULL)
        know_cost(&choice, question->exact);
    for (size_t i = 0; i < n && question->pending != NULL; i++) {
        if (question->pending[i] > 0)
            count_pending(&choice, i, question->pending[i]);
    }
    for (size_t i = 0; i < n; i++)
        choice.penalty[i] = log_penalty(belief, belief->failure[i]);
    find_best(&choice);
    count_doubt(&choice);
    for (size_t stop = 0; stop < CHOICE_STOPS; stop++) {
        choice.log_stops[stop] =
            log_least_stop + (log_greatest_stop - log_least_stop) * (double)stop / (CHOICE_STOPS - 1);
        choice.stops[stop] = portable_exp(choice.log_stops[stop]);
    }
    return choice;
}

bool choice_is_near(const struct choice *choice, size_t batch)
{
    const struct belief *belief = choice->question.belief;

    for (size_t i = 0; i < belief->count; i++) {
        bool beside = i + 1 >= batch && i <= batch + 1;
        bool tried = belief->arms[i].tried || belief_past_tally(&belief->past, i)->reached > 0;

        if (tried && (beside || fabs(belief->octaves[i] - belief->octaves[batch]) <= farthest))
            return true;
    }
    return false;
}

/* ---- what a trial costs ---- */

/* The log cost of a run that reaches its target: a normal number. */
struct run_cost {
    double mean, deviation;
    double failure; /* q */
    double expected;
    double profile;
};

static struct run_cost run_cost_of(const struct choice *choice, size_t batch)
{
    const struct belief *belief = choice->question.belief;
    double variance = at(choice, batch, batch) + belief->scatter[batch];
    struct run_cost cost = {
        .mean = choice->mean[batch], .deviation = sqrt(variance), .failure = belief->failure[batch]};

    cost.expected = portable_exp(cost.mean + 0.5 * variance);
    if (!belief->arms[batch].cost_known &&
        (choice->question.exact == NULL || choice->question.exact->batch != batch))
        cost.profile = choice->question.profile_extra *
                       portable_exp(belief->cost_mean[batch] +
                                    0.5 * belief->cost_covariance[batch * belief->count + batch]);
    return cost;
}

static double stopped_cost(const struct choice *choice, const struct run_cost *cost, size_t stop)
{
    double stop_cost = choice->stops[stop] * choice->best_cost;
    double z = (choice->log_stops[stop] + choice->log_best_cost - cost->mean) / cost->deviation;
    double within = normal_below(z), reaches = 1.0 - cost->failure;

    return reaches * cost->expected * normal_below(z - cost->deviation) +
           (reaches * (1.0 - within) + cost->failure) * (stop_cost + choice->best_cost) + cost->profile;
}

double choice_stopped_cost(const struct choice *choice, size_t batch, size_t stop)
{
    const struct run_cost cost = run_cost_of(choice, batch);

    return stopped_cost(choice, &cost, stop);
}

/* Returns the cheapest stop; gives its expected cost. */
static size_t cheapest_stop(const struct choice *choice, const struct run_cost *cost, double *out_cost)
{
    size_t cheapest = 0;

    *out_cost = INFINITY;
    for (size_t stop = 0; stop < CHOICE_STOPS; stop++) {
        double expected = stopped_cost(choice, cost, stop);

        if (expected < *out_cost) {
            *out_cost = expected;
            cheapest = stop;
        }
    }
    return cheapest;
}

/* ---- what a trial tells ---- */

/* Log expected costs after the trial, each linear in the trial's standardised outcome z. */
struct outlook {
    size_t count;
    double level[LAW_BATCHES_MAX], slope[LAW_BATCHES_MAX]; /* the best known batch size comes first */
};

/* Adds the line of a batch size, unless no outcome brings it below that of the best known one. */
static void add_line(struct outlook *outlook, const struct choice *choice, size_t batch, double slope,
                     double penalty)
{
    const struct belief *belief = choice->question.belief;
    double level = choice->mean[batch] +
                   0.5 * (at(choice, batch, batch) - slope * slope + belief->scatter[batch]) + penalty;

    if (outlook->count > 0 && level - outlook->level[0] >= nodes[HALF] * fabs(slope - outlook->slope[0]))
        return;
    outlook->level[outlook->count] = level;
    outlook->slope[outlook->count++] = slope;
}

static void look_out(const struct choice *choice, size_t batch, uint32_t runs, struct outlook *outlook)
{
    const struct belief *belief = choice->question.belief;
    const struct belief_arm *arm = &belief->arms[batch];
    double root = sqrt(at(choice, batch, batch) + belief->scatter[batch] / (double)runs);
    double failures = belief->prior->fails_known + (double)arm->failures;
    double failure = failures / (failures + 1.0 - belief->prior->fails_known +
                                 (double)(belief_reached(belief, batch) + runs));

    outlook->count = 0;
    add_line(outlook, choice, choice->best, at(choice, choice->best, batch) / root,
             choice->penalty[choice->best]);
    if (batch != choice->best)
        add_line(outlook, choice, batch, at(choice, batch, batch) / root, log_penalty(belief, failure));
    for (size_t i = 0; i < belief->count; i++) {
        if (i != choice->best && i != batch && can_be_best(choice, i))
            add_line(outlook, choice, i, at(choice, i, batch) / root, choice->penalty[i]);
    }
}

/* Returns by how much the best of all lines is below that of the best known batch size, at one outcome. */
static double improvement(const struct outlook *outlook, double z)
{
    double known = outlook->level[0] + outlook->slope[0] * z, least = known;

    for (size_t i = 1; i < outlook->count; i++) {
        double line = outlook->level[i] + outlook->slope[i] * z;

        least = line < least ? line : least;
    }
    return least < known ? portable_exp(known) - portable_exp(least) : 0.0;
}

/* Returns the expected improvement by outcomes below z. */
static double expected_improvement(const struct outlook *outlook, double highest_z)
{
    double sum = highest_z >= 0.0 ? node_weights[0] * improvement(outlook, 0.0) : 0.0;

    for (size_t i = 1; i <= HALF && outlook->count > 1; i++) {
        if (-nodes[i] <= highest_z)
            sum += node_weights[i] * improvement(outlook, -nodes[i]);
        if (nodes[i] <= highest_z)
            sum += node_weights[i] * improvement(outlook, nodes[i]);
    }
    return sum;
}

/* Returns the probability that the batch size keeps the bound once so many trials of it have ended. */
static double chance_of(const struct choice *choice, size_t batch, uint32_t runs)
{
    const struct choice_question *question = &choice->question;

    return question->pairs == NULL
               ? 1.0
               : pair_chance(&question->pairs[batch], question->belief, batch, question->default_batch, runs);
}

/* Returns what a later recurrence saves if so many runs of the default narrow the doubt about slowdowns. */
static double narrowing_gain(const struct choice *choice, uint32_t runs)
{
    const struct choice_question *question = &choice->question;
    double most = 0.0;

    for (size_t i = 0; i < question->belief->count; i++) {
        const struct pair *pair = &question->pairs[i];
        double known;

        if (!pair->held || belief_reached(question->belief, i) == 0 || question->cannot_run[i])
            continue;
        known = portable_exp(log_expected(choice, i) - pair->log_cost + pair->log_cost_known);
        if (known < choice->best_cost)
            most = fmax(most, (choice->best_cost - known) *
                                  pair_narrowing(pair, question->belief, i, question->default_batch, runs));
    }
    return most;
}

struct trial_worth choice_worth(const struct choice *choice, size_t batch)
{
    const struct belief *belief = choice->question.belief;
    const struct run_cost cost = run_cost_of(choice, batch);
    struct trial_worth worth = {.net = -INFINITY};
    size_t stop = CHOICE_STOPS - 1, most = belief_reached(belief, batch) > 0 || choice->question.pairs != NULL
                                               ? sizeof repeats / sizeof repeats[0]
                                               : 1;
    bool is_reference = choice->question.pairs != NULL && batch == choice->question.default_batch;
    double highest_z,
        horizon = choice->question.prospect.horizon * (is_doubted(choice, batch) ? doubt_gain : 1.0);

    worth.expected_cost = choice->best_cost;
    if (batch != choice->best && is_reference) /* only if it is let run does it tell of the bound */
        worth.expected_cost = stopped_cost(choice, &cost, stop);
    else if (batch != choice->best)
        stop = cheapest_stop(choice, &cost, &worth.expected_cost);
    worth.stop_cost = choice->stops[stop] * choice->best_cost;
    highest_z = (choice->log_stops[stop] + choice->log_best_cost - cost.mean) / cost.deviation;
    for (size_t i = 0; i < most; i++) {
        double runs = (double)repeats[i], gain, net;
        struct outlook outlook;

        look_out(choice, batch, repeats[i], &outlook);
        gain = chance_of(choice, batch, repeats[i]) * (1.0 - cost.failure) *
               expected_improvement(&outlook, highest_z);
        if (is_reference)
            gain += (1.0 - cost.failure) * normal_below(highest_z) * narrowing_gain(choice, repeats[i]);
        net = horizon * gain - runs * (worth.expected_cost - choice->best_cost);
        if (net > worth.net) {
            worth.net = net;
            worth.gain = gain;
            worth.runs = repeats[i];
        }
    }
    return worth;
}

size_t choice_least_doubtful(const struct choice *choice, const uint64_t *early)
{
    const struct choice_question *question = &choice->question;
    size_t count = question->belief->count, start = question->default_batch, chosen = count;
    uint64_t least = 0, nearest = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t steps = i < start ? start - i : i - start;
        uint64_t doubt = 2 * (question->belief->arms[i].failures + early[i]) + steps;

        if (question->cannot_run[i] ||
            (chosen != count && (doubt > least || (doubt == least && steps >= nearest))))
            continue;
        chosen = i;
        least = doubt;
        nearest = steps;
    }
    return chosen;
}

size_t choice_most_worth(const struct choice *choice)
{
    size_t most = choice->best;
    double net = 0.0;

    for (size_t i = 0; i < choice->question.belief->count; i++) {
        double worth;

        if (choice->question.cannot_run[i] || !choice_is_near(choice, i))
            continue;
        worth = choice_worth(choice, i).net;
        if (worth > net) {
            net = worth;
            most = i;
        }
    }
    return most;
}
