/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_DEVICE_PROCESSES_H
#define FLYBALL_DEVICE_DEVICE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/quantity.h"

/*
 * Who uses a device: its processes, what each kept busy, and the parts into which it is divided.
 *
 *     struct device_process processes[64];
 *     struct device_use_sample samples[64];
 *     size_t count, sample_count;
 *
 *     if (device_processes(&device, DEVICE_PROCESSES_ALL, processes, 64, &count) == 0)
 *         ...
 *     state = device_use(&device, newest_us, samples, 64, &sample_count);
 *     if (state == READING_OK)
 *         ...                                    (then newest_us = the newest sample's stamp)
 *     else
 *         reading_state_clause(state)             (why processes cannot be told apart by their use)
 *
 * Pids are those that the driver tells. NVIDIA's tells those of the pid namespace of the process that asks,
 * and lists no process that is invisible there; on the host that is every process, in containers too.
 *
 * All calls are thread-safe, also several at once on one device, and may take as long as the driver does.
 * They allocate nothing, except where a GPU has more than DEVICE_PROCESSES_AT_ONCE processes or samples.
 */

/*
 * What a process does on a device. One that does several things counts as the last of them here, since the
 * driver lists MPS clients among those that compute too.
 */
enum device_process_kind {
    DEVICE_PROCESS_GRAPHICS,
    DEVICE_PROCESS_COMPUTE,
    DEVICE_PROCESS_MPS, /* a client of NVIDIA's Multi-Process Service, whose server owns the context */
    DEVICE_PROCESS_KIND_COUNT
};

/* A set of kinds, one bit each. */
#define DEVICE_PROCESS_BIT(kind) (1U << (kind))
enum {
    DEVICE_PROCESSES_COMPUTING = DEVICE_PROCESS_BIT(DEVICE_PROCESS_COMPUTE),
    DEVICE_PROCESSES_ALL = DEVICE_PROCESS_BIT(DEVICE_PROCESS_KIND_COUNT) - 1
};

#define DEVICE_MEMORY_UNKNOWN UINT64_MAX
#define DEVICE_NO_INSTANCE UINT32_MAX

enum { DEVICE_PROCESSES_AT_ONCE = 256, DEVICE_INSTANCES_MAX = 16 };

struct device_process {
    pid_t pid;
    uint64_t memory_bytes; /* of the device, that it has; DEVICE_MEMORY_UNKNOWN: not told */
    enum device_process_kind kind;
    uint32_t
        instance; /* MIG GPU instance in which it runs, as in device_instance; DEVICE_NO_INSTANCE: none */
};

/*
 * What a process kept busy in a short time that ended at `at_us`, as the driver sampled it. NVIDIA's takes
 * samples a sixth of a second to a second apart, keeps those of the last some seconds, also of processes that
 * ended since, and has none of a process that kept nothing busy. Shares of processes that run at the same
 * time may add up to more than 100.
 */
struct device_use_sample {
    pid_t pid;
    int64_t at_us;          /* the driver's date, in microseconds since 1970; see device_use */
    uint8_t sm_percent;     /* share of the time with a kernel of it on the processors, 0 to 100 */
    uint8_t memory_percent; /* share of the time in which it read or wrote device memory, 0 to 100 */
};

/* A part of a GPU that MIG has divided: a GPU instance. */
struct device_instance {
    uint32_t id;              /* as in device_process */
    uint32_t slices;          /* of the GPU's `slices`; 0: not told */
    uint32_t multiprocessors; /* 0: not told */
    uint64_t memory_bytes;    /* 0: not told */
};

struct device_division {
    bool divided;    /* MIG is on; then the GPU may still have no instances */
    uint32_t slices; /* into which MIG can divide the GPU; 0: not told */
    size_t instance_count;
    struct device_instance instances[DEVICE_INSTANCES_MAX]; /* in the driver's order, each id once */
};

struct device;

/*
 * Stores how much of the device's memory programs have, those of others included; what the driver keeps for
 * itself is left out.
 */
enum reading_state device_memory_used(const struct device *device, uint64_t *out_bytes);

/*
 * Lists the processes of the wanted kinds (a set of DEVICE_PROCESS_BIT) that use the device now, each once
 * per pid and instance, at most `maximum`; if `out_count` is `maximum`, there may be more. A process of two
 * wanted kinds has the one that comes later in the enumeration. A kind that the driver does not know
 * has no processes. MPS serves a device on which a process is of kind MPS; its server,
 * "nvidia-cuda-mps-server", is listed as COMPUTE. Where only COMPUTE is wanted, MPS clients are COMPUTE too.
 *
 * FLY_EUNSUPPORTED if the device lists no processes at all, FLY_EPERM, FLY_EREAD, FLY_ENOMEM; `out_count` is
 * untouched then, and the contents of `processes` are not defined. The list is of several calls of the
 * driver: processes that come or go meanwhile are in it or not.
 */
int device_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                     size_t maximum, size_t *out_count);

/*
 * Gives the samples with a stamp after `since_us`, at most `maximum`, in no order; 0 gives all that the
 * driver still has. The stamps are comparable with each other alone: pass the newest one seen. Samples that
 * no driver should give (of no process, over 100 %, not after `since_us`) are left out.
 *
 * READING_OK, with a count of 0 if no process kept anything busy since then. READING_UNSUPPORTED where the
 * driver does not tell processes apart, as on a GPU that MIG has divided; otherwise why there are none. Of
 * MPS, NVIDIA's driver has samples of the server or of clients; which ones is for the caller to see.
 */
enum reading_state device_use(const struct device *device, int64_t since_us,
                              struct device_use_sample *samples, size_t maximum, size_t *out_count);

/*
 * Tells how the device is divided. READING_UNSUPPORTED for a device that cannot be divided, which is used as
 * a whole; READING_OK with `divided` false likewise.
 */
enum reading_state device_division(const struct device *device, struct device_division *out_division);

#endif
