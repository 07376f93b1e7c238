/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_API_H
#define FLYBALL_JOB_CORE_API_H

#include "base/buffer.h"
#include "job/core/shapes.h"
#include "store/store.h"

/*
 * The service's own interface: a route for each function of struct job_backend. The service answers by this
 * table, the remote back end asks by it, and the OpenAPI document is written from it, so the three cannot
 * differ.
 *
 * A log is read in pages: lines of events (shape_event) with numbers above `after`, until an answer has none.
 * Failures are shape_failure, with the HTTP status fly_error_http_status of the code.
 */
enum api_operation {
    API_LIST,
    API_SHOW,
    API_DEFINE,
    API_SET,
    API_REMOVE,
    API_EXPIRE,
    API_READ,
    API_DIGEST,
    API_IMPORT,
    API_PROPOSE,
    API_PROFILE,
    API_HEARTBEAT,
    API_REPORT,
    API_END,
    API_OPERATIONS
};

enum {
    API_PAGE_EVENTS = 1000,    /* in one answer */
    API_PAGE_BYTES = 1 << 20,  /* after which no further event is added; one may have STORE_BODY_MAX */
    API_ANSWER_MAX = 64 << 20, /* bytes of any answer */
    API_PATH_MAX = 512,        /* including the query */
    API_JSON_MAX = 256 << 10,  /* bytes of a body that a shape reads; its longest lists take half */
};

enum api_content {
    API_NOTHING,
    API_JSON,  /* in the route's shape */
    API_LINES, /* lines of an exported log: API_LINES_TYPE */
    API_BYTES, /* for this version of Flyball alone: API_BYTES_TYPE */
};
#define API_JSON_TYPE "application/json"
#define API_LINES_TYPE "application/x-ndjson"
#define API_BYTES_TYPE "application/octet-stream"

/* What a caller must be allowed to do. */
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

/* The query parameters of API_READ, as in struct store_query; API_DIGEST takes the limit alone, of trials. */
struct api_parameter {
    const char *name, *about;
    bool text;    /* false: a whole number */
    size_t least; /* least value of the number */
};
enum { API_PARAMETERS = 4 };
extern const struct api_parameter api_parameters[API_PARAMETERS];

/* Parses a whole decimal number of API_READ's query; FLY_EUSAGE names it. */
int api_number(const char *name, const char *text, uint64_t least, uint64_t *out_value,
               struct fly_error *out_error);

/* What a path refers to. */
struct api_place {
    enum api_operation operation;
    char job[JOB_NAME_MAX + 1]; /* "": none */
    uint64_t trial;             /* 0: none */
};

/*
 * Finds the operation of a path as received, without the query. Returns 0; FLY_EUSAGE for another method
 * (`out_allowed` is then a static list of the path's methods); FLY_EUNSUPPORTED when no route has the path;
 * FLY_ENOTFOUND for an impossible job or trial.
 */
int api_find(const char *method, const char *path, struct api_place *out_place, const char **out_allowed,
             struct fly_error *out_error);

/* Whether the path is below /v1. */
bool api_is_below(const char *path);

/* Appends the path of a call, encoded, to `out`. */
void api_put_path(const struct api_place *place, struct buffer *out);
/* "?after=7&key=..." */
void api_put_query(const struct store_query *query, struct buffer *out);

/* The code of a word such as "FLY_ECONFLICT"; 0 for an unknown word. */
int api_error_code(const char *word);

#endif
