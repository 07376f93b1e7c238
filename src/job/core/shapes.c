/* SPDX-License-Identifier: Apache-2.0 */
/* The structs that are sent, member by member. */
#include "job/core/shapes.h"

#include <math.h>

#include "job/core/definition.h"
#include "job/core/job_owner.h"
#include "job/core/job_words.h"
#include "policy/batch_policy.h"
#include "store/store.h"

/* Rows. Each is named after its member of the struct. */
#define AT(type, member) .name = #member, .at = offsetof(struct type, member)
#define WHOLE(type, member, minimum, maximum, text)                                                 \
    {                                                                                               \
        AT(type, member), .kind = SHAPE_U32, .least = (minimum), .most = (maximum), .about = (text) \
    }
#define LONG(type, member, minimum, text)                                                           \
    {                                                                                               \
        AT(type, member), .kind = SHAPE_U64, .least = (minimum), .most = INT64_MAX, .about = (text) \
    }
#define DATE(type, member, text)                                                \
    {                                                                           \
        AT(type, member), .kind = SHAPE_I64, .most = INT64_MAX, .about = (text) \
    }
#define NUMBER(type, member, within, none, text)                                                   \
    {                                                                                              \
        AT(type, member), .kind = SHAPE_NUMBER, .range = (within), .null = (none), .about = (text) \
    }
#define TRUTH(type, member, text)                             \
    {                                                         \
        AT(type, member), .kind = SHAPE_BOOL, .about = (text) \
    }
#define WORD(type, member, list, length, text)                                                         \
    {                                                                                                  \
        AT(type, member), .kind = SHAPE_WORD, .words = (list), .word_count = (length), .about = (text) \
    }
#define TEXT(type, member, bytes, text)                                           \
    {                                                                             \
        AT(type, member), .kind = SHAPE_TEXT, .longest = (bytes), .about = (text) \
    }
#define CHARS(type, member, text)                                                               \
    {                                                                                           \
        AT(type, member), .kind = SHAPE_CHARS, .longest = sizeof((struct type *)0)->member - 1, \
                          .free_text = true, .about = (text)                                    \
    }
#define INSIDE(type, member, what, text)                                         \
    {                                                                            \
        AT(type, member), .kind = SHAPE_STRUCT, .shape = (what), .about = (text) \
    }

/* Rows of members that may be left out. */
#define OR_WHOLE(type, member, maximum, text)                                                           \
    {                                                                                                   \
        AT(type, member), .kind = SHAPE_U32, .need = SHAPE_OPTIONAL, .most = (maximum), .about = (text) \
    }
#define OR_LONG(type, member, text)                                                                     \
    {                                                                                                   \
        AT(type, member), .kind = SHAPE_U64, .need = SHAPE_OPTIONAL, .most = INT64_MAX, .about = (text) \
    }
#define OR_NUMBER(type, member, within, none, text)                                                        \
    {                                                                                                      \
        AT(type, member), .kind = SHAPE_NUMBER, .need = SHAPE_OPTIONAL, .range = (within), .null = (none), \
                          .about = (text)                                                                  \
    }
#define OR_TRUTH(type, member, text)                                                  \
    {                                                                                 \
        AT(type, member), .kind = SHAPE_BOOL, .need = SHAPE_OPTIONAL, .about = (text) \
    }
#define OR_WORD(type, member, list, length, text)                                      \
    {                                                                                  \
        AT(type, member), .kind = SHAPE_WORD, .need = SHAPE_OPTIONAL, .words = (list), \
                          .word_count = (length), .about = (text)                      \
    }
#define OR_TEXT(type, member, bytes, text)                                                                \
    {                                                                                                     \
        AT(type, member), .kind = SHAPE_TEXT, .need = SHAPE_OPTIONAL, .longest = (bytes), .about = (text) \
    }
#define SPARING_NUMBER(type, member, text)                                                    \
    {                                                                                         \
        AT(type, member), .kind = SHAPE_NUMBER, .need = SHAPE_SPARING, .null = SHAPE_UNKNOWN, \
                          .about = (text)                                                     \
    }
