/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_DAEMON_PERMIT_H
#define FLYBALL_KNOB_WAY_DAEMON_PERMIT_H

#include <flyball/error.h>

#include "device/device.h"
#include "knob/way/site.h"

/*
 * Finds out whether the site's daemon would turn a GPU for this user, without turning anything.
 *
 *     struct daemon_permit permit;
 *
 *     daemon_permit_ask(&site, device, &permit);
 *     if (permit.word == DAEMON_REFUSES)
 *         ... permit.why ...
 *
 * flyballd says so for each GPU (GET /v1/gpus/ID); other daemons can only be tried. Waits for an answer
 * as a change does (daemon_call.h). For one thread at a time.
 */
enum daemon_word {
    DAEMON_ABSENT,  /* there is no place for one, or nobody listens there: `why` */
    DAEMON_LETS,    /* flyballd, which would do it */
    DAEMON_REFUSES, /* flyballd, which would not: `why` */
    DAEMON_OTHER,   /* one that has the GPU, and does not say whether it would */
    DAEMON_UNWELL,  /* none that can be asked about it: `why` */
};

struct daemon_permit {
    enum daemon_word word;
    char why[FLY_ERROR_TEXT_MAX]; /* "" if there is nothing to say */
};

void daemon_permit_ask(const struct site *site, const struct device *device,
                       struct daemon_permit *out_permit);

/*
 * Reads that answer of flyballd; FLY_EDATA for one of another form. `why` becomes one line of plain
 * characters.
 */
int daemon_permit_read(const char *text, size_t length, struct daemon_permit *out_permit,
                       struct fly_error *out_error);

#endif
