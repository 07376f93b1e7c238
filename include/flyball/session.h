/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SESSION_H
#define FLYBALL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/carbon.h>
#include <flyball/error.h>
#include <flyball/job_definition.h>
#include <flyball/meter.h>
#include <flyball/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One submission of a recurring job, from inside the training program. It says which
 * batch size and power limit to use, and when to stop, from what was seen of the job
 * before.
 *
 *     static const uint32_t batch_sizes[] = {32, 64, 128};
 *     const struct fly_session_options options = {
 *         .size = sizeof options,
 *         .job_name = "digits",
 *         .batch_sizes = batch_sizes, .batch_count = 3, .default_batch_size = 64,
 *         .objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 1.1},
 *         .target = FLY_TARGET_AT_LEAST, .target_metric = 0.95,
 *         .max_epochs = 100,
 *         .tries = 3,
 *     };
 *     struct fly_session *session;
 *
 *     if (fly_session_open(&options, &session, &error) < 0)
 *         ...
 *     do {
 *         enum fly_answer answer;
 *
 *         start_anew(fly_session_batch_size(session));
 *         do {
 *             fly_session_epoch_begin(session);
 *             for each step {
 *                 fly_session_step_begin(session);
 *                 train_one_step();
 *             }
 *             fly_session_evaluation_begin(session);
 *             accuracy = evaluate();
 *             fly_session_evaluation_end(session);
 *             answer = fly_session_report(session, accuracy);
 *         } while (answer == FLY_GO_ON);
 *     } while (fly_session_try_again(session));
 *     fly_session_close(session, FLY_SESSION_FINISHED);
 *
 * A recurrence ends with a model. It takes up to `tries` trainings, each with one batch
 * size. A training that becomes too expensive is told to stop. The last one that is
 * allowed runs the best known choice and is never told to stop. With one try only power
 * limits are explored. If your program cannot train twice in one process, set `tries` to
 * how often your launcher restarts it, or to FLY_SESSION_ALWAYS, and exit with
 * fly_session_exit_status.
 *
 * Nothing here makes training fail or wait for long. If the job's log cannot be reached,
 * the session runs the default batch size, or what was decided before, and tunes nothing;
 * fly_session_status says why. Reports that could not be delivered are kept on this
 * machine, in the directory that FLYBALL_SPOOL names or the user's own, and a later
 * session delivers them; docs/explanation/faults.md says what a killed program and a crashed machine
 * can lose. One thread talks to the log, and others to the disk. The session waits for
 *
 *     what to run         wait_s and half a second
 *     a report's answer   0.2 s, and until 0.3 s for the disk to take it instead: once,
 *                         and not again before they have answered in time
 *     the end             half a second
 *
 * An answer that comes later counts at the next report. While the log does not answer, it
 * is rarely asked again. Threads that are held up are left behind, and end when they can.
 * Limits that may not be set stay as they are. With FLYBALL_DISABLE=1 nothing is opened,
 * written or set: the batch size is the default, and answers follow from the target and
 * max_epochs.
 *
 * Under `flyball run --job` a session of the same job takes up that try: there is one
 * trial, not two (docs/reference/variables.md has the variables).
 *
 * For one thread. After fork the child's copy is inert: its calls do nothing, and
 * closing it only frees memory.
 */
struct fly_session;

/*
 * Reads a target: ">=0.79" or "0.79" is at least that, "<=0.3" at most. FLY_EUSAGE for anything else.
 * Thread-safe.
 */
FLY_API int fly_target_parse(const char *text, enum fly_target *out_target, double *out_metric,
                             struct fly_error *out_error);

/* What to do after an epoch. */
enum fly_answer {
    FLY_GO_ON,
    FLY_REACHED, /* the target: training is done, or goes on if `trains_on` */
    FLY_STOP,    /* this training ends here: all epochs are done, or it would cost too much */
};

/* "go on", "reached", "stop". Static storage. */
FLY_API const char *fly_answer_name(enum fly_answer answer);