#define SPARING_WHOLE(type, member, maximum, text)                                                     \
    {                                                                                                  \
        AT(type, member), .kind = SHAPE_U32, .need = SHAPE_SPARING, .most = (maximum), .about = (text) \
    }
#define SPARING_TRUTH(type, member, text)                                            \
    {                                                                                \
        AT(type, member), .kind = SHAPE_BOOL, .need = SHAPE_SPARING, .about = (text) \
    }
#define OR_INSIDE(type, member, what, text)                                                              \
    {                                                                                                    \
        AT(type, member), .kind = SHAPE_STRUCT, .need = SHAPE_OPTIONAL, .shape = (what), .about = (text) \
    }

#define SHAPE(type, title, text, rows)                                               \
    .name = (title), .about = (text), .size = sizeof(struct type), .fields = (rows), \
    .count = sizeof(rows) / sizeof(rows)[0]

enum {
    SHORT = JOB_TEXT_MAX - 1,
    JOBS_MAX = 1 << 20,
    CODE_MAX = 32,
    TROUBLE_MAX = FLY_ERROR_TEXT_MAX,
};

/* ---- what a job is ---- */

static const struct shape_field registered_rows[] = {
    TRUTH(job_registered, known, "it was registered before, with the same definition"),
    LONG(job_registered, trials, 0, "so far"),
    {AT(job_registered, policy), .kind = SHAPE_CHARS, .need = SHAPE_SPARING, .longest = SHORT,
     .about = "that chooses its batch sizes now"},
};
const struct shape shape_registered = {
    SHAPE(job_registered, "Registered", "A job that is on record", registered_rows)};

static const struct shape_field pin_rows[] = {
    {.name = "batch_size",
     .kind = SHAPE_U32,
     .at = offsetof(struct job_setting, pin_batch_size),
     .most = UINT32_MAX,
     .about = "that all trials run; 0: no pin any more"},
    {.name = "limit_w",
     .kind = SHAPE_NUMBER,
     .need = SHAPE_OPTIONAL,
     .at = offsetof(struct job_setting, pin_limit_w),
     .range = SHAPE_ABOVE_0,
     .null = SHAPE_UNKNOWN,
     .about = "of one GPU; null: the best of the batch size's profile"},
};
static const struct shape shape_pin = {SHAPE(job_setting, "Pin", "A choice that is held", pin_rows)};
static const struct shape_field setting_rows[] = {
    {AT(job_setting, objective), .kind = SHAPE_STRUCT, .need = SHAPE_FLAGGED,
     .beside = offsetof(struct job_setting, set_objective), .shape = &shape_objective,
     .about = "what is chosen for from now on"},
    {AT(job_setting, control_every), .kind = SHAPE_U32, .need = SHAPE_FLAGGED, .most = UINT32_MAX,
     .beside = offsetof(struct job_setting, set_control_every),
     .about = "each so many recurrences run the default at the highest limit; 0: none"},
    {.name = "pin",
     .kind = SHAPE_STRUCT,
     .need = SHAPE_FLAGGED,
     .beside = offsetof(struct job_setting, set_pin),
     .shape = &shape_pin,
     .about = "a choice to hold"},
    {AT(job_setting, policy), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = SHORT,
     .about = "that chooses batch sizes from now on, as if it always had; 'auto': the best one known"},
    {AT(job_setting, policy_sha256), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = SHORT,
     .about = "on record: of the file of a plug-in that is the policy"},
    {AT(job_setting, recurrences_left), .kind = SHAPE_U32, .need = SHAPE_FLAGGED, .most = UINT32_MAX,
     .beside = offsetof(struct job_setting, set_recurrences_left),
     .about = "how many recurrences will begin from now on; 0: not known any more"},
    {AT(job_setting, owners), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = JOB_OWNERS_TEXT_MAX - 1,
     .about = "of the job: uid:N, gid:N, token:NAME or anonymous, with commas; or 'operator' alone"},
};
const struct shape shape_setting = {
    SHAPE(job_setting, "Setting", "What a user changes of a job; the rest stays", setting_rows)};

