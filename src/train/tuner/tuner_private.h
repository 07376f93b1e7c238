/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_TUNER_PRIVATE_H
#define FLYBALL_TRAIN_TUNER_TUNER_PRIVATE_H

#include "device/device.h"
#include "train/carbon/carbon_pace.h"
#include "train/program/step_count.h"
#include "train/program/step_writer.h"
#include "train/tuner/idle_turner.h"
#include "train/tuner/step_record.h"
#include "train/tuner/tuner.h"
#include "train/tuner/tuner_visits.h"

/*
 * The inside of <flyball/tuner.h>. What each file does; a file uses only those below it:
 *
 *     tuner.c                                  the hooks, and the changes of state
 *     tuner_new.c, tuner_saved.c               make a tuner, with the points measured before
 *     tuner_trial.c                            takes the window of the limit on trial
 *     tuner_carbon.c                           follows the grid
 *     tuner_check.c, tuner_search.c            check the chosen limit; measure all limits, or one
 *     tuner_race.c                             carries out the pure race for the best limit
 *     tuner_planned.c                          the limits that a profile needs beside those of other batch
 * sizes tuner_window.c, step_record.c            measures, over all ranks; tells steps from pauses
 *     tuner_knobs.c                            changes from one knob to the other
 *     tuner_turn.c                             turns limits, joins the ranks, and stops at faults
 *     tuner_sides.c                            the knob on trial, and the other one
 *     tuner_meter.c, tuner_progress.c          the meter's figures of this rank; the training's progress
 *     tuner_looks.c, tuner_growth.c, tuner_choice.c, tuner_visits.c
 *                                              decide what is measured again, for how long, which limit wins
 *     tuner_work.c                             waits for work on the GPUs before the first limit
 *     tuner_settings.c, tuner_report.c, tuner_pace.c
 *                                              settings and figures, as the outside sees them
 *
 * The pure search knows only limits in W. In here `limit_w`, also that of a point, is the knob's setting in
 * the knob's own unit: MHz when the knob is the clock. Only tuner_settings.c, which takes settings from
 * outside and words them, and tuner_report.c, which reports them, convert.
 */

/* The steps of the limit on trial. */
struct step_times {
    struct mono_time last; /* when the step under way began */
    bool running;
    uint64_t count;
    double kept, mean_s, squares_s2; /* of the closed windows' steps that are no pauses (Welford) */
};

/* What is known of the windows since the newest search began; of the slowest rank. */
struct tuner_windows {
    double time_s, pause_s, idle_s;
    double idle_known_s; /* time of the windows whose idle_s is known */
    uint64_t pauses;
};

/* What one rank's window says; after the exchange, what the windows of all ranks say together. */
struct tuner_window {
    double energy_j; /* NAN: not known */
    double half_j;   /* half width of the interval that holds the energy */
    double time_s;
    double time_error;
    double scatter;                  /* of single steps, as a fraction, of the rank with the most */
    double whole_s, pause_s, pauses; /* with the pauses, which energy_j and time_s leave out */
    double idle_share;               /* of the whole window, of the GPU with the least; NAN: not known */
    double heat_share, brake_share;
    double capped_share; /* share of time held down by the knob, of the GPU with the least; NAN: not known */
    double least_felt;   /* mean of what the knob bounds (W or MHz), of the GPU with the least */
    double most_felt;    /* the same of the GPU with the most; -INFINITY, INFINITY: not known */
    double enforced_w;   /* the least power limit that a GPU enforces; INFINITY: not known */
    double enforced_most_w; /* the highest; INFINITY also when not all are known */
    bool honoured, interrupted;
};

/*
 * Sums of the closed windows of the limit on trial, over all ranks. An epoch's end splits a measurement into
 * several windows.
 */
struct tuner_parts {
    double energy_j, time_s;
    double half_j2;       /* sum of squares, since the errors at the windows' edges are independent */
    uint32_t extra_steps; /* needed beyond profile_steps */
};

