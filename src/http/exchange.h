/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_EXCHANGE_H
#define FLYBALL_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "http/signed_token.h"
#include "http/stream.h"
#include "shapes/shape.h"

/*
 * One request to a server and its answer, without any transport: code that answers requests is
 * tested and fuzzed without a socket.
 */

/* What a caller may do. Each scope includes those before it. */
enum serve_scope {
    SERVE_NOBODY, /* is enough for /healthz */
    SERVE_READ,   /* look at jobs, read metrics */
    SERVE_TRAIN,  /* define jobs, ask what to run, report */
    SERVE_MANAGE, /* change, import and remove them */
};

enum { SERVE_QUERY_MAX = 8, SERVE_MINORS_MAX = 32 };

/*
 * Who is at the other end of the connection, as the kernel tells it. Only a server that accepts
 * peers (server_options.porter) knows more than the connection's number.
 */
struct serve_peer {
    uint64_t connection; /* a number of its own for each connection of a server, from 1; 0: unknown */
    bool local;          /* a process of this machine that the kernel named: the members below hold */
    pid_t pid;           /* of the process that connected; 0: not visible from here, or not local */
    uid_t uid;           /* of that process when it connected; (uid_t)-1: not known. With
                            server_options.names_users also of a TCP connection, which is not local */
    gid_t gid;           /* (gid_t)-1: not local */

    /* The process has this one's pid namespace and user namespace. Unknown counts as false. */
    bool same_namespaces;

    /*
     * Numbers of the GPU devices (N of /dev/nvidiaN) that the client has open: it sent descriptors,
     * open for reading and writing, with the first byte of the connection (SCM_RIGHTS). Later ones do
     * not count. A client that sends what is no device of the driver is closed without an answer.
     */
    int minors[SERVE_MINORS_MAX]; /* each once, in the order in which they were sent */
    size_t minor_count;
};

/* A peer of which nothing is known. */
#define SERVE_PEER_UNKNOWN ((struct serve_peer){.uid = (uid_t)-1, .gid = (gid_t)-1})

struct serve_parameter {
    const char *name, *value; /* decoded */
};

/* All texts are borrowed. All but the body are UTF-8 without control characters. */
struct serve_request {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/jobs/digits", not decoded, without the query */
    struct serve_parameter query[SERVE_QUERY_MAX];
    size_t query_count;
    const char *body;        /* ended by a 0 byte that is not counted; "" without a body */
    size_t body_length;      /* never above the service's limit */
    enum serve_scope scope;  /* of the caller */
    const char *caller_name; /* the token's name; "" without a token */

    const char *bearer; /* what the caller sent as its token, if the back admits callers; or NULL */
    const struct signed_token *signed_token; /* that bearer, if it is one that the key has signed; or NULL */
    const char *agent;         /* the header User-Agent: what the client calls itself; or NULL */
    const char *last_event_id; /* the header Last-Event-ID: where a stream goes on; or NULL */
    struct serve_peer peer;
};

/*
 * Who shares what with whom: all requests of one token, or without one of one user, have one of these places
 * in tables of shares. Two may have the same, which makes both shares smaller.
 */
enum { SERVE_CALLERS = 4096 };
size_t serve_caller_place(const struct serve_request *request);

/* Returns the parameter's value, or NULL. */
const char *serve_query(const struct serve_request *request, const char *name);

/* What becomes of the connection once the answer was taken. */
enum serve_keeping {
    SERVE_KEEP_AS_BEFORE,
    SERVE_KEEP_LIMITED, /* the next request must come within request_timeout_s; so it is at first */
    SERVE_KEEP_OPEN,    /* it stays open however long the client is silent: something is bound to it */
};

struct serve_answer {
    int status;
    const char *type;       /* static; "application/json" */
    const char *challenge;  /* with 401: how to ask for a token, static; or NULL */
    const char *allow;      /* with 405: the methods that are allowed, static; or NULL */
    unsigned retry_after_s; /* with 503; 0: not sent */
    struct buffer body;     /* the caller of a route initialises it */
    enum serve_keeping keeping;
    struct serve_stream *stream; /* sent instead of the body, with status 200; NULL: none. stream.h */
    struct fly_error untold;     /* what the body must not say, for the service's own log; code 0: nothing */
};

/*
 * Sets the answer to a status and a JSON value, which it takes. With NULL, or a body that does
 * not fit, the answer is 503 and null.
 */
void serve_answer_json(struct serve_answer *answer, int status, json_t *json);

/* Does the same with a struct; the answer is 503 and null if it cannot be written. */
void serve_answer_struct(struct serve_answer *answer, int status, const struct shape *shape,
                         const void *from);

/* What went wrong, for programs and for people. */
struct serve_failure {
    const char *code; /* "FLY_EBUSY" */
    const char *message;
};
extern const struct shape shape_serve_failure;

/* Sets the answer to an error: {"error": {"code": "FLY_EBUSY", "message": "..."}}. */
void serve_answer_error(struct serve_answer *answer, int status, const char *code_word, const char *message);

#endif
