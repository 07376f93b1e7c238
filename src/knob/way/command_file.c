/* SPDX-License-Identifier: Apache-2.0 */
/* The file of commands as a whole; command_words.c handles words and their values. */
#include "knob/way/command_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/text/toml.h"
#include "knob/way/command_words.h"

struct parse {
    struct command_file *file;
    struct operation_commands *table; /* the current table; NULL before the first */
    struct toml_place begin;          /* where the table begins */
    const char *name;
};

__attribute__((format(printf, 3, 4))) static int wrong(const struct toml_place *place,
                                                       struct fly_error *out_error, const char *format, ...)
{
    char cause[FLY_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    vsnprintf(cause, sizeof cause, format, arguments);
    va_end(arguments);
    harmless_hide_controls(cause);
    return error_set(out_error, FLY_ECONFIG, "%.150s:%zu: %.340s", place->file, place->line, cause);
}

static int take_commands(struct parse *parse, const struct toml_place *place, struct toml_value *value,
                         struct fly_error *out_error)
{
    enum operation operation = (enum operation)(parse->table - parse->file->operations);

    if (value->kind != TOML_STRINGS || value->count == 0)
        return wrong(place, out_error, "'commands' of '%s' has to be an array of at least one string",
                     parse->name);
    for (size_t i = 0; i < value->count; i++) {
        struct command_words *command = &parse->table->commands[i];
        char cause[COMMAND_CAUSE_MAX];

        command->first = parse->file->word_count;
        if (!command_words_split(value->items[i], parse->file->words, &parse->file->word_count, cause) ||
            !command_words_check(&parse->file->words[command->first],
                                 parse->file->word_count - command->first, operation, cause))
            return wrong(place, out_error, "'commands' of '%s', item %zu: %s", parse->name, i + 1, cause);
        command->count = parse->file->word_count - command->first;
    }
    parse->table->count = value->count;
    return 0;
}

static int take_pattern(struct parse *parse, const struct toml_place *place, struct toml_value *value,
                        struct fly_error *out_error)
{
    if (value->kind != TOML_STRING || strlen(value->text) >= COMMAND_PATTERN_MAX)
        return wrong(place, out_error,
                     "'error_pattern' of '%s' has to be a string of less than %d bytes: a regular expression",
                     parse->name, COMMAND_PATTERN_MAX);
    parse->table->error_pattern = value->text;
    return 0;
}

static int take_timeout(struct parse *parse, const struct toml_place *place, struct toml_value *value,
                        struct fly_error *out_error)
{
    if (value->kind != TOML_INTEGER || value->integer < 1 || value->integer > COMMAND_TIMEOUT_MAX_S)
        return wrong(place, out_error, "'timeout_s' of '%s' has to be a whole number from 1 to %d",
                     parse->name, COMMAND_TIMEOUT_MAX_S);
    parse->table->timeout_s = (int)value->integer;
    parse->table->timeout_stated = true;
    return 0;
}

static const struct field {
    const char *key;
    int (*take)(struct parse *parse, const struct toml_place *place, struct toml_value *value,
                struct fly_error *out_error);
} fields[] = {
    {"commands", take_commands},
    {"error_pattern", take_pattern},
    {"timeout_s", take_timeout},
};

/* A table without commands offers nothing, which is surely a mistake. */
static int end_table(const struct parse *parse, struct fly_error *out_error)
{
    if (parse->table == NULL || parse->table->count > 0)
        return 0;
    return wrong(&parse->begin, out_error, "the table '%s' has no 'commands'; give it some, or remove it",
                 parse->name);
}

static int begin_table(struct parse *parse, const struct toml_place *place, const char *name,
                       struct fly_error *out_error)
{
    int operation = operation_find(name), code = end_table(parse, out_error);

    if (code < 0)
        return code;
    if (operation < 0)
        return wrong(place, out_error,
                     "unknown table '%.60s'; there are set_power_limit, set_persistence_mode, "
                     "set_gpu_locked_clocks, reset_gpu_locked_clocks, the same of mem, and "
                     "reset_locked_clocks",
                     name);
    parse->table = &parse->file->operations[operation];
    parse->table->timeout_s = COMMAND_TIMEOUT_S;
    parse->begin = *place;
    parse->name = operation_facts[operation].name;
    return 0;
}

static int take(void *data, const struct toml_place *place, const char *table, const char *key,
                struct toml_value *value, struct fly_error *out_error)
{
    struct parse *parse = data;

