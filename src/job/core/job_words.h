/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_WORDS_H
#define FLYBALL_JOB_CORE_JOB_WORDS_H

#include "job/core/job_record.h"

/* The words of enumerations in logs and on the wire, indexed by value. */
enum {
    JOB_ANSWERS = JOB_STOP + 1,
    JOB_STOPS = JOB_STOP_ENDED + 1,
    JOB_TARGETS = FLY_TARGET_AT_MOST + 1,
    JOB_GENERATORS = GENERATOR_NUMPY + 1,
    JOB_OBJECTIVES = FLY_OBJECTIVE_MONEY + 1,
};

extern const char *const job_outcome_words[TRIAL_OUTCOME_COUNT];
extern const char *const job_answer_words[JOB_ANSWERS];
extern const char *const job_stop_words[JOB_STOPS];
extern const char *const job_reason_words[REASON_COUNT];
extern const char *const job_target_words[JOB_TARGETS];
extern const char *const job_past_words[PAST_KINDS];
extern const char *const job_generator_words[JOB_GENERATORS];
extern const char *const job_objective_words[JOB_OBJECTIVES];

/* "defined", ...; the reverse returns RECORD_KINDS for an unknown word. */
const char *record_kind_name(enum record_kind kind);
enum record_kind record_kind_parse(const char *word);

#endif
