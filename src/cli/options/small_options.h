/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_SMALL_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_SMALL_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/frame/call.h"
#include "sim/crew.h"

/*
 * Reads the value of an option of the call as a list of numbers (base/text/number_list.h). Without one it
 * returns 0 and leaves the out-parameters untouched. FLY_EUSAGE with a sentence that names the option,
 * FLY_ENOMEM.
 */
int number_list_option(const struct cli_call *call, const char *name, uint32_t minimum, size_t most,
                       struct arena *arena, uint32_t **out_numbers, size_t *out_count,
                       struct fly_error *out_error);

/*
 * Read --max-slowdown as a factor, 1.03 for 3%, INFINITY for none, which the second refuses. If it is not
 * set, `out_factor` stays as it is. FLY_EUSAGE.
 */
int slowdown_option_read(const struct cli_call *call, double *out_factor, struct fly_error *out_error);
int slowdown_option_read_finite(const struct cli_call *call, double *out_factor, struct fly_error *out_error);

/* clang-format off */
#define OPTION_THREADS \
    {.name = "threads", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = CREW_THREADS_MAX, \
     .key = "sim.threads", .help = "Worker threads; if not given, one for each processor."}

/* clang-format on */

/* Returns --threads, or one for each processor. */
unsigned thread_option(const struct cli_call *call);

#endif