/* A stretch of steps whose energy and time count as the search's cost; ends of epochs are left out. */
struct tuner_cost {
    fly_window window;
    bool open, known;
    uint64_t steps;
    double energy_j, time_s; /* of this rank, in the stretches that are closed */
};

/*
 * A knob that is not on trial: the clock before its turn, or the limit that stands while ceilings are tried
 * under it.
 */
struct tuner_side {
    enum fly_tuner_knob knob;
    const struct fly_turner *turner; /* NULL: there is no other knob, or it may not be turned */
    void *data;
    double start_w, standing_w;
    bool turned, foreign;
    size_t limit_count, chosen;
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
};

/* Following the grid. */
struct tuner_carbon {
    struct carbon_governor *governor; /* owned; NULL: the grid is not followed */
    uint64_t steps;                   /* of the whole training; 0: not known */
    uint64_t due, check_due;      /* at which step the governor is asked next, and the limit checked next */
    struct carbon_progress asked; /* progress when the governor was asked last */
};

/* Which GPUs have work. Where none has, no limit is tried; one that has none does not keep the others
 * waiting. */
enum tuner_work_state {
    TUNER_WORK_NOT_ASKED,
    TUNER_WORK_NONE,
    TUNER_WORK_SOME, /* not all have, and those that have none may follow in a moment */
    TUNER_WORK_FOUND,
};
struct tuner_work {
    enum tuner_work_state state;
    bool held;        /* the first limit waits for it */
    bool may_leave;   /* the turner leaves GPUs alone */
    bool late;        /* one that is left alone has work by now, on any rank */
    bool others;      /* other GPUs are tuned than before */
    uint64_t look_at; /* at which step */
    double every;     /* so many steps; 0: there was no look */
    struct mono_time looked, since;
    bool seen[DEVICES_MAX]; /* of a GPU of this rank; GPUs come first among the devices */
    bool left_alone[DEVICES_MAX];
};

/* The profiles of other batch sizes. */
struct tuner_plan {
    struct fly_power_point points[TUNER_PLAN_POINTS_MAX];
    struct limit_curve curves[LIMIT_CURVES_MAX]; /* into `points` */
    size_t point_count, curve_count;             /* no curves: there is no plan */
    unsigned left;                               /* how many more measurements may begin */
};

struct fly_tuner {
    struct step_count count; /* first, for the hot hook; only a governor needs its epochs */
    uint64_t quiet_until;    /* until so many steps have begun there is nothing to do */
    struct idle_turner
        *idle; /* in front of the turners, if it is not `own_idle`, of whoever made the tuner */
    struct idle_turner own_idle;
    bool interrupted; /* settings were given back while this window was open */
    enum fly_tuner_state state;
    enum fly_tuner_reason reason;
    uint64_t forks;
    struct step_writer steps; /* to the command that tunes instead of this tuner */
    uint64_t epochs_reported;
    struct fly_tuner_options options; /* with defaults filled in; do not use its pointers to text */
    const struct clock *clock;
    struct fly_device_energy *energies; /* buffer for the meter, one entry per device; owned */
    size_t device_count;
    struct own_knobs *knobs; /* NULL: the turner is the caller's */
    struct profile_key key;
    char directory[PROFILE_PATH_MAX]; /* of profiles; "" for none */
    char file[PROFILE_PATH_MAX];      /* profile to reuse; "" for none */

    struct fly_power_search *search; /* over all limits, or over the one that is checked */
    fly_window window;
    bool window_open;
    struct step_times times;
    struct step_record record;      /* of the open window */
    struct step_estimate estimated; /* from it, at the newest look */
    struct tuner_windows windows;
    struct tuner_work work;
    unsigned restarts; /* of the window, since its limit was set */
    struct tuner_parts parts;
    struct tuner_cost cost;

