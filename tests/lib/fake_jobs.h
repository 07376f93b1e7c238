/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_FAKE_JOBS_H
#define FLYBALL_TESTS_LIB_FAKE_JOBS_H

#include "job/core/job_backend.h"

/*
 * A job's log that answers what the test tells it and remembers all calls: for tests of its callers. Each
 * kind of call can be made to fail, once or from then on.
 */
enum fake_call {
    FAKE_DEFINE,
    FAKE_PROPOSE,
    FAKE_PROFILE,
    FAKE_HEARTBEAT,
    FAKE_REPORT,
    FAKE_END,
    FAKE_CALL_COUNT
};

enum { FAKE_CALLS_MAX = 256, FAKE_BATCHES_MAX = 16 };

struct fake_jobs {
    /* Set by the test. */
    struct job_proposal proposals[8]; /* the n-th propose gets the n-th; the last one repeats */
    size_t proposal_count;
    struct job_answered answers[64]; /* the n-th is for epoch n of a trial; go on where there is none */
    size_t answer_count;
    struct job_choice choice;
    struct {
        unsigned from, to; /* which calls fail, from 1; 0: none; `to` 0: for ever */
        int code;
    } faults[FAKE_CALL_COUNT];
    bool deaf;                          /* a call that fails was recorded all the same */
    _Atomic bool held[FAKE_CALL_COUNT]; /* such a call does not return until this is false */

    /* What was called. */
    _Atomic unsigned calls[FAKE_CALL_COUNT];
    struct fly_job_definition definition;
    uint32_t batch_sizes[FAKE_BATCHES_MAX];
    char name[JOB_TEXT_MAX], policy[JOB_TEXT_MAX];
    struct job_question question;
    uint32_t ran_batch_size; /* of the last question with one */
    double ran_limit_w;
    char request[JOB_TEXT_MAX], first_request[JOB_TEXT_MAX], run[JOB_TEXT_MAX], submission[JOB_TEXT_MAX],
        gpu_model[JOB_TEXT_MAX];
    double limits_w[64];
    struct job_profile profile;
    struct fly_power_point points[64];
    struct job_epoch reports[FAKE_CALLS_MAX];
    size_t report_count;
    struct job_end ends[FAKE_CALLS_MAX];
    size_t end_count;
};

extern const struct job_backend fake_jobs_backend;

/*
 * Sets one proposal: trial 1, attempt 1 and so on, batch size 32, no limit, 10 epochs that stop at the
 * target.
 */
void fake_jobs_init(struct fake_jobs *fake);
struct jobs fake_jobs_handle(struct fake_jobs *fake);
/* Makes the n-th call fail, and those up to `to`; 0: for ever. */
void fake_jobs_fail(struct fake_jobs *fake, enum fake_call call, int code, unsigned from, unsigned to);

#endif
