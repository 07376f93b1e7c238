/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "grid/outlook.h"
#include "model/energy_slice.h"
#include "policy/carbon/carbon_hull.h"

/*
 * The energy of one run over time, on disk as it is used: a file for each run in
 * $XDG_STATE_HOME/flyball/carbon, else ~/.local/state/flyball/carbon, of lines of JSON.
 * The first says what ran and where the grid's figures come from, then come slices
 * (model/energy_slice.h) and power profiles, in the order in which they came. Nothing in it is
 * ever changed, and no gram stands in it: those are computed from it whenever they are asked for.
 *
 *     carbon_ledger_create(&ledger, NULL, &head, out_error);
 *     carbon_ledger_slice(&ledger, &slice, out_error);      on disk when it returns 0
 *     carbon_ledger_close(&ledger);
 *
 * What a crash leaves of a last line is not read. Names of files begin with the start in UTC.
 * One thread at a time.
 */
enum { LEDGER_TEXT_MAX = 256, LEDGER_PATH_MAX = 512, LEDGER_FILE_MAX = 256 << 20 };

/* The bound of whoever states neither one nor a time to finish by, as <flyball/carbon.h> says. */
extern const double carbon_usual_slowdown;

struct ledger_head {
    char run[LEDGER_TEXT_MAX]; /* "" where it has no name */
    char job[LEDGER_TEXT_MAX];
    char host[LEDGER_TEXT_MAX];
    char program[LEDGER_TEXT_MAX];                 /* "flyball run", "session", or the program's own */
    char sources[CARBON_SIGNALS][LEDGER_TEXT_MAX]; /* "" for none */
    struct carbon_objective objective;
    struct carbon_surroundings surroundings; /* host_w 0: not stated */
    double max_slowdown;                     /* a factor; NAN: none */
    int64_t finish_by_s;                     /* since 1970; 0: none */
    uint64_t steps;                          /* of the whole training; 0: not known */
    int64_t start_s;                         /* since 1970 */
    uint32_t gpus;
    uint32_t rank;
};

struct carbon_ledger {
    int file; /* -1: none */
    uint64_t forks;
    char path[LEDGER_PATH_MAX];
};

/*
 * Makes the directory and the file, whose name is new. `directory` NULL: the user's own; a pue below 1
 * is written as 1. FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND, FLY_ELIMIT, FLY_ENOMEM, FLY_EUSAGE for numbers out
 * of range. Of the two below also FLY_ESTATE, where it is not open or after a fork; after another
 * error nothing of the line stands in the file, and it may be tried again.
 */
int carbon_ledger_create(struct carbon_ledger *ledger, const char *directory, const struct ledger_head *head,
                         struct fly_error *out_error);
int carbon_ledger_slice(struct carbon_ledger *ledger, const struct energy_slice *slice,
                        struct fly_error *out_error);
/* Time of a point is that of one step. */
int carbon_ledger_profile(struct carbon_ledger *ledger, const struct fly_power_point *points, size_t count,
                          struct fly_error *out_error);
/* Harmless on one that was not made, and after a fork. */
void carbon_ledger_close(struct carbon_ledger *ledger);

/* All that a file says; arrays stand in the arena. */
struct ledger_content {
    struct ledger_head head;
    struct energy_slice *slices; /* in the order in which they were written */
    size_t slice_count;
    struct fly_power_point *points; /* the newest profile */
    size_t point_count;
    bool torn; /* its last line is not whole: the run ended without warning, or goes on */
};

/* FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA with the line and what was expected, FLY_ELIMIT, FLY_ENOMEM. */
int carbon_ledger_read(const char *path, struct arena *arena, struct ledger_content *out_content,
                       struct fly_error *out_error);
/* The same of a text; `name` is for errors. */
int carbon_ledger_parse(const char *name, const char *text, size_t length, struct arena *arena,
                        struct ledger_content *out_content, struct fly_error *out_error);

/* Paths of the accounts in a directory (NULL: the user's own), newest first, in the arena. */
int carbon_ledger_list(const char *directory, struct arena *arena, char ***out_paths, size_t *out_count,
                       struct fly_error *out_error);

#endif
