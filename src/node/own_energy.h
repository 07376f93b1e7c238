/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_OWN_ENERGY_H
#define FLYBALL_NODE_OWN_ENERGY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "node/watch/watch.h"
#include "shapes/meaning.h"

/*
 * What the daemon itself costs, estimated: the energy of the CPU packages, times the daemon's share of the
 * time of all processors. That gives it its share of an idle machine's power too, and not more of it because
 * nobody else computes. Its guards, and what GPUs spend on being read, are not in it.
 *
 *     own_energy_init(&own);
 *     own_energy_write(&own, watch, &text);      at each scrape, any thread
 */
struct own_reading {
    double cpu_s;     /* of this process, since it began */
    double machine_s; /* of all processors, since some moment */
    double package_j; /* of all CPU packages; NAN: no meter */
};

struct own_energy {
    pthread_mutex_t lock;
    struct own_reading last; /* package_j NAN: none yet */
    double energy_j;
};

void own_energy_init(struct own_energy *own);
void own_energy_deinit(struct own_energy *own);

/* Returns what of the energy between two readings is the process's, 0 if that is not known. Pure. */
double own_energy_between(const struct own_reading *before, const struct own_reading *after);

/* Appends the total since the first call; nothing on a machine without a meter of its packages. */
void own_energy_write(struct own_energy *own, struct watch *watch, struct buffer *text);

extern const struct quantities own_energy_quantities;

#endif
