/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_H
#define FLYBALL_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>
#include <flyball/export.h>
#include <flyball/objective.h>
#include <flyball/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The simulator: recurring training jobs replayed from recorded traces, through the same decisions as live
 * jobs. Every call here does what the command `flyball sim` of that name does, and gives the same figures.
 *
 *     const struct fly_sim_policy policies[] = {{.name = "zeus"}, {.name = "bayes"}};
 *     const struct fly_sim_options options = {
 *         .size = sizeof options,
 *         .traces = "traces", .gpu_model = "v100",
 *         .policies = policies, .policy_count = 2,
 *     };
 *     struct fly_sim_table *rows;
 *     struct fly_sim_column column = {.size = sizeof column};
 *
 *     if (fly_sim_run_jobs(&options, &rows, NULL, &error) < 0)
 *         ...
 *     for (size_t i = 0; fly_sim_table_column(rows, i, &column) == 0; i++)
 *         printf("%s: %s\n", column.key, column.help);
 *     fly_sim_table_free(rows);
 *
 * Equal options give equal tables, on any number of threads. Calls are independent of each other, so any
 * thread may make them, several at once. They read files, and take from milliseconds to hours.
 */

/* A job of the traces that is none of the six of the Zeus paper, or differs from the one of its name. */
struct fly_sim_job {
    size_t size;      /* sizeof(struct fly_sim_job) */
    const char *name; /* texts and lists are the caller's, for the length of the call */
    const char *dataset, *network, *optimizer; /* of its rows in the traces; dataset NULL: the name */
    double target_metric;                      /* exactly as in the traces */
    uint32_t max_epochs;                       /* after which a try has failed, >= 1 */
    uint32_t default_batch_size;               /* today's, from which the search starts */
    const uint32_t *batch_sizes;               /* to choose from, each once */
    size_t batch_count;                        /* 0: all that the traces have */
    const char *untold; /* what a trace has no words for, so that in_order is refused; NULL: nothing */
};

/*
 * A policy: a built-in one by its name, a plug-in by its path (with a slash, or ending in .so), or a table of
 * the caller's own, which is as that of a plug-in (plugin.h) but for two things: its `data` comes with each
 * struct fly_batch_job, and its functions are called on the calling thread alone. Then so is everything else:
 * `threads` is not looked at.
 *
 * Built in are bandit, bayes, default, grid, hill-climb, zeus, zeus-one-round and oracle. A value type: its
 * layout never changes.
 */
struct fly_sim_policy {
    const char *name; /* or path; not looked at with a table, which has a name */
    const struct fly_batch_policy *table;
    void *data;
};

/* What to simulate, and how. 0 and NULL are the defaults of the command line; borrowed for the call. */
struct fly_sim_options {
    size_t size; /* sizeof(struct fly_sim_options) */

    /* The jobs. */
    const char *traces;                  /* directory with summary_train.csv and summary_power_GPU.csv */
    const char *gpu_model;               /* GPU in that name, as v100 */
    const struct fly_sim_job *described; /* jobs that are known besides those of the paper */
    size_t described_count;
    const char *const *jobs; /* names of those to simulate, each once */
    size_t job_count;        /* 0: all known ones that the traces have */

    /* What they make small, and which policies search for it. Default and oracle are always simulated too. */
    const struct fly_objective *objective; /* NULL: cost with eta 0.5 and no bound */
    const struct fly_sim_policy *policies;
    size_t policy_count;      /* 0: zeus; to compare zeus, bayes, zeus-one-round, hill-climb and bandit */
    const char *power_policy; /* path of a plug-in that chooses limits from profiles; NULL: least cost */
    double beta;           /* a try stops at this multiple of the least cost so far; infinity: never; 0: 2 */
    uint32_t window;       /* newest observations of a batch size that count; 0: all */
    const char *generator; /* of random numbers: NULL: "philox", or "numpy" as the published code */
    const char *guard;     /* who gives way while a search grows dear: NULL: "policy", or "on", "off" */
    double profile_window; /* share of a first epoch that a profile takes, up to 1; 0: as the command does */

    /* The histories. */
    const uint32_t *seeds; /* each is one history of every job, each once */
    size_t seed_count;     /* 0: 1 to 20; of groups 1, and to compare 1 to 200 */
    uint64_t recurrences;  /* 0: of each job twice its batch sizes times its power limits */
    const char *drift;     /* of the epochs needed: NULL: "none", or "shift", "jump" .. as in the command */
    const char *transfer_from; /* what policies that learn from elsewhere bring: a GPU or a job of the traces,
                                  "eta=0.9" or "shift=2", as the command has it; NULL: nothing */
    uint64_t transfer_recurrences; /* there; 0: 30; at most 1e6 */
    bool in_order;                 /* recorded runs come as they were recorded; otherwise they are drawn */
    bool overlapping;              /* policies reckon with recurrences that overlap */
    int bootstrap; /* how often the recorded runs are drawn anew for a standard error, at most 2000; 0 and
                      below: never */

    /* The run. */
    unsigned threads; /* 0: one for each processor; at most 256 */
    /* Called by the calling thread, about ten times a second, with simulations; what is not 0 gives the run
       up, which is FLY_ESTATE. NULL: nothing is. */
    int (*progress)(void *data, uint64_t done, uint64_t total);
    void *progress_data;
    /* Takes remarks on what was left out, on the calling thread; NULL: nobody does. */
    void (*note)(void *data, const char *text);
    void *note_data;
};

/* A result: columns of equal length, immutable; any thread may read it until it is freed. */
struct fly_sim_table;

