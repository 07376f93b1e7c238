/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_TRANSFER_H
#define FLYBALL_SIM_OPEN_SIM_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/open/sim_set.h"
#include "sim/transfer.h"

/*
 * What jobs bring from elsewhere:
 *
 *     GPU        the same job on another GPU of the traces
 *     eta=E      the same job on the same GPU, searched for another weight of energy
 *     WORKLOAD   another job of the traces on the same GPU, as if the user had named it
 *     shift=N    the job itself, as if the user had named one whose batch sizes are 2^N times as large
 */
struct sim_transfer {
    struct sim_set sources; /* of another GPU, or of one other job */
    bool opened;
    struct workload *copies; /* with another eta; shallow */
    struct transfer *items;  /* one per workload; NULL: nothing is brought */
};

struct sim_transfer_wish {
    const char *from;     /* one of those above; NULL: nothing */
    uint64_t recurrences; /* there */
    const char *traces;   /* their directory */
    /* Opens traces: those of another GPU with the targets' jobs; with a `gpu` of NULL those of the targets,
       without a job. The set needs closing only after success. */
    int (*open)(void *context, const char *gpu, struct sim_set *set, struct fly_error *out_error);
    void *context;
};

/*
 * Opens it. For a `from` that is none of those above it returns FLY_EUSAGE, and `*out_expected` says what was
 * expected; otherwise that stays as it is. Call sim_transfer_close only after success.
 */
int sim_transfer_open(struct sim_transfer *set, const struct sim_transfer_wish *wish,
                      const struct sim_set *targets, const char **out_expected, struct fly_error *out_error);
void sim_transfer_close(struct sim_transfer *set);

#endif