/* ---- a proposal ---- */

static const struct shape_field hardware_rows[] = {
    TEXT(job_hardware, gpu_model, SHORT, "as its driver names it"),
    WHOLE(job_hardware, gpu_count, 1, UINT32_MAX, "of all ranks"),
    OR_LONG(job_hardware, gpu_memory_bytes, "of the smallest; 0: unknown"),
    WHOLE(job_hardware, world_size, 1, UINT32_MAX, "ranks; batch sizes it does not divide are left out"),
    {AT(job_hardware, limits_w), .kind = SHAPE_NUMBERS, .need = SHAPE_OPTIONAL,
     .beside = offsetof(struct job_hardware, limit_count), .range = SHAPE_ABOVE_0, .longest = JOB_LIMITS_MAX,
     .about = "power limits that one GPU takes, ascending; none: they cannot be set"},
    OR_NUMBER(job_hardware, max_power_w, SHAPE_FROM_0, SHAPE_NOT_NULL, "of all GPUs; 0: limits_w says"),
};
const struct shape shape_hardware = {SHAPE(job_hardware, "Hardware", "What a run trains on", hardware_rows)};

static const struct shape_field origin_rows[] = {
    OR_TEXT(job_origin, user, SHORT, "who submitted it"),
    OR_TEXT(job_origin, account, SHORT, "that is charged"),
    OR_TEXT(job_origin, host, SHORT, "where it runs"),
    OR_TEXT(job_origin, gpus, JOB_GPUS_MAX - 1, "UUIDs of those that its energy is of, with commas"),
};
const struct shape shape_origin = {SHAPE(job_origin, "Origin", "Whose a run is", origin_rows)};

static const struct shape_field question_rows[] = {
    OR_TEXT(job_question, request, SHORT, "unique to this request: repeated, it gets the same answer"),
    OR_TEXT(job_question, run, SHORT, "a run that is requeued keeps its own"),
    OR_TEXT(job_question, submission, SHORT, "common to the tries of a recurrence; else run, or its own"),
    OR_WHOLE(job_question, tries, UINT32_MAX,
             "allowed in this recurrence; 1: nobody tries again; 0: somebody always does"),
    SPARING_WHOLE(job_question, recurrences_left, UINT32_MAX, "expected, with this one; 0: not told"),
    {AT(job_question, finish_by_us), .kind = SHAPE_I64, .need = SHAPE_OPTIONAL, .most = INT64_MAX,
     .about = "when a model has to be there, in microseconds since 1970; 0: any time"},
    OR_NUMBER(job_question, heartbeat_s, SHAPE_FROM_0, SHAPE_NOT_NULL,
              "how often it beats until the first epoch is reported; 0: never"),
    INSIDE(job_question, hardware, &shape_hardware, "what it trains on"),
    OR_INSIDE(job_question, origin, &shape_origin, "whose it is"),
    OR_WHOLE(job_question, ran_batch_size, UINT32_MAX,
             "what was run already, while the log was out of reach; 0: nothing was"),
    OR_NUMBER(job_question, ran_limit_w, SHAPE_FROM_0, SHAPE_UNKNOWN, "its power limit; null: not known"),
};
const struct shape shape_question = {
    SHAPE(job_question, "Question", "What is to be known to say what to run", question_rows)};

static const struct shape_field point_rows[] = {
    NUMBER(fly_power_point, limit_w, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "of one GPU"),
    NUMBER(fly_power_point, power_w, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "drawn under it, all GPUs together"),
    NUMBER(fly_power_point, time_s, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "of the unit of work"),
};
const struct shape shape_point = {
    SHAPE(fly_power_point, "PowerPoint", "What one power limit does to a unit of work", point_rows)};

