/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_JOB_RECORD_H
#define FLYBALL_JOB_CORE_JOB_RECORD_H

#include <jansson.h>

#include "job/core/job.h"
#include "policy/past.h"
#include "shapes/shape.h"
#include "store/store.h"

/*
 * The bodies of a job's events, as structs and as JSON. What is written here will be read for ever: members
 * may be added, but never changed. Unknown numbers are null.
 */
enum record_kind {
    RECORD_DEFINED,
    RECORD_SET,
    RECORD_PROPOSED,
    RECORD_ATTEMPT,
    RECORD_PROFILED,
    RECORD_HEARTBEAT,
    RECORD_EPOCH,
    RECORD_ENDED,
    RECORD_CLOSED,
    RECORD_PROFILED_PART,
    RECORD_BROUGHT,
    RECORD_KINDS
};

/* A trial as it was decided. Texts are borrowed. */
struct proposed_record {
    uint64_t recurrence;
    uint32_t try_number;
    uint32_t tries; /* allowed; 0: no limit */
    const char *submission;
    const char *run;
    size_t line;
    bool new_line;                /* the first trial on its hardware, which is then written with it */
    struct job_hardware hardware; /* with new_line */
    uint32_t batch_size;
    enum limit_rule limit_rule;
    double limit_w; /* NAN: not known yet, or not to be set */
    bool wants_profile;
    enum reason reason;
    const char *policy;
    uint32_t policy_version;
    bool counted;
    bool capped;
    bool last_try;
    uint32_t epochs; /* 0: not known yet */
    int64_t stop_by_us;
    int64_t finish_by_us; /* that was asked for; 0: none */
    double heartbeat_s;
    struct numpy_random random_after; /* state of the published generator, if `random` */
    bool random;
    const char *why;
    json_t *numbers; /* an object, or NULL */
    bool guarded;    /* a guard of searches says what runs */
};

struct attempt_record {
    uint32_t attempt;
    const char *user, *account, *host;
    const char *gpus; /* UUIDs, separated by commas; "": unknown, as in older logs */
};

struct profiled_record {
    struct fly_power_point points[JOB_LIMITS_MAX];
    size_t count;
    double units_per_epoch;
    double limit_w;  /* chosen */
    uint32_t epochs; /* at most JOB_EPOCHS_MAX; 0: not known */
    bool refused;    /* not one epoch fits in the bound */
    bool folded;     /* it was the first of the batch size, and counts */
};

/* Names the line and batch size itself, since the trial may have ended. */
struct profiled_part_record {
    size_t line;
    uint32_t batch_size;
    struct fly_power_point points[JOB_KNOWN_MAX];
    size_t count;
};

/* What was observed elsewhere of one batch size, as in policy/past.h. */
struct brought_batch {
    uint32_t batch_size;
    uint64_t reached;
    double log_epochs_mean, log_epochs_squares;
    uint64_t stopped;
    double stopped_epochs;
    uint64_t failed;
    double log_epoch_cost; /* NAN: not known */
};

/*
 * What a job brought from elsewhere, by value. With PAST_HARDWARE it is for one line, which may be a new one;
 * else for all lines, those to come included. With PAST_REVISION learning begins anew before.
 */
struct brought_record {
    enum past_kind kind;
    const char *source;   /* the job's name; with PAST_HARDWARE the GPU; with PAST_REVISION the one before */
    const char *revision; /* with PAST_REVISION: that begins; else "" */
    bool of_line;         /* with PAST_HARDWARE: the next two say which */
    size_t line;
    struct job_hardware hardware;
    struct brought_batch batches[JOB_BATCHES_MAX];
    size_t count;
};

struct heartbeat_record {
    uint32_t attempt;
    double energy_j, time_s;
};

struct epoch_record {
    uint32_t attempt;
    uint32_t epoch;
    double metric, energy_j, time_s;
    /* The answer: */
    enum job_answer answer;
    enum job_stop stop;
    uint32_t epochs;
    bool late;
    double total_energy_j, total_time_s;
    double reference_per_kwh; /* NAN: not known, as in older logs */
    bool afterwards;          /* as in struct job_epoch */
    uint32_t steps;           /* likewise */
    bool startup_told;        /* false in older logs, in which start-up counts as part of the epochs */
    double startup_energy_j;  /* of the attempt; NAN: not known */
    double startup_time_s;
};

