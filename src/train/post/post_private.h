/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_POST_POST_PRIVATE_H
#define FLYBALL_TRAIN_POST_POST_PRIVATE_H

#include <pthread.h>

#include "base/arena.h"
#include "train/post/post.h"

/*
 * The inside of post.h: post.c is what the training calls, post_log.c the thread that speaks to
 * the log, post_disk.c the one that writes the spool; post_ask.c is the question what to run, and
 * post_shared.c what all of them do. All that stands here is under `lock`, but
 * for what is named as one thread's own; no lock is held while the log or the disk are waited for.
 */

/* A line of the spool, which is also how a letter is kept in memory. */
struct letter {
    struct letter *next;
    uint64_t number, round;
    enum spool_kind kind;
    bool kept;   /* on the disk */
    bool failed; /* the log did not take it once */
    struct mono_time since;
    size_t length;
    char line[]; /* with its end */
};

/* A question what to run, with copies of all that it points to. */
struct post_ask {
    struct arena arena;
    struct job_definition definition;
    bool defines;
    struct job_question question;
    struct job_proposal proposal;
    int code;
    char text[FLY_ERROR_TEXT_MAX];
    bool pressed;        /* letters before it were sent, in any case */
    bool done, given_up; /* whoever comes second frees it */
};

/* The answer to the newest letter of a kind. */
struct post_answer {
    bool fresh; /* nobody was told */
    union spool_answer answer;
};

struct post {
    const struct clock *clock;
    char *address; /* owned; NULL: the usual */
    double wait_s, answer_s;
    bool threaded;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* whatever changes */
    unsigned holders;       /* whoever lets it go last frees it */
    bool begun, unable;     /* the threads; there are none */
    bool closing;           /* nothing more will be said */
    bool given_up;          /* nobody waits for the threads any more */
    bool log_ended, disk_ended;
    int news; /* an eventfd; -1: none */

    /* Letters that are not delivered, the oldest first; `unkept` is the first that is not on the disk. */
    struct letter *first, *last, *unkept;
    size_t bytes;
    uint64_t numbers, done, lost;
    uint64_t kept;     /* on the disk, but for those of a run */
    uint64_t kept_all; /* and these */
    uint64_t round;    /* how often was asked what to run: answers to earlier letters are no news */
    char *run_line;    /* owned: of the run that the log was not asked about; NULL: it was */
    struct post_answer answers[SPOOL_RUN + 1];
    struct post_ask *ask; /* that waits; NULL: none */

    /* The log. `jobs`, `ran` and `open` are of the log's thread alone. */
    struct jobs jobs;
    bool open, borrowed;
    struct job_proposal ran; /* that a run in the books was given; trial 0: none */
    bool urgent;             /* to be asked once in any case */
    bool connected, busy;
    bool late;              /* it took too long for anybody to wait */
    struct mono_time again; /* not asked before */
    double pause_s;         /* 0: it answers */
    char text[FLY_ERROR_TEXT_MAX];
    struct job_beat beat;
    char beat_job[JOB_NAME_MAX + 1];
    double beat_s; /* 0: none */
    struct mono_time beat_due;

    /* The disk. `spool` is of the disk's thread alone. */
    struct spool spool;
    bool looked, left; /* for what earlier sessions left; there is some */
    bool more_left;    /* not all of it could be delivered in time */
    bool keep_all;     /* everything that is not delivered goes to the disk */
    bool refused;      /* of what is on the disk the log refused some */
    bool disk_fails, disk_late;
    struct mono_time disk_again;
    char disk_text[FLY_ERROR_TEXT_MAX];
};

/* The threads, with the first word. False where there are none, and nobody speaks to the log. */
bool post_begin(struct post *post);
/* Until something changes, or that moment; false when it has come. */
bool post_wait(struct post *post, struct mono_time until);
/* Tells all who wait. */
void post_wake(struct post *post);
/* Lets go of it, with the lock held, which is given back. */
void post_release(struct post *post);
void post_free_ask(struct post_ask *ask);

/* The threads. */
void *post_log_run(void *state);
void *post_disk_run(void *state);

/* Without threads: what they would do now. */
void post_log_turn(struct post *post);
void post_disk_turn(struct post *post);

#endif
