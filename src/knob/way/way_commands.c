/* SPDX-License-Identifier: Apache-2.0 */
/* Turns knobs by commands of the site, such as sudo with a rule for it. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "knob/way/command_file.h"
#include "knob/way/command_run.h"
#include "knob/way/command_words.h"
#include "knob/way/way.h"

enum { SHOWN_COMMAND = 100, SHOWN_OUTPUT = 140 };

static bool commands_offer(const struct site *site, const struct device *device)
{
    return site->places[WAY_COMMANDS][0] != '\0' && (!device->info.emulated || site->named[WAY_COMMANDS]);
}

/* Copies to one line: unprintable characters become blanks, and blanks are not repeated. */
static void copy_shown(const char *text, char *shown, size_t bytes)
{
    size_t length = 0;

    for (; *text != '\0' && length + 1 < bytes; text++) {
        char c = *text;

        if ((unsigned char)c < ' ' || c == 0x7F)
            c = ' ';
        if (c != ' ' || (length > 0 && shown[length - 1] != ' '))
            shown[length++] = c;
    }
    while (length > 0 && shown[length - 1] == ' ')
        length--;
    shown[length] = '\0';
}

static void show_command(char *const *words, char shown[SHOWN_COMMAND])
{
    char joined[SHOWN_COMMAND * 2] = "";
    size_t length = 0;

    for (size_t i = 0; words[i] != NULL && length < sizeof joined; i++)
        length +=
            (size_t)snprintf(joined + length, sizeof joined - length, "%s%s", i > 0 ? " " : "", words[i]);
    copy_shown(joined, shown, SHOWN_COMMAND);
}

/*
 * Compiles a pattern as in the public daemon's files, as far as POSIX supports it: flags in
 * front, and \d within. FLY_ECONFIG for a pattern that cannot be read so.
 */
static int compile(const char *pattern, regex_t *out_regex, struct fly_error *out_error)
{
    char posix[COMMAND_PATTERN_MAX * 6];
    int flags = REG_EXTENDED | REG_NOSUB, code;
    size_t length = 0;
    const char *at = pattern;

    if (strncmp(at, "(?", 2) == 0) {
        for (at += 2; *at == 'i' || *at == 'm'; at++)
            flags |= *at == 'i' ? REG_ICASE : REG_NEWLINE;
        at += *at == ')' ? 1 : 0;
    }
    for (; *at != '\0'; at++) {
        bool digit = at[0] == '\\' && at[1] == 'd';

        if (!digit && at[0] == '\\' && at[1] != '\0')
            posix[length++] = *at++;
        length += (size_t)snprintf(posix + length, sizeof posix - length, digit ? "[0-9]" : "%c", *at);
        at += digit;
    }
    posix[length] = '\0';
    code = strstr(posix, "(?") != NULL ? REG_BADPAT : regcomp(out_regex, posix, flags);
    if (code == 0)
        return 0;
    return error_set(out_error, FLY_ECONFIG,
                     "the error_pattern '%.100s' is no regular expression that is understood here (POSIX "
                     "extended, with (?i) in front); write it so",
                     pattern);
}

static int check_pattern(const char *pattern, const char *output, bool *out_matches,
                         struct fly_error *out_error)
{
    regex_t regex;
    int code;

    *out_matches = false;
    if (pattern == NULL)
        return 0;
    code = compile(pattern, &regex, out_error);
    if (code < 0)
        return code;
    *out_matches = regexec(&regex, output, 0, NULL, 0) == 0;
    regfree(&regex);
    return 0;
}

/* In place of the driver, what the file does not say is as in the public daemon's files. */
static int command_timeout_s(const struct site *site, const struct operation_commands *offer)
{
    return site->commands_first && !offer->timeout_stated ? COMMAND_FIRST_TIMEOUT_S : offer->timeout_s;
}

