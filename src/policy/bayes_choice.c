/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/bayes_choice.h"

#include <math.h>
#include <string.h>

#include "base/math/normal.h"
#include "base/math/portable_math.h"

/*
 * What `bayes` runs as long as it knows too little to weigh trials: before a batch size has reached its
 * target, and before anything was observed on hardware that a past of other hardware speaks for. And what a
 * choice rests on, batch size by batch size.
 */

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

bool choice_begins(const struct choice *choice)
{
    const struct choice_question *question = &choice->question;
    bool runs = false;

    for (size_t i = 0; question->pending != NULL && i < question->belief->count; i++)
        runs |= question->pending[i] > 0;
    return !runs && !belief_has_begun(question->belief);
}

/* The default needs no runs of a past to show that it reaches its target, unless it failed there. */
size_t choice_first(const struct choice *choice)
{
    const struct belief *belief = choice->question.belief;
    size_t base = choice->question.default_batch;
    double penalty = choice->penalty[choice->best] - choice->penalty[base];

    if (choice->question.cannot_run[base] || belief_past_tally(&belief->past, base)->failed > 0)
        return choice->best;
    return choice_log_expected(choice, base) + penalty < choice->log_best_cost ? base : choice->best;
}

/* ---- what is expected of each ---- */

static struct batch_outlook outlook_of(const struct choice *choice, size_t batch)
{
    const struct belief *belief = choice->question.belief;
    const struct trial_worth worth = choice_worth(choice, batch);
    double doubt = fmax(choice->covariance[triangle_at(batch, batch)], 0.0);
    double scatter = belief->scatter[batch];

    return (struct batch_outlook){
        .expected_cost = portable_exp(choice->mean[batch] + 0.5 * (doubt + scatter)),
        .doubt = sqrt(doubt),
        .scatter = sqrt(scatter),
        .failure = belief->failure[batch],
        .trial_cost = worth.expected_cost,
        .stop_cost = worth.stop_cost,
        .gain = worth.gain,
        .following = choice->question.prospect.horizon,
        .worth = worth.net,
        .runs = worth.runs,
        .is_best = batch == choice->best,
        .may_run = !choice->question.cannot_run[batch] && choice_is_near(choice, batch) &&
                   (batch == choice->best || choice_may_explore(choice)),
    };
}

bool choice_explain(const struct choice *choice, double best_stop, struct batch_outlook *outlooks)
{
    if (choice->best == choice->question.belief->count)
        return false;
    for (size_t i = 0; i < choice->question.belief->count; i++)
        outlooks[i] = outlook_of(choice, i);
    outlooks[choice->best].stop_cost = best_stop;
    return true;
}

const double choice_stops[CHOICE_STOPS] = {1.1000000000000001,
                                           1.2160895095846536,
                                           1.3444306321107664,
                                           1.4863163527946979,
                                           1.6431761132343228,
                                           1.8165902124584952,
                                           2.0083057278044847,
                                           2.2202541160198237,
                                           2.4545706719125961,
                                           2.713616040588239,
                                           3.0};
const double choice_log_stops[CHOICE_STOPS] = {0.095310179804324865, 0.19564039069070338, 0.29597060157708188,
                                               0.39630081246346038,  0.49663102334983888, 0.59696123423621739,
                                               0.69729144512259589,  0.79762165600897439, 0.89795186689535289,
                                               0.99828207778173139,  1.0986122886681098};

/* The nodes of Gauss-Hermite integration over a standard normal number, outwards, and their weights. */
enum { NODES = 15 };
static const double nodes[NODES] = {0.0,
                                    -0.799129068324548,
                                    0.799129068324548,
                                    -1.6067100690287297,
                                    1.6067100690287297,
                                    -2.432436827009758,
                                    2.432436827009758,
                                    -3.2890824243987664,
                                    3.2890824243987664,
                                    -4.1962077112690155,
                                    4.1962077112690155,
                                    -5.190093591304781,
                                    5.190093591304781,
                                    -6.363947888829839,
                                    6.363947888829839};
