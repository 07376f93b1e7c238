/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TRAFFIC_H
#define FLYBALL_HTTP_TRAFFIC_H

#include <pthread.h>
#include <stdint.h>

#include "base/buffer.h"
#include "shapes/meaning.h"

/*
 * Counts the requests that a server has answered since its start, by family of routes and status,
 * for Prometheus. Thread-safe.
 */
enum { TRAFFIC_ANSWERS_MAX = 256 /* pairs of a family and a status; others are not counted */ };

extern const struct quantities traffic_quantities;

struct traffic_answers {
    const char *family;
    int status;
    uint64_t count;
};

struct traffic {
    pthread_mutex_t lock;
    struct traffic_answers answers[TRAFFIC_ANSWERS_MAX];
    size_t answers_count;
};

void traffic_init(struct traffic *traffic);
void traffic_deinit(struct traffic *traffic);

/* Counts an answer that was sent. `family` is static. */
void traffic_count(struct traffic *traffic, const char *family, int status);

/* Appends what was counted, and the two figures of this moment. */
void traffic_write(struct traffic *traffic, size_t connections, size_t requests, struct buffer *text);

#endif
