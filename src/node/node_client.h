/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_CLIENT_H
#define FLYBALL_NODE_NODE_CLIENT_H

#include <flyball/error.h>

#include "node/node_config.h"

/*
 * Asks the running daemon over the first Unix socket of its configuration: `flyballd release` and
 * `flyballd resume`. Returns when that is done. Errors of http_ask, and the daemon's own with its
 * text; FLY_EUSAGE without a Unix socket.
 */
int node_client_ask(const struct config *config, const char *path, struct fly_error *out_error);

#endif
