/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_PROVIDER_H
#define FLYBALL_GRID_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/grid_series.h"

/*
 * Where figures of the grid come from. A source is written PROVIDER:PLACE:
 *
 *     csv:germany.csv     a file; without "csv:" too
 *     constant:380        one figure for all time, in g/kWh
 *     gb:national         an online service: gb, electricity-maps, carbon-aware, watttime
 *
 * A provider is a constant struct of functions in a file of its own, named in the array
 * of providers.c. It answers with series that are settled and in Flyball's units, and
 * states their kind; it never fills a gap.
 *
 * What is online may wait for the network, at most for a request or two (online.h), unless
 * `cached_only` is set; what trains sets it.
 */
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

struct grid_provider {
    const char *name;
    const char *place;   /* what it stands for: "FILE" */
    const char *summary; /* a line for help */

    /*
     * Reads what there is. `out_answer` is needed to be freed only after success.
     * FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA, FLY_ELIMIT, FLY_ENOMEM; online, what online.h names.
     */
    int (*read)(const struct grid_request *request, struct grid_answer *out_answer,
                struct fly_error *out_error);
};

extern const struct grid_provider grid_provider_carbon_aware;
extern const struct grid_provider grid_provider_constant;
extern const struct grid_provider grid_provider_csv;
extern const struct grid_provider grid_provider_electricity_maps;
extern const struct grid_provider grid_provider_gb;
extern const struct grid_provider grid_provider_watttime;

/* All of them, ended by NULL. */
extern const struct grid_provider *const grid_providers[];

/* A series has at most so many periods: ten years of five minutes. */
enum { GRID_PERIODS_MAX = 1 << 20 };

/* Reads from a source as it is spelled above; `request->place` is set by it. */
int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error);

void grid_answer_deinit(struct grid_answer *answer);

#endif
