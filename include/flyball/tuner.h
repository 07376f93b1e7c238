/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TUNER_H
#define FLYBALL_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/carbon.h>
#include <flyball/error.h>
#include <flyball/meter.h>
#include <flyball/objective.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Finds the best power limit, or the best ceiling on the GPU clock, while training
 * runs, and keeps it. Below, "limit" without a unit means either.
 *
 *     struct fly_tuner_options options = {
 *         .size = sizeof options,
 *         .meter = meter,
 *         .objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 1.03},
 *         .job_name = "resnet50", .batch_size = 256, .profile_directory = "/var/lib/flyball",
 *     };
 *     struct fly_tuner *tuner;
 *
 *     if (fly_tuner_new(&options, &tuner, &error) < 0)
 *         ...
 *     for each epoch {
 *         fly_tuner_epoch_begin(tuner);
 *         for each step {
 *             fly_tuner_step_begin(tuner);
 *             train_one_step();
 *         }
 *         fly_tuner_epoch_end(tuner);
 *         evaluate();
 *     }
 *     fly_tuner_free(tuner);
 *
 *     SEARCHING --choice--> CHECKING --kept--> SETTLED --every check_every_steps--> CHECKING
 *         ^                    |  \--promise broken: the next higher limit, again CHECKING
 *         +---- throughput 5 % off, and remeasure_distance_steps since the last search
 *
 * The search measures as few limits as it needs, and stops when none is left that could
 * be better by more than a little. While SETTLED, after a check, limits that may still be
 * better get another look, at no more than 0.2 % of what the run has cost so far.
 *
 * If you give no turner, the tuner sets the limits of the meter's GPUs, under a lock for
 * each GPU and never where somebody else works. A guard process puts them back if this
 * process is killed (docs/howto/power.md). If limits may not be set, tuning has STOPPED from the
 * start, the report says once why and what would help, and everything else works. The
 * guard, flyball-guard, is looked for where FLYBALL_GUARD says, beside the program, and
 * where it was installed. Close the meter after the tuner.
 *
 * Nothing is set before a GPU has work in the steps; a GPU whose driver does not tell counts as one that has.
 * If no GPU had any so far, the report's reason is FLY_TUNER_NO_WORK. Of several GPUs, those without work are
 * left alone and count in no figure, until they have some; a turner of your own turns all.
 *
 * A training that makes no steps keeps no limit: after options.give_back_s without a step (an exception ended
 * it in a process that lives on, or it is over and the tuner is still there) a thread of the tuner sets the
 * limit of the start again and releases the GPUs, so that others can turn them. With the next step tuning
 * goes on where it was; the window that was interrupted does not count. If the GPUs are somebody else's by
 * then, it has STOPPED. A longer evaluation between steps is noticed: the tuner then waits for twice as long
 * as the longest one, 10 minutes at most. A turner of your own is called by that thread too, never while
 * another call of it is under way.
 *
 * Any fault ends in STOPPED: the limit of the start is set again, unless another program
 * has changed it since, and training goes on as if nothing were there. The hooks report
 * no faults: fly_tuner_report does.
 *
 * Each data-parallel rank has a tuner, over a meter of its own GPUs, and calls the same
 * hooks at the same steps; `all_reduce` joins them. Energy is the sum over the ranks, and
 * time is that of the slowest. Not thread-safe. After fork the child's copy is inert.
 * With FLYBALL_DISABLE=1 nothing is ever set.
 *
 * Under `flyball run --tune` and `flyball profile`, which set FLYBALL_STEPS, the hooks of
 * rank 0 report epochs and steps to that command, and set nothing themselves. If that
 * variable names a file that is not there, on another node or inside a container, they
 * set nothing and report to nobody, and the report says so.
 */
struct fly_tuner;

enum { FLY_TUNER_TEXT_MAX = 256, FLY_TUNER_BACKOFFS_MAX = 3, FLY_TUNER_SUMMARY_MAX = 512 };

