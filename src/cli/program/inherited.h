/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_INHERITED_H
#define FLYBALL_CLI_PROGRAM_INHERITED_H

/*
 * What this program changes of its own process for its own good, and has to
 * give back before another program takes its place: dispositions of signals,
 * and standard streams that were closed.
 *
 *     inherited_take();      main, before all else
 *     inherited_restore();   right before exec
 *
 * `inherited_take` fills closed standard streams with stand-ins that fail on
 * use, so that no file that is opened later gets their numbers, and has a file
 * that grows beyond its limit be an error instead of the end. Not thread-safe.
 */
void inherited_take(void);
void inherited_restore(void);

#endif
