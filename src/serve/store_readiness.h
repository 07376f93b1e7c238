/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_STORE_READINESS_H
#define FLYBALL_SERVE_STORE_READINESS_H

#include "http/readiness.h"
#include "job/core/job_backend.h"
#include "serve/served_store.h"

/*
 * The parts of readiness.h that are the service's: its store answers, and the disk that it lies on takes
 * data. Used by the thread that looks, once it is started.
 */
struct store_readiness {
    struct served_store *store; /* borrowed */
    struct jobs jobs;
    struct trouble store_trouble, disk_trouble;
    struct fly_error disk; /* what was found of it, which holds until then */
    struct mono_time disk_until;
};

void store_readiness_init(struct store_readiness *looking, struct served_store *store);

/*
 * Opens the store once, to refuse an address that can never be served; one that cannot be
 * reached now may be later, and is a trouble. Then adds both parts.
 */
int store_readiness_open(struct store_readiness *looking, struct readiness *readiness,
                         struct troubles *troubles, struct fly_error *out_error);

/* Once nobody looks any more; also one that was not opened. */
void store_readiness_deinit(struct store_readiness *looking);

#endif