    size_t limit_count;
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX]; /* highest first */
    bool saved[FLY_POWER_SEARCH_LIMITS_MAX];                    /* the point was read from a file */
    double enforced_w[FLY_POWER_SEARCH_LIMITS_MAX]; /* while the point was measured; INFINITY: not known */
    double
        enforced_most_w[FLY_POWER_SEARCH_LIMITS_MAX]; /* the same of the GPU with the most, in this search */
    double scatter[FLY_POWER_SEARCH_LIMITS_MAX]; /* of single steps, in the newest window; 0: not known */
    double felt[FLY_POWER_SEARCH_LIMITS_MAX];    /* of what the knob bounds, by the GPU with the most; NAN */
    struct tuner_visits visits[FLY_POWER_SEARCH_LIMITS_MAX]; /* of this search and of the check after it */
    struct tuner_noise noise;
    size_t at; /* the point on trial */
    size_t chosen;
    double most_felt; /* by a GPU, in the newest window that is not unknown; then whether any was held down */
    bool capped;
    unsigned unknown_windows; /* in a row */
    unsigned spoiled_windows; /* by heat or an outside brake, in a row */
    unsigned broken_checks;   /* in a row */
    uint64_t remeasure_from;  /* no other search begins until so many steps have begun */

    double spent_s, spent_j;  /* by this search so far, on all ranks, without pauses */
    uint64_t spent_steps;     /* steps that the two are of */
    uint64_t searched_at;     /* at which step the search had chosen */
    bool looking;             /* measuring again a limit that was measured before */
    bool confirming;          /* the check is the first of this choice */
    uint32_t window_steps;    /* planned */
    struct tuner_visit check; /* the newest visit of the check; 0 steps: not known */

    double highest_power_w; /* highest power limit of a GPU; 0: not known */
    double start_limit_w;
    double standing_w;        /* what should stand: read back after the last turn */
    double enforced_now_w;    /* what the GPUs made of it, as in a window */
    enum fly_tuner_knob wish; /* options.knob is the knob on trial */
    struct tuner_side other;
    bool is_second;        /* ceilings are on trial, under the limit that was chosen */
    bool refused, proven;  /* setting the knob on trial was refused to this rank; succeeded on all ranks */
    double whole_slowdown; /* the bound on both knobs together, while options.objective has what is left */
    bool every_limit;      /* measure all, leave none out */
    bool races;            /* looks for the best limit alone; else measures from the highest limit down */
    bool racing;           /* that has begun */
    struct tuner_plan plan;
    bool fixed_warmup;     /* the caller says how long */
    uint32_t least_steps;  /* in a window of the race; 0: as many as it needs */
    size_t open_count;     /* the first so many limits may be chosen */
    unsigned failed_looks; /* on end */
    uint64_t look_from;    /* the step with which the newest look began */
    double looks_cost;     /* of all looks when settled, in steps of the chosen limit */
    double level;          /* how much longer steps take now than when the profile was measured */
    bool turned;
    bool honoured;
    bool foreign;
    struct fly_tuner_report report; /* kept up to date */
    struct tuner_carbon carbon;
};

/* tuner_saved.c */

/* Takes what the profile belongs to, and where it is kept. */
void tuner_take_key(struct fly_tuner *tuner, const struct fly_tuner_options *options);
/* Whether the ranks' limits and points are the same; adds up their GPUs. Collective. */
bool tuner_ranks_agree(struct fly_tuner *tuner, double *gpus);
/* Reads a saved profile, and uses it if every rank has the same. Collective. */
void tuner_take_saved(struct fly_tuner *tuner);
void tuner_save(struct fly_tuner *tuner);

/* tuner_trial.c: takes the window's figures, tells the search, and gets its next action. Collective. */
void tuner_measured(struct fly_tuner *tuner, struct fly_power_search_action *action);

/* tuner_knobs.c */

