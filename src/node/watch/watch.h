/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_WATCH_WATCH_H
#define FLYBALL_NODE_WATCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "device/device.h"
#include "meter/shares.h"
#include "node/watch/watch_total.h"

/*
 * Reads all devices of a machine at a steady rate, for as long as the daemon runs.
 *
 *     watch_open(&options, &watch, out_error);
 *     watch_latest(watch, 0, &sample, out_error);              GPU 0, a poll ago at most
 *     count = watch_since(watch, seen_id, samples, 64, &lost);  all that came since
 *     watch_close(watch);
 *
 * Each device has a thread of its own, its eye, so that a driver call that hangs on one GPU stops no
 * other. Another thread, the keeper, opens the driver: also one that is not there yet, one that was
 * reset, and a GPU that was lost and came back. A GPU keeps its place by its UUID.
 *
 * Places 0 to watch_gpu_count - 1 are GPUs. CPU packages and memory have the places from
 * WATCH_CPU_FIRST on, watch_cpu_count of them.
 *
 * Samples go into a ring for all devices: a reader that is too slow loses the oldest, and is told
 * how many. Totals of energy go on over restarts (watch_total.h) if there is a file for them.
 *
 * Thread-safe, but for opening and closing. After fork only the parent may use it.
 */
struct watch;

enum { WATCH_GPUS_MAX = 64, WATCH_CPUS_MAX = 32, WATCH_CPU_FIRST = WATCH_GPUS_MAX };

struct watch_options {
    const struct device_options *devices; /* borrowed */
    double poll_s;                        /* between two readings of a device; 0: 0.1 s */
    const char *state_path;    /* of the totals, whose directory is made; copied; NULL: they begin at 0 */
    double save_s;             /* between two times that the totals are saved; 0: 10 s */
    double retry_s;            /* between two attempts to open the driver; 0: 2 s */
    size_t ring;               /* samples that are kept; 0: 64 for each place */
    const struct clock *clock; /* stamps readings; NULL: clock_real; borrowed */
    /* Gets a line for the log, which tells of a trouble or not; from any thread. NULL: nobody. */
    void (*tell)(void *state, bool trouble, const char *line);
    void *tell_state;
    /* Opens the devices; NULL: device_list_open. For tests. */
    int (*open_list)(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error);
};

struct watch_sample {
    uint64_t id; /* rises from sample to sample, over all devices, from 1 on */
    struct mono_time at;
    int64_t unix_ms;
    size_t gpu; /* its place */
    struct device_reading reading;
    double energy_total_j; /* goes on over restarts */
    double energy_j;       /* since this device's sample before, */
    double since_s;        /* which was so long ago; 0: there was none */
};

/* What has become of a device. */
struct watch_device {
    struct device_info info;
    bool present;             /* it is open and answers */
    double silent_s;          /* for how long the call that is under way has lasted; 0: none hangs */
    struct watch_total total; /* since the first daemon with this file of totals */
    struct shares shares;     /* likewise, without gaps in which nobody watched */
};

/*
 * Starts to watch, and waits until the driver has been opened once or has failed to open, 10 s at
 * most. No device is no error: it is looked for again. A file of totals that is damaged is told, and
 * not written. FLY_ENOMEM.
 */
int watch_open(const struct watch_options *options, struct watch **out_watch, struct fly_error *out_error);

/* Saves the totals and frees all; a thread that hangs in the driver is left behind. Accepts NULL. */
void watch_close(struct watch *watch);

/* GPUs that are known, also lost ones; the number only rises. */
size_t watch_gpu_count(struct watch *watch);
/* CPU packages and memories. */
size_t watch_cpu_count(struct watch *watch);

/* Gives what does not change of the device at that place; zeroed for a place without. */
void watch_gpu_info(struct watch *watch, size_t gpu, struct device_info *out_info);
void watch_look(struct watch *watch, size_t gpu, struct watch_device *out_device);

/*
 * Raises a total to what somebody else has on record as counted, if it is less: after a crash the file of
 * totals may be older. Does not lower it.
 */
void watch_raise(struct watch *watch, size_t gpu, int64_t energy_uj);

/*
 * Gives the newest sample. FLY_ENOTFOUND for a place without a device; FLY_EREAD, with why, while the
 * device does not answer: it hangs, was lost, or the driver was released.
 */
int watch_latest(struct watch *watch, size_t gpu, struct watch_sample *out_sample,
                 struct fly_error *out_error);

/*
 * Gives the samples after that id, oldest first, `max` at most, and how many between them are no
 * longer there. After 0: all that are kept, and none counts as lost.
 */
size_t watch_since(struct watch *watch, uint64_t after_id, struct watch_sample *out_samples, size_t max,
                   uint64_t *out_lost);

/* Returns a number that is another one after each sample, and when a device comes or goes. */
uint64_t watch_stamp(struct watch *watch);

/*
 * Calls `fresh` after each sample, from several threads, one at a time; it must not block, and must
 * not call watch_listen. NULL: no more calls from the return of this function on.
 */
void watch_listen(struct watch *watch, void (*fresh)(void *state), void *state);

/*
 * Lends the device, which stays open until it is given back as often. FLY_EUNSUPPORTED while there
 * is none at that place.
 */
int watch_borrow(struct watch *watch, size_t gpu, const struct device **out_device,
                 struct fly_error *out_error);
void watch_give_back(struct watch *watch, size_t gpu);

/*
 * Closes the driver, for an upgrade or a reset: nothing is read until watch_resume. FLY_EBUSY if
 * devices are still lent, or a call hangs, after `most_s`; it closes when they are back.
 */
int watch_release(struct watch *watch, double most_s, struct fly_error *out_error);
void watch_resume(struct watch *watch);

/*
 * Appends the figures of all devices in Prometheus' text format, all as of one moment. It asks no
 * driver. What is unavailable has no series.
 */
void watch_write_metrics(struct watch *watch, struct buffer *text);

/*
 * Writes a GPU's labels, "gpu=\"0\",uuid=\"GPU-8f3a...\",model=\"...\",source=\"measured\"", which all its
 * series have; "" for a place without a GPU.
 */
enum { WATCH_LABELS_MAX = 640 };
char *watch_labels(struct watch *watch, size_t gpu, char labels[WATCH_LABELS_MAX]);

extern const struct quantities watch_quantities;

#endif
