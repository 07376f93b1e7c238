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
 * Keeps reports that could not be delivered to a job's log until they can be. Each session has a file, in the
 * directory that FLYBALL_SPOOL names, else in $XDG_STATE_HOME/flyball/spool, else in
 * ~/.local/state/flyball/spool. The first line names the log, each further line is a call to it, in JSON.
 * FLYBALL_SPOOL may be a directory that several machines share: then the first of them that reaches the log
 * delivers.
 *
 * When spool_add_lines returns 0, the system has the lines: the end of this program, by a signal too, does
 * not lose them. A crash of the machine does, until spool_sync has returned 0. The two are apart because
 * writing takes microseconds, and a sync as long as the disk likes: seconds where a database uses it too.
 *
 * The file's session holds a lock on it. After the session has ended, the next process that reaches the same
 * log delivers the file and removes it (spool_deliver_left). A log recognizes a call that it has seen, so a
 * second delivery does no harm. When the log refuses a line for good, the file is renamed to NAME.refused
 * after all lines were tried, for a person to look at. Files of other users are skipped.
 *
 * One thread at a time, except for spool_sync. The disk may hold up every call for any time.
 */
enum { SPOOL_PATH_MAX = 512, SPOOL_NAME_MAX = 160, SPOOL_FILE_MAX = 16 << 20, SPOOL_LINE_MAX = 1 << 16 };

enum spool_kind { SPOOL_PROFILE, SPOOL_REPORT, SPOOL_END, SPOOL_RUN };

/* A training about which the log was never asked: reports and an end of trial 0 after it belong to it. */
struct spool_run {
    struct fly_job_definition definition;
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

/* The answer to a call, by its kind. */
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

/*
 * Initializes a spool. `directory` NULL: the user's own. Makes no file yet; when the directory cannot be
 * determined, spool_add_lines fails.
 */
void spool_init(struct spool *spool, const char *directory, const char *store);

/*
 * Appends lines made by spool_write, with one write; the first ones begin the file. Returns FLY_EWRITE,
 * FLY_EPERM, FLY_ENOTFOUND, FLY_ENOMEM; then none of the lines is in the file.
 */
int spool_add_lines(struct spool *spool, const char *lines, size_t length, struct fly_error *out_error);

/*
 * Waits until the lines that were added before are on the disk. Another thread may call it with a copy of
 * the spool, while lines are added or the file is removed: returns 0 also when there is no file. Returns
 * FLY_EWRITE, FLY_EPERM; then the lines may be lost when the machine crashes, also after a later call that
 * returns 0: write them to a new file.
 */
int spool_sync(const struct spool *spool, struct fly_error *out_error);

/* Whether the file is near the size above which it would not be read. */
bool spool_is_full(const struct spool *spool);

/* What to do with the file. */
enum spool_rest {
    SPOOL_LEFT,      /* leave it for the next process */
    SPOOL_DELIVERED, /* remove it */
    SPOOL_REFUSED,   /* put it aside */
};

/* Lets go of the file. Harmless when there is none. */
void spool_end(struct spool *spool, enum spool_rest rest);

/* After a run that was not asked about got its trial: sets the trial in a report or an end that has none. */
void spool_give_trial(struct spool_entry *entry, const struct job_proposal *run);

/* Makes one call. */
int spool_call(const struct jobs *jobs, const struct spool_entry *entry, union spool_answer *out_answer,
               struct fly_error *out_error);

/*
 * Whether a log that answered with this code may answer otherwise later: it could not be reached, was busy,
 * or was broken.
 */
bool spool_passing(int code);

/*
 * Delivers what ended sessions left for this log. It makes no further call after `most_s` (INFINITY: no
 * limit), or after a call that the log did not take for now: the rest stays for the next time. Returns 0 when
 * all is delivered, FLY_EEXHAUSTED when time was up, else the log's code.
 */
int spool_deliver_left(const struct spool *spool, const struct jobs *jobs, double most_s);

/* Whether there may be anything to deliver. */
bool spool_any_left(const struct spool *spool);

/* How many lines ended sessions left for this log, without lines of runs. */
uint64_t spool_count_left(const struct spool *spool);

/*
 * A parsed line, without its newline. FLY_EDATA for anything but a call. Texts and points are valid until
 * spool_parsed_free.
 */
struct spool_parsed {
    struct spool_entry entry;
    struct arena arena; /* of texts and lists */
};
int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed,
                struct fly_error *out_error);
void spool_parsed_free(struct spool_parsed *parsed);

/* Appends the entry as a line, with its newline. */
int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error);

#endif
