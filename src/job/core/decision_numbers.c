/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/decision_numbers.h"

#include <math.h>

#include "shapes/shape_rows.h"

/* What is missing is unknown. */
#define COUNT SHAPE_IS_U64(0, INT64_MAX), .need = SHAPE_OPTIONAL
#define SIZE SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_OPTIONAL
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE, .need = SHAPE_OPTIONAL
#define REFERENCE SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE, .need = SHAPE_SPARING

static const struct shape_field known_rows[] = {
    {SHAPE_AT(decision_known, batch_size), SIZE},
    {SHAPE_AT(decision_known, trials), COUNT},
    {SHAPE_AT(decision_known, reached), COUNT},
    {SHAPE_AT(decision_known, mean_cost_j), NUMBER},
    {SHAPE_AT(decision_known, mean_energy_j), NUMBER},
    {SHAPE_AT(decision_known, mean_time_s), NUMBER},
    {SHAPE_AT(decision_known, crashed), COUNT},
    {SHAPE_AT(decision_known, given_up), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(decision_known, final_metric), REFERENCE},
    {SHAPE_AT(decision_known, worse), SHAPE_IS_BOOL, .need = SHAPE_SPARING},
};
static const struct shape known = {SHAPE_OF(decision_known, known_rows)};

static const struct shape_field candidate_rows[] = {
    {SHAPE_AT(decision_candidate, batch_size), SIZE},
    {SHAPE_AT(decision_candidate, expected_cost_j), NUMBER},
    {SHAPE_AT(decision_candidate, doubt), NUMBER},
    {SHAPE_AT(decision_candidate, scatter), NUMBER},
    {SHAPE_AT(decision_candidate, failure), NUMBER},
    {SHAPE_AT(decision_candidate, trial_cost_j), NUMBER},
    {SHAPE_AT(decision_candidate, stop_cost_j), NUMBER},
    {SHAPE_AT(decision_candidate, gain_j), NUMBER},
    {SHAPE_AT(decision_candidate, runs), SIZE},
    {SHAPE_AT(decision_candidate, worth_j), NUMBER},
    {SHAPE_AT(decision_candidate, may_run), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL},
};
static const struct shape candidate = {SHAPE_OF(decision_candidate, candidate_rows)};

static const struct shape_field outlook_rows[] = {
    {SHAPE_AT(decision_outlook, candidates),
     SHAPE_IS_STRUCTS_HERE(&candidate, decision_outlook, candidates, candidate_count)},
    {SHAPE_AT(decision_outlook, best_batch_size), SIZE},
    {SHAPE_AT(decision_outlook, following_recurrences), NUMBER},
};
static const struct shape outlook = {SHAPE_OF(decision_outlook, outlook_rows)};

static const struct shape_field rows[] = {
    {SHAPE_AT(decision_numbers, known), SHAPE_IS_STRUCTS_HERE(&known, decision_numbers, known, known_count),
     .need = SHAPE_OPTIONAL},
    {SHAPE_AT(decision_numbers, best_batch_size), SIZE},
    {SHAPE_AT(decision_numbers, reference_time_s), NUMBER},
    {SHAPE_AT(decision_numbers, max_slowdown), NUMBER},
    {SHAPE_AT(decision_numbers, baseline_runs), COUNT},
    {SHAPE_AT(decision_numbers, does_not_fit_from), SIZE, .null = SHAPE_ZERO},
    {SHAPE_AT(decision_numbers, reference_money_per_kwh), REFERENCE},
    {SHAPE_AT(decision_numbers, reference_g_per_kwh), REFERENCE},
    {SHAPE_AT(decision_numbers, outlook), SHAPE_IS_STRUCT(&outlook), SHAPE_IF(decision_numbers, has_outlook)},
};
const struct shape shape_decision_numbers = {SHAPE_OF(decision_numbers, rows)};

void decision_numbers_read(json_t *json, struct decision_numbers *out_numbers)
{
    *out_numbers = (struct decision_numbers){.reference_time_s = NAN,
                                             .max_slowdown = NAN,
                                             .reference_money_per_kwh = NAN,
                                             .reference_g_per_kwh = NAN};
    (void)shape_read(&shape_decision_numbers, json, SHAPE_BORROWING, NULL, out_numbers, NULL);
}