/* Takes the settings of the knobs that were asked for. FLY_EUNSUPPORTED when there are none. */
int tuner_take_knobs(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                     struct fly_error *out_error);
/* Whether ceilings are still to be tried under the chosen limit. */
bool tuner_has_next_knob(const struct fly_tuner *tuner);
/* Lets the chosen limit stand and puts the clock on trial; false when that is not to be done. */
bool tuner_next_knob(struct fly_tuner *tuner);
/* Lifts the ceiling and puts the limit on trial again, if ceilings are. */
void tuner_first_knob(struct fly_tuner *tuner);
/*
 * After a turn to this limit: whether a rank was refused. Then the other knob is on trial, or the limit
 * alone again that stood. Collective.
 */
bool tuner_gives_way(struct fly_tuner *tuner, double limit_w);

/* tuner_sides.c */

/* Exchanges the knob on trial with the other. */
void tuner_swap_knobs(struct fly_tuner *tuner);
/* Whether there is another knob to take in place of one that the driver refuses. */
bool tuner_may_give_way(const struct fly_tuner *tuner);
/* Notes why the knob on trial gives way. */
void tuner_note_refusal(struct fly_tuner *tuner, const char *text);
/* Notes for the report which knob is not turned. */
void tuner_note_knob(struct fly_tuner *tuner, const char *knob, const char *text, const char *instead);

/* tuner_carbon.c */

/* Whether a tuner with these options may follow the grid: 0, also when it is not asked to, or an error. */
int tuner_carbon_check(const struct fly_tuner_options *options, struct fly_error *out_error);
/* The objective of the search: the plan's own weights do not matter for the choice of one limit. */
struct fly_objective tuner_carbon_objective(const struct fly_tuner_options *options);
/* Opens the governor where the grid is to be followed. Collective. */
int tuner_carbon_open(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                      struct carbon_keeper *keeper, struct fly_error *out_error);
/*
 * At a step's begin: asks the governor when that is due. Returns whether nothing else is to be done.
 * Collective.
 */
bool tuner_carbon_step(struct fly_tuner *tuner);
void tuner_carbon_epoch_end(struct fly_tuner *tuner);
/* Hands the governor the profile, once the search has ended. */
void tuner_carbon_profile(struct fly_tuner *tuner);
/*
 * Rests until the next check or the next question to the governor; also used when the grid is not followed.
 */
void tuner_carbon_settle(struct fly_tuner *tuner);
/* Whether the search must end now because the bound leaves no time for more. Collective. */
bool tuner_carbon_has_enough(struct fly_tuner *tuner);
/*
 * Whether the bound leaves time for another search at this step time; true when the grid is not followed.
 * Collective.
 */
bool tuner_carbon_may_search(struct fly_tuner *tuner, double time_s);
void tuner_carbon_close(struct fly_tuner *tuner);

/* tuner_check.c */

void tuner_begin_check(struct fly_tuner *tuner);
/* Begins the check again at the same limit. */
void tuner_check_anew(struct fly_tuner *tuner);
/* Whether the step time has drifted from the profile's, and the last search is long enough ago. */
bool tuner_has_drifted(const struct fly_tuner *tuner, double time_s);
/* Whether the chosen limit keeps its promise with this step time. */
bool tuner_is_promise_kept(struct fly_tuner *tuner, double time_s);
/* Chooses a higher limit, and checks that one. */
void tuner_back_off(struct fly_tuner *tuner);

/* tuner_search.c */

/*
 * Begins a search over all limits, which knows those with valid points. Fails when no choice could ever come
 * of it.
 */
int tuner_search_all(struct fly_tuner *tuner, struct fly_error *out_error);
/* Begins a search over one limit alone, with warm-up; it measures across ends of epochs. Collective. */
void tuner_search_one(struct fly_tuner *tuner, size_t place, uint32_t steps);

/* tuner_race.c */

