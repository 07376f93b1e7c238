/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_OUTPUT_PATH_H
#define FLYBALL_CLI_OPTIONS_OUTPUT_PATH_H

#include <flyball/error.h>

#include "base/file/atomic_file.h"
#include "cli/frame/call.h"

/*
 * The files that options name to be written: such a name may have the process's own numbers in it. Of a
 * process of many, no two live ones have the same.
 *
 *     static struct output_path output;
 *
 *     output_path_expand("run-%t.json", output.path, out_error);
 *     output_path_hold(call, &output);
 *     ...write it...
 *     output_path_release(&output);
 */
enum { OUTPUT_PATH_MAX = 4096 };

struct output_path {
    char path[OUTPUT_PATH_MAX];
    char lock_path[OUTPUT_PATH_MAX]; /* of a file beside it that is locked while this process lives */
    int lock;                        /* file descriptor, or -1 */
};

/*
 * Puts numbers and names of this process for the signs in `pattern`:
 *
 *     %t  its rank, as its scheduler or launcher numbers it; 0 without one
 *     %j  the job's name there; without one, this process's number
 *     %h  the machine's name
 *     %p  this process's number
 *     %%  %
 *
 * FLY_EUSAGE for any other sign, and for a path of OUTPUT_PATH_MAX bytes or more.
 */
int output_path_expand(const char *pattern, char out_path[OUTPUT_PATH_MAX], struct fly_error *out_error);

/* Opens a file under such a name. */
int output_path_open(const char *pattern, struct atomic_file *out_file, struct fly_error *out_error);

/*
 * Keeps other processes from the path until the release. If another one has it already, `path` becomes
 * one beside it that nobody has and that does not exist, "run.n17-4711.json", and a warning says so.
 * Pipes and devices are left alone. Never fails: where no file can be made, nothing is kept.
 */
void output_path_hold(const struct cli_call *call, struct output_path *output);
void output_path_release(struct output_path *output);

#endif
