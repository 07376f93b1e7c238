/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PROMETHEUS_H
#define FLYBALL_HTTP_PROMETHEUS_H

#include "base/buffer.h"
#include "shapes/meaning.h"

/*
 * Writers of Prometheus' text format. Each appends to `text`; only the buffer can fail.
 *
 *     static const struct meaning open = {"flyball_http_connections", "", MEANING_WHOLE, 0, NULL,
 *                                         MEANING_GAUGE, "Connections that are open."};
 *     prometheus_head(text, &open);
 *     buffer_printf(text, "%s %zu\n", open.key, connections);
 */
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends the two lines before a metric's values: its help and its type. */
void prometheus_head(struct buffer *text, const struct meaning *family);

/* Appends a label's value, escaped, without the quotes around it. */
void prometheus_label(struct buffer *text, const char *value);

#endif
