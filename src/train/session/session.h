/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_SESSION_SESSION_H
#define FLYBALL_TRAIN_SESSION_SESSION_H

#include <flyball/session.h>

#include "base/clock.h"
#include "job/core/job_backend.h"
#include "job/core/target_progress.h"
#include "knob/knob.h"
#include "train/carbon/carbon_governor.h"
#include "train/post/post.h"
#include "train/program/step_count.h"
#include "train/tuner/idle_turner.h"
#include "train/tuner/knob_turner.h"

/*
 * What `flyball run --job`, which runs a session for its program, needs beyond <flyball/session.h>. It reads
 * the struct's fields. Only the session's own files change them, except `answer` and `stop` when the program
 * ended before its session did.
 */

/* What tests and programs replace. NULL and 0 stand for the usual parts. */
struct session_parts {
    const struct jobs *jobs;          /* borrowed */
    const struct clock *clock;        /* borrowed; NULL: that of options.meter */
    const char *spool_directory;      /* copied */
    const struct knob_options *knobs; /* borrowed */
    double beat_s;                    /* between signs of life, before the first report */
    struct carbon_keeper *keeper;     /* borrowed: of the account, also when the grid is not followed */
    bool heeds; /* the caller fetches late answers with session_heed, so calls wait for none */
};

int session_new(const struct fly_session_options *options, const struct session_parts *parts,
                struct fly_session **out_session, struct fly_error *out_error);

/* The power limit of this rank's GPUs. */
struct session_limit {
    const struct fly_turner *turner; /* NULL: no limit is turned */
    void *data;
    struct idle_turner idle; /* the turner, in front of the one that turns */
    struct knob *knob;       /* behind that; NULL for the caller's own, and while it is given back */
    struct knob_turner knob_turner;
    const struct device *gpus[DEVICES_MAX];
    size_t gpu_count;
    uint64_t gpu_memory_bytes; /* of the smallest of all ranks; 0: not known */
    double highest_w;
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX]; /* ascending */
    size_t limit_count;
    struct fly_tuner *tuner; /* while the profile is measured, and until the log has chosen */
    bool measured;           /* the tuner is done with the profile */
    bool goes_on;            /* it continues a profile that earlier trainings began */
    size_t told;             /* how many of its points the log has or will have */
    bool refused;            /* the log says that no epoch fits in the bound, before one had ended */
    bool spent;              /* the epochs that the log's choice allows have ended already */
    bool asked;              /* the log may still send its choice */
    double choice_w;         /* chosen from the profile by the log or the tuner; NAN: none */
    double start_w;          /* the limit that stood before */
    double held_w;           /* the limit that this session set; NAN: none */
    char text[FLY_SESSION_TEXT_MAX];
};

/* The account of each training, and its limit when that follows the grid. */
struct session_carbon {
    bool wanted;                       /* following the grid is asked for, as far as possible */
    struct fly_carbon_options options; /* texts are the session's own */
    struct carbon_keeper *keeper;      /* somebody else's, of the account; NULL: none */
    uint64_t steps_told;               /* to the keeper */
    struct carbon_governor *governor;  /* of the training under way; NULL: none */
    bool steers;                   /* rank 0's governor sets the limit of all ranks; the same value on each */
    uint64_t countdown;            /* steps until it is asked again */
    double usual_step_s;           /* under the limit that the log chose, as measured; NAN: not known */
    double told_w;                 /* the limit that the governor was told stands */
    const char *note;              /* why it does not steer */
    char text[FLY_ERROR_TEXT_MAX]; /* why there is no governor, or it has no profile */
    struct fly_carbon_report last; /* of the training that ended; size 0: none */
};

enum { SESSION_PATH_MAX = 1024 };

struct fly_session {
    uint64_t forks;
    bool disabled;
    struct fly_session_options options; /* the job as far as it is named; what it points to is in the arena */
    struct arena arena;
    struct fly_objective objective; /* of a new job that is defined so */
    const struct clock *clock;
    double beat_s;
    bool heeds; /* as in session_parts */
    const struct knob_options *knobs;

    struct fly_meter *meter; /* NULL: nothing is measured */
    bool meter_owned;
    struct fly_device_energy *energies; /* for the meter; owned */
    struct session_limit limit;
    struct session_carbon carbon;
    struct post *post; /* to the log; owned. Rank 0's; other ranks report only lack of memory */
    const char *note;  /* why the log is not used, beside what the post says; NULL: no reason */
    bool apart;        /* the all-reduce failed: each rank decides by itself */

