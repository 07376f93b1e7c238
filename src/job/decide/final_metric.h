/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_FINAL_METRIC_H
#define FLYBALL_JOB_DECIDE_FINAL_METRIC_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The final metrics of whole trainings with one batch size, and whether they show that its models are worse
 * than the default's by more than is allowed. Pure.
 *
 * This is a one-sided test for unequal variances (Welch, "The generalization of 'Student's' problem when
 * several different population variances are involved", Biometrika 34, 1947): with means m, variances s^2 and
 * counts n of the default (d) and the other (o), where a larger metric is better,
 *
 *     t = (m_d - m_o - most) / sqrt(s_d^2 / n_d + s_o^2 / n_o)
 *
 * is compared with the 95 % quantile of Student's distribution, whose degrees of freedom Welch and
 * Satterthwaite give. Below two trainings of either nothing is known.
 */
struct final_metrics {
    uint64_t count;
    double mean, squares; /* the mean, and the sum of squared distances from it */
};

/* Takes in one more; one that is not finite tells nothing. */
void final_metrics_take(struct final_metrics *metrics, double metric);

/* Returns whether the other's models are worse by more than `most`, told at 95 %. */
bool final_metrics_worse(const struct final_metrics *usual, const struct final_metrics *other, double most,
                         bool larger_is_better);

#endif
