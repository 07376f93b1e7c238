/* SPDX-License-Identifier: Apache-2.0 */
/* What a choice of `bayes` rests on, batch size by batch size. */
#include <math.h>

#include "base/math/portable_math.h"
#include "policy/bayes_choice.h"

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