    if (key == NULL)
        return begin_table(parse, place, table, out_error);
    if (parse->table == NULL)
        return wrong(place, out_error,
                     "'%.60s' stands in no table; expected one such as [set_power_limit] first", key);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].key, key) == 0)
            return fields[i].take(parse, place, value, out_error);
    }
    return wrong(place, out_error,
                 "unknown key '%.60s' in '%s'; there are commands, error_pattern and timeout_s", key,
                 parse->name);
}

int command_file_parse(const char *name, const char *text, size_t length, struct command_file **out_file,
                       struct fly_error *out_error)
{
    struct command_file *file = calloc(1, sizeof *file);
    struct parse parse = {.file = file};
    const struct toml_taker taker = {.take = take, .data = &parse};
    int code;

    if (file == NULL || (file->text = malloc(length + 1)) == NULL) {
        free(file);
        return error_no_memory(out_error);
    }
    memcpy(file->text, text, length);
    file->text[length] = '\0';
    if (strlen(file->text) != length)
        code = error_set(out_error, FLY_ECONFIG, "'%.200s' is no text: it holds a NUL; correct it", name);
    else
        code = toml_read(name, file->text, &taker, out_error);
    if (code == 0)
        code = end_table(&parse, out_error);
    if (code < 0)
        command_file_free(file);
    else
        *out_file = file;
    return code;
}

int command_file_longest_s(const struct command_file *file)
{
    int longest_s = 0;

    for (int i = 0; i < OPERATION_COUNT; i++) {
        const struct operation_commands *offer = &file->operations[i];
        int all_s = (int)offer->count * (offer->timeout_stated ? offer->timeout_s : COMMAND_FIRST_TIMEOUT_S);

        longest_s = all_s > longest_s ? all_s : longest_s;
    }
    return longest_s;
}

bool command_file_is_shared(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && (status.st_mode & S_IWGRP) != 0;
}

void command_file_free(struct command_file *file)
{
    if (file == NULL)
        return;
    free(file->text);
    free(file);
}

static int not_read(const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT || cause == ENOTDIR ? FLY_ENOTFOUND
               : cause == EACCES || cause == EPERM ? FLY_EPERM
                                                   : FLY_EREAD;

    return error_set(out_error, code,
                     "the file of commands '%.200s' cannot be read: %s; correct its path in "
                     "FLYBALL_KNOB_COMMANDS, or its mode",
                     path, strerror(cause));
}

/* The commands may run as root, so nobody except root and this user may be able to write them. */
static int check_owner(const char *path, const struct stat *status, struct fly_error *out_error)
{
    if (!S_ISREG(status->st_mode))
        return error_set(out_error, FLY_ECONFIG, "the file of commands '%.200s' is no regular file", path);
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return error_set(out_error, FLY_EPERM,
                         "the file of commands '%.200s' is not root's nor this user's, and is not believed; "
                         "'sudo chown root' it once you have read it",
                         path);
    if ((status->st_mode & S_IWOTH) != 0)
        return error_set(out_error, FLY_EPERM,
                         "the file of commands '%.200s' may be written by everybody, and is not believed; "
                         "'chmod o-w' it once you have read it",
                         path);
    if (status->st_size > COMMAND_FILE_BYTES_MAX)
        return error_set(out_error, FLY_ELIMIT, "the file of commands '%.200s' is longer than %d bytes", path,
                         COMMAND_FILE_BYTES_MAX);
    return 0;
}

int command_file_load(const char *path, struct command_file **out_file, struct fly_error *out_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
    struct stat status;
    ssize_t length;
    char *text;

    if (fd < 0)
        return not_read(path, errno, out_error);
    if (fstat(fd, &status) < 0)
        code = not_read(path, errno, out_error);
    else
        code = check_owner(path, &status, out_error);
    text = code == 0 ? malloc(COMMAND_FILE_BYTES_MAX) : NULL;
    if (code == 0 && text == NULL)
        code = error_no_memory(out_error);
    if (code == 0) {
        length = read(fd, text, COMMAND_FILE_BYTES_MAX);
        code = length < 0 ? not_read(path, errno, out_error)
                          : command_file_parse(path, text, (size_t)length, out_file, out_error);
    }
    free(text);
    close(fd);
    return code;
}
