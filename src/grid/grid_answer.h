/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_GRID_ANSWER_H
#define FLYBALL_GRID_GRID_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/grid_series.h"

/* What a provider of figures of the grid is asked, and what it answers. */
struct grid_request {
    const char *place; /* what stands after "PROVIDER:"; borrowed */
    enum grid_scope
        scope; /* which of several figures is wanted; GRID_SCOPE_UNKNOWN for the provider's usual one */
    enum grid_signal signal;     /* likewise */
    enum grid_quantity quantity; /* of a constant, which does not say */
    int64_t from_s, to_s;        /* what is wanted, of those that are asked period by period */
    int64_t now_s;               /* for these; 0: the machine's clock */
    bool cached_only;            /* asks no server */
    const atomic_bool *abandon;  /* once another thread sets it nothing is waited for any more; NULL */
};

struct grid_answer {
    struct grid_series actual;
    struct grid_series published; /* forecasts; empty where there are none */

    /* Why a part of what was wanted is missing or old, although there is an answer; "" where nothing is. */
    char remark[FLY_ERROR_TEXT_MAX];
};

/* A series has at most so many periods: ten years of five minutes. */
enum { GRID_PERIODS_MAX = 1 << 20 };

void grid_answer_deinit(struct grid_answer *answer);

#endif
