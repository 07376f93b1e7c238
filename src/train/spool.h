/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SPOOL_H
#define FLYBALL_TRAIN_SPOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_search.h>

#include "base/buffer.h"
#include "job/job.h"

/*
 * Reports that could not be delivered to a job's log, kept on this machine until they
 * can: a file for each session, in $XDG_STATE_HOME/flyball/spool, else
 * ~/.local/state/flyball/spool. The first line says for which log, each further one is a
 * call to it, in JSON; what spool_add returned 0 for is on disk.
 *
 * The file's session holds a lock on it. Once the session has ended, whoever reaches the
 * same log next delivers it and removes it (spool_deliver_left); a log that knows a
 * call already says so, so a second delivery does no harm. A file with a line that the log
 * refuses for good is renamed NAME.refused when all lines have been tried, for a person.
 *
 * One thread at a time.
 */
enum { SPOOL_PATH_MAX = 512, SPOOL_FILE_MAX = 16 << 20, SPOOL_LINE_MAX = 1 << 16 };

enum spool_kind { SPOOL_PROFILE, SPOOL_REPORT, SPOOL_END, SPOOL_RUN };

/* A training that the log was never asked for: reports and an end of trial 0 behind it are of that. */
struct spool_run {
    struct job_definition definition;
    struct job_question question; /* with ran_batch_size */
};

struct spool_entry {
    enum spool_kind kind;
    union {
        struct job_profile profile;
        struct job_epoch epoch;
        struct job_end end;
        struct spool_run run;
    };
};

/* What a call was answered, by its kind. */
union spool_answer {
    struct job_choice choice;
    struct job_answered answered;
    struct job_ended ended;
    struct job_proposal proposal;
};

struct spool {
    char directory[SPOOL_PATH_MAX];
    char store[SPOOL_PATH_MAX]; /* the log's address */
    char path[SPOOL_PATH_MAX + 64];
    int file;       /* -1: none yet */
    uint64_t lines; /* not delivered yet; that of a run does not count */
};

/* `directory` NULL: the user's own. Makes nothing yet; a `directory` that cannot be told fails at spool_add.
 */
void spool_init(struct spool *spool, const char *directory, const char *store);

/* Lets the file go; an empty one is removed. Harmless on a zeroed struct and after a fork. */
void spool_deinit(struct spool *spool);

/* On disk when it returns 0. FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND, FLY_ENOMEM. */
int spool_add(struct spool *spool, const struct spool_entry *entry, struct fly_error *out_error);

/* Makes one call. */
int spool_call(const struct jobs *jobs, const struct spool_entry *entry, union spool_answer *out_answer,
               struct fly_error *out_error);

/* Whether a log that answered so may answer otherwise later: it could not be reached, was busy, or broken. */
bool spool_passing(int code);

/* Delivers the own lines in their order. The code of the first that could not be delivered for now. */
int spool_deliver(struct spool *spool, const struct jobs *jobs, struct fly_error *out_error);

/*
 * The same for what ended sessions left for this log; how many files are done. After
 * `most_s` no further call is made, and what is left stays for the next time; INFINITY: all.
 */
unsigned spool_deliver_left(const struct spool *spool, const struct jobs *jobs, double most_s);

/* How many lines ended sessions left for this log; that of a run does not count. */
uint64_t spool_count_left(const struct spool *spool);

/* One line, without its end: FLY_EDATA for anything else than a call. Texts and points live until
 * spool_parsed_free. */
struct spool_parsed {
    struct spool_entry entry;
    json_t *document;
    struct arena arena; /* of a definition */
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX];
};
int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed,
                struct fly_error *out_error);
void spool_parsed_free(struct spool_parsed *parsed);

/* Appends the line with its end. */
int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error);

#endif
