/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/knob_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct knob_options cli_knob_options(const struct cli_call *call, const char *program,
                                     char readonly_path[CLI_READONLY_MAX])
{
    struct knob_options options = {
        .readonly_path = KNOB_READONLY_PATH,
        .program = program,
        .nvml_path = cli_text(call, "nvml"),
        .amdsmi_path = cli_text(call, "amdsmi"),
        .mps_pipe_directory = getenv("CUDA_MPS_PIPE_DIRECTORY"),
    };
    const char *root = cli_text(call, "sysfs-root");

    if (strcmp(root, "/") == 0)
        return options;
    snprintf(readonly_path, CLI_READONLY_MAX, "%.400s%s", root, KNOB_READONLY_PATH);
    if (access(readonly_path, F_OK) == 0)
        options.readonly_path = readonly_path;
    return options;
}