static const double node_weights[NODES] = {
    0.31825951825951826,   0.23246229360973222,   0.23246229360973222,   0.0894177953998444,
    0.0894177953998444,    0.017365774492137605,  0.017365774492137605,  0.0015673575035499562,
    0.0015673575035499562, 5.642146405189017e-05, 5.642146405189017e-05, 5.975419597920605e-07,
    5.975419597920605e-07, 8.58964989963327e-10,  8.58964989963327e-10};

static const uint32_t repeats[] = {1, 2, 4, 8};

static const double farthest =
    2.001; /* octaves to what was tried, for a first trial; logarithms are rounded */

/* What doubt adds to the standard deviation of log cost, and the factor of the gain. */
static const double doubt_deviation = 0.25, doubt_gain = 3.0;

static double at(const struct choice *choice, size_t one, size_t other)
{
    return choice->covariance[triangle_at(one, other)];
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
    double column[LAW_BATCHES_MAX];
    double total = at(choice, batch, batch) + belief->scatter[batch] / (double)trials;

    for (size_t i = 0; i < n; i++)
        column[i] = at(choice, i, batch);
    for (size_t i = 0; i < n; i++) {
        double *restrict row = &choice->covariance[triangle_row(i)];

        for (size_t j = 0; j <= i; j++)
            row[j] -= column[i] * column[j] / total;
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
    size_t n = belief->count;
    double known = belief->epochs_mean[exact->batch] + portable_log(exact->cost);
    double apart = known - choice->mean[exact->batch];

    for (size_t i = 0; i < n && !knows_a_cost(belief); i++)
        choice->mean[i] += apart;
    choice->mean[exact->batch] = known;
    for (size_t i = 0; i < n; i++) {
        size_t at = triangle_at(exact->batch, i);

        choice->covariance[at] = belief->epochs_covariance[at];
    }
}

double choice_log_expected(const struct choice *choice, size_t batch)
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
        double value = choice_log_expected(choice, i);

        if (!can_be_best(choice, i) || !(value < choice->log_best_cost))
            continue;
        choice->best = i;
        choice->log_best_cost = value;
    }
    if (choice->best == belief->count)
        find_nearest(choice);
    if (choice->best < belief->count)
        choice->log_best_cost = choice_log_expected(choice, choice->best);
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
            choice->covariance[triangle_at(i, i)] += doubt_deviation * doubt_deviation;
    }
}

struct choice choice_open(const struct choice_question *question, struct choice_room *room)
{
    const struct belief *belief = question->belief;
    size_t n = belief->count;
    struct choice choice = {
        .question = *question, .mean = room->mean, .covariance = room->covariance, .penalty = room->penalty};

    for (size_t i = 0; i < triangle_size(n); i++)
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
    return choice;
}

