/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_WATCH_WATCH_STATE_H
#define FLYBALL_NODE_WATCH_WATCH_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "meter/shares.h"
#include "node/watch/watch_total.h"

/*
 * The totals of all devices on disk:
 *
 *     flyball.watch.totals/2 boot 4a1e...
 *     GPU-8f3a... 81230000000 1200000 0.000 0 9918273645 12.500 90.000 750.000 5400.000 3.000 ...
 *
 * A line has the device's UUID, its energy and the unobserved part of it in microjoules, seconds of
 * unknown energy, falls of its counter, and that counter, or "-" without one. Then come its shares, in
 * the order of the rows in watch_state.c: seconds, but for the two energies in joules. Lines of version
 * 1 end before the shares, which begin at 0 then.
 */
enum { WATCH_BOOT_MAX = 64 };

struct watch_saved {
    char uuid[DEVICE_TEXT_MAX];
    struct watch_total total; /* as for watch_total_resume */
    struct shares shares;     /* without samples and clocks, which belong to one daemon */
};

/* What is known of the machine's start: its boot id, or "" where the kernel does not tell. */
char *watch_boot_id(char boot[WATCH_BOOT_MAX]);

/*
 * Reads the file: at most `maximum` devices. FLY_EDATA names the first wrong line. A file that does
 * not exist holds none.
 */
int watch_state_read(const char *path, struct watch_saved *out_saved, size_t maximum, size_t *out_count,
                     char out_boot[WATCH_BOOT_MAX], struct fly_error *out_error);

/* Reads the same from text; `name` is for errors. Pure. */
int watch_state_parse(const char *text, const char *name, struct watch_saved *out_saved, size_t maximum,
                      size_t *out_count, char out_boot[WATCH_BOOT_MAX], struct fly_error *out_error);

/* Replaces the file as a whole. */
int watch_state_write(const char *path, const struct watch_saved *saved, size_t count, const char *boot,
                      struct fly_error *out_error);

#endif
