/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_JOB_REMOTE_H
#define FLYBALL_JOB_REMOTE_JOB_REMOTE_H

#include "base/http_client.h"
#include "job/core/job_backend.h"
#include "job/remote/remote_answer.h"
#include "job/remote/service_address.h"

/*
 * Jobs that a service keeps: each call is a request (api.h). A call whose answer was lost
 * is repeated within `wait_s`, for the service knows what it has answered; then it is
 * FLY_EUNSURE if it may have changed something. A service that asks to come later is
 * waited for. Nobody there at all is FLY_EUNREACHABLE at once.
 */
enum {
    REMOTE_TOKEN_MAX = 4096,
    REMOTE_REQUEST_TEXT = 33, /* 32 digits that nobody else has */
};

struct job_remote {
    struct service_address address;
    char shown[SERVICE_ADDRESS_MAX + 1]; /* for people */
    double wait_s;
    char *authority_file;   /* owned; NULL: the system's */
    char *token_file;       /* owned; NULL: none */
    char *authorization;    /* owned; "Authorization: Bearer ..."; in no text */
    struct http_line *line; /* made with the first request */
    uint64_t generation;    /* of fork_generation */
};

/* A request, and where its answer goes. */
struct remote_call {
    struct api_place place;
    const struct store_query *query; /* with API_READ */
    const void *asks;                /* by the route's shape, with API_JSON */
    const char *lines;               /* with API_LINES; ended by a 0 byte */
    bool once;                /* repeated by nobody but here, where that is known: a fresh connection */
    struct arena *arena;      /* of the answer's texts */
    void *out_struct;         /* with API_JSON */
    struct buffer *out_lines; /* with API_LINES; initialised */
};

/* Over a service's interface (api.h). */
extern const struct job_backend job_backend_remote;

#endif
