/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_ORDERED_OUTPUT_H
#define FLYBALL_SIM_ORDERED_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * One stream written by many threads in a fixed order, whoever is first: each
 * unit of work writes a part, and the parts come out in the order of the units.
 *
 * The unit whose turn it is passes its bytes on; the others keep theirs, and
 * wait once they hold ORDERED_PART_MAX bytes. A unit that ends before its turn
 * leaves its bytes behind for whoever has the turn before it, up to
 * ORDERED_PARKED_MAX bytes in all, so that its thread need not wait. Units must
 * be begun in order, so that the one whose turn it is always runs. Thread-safe.
 */
enum { ORDERED_PART_MAX = 1 << 20, ORDERED_PARKED_MAX = 16 << 20 };

/* Takes bytes; returns 0 or a negative FLY_E code, after which it is not called again. */
typedef int ordered_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

struct ordered_output {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    uint64_t turn;               /* the unit whose turn it is */
    struct ordered_part *parked; /* ended before their turn, by unit ascending */
    size_t parked_bytes;         /* of those, with what each takes itself */
    ordered_sink *sink;
    void *context;
    int code; /* the sink's first failure */
    struct fly_error error;
};

/* What one unit has written and not passed on. Used by its thread alone. */
struct ordered_part {
    struct ordered_output *output;
    uint64_t unit;
    struct buffer bytes;
    struct ordered_part *next; /* while parked */
};

void ordered_output_init(struct ordered_output *output, ordered_sink *sink, void *context);
void ordered_output_deinit(struct ordered_output *output);

void ordered_part_begin(struct ordered_part *part, struct ordered_output *output, uint64_t unit);

/* Appends `count` bytes; they are lost once the sink has failed. */
void ordered_part_write(struct ordered_part *part, const char *bytes, size_t count);

/* Passes the rest on, or parks it until the unit's turn; waits where neither can be. Always call it. */
void ordered_part_end(struct ordered_part *part);

/* Whether the sink has failed, so that further work is in vain. */
bool ordered_output_failed(struct ordered_output *output);

#endif
