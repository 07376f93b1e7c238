/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_DECISION_NUMBERS_H
#define FLYBALL_JOB_CORE_DECISION_NUMBERS_H

#include "shapes/shape.h"

enum { DECISION_NUMBERS_MAX = 64 }; /* batch sizes that the numbers cover */

/* What was known of a batch size when a trial was chosen; unknown means are NAN. */
struct decision_known {
    uint32_t batch_size;
    uint64_t trials, reached;
    double mean_cost_j;                /* of the trials whose energy is known, like the next */
    double mean_energy_j, mean_time_s; /* of the trials that reached the target */
    uint64_t crashed;
    bool given_up;
    double final_metric; /* mean of the whole trainings, if the job asks for it; NAN */
    bool worse;          /* than the default's by more than allowed: it is left */
};

/* What the policy expected of a batch size, if it models costs; as struct batch_outlook. */
struct decision_candidate {
    uint32_t batch_size;
    double expected_cost_j; /* of a run to the target, like all costs by the objective */
    double doubt;           /* standard deviation of the logarithm of the mean cost, as believed */
    double scatter;         /* and of the logarithm between runs */
    double failure;         /* probability that a run does not reach its target */
    double trial_cost_j;    /* of a trial that is stopped at stop_cost_j, and what makes the model then */
    double stop_cost_j;
    double gain_j; /* expected in each following recurrence, by `runs` trials */
    uint32_t runs;
    double worth_j; /* of these trials; above 0 it is tried */
    bool may_run;   /* at this time */
};

struct decision_outlook {
    struct decision_candidate candidates[DECISION_NUMBERS_MAX];
    size_t candidate_count;
    uint32_t best_batch_size;     /* the best known, with which trials are compared */
    double following_recurrences; /* as expected */
};

/* The numbers behind the choice of a trial, as the log records them with it. */
struct decision_numbers {
    struct decision_known known[DECISION_NUMBERS_MAX];
    size_t known_count;
    uint32_t best_batch_size;
    double reference_time_s; /* of the default at its highest limit; NAN */
    double max_slowdown;     /* NAN: no bound */
    uint64_t baseline_runs;
    uint32_t does_not_fit_from;     /* 0: all batch sizes fit */
    double reference_money_per_kwh; /* by which the last trials counted; one of the two at most; NAN */
    double reference_g_per_kwh;
    bool has_outlook; /* the policy models costs, and a run has reached its target */
    struct decision_outlook outlook;
};

extern const struct shape shape_decision_numbers;

/* Reads what it can; the rest is unknown. `json` may be NULL. */
void decision_numbers_read(json_t *json, struct decision_numbers *out_numbers);

#endif
