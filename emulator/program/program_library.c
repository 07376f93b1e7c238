/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `flyball-emulator library`: makes a copy of the driver library that lacks functions.
 *
 * A program that looks up a name finds it through the table of dynamic strings. A name that is overwritten
 * there cannot be found, as if the driver were older.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/program/program.h"

enum { LIBRARY_BYTES_MAX = 64 << 20 };

/* A file in memory, with its dynamic strings. */
struct image {
    char *bytes;
    size_t length;
    char *strings;
    size_t strings_length;
};

static int read_image(const char *path, struct image *out, struct fly_error *out_error)
{
    FILE *file = fopen(path, "rb");
    struct stat status = {.st_size = 0};
    int code = 0;

    if (file == NULL || fstat(fileno(file), &status) < 0 || status.st_size > LIBRARY_BYTES_MAX)
        code = error_set(out_error, FLY_EREAD, "library '%s': reading failed; install Flyball again", path);
    if (code == 0) {
        out->length = (size_t)status.st_size;
        out->bytes = malloc(out->length + 1);
        if (out->bytes == NULL || fread(out->bytes, 1, out->length, file) != out->length)
            code =
                error_set(out_error, FLY_EREAD, "library '%s': reading failed; install Flyball again", path);
    }
    if (file != NULL)
        fclose(file);
    return code;
}

/* The section of that type, if it lies within the file; else NULL. */
static const Elf64_Shdr *find_section(const struct image *image, Elf64_Word type)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image->bytes;
    const Elf64_Shdr *sections;

    if (image->length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shoff > image->length ||
        header->e_shnum > (image->length - header->e_shoff) / sizeof *sections)
        return NULL;
    sections = (const Elf64_Shdr *)(const void *)(image->bytes + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type == type && sections[i].sh_offset <= image->length &&
            sections[i].sh_size <= image->length - sections[i].sh_offset)
            return &sections[i];
    }
    return NULL;
}

static bool find_strings(struct image *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image->bytes;
    const Elf64_Shdr *symbols = find_section(image, SHT_DYNSYM);
    const Elf64_Shdr *strings;

    if (symbols == NULL || symbols->sh_link >= header->e_shnum)
        return false;
    strings = (const Elf64_Shdr *)(const void *)(image->bytes + header->e_shoff) + symbols->sh_link;
    if (strings->sh_offset > image->length || strings->sh_size > image->length - strings->sh_offset)
        return false;
    image->strings = image->bytes + strings->sh_offset;
    image->strings_length = strings->sh_size;
    return true;
}

/* Overwrites a name; false when the library does not have it. */
static bool blank(const struct image *image, const char *name, size_t length)
{
    for (size_t at = 1; at + length < image->strings_length; at++) {
        char *here = image->strings + at;

        if (here[-1] != '\0' || strncmp(here, name, length) != 0 || here[length] != '\0')
            continue;
        memset(here, '-', length);
        return true;
    }
    return false;
}

static int blank_all(const struct image *image, const char *names, struct fly_error *out_error)
{
    while (names[0] != '\0') {
        size_t length = strcspn(names, ",");

        if (length == 0 || !blank(image, names, length))
            return error_set(out_error, FLY_ENOTFOUND,
                             "the library has no function '%.*s'; name functions of NVML that it has",
                             (int)(length < 80 ? length : 80), names);
        names += length + (names[length] == ',');
    }
    return 0;
}

static int write_copy(const struct image *image, const char *directory, struct fly_error *out_error)
{
    char path[EMULATOR_PATH_MAX], link_path[EMULATOR_PATH_MAX];
    FILE *file;
    bool written;

    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return error_set(out_error, FLY_EWRITE, "directory '%s': %s; choose another", directory,
                         strerror(errno));
    snprintf(link_path, sizeof link_path, "%s/libnvidia-ml.so", directory);
    if ((size_t)snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", directory) >= sizeof path)
        return error_set(out_error, FLY_ELIMIT, "the path is too long; choose a shorter one");
    /* Do not overwrite a library that a process has loaded. */
    unlink(path);
    file = fopen(path, "wb");
    written = file != NULL && fwrite(image->bytes, 1, image->length, file) == image->length;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written || (symlink("libnvidia-ml.so.1", link_path) < 0 && errno != EEXIST))
        return error_set(out_error, FLY_EWRITE, "'%s': %s; choose another directory", path, strerror(errno));
    return 0;
}

static int library_run(const struct program_call *call, struct fly_error *out_error)
{
    const char *directory = program_value(call, "output");
    const char *without = program_value(call, "without");
    char path[EMULATOR_PATH_MAX], file[EMULATOR_PATH_MAX + 32];
    struct image image = {.bytes = NULL};
    int code = program_library_directory(path, out_error);

    if (code < 0)
        return code;
    if (directory == NULL) {
        puts(path);
        return 0;
    }
    snprintf(file, sizeof file, "%s/libnvidia-ml.so.1", path);
    code = read_image(file, &image, out_error);
    if (code == 0 && (image.bytes == NULL || !find_strings(&image)))
        code = error_set(out_error, FLY_EUNSUPPORTED, "library '%s' is not of the kind that can be changed",
                         file);
    if (code == 0 && without != NULL)
        code = blank_all(&image, without, out_error);
    if (code == 0)
        code = write_copy(&image, directory, out_error);
    free(image.bytes);
    return code;
}

const struct program_command program_library = {
    .name = "library",
    .summary = "name the directory of the driver library, or copy it without some functions",
    .text = "A program that looks up a missing function finds that the driver does not have it, as with an "
            "older\n"
            "driver.",
    .options = {{"output", "DIR",
                 "Write the copy here; without this option the directory's name is printed."},
                {"without", "LIST", "Names of functions that the copy is to lack, separated by commas."}},
    .run = library_run,
};