/*
 * What is set. A ceiling on the clock sets the clock itself, at every load. A power limit
 * leaves it to the board to find a clock. No driver tells which ceiling is set;
 * docs/explanation/power_how.md says what can be known of one.
 *
 * With both, the best limit is searched first, and then the best ceiling under that limit,
 * none included; the bound is on the two together. Where one of the knobs may not be turned,
 * the other is tuned alone, and the report's `knob_note` says so.
 *
 * A workload power profile is a setting of the driver for a kind of work (docs/howto/power.md), of
 * NVIDIA's boards since Blackwell. Tuned are none, against which the bound is held, and each
 * profile that all GPUs offer, one at a time. They have no order, so each one is measured.
 */
enum fly_tuner_knob {
    FLY_TUNER_POWER_LIMIT, /* settings are in W */
    FLY_TUNER_CLOCK,       /* settings are in MHz */
    FLY_TUNER_BOTH,
    FLY_TUNER_AUTO,    /* in options: the limit, or the clock where the limit may not be set */
    FLY_TUNER_PROFILE, /* settings are profiles: 255 - N is profile N, 256 none, 0 several or different ones
                        */
};

/* What stands for a profile's number where there is none, and where there are several. */
enum { FLY_TUNER_NO_PROFILE = -1, FLY_TUNER_SEVERAL_PROFILES = -2 };

/* "power", "clock", "both", "auto", "profile"; "W", "MHz", "" of profiles, and "W" for the others. Static
 * storage. */
FLY_API const char *fly_tuner_knob_name(enum fly_tuner_knob knob);
FLY_API const char *fly_tuner_knob_unit(enum fly_tuner_knob knob);

/* The settings a rank's GPUs take, in the knob's unit. */
struct fly_turner_range {
    double lowest;
    double highest;         /* of a ceiling this means none: the GPUs are as without Flyball */
    double step;            /* between those that are tried, from the highest down; 0: 25 W, 60 MHz */
    double lowest_tried;    /* 0: lowest */
    double highest_power_w; /* of a GPU, for cost; 0: `highest`, of a clock not known */
    const double *settings; /* that are tried; NULL: `highest`, and every `step` below it */
    size_t setting_count;
};

/*
 * A way of your own to set the limit of all GPUs of this rank, in the knob's unit.
 * Functions return 0 or a negative code with a text; `data` is the options' turner_data.
 * They decide who may set limits, and put them back when the process dies.
 */
struct fly_turner {
    int (*range)(void *data, struct fly_turner_range *out_range, struct fly_error *out_error);
    int (*set)(void *data, double setting, struct fly_error *out_error);
    /*
     * The setting that is in force now; an error if it cannot be read or the GPUs differ. For
     * a ceiling the one that was set, or the GPUs' clock if they show another.
     */
    int (*standing)(void *data, double *out_setting, struct fly_error *out_error);
};

/*
 * Over all ranks, in place: the sums of the first array, the maxima of the second.
 * Called by all ranks at the same step, and by `fly_tuner_new`; at most 32 values. While
 * no GPU has work, called some ten times a second; once settled, only for the checks and, if
 * the grid is followed, once every five seconds. A negative code stops tuning.
 */
typedef int (*fly_all_reduce)(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count);

