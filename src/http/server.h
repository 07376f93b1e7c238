/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SERVER_H
#define FLYBALL_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "http/server_back.h"

/*
 * A server for HTTP: it listens, lets requests in, and has what stands behind it (server_back.h)
 * answer them.
 *
 *     code = server_open(&options, &server, out_error);
 *     while (nobody wants it to stop)
 *         server_tick(server);                  ten times a second or so
 *     server_quiesce(server);
 *     while (!server_is_idle(server) && there is time)
 *         server_tick(server);
 *     if (server_is_idle(server))
 *         server_close(server);
 *
 * Threads: one for each address reads and writes all of its connections and never
 * blocks, so that a slow client costs a little memory and no thread; requests whose answer
 * may take its time wait for the threads of what stands behind. The server itself answers
 * /healthz, /readyz (readiness.h) and /metrics, whatever those do.
 *
 * Nothing is kept between two requests but counters.
 */
struct server_options {
    const char *const *listen; /* listen_address.h; 1 .. SERVER_ADDRESSES_MAX */
    size_t listen_count;
    const char *socket_group; /* of Unix sockets; or NULL */
    const char *tokens;       /* path of their file; NULL: none are wanted, and only this machine may ask */
    const char *certificate, *key; /* paths; NULL: no TLS */
    bool insecure_plain_http; /* tokens come without TLS from other machines: something in front does it */
    bool tokens_in_path;      /* the back's path_clients may send them there (SERVE_TOKEN_PATH) */
    const struct server_back *back; /* borrowed */
    void *back_self;      /* taken: `end` gets it in the end, also where the server cannot be opened */
    unsigned connections; /* at once, of each address */
    unsigned connections_per_ip;
    size_t body_max;          /* bytes of a request's body */
    double request_timeout_s; /* to send a request, to wait for somebody who answers it, to take the answer */

    /* Gets a line about each request; called from several threads. NULL: nobody wants it. */
    void (*log)(void *state, const char *line);
    void *log_state;

    /* Gets a line when trouble begins and when it is over (troubles.h); from several threads. NULL: nobody.
     */
    void (*tell)(void *state, const char *line);
    void *tell_state;
};

enum { SERVER_ADDRESSES_MAX = 16 };

/*
 * "/token/SECRET/report" is "/report" by the bearer of that token, for clients that put paths behind
 * whatever address they are given, and can send no header.
 */
#define SERVE_TOKEN_PATH "/token/"

struct server;

/*
 * Listens at all addresses and serves from then on. Texts of `options` are borrowed
 * until the server is closed.
 */
int server_open(const struct server_options *options, struct server **out_server,
                struct fly_error *out_error);

/* Where it listens: "http://127.0.0.1:43121", "unix:/run/flyball-serve/serve.sock". */
size_t server_address_count(const struct server *server);
const char *server_address(const struct server *server, size_t index);

/* Ends what takes too long. */
void server_tick(struct server *server);

/*
 * Reads certificate and tokens anew, and tells how that went: a certificate that cannot be used
 * is left, and the old one stays; of tokens the file always says who gets in. From the thread that ticks.
 */
void server_reload(struct server *server);

/* Accepts no more connections, and closes those that are open after their next answer. */
void server_quiesce(struct server *server);

/* No request is being read, answered or written. */
bool server_is_idle(struct server *server);

/* One that was quiesced and is idle. */
void server_close(struct server *server);

#endif
