/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_H
#define FLYBALL_GRID_ONLINE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "grid/grid_answer.h"

/*
 * Providers that are services on the network. Each is a constant struct in a file of its own: how
 * to put a question, and how to read its answer, which is pure. online.c has what all share:
 * keys, time-outs, one login, the cache and its rules (ask_rule.h).
 *
 * A service is asked at `base`, or at the address in the variable `base_variable`. Keys come from
 * the variables named here, or from the file that one of them names. They are sent only in
 * headers, over https or within the machine, and appear in no error text.
 *
 * Errors of the services' `read`, if the cache has nothing either: FLY_ECONFIG (no key, no
 * address), FLY_EPERM (the key is refused; the cache cannot be written), FLY_ENOTFOUND (no such
 * place, no data), FLY_EUNREACHABLE (no answer, or the wait after the last failure is not over),
 * FLY_EUNSUPPORTED (no such figures there), FLY_EDATA (an answer of another form), FLY_EBUSY
 * (another process has been asking for it for too long).
 */
enum online_query {
    ONLINE_RECENT,   /* actual values of the last `recent_s` */
    ONLINE_RANGE,    /* actual values of any time */
    ONLINE_FORECAST, /* forecasts from now on */
    ONLINE_QUERY_COUNT
};

struct online_question {
    enum online_query query;
    const char *place; /* only letters, digits and "-_." */
    enum grid_signal signal;
    enum grid_scope scope;
    int64_t from_s, to_s; /* whole seconds; a forecast starts now */
    int64_t now_s;
};

enum online_secret { ONLINE_OPEN, ONLINE_KEY, ONLINE_LOGIN };

struct online_provider {
    const char *name;
    const char *base; /* "https://...", without a '/' at its end; NULL: only the variable gives it */
    const char *base_variable;
    enum online_secret secret;
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

    /* Gives the signal and scope that are asked for, or FLY_EUNSUPPORTED. */
    int (*choose)(const struct grid_request *request, struct grid_kind *kind, struct fly_error *out_error);

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

extern const struct online_provider online_carbon_aware;
extern const struct online_provider online_electricity_maps;
extern const struct online_provider online_gb;
extern const struct online_provider online_watttime;

/* The `read` function of a grid_provider. */
int online_read(const struct online_provider *provider, const struct grid_request *request,
                struct grid_answer *out_answer, struct fly_error *out_error);

/*
 * Does what `parse` does, from text; initialises `out_answer`, whose series are of the kind and
 * not settled.
 */
int online_parse(const struct online_provider *provider, const struct online_question *question,
                 const struct grid_kind *kind, const char *text, size_t length,
                 struct grid_answer *out_answer, struct fly_error *out_error);

/* Gives the kind of what is asked for. */
int online_kind(const struct online_provider *provider, const struct grid_request *request,
                struct grid_kind *out_kind, struct fly_error *out_error);

#endif
