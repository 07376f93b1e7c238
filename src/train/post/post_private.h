/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_POST_POST_PRIVATE_H
#define FLYBALL_TRAIN_POST_POST_PRIVATE_H

#include "base/arena.h"
#include "base/thread/thread_group.h"
#include "train/post/post.h"

/*
 * The inside of post.h: post.c is what the training calls, post_log.c the thread that talks to the log,
 * post_disk.c the thread that writes the spool, post_sync.c the one that waits for the disk; post_ask.c asks
 * what to run, and post_shared.c has what all of them need. The group's lock guards every field here, except
 * those named as one thread's own. No thread holds the lock while it waits for the log or the disk.
 */

/* A letter, kept in memory as the line that the spool would have. */
struct letter {
    struct letter *next;
    uint64_t number, round;
    enum spool_kind kind;
    bool kept;   /* on the spool */
    bool failed; /* the log failed to take it once */
    struct mono_time since;
    size_t length;
    char line[]; /* with its newline */
};

/* A question what to run, with copies of all that it points to. */
struct post_ask {
    struct arena arena;
    struct fly_job_definition definition;
    bool defines;
    struct job_question question;
    struct job_proposal proposal;
    int code;
    char text[FLY_ERROR_TEXT_MAX];
    bool pressed;        /* the letters before it were sent, whether or not the log had answered */
    bool done, given_up; /* the thread that comes second frees it */
};

/* The answer to the newest letter of a kind. */
struct post_answer {
    bool fresh; /* no call has returned it yet */
    union spool_answer answer;
};

struct post {
    const struct clock *clock;
    char *address; /* owned; NULL: the usual */
    double wait_s, answer_s;
    bool threaded;

    struct thread_group group; /* `closing`: no more letters will come */
    bool begun, unable;        /* the threads have begun; none could be started */
    bool log_ended, disk_ended;
    int news; /* an eventfd; -1: none */

    /* Letters that are not delivered, oldest first; `unkept` is the first that is not on the spool. */
    struct letter *first, *last, *unkept;
    size_t bytes;
    uint64_t numbers, done, lost;
    uint64_t kept;     /* letters on the spool, without those of a run */
    uint64_t kept_all; /* letters on the spool, with those */
    uint64_t round;    /* how often the log was asked what to run; answers of earlier rounds are no news */
    char *run_line;    /* owned: of the run that the log was not asked about; NULL: it was asked */
    struct post_answer answers[SPOOL_RUN + 1];
    struct post_ask *ask; /* the question that waits; NULL: none */

    /* The log. Only the log's thread uses `jobs`, `ran` and `open`. */
    struct jobs jobs;
    bool open, borrowed;
    struct job_proposal ran; /* what a run that the books have was given; trial 0: none */
    bool urgent;             /* ask the log once in any case */
    bool connected, busy;
    bool late;              /* it took too long to wait for it again */
    struct mono_time again; /* when to ask it again */
    double pause_s;         /* 0: it answers */
    char text[FLY_ERROR_TEXT_MAX];
    struct job_beat beat;
    char beat_job[JOB_NAME_MAX + 1];
    double beat_s; /* 0: none */
    struct mono_time beat_due;

    /* The disk. Only the disk's thread uses `spool`. */
    struct spool spool;
    bool looked, left; /* it looked for what earlier sessions left; there is some */
    bool more_left;    /* not all of it could be delivered in time */
    bool keep_all;     /* write everything that is not delivered to the spool */
    bool refused;      /* the log refused some of the letters on the spool */
    bool disk_fails, disk_late;
    struct mono_time disk_again;
    char disk_text[FLY_ERROR_TEXT_MAX];

    /* What was written and is not on the disk yet. The thread begins when there is something of that kind. */
    struct spool unsynced_spool; /* as it was when it was written to last */
    uint64_t written, synced;    /* how often it was written to, and how much of that is on the disk */
    double sync_s;               /* how long lines may stand there unsynced */
    struct mono_time sync_due;
    bool unsure; /* a sync failed: the letters must go to a new file */
    bool sync_runs, sync_ended, sync_given_up;
    char sync_text[FLY_ERROR_TEXT_MAX];
};

/* Starts the threads. False when there can be none, and nobody talks to the log. */
bool post_begin(struct post *post);
/* Waits until something changes or that moment comes; false when it has come. */
bool post_wait(struct post *post, struct mono_time until);
/* Wakes all that wait. */
void post_wake(struct post *post);
void post_free_ask(struct post_ask *ask);

/* The threads. */
void post_log_run(void *state);
void post_disk_run(void *state);
void post_sync_run(void *state);

/* What the threads would do now, for a post without threads. */
void post_log_turn(struct post *post);
void post_disk_turn(struct post *post);
void post_sync_turn(struct post *post);

/* Notes that the spool was written to, or that all of it is delivered. For the disk's thread. */
void post_note_written(struct post *post);
void post_note_cleared(struct post *post);
/* Whether nothing is left to wait for. */
bool post_is_synced(const struct post *post);
/* Counts the letters on the spool as not kept. */
void post_forget_kept(struct post *post);

#endif
