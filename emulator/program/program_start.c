/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator start` and `stop`: make and remove the machine. */
#include <stdio.h>

#include "emulator/boards.h"
#include "emulator/program/program.h"

/* Prints the value so that a shell reads back the same bytes; the shell expands `rest`. */
static void print_export(const char *name, const char *value, const char *rest)
{
    printf("export %s='", name);
    for (; *value != '\0'; value++)
        fputs(*value == '\'' ? "'\\''" : (char[]){*value, '\0'}, stdout);
    printf("'%s\n", rest);
}

static int start_run(const struct program_call *call, struct fly_error *out_error)
{
    char directory[EMULATOR_PATH_MAX] = "";
    struct emulator *emulator = NULL;
    int code = program_library_directory(directory, out_error);

    if (code == 0)
        code = emulator_create(call->state, &call->settings, &emulator, out_error);
    if (code < 0 || emulator == NULL)
        return code;
    print_export("FLYBALL_EMULATOR_STATE", emulator->path, "");
    print_export("LD_LIBRARY_PATH", directory, "\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"");
    print_export("PATH", directory, "\"${PATH:+:$PATH}\"");
    program_say("emulating %u x %s in %s time; no hardware answers", call->settings.gpus,
                emulated_boards[call->settings.board].title,
                call->settings.virtual_time ? "virtual" : "real");
    emulator_close(emulator);
    return 0;
}

const struct program_command program_start = {
    .name = "start",
    .summary = "start emulating GPUs",
    .text = "Prints the variables that a program needs to find them, for a shell:\n\n"
            "  eval \"$(flyball-emulator start --gpus 4)\"",
    .settings = true,
    .run = start_run,
};

static int stop_run(const struct program_call *call, struct fly_error *out_error)
{
    return emulator_remove(call->state, out_error);
}

const struct program_command program_stop = {
    .name = "stop",
    .summary = "end what start began",
    .text = "Programs that use the emulated GPUs keep them until they close the library.",
    .run = stop_run,
};
