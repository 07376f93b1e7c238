/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_RESTORE_H
#define FLYBALL_NODE_NODE_RESTORE_H

#include <flyball/error.h>

#include "node/node_config.h"

/*
 * Puts back what a daemon that died, and other sessions that died, left on this machine's GPUs, and
 * logs a line for each: `flyballd restore`, which systemd calls after each end of the daemon. What
 * another program set since stays.
 *
 * Returns 0 if nothing is left to put back. FLY_EUNSURE if something could not be put back now;
 * FLY_ESTATE, FLY_EPERM, FLY_EREAD.
 */
int node_restore(const struct config *config, struct fly_error *out_error);

#endif
