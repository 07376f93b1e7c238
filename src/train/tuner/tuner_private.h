/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_PRIVATE_H
#define FLYBALL_TRAIN_TUNER_TUNER_PRIVATE_H

#include "train/carbon/carbon_pace.h"
#include "train/program/step_count.h"
#include "train/program/step_writer.h"
#include "train/tuner/tuner.h"
#include "train/tuner/tuner_visits.h"

/*
 * The inside of <flyball/tuner.h>. What the files do, each using only those below it:
 *
 *     tuner.c                                  the hooks, and the way from one state to the next
 *     tuner_new.c, tuner_saved.c               make it, with what was measured before
 *     tuner_trial.c                            takes the window of a limit on trial
 *     tuner_carbon.c                           follows the grid
 *     tuner_check.c, tuner_search.c            the check of the chosen limit; the search that is carried out
 *     tuner_window.c                           measures, over all ranks
 *     tuner_turn.c                             turns limits, joins the ranks, and stops at faults
 *     tuner_meter.c, tuner_progress.c          what the meter says of this rank; how far the training is
 *     tuner_looks.c, tuner_growth.c, tuner_choice.c, tuner_visits.c
 *                                              decide: what is measured again, for how long, which limit
 *     tuner_settings.c, tuner_report.c         settings and figures, as they are said outside
 *
 * The pure search knows limits in W alone. In here `limit_w`, of a point too, is the knob's
 * setting in its own unit: MHz where the knob is the clock. tuner_settings.c takes
 * settings from outside and puts them in words, tuner_report.c gives them out, and nobody else does.
 */

/* Step times of the window at hand, for their spread. */
struct step_times {
    struct mono_time last; /* begin of the step under way */
    bool running;
    uint64_t count;
    double mean_s, squares; /* Welford */
};

/* What a rank's window says, then, after the exchange, what all ranks' do. */
struct tuner_window {
    double energy_j; /* NAN: not known */
    double half_j;   /* of the interval that holds it */
    double time_s;
    double time_error;
    double heat_share, brake_share;
    double capped_share; /* by the knob; the least; NAN: not known */
    double least_felt;   /* mean of what the knob bounds, power in W or clock in MHz, of the GPU with least */
    double most_felt;    /* and of the one with most; -INFINITY, INFINITY: not known */
    bool honoured;
};

/* What all ranks' closed windows of the limit on trial add up to; an epoch's end divides it. */
struct tuner_parts {
    double energy_j, time_s;
    double half_j2;       /* the parts' edges do not depend on each other: squares add up */
    uint32_t extra_steps; /* wanted beyond profile_steps */
};

/* A stretch of steps whose energy and time count, epochs' ends excluded. */
struct tuner_cost {
    fly_window window;
    bool open, known;
    uint64_t steps;
    double energy_j, time_s; /* of this rank, of the closed part */
};

/* Following the grid. */
struct tuner_carbon {
    struct carbon_governor *governor; /* owned; NULL: the grid is not followed */
    uint64_t steps;                   /* of the whole training; 0: not known */
    uint64_t due, check_due;          /* the steps with which the governor is asked, and the limit checked */
    struct carbon_progress asked;     /* when the governor was */
};

struct fly_tuner {
    struct step_count count; /* first, for the hot hook; without a governor nobody asks for its epochs */
    uint64_t quiet_until;    /* so many steps have begun: before, there is nothing to do */
    enum fly_tuner_state state;
    enum fly_tuner_reason reason;
    uint64_t forks;
    struct step_writer steps; /* to the command that tunes in place of this one */
    uint64_t epochs_reported;
    struct fly_tuner_options options; /* with defaults filled in; its pointers to text are not valid */
    const struct clock *clock;
    struct fly_device_energy *energies; /* for the meter, one for each device; owned */
    size_t device_count;
    struct own_knobs *knobs; /* NULL: the turner is the caller's */
    struct profile_key key;
    char directory[PROFILE_PATH_MAX]; /* of profiles; "" for none */
    char file[PROFILE_PATH_MAX];      /* a profile to reuse; "" for none */

    struct fly_power_search *search; /* over all limits, or over the one that is checked */
    fly_window window;
    bool window_open;
    struct step_times times;
    struct tuner_parts parts;
    struct tuner_cost cost;

