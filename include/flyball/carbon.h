/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CARBON_H
#define FLYBALL_CARBON_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Following the grid: a training runs slower in dirty or expensive hours and faster in
 * clean or cheap ones, within a bound on its time, and keeps an account of what it emitted.
 *
 *     const struct fly_carbon_options carbon = {.size = sizeof carbon, .source = "gb:national"};
 *     struct fly_tuner_options options = {..., .carbon = &carbon};
 *
 * A tuner or a session takes these options. A field that is not set (0, NULL) has the
 * default beside it. The bound is the objective's max_slowdown against the fastest limit,
 * 3 % if it has none; or `finish_by_unix_s`. Limits change between steps, seldom more often
 * than every five minutes, and for a predicted gain of at least 0.2 %, unless the deadline
 * needs more speed. If the work that is left is not known, or nothing is known of the grid,
 * the best static limit for the bound is set. No step ever waits for the network.
 *
 * The energy of each five minutes is written to a file in `directory` as it is used.
 * `flyball carbon report` computes grams and money from it, whenever it is asked.
 */
struct fly_carbon_options {
    size_t size;        /* sizeof(struct fly_carbon_options) */
    const char *source; /* of intensities, PROVIDER:PLACE or a CSV file; NULL: none */
    const char *price;  /* of prices, likewise; NULL: none */
    /* What is to be small: the sum of these for each gram, unit of money and kWh. All 0: grams if
     * there is a source of intensities, else money. */
    double per_g, per_money, per_kwh;
    double host_w;            /* drawn by the rest of this rank's machine while training; 0: not counted */
    double pue;               /* power usage effectiveness of the site; 0: 1 */
    int64_t finish_by_unix_s; /* in place of the objective's bound; 0: none */
    uint64_t steps;           /* of the whole training; 0: a session knows its epochs; a tuner does not */
    const char *directory;    /* of accounts; NULL: the user's own */
};

enum { FLY_CARBON_TEXT_MAX = 256 };

/* An unknown figure is NAN. */
struct fly_carbon_report {
    size_t size;                /* set by the caller */
    double limit_w;             /* that the plan wants now; NAN before there is one */
    double intensity_g_per_kwh; /* of the current period, actual or expected */
    uint32_t decisions, changes;
    double energy_j;                   /* of this rank's GPUs so far, as written down */
    double finish_s;                   /* expected, from now */
    char reason[FLY_CARBON_TEXT_MAX];  /* why that limit: "follows the grid" */
    char account[FLY_CARBON_TEXT_MAX]; /* the file; "" if none could be written, */
    char text[FLY_CARBON_TEXT_MAX];    /* and why; or what is missing of the grid; "" for nothing */
};

#endif
