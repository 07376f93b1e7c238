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
 * The program is searched in PATH. It runs in a session of its own, so that nothing in it asks a
 * terminal, with no input and no file of this process. Both of its outputs are kept, up to a
 * length. If another part of this process waits for all children, the status is lost: 0 is
 * assumed then. A program that takes longer is killed with its session; a program that has become
 * another user survives that.
 */
enum { COMMAND_OUTPUT_MAX = 1024 };

struct command_end {
    int spawn_errno; /* it could not be started */
    bool ended;      /* within the time */
    int status;      /* exit status, or 128 plus its signal */
    char output[COMMAND_OUTPUT_MAX];
};

void command_run(char *const *words, double timeout_s, struct command_end *out_end);

#endif
