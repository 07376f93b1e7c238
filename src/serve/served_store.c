/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/served_store.h"

#include "base/error.h"
#include "job/local/job_local.h"

void served_store_init(struct served_store *store, const char *address, const struct clock *clock)
{
    *store = (struct served_store){.address = address, .clock = clock, .file.fd = -1};
    pthread_mutex_init(&store->lock, NULL);
}

void served_store_deinit(struct served_store *store)
{
    disk_release(&store->file);
    pthread_mutex_destroy(&store->lock);
}

bool served_store_in_file(const struct served_store *store)
{
    return atomic_load(&store->known) && store->file.fd >= 0;
}

int served_store_check(struct served_store *store, struct fly_error *out_error)
{
    return served_store_in_file(store) ? disk_is_store(store->address, &store->file, out_error) : 0;
}

static int open_jobs(const struct served_store *store, double wait_s, bool existing, struct jobs *out_jobs,
                     struct fly_error *out_error)
{
    const struct job_options options = {.wait_s = wait_s, .clock = store->clock, .existing = existing};
    int code = jobs_open(store->address, &options, out_jobs, out_error);

    if (code == 0 && out_jobs->backend != &job_backend_local) {
        jobs_close(out_jobs);
        code =
            error_set(out_error, FLY_EUSAGE,
                      "a service keeps its jobs in a store; give a file or postgresql://..., not the address "
                      "of another service");
    }
    return code;
}

/* The lock must be held. */
static int open_first(struct served_store *store, double wait_s, struct jobs *out_jobs,
                      struct fly_error *out_error)
{
    int code = open_jobs(store, wait_s, false, out_jobs, out_error);

    if (code < 0)
        return code;
    code = disk_hold_store(store->address, &store->file, out_error);
    if (code < 0 && code != FLY_EUNSUPPORTED) {
        jobs_close(out_jobs);
        return code;
    }
    atomic_store(&store->known, true);
    return 0;
}

int served_store_open(struct served_store *store, double wait_s, struct jobs *out_jobs,
                      struct fly_error *out_error)
{
    int code;

    if (atomic_load(&store->known))
        return open_jobs(store, wait_s, true, out_jobs, out_error);
    pthread_mutex_lock(&store->lock);
    code = atomic_load(&store->known) ? open_jobs(store, wait_s, true, out_jobs, out_error)
                                      : open_first(store, wait_s, out_jobs, out_error);
    pthread_mutex_unlock(&store->lock);
    return code;
}