enum {
    FLY_SESSION_TEXT_MAX = 512,
    FLY_SESSION_EXIT_AGAIN = 75, /* the exit status of a program that is to be started again */
};

/* For `tries`: whoever starts the program always does so again after FLY_SESSION_EXIT_AGAIN. */
#define FLY_SESSION_ALWAYS UINT32_MAX

/* A field that is not set (0, NULL) has the default beside it. Everything is copied but what is borrowed. */
struct fly_session_options {
    size_t size; /* sizeof(struct fly_session_options), in which nothing behind recurrences_left need be */

    /*
     * The job, whole or by its members: batch_sizes, max_epochs and all others of
     * <flyball/job_definition.def>. The first session writes this down. A later one with other values is not
     * tuned, and says so. Where 0 makes no sense it is not set: a beta of 0 is 2, an objective.max_slowdown
     * of 0 the one on record or fly_objective_usual_bound. The objective's grid is that of `carbon`.
     */
    __extension__ union {
        struct fly_job_definition job;
        __extension__ struct {
            const char *job_name;
#define FLY_MEMBER(type, name) type name;
#include <flyball/job_definition.def>
        };
    };

    /* This submission. */
    const char *store; /* address of the job's log; NULL: FLYBALL_STORE, else the user's own file */
    double wait_s;     /* for the log's proposal, and the thread that talks to it for a call; 0: 5 */
    const char *run; /* a name that stays when the run is requeued; NULL: FLYBALL_RUN_ID, else Slurm's job */
    uint32_t tries;  /* how many may be made; 0: 1 */
    int64_t finish_by_unix_s;   /* no exploration that could miss it; 0: none */
    uint64_t samples_per_epoch; /* lets a power profile be judged before the first epoch's end; 0: unknown */

    /* Devices. */
    struct fly_meter *meter;         /* over the GPUs of this rank; borrowed; NULL: one of its own */
    const char *gpus;                /* for that: as CUDA_VISIBLE_DEVICES is written; NULL: what is visible */
    bool leave_limits;               /* set none */
    const struct fly_turner *turner; /* your way to set limits; NULL: Flyball's own; borrowed */
    void *turner_data;
    const double *limits_w; /* to try; NULL: all in steps of 25 W */
    size_t limit_count;
    uint32_t warmup_steps;   /* before a window of the power profile; 0: 10 */
    uint32_t profile_steps;  /* in each window at least; 0: 40 */
    double energy_tolerance; /* a window goes on while its energy is less certain than that; 0: 0.04 */

    /* Data-parallel ranks: each has a session and makes the same calls; all_reduce joins them. */
    uint32_t world_size;       /* 0: 1 */
    uint32_t rank;             /* 0 decides */
    fly_all_reduce all_reduce; /* needed for more than one rank; never called while steps are settled, but
                                  with `carbon` once every few seconds */
    void *all_reduce_data;

    /*
     * Keeps an account of each training, and lets the power limit follow the grid once the
     * batch size has a whole power profile; NULL: neither. Its finish_by_unix_s is for the
     * last try alone. The objectives carbon and money need it too. Copied.
     */
    const struct fly_carbon_options *carbon;

    /* Of this submission and those that come. */
    uint32_t recurrences_left; /* with this one: only what pays within them is explored; 0: not known */

    /*
     * Where each try has a directory of its own (fly_session_directory); NULL: "flyball-tries". One that is
     * not absolute begins in the directory where the session is opened.
     */
    const char *tries_directory;

    /*
     * How many ranks train with samples of their own; 0: world_size. With tensor or pipeline parallelism
     * several ranks work on the same samples, and there are fewer.
     */
    uint32_t replicas;

    /* As of a tuner (<flyball/tuner.h>): without a step for so long, the limit of the start is put back until
     * the next one, s; 0: 30, or 20 steps where these take longer; INFINITY: never. */
    double give_back_s;
};

/*
 * Opens the log and the devices, and decides what to run. The only errors are FLY_EUSAGE
 * for options out of range, and FLY_ENOMEM. Collective over the ranks. The caller owns
 * the handle.
 */