    size_t limit_count;
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX]; /* highest first */
    bool saved[FLY_POWER_SEARCH_LIMITS_MAX];                    /* the point was read from a file */
    struct tuner_visits visits[FLY_POWER_SEARCH_LIMITS_MAX];    /* of this search, and the check after it */
    struct tuner_noise noise;
    size_t at; /* the point on trial */
    size_t chosen;
    double most_felt; /* of a GPU, in the newest window that is not unknown; and whether any was capped */
    bool capped;
    unsigned unknown_windows; /* in a row */
    unsigned spoiled_windows; /* by heat or an outside brake, in a row */
    unsigned broken_checks;   /* in a row */
    uint64_t remeasure_from;  /* so many steps have begun: before, no other search begins */

    double spent_s, spent_j;  /* on this search so far, of all ranks, */
    uint64_t spent_steps;     /* and in so many steps */
    bool looking;             /* at a limit that was measured before */
    bool confirming;          /* the check is the first one of this choice */
    uint32_t window_steps;    /* planned */
    struct tuner_visit check; /* the newest; no steps: not known */

    double highest_power_w; /* that a GPU takes; 0: not known */
    double start_limit_w;
    double standing_w; /* that should stand: what was read back after the last turn */
    bool every_limit;  /* nothing is left out */
    bool turned;
    bool honoured;
    bool foreign;
    struct fly_tuner_report report; /* running */
    struct tuner_carbon carbon;
};

/* tuner_saved.c */

/* What its profile belongs to, and where that is kept. */
void tuner_take_key(struct fly_tuner *tuner, const struct fly_tuner_options *options);
/* Whether the ranks' limits and points are the same; adds up their GPUs. Collective. */
bool tuner_ranks_agree(struct fly_tuner *tuner, double *gpus);
/* Reads a saved profile, and lets it count where every rank has the same. Collective. */
void tuner_take_saved(struct fly_tuner *tuner);
void tuner_save(struct fly_tuner *tuner);

/* tuner_trial.c: looks at the window, tells the search, and takes its next action. Collective. */
void tuner_measured(struct fly_tuner *tuner, struct fly_power_search_action *action);

/* tuner_carbon.c */

/* Whether a tuner with these options may follow the grid; 0 too where it is not to. */
int tuner_carbon_check(const struct fly_tuner_options *options, struct fly_error *out_error);
/* What its search goes by: the plan's own weights are nothing for a choice of one limit. */
struct fly_objective tuner_carbon_objective(const struct fly_tuner_options *options);
/* Collective. */
int tuner_carbon_open(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                      struct carbon_keeper *keeper, struct fly_error *out_error);
/* A step begins: asks the governor if that is due. Whether nothing else is to be done. Collective. */
bool tuner_carbon_step(struct fly_tuner *tuner);
void tuner_carbon_epoch_end(struct fly_tuner *tuner);
/* The search has ended. */
void tuner_carbon_profile(struct fly_tuner *tuner);
/* The next check, or the next question, is a while off; also where the grid is not followed. */
void tuner_carbon_settle(struct fly_tuner *tuner);
/* Whether the search is to end where it is, as the bound leaves no time for more. Collective. */
bool tuner_carbon_has_enough(struct fly_tuner *tuner);
/* Whether the bound leaves time for another search, now that a step takes so long; true where the grid is
 * not followed. Collective. */
bool tuner_carbon_may_search(struct fly_tuner *tuner, double time_s);
void tuner_carbon_close(struct fly_tuner *tuner);

/* tuner_check.c */

void tuner_begin_check(struct fly_tuner *tuner);
/* Begins it again, where it is. */
void tuner_check_anew(struct fly_tuner *tuner);
/* Whether steps take another time than the profile says, and the search is long enough ago. */
bool tuner_has_drifted(const struct fly_tuner *tuner, double time_s);
/* Whether the chosen limit keeps its promise, now that a step took so long. */
bool tuner_is_promise_kept(struct fly_tuner *tuner, double time_s);
/* Chooses a higher one, and checks that. */
void tuner_back_off(struct fly_tuner *tuner);

/* tuner_search.c */

/* A search over all limits, of which those with valid points are known. It refuses what could never choose.
 */
int tuner_search_all(struct fly_tuner *tuner, struct fly_error *out_error);
/* A search over one limit alone: it warms up, and measures across epochs' ends. Collective. */
void tuner_search_one(struct fly_tuner *tuner, size_t place, uint32_t steps);

