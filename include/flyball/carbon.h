/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CARBON_H
#define FLYBALL_CARBON_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Following the grid: a training runs slower in dirty or dear hours and faster in clean or
 * cheap ones, within a bound on its time, and what it emitted is accounted for.
 *
 *     const struct fly_carbon_options carbon = {.size = sizeof carbon, .source = "gb:national"};
 *     struct fly_tuner_options options = {..., .carbon = &carbon};
 *
 * A tuner or a session takes these options. What is not set (0, NULL) has the default
 * beside it. The bound is the objective's max_slowdown, against the fastest limit, 3 % where
 * it has none; or `finish_by_unix_s`. Limits change between steps, seldom oftener than every five minutes
 * and for a predicted gain of at least 0.2 %, unless the deadline asks for more speed.
 * Where the work that is left is not known, or nothing is known of the grid, the best static
 * limit for the bound stands. No step ever waits for the network.
 *
 * The energy of each five minutes is written to a file as it is used, in `directory`, from
 * which `flyball carbon report` computes grams and money, then and later.
 */
struct fly_carbon_options {
    size_t size;        /* sizeof(struct fly_carbon_options) */
    const char *source; /* of intensities, PROVIDER:PLACE or a CSV file; NULL: none */
    const char *price;  /* of prices, likewise; NULL: none */
    /* What is to be small: the sum of these for each gram, unit of money and kWh. All 0: grams where
     * there is a source of intensities, else money. */
    double per_g, per_money, per_kwh;
    double host_w;            /* drawn by the rest of this rank's machine while training; 0: not counted */
    double pue;               /* power usage effectiveness of the site; 0: 1 */
    int64_t finish_by_unix_s; /* in place of the objective's bound; 0: none */
    uint64_t steps;           /* of the whole training; 0: a session knows its epochs; a tuner does not */
    const char *directory;    /* of accounts; NULL: the user's own */
};

enum { FLY_CARBON_TEXT_MAX = 256 };

/* What is not known is NAN. */
struct fly_carbon_report {
    size_t size;                /* set by the caller */
    double limit_w;             /* that the plan wants now; NAN before there is one */
    double intensity_g_per_kwh; /* of the current period, actual or expected */
    uint32_t decisions, changes;
    double energy_j;                   /* of this rank's GPUs so far, as written down */
    double finish_s;                   /* expected, from now */
    char reason[FLY_CARBON_TEXT_MAX];  /* why that limit: "follows the grid" */
    char account[FLY_CARBON_TEXT_MAX]; /* the file; "" where none could be written, */
    char text[FLY_CARBON_TEXT_MAX];    /* and why; or what is missing of the grid; "" for nothing */
};

#endif