/* How many steps pass before that limit is measured. */
uint32_t tuner_race_warmup(const struct fly_tuner *tuner, size_t place);
/* How many steps the check of the chosen limit measures. */
uint32_t tuner_race_check_steps(const struct fly_tuner *tuner);
/* Which limit the race measures next, and for how many steps; false when it has settled. */
bool tuner_race_next(const struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps);
/* How many more steps the race wants of the limit on trial, after what was measured so far. */
uint32_t tuner_race_more(struct fly_tuner *tuner, const struct tuner_visit *visit);
/* Notes the step time of a check that was passed, for looks to be compared with. */
void tuner_race_note_level(struct fly_tuner *tuner, double time_s);
/* Adds the newest check or look to its limit's visits: as it would have been when the profile was measured.
 */
void tuner_race_add_check(struct fly_tuner *tuner);
/* Which limit gets another look, if one is worth it and can be afforded; false for none. The look begins. */
bool tuner_race_look(struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps);
/*
 * Which limit the race measures next where the first check of its choice was not passed; false when it has
 * used up its steps. The look begins.
 */
bool tuner_race_resume(struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps);
/* Takes the figures of the look that has ended; returns whether another limit is chosen now. */
bool tuner_race_end_look(struct fly_tuner *tuner);

/* tuner_planned.c */

/* Whether the search measures what a plan says. */
bool tuner_is_planned(const struct fly_tuner *tuner);
/* Which limit the plan measures next; false when the profile is enough. */
bool tuner_plan_next(const struct fly_tuner *tuner, size_t *out_place);

/* tuner_window.c */

void tuner_window_open(struct fly_tuner *tuner);
/* Measures the window so far, over all ranks; false when tuning has stopped. */
bool tuner_window_look(struct fly_tuner *tuner, struct tuner_window *out_window);
/*
 * Ends the window at the last look; false when tuning has stopped, as it does after a few windows without a
 * figure.
 */
bool tuner_window_end(struct fly_tuner *tuner, const struct tuner_window *window);
/* The standard error of the mean time of the closed windows' steps, as a fraction. */
double tuner_times_error(const struct step_times *times);
/* Counts a step's begin while a window may be open. */
void tuner_window_step(struct fly_tuner *tuner);

/* tuner_turn.c */

/* Sets the limit and reads it back; stops tuning when a fault shows. */
void tuner_turn(struct fly_tuner *tuner, double limit_w);
/*
 * Notes the reason, and sets the limit that stood at the start again. With one rank tuning stops at once,
 * else at the next exchange.
 */
__attribute__((format(printf, 3, 4))) void tuner_fault(struct fly_tuner *tuner, enum fly_tuner_reason reason,
                                                       const char *format, ...);
/* Whether the limit still stands as set; if not, that is a fault. */
bool tuner_check_standing(struct fly_tuner *tuner);
/* Joins the ranks' figures; false when tuning has stopped. */
bool tuner_exchange(struct fly_tuner *tuner, double *sums, size_t sum_count, double *maxima,
                    size_t max_count);
/* Sets what stood at the start again, of each knob that this tuner turned; the other, of the one on trial. */
void tuner_turn_back(struct fly_tuner *tuner);
void tuner_turn_one_back(struct fly_tuner *tuner);
/* Whether all ranks go on. All ranks call it at the same step. */
bool tuner_all_go_on(struct fly_tuner *tuner);

/* tuner_meter.c */

/* An empty measurement with room for the energy of each device. */
struct fly_measurement tuner_measurement(struct fly_tuner *tuner);
/* How many GPUs the meter has; stores the first one's name, and leaves it alone when there is none. */
size_t tuner_count_gpus(const struct fly_meter *meter, const char **out_name);
/* Whether it is a GPU that is tuned. */
bool tuner_is_gpu(const struct fly_tuner *tuner, size_t device);
bool tuner_has_energy(const struct fly_device_energy *energy);
/* The GPUs' energy in the meter's answer, and half the width of its interval; NAN unless all are known. */
double tuner_gpu_energy_j(struct fly_tuner *tuner, double *out_half_j);
/*
 * The least power limit that a GPU of this rank enforces, which may be lower than what was asked for;
 * INFINITY when no driver says, or the knob is the clock. Stores the highest; INFINITY unless all say.
 */
