/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/store_readiness.h"

#include "base/arena.h"
#include "base/error.h"
#include "serve/disk.h"

enum { SHOWN_BYTES = 1 << 20 };
static const double look_wait_s = 2.0, disk_every_s = 1.0;

static const struct readiness_reason store_reasons[] = {
    {FLY_EUNREACHABLE, "the store is not there, or cannot be reached"},
    {FLY_ENOTFOUND, "the store is not there"},
    {FLY_EBUSY, "another program holds the store's lock"},
    {FLY_EPERM, "the store may not be read or written"},
    {0, "the store cannot be used"},
};
static const struct readiness_reason disk_reasons[] = {
    {0, "a MiB cannot be written where the store lies"},
};

/* Looks for a job that cannot exist: the answer that there is none shows that the store works. */
static int look_at_store(void *self, struct fly_error *out_error)
{
    struct store_readiness *looking = self;
    struct job_shown shown;
    struct arena arena;
    int code = served_store_check(looking->store, out_error);

    if (code == 0 && looking->jobs.backend == NULL)
        code = served_store_open(looking->store, look_wait_s, &looking->jobs, out_error);
    if (code < 0)
        return code;
    arena_init(&arena, SHOWN_BYTES);
    code = looking->jobs.backend->show(looking->jobs.self, "flyball-readyz-asks-for-no-job", &arena, &shown,
                                       out_error);
    arena_deinit(&arena);
    if (code == FLY_ENOTFOUND)
        code = 0;
    if (code < 0)
        jobs_close(&looking->jobs);
    return code;
}

/* Checks at most once a second, since anybody may ask and a check costs the disk something. */
static int look_at_disk(void *self, struct fly_error *out_error)
{
    struct store_readiness *looking = self;
    struct mono_time now = mono_now();

    if (now.ns >= looking->disk_until.ns) {
        looking->disk.code = disk_check(looking->store->address, &looking->disk);
        looking->disk_until = mono_after_s(now, disk_every_s);
    }
    *out_error = looking->disk;
    return looking->disk.code == FLY_EUNSUPPORTED ? READINESS_ABSENT : looking->disk.code;
}

/* Returns whether a store that fails with this code at the start may become usable later. */
static bool may_come(int code)
{
    return code == FLY_EUNREACHABLE || code == FLY_EBUSY || code == FLY_EUNSURE;
}

void store_readiness_init(struct store_readiness *looking, struct served_store *store)
{
    *looking = (struct store_readiness){
        .store = store,
        .store_trouble = {.name = "store",
                          .meaning = "requests are answered with 503 until it is back",
                          .over = "it answers again"},
        .disk_trouble = {.name = "disk",
                         .meaning = "reports are answered with 503 or 507 until that is mended",
                         .over = "it takes data again"},
    };
}

int store_readiness_open(struct store_readiness *looking, struct readiness *readiness,
                         struct troubles *troubles, struct fly_error *out_error)
{
    const struct readiness_part of_store = {.name = "store",
                                            .reasons = store_reasons,
                                            .trouble = &looking->store_trouble,
                                            .too_slow = "the store has not answered in time",
                                            .look = look_at_store,
                                            .self = looking};
    const struct readiness_part of_disk = {.name = "disk",
                                           .reasons = disk_reasons,
                                           .trouble = &looking->disk_trouble,
                                           .look = look_at_disk,
                                           .self = looking};
    struct fly_error why = {.code = 0};
    int code = served_store_open(looking->store, look_wait_s, &looking->jobs, &why);

    if (code < 0 && !may_come(code)) {
        if (out_error != NULL)
            *out_error = why;
        return code;
    }
    troubles_set(troubles, &looking->store_trouble, code < 0 ? &why : NULL);
    readiness_add(readiness, &of_store);
    readiness_add(readiness, &of_disk);
    return 0;
}

void store_readiness_deinit(struct store_readiness *looking)
{
    jobs_close(&looking->jobs);
}