struct ended_record {
    enum trial_outcome outcome;
    enum job_stop stop; /* that caused it */
    uint32_t attempt;
    uint32_t epochs;
    double metric;
    double energy_j, time_s; /* of all attempts */
    const char *text;
    double reference_per_kwh; /* frozen; NAN: not known, as in older logs */
    double startup_energy_j;  /* of all attempts; NAN: not known, as in older logs */
    double startup_time_s;
    bool nothing_learnt; /* as in struct job_end */
};

struct closed_record {
    uint32_t attempt;
    double energy_j, time_s; /* of all attempts, the whole run */
    const char *text;
    double reference_per_kwh; /* if the end had none; NAN */
};

/* A reference, or the energy or time of a start-up, if it is known, that is above 0; else NAN. */
double record_known(double value);

/* The body of any kind but RECORD_DEFINED. NULL when memory is exhausted or a text is not UTF-8. */
json_t *record_write(enum record_kind kind, const void *record);

/*
 * The job's first owners, a member of the event that defines it (job_owner.h). Writing takes `definition` and
 * returns it with the member. Reading gives "" where there is none.
 */
json_t *record_write_owners(json_t *definition, const char *owners);
int record_write_user(json_t *attempt, const char *user, struct fly_error *out_error); /* in its place */
int record_read_owners(json_t *body, const char **out_owners, struct fly_error *out_error);

enum { RECORD_ARENA_MAX = 1 << 14 /* bytes: at least what one record needs of an arena */ };
_Static_assert(RECORD_ARENA_MAX > JOB_LIMITS_MAX * sizeof(double), "as it says");

/* Parses an event's body; stores a new reference. FLY_EDATA names the event. */
int record_parse(const struct store_event *event, json_t **out_body, struct fly_error *out_error);

/*
 * Reads a body of any kind but RECORD_DEFINED into its struct. FLY_EDATA names the member that does not fit.
 * Texts and `numbers` are borrowed from the body; a list of limits goes into the arena (of a proposal, and of
 * what was brought; else NULL).
 */
int record_read(enum record_kind kind, json_t *body, struct arena *arena, void *out_record,
                struct fly_error *out_error);

/* An event of a log that is read. */
struct log_event {
    const struct store_event *event;
    enum record_kind kind;
    json_t *body; /* borrowed */
    struct fly_error *error;
};

/*
 * What a fold does with each kind of event: `fold` is its own state, the record lasts for the call. They
 * return 0, what ends the reading, or a negative code. A kind without a function is passed over unread.
 */
struct log_visitor {
    bool knows_all; /* a kind that is not known here is FLY_EUNSUPPORTED */
    int (*on_defined)(void *fold, const struct log_event *at);
    int (*on_set)(void *fold, const struct log_event *at, const struct job_setting *setting);
    int (*on_proposed)(void *fold, const struct log_event *at, const struct proposed_record *proposed);
    int (*on_attempt)(void *fold, const struct log_event *at, const struct attempt_record *attempt);
    int (*on_profiled)(void *fold, const struct log_event *at, const struct profiled_record *profiled);
    int (*on_profiled_part)(void *fold, const struct log_event *at, const struct profiled_part_record *part);
    int (*on_heartbeat)(void *fold, const struct log_event *at, const struct heartbeat_record *heartbeat);
    int (*on_epoch)(void *fold, const struct log_event *at, const struct epoch_record *epoch);
    int (*on_ended)(void *fold, const struct log_event *at, const struct ended_record *ended);
    int (*on_closed)(void *fold, const struct log_event *at, const struct closed_record *closed);
    int (*on_brought)(void *fold, const struct log_event *at, const struct brought_record *brought);
};

/*
 * Reads an event, and hands it to the visitor. `body` as it was written; NULL: it is parsed from the event.
 * FLY_EDATA names the event and the member that does not fit.
 */
int log_tell(const struct log_visitor *to, void *fold, const struct store_event *event, json_t *body,
             struct fly_error *out_error);

/* A line of an exported log, parsed. */
struct log_line {
    struct store_event event; /* texts belong to the JSON; without a body */
    json_t *body;             /* an object that belongs to the JSON */
    json_t *json;             /* owned */
};

enum { LOG_LINE_MAX = STORE_BODY_MAX + (64 << 10) /* bytes: a body, and the rest of the line */ };

/*
 * Reads a line that must be event `number` of its log. The error text continues "line 7": FLY_EUSAGE with "is
 * no JSON object (column 12: ...)", FLY_EDATA with "member 'kind': expected a text".
 */
int log_line_read(const char *line, size_t length, uint64_t number, struct log_line *out_line,
                  struct fly_error *out_error);
void log_line_deinit(struct log_line *line);

#endif
