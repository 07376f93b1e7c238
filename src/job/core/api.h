/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_API_H
#define FLYBALL_JOB_CORE_API_H

#include "base/buffer.h"
#include "job/core/shapes.h"
#include "store/store.h"

/*
 * The service's own interface: a route for each function of struct job_backend. The
 * service answers by this table, the remote back end asks by it, and the OpenAPI
 * document is written from it, so that none of the three can differ.
 *
 * A log is read in pages: lines of events (shape_event) with numbers above `after`, until
 * an answer has none. Failures are shape_failure with fly_error_http_status of the code.
 */
enum api_operation {
    API_LIST,
    API_SHOW,
    API_DEFINE,
    API_SET,
    API_REMOVE,
    API_EXPIRE,
    API_READ,
    API_IMPORT,
    API_PROPOSE,
    API_PROFILE,
    API_HEARTBEAT,
    API_REPORT,
    API_END,
    API_OPERATIONS
};

enum {
    API_PAGE_EVENTS = 1000,    /* in an answer */
    API_PAGE_BYTES = 1 << 20,  /* after which it has no further event; one may have STORE_BODY_MAX */
    API_ANSWER_MAX = 64 << 20, /* bytes of any answer */
    API_PATH_MAX = 512,        /* with the query */
    API_JSON_MAX =
        256 << 10, /* bytes of a body that is asked by a shape, of which the longest lists take half */
};

enum api_content {
    API_NOTHING,
    API_JSON,  /* by the shape */
    API_LINES, /* of an exported log: API_LINES_TYPE */
};
#define API_JSON_TYPE "application/json"
#define API_LINES_TYPE "application/x-ndjson"

/* What a caller has to be allowed. */
enum api_right { API_TO_READ, API_TO_TRAIN, API_TO_MANAGE };

struct api_route {
    const char *name;   /* "propose": its operationId */
    const char *method; /* "POST" */
    const char *path;   /* "/v1/jobs/{job}/trials/{trial}/epochs" */
    const char *about;  /* one line */
    enum api_right right;
    enum api_content asks_by, answers_by;
    const struct shape *asks;    /* with API_JSON */
    const struct shape *answers; /* with API_JSON */
};

extern const struct api_route api_routes[API_OPERATIONS];

/* The query of API_READ, after struct store_query. */
struct api_parameter {
    const char *name, *about;
    bool text;    /* else a whole number */
    size_t least; /* of it */
};
enum { API_PARAMETERS = 4 };
extern const struct api_parameter api_parameters[API_PARAMETERS];

/* A whole number in decimal, of API_READ's query; FLY_EUSAGE names it. */
int api_number(const char *name, const char *text, uint64_t least, uint64_t *out_value,
               struct fly_error *out_error);

/* What a path says. */
struct api_place {
    enum api_operation operation;
    char job[JOB_NAME_MAX + 1]; /* "": none */
    uint64_t trial;             /* 0: none */
};

/*
 * The operation of a path as it came, without the query: 0; FLY_EUSAGE for another
 * method (`out_allowed` is then a list of those that there are, static);
 * FLY_EUNSUPPORTED for no path of these; FLY_ENOTFOUND for a job or trial that cannot be.
 */
int api_find(const char *method, const char *path, struct api_place *out_place, const char **out_allowed,
             struct fly_error *out_error);

/* Whether the path is below /v1. */
bool api_is_below(const char *path);

/* The path of a call, encoded; appended to `out`. */
void api_put_path(const struct api_place *place, struct buffer *out);
/* "?after=7&key=..." */
void api_put_query(const struct store_query *query, struct buffer *out);

/* The code of a word such as "FLY_ECONFLICT"; 0 for an unknown one. */
int api_error_code(const char *word);

#endif