struct fly_tuner_options {
    size_t size;             /* sizeof(struct fly_tuner_options), in which nothing behind `carbon` need be */
    struct fly_meter *meter; /* over the GPUs of this rank; borrowed */
    const struct fly_turner *turner; /* borrowed; NULL: the tuner sets the limits of the meter's GPUs */
    void *turner_data;
    enum fly_tuner_knob knob;
    const double *limits_w; /* to try; NULL: the turner's range, highest - n * step; copied */
    size_t limit_count;
    const double *ceilings_mhz; /* the same of a clock */
    size_t ceiling_count;
    struct fly_objective objective; /* a max_slowdown of 0: fly_objective_usual_bound */
    double max_power_w;      /* for cost; 0: the highest limit the GPUs take, times the GPUs of all ranks */
    uint32_t wait_steps;     /* 0: 1 */
    uint32_t warmup_steps;   /* after a limit was set; 0: as long as a limit takes to settle, 10 at most */
    uint32_t profile_steps;  /* in each window, at least; 0: as many as the choice needs, 40 for a profile */
    double energy_tolerance; /* how certain a profile's energies are; a limit that is better by less than a
                                quarter of this, or 2 %, is not looked for; 0: 0.04 */
    double window_max_s;     /* the longest window; 0: 10 */
    uint32_t check_every_steps;        /* when settled; 0: 1000 */
    uint32_t remeasure_distance_steps; /* at least between two searches; 0: 10000 */
    fly_all_reduce all_reduce;         /* NULL: one rank */
    void *all_reduce_data;
    uint32_t rank;                 /* 0 saves the profile */
    const char *profile_directory; /* NULL: profiles are neither saved nor reused; copied */
    const char *profile_file; /* a profile to reuse, in place of the directory's; never written; copied */
    const char *gpu_model;    /* NULL: the name of the meter's first GPU; copied */
    const char *driver;       /* NULL: ""; copied */
    const char *job_name;     /* NULL: ""; copied */
    uint64_t batch_size;
    /* Lets the power limit follow the grid once settled; NULL: not; copied. The objective's bound applies,
     * its kind does not; FLY_OBJECTIVE_TIME and LOWEST_LIMIT are refused. */
    const struct fly_carbon_options *carbon;
    /* With a turner of your own and FLY_TUNER_BOTH or AUTO: that of the clock; borrowed. */
    const struct fly_turner *clock_turner;
    void *clock_turner_data;
    /* After so long without a step the setting of the start is put back until the next one, s; 0: 30, or 20
     * steps where these take longer; INFINITY: never. */
    double give_back_s;
};

enum fly_tuner_state {
    FLY_TUNER_SEARCHING,
    FLY_TUNER_CHECKING, /* the chosen limit's step time is measured, or another limit gets another look */
    FLY_TUNER_SETTLED,
    FLY_TUNER_STOPPED,
};

/* Why tuning stopped, or did not begin. */
enum fly_tuner_reason {
    FLY_TUNER_GOES_ON,
    FLY_TUNER_DISABLED,       /* by FLYBALL_DISABLE=1 */
    FLY_TUNER_SET_FAILED,     /* a limit could not be set */
    FLY_TUNER_UNREADABLE,     /* nor read back; a lost GPU says so here */
    FLY_TUNER_FOREIGN_CHANGE, /* another program changed the limit, and its value stays */
    FLY_TUNER_NO_FIGURE,      /* the meter has no energy */
    FLY_TUNER_NO_CHOICE,      /* no valid point, or none at the highest limit to hold the bound against */
    FLY_TUNER_NO_MEMORY,
    FLY_TUNER_ALL_REDUCE, /* it failed */
    FLY_TUNER_OTHER_RANK, /* stopped, and says why in its own report */
    FLY_TUNER_NO_KNOB,    /* limits may not be set here; the text says why, and what would help */
    FLY_TUNER_STEERED, /* never began: a program around this one tunes by the steps that are reported to it */
    FLY_TUNER_NO_WORK, /* not stopped: the GPUs had no work so far, and nothing is set until they have */
};

/* "goes on", "set failed", ...; static storage. */
FLY_API const char *fly_tuner_reason_name(enum fly_tuner_reason reason);

/* What a point of the profile is worth. Only a valid one can be chosen. */
enum fly_tuner_mark {
    FLY_TUNER_NOT_MEASURED, /* not yet, or left out since it could not win */
    FLY_TUNER_VALID,
    FLY_TUNER_NOT_HONOURED, /* read back, the limit was another */
    FLY_TUNER_HOT,          /* measured while heat held a GPU down */
    FLY_TUNER_BRAKED,       /* while something outside the board did */
    FLY_TUNER_NO_ENERGY,
    FLY_TUNER_ENFORCED_LOWER, /* not tried: the boards enforce less, which a higher limit stands for */
};
FLY_API const char *fly_tuner_mark_name(enum fly_tuner_mark mark);

