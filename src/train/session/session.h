/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SESSION_SESSION_H
#define FLYBALL_TRAIN_SESSION_SESSION_H

#include <flyball/session.h>

#include "base/clock.h"
#include "job/core/job_backend.h"
#include "knob/knob.h"
#include "train/carbon/carbon_governor.h"
#include "train/post/post.h"
#include "train/program/step_count.h"
#include "train/tuner/knob_turner.h"

/*
 * What `flyball run --job`, which has a session on behalf of its program, asks of it beyond
 * <flyball/session.h>. It reads what stands in the struct. Only the session's own files change that, but
 * for `answer` and `stop` of a program that ended before its session did.
 */

/* What tests and programs put in the place of the usual. NULL and 0: the usual. */
struct session_parts {
    const struct jobs *jobs;          /* borrowed */
    const struct clock *clock;        /* borrowed */
    const char *spool_directory;      /* copied */
    const struct knob_options *knobs; /* borrowed */
    double beat_s;                    /* between signs of life before the first report */
    struct carbon_keeper *keeper;     /* borrowed: of the account, also where no grid is followed */
    bool heeds;                       /* session_heed is called for late answers: none is waited for */
};

int session_new(const struct fly_session_options *options, const struct session_parts *parts,
                struct fly_session **out_session, struct fly_error *out_error);

/* The power limit of this rank's GPUs. */
struct session_limit {
    const struct fly_turner *turner; /* NULL: none is turned */
    void *data;
    struct knob *knob; /* behind it, or NULL for the caller's own */
    struct knob_turner knob_turner;
    const struct device *gpus[DEVICES_MAX];
    size_t gpu_count;
    uint64_t gpu_memory_bytes; /* of the smallest of all ranks; 0: not known */
    double highest_w;
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX]; /* ascending */
    size_t limit_count;
    struct fly_tuner *tuner; /* while the profile is measured, and until the log has chosen */
    bool measured;           /* the tuner is done with the profile */
    bool goes_on;            /* with what earlier trainings measured of it */
    size_t told;             /* points of it that the log has, or will have */
    bool refused;            /* the log says that no epoch fits */
    bool asked;              /* the log may still say what it chooses */
    double choice_w;         /* of the profile, by the log or the tuner; NAN: none */
    double start_w;          /* what stood before */
    double held_w;           /* what stands by us; NAN: nothing */
    char text[FLY_SESSION_TEXT_MAX];
};

/* The account of each training, and its limit where that follows the grid. */
struct session_carbon {
    bool wanted;                       /* it is to follow, as far as it may */
    struct fly_carbon_options options; /* texts are the session's own */
    struct carbon_keeper *keeper;      /* somebody else's, of the account; NULL: none */
    uint64_t steps_told;               /* to that */
    struct carbon_governor *governor;  /* of the training under way; NULL: none */
    bool steers;                       /* rank 0's governor, on all ranks; the same on each */
    uint64_t countdown;                /* steps until it is asked again */
    double usual_step_s;               /* of the limit that the log chose, as measured; NAN: not known */
    double told_w;                     /* to stand, to the governor */
    const char *note;                  /* why it does not steer */
    char text[FLY_ERROR_TEXT_MAX];     /* why there is no governor, or it has no profile */
    struct fly_carbon_report last;     /* of the training that ended; size 0: none */
};

struct fly_session {
    uint64_t forks;
    bool disabled;
    struct fly_session_options options; /* texts and lists are the session's own */
    char *texts[8];                     /* owned */
    uint32_t *batch_sizes;              /* owned */
    double *limits_w;                   /* owned */
    struct job_definition definition;
    const struct clock *clock;
    double beat_s;
    bool heeds; /* as of the parts */
    const struct knob_options *knobs;

    struct fly_meter *meter; /* NULL: nothing is measured */
    bool meter_owned;
    struct fly_device_energy *energies; /* for the meter; owned */
    struct session_limit limit;
    struct session_carbon carbon;
    struct post *post; /* to the log; owned. Of rank 0; others use it for a word on memory */
    const char *note;  /* why it is not used, beside what the post says; NULL: nothing */
    bool apart;        /* the all-reduce failed: each rank answers by itself */

    char run[JOB_TEXT_MAX], submission[JOB_TEXT_MAX], request[JOB_TEXT_MAX];
    char user[JOB_TEXT_MAX], account[JOB_TEXT_MAX], host[JOB_TEXT_MAX];
    char gpus[JOB_GPUS_MAX]; /* of this rank, as job_origin has them */
    unsigned asked;          /* what to run, so many times */
    bool inside;             /* a try of `flyball run --job` surrounds it */

    bool known;   /* there is a trial in the log */
    int code;     /* of the last question what to run */
    bool unasked; /* the log could not be reached: what is reported is kept for it */
    bool run_kept;
    uint32_t gpu_count;           /* of all ranks */
    struct job_question question; /* of rank 0 */
    struct job_proposal proposal;
    struct mono_time begin;  /* of this attempt, */
    struct step_count count; /* and its steps */
    fly_window window;
    bool window_open;
    bool resumed;          /* the program said how far its checkpoint is */
    bool reported;         /* an epoch of this attempt */
    uint32_t epoch;        /* the last that counts: what comes behind the trial's end is for the log alone */
    uint32_t epoch_newest; /* that was reported */
    uint32_t epochs;       /* it may run */
    enum fly_answer answer;
    enum job_stop stop;
    bool over; /* the log knows the trial's end */
    bool reached;
    bool failed;             /* out of memory, or crashed: that was written down */
    bool released;           /* the program speaks for itself */
    double energy_j, time_s; /* of all attempts and ranks, at the last report */
    bool stopped;            /* the program has ended: these are of that moment */
    double stopped_energy_j, stopped_time_s;
};

/* For `flyball run --job`, which has a session on behalf of a program. */

/* What the log answered since: takes what ends the training, and its choice of a limit. Not for several
 * ranks. */
void session_heed(struct fly_session *session);
/* Joules of this rank's GPUs in this attempt so far; NAN: not known. */
double session_energy_j(struct fly_session *session);
/* Since this attempt began. */
double session_time_s(const struct fly_session *session);
/* The program has ended now: what is reported from here on is of this moment. */
void session_stop(struct fly_session *session);
/* Sets the power limit that stood before, and ends a profile that is being measured. */
void session_limit_end(struct fly_session *session);
/* Waits for answers that are still to come, as long as they are worth it; then heeds them. */
void session_settle(struct fly_session *session);
/* As fly_session_close; what became of the reports goes to `out_status`, which may be NULL. */
void session_close(struct fly_session *session, enum fly_session_end end, struct post_status *out_status);

/* Writes down how the trial ended. */
void session_say_end(struct fly_session *session, enum trial_outcome outcome, const char *text);
/* The next report is of that epoch; false for one that is not behind the last. */
bool session_set_epoch(struct fly_session *session, uint32_t epoch);
/* The program failed in this way, TRIAL_OUT_OF_MEMORY or TRIAL_CRASHED; at once in the log. */
void session_fail(struct fly_session *session, enum trial_outcome outcome, const char *text);
/* The program has a session of its own: lets the GPUs go, and says nothing more of this try. */
void session_release(struct fly_session *session);
/* Whether there is no model yet, and another try could make one; whether one is left. */
bool session_wants_again(const struct fly_session *session);
bool session_tries_left(const struct fly_session *session);
/* The next try, whatever became of this one. */
void session_next_try(struct fly_session *session);

#endif
