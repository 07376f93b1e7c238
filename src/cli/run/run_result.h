/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_RESULT_H
#define FLYBALL_CLI_RUN_RUN_RESULT_H

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "device/device.h"
#include "meter/claim.h"
#include "meter/meter.h"

struct run_carbon;
struct run_job;
struct run_tune;

/*
 * All that the report on a program's run says, and its two forms: a text for
 * people, and a document for programs, "flyball.run/1", which `flyball tally`
 * reads. Everything is borrowed.
 */
struct run_result {
    char *const *arguments; /* of the program; ends with NULL */
    int status;             /* as a shell has it */
    int signal;             /* that ended it, or 0 */
    const struct device_list *list;
    const struct claims *claims;     /* of the list's devices */
    const struct identity *identity; /* of this process */
    struct fly_measurement measured; /* of the list's devices */
    const char *fault;               /* why nothing was measured, a clause; NULL when something was */
    double early_s;                  /* the program ran unmeasured before; 0 for not at all */
    const char *selection;           /* what hides GPUs; "" for nothing */
    double own_cpu_s;                /* of this program's process */
    int64_t own_memory_bytes;        /* at most; -1 not known */
    const struct run_tune *tune;     /* NULL: not asked for */
    const struct run_job *job;       /* NULL: the same */
    const struct run_carbon *carbon; /* NULL: the same */
    const char *output;              /* where the document goes, or NULL */
};

/* Sums over the devices that are counted here. */
struct run_totals {
    double energy_j;
    double uncertainty_j; /* of those with a bound: the sum of the bounds, since errors may have one cause */
    size_t devices;       /* in the sum */
    size_t without_bound; /* of those */
    size_t unavailable;   /* without a figure, though they would be counted here */
    size_t emulated, estimated; /* of those in the sum: nothing was measured */
    size_t elsewhere;           /* counted by others */
    double idle_share;          /* of the GPUs' time, and so on: the mean over GPUs for which it is known */
    double idle_energy_share;
    double capped_share;
    double heat_share;
    double brake_share;
};

void run_totals(const struct run_result *result, struct run_totals *out_totals);

/* What is never part of the sum, or not of this one: texts for both forms; returns how many. */
enum { NOT_INCLUDED_MAX = 8 };
size_t run_not_included(const struct run_result *result, const char *texts[NOT_INCLUDED_MAX]);

/* Appends the report for people. */
void run_report_text(const struct run_result *result, struct buffer *out);

/* The document, owned by the caller; NULL without memory. */
json_t *run_report_json(const struct run_result *result);

#endif
