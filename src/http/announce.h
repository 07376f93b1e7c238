/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_ANNOUNCE_H
#define FLYBALL_HTTP_ANNOUNCE_H

#include <flyball/error.h>

/*
 * Reports a service's state to whoever started it, through the variable NOTIFY_SOCKET that
 * systemd sets for units of Type=notify: it sends a datagram such as "READY=1" to that socket.
 * Does nothing without the variable; a failure is ignored.
 */
void announce(const char *state);

/* Writes the text to a file that appears as a whole. */
int announce_in_file(const char *path, const char *text, struct fly_error *out_error);

#endif
