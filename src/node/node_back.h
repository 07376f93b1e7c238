/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_BACK_H
#define FLYBALL_NODE_NODE_BACK_H

#include "http/server.h"
#include "node/node_daemon.h"
#include "node/node_listen.h"

/*
 * The daemon behind its server (http/server_back.h). Requests that only read are answered by the
 * server's own thread, from samples in memory; those that may wait for a driver go to workers.
 */
enum { NODE_WORKERS_MAX = 64 };

/*
 * Opens the server in front of the daemon, at these addresses and behind this porter; all are borrowed
 * until the server is closed. Errors as server_open.
 */
int node_back_open(struct daemon *daemon, const struct node_listen *listen, struct porter *porter,
                   struct server **out_server, struct fly_error *out_error);

#endif
