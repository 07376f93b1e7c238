/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_H
#define FLYBALL_GRID_ONLINE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "grid/providers.h"
#include "model/grid_units.h"
#include "shapes/shape_rows.h"

/*
 * Providers that are services on the network (providers.h): what all share. online.c answers from
 * the cache, or has the service asked if its rules allow it (grid_cache.h); online_ask.c has
 * keys, time-outs, one login, and the reading of rows.
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

/* Reads what a service gives, as `read` of a grid_provider does. */
int online_read(const struct grid_provider *provider, const struct grid_request *request,
                struct grid_answer *out_answer, struct fly_error *out_error);

/*
 * Does what `parse` does, from text; initialises `out_answer`, whose series are of the kind and
 * not settled.
 */
int online_parse(const struct grid_provider *provider, const struct online_question *question,
                 const struct grid_kind *kind, const char *text, size_t length,
                 struct grid_answer *out_answer, struct fly_error *out_error);

/* Gives the kind of what is asked for. */
int online_kind(const struct grid_provider *provider, const struct grid_request *request,
                struct grid_kind *out_kind, struct fly_error *out_error);

/* ---- rows, for the providers ---- */

/*
 * Reads answers of services by shapes that borrow their texts. What is missing or of another form
 * gives FLY_EDATA with the member's name.
 */
enum { ONLINE_ARENA_MAX = 256 << 20 };
int online_read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_answer,
                     struct fly_error *out_error);

/* An optional text, "" if it is missing; and a figure, NAN for null and if it is missing. */
#define ONLINE_TEXT SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true
#define ONLINE_VALUE \
    SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN, .expected = "a number or null"

/* Parses a time; on false the out-parameter is untouched. */
bool online_time(const char *text, int64_t *out_s);

/* Converts a figure in the unit to g/kWh. */
double online_value(double value, enum grid_unit unit);

int online_refuse(const char *member, const char *expected, struct fly_error *out_error);

/* Returns 0 if a member's text is the word, in any case; else an error. */
int online_same(const char *name, const char *text, const char *word, struct fly_error *out_error);

/* Write "2026-11-22T07:30Z", and the same with seconds; `text` holds ISO_TIME_TEXT_MAX bytes. */
char *online_minute(int64_t s, char *text);

/* ---- asking ---- */

/*
 * The address of a service and the key for it: from the environment and from the file that a
 * variable names, never from arguments. The secrets here go only into headers.
 */
enum { ACCOUNT_BASE_MAX = 256, ACCOUNT_KEY_MAX = 1024, ACCOUNT_TOKEN_MAX = 4096, ACCOUNT_HEADER_MAX = 64 };

struct online_account {
    char base[ACCOUNT_BASE_MAX]; /* without a '/' at its end */
    bool within_machine;         /* reached over loopback */
    double timeout_s;
    const atomic_bool *abandon;          /* from the request; NULL: never */
    char key_header[ACCOUNT_HEADER_MAX]; /* the header for the key; "": no key is sent */
    char user[ACCOUNT_KEY_MAX];
    char key[ACCOUNT_KEY_MAX];     /* or the password */
    char token[ACCOUNT_TOKEN_MAX]; /* from a login; "": not logged in yet */
};

/* Finds the address, the time-out and the key's header. FLY_ECONFIG. */
int online_account_find(const struct grid_provider *provider, struct online_account *out_account,
                        struct fly_error *out_error);

/* Finds the key, if one is needed. FLY_ECONFIG, FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD for its file. */
int online_account_unlock(const struct grid_provider *provider, struct online_account *account,
                          struct fly_error *out_error);

/*
 * Asks a service one question, after a login if it needs one. If the login is no longer valid
 * (401), it logs in and asks once more.
 */
enum ask_outcome {
    ASK_ANSWERED, /* returns 0; the series may be empty */
    ASK_REFUSED,  /* the service works but does not give this: FLY_EPERM, FLY_ENOTFOUND, FLY_EUNSUPPORTED,
                   * FLY_EDATA */
    ASK_FAILED,   /* FLY_EUNREACHABLE, or FLY_EDATA for what is not JSON */
    ASK_UNABLE,   /* it was not asked: FLY_EUNSUPPORTED without libcurl, FLY_EUSAGE, FLY_ENOMEM; or the
                   * answer was not waited for: FLY_EUNREACHABLE */
};

/*
 * `out_answer` is set only after ASK_ANSWERED, `out_error` after all others; `out_retry_after_s`
 * always, 0 if the service stated none.
 */
enum ask_outcome online_ask(const struct grid_provider *provider, struct online_account *account,
                            const struct online_question *question, const struct grid_kind *kind,
                            struct grid_answer *out_answer, double *out_retry_after_s,
                            struct fly_error *out_error);

/*
 * Finds the reason in a body that is not an answer: the text of "error", "message", "detail" or
 * "title", or of "message" in "error". Only printable characters; "" if there is none. Pure.
 */
enum { ONLINE_REASON_MAX = 128 };
void online_reason(const char *text, size_t length, char out_reason[ONLINE_REASON_MAX]);

#endif