FLY_API int fly_session_open(const struct fly_session_options *options, struct fly_session **out_session,
                             struct fly_error *out_error);

/* What to train with now: of all ranks together, and of this one. */
FLY_API uint32_t fly_session_batch_size(const struct fly_session *session);
FLY_API uint32_t fly_session_local_batch_size(const struct fly_session *session);

/* How the learning rate follows the batch size: linearly for SGD, by the square root for adaptive optimisers.
 */
enum fly_scaling { FLY_SCALE_LINEAR, FLY_SCALE_SQUARE_ROOT };

/* The learning rate for a batch size, given the one that suits another. Pure; thread-safe. */
FLY_API double fly_learning_rate(double rate, uint32_t suited_batch_size, uint32_t batch_size,
                                 enum fly_scaling scaling);

/*
 * Finds how the rate of an optimizer scales, by its name in any framework ("SGD", "torch.optim.AdamW"), or
 * by "linear" or "square-root". FLY_EUSAGE for one that no rule is known for. Thread-safe.
 */
FLY_API int fly_scaling_parse(const char *optimizer, enum fly_scaling *out_scaling,
                              struct fly_error *out_error);

/* The same for the session's batch size, given what suits the default one. */
FLY_API double fly_session_learning_rate(const struct fly_session *session, double default_rate,
                                         enum fly_scaling scaling);

/*
 * How a rank may make one step of its batch size of several smaller batches, whose gradients it adds up:
 * of micro_batch_size each, the largest that divides it and is at most max_micro_batch_size (0: any).
 */
struct fly_batch_split {
    uint32_t local_batch_size; /* samples of a replica in one step */
    uint32_t micro_batch_size; /* samples at a time */
    uint32_t accumulation;     /* so many times */
};

/*
 * Splits a batch size of all replicas together. FLY_EUSAGE if it is no multiple of them. Pure; thread-safe.
 */
FLY_API int fly_batch_split(uint32_t batch_size, uint32_t replicas, uint32_t max_micro_batch_size,
                            struct fly_batch_split *out_split, struct fly_error *out_error);

/*
 * Makes this try's own directory, and stores its path: for checkpoints, which tries with different batch
 * sizes must not share. It is new for each try, and the same for another attempt of a try, as after a
 * requeue. On all ranks the same name. FLY_ELIMIT for one that does not fit into `capacity`; FLY_EWRITE if it
 * cannot be made.
 */
FLY_API int fly_session_directory(const struct fly_session *session, char *out_path, size_t capacity,
                                  struct fly_error *out_error);

/* After a checkpoint was loaded: so many epochs are done already. */
FLY_API void fly_session_resumed(struct fly_session *session, uint32_t epochs_done);

/*
 * The same, for a checkpoint that was trained with that batch size of all ranks. FLY_ECONFLICT, and nothing
 * else, if the session's is another one: what such a training costs would tell nothing of either.
 */
FLY_API int fly_session_resumed_from(struct fly_session *session, uint32_t epochs_done, uint32_t batch_size,
                                     struct fly_error *out_error);

/*
 * Call these around the steps of an epoch, and before each step. Evaluation lies
 * outside: it counts as energy and time of the training, but for no power profile.
 * FLY_STOP if the power profile shows that no further epoch fits: then report nothing.
 * A call takes a few nanoseconds once the limit is settled.
 */
FLY_API void fly_session_epoch_begin(struct fly_session *session);
FLY_API enum fly_answer fly_session_step_begin(struct fly_session *session);
FLY_API void fly_session_evaluation_begin(struct fly_session *session);
FLY_API void fly_session_evaluation_end(struct fly_session *session);

/*
 * Whether the next fly_session_step_begin may set a limit, call all_reduce or wait for the log; once settled
 * it only counts. For callers that hold a lock which they would have to release, as an interpreter's.
 */
FLY_API bool fly_session_step_waits(const struct fly_session *session);

/* Reports that an epoch has ended, and with which metric; NAN for none. Collective. */
FLY_API enum fly_answer fly_session_report(struct fly_session *session, double metric);

