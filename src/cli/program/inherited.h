/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_INHERITED_H
#define FLYBALL_CLI_PROGRAM_INHERITED_H

/*
 * Changes that this program makes to its own process and must undo before another program
 * replaces it: signal dispositions, and standard streams that were closed.
 *
 *     inherited_take();      main, before all else
 *     inherited_restore();   right before exec
 *
 * `inherited_take` fills closed standard streams with stand-ins that fail on use, so that no file
 * opened later gets their numbers. It also makes a file that grows beyond its limit an error,
 * instead of killing the process. Not thread-safe.
 */
void inherited_take(void);
void inherited_restore(void);

#endif
