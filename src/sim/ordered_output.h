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
 * One stream written by many threads in a fixed order: each unit of work writes a part, and the
 * parts come out in the order of the units, whichever thread is first.
 *
 * The unit whose turn it is writes through to the stream. The others keep their bytes, and wait
 * once they hold ORDERED_PART_MAX of them. A unit that ends before its turn leaves its bytes for
 * the unit before it to write, up to ORDERED_PARKED_MAX bytes in all, so that its thread need not
 * wait. Begin units in order, so that the one whose turn it is always runs. Thread-safe.
 */
enum { ORDERED_PART_MAX = 1 << 20, ORDERED_PARKED_MAX = 16 << 20 };

/* Takes bytes; returns 0 or a negative FLY_E code, after which it is not called again. */
typedef int ordered_sink(void *context, const char *bytes, size_t count, struct fly_error *out_error);

struct ordered_output {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    uint64_t turn;               /* the unit whose turn it is */
    struct ordered_part *parked; /* parts of units that ended before their turn, by unit ascending */
    size_t parked_bytes;         /* of those parts, their own structs included */
    ordered_sink *sink;
    void *context;
    int code; /* the sink's first failure */
    struct fly_error error;
};

/* What one unit has written and not yet passed on. Only its own thread uses it. */
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

/*
 * Passes the rest on, or leaves it until the unit's turn; waits if it can do neither. Call it in
 * every case.
 */
void ordered_part_end(struct ordered_part *part);

/* Returns whether the sink has failed, so that further work is useless. */
bool ordered_output_failed(struct ordered_output *output);

#endif
