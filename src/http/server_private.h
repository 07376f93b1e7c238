/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SERVER_PRIVATE_H
#define FLYBALL_HTTP_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <stddef.h>

#include "http/certificate.h"
#include "http/connections.h"
#include "http/door_shares.h"
#include "http/listener.h"
#include "http/peers.h"
#include "http/server.h"
#include "http/signing_key.h"
#include "http/streams.h"
#include "http/token_file.h"
#include "http/traffic.h"

enum { SERVER_URL_MAX = LISTEN_TEXT_MAX + 16, SERVER_TARGET_MAX = 8192, SERVER_HEADERS_MAX = 16384 };

/* An address at which the server listens. */
struct door {
    struct server *server;
    struct listener listener;
    struct MHD_Daemon *daemon; /* owned */
    struct door_shares shares; /* of a TCP address; only the daemon's thread uses them */
    bool shared;               /* it is one */
    bool tls;
    char url[SERVER_URL_MAX];
};

struct server {
    struct server_options options;
    struct door doors[SERVER_ADDRESSES_MAX];
    size_t door_count;
    struct readiness readiness;
    struct troubles troubles;
    struct trouble token_trouble, certificate_trouble;
    struct traffic traffic;
    struct certificate_shelf certificate;
    struct token_file tokens;
    struct signing_key signing_key;
    bool with_certificate, with_tokens, with_signing_key;
    struct connections connections;
    struct streams streams;
    struct peers *peers;                      /* owned; NULL: the library accepts all connections */
    atomic_uint_least64_t connection_numbers; /* given so far */
    atomic_uint under_way;          /* requests whose head was read and whose answer is not written yet */
    atomic_uint reading;            /* of these, such whose body is not whole */
    struct mono_time patient_until; /* for bodies, after server_quiesce */
    atomic_size_t body_bytes;       /* held by those requests */
    atomic_size_t body_bytes_of[SERVE_CALLERS];
    atomic_bool stopping;
};

/* How far a request has come. */
enum visit_stage {
    VISIT_NEW,      /* its head was read */
    VISIT_READING,  /* its body is being read */
    VISIT_WHOLE,    /* its body is there */
    VISIT_WAITING,  /* waits for whoever answers it */
    VISIT_ANSWERED, /* the answer is made */
    VISIT_SENDING,  /* the answer was handed over to be sent */
};

/* One request on its way through the server. */
struct visit {
    struct task task; /* first, so that a pointer to the task points to the visit */
    struct door *door;
    struct MHD_Connection *connection;
    struct connection *row; /* its row in the list of connections */
    bool under_way;         /* counted in the server's under_way */
    bool broken;            /* its head was malformed: nobody knows where the next request begins */
    enum visit_stage stage;
    char *target; /* owned; the request's texts point into it */
    struct buffer body;
    size_t body_length; /* as the client announced it */
    size_t place;       /* the caller's, whose share it takes */
    struct mono_time began;
    char caller[TOKEN_NAME_MAX]; /* name of the caller's token */
    struct signed_token signed_token;
    const char *challenge;   /* with 401; static */
    const char *path_secret; /* the token from the path, stored in front of the request's path; or NULL */
    struct stream_line line; /* of the answer's stream */
    max_align_t note[];      /* the task's */
};

/*
 * Decides by size, address and caller whether to accept a request before its body is read. If
 * not, makes the answer.
 */
bool gate_lets_in(struct visit *visit, const char *version);

/* Gives back what the body took of the memory for all. */
void gate_forget_body(struct visit *visit);

/*
 * Returns whether this version of the library leaves heads where they can be checked. Otherwise
 * the library must be told to be strict.
 */
bool gate_sees_heads(void);

/* Callbacks of libmicrohttpd; `data` is the door. */
void *server_on_target(void *data, const char *target, struct MHD_Connection *connection);
enum MHD_Result server_on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request);
void server_on_completed(void *data, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode how);
void server_on_connection(void *data, struct MHD_Connection *connection, void **socket,
                          enum MHD_ConnectionNotificationCode what);

#endif