double tuner_enforced_w(const struct fly_tuner *tuner, double *out_most_w);
/* Takes from the meter's answer which GPUs had work; returns whether one did that is left alone. */
bool tuner_note_work(struct fly_tuner *tuner);
/* Discards the sums of the limit on trial: they do not count, or were taken already. */
void tuner_window_forget(struct fly_tuner *tuner);
/* Ends an open window whose figures are not needed. */
void tuner_window_drop(struct fly_tuner *tuner);
/* Begins and ends a stretch of steps that counts as the search's cost. */
void tuner_cost_open(struct fly_tuner *tuner);
void tuner_cost_pause(struct fly_tuner *tuner);

/* tuner_work.c */

/* Looks whether the GPUs have work, if it is time to. Collective. */
enum tuner_work_state tuner_ask_work(struct fly_tuner *tuner);
/* "GPU 0 had no work" */
void tuner_work_text(const struct fly_tuner *tuner, char text[FLY_TUNER_TEXT_MAX]);

/* tuner_progress.c */

/* Tells the hook that there is nothing to do for so many steps. */
void tuner_rest(struct fly_tuner *tuner, uint64_t steps);
/* Counts a step in which there may be something to do. */
void tuner_count_step(struct fly_tuner *tuner);
/* The training's progress at a step's begin; that step is not done yet. */
struct carbon_progress tuner_progress(const struct fly_tuner *tuner);
/* Tells the governor which limit stands; NAN: none that this tuner set. */
void tuner_carbon_stands(struct fly_tuner *tuner, double limit_w);

/* tuner_looks.c */

/* Which limit to measure once more before the choice; false for none. */
bool tuner_next_look(const struct fly_tuner *tuner, size_t *out_place);
uint32_t tuner_look_steps(const struct fly_tuner *tuner);
/* Adds one visit's measurement to the limit's point. */
void tuner_add_visit(struct fly_tuner *tuner, size_t place, const struct tuner_visit *visit);
/* Sets a limit's visits and its point, as they were before one was added. */
void tuner_set_visits(struct fly_tuner *tuner, size_t place, const struct tuner_visits *visits,
                      const struct fly_tuner_point *point);

/* tuner_growth.c */

/* What the limit on trial was measured to be so far, with this window. */
struct tuner_visit tuner_visit_so_far(const struct fly_tuner *tuner, const struct tuner_window *window);
/* Half width of the energy measured so far, as a fraction; NAN when not known. */
double tuner_energy_error(const struct fly_tuner *tuner, const struct tuner_window *window);
/*
 * Whether the first steps of a window of the race took another time than the others, so that it has to begin
 * anew. Collective.
 */
bool tuner_is_unsettled(struct fly_tuner *tuner);
/* How many more steps than planned the limit on trial must be measured. */
uint32_t tuner_steps_missing(struct fly_tuner *tuner, const struct tuner_window *window);

/* tuner_settings.c */

enum { TUNER_SETTING_MAX = 48 };

/* Takes the settings to try from the options or from the turner's range. */
int tuner_take_settings(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                        struct fly_error *out_error);
/* "250 W", "1200 MHz", "MAX_Q". */
char *tuner_value_text(const struct fly_tuner *tuner, double limit_w, char text[TUNER_SETTING_MAX]);
/* "limit of 250 W", "ceiling of 1200 MHz", "profile MAX_Q". */
char *tuner_setting_text(const struct fly_tuner *tuner, double limit_w, char text[TUNER_SETTING_MAX]);
/* Whether two settings are the same to a driver. */
bool tuner_is_same(const struct fly_tuner *tuner, double one_w, double other_w);

#endif
