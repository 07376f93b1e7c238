/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `bayes` runs as long as it knows too little to weigh trials: before a batch size has reached its
 * target, and before anything was observed on hardware that a past of other hardware speaks for. And what a
 * choice rests on, batch size by batch size.
 */
#include <math.h>

#include "base/math/portable_math.h"
#include "policy/bayes_choice.h"

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