/* tuner_window.c */

void tuner_window_open(struct fly_tuner *tuner);
/* What the window holds so far, of all ranks; false when tuning has stopped. */
bool tuner_window_look(struct fly_tuner *tuner, struct tuner_window *out_window);
/* Ends it where it was looked at; false when tuning has stopped, as after a few without a figure. */
bool tuner_window_end(struct fly_tuner *tuner, const struct tuner_window *window);
/* A step begins while a window may be open. */
void tuner_window_step(struct fly_tuner *tuner);

/* tuner_turn.c */

/* Sets the limit and reads it back; a fault that shows stops tuning. */
void tuner_turn(struct fly_tuner *tuner, double limit_w);
/* Notes why, and sets the start's limit again. With one rank tuning stops; else at the next exchange. */
__attribute__((format(printf, 3, 4))) void tuner_fault(struct fly_tuner *tuner, enum fly_tuner_reason reason,
                                                       const char *format, ...);
/* Whether the limit stands where it was put; a fault if not. */
bool tuner_check_standing(struct fly_tuner *tuner);
/* Joins the ranks; false when tuning has stopped. */
bool tuner_exchange(struct fly_tuner *tuner, double *sums, size_t sum_count, double *maxima,
                    size_t max_count);
/* Sets the start's limit again if it is ours to. */
void tuner_turn_back(struct fly_tuner *tuner);
/* Whether all ranks go on; they call it at the same step. */
bool tuner_all_go_on(struct fly_tuner *tuner);

/* tuner_meter.c */

/* For an answer with the energy of each device. */
struct fly_measurement tuner_measurement(struct fly_tuner *tuner);
/* The meter's GPUs, and the name of the first, which stays as it is where there is none. */
size_t tuner_count_gpus(const struct fly_meter *meter, const char **out_name);
bool tuner_is_gpu(const struct fly_tuner *tuner, size_t device);
bool tuner_has_energy(const struct fly_device_energy *energy);
/* The GPUs' energies in the meter's answer, and half of their intervals' width; NAN unless all are known. */
double tuner_gpu_energy_j(struct fly_tuner *tuner, double *out_half_j);
/* What was measured of the limit on trial does not count, or has been taken. */
void tuner_window_forget(struct fly_tuner *tuner);
/* Ends an open one whose figures nobody wants. */
void tuner_window_drop(struct fly_tuner *tuner);
/* A stretch of the search's steps, which count for what it costs. */
void tuner_cost_open(struct fly_tuner *tuner);
void tuner_cost_pause(struct fly_tuner *tuner);

/* tuner_progress.c */

/* The hook has nothing to do for so many steps. */
void tuner_rest(struct fly_tuner *tuner, uint64_t steps);
/* A step begins in which there may be something to do. */
void tuner_count_step(struct fly_tuner *tuner);
/* At a step's begin: it is not done. */
struct carbon_progress tuner_progress(const struct fly_tuner *tuner);
/* A limit stands; NAN: none of ours. */
void tuner_carbon_stands(struct fly_tuner *tuner, double limit_w);

/* tuner_looks.c */

/* Which limit is to be measured once more before the choice; false for none. */
bool tuner_next_look(const struct fly_tuner *tuner, size_t *out_place);
uint32_t tuner_look_steps(const struct fly_tuner *tuner);
/* Takes what one visit has measured into the limit's point. */
void tuner_add_visit(struct fly_tuner *tuner, size_t place, const struct tuner_visit *visit);

/* tuner_growth.c */

/* Half width of the energy so far, as a fraction; NAN when that is not known. */
double tuner_energy_error(const struct fly_tuner *tuner, const struct tuner_window *window);
/* For how many more steps than planned the limit on trial is to be measured. */
uint32_t tuner_steps_missing(const struct fly_tuner *tuner, const struct tuner_window *window);

/* tuner_settings.c */

enum { TUNER_SETTING_MAX = 48 };

/* The settings to try, from the options or the turner's range. */
int tuner_take_settings(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                        struct fly_error *out_error);
/* "limit of 250 W", "ceiling of 1200 MHz". */
char *tuner_setting_text(const struct fly_tuner *tuner, double limit_w, char text[TUNER_SETTING_MAX]);
/* Whether two are the same, as drivers take them. */
bool tuner_is_same(const struct fly_tuner *tuner, double one_w, double other_w);

#endif
