/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_LOG_H
#define FLYBALL_NODE_NODE_LOG_H

#include <stdbool.h>

/*
 * The daemon's own log on standard error, a line each: text, or a JSON object.
 *
 *     flyballd: warning: tokens: reading the file of tokens '/etc/flyball/tokens' failed: ...
 *     {"date":"2026-11-23T19:37:36Z","level":"warning","message":"tokens: reading ..."}
 *
 * A line is one write, so lines of threads do not mix. Control characters are replaced. A log that
 * nobody reads any more never stops the daemon. Thread-safe.
 */
enum log_level { SAY_INFO, SAY_WARNING, SAY_ERROR, SAY_COUNT };

/* Chooses the form of all later lines. */
void log_as_json(bool json);

/* Whether log_request writes its lines; at first it does not. */
void log_with_requests(bool requests);

/* Writes a line about a request. */
void log_request(const char *line);

__attribute__((format(printf, 2, 3))) void log_say(enum log_level level, const char *format, ...);

#endif
