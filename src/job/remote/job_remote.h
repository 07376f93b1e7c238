/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_JOB_REMOTE_H
#define FLYBALL_JOB_REMOTE_JOB_REMOTE_H

#include "base/http_client.h"
#include "base/service_address.h"
#include "job/core/job_backend.h"
#include "job/remote/remote_answer.h"

/*
 * Jobs that a service keeps: each call is a request (api.h). A call whose answer was lost is repeated within
 * `wait_s`, since the service recognizes what it has answered; after that it is FLY_EUNSURE if it may have
 * changed something. When a service asks to come back later, the call waits. If nothing answers at the
 * address, the call fails at once with FLY_EUNREACHABLE.
 */
enum {
    REMOTE_TOKEN_MAX = 4096,
    REMOTE_REQUEST_TEXT = 33, /* 32 digits, unique to the request */
};

struct job_remote {
    struct service_address address;
    char shown[SERVICE_ADDRESS_MAX + 1]; /* for error texts */
    double wait_s;
    char *authority_file;   /* owned; NULL: the system's */
    char *token_file;       /* owned; NULL: none */
    char *authorization;    /* owned; "Authorization: Bearer ..."; never shown */
    struct http_line *line; /* made for the first request */
    uint64_t generation;    /* of fork_generation */
};

/* A request, and where its answer goes. */
struct remote_call {
    struct api_place place;
    const struct store_query *query; /* with API_READ and API_DIGEST */
    const void *asks;                /* with API_JSON, in the route's shape */
    const char *lines;               /* with API_LINES; ends with NUL */
    bool once; /* only this code may repeat it, as it knows of the repetition: needs a fresh connection */
    struct arena *arena;      /* for the answer's texts */
    void *out_struct;         /* with API_JSON */
    struct buffer *out_lines; /* with API_LINES and API_BYTES; initialised */
};

/* The back end over a service's interface (api.h). */
extern const struct job_backend job_backend_remote;

#endif