static const struct shape_field other_rows[] = {
    WHOLE(job_other_point, batch_size, 1, UINT32_MAX, "of the profile"),
    NUMBER(job_other_point, limit_w, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "of one GPU"),
    NUMBER(job_other_point, power_w, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "of all GPUs"),
    NUMBER(job_other_point, time_s, SHAPE_ABOVE_0, SHAPE_NOT_NULL, "of the unit of work"),
};
static const struct shape shape_other = {
    SHAPE(job_other_point, "OtherPoint", "A power limit in the profile of another batch size", other_rows)};

static const struct shape_field proposal_rows[] = {
    LONG(job_proposal, trial, 1, "its number within the job"),
    WHOLE(job_proposal, attempt, 1, UINT32_MAX, "this process's, of the trial"),
    LONG(job_proposal, recurrence, 0, "from 0"),
    WHOLE(job_proposal, try_number, 0, UINT32_MAX, "within the recurrence, from 0"),
    TRUTH(job_proposal, last_try, "the best known choice, without a cap"),
    WHOLE(job_proposal, batch_size, 1, UINT32_MAX, "global"),
    WHOLE(job_proposal, local_batch_size, 1, UINT32_MAX, "of a rank"),
    NUMBER(job_proposal, limit_w, SHAPE_ABOVE_0, SHAPE_UNKNOWN,
           "of one GPU; null: leave it, or not known before the profile"),
    TRUTH(job_proposal, wants_profile, "measure it in the first epoch, and tell"),
    TRUTH(job_proposal, stops_at_target, "the job does not train on"),
    WHOLE(job_proposal, epochs, 0, UINT32_MAX, "it may run at most, as far as is known now"),
    WHOLE(job_proposal, epochs_done, 0, UINT32_MAX, "reported by earlier attempts"),
    NUMBER(job_proposal, energy_j, SHAPE_ANY, SHAPE_UNKNOWN, "of earlier attempts"),
    NUMBER(job_proposal, time_s, SHAPE_ANY, SHAPE_UNKNOWN, "of earlier attempts"),
    TRUTH(job_proposal, repeated, "this request was answered before"),
    WORD(job_proposal, reason, job_reason_words, REASON_COUNT, "why it was chosen"),
    CHARS(job_proposal, why, "the same in a sentence"),
    {AT(job_proposal, known), .kind = SHAPE_STRUCTS_HERE,
     .beside = offsetof(struct job_proposal, known_count), .longest = JOB_KNOWN_MAX, .shape = &shape_point,
     .about = "with wants_profile: points that need not be measured again; else the whole profile"},
    OR_NUMBER(job_proposal, known_units_per_epoch, SHAPE_ABOVE_0, SHAPE_UNKNOWN,
              "of the known points' work; with wants_profile, steps as other batch sizes showed; null: not "
              "known"),
    {AT(job_proposal, others), .kind = SHAPE_STRUCTS_HERE, .need = SHAPE_OPTIONAL,
     .beside = offsetof(struct job_proposal, other_count), .longest = JOB_OTHERS_MAX, .shape = &shape_other,
     .about = "with wants_profile: profiles of other batch sizes, which show what need not be measured"},
    OR_NUMBER(job_proposal, expected_epochs, SHAPE_ABOVE_0, SHAPE_UNKNOWN,
              "to the target, the mean of this batch size so far; null: none has reached it"),
    OR_TRUTH(job_proposal, untried, "the batch size never trained on this hardware, and another did"),
};
const struct shape shape_proposal = {SHAPE(job_proposal, "Proposal", "What to run", proposal_rows)};

/* ---- what happened ---- */

static const struct shape_field profile_rows[] = {
    {AT(job_profile, points), .kind = SHAPE_STRUCTS, .beside = offsetof(struct job_profile, point_count),
     .longest = JOB_LIMITS_MAX, .shape = &shape_point, .about = "at least one"},
    OR_NUMBER(job_profile, units_per_epoch, SHAPE_FROM_0, SHAPE_NOT_NULL,
              "of work in an epoch; 1: the points are of an epoch; 0: not known"),
    OR_TRUTH(job_profile, partial, "some limits only, to go on with later; none is chosen"),
};
const struct shape shape_profile = {
    SHAPE(job_profile, "PowerProfile", "A power profile that a trial measured", profile_rows)};

