/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_WATCH_WATCH_PRIVATE_H
#define FLYBALL_NODE_WATCH_WATCH_PRIVATE_H

#include "base/thread/thread_group.h"
#include "node/watch/watch.h"
#include "node/watch/watch_state.h"

/* The inside of a watch, for the files of this room. */

enum { PLACES_MAX = WATCH_GPUS_MAX + WATCH_CPUS_MAX, SAVED_MAX = 1024, MESSAGE_MAX = 320 };

/* The devices of one opening of the driver. It closes when nobody uses it any more. */
struct generation {
    struct device_list list;
    unsigned users;          /* places that read it, calls that are under way, and who borrowed */
    struct generation *next; /* of those that are to be closed */
};

/* A device, and its eye. */
struct place {
    struct watch *watch;
    bool known;
    struct device_info info;
    const struct device *device;   /* NULL: none is open now */
    struct generation *generation; /* of that device */
    struct generation *lent;       /* whose device is borrowed */
    const struct device *lent_device;
    unsigned borrowers;
    struct mono_time call_began; /* of the call that is under way; 0: none is */
    unsigned failures;           /* readings in a row without energy or power */
    bool lost;
    char why[MESSAGE_MAX];      /* why it does not answer; "" if it does */
    struct watch_sample latest; /* id 0: there is none */
    struct watch_total total;
    struct shares shares;
    uint64_t polls;
};

struct watch {
    struct watch_options options;
    struct thread_group group; /* its lock is of all below, but for what the listener's has */
    bool released, opened;
    bool retry_now;           /* the keeper opens the driver without waiting for its time */
    struct generation *ended; /* to be closed by the keeper, linked */
    unsigned open_lists;
    size_t silent_count;   /* GPUs that did not answer when the driver was opened last */
    char why[MESSAGE_MAX]; /* why there is no device; "" if some are open */
    struct place places[PLACES_MAX];
    size_t gpu_count, cpu_count;
    struct watch_sample *ring;
    uint64_t newest_id;        /* 0: none */
    uint64_t comings;          /* of devices, and goings */
    struct watch_saved *saved; /* of the file, for devices that have not been seen yet */
    size_t saved_count;
    char *state_path; /* owned; NULL: none */
    bool save_wanted;
    char boot[WATCH_BOOT_MAX];
    struct mono_time save_due;
    pthread_mutex_t listener_lock;
    void (*fresh)(void *state);
    void *fresh_state;
};

/* For each of these the caller holds the lock, unless said otherwise. */

/* Starts using, and stops; what nobody uses is closed by the keeper. */
void generation_use(struct generation *generation);
void generation_drop(struct watch *watch, struct generation *generation);

/* For how long the call that is under way has lasted; 0: none is. */
double place_silent_s(const struct place *place);

/* Returns 0, or why the place has no sample of now. */
int place_check_fresh(const struct place *place, struct fly_error *out_error);

/* Leaves the device that a place reads, because of `why`. */
void place_leave(struct place *place, const char *why);

/* The threads' functions; without the lock. */
void watch_eye(void *state);    /* a struct place */
void watch_keeper(void *state); /* the watch */

/* Saves the totals; releases the lock while it writes. */
void watch_save(struct watch *watch);

/* Says a line to the log; without the lock. */
void watch_tell(const struct watch *watch, bool trouble, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
