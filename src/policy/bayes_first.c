/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `bayes` runs as long as it knows too little to weigh trials: before a batch size has reached its
 * target, and before anything was observed on hardware that a past of other hardware speaks for.
 */
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
