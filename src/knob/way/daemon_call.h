/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_DAEMON_CALL_H
#define FLYBALL_KNOB_WAY_DAEMON_CALL_H

#include <stdbool.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/http_client.h"
#include "device/device.h"
#include "knob/way/site.h"

/*
 * Questions to a daemon about one GPU: what this user shows it, and to whom it is shown.
 *
 *     struct daemon_call call;
 *
 *     code = daemon_call_open(site, device, &call, out_error);
 *     if (code == 0)
 *         code = daemon_call_discover(&call, &id, out_error);
 *     if (code == 0)
 *         code = daemon_call_ask(&call, "POST", "/gpu/...", &answer, out_error);
 *     daemon_call_close(&call);
 *
 * A token is shown to whoever listens over TCP, and over a socket only to root and to the user whom
 * FLYBALL_KNOB_DAEMON_USER names: anybody may have put a socket there. If somebody else listens, nothing
 * is sent, and the error says who. Without a token anybody is asked, for nothing is given away then.
 *
 * flyballd also takes an open device file of the GPU as a proof that this user may use it. It is
 * opened, and passed, once the daemon is known to be flyballd: by its usual place, or by its answer to
 * /discover. Again only root and that user get it. A file that cannot be opened is none: the daemon
 * decides without it. Emulated GPUs have no files but in the directory that FLYBALL_KNOB_DEVICES names.
 */
enum {
    DAEMON_TOKEN_MAX = 4096,
    DAEMON_HEADER_MAX = DAEMON_TOKEN_MAX + 64,
    DAEMON_URL_MAX = SITE_PLACE_MAX + 192
};

struct daemon_call {
    const struct site *site;     /* borrowed */
    const struct device *device; /* borrowed */
    char token[DAEMON_TOKEN_MAX], header[DAEMON_HEADER_MAX];
    uid_t users[2];
    size_t user_count;
    bool is_flyballd;
    int proof; /* -1: none; owned */
};

/* Reads the variables and the token; asks nothing. FLY_ECONFIG names what cannot be used. */
int daemon_call_open(const struct site *site, const struct device *device, struct daemon_call *out_call,
                     struct fly_error *out_error);
void daemon_call_close(struct daemon_call *call); /* also after a failure */

/*
 * Asks; returns 0 for an answer of any status. Errors of http_ask, FLY_ECONFIG for a bad address,
 * FLY_EREAD for an answer that is too long.
 */
int daemon_call_ask(struct daemon_call *call, const char *method, const char *path,
                    struct http_answer *out_answer, struct fly_error *out_error);

/* Gives the number by which the daemon knows the GPU, and finds out whether it is flyballd. */
int daemon_call_discover(struct daemon_call *call, unsigned *out_id, struct fly_error *out_error);

/* Translates an answer other than "done": FLY_EPERM, FLY_EUNSUPPORTED, FLY_ESTATE or FLY_EREAD, with the
 * daemon's words. */
int daemon_call_refused(const struct daemon_call *call, const struct http_answer *answer,
                        struct fly_error *out_error);

#endif
