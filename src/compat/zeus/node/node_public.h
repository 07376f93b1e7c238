/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_NODE_NODE_PUBLIC_H
#define FLYBALL_COMPAT_ZEUS_NODE_NODE_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "http/exchange.h"
#include "node/admit/admit.h"
#include "node/lease/leases.h"
#include "node/stream/sample_stream.h"
#include "node/watch/watch.h"

/*
 * The routes of the public project's daemon, zeusd 0.5, so that its clients work with this daemon as they
 * are: /discover, /time, /auth/whoami, and what stands below /gpu/ and /cpu/.
 *
 *     if (node_public_is_below(request.path))
 *         node_public_answer(public, &request, &answer);
 *
 * A route belongs to a group, which is also the scope that its tokens must have (enum signed_scope). A group
 * that is not enabled is not there: 404. Paths, parameters, answers and statuses are that daemon's. What it
 * does not know is this daemon's: a client that turns a knob has a lease for as long as its process lives
 * (leases_turn), within the operator's bounds, and if the operator's rules let it (node/admit). So over TCP
 * nobody turns anything without a token.
 *
 * Tokens are wanted if the server has a signing key (http/signed_token.h): then everything but /discover and
 * /time takes a token of the group's scope, one that was signed or one of the file of tokens.
 *
 * Reading answers from the watch's samples and never waits. A command with block=false is queued, and
 * carried out after those before it on the same GPU; if it fails, the log has it.
 *
 * Thread-safe but for opening and closing.
 */
struct node_public;

struct node_public_options {
    struct watch *watch; /* borrowed, as all here */
    struct admit *admit;
    struct leases *leases;
    struct sample_streams *streams;
    size_t leased;     /* GPUs that the leases have hands for */
    unsigned groups;   /* enabled: bit N is enum signed_scope N */
    bool wants_tokens; /* the server has a signing key */
    /* Gets a line for the log when a queued command failed; from any thread. NULL: nobody. */
    void (*tell)(void *state, const char *line);
    void *tell_state;
};

/* FLY_ENOMEM. */
int node_public_open(const struct node_public_options *options, struct node_public **out_public,
                     struct fly_error *out_error);

/*
 * Drops commands that are queued, waits for those that are being carried out, and frees. Call it while the
 * leases are still open, when no stream is open any more. Accepts NULL.
 */
void node_public_close(struct node_public *public);

/* Returns whether a path belongs to these routes. */
bool node_public_is_below(const char *path);

/* Returns whether answering may wait for a driver. */
bool node_public_waits(const struct serve_request *request);

void node_public_answer(struct node_public *public, const struct serve_request *request,
                        struct serve_answer *out_answer);

#endif
