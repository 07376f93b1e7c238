/* SPDX-License-Identifier: Apache-2.0 */
/* Looks things up in the tables of command.h. */
#include "cli/frame/command.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"

enum { COMMANDS_MAX = 64, WORDS_TEXT_MAX = 64 };

const struct cli_option *command_own_option(const struct cli_command *command, size_t index)
{
    if (index < command->option_count)
        return &command->options[index];
    index -= command->option_count;
    for (size_t i = 0; i < CLI_SHARED_MAX && command->shared[i] != NULL; i++) {
        if (index < command->shared[i]->count)
            return &command->shared[i]->rows[index];
        index -= command->shared[i]->count;
    }
    return NULL;
}

/* Returns whether the command has its own option in place of a common one. */
static bool replaces(const struct cli_command *command, const struct cli_option *common)
{
    const struct cli_option *own;

    for (size_t i = 0; (own = command_own_option(command, i)) != NULL; i++) {
        if (strcmp(own->name, common->name) == 0)
            return true;
    }
    return false;
}

size_t command_option_count(const struct cli_command *command)
{
    size_t count = 0;

    while (command_own_option(command, count) != NULL)
        count++;
    for (size_t i = 0; i < cli_common_option_count; i++)
        count += !replaces(command, &cli_common_options[i]);
    return count;
}

const struct cli_option *command_option(const struct cli_command *command, size_t index)
{
    const struct cli_option *own = command_own_option(command, index);
    size_t common = 0, at = 0;

    if (own != NULL)
        return own;
    while (command_own_option(command, at) != NULL)
        at++;
    for (; at < index || replaces(command, &cli_common_options[common]); common++)
        at += !replaces(command, &cli_common_options[common]);
    return &cli_common_options[common];
}

static bool name_equals(const char *known, const char *name, size_t length)
{
    return known != NULL && strlen(known) == length && memcmp(known, name, length) == 0;
}

int command_option_index(const struct cli_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command_option_count(command); i++) {
        const struct cli_option *option = command_option(command, i);

        if (name_equals(option->name, name, length) || name_equals(option->alias, name, length))
            return (int)i;
    }
    return -1;
}

int command_letter_index(const struct cli_command *command, char letter)
{
    for (size_t i = 0; letter != '\0' && i < command_option_count(command); i++) {
        if (command_option(command, i)->letter == letter)
            return (int)i;
    }
    return -1;
}

/* Returns how many of the typed words spell `known` ("sim job"), or 0 if they do not begin with it. */
static size_t words_match(const char *known, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]);

        if (strncmp(known, words[i], length) != 0)
            return 0;
        if (known[length] == '\0')
            return i + 1;
        if (known[length] != ' ')
            return 0;
        known += length + 1;
    }
    return 0;
}

const struct cli_command *command_find(const struct cli_program *program, const char *const *words,
                                       size_t count, size_t *out_used)
{
    const struct cli_command *found = NULL;
    size_t most = 0;

    /* "token issue" wins over "token", which takes a name. */
    for (const struct cli_command *const *command = program->commands; *command != NULL; command++) {
        size_t used = words_match((*command)->words, words, count);

        if (used > most) {
            most = used;
            found = *command;
        }
    }
    if (found != NULL)
        *out_used = most;
    return found;
}

const struct cli_group *group_find(const struct cli_program *program, const char *const *words, size_t count,
                                   size_t *out_used)
{
    for (const struct cli_group *group = program->groups; group->words != NULL; group++) {
        size_t used = words_match(group->words, words, count);

        if (used > 0) {
            *out_used = used;
            return group;
        }
    }
    return NULL;
}

bool command_in_group(const struct cli_command *command, const struct cli_group *group)
{
    size_t length = strlen(group->words);

    return strncmp(command->words, group->words, length) == 0 && command->words[length] == ' ';
}

static size_t word_count(const char *words)
{
    size_t count = 1;

    for (; *words != '\0'; words++)
        count += *words == ' ';
    return count;
}

/* Returns the command of exactly `count` words that is nearest to the typed ones, or NULL. */
static const char *nearest_of_length(const struct cli_program *program, const char *const *words,
                                     size_t count)
{
    const char *known[COMMANDS_MAX];
    char typed[WORDS_TEXT_MAX] = "";
    size_t length = 0;
    size_t known_count = 0;
    int nearest;

    for (size_t i = 0; i < count && length < sizeof typed; i++)
        length += (size_t)snprintf(typed + length, sizeof typed - length, "%s%s", i > 0 ? " " : "", words[i]);
    for (size_t i = 0; program->commands[i] != NULL && known_count < COMMANDS_MAX; i++) {
        if (word_count(program->commands[i]->words) == count)
            known[known_count++] = program->commands[i]->words;
    }
    nearest = word_nearest(typed, known, known_count);
    return nearest < 0 ? NULL : known[nearest];
}

static const char *command_nearest(const struct cli_program *program, const char *const *words, size_t count)
{
    const char *nearest = NULL;

    for (size_t used = count < 3 ? count : 3; used > 0 && nearest == NULL; used--)
        nearest = nearest_of_length(program, words, used);
    return nearest;
}

int command_unknown(const struct cli_program *program, const char *const *words, size_t count,
                    struct fly_error *out_error)
{
    const char *nearest = command_nearest(program, words, count);
    size_t used;
    bool in_group = count > 1 && group_find(program, words, count, &used) != NULL;
    const struct cli_command *known = command_find(program, words, count, &used);

    if (known != NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "the command '%s' has none named '%.60s' below it; see 'flyball help %s'",
                         known->words, words[used], known->words);
    return error_set(out_error, FLY_EUSAGE,
                     nearest != NULL ? "unknown command '%.60s%s%.60s'; did you mean '%s'?"
                                     : "unknown command '%.60s%s%.60s'; 'flyball help' lists all",
                     words[0], in_group ? " " : "", in_group ? words[1] : "", nearest);
}

/* The options that every command has. */

static const char *const formats[] = {"table", "json", "csv", NULL};
static const char *const colors[] = {"auto", "always", "never", NULL};

/* The order of `formats` and `colors` is that of enum table_format and enum color_choice. */
const struct cli_option cli_common_options[] = {
    {.name = "format",
     .type = CLI_CHOICE,
     .placeholder = "FORMAT",
     .choices = formats,
     .default_text = "table",
     .key = "format",
     .help = "Form of the output: a table for people, JSON or CSV for programs."},
    {.name = "color",
     .type = CLI_CHOICE,
     .placeholder = "WHEN",
     .choices = colors,
     .default_text = "auto",
     .key = "color",
     .help = "When to use colour; auto means on a terminal, unless the variable NO_COLOR is set."},
    {.name = "quiet", .type = CLI_FLAG, .help = "Print no notes and no progress on standard error."},
    {.name = "verbose",
     .letter = 'v',
     .type = CLI_FLAG,
     .help = "Print the details too, where the output begins with what matters."},
    {.name = "help",
     .letter = 'h',
     .type = CLI_FLAG,
     .help = "Print the help of the command and do nothing else."},
};

const size_t cli_common_option_count = sizeof cli_common_options / sizeof cli_common_options[0];
