/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_SERVER_H
#define FLYBALL_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "http/porter.h"
#include "http/server_back.h"

/*
 * An HTTP server: it listens, checks requests, and passes them to the back (server_back.h), which
 * answers them.
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
 * Threads: each address has one thread, which reads and writes all of its connections and never
 * blocks, so that a slow client costs a little memory and no thread. Requests whose answer may
 * take time wait for the back's threads. The server itself answers /healthz, /readyz
 * (readiness.h) and /metrics, even while the back is busy.
 *
 * Between two requests the server keeps nothing but counters.
 */
struct server_options {
    const char *const *listen; /* listen_address.h; 1 .. SERVER_ADDRESSES_MAX */
    size_t listen_count;
    const char *socket_owner, *socket_group; /* of Unix sockets, names or numbers; NULL: as the process */
    unsigned socket_mode;    /* of Unix sockets, as 0666; 0: 0660 with a group and 0600 without */
    const char *tokens;      /* path of the file of tokens; NULL: no tokens, and only this machine may ask */
    const char *signing_key; /* path of the key of signed tokens (signed_token.h), if the back admits callers;
                                NULL: there are none */
    const char *certificate, *key; /* paths; NULL: no TLS */
    bool insecure_plain_http; /* allows tokens from other machines without TLS, because something in front
                                 does TLS */
    bool tokens_in_path;      /* lets the back's path_clients send tokens in the path (SERVE_TOKEN_PATH) */
    const struct server_back *back; /* borrowed */
    void *back_self;                /* taken: `end` gets it last, also if the server cannot be opened */
    unsigned connections;           /* open at once, of each address */
    unsigned connections_per_ip;    /* of a user or another machine, of each TCP address (door_shares.h) */

    /*
     * Accepts connections of Unix sockets, in a process of its own (porter.h): requests then carry their
     * peer (struct serve_peer), and no descriptor that a client sends comes into this process. Borrowed,
     * and ended with the server. NULL: nothing is known of peers, and clients of Unix sockets are trusted.
     */
    struct porter *porter;
    bool proofs; /* clients may send descriptors of GPUs, as proofs; otherwise the kernel refuses all, if it
                    can */
    bool names_users; /* finds out the user of each connection that the kernel names, over the loopback
                         and without a porter, too */
    unsigned connections_per_user; /* of Unix sockets, with a porter; 0: no limit */
    unsigned root_connections;     /* of each Unix socket, with a porter: more, for root alone (peers.h) */
    unsigned device_major;         /* of GPU devices, with a porter; 0: SERVER_DEVICE_MAJOR */
    const char *device_directory;  /* holds them as nvidia0, nvidia1 ...; NULL: "/dev" */
    size_t body_max;               /* most bytes of a request's body */
    double request_timeout_s;      /* to send a request, to wait for who answers it, to take the answer */

    /* Gets a line about each request; called from several threads. NULL: no such lines. */
    void (*log)(void *state, const char *line);
    void *log_state;

    /*
     * Gets a line when a trouble begins and when it is over (troubles.h); from several threads. NULL:
     * no lines.
     */
    void (*tell)(void *state, const char *line);
    void *tell_state;
};

enum { SERVER_ADDRESSES_MAX = 16, SERVER_DEVICE_MAJOR = 195 /* of the driver of NVIDIA */ };

/*
 * "/token/SECRET/report" means "/report" from the bearer of that token. It is for clients that
 * append their paths to any address they are given, and cannot send a header.
 */
#define SERVE_TOKEN_PATH "/token/"

struct server;

/*
 * Listens at all addresses and serves from then on. Texts of `options` are borrowed until the
 * server is closed.
 */
int server_open(const struct server_options *options, struct server **out_server,
                struct fly_error *out_error);

/* The addresses at which it listens: "http://127.0.0.1:43121", "unix:/run/flyball-serve/serve.sock". */
size_t server_address_count(const struct server *server);
const char *server_address(const struct server *server, size_t index);

/* Ends requests and connections that take too long, and lets the back do its periodic work. */
void server_tick(struct server *server);

/*
 * Asks the server itself, over a Unix socket of its own, on the way that all clients take, and counts
 * for no limit. Returns a socket that does not block, on which "HTTP/1.1 200" comes if all is well;
 * owned. -1: there is no such way. Call it, as the next, from the thread that ticks.
 */
int server_probe(struct server *server);

/* Returns false if the process that accepts connections has died: the server is to be started again. */
bool server_is_reached(struct server *server);

/*
 * Reads the certificate, the tokens and the signing key again, and reports how that went. If the new
 * certificate or key cannot be used, the old one stays. Tokens always follow the file as it is. Call it from
 * the thread that ticks.
 */
void server_reload(struct server *server);

/* Accepts no more connections, and closes open ones after their next answer. */
void server_quiesce(struct server *server);

/*
 * Returns whether no request is being read, answered or written. A second after server_quiesce, one whose
 * body is not whole counts no more.
 */
bool server_is_idle(struct server *server);

/* Closes a server that was quiesced and is idle. */
void server_close(struct server *server);

#endif