/*
 * Whether this training is over: an answer ended it, or it failed. After FLY_REACHED only if it does not
 * train on.
 */
FLY_API bool fly_session_is_over(const struct fly_session *session);

/*
 * Tells that the program ends this training by itself, as after max_epochs of its own: without its target, if
 * it has not reached that. Nothing for one that is over.
 */
FLY_API void fly_session_training_ended(struct fly_session *session);

/* No step comes for now: puts the limit of the start back at once, as after options.give_back_s. For a
 * training that an exception has ended in a program that lives on. */
FLY_API void fly_session_give_back(struct fly_session *session);

/*
 * Whether an exception of a program says that memory ran out, of the GPU or the host: by the name of its type
 * ("torch.cuda.OutOfMemoryError"; "" if there is none) and its text. Pure; thread-safe.
 */
FLY_API bool fly_out_of_memory(const char *exception, const char *text);

/*
 * Reports that this batch size does not fit into the GPUs' memory. It is written down at
 * once, since a program may not get far after it. On any rank.
 */
FLY_API void fly_session_out_of_memory(struct fly_session *session);

/*
 * Tells with which batch size of all ranks the program trains really. One that is smaller than the session's
 * means that this did not fit, as fly_session_out_of_memory says: some frameworks lower it by themselves.
 */
FLY_API void fly_session_trains_with(struct fly_session *session, uint32_t batch_size);

/*
 * Whether to train again, with another batch size, because the last training was told to
 * stop short of its target, or did not fit. True only while `tries` are left. Collective.
 */
FLY_API bool fly_session_try_again(struct fly_session *session);

/* How training ended, if no answer ended it. */
enum fly_session_end {
    FLY_SESSION_FINISHED,
    FLY_SESSION_CRASHED,
    FLY_SESSION_INTERRUPTED, /* it goes on later: another attempt of the same run */
};

/* Puts the old limit back and frees all. Accepts NULL. */
FLY_API void fly_session_close(struct fly_session *session, enum fly_session_end end);

/* 0, or FLY_SESSION_EXIT_AGAIN if the program should be started again. Call it before closing. */
FLY_API int fly_session_exit_status(const struct fly_session *session);

/* An unknown figure is NAN, or 0 where a number counts from 1. */
struct fly_session_status {
    size_t size;         /* set by the caller */
    bool connected;      /* the job's log answered when it was asked last */
    bool disabled;       /* by FLYBALL_DISABLE=1 */
    uint64_t trial;      /* in the job's log */
    uint32_t attempt;    /* at that trial; more than 1 after a requeue */
    uint64_t recurrence; /* from 0 */
    uint32_t try_number; /* from 0 */
    bool last_try;
    uint32_t batch_size, local_batch_size;
    uint32_t epoch;       /* the last that ended */
    uint32_t epochs_done; /* by earlier attempts */
    uint32_t epochs_max;  /* this training may run, as far as is known */
    enum fly_answer answer;
    double limit_w;  /* the power limit that was set */
    double energy_j; /* of this training, all attempts and GPUs, at the last report */
    double time_s;
    uint64_t kept;                         /* reports in the spool that are not delivered yet */
    char why[FLY_SESSION_TEXT_MAX];        /* this choice, in a sentence */
    char text[FLY_SESSION_TEXT_MAX];       /* why the job's log is not used; "" if it is */
    char limit_text[FLY_SESSION_TEXT_MAX]; /* why the limit is not set; "" if it is, or none is to be */
};

/*
 * How following the grid goes in this training (<flyball/carbon.h>). FLY_EUSAGE without a
 * size, FLY_ESTATE if the options had no `carbon`, or nothing is open.
 */
FLY_API int fly_session_carbon(const struct fly_session *session, struct fly_carbon_report *out_report);

/* FLY_EUSAGE without a size. */
FLY_API int fly_session_status(const struct fly_session *session, struct fly_session_status *out_status);

#ifdef __cplusplus
}
#endif

#endif
