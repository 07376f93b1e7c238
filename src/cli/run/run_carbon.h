/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_CARBON_H
#define FLYBALL_CLI_RUN_RUN_CARBON_H

#include <jansson.h>

#include <flyball/carbon.h>

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "cli/views/statement_view.h"
#include "meter/claim.h"
#include "train/carbon/carbon_keeper.h"

/*
 * The account of `flyball run --carbon`: writes energy to a file as it is used, and at the end
 * computes what was emitted and paid for it. With --tune or --job the power limit follows the
 * grid too.
 *
 *     result = run_carbon_read(call, &carbon, out_error);
 *     ... open devices and meter ...
 *     run_carbon_begin(&carbon, call, &where);     before the program starts
 *     ... the program runs; carbon.keeper is lent to the tuner or the session ...
 *     run_carbon_end(&carbon);                     after the tuner's end, before the meter's
 *     run_carbon_text(&carbon, out);
 *     run_carbon_free(&carbon);
 *
 * Nothing waits for the network, and the end waits for a disk two seconds at most: `flyball carbon report`
 * computes grams that are not known yet. Every failure becomes a sentence in the report. Large: keep it in
 * static storage.
 */
enum { RUN_CARBON_TEXT_MAX = 512, RUN_CARBON_SOURCE_MAX = LEDGER_TEXT_MAX };

/* Read at the end, from the account and the cache. */
struct run_statement {
    char path[LEDGER_PATH_MAX];
    struct statement_view view;
    struct fly_error error;
    int code;
};

struct run_carbon {
    bool wanted;                                         /* an account is kept */
    bool followed;                                       /* the limit follows the grid */
    char sources[CARBON_SIGNALS][RUN_CARBON_SOURCE_MAX]; /* files by their full path; "" for none */
    struct fly_carbon_options options;                   /* borrows texts from this struct */
    double max_slowdown;                                 /* INFINITY: none was given */
    uint64_t epochs;                                     /* of the whole training; 0: not given */

    /* The results. */
    struct carbon_keeper *keeper;       /* while the program runs */
    char off[RUN_CARBON_TEXT_MAX];      /* why there is no account; "" if there is one */
    struct carbon_keeper_summary kept;  /* at the end */
    struct fly_carbon_report report;    /* of following the grid; size 0: it never began */
    struct run_statement *statement;    /* owned; NULL: none was read */
    bool stated;                        /* it holds a statement; if not, */
    char unstated[RUN_CARBON_TEXT_MAX]; /* this says why */
};

/* Rows of the option table. */
extern const struct cli_options run_carbon_options;

/*
 * Reads the call's options. FLY_EUSAGE for options that contradict each other. A source on the
 * command line that cannot be read is an error; one from a file or a variable is a warning.
 */
int run_carbon_read(const struct cli_call *call, struct run_carbon *out_carbon, struct fly_error *out_error);

/* What is measured, and for which job. */
struct run_carbon_place {
    struct fly_meter *meter; /* NULL: nothing is measured */
    const struct device_list *list;
    const struct claims *claims;
    const struct identity *identity;
    const char *job; /* or NULL */
    bool rests;      /* the account pauses until run_carbon_start */
};

/* Begins the account, unless others count all GPUs here. */
void run_carbon_begin(struct run_carbon *carbon, const struct run_carbon_place *place);

/* For programs that run one after another: one starts now, or has ended now. */
void run_carbon_start(struct run_carbon *carbon);
void run_carbon_note(struct run_carbon *carbon);

/* Ends the account, and computes what is known by now. */
void run_carbon_end(struct run_carbon *carbon);

/* Writes ": 12 g by SOURCE, 0.3 EUR by SOURCE": what was emitted and paid. */
void run_carbon_amounts(const struct run_carbon *carbon, struct buffer *out);
/* Write the lines of the report for people, and the member "carbon" for programs. */
void run_carbon_text(const struct run_carbon *carbon, struct buffer *out);
json_t *run_carbon_json(const struct run_carbon *carbon);

/* Harmless on one that is all 0. */
void run_carbon_free(struct run_carbon *carbon);

#endif
