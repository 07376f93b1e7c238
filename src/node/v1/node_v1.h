/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_V1_NODE_V1_H
#define FLYBALL_NODE_V1_NODE_V1_H

#include <stdbool.h>

#include <flyball/error.h>

#include "http/exchange.h"
#include "node/admit/admit.h"
#include "node/lease/leases.h"
#include "node/share/share.h"
#include "node/stream/sample_stream.h"
#include "node/watch/watch.h"

/*
 * The daemon's own routes, below /v1/; docs/howto/flyballd.md lists them for clients. node_v1.c has them
 * as a table.
 *
 *     if (node_v1_is_below(request->path)) {
 *         if (node_v1_waits(request))
 *             ... pass it to a thread that may wait for a driver ...
 *         node_v1_answer(v1, request, answer);
 *     }
 *
 * Whatever only reads is answered from the watch's last samples, without a call of a driver.
 * Thread-safe but for opening and closing.
 */
struct node_v1;

struct node_v1_options {
    struct watch *watch; /* all borrowed */
    struct admit *admit;
    struct leases *leases;
    struct sample_streams *streams;
    struct share *share; /* NULL: nobody keeps account */
    size_t leased;       /* GPUs that the leases know, from place 0 on */

    /*
     * Puts everything back and closes the driver, and opens it again; the daemon's own, since other
     * parts use the driver too. Return 0, or a code with its error.
     */
    int (*release)(void *daemon, double most_s, struct fly_error *out_error);
    int (*resume)(void *daemon, struct fly_error *out_error);
    void *daemon;
};

/* FLY_ENOMEM. */
int node_v1_open(const struct node_v1_options *options, struct node_v1 **out_v1, struct fly_error *out_error);
void node_v1_close(struct node_v1 *v1); /* accepts NULL */

/* Returns whether a path is one of this family's. */
bool node_v1_is_below(const char *path);

/* Returns whether the answer may have to wait for a driver. */
bool node_v1_waits(const struct serve_request *request);

/* Answers; the caller owns the answer's body. */
void node_v1_answer(struct node_v1 *v1, const struct serve_request *request, struct serve_answer *out_answer);

#endif
