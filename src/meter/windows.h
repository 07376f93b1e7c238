/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_WINDOWS_H
#define FLYBALL_METER_WINDOWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/meter.h>

#include "base/clock.h"

/*
 * The open windows of a meter: a table of fixed size. A handle consists of a slot and the number
 * of windows that the slot has held. So the handle of a window that has ended is never taken for
 * the one that now has its slot.
 *
 * A window is taken; opened once all its begin stamps are made; claimed by the one end that gets
 * it; and given back. The content of a slot belongs to the thread that took or claimed it. The
 * lock is held only for the bookkeeping.
 */
struct window {
    char name[sizeof((struct fly_measurement *)NULL)->name];
    struct mono_time begin;
    struct wall_time begin_date;
    uint32_t turn; /* how many windows this slot has held */
    uint32_t next_free;
    bool open;
};

struct windows {
    pthread_mutex_t lock;
    struct window *slots;
    uint32_t count;
    uint32_t first_free; /* count: none */
};

/* Allocates the table; false without memory. */
bool windows_init(struct windows *windows, uint32_t count);
void windows_deinit(struct windows *windows);

/* Takes a free slot for a window of that name (NULL: none); cuts a name that is too long; false when full. */
bool windows_take(struct windows *windows, const char *name, uint32_t *out_slot);

/* Opens the window: from now on the returned handle, which is never 0, can end it. */
fly_window windows_open(struct windows *windows, uint32_t slot);

/* Claims the window for its end; false for a handle that is not open. */
bool windows_claim(struct windows *windows, fly_window window, uint32_t *out_slot);

/* Opens a claimed window again, under the same handle. */
void windows_reopen(struct windows *windows, uint32_t slot);

/* Frees a slot that was taken or claimed. */
void windows_give_back(struct windows *windows, uint32_t slot);

#endif
