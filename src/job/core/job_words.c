/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the enumerations in logs and answers. */
#include "job/core/job_words.h"
#include "base/words.h"
#include "job/core/job.h"
#include "job/core/job_record.h"

const char *const job_outcome_words[TRIAL_OUTCOME_COUNT] = {
    [TRIAL_REACHED] = "reached", [TRIAL_NOT_REACHED] = "not_reached",     [TRIAL_REFUSED] = "refused",
    [TRIAL_STOPPED] = "stopped", [TRIAL_OUT_OF_MEMORY] = "out_of_memory", [TRIAL_CRASHED] = "crashed",
    [TRIAL_EXPIRED] = "expired",
};
const char *const job_answer_words[JOB_ANSWERS] = {
    [JOB_GO_ON] = "go_on", [JOB_REACHED] = "reached", [JOB_STOP] = "stop"};
const char *const job_stop_words[JOB_STOPS] = {
    [JOB_STOP_NONE] = "none", [JOB_STOP_TARGET] = "target",     [JOB_STOP_EPOCHS] = "epochs",
    [JOB_STOP_COST] = "cost", [JOB_STOP_DEADLINE] = "deadline", [JOB_STOP_ENDED] = "ended",
};
const char *const job_reason_words[REASON_COUNT] = {
    [REASON_FIXED] = "fixed",         [REASON_EXPLORE] = "explore",         [REASON_SAMPLED] = "sampled",
    [REASON_BEST_SEEN] = "best_seen", [REASON_PLUGIN] = "plugin",           [REASON_NO_TARGET] = "no_target",
    [REASON_CONTROL] = "control",     [REASON_LAST_TRY] = "last_try",       [REASON_DEADLINE] = "deadline",
    [REASON_BOUND] = "bound",         [REASON_MEMORY] = "memory",           [REASON_NO_CHOICE] = "no_choice",
    [REASON_PINNED] = "pinned",       [REASON_QUALITY] = "quality",         [REASON_UNASKED] = "unasked",
    [REASON_GUARD] = "guard",         [REASON_GUARD_DOUBT] = "guard_doubt",
};
const char *const job_target_words[JOB_TARGETS] = {
    [FLY_TARGET_NONE] = "none", [FLY_TARGET_AT_LEAST] = "at_least", [FLY_TARGET_AT_MOST] = "at_most"};
const char *const job_generator_words[JOB_GENERATORS] = {
    [GENERATOR_PHILOX] = "philox", [GENERATOR_NUMPY] = "numpy"};
const char *const job_objective_words[JOB_OBJECTIVES] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time",
    [FLY_OBJECTIVE_COST] = "cost",     [FLY_OBJECTIVE_LOWEST_LIMIT] = "lowest_limit",
    [FLY_OBJECTIVE_CARBON] = "carbon", [FLY_OBJECTIVE_MONEY] = "money"};
const char *const job_past_words[PAST_KINDS] = {
    [PAST_HARDWARE] = "hardware", [PAST_REVISION] = "revision", [PAST_JOB] = "job"};
static const char *const kind_words[] = {
    [RECORD_DEFINED] = "defined",   [RECORD_SET] = "set",
    [RECORD_PROPOSED] = "proposed", [RECORD_ATTEMPT] = "attempt",
    [RECORD_PROFILED] = "profiled", [RECORD_HEARTBEAT] = "heartbeat",
    [RECORD_EPOCH] = "epoch",       [RECORD_ENDED] = "ended",
    [RECORD_CLOSED] = "closed",     [RECORD_PROFILED_PART] = "profiled_part",
    [RECORD_BROUGHT] = "brought",
};

#define LENGTH(words) (sizeof(words) / sizeof(words)[0])
_Static_assert(LENGTH(kind_words) == RECORD_KINDS, "one word for every kind");

const char *job_outcome_name(enum trial_outcome outcome)
{
    return job_outcome_words[outcome];
}

const char *job_stop_name(enum job_stop stop)
{
    return job_stop_words[stop];
}

const char *job_reason_name(enum reason reason)
{
    return job_reason_words[reason];
}

const char *record_kind_name(enum record_kind kind)
{
    return kind_words[kind];
}

enum record_kind record_kind_parse(const char *word)
{
    int index = word_index(word, kind_words, RECORD_KINDS);

    return index >= 0 ? (enum record_kind)index : RECORD_KINDS;
}
