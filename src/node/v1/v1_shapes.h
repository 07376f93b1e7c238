/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_V1_V1_SHAPES_H
#define FLYBALL_NODE_V1_V1_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/lease/leases.h"
#include "node/watch/watch.h"
#include "shapes/shape.h"

/* What the routes say and are asked, as structs and their shapes. Unknown numbers are NAN, and null in JSON.
 */

/* What a GPU reads, in units for people; also an event of the stream. */
struct v1_figures {
    uint64_t id;     /* of the sample; 0: there is none */
    int64_t unix_ms; /* when it was read */
    double energy_j; /* counted since the daemon was installed; goes on over restarts */
    double power_w, power_limit_w, power_limit_enforced_w;
    double temperature_c, clock_gpu_mhz, clock_memory_mhz, utilization_percent;
};

struct v1_gpu {
    uint64_t index;
    const char *uuid, *pci, *name, *driver;
    bool answers;
    const char *why; /* it does not answer; NULL if it does */
    struct v1_figures *figures;
    double power_limit_min_w, power_limit_max_w, power_limit_default_w;
    uint64_t leases;
    bool turned; /* a knob stands elsewhere than before the leases */
    bool may_control;
    const char *may_not;       /* why the caller may not; NULL if he may */
    double floor_w, ceiling_w; /* between which he may set it; NAN: no bound */
};

struct v1_gpus {
    size_t count;
    struct v1_gpu *gpus;
};

/* A wish, as asked and as told. */
struct v1_wish {
    double power_limit_w, clock_floor_mhz, clock_ceiling_mhz; /* NAN: not asked for */
    double memory_clock_floor_mhz, memory_clock_ceiling_mhz;
    const char *performance_level; /* NULL: not asked for */
    bool has_persistence, persistence_mode;
    const char *workload_profiles; /* "MAX_Q,MEMORY"; "none" for none of them; NULL: not asked for */
};

struct v1_lease_request {
    size_t gpu_count;
    const char **gpus; /* indices, UUIDs, PCI addresses */
    struct v1_wish wish;
    double expires_s; /* NAN: it need not be renewed */
    const char *bind; /* "process", "connection"; NULL: process */
    const char *program;
    bool overrules;
};

struct v1_renewal {
    double expires_s;
};

/* What stands on a GPU of a lease, as its driver says since it was turned last. NAN: unknown, or not turned.
 */
struct v1_set {
    uint32_t gpu; /* index */
    double power_limit_w, power_limit_enforced_w, clock_ceiling_mhz, memory_clock_ceiling_mhz;
};

struct v1_lease {
    const char *id;
    size_t gpu_count;
    const uint32_t *gpus; /* indices */
    struct v1_wish wish;  /* what was asked for */
    size_t set_count;
    const struct v1_set *set;
    uint64_t pid;       /* 0: it ends with no process */
    const char *holder; /* for people */
    bool own;           /* the caller may change it */
    bool connection;    /* it ends with its connection */
    double expires_s;   /* from now on; NAN: it need not be renewed */
};

struct v1_leases {
    size_t count;
    struct v1_lease *leases;
};

struct v1_release_request {
    double most_s;
};

struct v1_done {
    bool done;
};

extern const struct shape shape_v1_figures, shape_v1_gpu, shape_v1_gpus;
extern const struct shape shape_v1_lease_request, shape_v1_change, shape_v1_renewal;
extern const struct shape shape_v1_lease, shape_v1_leases;
extern const struct shape shape_v1_release_request, shape_v1_done;

/* Translates a sample. */
void v1_figures_of(const struct watch_sample *sample, struct v1_figures *out_figures);

/* Returns a reading in its unit times `factor`; NAN if it is unknown. */
double v1_reading(const struct watch_sample *sample, enum quantity quantity, double factor);

/*
 * Translate a wish. v1_wish_take: FLY_EUSAGE names the member that cannot be. `profiles` of
 * v1_wish_of gets the names of workload profiles.
 */
int v1_wish_take(const struct v1_wish *from, struct lease_wish *out_wish, struct fly_error *out_error);
void v1_wish_of(const struct lease_wish *from, char profiles[WORKLOAD_TEXT_MAX], struct v1_wish *out_wish);

#endif
