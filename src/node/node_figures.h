/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_FIGURES_H
#define FLYBALL_NODE_NODE_FIGURES_H

#include "base/buffer.h"
#include "node/node_daemon.h"
#include "shapes/meaning.h"

extern const struct quantities node_gpu_quantities, node_quantities;

/*
 * Appends the figures of leases, of the audit log and of the daemon's own energy, in Prometheus' text
 * format. Any thread; asks no driver.
 */
void node_figures_write(struct daemon *daemon, struct buffer *text);

#endif