static const struct shape_field choice_rows[] = {
    NUMBER(job_choice, limit_w, SHAPE_ANY, SHAPE_UNKNOWN, "of one GPU, the best of the profile"),
    WHOLE(job_choice, epochs, 0, UINT32_MAX, "the trial may run at most; 0: end it as refused"),
    TRUTH(job_choice, repeated, "the profile was known; the first stays"),
};
const struct shape shape_choice = {SHAPE(job_choice, "Choice", "What follows from a profile", choice_rows)};

static const struct shape_field beat_rows[] = {
    WHOLE(job_beat, attempt, 1, UINT32_MAX, "as proposed"),
    OR_NUMBER(job_beat, energy_j, SHAPE_FROM_0, SHAPE_UNKNOWN, "so far in this attempt"),
    OR_NUMBER(job_beat, time_s, SHAPE_FROM_0, SHAPE_UNKNOWN, "so far in this attempt"),
};
const struct shape shape_beat = {SHAPE(job_beat, "Heartbeat", "A sign of life", beat_rows)};

static const struct shape_field epoch_rows[] = {
    WHOLE(job_epoch, attempt, 1, UINT32_MAX, "as proposed"),
    WHOLE(job_epoch, epoch, 1, JOB_EPOCHS_MAX, "that has ended; ascending within the attempt"),
    OR_NUMBER(job_epoch, metric, SHAPE_ANY, SHAPE_UNKNOWN, "null: none, or not a number"),
    NUMBER(job_epoch, energy_j, SHAPE_FROM_0, SHAPE_UNKNOWN,
           "of all GPUs since the attempt began; null: not known"),
    NUMBER(job_epoch, time_s, SHAPE_FROM_0, SHAPE_NOT_NULL, "since the attempt began"),
    SPARING_NUMBER(job_epoch, reference_per_kwh,
                   "the mean of a kWh's grams or money over the time before; not above 0: not known"),
    SPARING_TRUTH(job_epoch, afterwards, "told later on: it is not stopped for what this epoch took"),
    SPARING_WHOLE(job_epoch, steps, UINT32_MAX, "since the report before; 0: not known, or not all of them"),
    SPARING_NUMBER(job_epoch, startup_energy_j, "of these joules, before the first step; 0: not known"),
    SPARING_NUMBER(job_epoch, startup_time_s, "of these seconds, before the first step; 0: not known"),
};
const struct shape shape_epoch = {SHAPE(job_epoch, "Epoch", "An epoch's end", epoch_rows)};

static const struct shape_field answered_rows[] = {
    WORD(job_answered, answer, job_answer_words, JOB_ANSWERS, "what to do now"),
    WORD(job_answered, stop, job_stop_words, JOB_STOPS, "why the trial has to stop"),
    TRUTH(job_answered, repeated, "this report was known"),
    TRUTH(job_answered, late, "the trial had expired; the report counts all the same"),
    TRUTH(job_answered, ended, "the trial has, by this report or before"),
    TRUTH(job_answered, ends, "by this very report, the first time it was made"),
    WORD(job_answered, outcome, job_outcome_words, TRIAL_OUTCOME_COUNT, "of a trial that has ended"),
    WHOLE(job_answered, epochs, 0, UINT32_MAX, "the trial may run at most, as far as is known now"),
    NUMBER(job_answered, energy_j, SHAPE_ANY, SHAPE_UNKNOWN, "of all attempts"),
    NUMBER(job_answered, time_s, SHAPE_ANY, SHAPE_UNKNOWN, "of all attempts"),
    CHARS(job_answered, gpu_model, "that the trial runs on"),
};
const struct shape shape_answered = {
    SHAPE(job_answered, "Answered", "What follows from an epoch's report", answered_rows)};