bool choice_is_near(const struct choice *choice, size_t batch)
{
    const struct belief *belief = choice->question.belief;

    for (size_t i = 0; i < belief->count; i++) {
        bool beside = i + 1 >= batch && i <= batch + 1;
        bool tried = belief->arms[i].tried || belief_past_tally(&belief->past, i)->reached > 0;

        if (tried && (beside || fabs(belief->laws->octaves[i] - belief->laws->octaves[batch]) <= farthest))
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
        cost.profile =
            choice->question.profile_extra *
            portable_exp(belief->cost_mean[batch] + 0.5 * belief->cost_covariance[triangle_at(batch, batch)]);
    return cost;
}

/* Returns how far a stop is from the expected log cost, in standard deviations. */
static double stop_z(const struct choice *choice, const struct run_cost *cost, size_t stop)
{
    return (choice_log_stops[stop] + choice->log_best_cost - cost->mean) / cost->deviation;
}

/* Gives the expected cost of a trial that is stopped at each of the costs. */
static void stopped_costs(const struct choice *choice, const struct run_cost *cost, double *out)
{
    double below[2 * CHOICE_STOPS], *within = below, *within_cost = below + CHOICE_STOPS;
    double reaches = 1.0 - cost->failure;

    for (size_t stop = 0; stop < CHOICE_STOPS; stop++) {
        within[stop] = stop_z(choice, cost, stop);
        within_cost[stop] = within[stop] - cost->deviation;
    }
    normal_below_all(below, 2 * CHOICE_STOPS);
    for (size_t stop = 0; stop < CHOICE_STOPS; stop++)
        out[stop] = reaches * cost->expected * within_cost[stop] +
                    (reaches * (1.0 - within[stop]) + cost->failure) *
                        (choice_stops[stop] * choice->best_cost + choice->best_cost) +
                    cost->profile;
}

/* Returns the cheapest stop of a trial; gives its expected cost. With `last` only the last one counts. */
static size_t cheapest_stop(const struct choice *choice, const struct run_cost *cost, bool last,
                            double *out_cost)
{
    size_t cheapest = last ? CHOICE_STOPS - 1 : 0;
    double costs[CHOICE_STOPS];

    stopped_costs(choice, cost, costs);
    *out_cost = last ? costs[cheapest] : INFINITY;
    for (size_t stop = 0; stop < CHOICE_STOPS && !last; stop++) {
        if (!(costs[stop] < *out_cost))
            continue;
        *out_cost = costs[stop];
        cheapest = stop;
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

    if (outlook->count > 0 && level - outlook->level[0] >= nodes[NODES - 1] * fabs(slope - outlook->slope[0]))
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

/* Gives the best known one's log cost at one outcome, and the least of all. */
static void outcome(const struct outlook *outlook, double z, double *out_known, double *out_least)
{
    double known = outlook->level[0] + outlook->slope[0] * z, least = known;

    for (size_t i = 1; i < outlook->count; i++) {
        double line = outlook->level[i] + outlook->slope[i] * z;

        least = line < least ? line : least;
    }
    *out_known = known;
    *out_least = least;
}

/* Returns the expected improvement on the best known batch size by outcomes below z. */
static double expected_improvement(const struct outlook *outlook, double highest_z)
{
    double costs[2 * NODES], weights[NODES], sum = 0.0;
    size_t count = 0;

    for (size_t i = 0; i < NODES && outlook->count > 1; i++) {
        double *known = &costs[2 * count], *least = known + 1;

        outcome(outlook, nodes[i], known, least);
        weights[count] = node_weights[i];
        count += nodes[i] <= highest_z && *least < *known;
    }
    portable_exp_all(costs, 2 * count);
    for (size_t i = 0; i < count; i++)
        sum += weights[i] * (costs[2 * i] - costs[2 * i + 1]);
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
        known = portable_exp(choice_log_expected(choice, i) - pair->log_cost + pair->log_cost_known);
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
    double highest_z, price,
        horizon = choice->question.prospect.horizon * (is_doubted(choice, batch) ? doubt_gain : 1.0);

    worth.expected_cost = choice->best_cost;
    if (batch != choice->best) /* only if it is let run does the reference tell of the bound */
        stop = cheapest_stop(choice, &cost, is_reference, &worth.expected_cost);
    worth.stop_cost = choice_stops[stop] * choice->best_cost;
    price = worth.expected_cost - choice->best_cost;
    if (choice->question.pairs != NULL && pair_is_beyond(&choice->question.pairs[batch]))
        price = fmax(price, 0.0); /* what it saves by breaking the bound is no gain */
    highest_z = stop_z(choice, &cost, stop);
    for (size_t i = 0; i < most; i++) {
        double runs = (double)repeats[i], gain, net;
        struct outlook outlook;

        look_out(choice, batch, repeats[i], &outlook);
        gain = chance_of(choice, batch, repeats[i]) * (1.0 - cost.failure) *
               expected_improvement(&outlook, highest_z);
        if (is_reference)
            gain += (1.0 - cost.failure) * normal_below(highest_z) * narrowing_gain(choice, repeats[i]);
        net = horizon * gain - runs * price;
        if (net > worth.net) {
            worth.net = net;
            worth.gain = gain;
            worth.runs = repeats[i];
        }
    }
    return worth;
}

bool choice_may_explore(const struct choice *choice)
{
    const struct choice_question *question = &choice->question;
    uint64_t explorers = 0;

    for (size_t i = 0; i < question->belief->count && question->pending != NULL; i++)
        explorers += i == choice->best ? 0 : question->pending[i];
    return explorers < question->explorers;
}

size_t choice_most_worth(const struct choice *choice)
{
    size_t most = choice->best;
    double net = 0.0;

    for (size_t i = 0; i < choice->question.belief->count && choice_may_explore(choice); i++) {
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
