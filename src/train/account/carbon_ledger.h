/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/power_profile.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "grid/forecast.h"
#include "model/energy_slice.h"
#include "policy/carbon/carbon_hull.h"

/*
 * The energy of one run over time, written to disk while it runs: one file per run in
 * $XDG_STATE_HOME/flyball/carbon, else ~/.local/state/flyball/carbon, with lines of JSON. The first line says
 * what ran and where the grid's figures come from. Then come slices (model/energy_slice.h) and power
 * profiles, in the order in which they were made. Nothing in the file is ever changed. It holds no grams:
 * those are computed from it each time.
 *
 *     carbon_ledger_create(&ledger, NULL, &head, out_error);
 *     carbon_ledger_slice(&ledger, &slice, out_error);      on disk when it returns 0
 *     carbon_ledger_close(&ledger);
 *
 * An incomplete last line, left by a crash, is not read. File names begin with the start in UTC. One thread
 * at a time.
 */
enum { LEDGER_TEXT_MAX = 256, LEDGER_PATH_MAX = 512, LEDGER_FILE_MAX = 256 << 20 };

/* The bound when neither a bound nor a time to finish by is stated, as <flyball/carbon.h> says. */
extern const double carbon_usual_slowdown;

struct ledger_head {
    char run[LEDGER_TEXT_MAX]; /* "" when it has no name */
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
 * Makes the directory and a new file. `directory` NULL: the user's own; a pue below 1 is written as 1.
 * Returns FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND, FLY_ELIMIT, FLY_ENOMEM, or FLY_EUSAGE for numbers out of
 * range. The two functions below also return FLY_ESTATE when the ledger is not open or after a fork. After
 * another error nothing of the line is in the file, and you may try again.
 */
int carbon_ledger_create(struct carbon_ledger *ledger, const char *directory, const struct ledger_head *head,
                         struct fly_error *out_error);
int carbon_ledger_slice(struct carbon_ledger *ledger, const struct energy_slice *slice,
                        struct fly_error *out_error);
/* The time of a point is that of one step. */
int carbon_ledger_profile(struct carbon_ledger *ledger, const struct fly_power_point *points, size_t count,
                          struct fly_error *out_error);
/* Harmless on a ledger that was not made, and after a fork. */
void carbon_ledger_close(struct carbon_ledger *ledger);

/* The content of a file; arrays are in the arena. */
struct ledger_content {
    struct ledger_head head;
    struct energy_slice *slices; /* in the order in which they were written */
    size_t slice_count;
    struct fly_power_point *points; /* the newest profile */
    size_t point_count;
    bool torn; /* the last line is incomplete: the run ended without warning, or goes on */
};

/*
 * Reads a file. Returns FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA with the line and what was expected, FLY_ELIMIT,
 * FLY_ENOMEM.
 */
int carbon_ledger_read(const char *path, struct arena *arena, struct ledger_content *out_content,
                       struct fly_error *out_error);
/* Like carbon_ledger_read, from a text; error texts call it `name`. */
int carbon_ledger_parse(const char *name, const char *text, size_t length, struct arena *arena,
                        struct ledger_content *out_content, struct fly_error *out_error);

/* Lists the paths of the accounts in a directory (NULL: the user's own), newest first, in the arena. */
int carbon_ledger_list(const char *directory, struct arena *arena, char ***out_paths, size_t *out_count,
                       struct fly_error *out_error);

/*
 * Writes the lines of an account of energy (carbon_ledger.h), each with its newline:
 *
 *     {"flyball_carbon":1,"run":"night","job":"","host":"n17",...}
 *     {"slice":{"start_s":1764000000,"end_s":1764000300,"gpu_j":90000,"host_j":null,...}}
 *     {"profile":[[300,280.5,0.31],[250,241,0.33]]}
 *
 * Numbers read back as the same double; unknown ones are null. Returns FLY_EUSAGE for what an account cannot
 * hold: a length that is not above 0, energy below 0.
 */
enum { LEDGER_LINE_MAX = 1 << 16 };

int ledger_write_head(const struct ledger_head *head, struct buffer *out, struct fly_error *out_error);
int ledger_write_slice(const struct energy_slice *slice, struct buffer *out, struct fly_error *out_error);
int ledger_write_profile(const struct fly_power_point *points, size_t count, struct buffer *out,
                         struct fly_error *out_error);

#endif
