/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_REFERENCE_H
#define FLYBALL_NODE_NODE_REFERENCE_H

#include "base/buffer.h"

/*
 * What the tables of settings, modes and figures say, in their forms; each appends to `out`, whose `error`
 * the caller checks.
 */
enum { NODE_REFERENCE_MAX = 1 << 20 };

void node_reference_help(struct buffer *out);       /* for the terminal */
void node_reference_manual(struct buffer *out);     /* flyballd.8, in mdoc */
void node_reference_quantities(struct buffer *out); /* of every series, in Markdown */

#endif