    char run[JOB_TEXT_MAX], submission[JOB_TEXT_MAX], request[JOB_TEXT_MAX];
    char user[JOB_TEXT_MAX], account[JOB_TEXT_MAX], host[JOB_TEXT_MAX];
    char gpus[JOB_GPUS_MAX]; /* of this rank, in the format of job_origin */
    unsigned asked;          /* how many times the log was asked what to run */
    bool inside;             /* this is a try of `flyball run --job` */

    char tries_directory[SESSION_PATH_MAX]; /* absolute; "": too long */
    char directory[SESSION_PATH_MAX];       /* of this try; "" likewise */

    bool known;   /* the log has a trial */
    int code;     /* result of the last question what to run */
    bool unasked; /* the log could not be reached: reports are kept for it */
    bool run_kept;
    uint32_t gpu_count;           /* of all ranks */
    struct job_question question; /* of rank 0 */
    struct job_proposal proposal;
    struct mono_time begin;  /* when this attempt began */
    struct step_count count; /* steps of this attempt */
    uint64_t steps_told;     /* of these, those before the newest report */
    bool uncounted;          /* some steps were not counted */
    struct session_startup { /* what this attempt took before its training began; of this rank */
        bool told;           /* an epoch or a step has begun */
        double energy_j;     /* NAN: not known */
        double time_s;
    } startup;
    fly_window window;
    bool window_open;
    bool resumed;           /* the program said how far its checkpoint is */
    bool reported;          /* an epoch of this attempt */
    uint32_t epoch;         /* the last that counts; later ones, after the trial's end, only go to the log */
    uint32_t epoch_newest;  /* the newest reported */
    uint32_t epoch_first;   /* where an epoch is so many samples: those done before this attempt, */
    uint32_t epoch_counted; /* and the newest that counted */
    uint64_t reports;       /* in this attempt */
    uint32_t epochs;        /* the trial may run */
    enum fly_answer answer;
    enum job_stop stop;
    bool over; /* the log knows that the trial has ended */
    bool reached;
    struct target_progress progress; /* towards the target, by this process's reports */
    bool failed;                     /* out of memory or crashed, and reported as such */
    bool nothing_learnt;             /* it failed, and tells nothing of its batch size */
    bool released;                   /* the program reports by itself */
    double energy_most_j;            /* of this rank in this attempt, as told so far; NAN: not told */
    double energy_j, time_s;         /* of all attempts and ranks, at the last report */
    bool stopped;                    /* the program has ended: the two below are of that moment */
    double stopped_energy_j, stopped_time_s;
};

/* For `flyball run --job`, which runs a session for its program. */

/*
 * Takes the log's answers that have come since: the end of the training, and its choice of a limit. Not for
 * several ranks.
 */
void session_heed(struct fly_session *session);
/* Joules of this rank's GPUs in this attempt so far; NAN: not known. */
double session_energy_j(struct fly_session *session);
/* Seconds since this attempt began. */
double session_time_s(const struct fly_session *session);
/* Tells that the program has ended now: later reports are of this moment. */
void session_stop(struct fly_session *session);
/* Puts back the power limit that stood before, and ends measuring a profile. */
void session_limit_end(struct fly_session *session);
/* Waits for the answers that are still due, as long as they are useful; then takes them. */
void session_settle(struct fly_session *session);
/* Like fly_session_close; stores what became of the reports in `out_status`, which may be NULL. */
void session_close(struct fly_session *session, enum fly_session_end end, struct post_status *out_status);

/* Reports how the trial ended. */
void session_say_end(struct fly_session *session, enum trial_outcome outcome, const char *text);
/* Whether an epoch or a step of this attempt has begun, as far as the session was told. */
bool session_has_begun(const struct fly_session *session);
/* Reports at once that nothing is learnt from this trial: no other try is made. */
void session_leave(struct fly_session *session, const char *text);
/* A step that was over before it was heard of: it counts, and no profile is measured with it. */
void session_step_missed(struct fly_session *session);
/* Sets the epoch of the next report; false unless it is after the last. */
bool session_set_epoch(struct fly_session *session, uint32_t epoch);
/* Reports at once that the program failed: TRIAL_OUT_OF_MEMORY or TRIAL_CRASHED. */
void session_fail(struct fly_session *session, enum trial_outcome outcome, const char *text);
/* The program has a session of its own: lets go of the GPUs, and reports nothing more of this try. */
void session_release(struct fly_session *session);
/* Whether there is no model yet and another try could make one; whether a try is left. */
bool session_wants_again(const struct fly_session *session);
bool session_tries_left(const struct fly_session *session);
/* Begins the next try, however this one ended. */
void session_next_try(struct fly_session *session);

#endif