/* Whether the limit held the GPUs down; a limit that never bound is as good as none. */
enum fly_tuner_bound { FLY_TUNER_BOUND_UNKNOWN, FLY_TUNER_UNBOUND, FLY_TUNER_BOUND };

struct fly_tuner_point {
    double limit_w;     /* NAN if the knob is the clock, */
    double ceiling_mhz; /* and this if it is the limit; a ceiling that was tried under a limit has both */
    enum fly_tuner_mark mark;
    enum fly_tuner_bound bound;
    double power_w;      /* mean, of all GPUs that are tuned; NAN unless measured */
    double time_s;       /* of a step on the slowest rank */
    double time_error;   /* standard error of time_s, as a fraction of it */
    double energy_error; /* half width of the interval that holds the energy in 95 of 100, as a fraction;
                            board gain, which is the same for all points, not included; NAN when not known */
    double capped_share; /* of the time, held down by the knob; the least of the GPUs'; NAN when not known */
};

/*
 * What sets the pace of the steps, as far as can be told. A limit changes the time of a step only where the
 * GPU does; what a profile promises holds only there.
 */
enum fly_tuner_pace {
    FLY_TUNER_PACE_GPU,      /* the GPU, or nothing speaks against it */
    FLY_TUNER_PACE_PAUSES,   /* much of the time went into pauses between steps */
    FLY_TUNER_PACE_WAITS,    /* the GPUs had no work for much of the time */
    FLY_TUNER_PACE_FLAT,     /* step times changed, but limits that hold the GPU down did not change them */
    FLY_TUNER_PACE_UNSTEADY, /* step times changed by more than their errors and 5 % under the same limit */
    FLY_TUNER_PACE_SCATTER,  /* they changed by more than 5 %, which their scatter explains */
};

/* "GPU", "pauses", "waits", "flat", "unsteady", "scatter"; static storage. */
FLY_API const char *fly_tuner_pace_name(enum fly_tuner_pace pace);

/* An unknown figure is NAN. */
struct fly_tuner_report {
    size_t size; /* set by the caller */
    enum fly_tuner_state state;
    enum fly_tuner_reason reason;
    enum fly_tuner_knob knob; /* that is turned; both once ceilings are tried under a limit */
    double start_limit_w;     /* at the start */
    double limit_w;           /* now, as far as the tuner knows */
    double start_ceiling_mhz;
    double ceiling_mhz; /* the same of a clock; the highest there is means none */
    double slowdown;    /* of the newest check, against the highest limit */
    double step_time_s; /* of the newest check */
    uint32_t searches;  /* begun */
    uint32_t backoffs;  /* to a higher limit, since the last search */
    uint32_t looks;     /* windows of limits that were measured before, since the last search began */
    double noise;       /* by how much times of such windows differ beyond what the spread of their steps
                           explains, a standard deviation as a fraction; NAN with none */
    uint32_t ties;      /* limits that the points' errors cannot tell from the chosen one */
    bool reused;        /* the profile was a saved one */
    uint64_t
        search_steps; /* of all searches that ended, warm-up included, and what they took; no evaluation */
    double search_time_s;
    double search_energy_j; /* of all ranks; after a fault of this rank alone */
    double extra_time_s;    /* what is beyond the same steps at the chosen limit; below 0: less */
    double extra_energy_j;
    char text[FLY_TUNER_TEXT_MAX];    /* why it stopped or did not begin; "" while it goes on */
    char profile[FLY_TUNER_TEXT_MAX]; /* what became of the saved profile; "" for nothing */
    /* Of the windows since the newest search began. A step of more than five median steps contains a pause
     * (evaluation, a checkpoint, a stalled loader): no figure above but the search's cost includes it. */
    uint64_t pauses;
    double pause_share; /* of the windows' time */
    double idle_share;  /* of the rest, without work on the busiest GPU */
    enum fly_tuner_pace pace;
    char knob_note[FLY_TUNER_TEXT_MAX]; /* which knob may not be turned, and why; "" for nothing */
    int start_workload_profile;         /* with FLY_TUNER_PROFILE: the number of the one at the start, */
    int workload_profile;               /* and now; else, and for none, FLY_TUNER_NO_PROFILE */
    bool given_back;     /* no step came for long: the setting of the start stands until the next step */
    uint32_t give_backs; /* how many times that was so */
};