enum fly_sim_type { FLY_SIM_TEXT, FLY_SIM_WHOLE, FLY_SIM_REAL };

/* A column. All is the table's, until it is freed. Exactly one of the three lists is there. */
struct fly_sim_column {
    size_t size;      /* sizeof(struct fly_sim_column), set by the caller */
    const char *key;  /* "energy_j", as in the command's JSON */
    const char *unit; /* "J"; NULL: none */
    const char *help; /* one sentence */
    enum fly_sim_type type;
    const char *const *texts;   /* NULL where unknown */
    const int64_t *wholes;      /* 0 where unknown: look at `unknown` */
    const double *reals;        /* NaN where unknown */
    const char *const *unknown; /* of each row why it is not known, NULL where it is; NULL: all is known */
};

/* Returns how many rows it has; 0 of NULL. */
FLY_API size_t fly_sim_table_rows(const struct fly_sim_table *table);

/* Gives the column at `place`, from 0. FLY_ENOTFOUND behind the last. */
FLY_API int fly_sim_table_column(const struct fly_sim_table *table, size_t place,
                                 struct fly_sim_column *out_column);

/* Frees it; NULL is allowed. */
FLY_API void fly_sim_table_free(struct fly_sim_table *table);

/*
 * Simulates jobs as `flyball sim job` does: a row for each job and policy, with the figures of the last five
 * recurrences and of the whole run against the default, as mean, standard error, p10 and p90 over the seeds.
 *
 * out_tries  also every try of the policies that were named, in the order of jobs, policies, seeds and
 *            recurrences, with the columns of its --tries file; NULL: they are not kept. A try takes about
 * 100 bytes; FLY_ELIMIT above 16 million of them.
 *
 * FLY_EUSAGE for options out of range; FLY_ENOTFOUND for a job, a policy or a file that is not there;
 * FLY_EDATA for traces that cannot be read, and for a policy that answers wrongly; FLY_ESTATE when it was
 * given up; FLY_ELIMIT, FLY_ENOMEM, and those of a plug-in's loading. A search that ends early is a result.
 */
FLY_API int fly_sim_run_jobs(const struct fly_sim_options *options, struct fly_sim_table **out_rows,
                             struct fly_sim_table **out_tries, struct fly_error *out_error);

/*
 * Finds the energy-time frontier of one job as `flyball sim pareto --all` does: a row for each batch size and
 * power limit with its expected time and energy, and whether it is on the frontier, the default, or the best
 * for the objective. Only the jobs and the objective are looked at, and `note`, which is told of the batch
 * sizes that are left out. FLY_EEXHAUSTED if the job reaches its target with no batch size, or no choice
 * keeps the bound; FLY_EUSAGE for more than one job; otherwise errors as above.
 */
FLY_API int fly_sim_pareto(const struct fly_sim_options *options, struct fly_sim_table **out_rows,
                           struct fly_error *out_error);

/*
 * Simulates groups of overlapping submissions as `flyball sim group` does: a row for each workload and
 * policy, and one for all workloads together. `groups` is a CSV file with the columns group, start_time,
 * end_time, dataset and runtime_ratio, which name the jobs; `jobs`, `recurrences`, `drift`, `in_order`,
 * `overlapping` and `bootstrap` are not looked at. With the generator "numpy" and no seeds each group's seed
 * is the Adler-32 of its name, as in the published code.
 *
 * out_tries  every try of the policies that were named, as of fly_sim_run_jobs, with the column group after
 *            gpu: `recurrence` is the submission, energy, time and cost are times its runtime_ratio, and the
 *            tries of a group stand in the order in which they end; NULL: they are not kept
 *
 * FLY_EUSAGE for an objective other than a cost without a bound; FLY_EDATA for a file that cannot be read;
 * otherwise errors as of fly_sim_run_jobs.
 */
FLY_API int fly_sim_run_groups(const struct fly_sim_options *options, const char *groups,
                               struct fly_sim_table **out_rows, struct fly_sim_table **out_tries,
                               struct fly_error *out_error);

/* What is compared, besides the options. 0 and NULL are the defaults of the command line. */
struct fly_sim_comparison {
    size_t size;                   /* sizeof(struct fly_sim_comparison) */
    const char *const *gpu_models; /* in place of options.gpu_model */
    size_t gpu_count;              /* 0: all that the traces have */
    const char *const *synthetic;  /* kinds of synthetic jobs: smooth, noisy, cliff, bumpy, flat, far */
    size_t synthetic_count;        /* 0: all six */
    int synthetic_jobs;            /* of each kind, at most 200; below 0: none; 0: 10 */
    const char *against;           /* policy that the others are compared with; NULL: the first */
    const uint32_t *horizons;     /* recurrences after which figures are taken; the last ends the histories */
    size_t horizon_count;         /* at most 16; 0: 10, 25, 50 and 100 */
    const char *const *scenarios; /* what happens to the jobs, as the command has them; "all" alone: each */
    size_t scenario_count;        /* 0: steady */
    bool each;                    /* every job has rows of its own too */
};

/*
 * Judges policies side by side over many jobs as `flyball sim compare` does: a row for each scenario, set of
 * jobs, horizon and policy. Without `traces` there are the synthetic jobs alone. `recurrences`, `drift`,
 * `in_order`, `overlapping` and `bootstrap` are not looked at; a `profile_window` of 0 is 1. Errors as of
 * fly_sim_run_jobs.
 */
FLY_API int fly_sim_compare(const struct fly_sim_options *options,
                            const struct fly_sim_comparison *comparison, struct fly_sim_table **out_rows,
                            struct fly_error *out_error);

#ifdef __cplusplus
}
#endif

#endif
