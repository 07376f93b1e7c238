/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_HISTORY_H
#define FLYBALL_JOB_PAST_HISTORY_H

#include <flyball/operating_point.h>

#include "job/core/job_backend.h"

/*
 * What a job's log tells, read through whichever back end keeps it. Costs a pass over
 * the log, so it is for people and reports; decisions never ask here. Everything that
 * is returned stands in the arena.
 */

/* One kind of hardware of the job, in the order of first use. */
struct job_machine {
    const char *gpu_model;
    uint32_t gpu_count;
    uint32_t world_size;
    uint64_t gpu_memory_bytes;
    double max_power_w;     /* all GPUs' highest limits; NAN: unknown */
    double highest_limit_w; /* of one GPU; NAN: limits cannot be set */
};

/* One trial. */
struct job_row {
    uint64_t trial;
    uint32_t attempts;
    uint64_t recurrence;
    uint32_t try_number;
    bool running;
    bool late;                  /* it had expired, and ended after all */
    enum trial_outcome outcome; /* unless it runs */
    enum job_stop stop;         /* that ended it; none: somebody told */
    enum reason reason;
    size_t machine; /* index into job_history.machines */
    uint32_t batch_size;
    double limit_w;  /* NAN: not known, or not set */
    bool profiled;   /* it measured a power profile or a part of one, so it ran under several limits */
    bool left_alone; /* it was to, and measured none: it ran at the limit that stood, where a search begins */
    uint32_t epochs;
    double metric;   /* the last one; NAN: none */
    double energy_j; /* up to the target, or to the end: what decides; NAN: not known */
    double time_s;
    double cost_j;       /* of these, by the objective that holds now */
    double run_energy_j; /* of the whole run; the same until it is closed */
    double run_time_s;
    double reference_per_kwh; /* frozen with its end, of one that runs the newest reported; NAN: not known */
    double grid_amount;       /* grams or money (job_counts_money) of energy_j by it; NAN */
    double run_grid_amount;   /* of run_energy_j */
    int64_t proposed_us;
    int64_t ended_us;                  /* 0 while it runs */
    const char *user, *account, *host; /* of the newest attempt; "": unknown */
    const char *gpus;                  /* their UUIDs, with commas */
    const char *text;                  /* of its end; "": none */
};

struct job_history {
    struct job_definition definition;
    struct fly_objective objective; /* that holds now */
    uint32_t pin_batch_size;        /* 0: none */
    double pin_limit_w;             /* NAN: the profile's best */
    int64_t wanted_us;              /* when another objective or pin was set last; 0: never */
    uint64_t wanted_from;           /* trials from this number on were chosen by what holds now */
    double reference_per_kwh;       /* that was frozen last; NAN: none was */
    struct job_machine *machines;
    size_t machine_count;
    struct job_row *rows; /* in the order of trials */
    size_t count;
};

/*
 * The limit of each GPU that a trial ran under: where nothing set one, the highest, and where limits cannot
 * be set, what the driver says. NAN where that is not known.
 */
double job_history_limit_w(const struct job_history *history, const struct job_row *trial);

int job_history_read(const struct jobs *jobs, const char *job, struct arena *arena,
                     struct job_history *out_history, struct fly_error *out_error);

/* Why a trial was chosen (0: the newest one): a sentence, and its numbers as JSON. */
struct job_explanation {
    uint64_t trial;
    enum reason reason;
    const char *sentence;
    const char *numbers; /* "{}" when none were recorded */
};

int job_explain(const struct jobs *jobs, const char *job, uint64_t trial, struct arena *arena,
                struct job_explanation *out_explanation, struct fly_error *out_error);

/*
 * The job's operating points on one machine: for each batch size and power limit the
 * mean time and energy of the trials that reached the target there and measured no
 * profile, with the number of trials in the same order. For fly_pareto_frontier.
 */
struct job_points {
    struct fly_operating_point *points;
    uint64_t *trials;
    size_t count;
};

int job_history_points(const struct job_history *history, size_t machine, struct arena *arena,
                       struct job_points *out_points, struct fly_error *out_error);

/* What all trials came to that have ended, each by its own reference. */
struct job_grid_sum {
    double amount;           /* of the known; NAN where there is none */
    uint64_t known, unknown; /* trials; those without energy are none of either */
};
struct job_grid_sum job_history_grid_sum(const struct job_history *history);

/* Where text goes; 0 or a negative code. */
typedef int job_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

/*
 * The log, one JSON object a line, as `import` takes it:
 *
 *     {"number": 1, "time_us": 1700000000000000, "kind": "defined", "trial": 0, "key": "", "body": {...}}
 */
int job_export(const struct jobs *jobs, const char *job, job_sink *sink, void *context,
               struct fly_error *out_error);

#endif
