/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_SERVED_STORE_H
#define FLYBALL_SERVE_SERVED_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "job/jobs.h"
#include "serve/disk.h"

/*
 * The one store that a service serves. The first open that succeeds makes the store where there is
 * none. From then on nothing is made: a store whose file is missing, or has another in its place, is
 * away until that very file is back. Thread-safe.
 *
 *     served_store_init(&store, address, clock);
 *     code = served_store_check(&store, out_error);
 *     if (code == 0)
 *         code = served_store_open(&store, wait_s, &jobs, out_error);
 *     ... jobs_close(&jobs) ...
 *     served_store_deinit(&store);
 */
struct served_store {
    const char *address;       /* jobs_open; borrowed */
    const struct clock *clock; /* dates events; NULL: the store's own; borrowed */
    pthread_mutex_t lock;      /* over the first open */
    atomic_bool known;         /* it was open once */
    struct disk_file file;     /* that it was then; held, so that no other file gets its number */
};

void served_store_init(struct served_store *store, const char *address, const struct clock *clock);
void served_store_deinit(struct served_store *store);

/* 0, or FLY_EUNREACHABLE: its file is not there, or another is in its place. */
int served_store_check(struct served_store *store, struct fly_error *out_error);

/* Whether it was open once, and lies in a file. */
bool served_store_in_file(const struct served_store *store);

/* Its jobs, by a handle that waits so long for a lock or a server. FLY_EUSAGE: another service's address. */
int served_store_open(struct served_store *store, double wait_s, struct jobs *out_jobs,
                      struct fly_error *out_error);

#endif