/*
 * Reads the range, the limit in force, and a saved profile; sets nothing.
 * Collective: all ranks call it. FLY_EUSAGE for options out of range, also for a
 * limit outside the turner's range; FLY_ENOMEM; an error of the turner or of the
 * all-reduce. The caller owns the handle.
 */
FLY_API int fly_tuner_new(const struct fly_tuner_options *options, struct fly_tuner **out_tuner,
                          struct fly_error *out_error);

/* Sets the limit of the start again, unless another program has changed it. NULL is fine. */
FLY_API void fly_tuner_free(struct fly_tuner *tuner);

/* Call these before each step, and around the steps of an epoch; evaluation lies outside. A call takes a
 * few nanoseconds once settled. FLY_ESTATE after fork, else 0. */
FLY_API int fly_tuner_step_begin(struct fly_tuner *tuner);
FLY_API int fly_tuner_epoch_begin(struct fly_tuner *tuner);
FLY_API int fly_tuner_epoch_end(struct fly_tuner *tuner);

/*
 * No step comes for now: puts the setting of the start back at once, as after options.give_back_s. For a
 * training that an exception has ended. FLY_ESTATE after fork, else 0.
 */
FLY_API int fly_tuner_give_back(struct fly_tuner *tuner);

/* How tuning goes, in short and in full; FLY_EUSAGE without a size. A smaller size gets the members that fit
 * into it, from `profile` on. */
FLY_API enum fly_tuner_state fly_tuner_state(const struct fly_tuner *tuner);
FLY_API int fly_tuner_report(const struct fly_tuner *tuner, struct fly_tuner_report *out_report);

/*
 * Writes, into at most `size` bytes, the one sentence that a person wants to read: which limit was chosen and
 * what a step takes there against what stood before, with 95 % intervals, or what is missing for knowing it.
 * FLY_TUNER_SUMMARY_MAX bytes are enough; a longer text ends at a word. FLY_EUSAGE without a byte.
 */
FLY_API int fly_tuner_summary(const struct fly_tuner *tuner, char *text, size_t size);

/*
 * How following the grid goes (<flyball/carbon.h>), with the account of this rank. FLY_EUSAGE
 * without a size; FLY_ESTATE if the options had no carbon, or nothing is set here.
 */
FLY_API int fly_tuner_carbon(const struct fly_tuner *tuner, struct fly_carbon_report *out_report);

/*
 * Copies up to `capacity` points, highest limit first, and behind them, with both knobs, the ceilings that
 * are tried under the chosen limit; returns how many there are.
 */
FLY_API size_t fly_tuner_points(const struct fly_tuner *tuner, struct fly_tuner_point *out_points,
                                size_t capacity);

/*
 * Returns the number of the workload profile of the point at that place; FLY_TUNER_NO_PROFILE for the
 * point without one, and with other knobs. With FLY_TUNER_PROFILE a point has neither limit nor ceiling:
 * both are NAN.
 */
FLY_API int fly_tuner_point_profile(const struct fly_tuner *tuner, size_t place);

/*
 * The least power limit that a GPU enforced while the point at that place of fly_tuner_points was
 * measured, in W. A board may enforce less than was asked for; then this is what bound, and lower limits
 * that it does not reach are not tried: their mark is FLY_TUNER_ENFORCED_LOWER. NAN when no driver says,
 * when the point was not measured here, and when the knob is the clock.
 */
FLY_API double fly_tuner_enforced_w(const struct fly_tuner *tuner, size_t place);

#ifdef __cplusplus
}
#endif

#endif