/* Reports a command that did not do what it was run for. */
static int failed(const struct site *site, const struct operation_commands *offer, char *const *words,
                  const struct command_end *end, bool *out_uncertain, struct fly_error *out_error)
{
    char command[SHOWN_COMMAND], output[SHOWN_OUTPUT];
    const char *path = site->places[WAY_COMMANDS];
    int cause = end->spawn_errno;

    show_command(words, command);
    copy_shown(end->output, output, sizeof output);
    if (cause != 0)
        return error_set(out_error,
                         cause == ENOENT   ? FLY_ENOTFOUND
                         : cause == EACCES ? FLY_EPERM
                                           : FLY_EREAD,
                         "'%s' of '%.100s' cannot be run: %s; correct it there", command, path,
                         strerror(cause));
    if (!end->ended) {
        *out_uncertain = true;
        return error_set(out_error, FLY_EREAD,
                         "'%s' of '%.100s' did not end within %d s, and was killed; try it by hand", command,
                         path, command_timeout_s(site, offer));
    }
    if (end->status != 0)
        return error_set(out_error, FLY_EREAD, "'%s' of '%.100s' failed with status %d%s%s; try it by hand",
                         command, path, end->status, output[0] != '\0' ? ", and said: " : "", output);
    return error_set(out_error, FLY_EREAD, "'%s' of '%.100s' failed by its error_pattern: %s; try it by hand",
                     command, path, output);
}

static void free_words(char **words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        free(words[i]);
}

static int run_one(const struct site *site, const struct operation_commands *offer,
                   const struct command_words *command, const struct operation_call *call,
                   bool *out_uncertain, struct fly_error *out_error)
{
    char *words[COMMAND_WORDS_MAX + 1] = {NULL};
    struct command_end end;
    bool matches = false;
    int code = 0;

    for (size_t i = 0; i < command->count && code == 0; i++) {
        words[i] = command_word_fill(site->commands->words[command->first + i], call);
        if (words[i] == NULL)
            code = error_no_memory(out_error);
    }
    if (code == 0) {
        command_run(words, command_timeout_s(site, offer), &end);
        if (end.spawn_errno == 0 && end.ended && end.status == 0)
            code = check_pattern(offer->error_pattern, end.output, &matches, out_error);
        if (code == 0 && (end.spawn_errno != 0 || !end.ended || end.status != 0 || matches))
            code = failed(site, offer, words, &end, out_uncertain, out_error);
    }
    free_words(words);
    return code;
}

/* Finds the operation that brings the knob to the value; the file is read when it is needed first. */
static int find_offer(struct site *site, const struct device *device, enum quantity quantity,
                      const struct setting *value, struct operation_call *out_call,
                      const struct operation_commands **out_offer, struct fly_error *out_error)
{
    int code = 0;

    *out_offer = NULL;
    if (site->commands == NULL)
        code = command_file_load(site->places[WAY_COMMANDS], &site->commands, out_error);
    if (code == 0)
        code = operation_for(device, quantity, value, out_call, out_error);
    if (code == 0 && site->commands != NULL && out_call->operation < OPERATION_COUNT)
        *out_offer = &site->commands->operations[out_call->operation];
    return code;
}

static int commands_cover(struct site *site, const struct device *device, enum quantity quantity,
                          const struct setting *value, bool *out_covers, struct fly_error *out_error)
{
    struct operation_call call = {.operation = OPERATION_COUNT};
    const struct operation_commands *offer;
    int code = find_offer(site, device, quantity, value, &call, &offer, out_error);

    if (code == FLY_EUNSUPPORTED) /* a knob that the driver alone turns */
        return 0;
    *out_covers = code == 0 && offer != NULL && offer->count > 0;
    return code;
}

static int commands_set(struct site *site, const struct device *device, enum quantity quantity,
                        const struct setting *value, bool *out_uncertain, struct fly_error *out_error)
{
    struct operation_call call = {.operation = OPERATION_COUNT};
    const struct operation_commands *offer;
    bool matches;
    int code = find_offer(site, device, quantity, value, &call, &offer, out_error);

    if (code < 0 || offer == NULL)
        return code;
    if (offer->count == 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the file of commands '%.200s' has no table '%s'; add one to it",
                         site->places[WAY_COMMANDS], operation_facts[call.operation].name);
    code = check_pattern(offer->error_pattern, "", &matches, out_error); /* before anything runs */
    for (size_t i = 0; i < offer->count && code == 0; i++)
        code = run_one(site, offer, &offer->commands[i], &call, out_uncertain, out_error);
    return code;
}

const struct way_calls way_commands = {
    .offers = commands_offer,
    .covers = commands_cover,
    .set = commands_set,
};
