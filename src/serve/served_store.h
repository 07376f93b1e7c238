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
 * The one store that a service serves. The first successful open creates the store if there is
 * none. After that nothing is created: if the store's file is missing, or another file has its
 * place, the store counts as away until that very file is back. Thread-safe.
 *
 *     served_store_init(&store, address, clock);
 *     code = served_store_check(&store, out_error);
 *     if (code == 0)
 *         code = served_store_open(&store, wait_s, &jobs, out_error);
 *     ... jobs_close(&jobs) ...
 *     served_store_deinit(&store);
 */
struct served_store {
    const char *address;       /* as for jobs_open; borrowed */
    const struct clock *clock; /* dates events; NULL: the store's own; borrowed */
    pthread_mutex_t lock;      /* guards the first open */
    atomic_bool known;         /* it has been opened once */
    struct disk_file file;     /* the file at that time, held so that no other file gets its inode number */
};

void served_store_init(struct served_store *store, const char *address, const struct clock *clock);
void served_store_deinit(struct served_store *store);

/* Returns 0, or FLY_EUNREACHABLE: its file is missing, or another file has its place. */
int served_store_check(struct served_store *store, struct fly_error *out_error);

/* Returns whether it has been opened once and lies in a file. */
bool served_store_in_file(const struct served_store *store);

/*
 * Opens its jobs, with a handle that waits up to `wait_s` for a lock or a server. FLY_EUSAGE: the
 * address is that of another service.
 */
int served_store_open(struct served_store *store, double wait_s, struct jobs *out_jobs,
                      struct fly_error *out_error);

#endif
