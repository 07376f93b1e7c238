/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_STORE_READINESS_H
#define FLYBALL_SERVE_STORE_READINESS_H

#include "http/readiness.h"
#include "job/core/job_backend.h"
#include "serve/served_store.h"

/*
 * The service's own parts of readiness.h: whether its store answers, and whether the store's disk
 * accepts data. Once started, only the readiness thread uses this.
 */
struct store_readiness {
    struct served_store *store; /* borrowed */
    struct jobs jobs;
    struct trouble store_trouble, disk_trouble;
    struct fly_error disk; /* the last result for the disk, valid until `disk_until` */
    struct mono_time disk_until;
};

void store_readiness_init(struct store_readiness *looking, struct served_store *store);

/*
 * Opens the store once, to refuse an address that can never be served; a store that cannot be
 * reached now may be later, and is a trouble. Then adds both parts.
 */
int store_readiness_open(struct store_readiness *looking, struct readiness *readiness,
                         struct troubles *troubles, struct fly_error *out_error);

/* Call it when no check runs any more, also if it was never opened. */
void store_readiness_deinit(struct store_readiness *looking);

#endif
