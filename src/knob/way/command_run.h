/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_COMMAND_RUN_H
#define FLYBALL_KNOB_WAY_COMMAND_RUN_H

#include <stdbool.h>

/*
 * Runs a program and waits for it, for a limited time.
 *
 *     struct command_end end;
 *
 *     command_run(words, 10.0, &end);
 *     if (end.spawn_errno == 0 && end.ended && end.status == 0)
 *         ...
 *
 * It is looked for in PATH and runs in a session of its own, so that nothing in it asks a terminal,
 * with no input, no file of this process, and its two outputs kept, up to a length. Where another part of
 * this process waits for all children, its status is lost: 0 is assumed then. Who takes longer is killed with
 * its session, which a program that has become another user survives.
 */
enum { COMMAND_OUTPUT_MAX = 1024 };

struct command_end {
    int spawn_errno; /* it could not be started */
    bool ended;      /* in time */
    int status;      /* exit status, or 128 plus its signal */
    char output[COMMAND_OUTPUT_MAX];
};

void command_run(char *const *words, double timeout_s, struct command_end *out_end);

#endif
