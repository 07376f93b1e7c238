/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_SITE_H
#define FLYBALL_KNOB_WAY_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/setting.h"

/*
 * The ways in which knobs can be turned at this site.
 *
 *     struct site site;
 *     struct way_result result;
 *
 *     site_init(NULL, &site);
 *     for (int way = 0; way < WAY_COUNT; way++) {
 *         if (site_offers(&site, way, device) &&
 *             site_set(&site, way, device, quantity, &value, &result, out_error) == 0)
 *             ...
 *     }
 *
 * NVIDIA's driver lets only root turn knobs. For its users a site runs a daemon that does it as root:
 * flyballd, or the public one (zeusd). The effect on a knob is read back through the driver, which everybody
 * may read.
 *
 *     daemon     FLYBALL_KNOB_DAEMON, an address (base/service_address.h); else the
 *                variables of the public daemon's clients, ZEUSD_SOCK_PATH and
 *                ZEUSD_HOST_PORT; else the socket of flyballd, /run/flyballd/flyballd.sock, or
 *                that of the public daemon, /run/zeusd/zeusd.sock, if it exists
 *     its user   FLYBALL_KNOB_DAEMON_USER: who besides root may listen there and be given a token or an
 *                open device file (see daemon_call.h)
 *     token      FLYBALL_KNOB_TOKEN_FILE, a file that holds the daemon's token; else the token itself
 *                in ZEUSD_TOKEN
 *     authority  FLYBALL_CA_FILE: who vouches for a daemon with https; else the system's
 *
 * Thread-safe.
 */
enum way { WAY_DRIVER, WAY_DAEMON, WAY_COUNT };

enum { SITE_PLACE_MAX = 256, SITE_TEXT_MAX = SITE_PLACE_MAX + 64 };

#define SITE_COMMANDS_VARIABLE "FLYBALL_KNOB_COMMANDS"
#define SITE_DAEMON_VARIABLE "FLYBALL_KNOB_DAEMON"
#define SITE_DAEMON_USER_VARIABLE "FLYBALL_KNOB_DAEMON_USER"
#define SITE_TOKEN_FILE_VARIABLE "FLYBALL_KNOB_TOKEN_FILE"
#define SITE_AUTHORITY_VARIABLE "FLYBALL_CA_FILE"
#define SITE_DEVICES_VARIABLE "FLYBALL_KNOB_DEVICES"

#define SITE_FLYBALLD_SOCKET "/run/flyballd/flyballd.sock"

struct site {
    char daemon[SITE_PLACE_MAX]; /* a path or an address; "" for none */
    bool named;                  /* by the user, as opposed to found at its usual place */
};

/* The result of turning a knob. */
struct way_result {
    enum reading_state state; /* after success: whether the driver reports what is set now, */
    struct setting now;       /* and if it is READING_OK, what */
    bool uncertain;           /* after failure: the knob may have been turned all the same, or may be later */
};

/*
 * Finds the daemon: NULL: as the environment says, "": there is none. An address that is too long counts as
 * none, and a relative path starts at the working directory.
 */
void site_init(const char *daemon, struct site *out_site);

/*
 * FLY_ECONFIG if the environment names commands that set limits for users: no program runs them any more, and
 * flyballd takes their place.
 */
int site_check_environment(struct fly_error *out_error);

/* Returns whether the way can be tried for this GPU, whatever the result. */
bool site_offers(const struct site *site, enum way way, const struct device *device);

/* Returns whether there is a way besides the driver. */
bool site_offers_more(const struct site *site);

/*
 * Turns a knob in one way and reads it back. The errors of device_set; the daemon also gives
 * FLY_ECONFIG (a token, an address), FLY_ENOTFOUND (nobody there), FLY_EUNSUPPORTED (it has no such knob),
 * FLY_EPERM (not for this user), FLY_EREAD: it failed, or succeeded without effect.
 */
int site_set(const struct site *site, enum way way, const struct device *device, enum quantity quantity,
             const struct setting *value, struct way_result *out_result, struct fly_error *out_error);

/* Returns whether another way may succeed after this failure, because this one turned nothing. */
bool site_passes_on(enum way way, int code, const struct way_result *result);

/* "driver" or "daemon", as in the journal; the other returns -1 for an unknown name. */
const char *way_name(enum way way);
int way_find(const char *name);

/* Writes the way for people: "the driver", "the daemon at '/run/flyballd/flyballd.sock'". */
char *site_describe(const struct site *site, enum way way, char text[SITE_TEXT_MAX]);

#endif
