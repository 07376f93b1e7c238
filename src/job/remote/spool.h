/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_SPOOL_H
#define FLYBALL_JOB_REMOTE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_search.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "job/core/job_backend.h"

/*
 * Reports that could not be delivered to a job's log, kept until they can: a file for each
 * session, in the directory that FLYBALL_SPOOL names, else in $XDG_STATE_HOME/flyball/spool, else in
 * ~/.local/state/flyball/spool. The first line says for which log, each further one is a
 * call to it, in JSON; what spool_add_lines returned 0 for is on disk. FLYBALL_SPOOL may be a
 * place that several machines share: then whichever of them reaches the log next delivers.
 *
 * The file's session holds a lock on it. Once the session has ended, whoever reaches the
 * same log next delivers it and removes it (spool_deliver_left); a log that knows a
 * call already says so, so a second delivery does no harm. A file with a line that the log
 * refuses for good is renamed NAME.refused when all lines have been tried, for a person. Files of
 * other users are passed over.
 *
 * One thread at a time. Every call may be held up by the disk for as long as that likes.
 */
enum { SPOOL_PATH_MAX = 512, SPOOL_NAME_MAX = 160, SPOOL_FILE_MAX = 16 << 20, SPOOL_LINE_MAX = 1 << 16 };

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
    char directory[SPOOL_PATH_MAX]; /* "": there is none */
    char store[SPOOL_PATH_MAX];     /* the log's address */
    char path[SPOOL_PATH_MAX + SPOOL_NAME_MAX];
    int file; /* -1: none yet */
};

/* `directory` NULL: the user's own. Makes nothing yet; a `directory` that cannot be told fails at
 * spool_add_lines. */
void spool_init(struct spool *spool, const char *directory, const char *store);

/* Appends lines as spool_write makes them; on disk when it returns 0. FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND,
 * FLY_ENOMEM. */
int spool_add_lines(struct spool *spool, const char *lines, size_t length, struct fly_error *out_error);

/* Whether the file is near the size beyond which nobody would read it. */
bool spool_is_full(const struct spool *spool);

/* What becomes of the file. */
enum spool_rest {
    SPOOL_LEFT,      /* it is for whoever comes next */
    SPOOL_DELIVERED, /* it goes */
    SPOOL_REFUSED,   /* it is put aside */
};

/* Lets the file go. Harmless where there is none. */
void spool_end(struct spool *spool, enum spool_rest rest);

/* What was run unasked has its trial now: names it in a report or an end that names none. */
void spool_give_trial(struct spool_entry *entry, const struct job_proposal *run);

/* Makes one call. */
int spool_call(const struct jobs *jobs, const struct spool_entry *entry, union spool_answer *out_answer,
               struct fly_error *out_error);

/* Whether a log that answered so may answer otherwise later: it could not be reached, was busy, or broken. */
bool spool_passing(int code);

/*
 * Delivers what ended sessions left for this log. After `most_s` no further call is made (INFINITY: all), nor
 * after one that the log did not take for now: what is left stays for the next time. 0 when all is
 * delivered, FLY_EEXHAUSTED when the time was over, else the log's code.
 */
int spool_deliver_left(const struct spool *spool, const struct jobs *jobs, double most_s);

/* Whether there may be anything to deliver. */
bool spool_any_left(const struct spool *spool);

/* How many lines ended sessions left for this log; that of a run does not count. */
uint64_t spool_count_left(const struct spool *spool);

/* One line, without its end: FLY_EDATA for anything else than a call. Texts and points live until
 * spool_parsed_free. */
struct spool_parsed {
    struct spool_entry entry;
    struct arena arena; /* of texts and lists */
};
int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed,
                struct fly_error *out_error);
void spool_parsed_free(struct spool_parsed *parsed);

/* Appends the line with its end. */
int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error);

#endif
