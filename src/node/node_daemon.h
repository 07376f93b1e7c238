/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_DAEMON_H
#define FLYBALL_NODE_NODE_DAEMON_H

#include <flyball/error.h>

#include "compat/zeus/node/node_public.h"
#include "node/admit/admit.h"
#include "node/lease/leases.h"
#include "node/node_config.h"
#include "node/own_energy.h"
#include "node/share/share.h"
#include "node/stream/sample_stream.h"
#include "node/v1/node_v1.h"
#include "node/watch/watch.h"

/*
 * The parts of the running daemon, opened in the order in which they need each other: the watch of
 * the GPUs, the audit log, the leases, who uses what, who may do what, and the routes. The server
 * (node_back.h) stands in front of them.
 *
 *     code = daemon_open(config, &daemon, out_error);
 *     while (nobody wants it to stop)
 *         daemon_tick(daemon);              ten times a second
 *     daemon_end_leases(daemon, grace_s);   everything is put back
 *     ... the server ends ...
 *     daemon_close(daemon);
 *
 * Parts may be used by all threads; these functions are for the thread that opened it. Nothing here
 * waits for a driver but opening, ending the leases and closing.
 */
struct daemon {
    const struct config *config; /* at the start; borrowed, as its texts are by all parts */
    struct device_options devices;
    struct knob_options knob;
    struct watch *watch;
    struct audit *audit; /* NULL: no log */
    struct leases *leases;
    struct admit *admit;
    struct sample_streams *streams;
    struct share *share; /* NULL: nobody keeps account */
    struct node_v1 *v1;
    struct node_public *public;
    struct own_energy own;
};

int daemon_open(const struct config *config, struct daemon *out_daemon, struct fly_error *out_error);

void daemon_tick(struct daemon *daemon);

/*
 * Puts in force what can change without losing a lease, and opens the audit log again. Borrows
 * nothing of the new configuration. After an error all stays as it was.
 */
int daemon_reload(struct daemon *daemon, const struct config *config, struct fly_error *out_error);

/* Ends all leases and puts everything back. FLY_EUNSURE if a driver did not answer in time. */
int daemon_end_leases(struct daemon *daemon, double most_s, struct fly_error *out_error);

/* Frees all; `most_s` bounds how long it waits for a driver. */
void daemon_close(struct daemon *daemon, double most_s);

/* Gives where the configuration's devices and knobs are; for the daemon and for `flyballd restore`. */
void daemon_device_options(const struct config *config, struct device_options *out_devices,
                           struct knob_options *out_knob);

#endif
