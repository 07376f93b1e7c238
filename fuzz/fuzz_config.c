/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: any bytes either parse or are refused with file and line. The text goes to the parser
 * alone, and is also read as the system's file with the keys of the real program.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/frame/config_file.h"
#include "cli/frame/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Lines never go backwards; texts end with NUL and are no longer than a line may be. */
static int take(void *data, const struct config_entry *entry, struct fly_error *out_error)
{
    size_t *line = data;

    (void)out_error;
    require(entry->line >= *line && entry->line >= 1);
    require((entry->name == NULL) == (entry->value == NULL));
    require(strlen(entry->section) < 4096);
    if (entry->name != NULL)
        require(strlen(entry->name) + strlen(entry->value) < 4096);
    *line = entry->line;
    return 0;
}

static void parse_alone(const uint8_t *bytes, size_t size)
{
    struct fly_error error = {.code = 0};
    size_t line = 0;
    int result = config_text_parse("f", (const char *)bytes, size, take, &line, &error);

    require(result == 0 || (result == FLY_ECONFIG && strncmp(error.text, "f:", 2) == 0));
}

static void load_settings(const uint8_t *bytes, size_t size)
{
    struct settings settings;
    struct buffer warnings;
    struct fly_error error = {.code = 0};
    char path[64];
    int fd = memfd_create("config", MFD_CLOEXEC);
    int result;

    require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    buffer_init(&warnings, 1 << 16);
    result = settings_load(&flyball_program, &(struct settings_paths){.system = path}, NULL, &settings,
                           &warnings, &error);
    require(result == 0 || (result == FLY_ECONFIG && error.text[0] != '\0'));
    for (size_t i = 0; i < settings.count; i++)
        require((settings.rows[i].text == NULL) == (settings.rows[i].origin == NULL));
    settings_deinit(&settings);
    buffer_deinit(&warnings);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    parse_alone(bytes, size);
    load_settings(bytes, size);
    return 0;
}
