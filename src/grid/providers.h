/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_PROVIDERS_H
#define FLYBALL_GRID_PROVIDERS_H

#include <stdatomic.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "model/grid_series.h"

struct online_question;

/* The request to a provider of grid figures; the answer is in model/grid_series.h. */
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

/*
 * A provider of grid figures: a constant struct, declared here and named in the array of
 * providers.c. It answers with series that are settled and in Flyball's units, and states their
 * kind; it never fills a gap.
 *
 * It either reads what is at hand, or is a service on the network, of which the struct says how
 * to put a question and how to read its answer (online.h). A service may wait for the network, at
 * most for a request or two, unless `cached_only` is set; code that runs during training sets it.
 */
struct grid_provider {
    const char *name;

    /*
     * Reads what there is; NULL: a service. `out_answer` has to be freed only after success.
     * FLY_ENOTFOUND, FLY_EREAD, FLY_EDATA, FLY_ELIMIT, FLY_ENOMEM.
     */
    int (*read)(const struct grid_request *request, struct grid_answer *out_answer,
                struct fly_error *out_error);

    /* ---- of a service ---- */

    const char *title;                  /* in a sentence */
    enum grid_signal signal;            /* its only one; GRID_SIGNAL_UNKNOWN: what is asked for, */
    enum grid_signal usual_signal;      /* or this */
    enum grid_scope scope, usual_scope; /* likewise */
    const char *base; /* "https://...", without a '/' at its end; NULL: only the variable gives it */
    const char *base_variable;
    enum { ONLINE_OPEN, ONLINE_KEY, ONLINE_LOGIN } secret;
    const char *key_header; /* with ONLINE_KEY: "auth-token" */
    const char *gateway;    /* a host that needs `gateway_header` instead; NULL: none */
    const char *gateway_header;
    const char *header_variable; /* names a variable with another header; NULL: none */
    const char *key_variable, *key_file_variable;
    const char *user_variable; /* with ONLINE_LOGIN, where the key is the password */
    const char *login_path;
    int64_t step_s;     /* the usual length of a period */
    int64_t recent_s;   /* 0: the service has no ONLINE_RECENT */
    int64_t longest_s;  /* the longest ONLINE_RANGE of one request */
    int64_t forecast_s; /* how far forecasts reach; 0: the service has none */

    /* Appends path and query to the address. FLY_EUSAGE for an impossible place. */
    int (*write_path)(const struct online_question *question, struct buffer *url,
                      struct fly_error *out_error);

    /*
     * Adds the values of a body with status 200 to the two series, which it does not settle, with
     * memory from `arena`. Pure except for memory. FLY_EDATA, FLY_ENOTFOUND, FLY_ELIMIT, FLY_ENOMEM.
     */
    int (*parse)(const struct online_question *question, json_t *body, struct arena *arena,
                 struct grid_answer *answer, struct fly_error *out_error);
};

extern const struct grid_provider grid_provider_carbon_aware;
extern const struct grid_provider grid_provider_constant;
extern const struct grid_provider grid_provider_csv;
extern const struct grid_provider grid_provider_electricity_maps;
extern const struct grid_provider grid_provider_gb;
extern const struct grid_provider grid_provider_watttime;

/*
 * All providers. A source is written PROVIDER:PLACE:
 *
 *     csv:germany.csv     a file; without "csv:" too
 *     constant:380        one figure for all time, in g/kWh
 *     gb:national         an online service: gb, electricity-maps, carbon-aware, watttime
 */

/* Returns the provider that a source names before its colon; NULL: none, the source is a file. */
const struct grid_provider *grid_provider_of(const char *source);

/* Returns whether the source is no service: then it answers at once, and always the same. */
bool grid_is_local(const char *source);

/* Reads from a source in the form above; sets `request->place`. */
int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error);

/*
 * Reads one of the two figures (CARBON_INTENSITY, CARBON_PRICE), whose quantity it sets in `request`.
 * A source of the other one gives FLY_EUSAGE: "'SOURCE' has no prices", and what to do.
 */
int grid_read_signal(const char *source, int signal, struct grid_request *request,
                     struct grid_answer *out_answer, const char *remedy, struct fly_error *out_error);

#endif
