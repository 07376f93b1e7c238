/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_THREAD_OPTION_H
#define FLYBALL_CLI_OPTIONS_THREAD_OPTION_H

#include "cli/frame/call.h"
#include "sim/crew.h"

/* clang-format off */
#define OPTION_THREADS \
    {.name = "threads", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = CREW_THREADS_MAX, \
     .key = "sim.threads", .help = "Worker threads; if not given, one for each processor."}
/* clang-format on */

/* Returns --threads, or one for each processor. */
unsigned thread_option(const struct cli_call *call);

#endif
