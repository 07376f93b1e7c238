/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SERVE_ANNOUNCE_H
#define FLYBALL_CLI_SERVE_ANNOUNCE_H

#include <flyball/error.h>

/*
 * Tells whoever started a service how it stands, by the variable NOTIFY_SOCKET that
 * systemd sets for units of Type=notify: a datagram to that socket, "READY=1". Nothing
 * without the variable; what cannot be told is not told.
 */
void announce(const char *state);

/* Writes the text to a file that appears whole. */
int announce_in_file(const char *path, const char *text, struct fly_error *out_error);

#endif
