/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/decision_candidates.h"

/* Costs are told at today's size of the data, as all that is known beside them. */
static struct decision_candidate candidate_of(const struct batch_outlook *outlook, uint32_t batch_size,
                                              double growth)
{
    return (struct decision_candidate){
        .batch_size = batch_size,
        .expected_cost_j = growth * outlook->expected_cost,
        .doubt = outlook->doubt,
        .scatter = outlook->scatter,
        .failure = outlook->failure,
        .trial_cost_j = growth * outlook->trial_cost,
        .stop_cost_j = growth * outlook->stop_cost,
        .gain_j = growth * outlook->gain,
        .runs = outlook->runs,
        .worth_j = growth * outlook->worth,
        .may_run = outlook->may_run,
    };
}

bool decision_candidates(const struct job_state *state, const struct job_line *line,
                         struct decision_outlook *out_outlook)
{
    const struct job_spec *spec = line->spec;
    struct batch_outlook outlooks[DECISION_NUMBERS_MAX];

    if (state->definition.target == JOB_NO_TARGET || spec->batch_count > DECISION_NUMBERS_MAX ||
        !decider_explain(&line->decider, outlooks))
        return false;
    *out_outlook = (struct decision_outlook){.candidate_count = spec->batch_count,
                                             .following_recurrences = outlooks[0].following};
    for (size_t i = 0; i < spec->batch_count; i++) {
        out_outlook->candidates[i] = candidate_of(&outlooks[i], spec->batches[i].size, line->growth);
        if (outlooks[i].is_best)
            out_outlook->best_batch_size = spec->batches[i].size;
    }
    return true;
}
