/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_SITE_H
#define FLYBALL_KNOB_WAY_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * The ways in which knobs are turned here.
 *
 *     struct site site;
 *     struct way_result result;
 *
 *     site_init(&(struct site_options){0}, &site);
 *     for (int way = 0; way < WAY_COUNT; way++) {
 *         if (site_offers(&site, way, device) &&
 *             site_set(&site, way, device, quantity, value, &result, out_error) == 0)
 *             ...
 *     }
 *     site_deinit(&site);
 *
 * NVIDIA's driver lets root alone turn knobs. A site may have given its users another
 * way: commands that run as root through sudo or a scheduler's wrapper (see
 * command_file.h), or a daemon that runs as root (see way_daemon.c). What they made of a
 * knob is read back through the driver, which everybody may.
 *
 *     commands   FLYBALL_KNOB_COMMANDS, a file; else /etc/flyball/commands.toml where it is
 *     daemon     FLYBALL_KNOB_DAEMON: the path of a socket, or http://HOST:PORT; else the
 *                variables of the public daemon's clients, ZEUSD_SOCK_PATH and
 *                ZEUSD_HOST_PORT; else /run/zeusd/zeusd.sock where it is
 *     token      FLYBALL_KNOB_TOKEN_FILE, a file that holds the daemon's token; else the token itself
 *                in ZEUSD_TOKEN
 *
 * Emulated GPUs are turned by commands only when the file was named: what lies in /etc means
 * the machine's own GPUs.
 *
 * For one thread at a time.
 */
enum way { WAY_DRIVER, WAY_COMMANDS, WAY_DAEMON, WAY_COUNT };

enum { SITE_PLACE_MAX = 256, SITE_TEXT_MAX = SITE_PLACE_MAX + 64 };

#define SITE_COMMANDS_VARIABLE "FLYBALL_KNOB_COMMANDS"
#define SITE_DAEMON_VARIABLE "FLYBALL_KNOB_DAEMON"
#define SITE_TOKEN_FILE_VARIABLE "FLYBALL_KNOB_TOKEN_FILE"

/* Where they are found; NULL: by the environment, "": there is none. */
struct site_options {
    const char *commands;
    const char *daemon;
};

struct site {
    char places[WAY_COUNT][SITE_PLACE_MAX]; /* a path, an address; "" for none, and of the driver */
    bool named[WAY_COUNT];                  /* by the user, not found where such things lie */
    struct command_file *commands;          /* NULL: not read yet; owned */
};

/* What became of a knob. */
struct way_result {
    struct reading reading; /* after success: what the driver says now */
    bool uncertain;         /* after failure: it may have been turned all the same, or may be yet */
};

/* Reads no file. A place that is too long is none, and relative ones are taken from the working directory. */
void site_init(const struct site_options *options, struct site *out_site);
void site_deinit(struct site *site);

/* Whether the way is there to be tried for this GPU, whatever comes of it. */
bool site_offers(const struct site *site, enum way way, const struct device *device);

/* Whether there is any beside the driver. */
bool site_offers_more(const struct site *site, const struct device *device);

/*
 * Turns a knob in one way and reads it back. The errors of device_set; of the others also
 * FLY_ECONFIG (the file), FLY_ENOTFOUND (nobody there), FLY_EUNSUPPORTED (it has no such knob),
 * FLY_EPERM (not for this user), FLY_EREAD: it failed, or succeeded without effect.
 */
int site_set(struct site *site, enum way way, const struct device *device, enum quantity quantity,
             int64_t value, struct way_result *out_result, struct fly_error *out_error);

/* Whether after this failure another way may do better: nothing was turned by it. */
bool site_passes_on(enum way way, int code, const struct way_result *result);

/* "driver", "commands", "daemon": in the journal; -1 for an unknown name. */
const char *way_name(enum way way);
int way_find(const char *name);

/* Of a way for people: "the driver", "the commands of '/etc/flyball/commands.toml'". */
char *site_describe(const struct site *site, enum way way, char text[SITE_TEXT_MAX]);

#endif