static const struct shape_field end_rows[] = {
    WHOLE(job_end, attempt, 1, UINT32_MAX, "as proposed"),
    WORD(job_end, outcome, job_outcome_words, TRIAL_EXPIRED, "of the trial"), /* all but expiry */
    OR_NUMBER(job_end, energy_j, SHAPE_FROM_0, SHAPE_UNKNOWN,
              "of the whole attempt; null: as last reported, and not known where nothing was"),
    OR_NUMBER(job_end, time_s, SHAPE_FROM_0, SHAPE_UNKNOWN, "of the whole attempt; null: as last reported"),
    {AT(job_end, text), .kind = SHAPE_TEXT, .need = SHAPE_OPTIONAL, .longest = JOB_WHY_MAX, .free_text = true,
     .about = "a word on the cause"},
    SPARING_NUMBER(job_end, reference_per_kwh, "as of an epoch, frozen with the end; null: as last reported"),
    SPARING_NUMBER(job_end, startup_energy_j, "as of an epoch; null: as last reported"),
    SPARING_NUMBER(job_end, startup_time_s, "as of an epoch; null: as last reported"),
    SPARING_TRUTH(job_end, nothing_learnt, "crashed without an epoch: it counts as if it had not been"),
};
const struct shape shape_end = {SHAPE(job_end, "End", "A trial's end", end_rows)};

static const struct shape_field ended_rows[] = {
    WORD(job_ended, outcome, job_outcome_words, TRIAL_OUTCOME_COUNT, "that stands"),
    TRUTH(job_ended, repeated, "the end was known"),
    TRUTH(job_ended, ends, "by this very request, the first time it was made"),
    NUMBER(job_ended, energy_j, SHAPE_ANY, SHAPE_UNKNOWN, "of the whole run, all attempts"),
    NUMBER(job_ended, time_s, SHAPE_ANY, SHAPE_UNKNOWN, "of the whole run, all attempts"),
    NUMBER(job_ended, energy_after_j, SHAPE_ANY, SHAPE_UNKNOWN,
           "of it, what this request adds to an end that was on record"),
    CHARS(job_ended, gpu_model, "that the trial ran on"),
};
const struct shape shape_ended = {SHAPE(job_ended, "Ended", "How a trial's end stands", ended_rows)};

static const struct shape_field expired_rows[] = {
    LONG(job_expired, expired, 0, "trials that were silent for too long, and are on record as that now"),
};
const struct shape shape_expired = {
    SHAPE(job_expired, "Expired", "How many trials have expired", expired_rows)};

/* ---- what can be asked ---- */

static const struct shape_field summary_rows[] = {
    TEXT(job_summary, name, STORE_JOB_MAX, "of the job"),
    {AT(job_summary, trouble), .kind = SHAPE_TEXT, .null = SHAPE_OR_NULL, .longest = TROUBLE_MAX,
     .free_text = true, .about = "why its log cannot be understood; null where it can"},
    TEXT(job_summary, policy, SHORT, "that chooses batch sizes"),
    LONG(job_summary, trials, 0, "so far"),
    LONG(job_summary, recurrences, 0, "so far"),
    LONG(job_summary, running, 0, "trials that run"),
    LONG(job_summary, events, 0, "in its log"),
    DATE(job_summary, made_us, "of its first event, in microseconds since 1970"),
    DATE(job_summary, changed_us, "of its last event"),
    OR_TEXT(job_summary, owners, JOB_OWNERS_TEXT_MAX - 1, "who may change it, with commas; or 'operator'"),
};
const struct shape shape_summary = {SHAPE(job_summary, "Summary", "A job in a list", summary_rows)};

static const struct shape_field list_rows[] = {
    {AT(job_list, jobs), .kind = SHAPE_STRUCTS, .beside = offsetof(struct job_list, count),
     .longest = JOBS_MAX, .shape = &shape_summary, .about = "in the order of their names' bytes"},
};
const struct shape shape_list = {SHAPE(job_list, "Jobs", "All jobs", list_rows)};

