/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_NUMBER_LIST_OPTION_H
#define FLYBALL_CLI_OPTIONS_NUMBER_LIST_OPTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/frame/call.h"

/*
 * Reads the value of an option of the call as a list of numbers (base/text/number_list.h). Without one it
 * returns 0 and leaves the out-parameters untouched. FLY_EUSAGE with a sentence that names the option,
 * FLY_ENOMEM.
 */
int number_list_option(const struct cli_call *call, const char *name, uint32_t minimum, size_t most,
                       struct arena *arena, uint32_t **out_numbers, size_t *out_count,
                       struct fly_error *out_error);

#endif
