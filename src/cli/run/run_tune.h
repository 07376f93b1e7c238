/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_TUNE_H
#define FLYBALL_CLI_RUN_RUN_TUNE_H

#include <jansson.h>

#include <flyball/meter.h>
#include <flyball/power_search.h>
#include <flyball/tuner.h>

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "cli/kit/progress.h"
#include "cli/options/knob_options.h"
#include "cli/program/child.h"
#include "cli/program/python_hook.h"
#include "train/carbon/carbon_keeper.h"
#include "train/program/step_lines.h"
#include "train/tuner/idle_turner.h"
#include "train/tuner/knob_turner.h"
#include "train/tuner/saved_profile.h"
#include "train/tuner/workload_setting.h"

/*
 * The tuning half of `flyball run --tune`, and of `flyball profile`, which measures every limit
 * and chooses none.
 *
 *     result = run_tune_read(call, &tune, out_error);    or run_tune_profile
 *     run_tune_prepare(&tune);              before the program is forked
 *     child_fork(...);
 *     run_tune_forked(&tune);
 *     ... open devices and meter, start the program ...
 *     run_tune_wait(&tune, &child);         in place of child_wait
 *     run_tune_end(&tune);                  turns back
 *     run_tune_text(&tune, out);
 *
 * Nothing is opened or set before the first step comes. Every failure becomes a sentence in the
 * report. Large: keep it in static storage.
 */
enum { RUN_TUNE_TEXT_MAX = 1024 };

struct run_tune {
    bool wanted;
    bool every_limit;         /* measures a profile: leaves out no limit, and ends after the last one */
    enum fly_tuner_knob wish; /* which knob is to be turned */
    struct fly_objective objective;
    uint32_t profile_steps;
    double energy_tolerance;
    const char *profile_directory, *profile_file, *job_name; /* borrowed, or NULL */
    uint64_t batch_size;                                     /* 0: not given */
    struct knob_options knob_options;
    char readonly_path[CLI_READONLY_MAX];
    struct step_lines lines;
    bool no_hook;
    struct python_hook hook;
    struct status_line status;

    /* For following the grid. */
    const struct fly_carbon_options *carbon; /* borrowed; NULL: not followed */
    struct carbon_keeper *keeper;            /* borrowed: the account's */
    uint64_t epochs;                         /* of the whole training; 0: not given */
    uint64_t epochs_done, steps_done;        /* whole epochs so far, and the steps in them */
    uint64_t steps_told;                     /* passed to the tuner; the others were missed */
    uint64_t steps_kept;                     /* passed to the account */

    const struct device *gpus[DEVICES_MAX]; /* borrowed */
    size_t gpu_count;
    struct fly_meter *meter; /* borrowed */
    bool tried;              /* to open the knob; happens at the first step */
    bool epoch_open, epoch_wanted;
    struct knob *knob;
    struct knob_turner turner;
    struct idle_turner idle; /* in front of the turners, once there is a tuner */
    uint64_t steps_seen;     /* that the program reported, for `idle` */
    double give_back_s;      /* as in struct idle_options */
    struct fly_tuner *tuner;

    /* The results. */
    char off[RUN_TUNE_TEXT_MAX]; /* why tuning never began, or ended early; "" if neither */
    char summary[FLY_TUNER_SUMMARY_MAX], next[FLY_TUNER_SUMMARY_MAX]; /* as the tuner said at its end */
    int off_code;
    bool over;              /* a profile is measured or given up: the previous settings are back */
    struct profile_key key; /* of the points */
    bool reported;
    struct fly_tuner_report report;
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    int profiles[FLY_POWER_SEARCH_LIMITS_MAX];      /* of the points */
    double enforced_w[FLY_POWER_SEARCH_LIMITS_MAX]; /* at each point; NAN: not known */
    size_t point_count;
    struct knob_report knob_reports[DEVICES_MAX];
    bool knob_opened;
    struct fly_carbon_report carbon_report; /* size 0: there is none */
};

