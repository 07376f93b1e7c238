/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PROMETHEUS_H
#define FLYBALL_HTTP_PROMETHEUS_H

#include "base/buffer.h"

/*
 * Pieces of Prometheus' text format. Each appends to `text`, and cannot fail but for the buffer.
 *
 *     prometheus_head(text, "flyball_http_connections", "gauge", "Connections that are open.");
 *     buffer_printf(text, "flyball_http_connections %zu\n", connections);
 */
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The two lines in front of a metric's values; `type` is "counter", "gauge" or "histogram". */
void prometheus_head(struct buffer *text, const char *name, const char *type, const char *help);

/* What stands between a label's quotes. */
void prometheus_label(struct buffer *text, const char *value);

#endif
