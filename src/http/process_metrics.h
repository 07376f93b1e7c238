/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_PROCESS_METRICS_H
#define FLYBALL_HTTP_PROCESS_METRICS_H

#include "base/buffer.h"
#include "shapes/meaning.h"

extern const struct quantities process_quantities;

/* Appends flyball_build_info{version}. */
void process_metrics_write_version(struct buffer *text);

/*
 * Appends the figures that any process has of itself, such as process_cpu_seconds_total, as far
 * as /proc gives them.
 */
void process_metrics_write(struct buffer *text);

#endif