extern const struct cli_options run_tune_options;
enum fly_objective_kind run_tune_objective(const struct cli_call *call);
const char *run_tune_objective_name(enum fly_objective_kind kind);
extern const char *const run_tune_profile_knobs[]; /* of `flyball profile` */

/* Whether steps are looked for in the program. */
#define RUN_TUNE_OPTION_NO_HOOK(before)                                                             \
    {                                                                                               \
        .name = "no-hook", .type = CLI_FLAG,                                                        \
        .help = before "leave PYTHONPATH alone: only lines that the program writes are its steps. " \
                       "Otherwise a start-up "                                                      \
                       "module finds the steps of a PyTorch program by itself."                     \
    }

/* The least length of a window. */
#define RUN_TUNE_OPTION_TOLERANCE(before)                                                               \
    {                                                                                                   \
        .name = "energy-tolerance", .type = CLI_REAL, .placeholder = "SHARE", .minimum = 0,             \
        .above_minimum = true, .maximum = 1, .default_text = "0.04",                                    \
        .help = before                                                                                  \
            "measure on, for ten seconds at most, while the energy may be off by more than this share " \
            "of it; larger is shorter and coarser."                                                     \
    }

/* What a saved profile belongs to, besides the GPUs; the --job of `flyball run` means more than this. */
#define RUN_TUNE_OPTION_JOB(before)                             \
    {                                                           \
        .name = "job", .type = CLI_TEXT, .placeholder = "NAME", \
        .help = before "name of the job in saved profiles."     \
    }
#define RUN_TUNE_OPTION_BATCH_SIZE(before)                                           \
    {                                                                                \
        .name = "batch-size", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, \
        .maximum = 4294967295.0, .help = before "its batch size in saved profiles."  \
    }
/* clang-format on */

/* Reads the call's options. FLY_EUSAGE for an invalid bound, and for options of --tune without it. */
int run_tune_read(const struct cli_call *call, struct run_tune *out_tune, struct fly_error *out_error);

/* Reads the options of a profile: its steps, its bound and eta for the selectors, and the key. */
int run_tune_profile(const struct cli_call *call, struct run_tune *out_tune, struct fly_error *out_error);

void run_tune_prepare(struct run_tune *tune);
void run_tune_forked(struct run_tune *tune);

/*
 * Waits until the program has ended, and tunes meanwhile. `meter` NULL: nothing is measured, so
 * nothing is tuned. It also returns when a profile is over; then call it again.
 */
void run_tune_wait(struct run_tune *tune, struct child *child, const struct device_list *list,
                   struct fly_meter *meter);

/* Restores everything and stores the reports' figures. Call it before the meter is closed. */
void run_tune_end(struct run_tune *tune);

/* Returns which knob was turned, or was to be. */
enum fly_tuner_knob run_tune_knob(const struct run_tune *tune);
/* Returns the point that was chosen; NULL while there is none. */
const struct fly_tuner_point *run_tune_chosen(const struct run_tune *tune);
/* Returns what the profile promises, as a factor; NAN if it promises nothing. */
double run_tune_promised(const struct run_tune *tune, const struct fly_tuner_point *chosen);

/* Writes the current state in a line of at most STATUS_TEXT_MAX bytes for a terminal. */
void run_tune_status(const struct run_tune *tune, char text[STATUS_TEXT_MAX]);

/* Writes the sentence that the report begins with, and its line; `brief`: and a line or two more. */
void run_tune_answer(const struct run_tune *tune, bool brief, struct buffer *out);
/* Write the lines of the report for people, and the member "tune" for programs. */
void run_tune_text(const struct run_tune *tune, struct buffer *out);
/* Writes the part about what is set on the GPUs now. */
void run_tune_put_back_text(const struct run_tune *tune, const char *indent, struct buffer *out);
json_t *run_tune_json(const struct run_tune *tune);

#endif
