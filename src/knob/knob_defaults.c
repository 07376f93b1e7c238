/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/knob_defaults.h"

#include <stdlib.h>
#include <string.h>

static const char *or_default(const char *text, const char *instead)
{
    return text != NULL && text[0] != '\0' ? text : instead;
}

static bool is_trusted_by_user(void)
{
    const char *value = getenv("FLYBALL_CONTAINED");

    return value != NULL && strcmp(value, "1") == 0;
}

struct turnable_options knob_others(const struct knob_options *options)
{
    return (struct turnable_options){
        .readonly_path = or_default(options->readonly_path, KNOB_READONLY_PATH),
        .proc_root = or_default(options->proc_root, "/proc"),
        .mps_pipe_directory = or_default(options->mps_pipe_directory, KNOB_MPS_DIRECTORY),
        .allowed = options->allowed,
        .allowed_count = options->allowed_count,
        .overrules = options->overrules,
        .contained = options->contained || is_trusted_by_user(),
    };
}

const char *knob_program(const struct knob_options *options)
{
    return or_default(options->program, "flyball");
}
