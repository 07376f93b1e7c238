/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_ANSWER_H
#define FLYBALL_GRID_GRID_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/grid_series.h"

/* The request to a provider of grid figures, and its answer. */
struct grid_request {
    const char *place;           /* the text after "PROVIDER:"; borrowed */
    enum grid_scope scope;       /* which of several figures; GRID_SCOPE_UNKNOWN: the provider's usual one */
    enum grid_signal signal;     /* likewise */
    enum grid_quantity quantity; /* for a constant, whose source does not state it */
    int64_t from_s, to_s;        /* the wanted time, for providers that are asked by period */
    int64_t now_s;               /* for these; 0: from the machine's clock */
    bool cached_only;            /* ask no server */
    const atomic_bool *abandon;  /* once another thread sets it, all waiting ends; NULL: never */
};

struct grid_answer {
    struct grid_series actual;
    struct grid_series published; /* forecasts; empty if there are none */

    /* Why a part of what was wanted is missing or old, although there is an answer; "" if it is complete. */
    char remark[FLY_ERROR_TEXT_MAX];
};

/* The most periods of a series: ten years of five-minute periods. */
enum { GRID_PERIODS_MAX = 1 << 20 };

void grid_answer_deinit(struct grid_answer *answer);

#endif
