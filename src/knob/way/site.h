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
 *     site_init(&(struct site_options){0}, &site);
 *     for (int way = 0; way < WAY_COUNT; way++) {
 *         if (site_offers(&site, way, device) &&
 *             site_set(&site, way, device, quantity, &value, &result, out_error) == 0)
 *             ...
 *     }
 *     site_deinit(&site);
 *
 * NVIDIA's driver lets only root turn knobs. A site may give its users another way: commands that
 * run as root through sudo or a scheduler's wrapper (see command_file.h), or a daemon that runs
 * as root: flyballd, or the public one (see way_daemon.c). Their effect on a knob is read back through the
 * driver, which everybody may read.
 *
 *     commands   FLYBALL_KNOB_COMMANDS, a file; else /etc/flyball/commands.toml if it exists
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
 * Commands turn emulated GPUs only if the user named the file: a file in /etc is meant for the
 * machine's own GPUs.
 *
 * For one thread at a time.
 */
enum way { WAY_DRIVER, WAY_COMMANDS, WAY_DAEMON, WAY_COUNT };

enum { SITE_PLACE_MAX = 256, SITE_TEXT_MAX = SITE_PLACE_MAX + 64 };

#define SITE_COMMANDS_VARIABLE "FLYBALL_KNOB_COMMANDS"
#define SITE_DAEMON_VARIABLE "FLYBALL_KNOB_DAEMON"
#define SITE_DAEMON_USER_VARIABLE "FLYBALL_KNOB_DAEMON_USER"
#define SITE_TOKEN_FILE_VARIABLE "FLYBALL_KNOB_TOKEN_FILE"
#define SITE_AUTHORITY_VARIABLE "FLYBALL_CA_FILE"
#define SITE_DEVICES_VARIABLE "FLYBALL_KNOB_DEVICES"

#define SITE_FLYBALLD_SOCKET "/run/flyballd/flyballd.sock"

/* Where the ways are found; NULL: from the environment, "": there is none. */
struct site_options {
    const char *commands;
    const char *daemon;
    bool commands_first; /* as in struct site */
};

struct site {
    char places[WAY_COUNT][SITE_PLACE_MAX]; /* a path or an address; "" for none, and for the driver */
    bool named[WAY_COUNT];                  /* by the user, as opposed to found at its usual place */
    struct command_file *commands;          /* NULL: not read yet; owned */
    bool commands_first; /* the commands stand in place of the driver, for the operations that they have */
};

/* The result of turning a knob. */
struct way_result {
    enum reading_state state; /* after success: whether the driver reports what is set now, */
    struct setting now;       /* and if it is READING_OK, what */
    bool uncertain;           /* after failure: the knob may have been turned all the same, or may be later */
};

/*
 * Finds the ways; reads no file. A place that is too long counts as none, and relative ones start
 * at the working directory.
 */
void site_init(const struct site_options *options, struct site *out_site);
void site_deinit(struct site *site);

/* Returns whether the way can be tried for this GPU, whatever the result. */
bool site_offers(const struct site *site, enum way way, const struct device *device);

/* Returns whether there is a way besides the driver. */
bool site_offers_more(const struct site *site, const struct device *device);

/*
 * Says whether the site's commands stand in place of the driver for bringing this knob to that value. Errors
 * of command_file_load and operation_for.
 */
int site_replaces_driver(struct site *site, const struct device *device, enum quantity quantity,
                         const struct setting *value, bool *out_replaces, struct fly_error *out_error);

/*
 * Turns a knob in one way and reads it back. The errors of device_set; other ways also give
 * FLY_ECONFIG (the file), FLY_ENOTFOUND (nobody there), FLY_EUNSUPPORTED (it has no such knob),
 * FLY_EPERM (not for this user), FLY_EREAD: it failed, or succeeded without effect.
 */
int site_set(struct site *site, enum way way, const struct device *device, enum quantity quantity,
             const struct setting *value, struct way_result *out_result, struct fly_error *out_error);

/* Returns whether another way may succeed after this failure, because this one turned nothing. */
bool site_passes_on(enum way way, int code, const struct way_result *result);

/*
 * way_name returns "driver", "commands" or "daemon", as in the journal; the other returns -1 for
 * an unknown name.
 */
const char *way_name(enum way way);
int way_find(const char *name);

/* Writes the way for people: "the driver", "the commands of '/etc/flyball/commands.toml'". */
char *site_describe(const struct site *site, enum way way, char text[SITE_TEXT_MAX]);

#endif