static const struct shape_field guard_rows[] = {
    {AT(job_guard, text), .kind = SHAPE_TEXT, .longest = JOB_WHY_MAX, .free_text = true,
     .about = "why the default runs next, or why nothing is held against it; or empty"},
    LONG(job_guard, anew_trial, 0, "with which learning last began anew; 0: never"),
    DATE(job_guard, anew_us, "when that was, in microseconds since 1970"),
    LONG(job_guard, anew_times, 0, "how often it did"),
};
static const struct shape shape_guard = {
    SHAPE(job_guard, "Guard", "What holds a search on one kind of hardware back", guard_rows)};

static const struct shape_field shown_rows[] = {
    INSIDE(job_shown, definition, &shape_definition, "as registered"),
    INSIDE(job_shown, objective, &shape_objective, "that holds now"),
    {AT(job_shown, policy), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = SHORT,
     .about = "that holds now"},
    WHOLE(job_shown, control_every, 0, UINT32_MAX, "that holds now"),
    WHOLE(job_shown, pin_batch_size, 0, UINT32_MAX, "0: none"),
    NUMBER(job_shown, pin_limit_w, SHAPE_ANY, SHAPE_UNKNOWN, "null: the profile's best"),
    LONG(job_shown, trials, 0, "so far"),
    LONG(job_shown, recurrences, 0, "so far"),
    LONG(job_shown, running, 0, "trials that run"),
    LONG(job_shown, events, 0, "in its log"),
    OR_LONG(job_shown, recurrences_left, "that were announced and have not begun; 0: not known"),
    {AT(job_shown, revision), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = SHORT,
     .about = "of script, data and hyper-parameters, that holds now"},
    {AT(job_shown, past), .kind = SHAPE_TEXT, .need = SHAPE_SPARING, .longest = JOB_WHY_MAX,
     .free_text = true, .about = "what it learns from beside its own trials"},
    OR_TEXT(job_shown, owners, JOB_OWNERS_TEXT_MAX - 1, "who may change it, with commas; or 'operator'"),
    {AT(job_shown, guards), .kind = SHAPE_STRUCTS, .need = SHAPE_OPTIONAL,
     .beside = offsetof(struct job_shown, guard_count), .longest = JOB_HARDWARE_MAX, .shape = &shape_guard,
     .about = "of each kind of hardware, in the order of first use"},
};
const struct shape shape_shown = {SHAPE(job_shown, "Job", "A job as it stands", shown_rows)};

static const struct shape_field event_rows[] = {
    LONG(store_event, number, 1, "from 1, without gaps within the job"),
    DATE(store_event, time_us, "in microseconds since 1970, by the store's clock"),
    TEXT(store_event, kind, STORE_KIND_MAX,
         "defined, set, proposed, attempt, profiled, heartbeat, epoch, ended, closed, profiled_part, "
         "brought"),
    LONG(store_event, trial, 0, "0: of none"),
    TEXT(store_event, key, STORE_KEY_MAX, "unique within the job; or empty"),
    {AT(store_event, body), .kind = SHAPE_OBJECT, .longest = STORE_BODY_MAX, .about = "what was observed"},
};
const struct shape shape_event = {SHAPE(store_event, "Event", "A line of a job's log", event_rows)};

static const struct shape_field failure_error_rows[] = {
    TEXT(job_failure_error, code, CODE_MAX, "a word for programs"),
    {AT(job_failure_error, message), .kind = SHAPE_TEXT, .longest = FLY_ERROR_TEXT_MAX, .free_text = true,
     .about = "a sentence for people: what failed, and what to do"},
};
static const struct shape shape_failure_error = {
    SHAPE(job_failure_error, "Error", "What went wrong", failure_error_rows)};
static const struct shape_field failure_rows[] = {
    INSIDE(job_failure, error, &shape_failure_error, "what went wrong"),
};
const struct shape shape_failure = {SHAPE(job_failure, "Failure", "A request that failed", failure_rows)};
