/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_STATEMENT_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "grid/grid_account.h"
#include "policy/carbon/carbon_hull.h"
#include "train/account/carbon_ledger.h"

/*
 * What a run used, emitted and cost, compared with what it would have at the highest limit, at the best
 * single limit and at the best constant speed within the same bound. It is computed from the run's ledgers
 * (one per rank) and the grid's figures.
 *
 *     const struct statement_request request = {&content, 1, {&intensities, NULL}, {NAN, NAN}};
 *     struct carbon_statement statement;
 *
 *     carbon_statement_make(&request, &arena, &statement, out_error);
 *     ... statement.ways[STATEMENT_AS_RUN].energy_j[STATEMENT_ALL] ...
 *
 * `as run` is measured: each slice's energy at the grid's figures of its own time. The other ways are
 * estimated from the measured profile. They start when the run did. Each slice is run again at the other
 * limit: its time is multiplied by the ratio of the profile's times at the two limits, its energy by the
 * ratio of the profile's energies. Slices follow one another, so a faster run meets earlier hours of the
 * grid. That equals the profile's power scaled by measured over modelled energy, which is reported
 * (`measured_per_modelled`). Some slices are the same in all ways: those in which no step began although
 * steps are counted, and those whose limit is not known or not covered by the profile (between two points the
 * profile is a straight line). `modelled_share` is the share of the other slices. A slice at 0 W is a pause,
 * and only in the run.
 *
 * The highest limit is that of the profile; the bound is relative to the profile's fastest limit. The best
 * constant speed is a mixture of two limits that alternate all the time, since one limit rarely uses the
 * bound up. `by the limit` is what that mixture saves against the highest limit, `by the grid` what the run
 * saves beyond it; both may be negative. Savings in grams or money are unknown when a part of either energy
 * has no figure of the grid.
 *
 * Pure but for memory: everything returned is in the arena.
 */
enum statement_way { STATEMENT_AS_RUN, STATEMENT_HIGHEST, STATEMENT_STATIC, STATEMENT_MIX, STATEMENT_WAYS };

/* PUE: what the site uses beyond the machines. */
enum statement_part { STATEMENT_GPUS, STATEMENT_HOST, STATEMENT_PUE, STATEMENT_ALL, STATEMENT_PARTS };

enum statement_host {
    STATEMENT_HOST_LEFT_OUT, /* neither stated nor measured: not included anywhere */
    STATEMENT_HOST_STATED,   /* W * time */
    STATEMENT_HOST_MEASURED, /* CPU and memory, as far as measured */
};

struct statement_figures {
    bool known;                                     /* false: everything below is NAN or 0 */
    double limit_w;                                 /* NAN: several */
    double start_s, end_s;                          /* since 1970 */
    double time_s;                                  /* of all slices; with several ranks the longest */
    double energy_j[STATEMENT_PARTS];               /* of what was measured; NAN: nothing was */
    double amount[CARBON_SIGNALS][STATEMENT_PARTS]; /* grams, money; of the energy with a figure; NAN: none */
    double share[CARBON_SIGNALS][GRID_QUALITY_COUNT]; /* of the energy, 0 .. 1, by its figure's quality */
    double unmeasured_s;                              /* time whose GPU energy is not known */
};

/* What is saved; negative: the run used more. NAN: not known. */
struct statement_saving {
    double energy_j, time_s;
    double amount[CARBON_SIGNALS];
};

/* One period of the grid, or one hour when the grid has no figure. */
struct statement_period {
    int64_t start_s, end_s;
    double value[CARBON_SIGNALS]; /* NAN: not known */
    enum grid_quality quality[CARBON_SIGNALS];
    double limit_w; /* mean over the time for which it is known; NAN: never */
    double first_limit_w, last_limit_w;
    double limit_s; /* that time */
    double time_s;  /* of the slices in it, on the first rank */
    double steps;
    double energy_j[STATEMENT_PARTS];
    double amount[CARBON_SIGNALS]; /* of all energy */
};

struct statement_request {
    const struct ledger_content *ledgers; /* of one run; the first profile found is used */
    size_t ledger_count;
    const struct grid_answer *answers[CARBON_SIGNALS]; /* settled; NULL: no figures */
    double yearly_means[CARBON_SIGNALS];               /* NAN: none */
};

enum { STATEMENT_TEXT_MAX = 256 };

struct carbon_statement {
    struct statement_figures ways[STATEMENT_WAYS];
    struct statement_saving saved;                 /* by the run, against the highest limit */
    struct statement_saving by_limit;              /* of that, by the lower limit alone */
    struct statement_saving by_grid;               /* of that, by following the grid */
    const struct grid_kind *kinds[CARBON_SIGNALS]; /* borrowed from the answers; NULL: none */
    enum statement_host host;
    double pue;
    double bound;                 /* allowed time over that at the fastest limit: 1.03 */
    double modelled_share;        /* of the GPUs' energy, how much the profile models; 0 .. 1 */
    double measured_per_modelled; /* ratio for that energy; NAN */
    struct carbon_mix mix;        /* the best constant speed, if known; powers of the GPUs alone */
    uint32_t gpus;
    uint32_t changes; /* of the limit, on the first rank */
    bool planned;     /* `as run` is a plan, and nothing was measured; set by the maker of the plan */
    bool torn;        /* a ledger's last line is incomplete */
    char missing[STATEMENT_TEXT_MAX]; /* why there is nothing to compare with; "" when there is */
    const struct statement_period *periods;
    size_t period_count;
};

/* The time for which figures of the grid are needed; false when no slice has a plausible time. */
bool carbon_statement_span(const struct statement_request *request, int64_t *out_from_s, int64_t *out_to_s);

/*
 * Makes the statement. Returns FLY_EDATA when no ledger has a slice or their times lie ten years apart,
 * FLY_ELIMIT, FLY_ENOMEM.
 */
int carbon_statement_make(const struct statement_request *request, struct arena *arena,
                          struct carbon_statement *out_statement, struct fly_error *out_error);

/* "as run", "highest limit", "best single limit", "best mixture"; "GPUs", ...; static texts. */
const char *statement_way_name(enum statement_way way);
const char *statement_part_name(enum statement_part part);

#endif
