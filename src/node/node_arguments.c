/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_arguments.h"

#include <string.h>

#include "base/error.h"
#include "base/words.h"

const struct node_mode_row node_modes[MODE_COUNT] = {
    [MODE_RUN] = {NULL, "Run the daemon in the foreground, until SIGTERM or Ctrl-C."},
    [MODE_RESTORE] = {"restore", "Put back what a daemon that died left on GPUs, and end."},
    [MODE_RELEASE] = {"release",
                      "Have the running daemon put everything back and close the driver, for an upgrade "
                      "of the driver or a reset of a GPU; wait until that is done."},
    [MODE_RESUME] = {"resume", "Have the running daemon open the driver again after a release."},
    [MODE_CHECK] = {"--check-config", "Read the configuration, say what is wrong with it, and end."},
    [MODE_VERSION] = {"--version", "Print the version, and end."},
    [MODE_HELP] = {"--help", "Print this help, and end."},
    [MODE_MANUAL] = {"--manual", "Print the manual page in mdoc, and end."},
    [MODE_QUANTITIES] = {"--quantities", "Print what each series of /metrics means in Markdown, and end."},
};

enum { WORDS_MAX = MODE_COUNT + KEY_COUNT + 1, OPTION_MAX = 64 };

static int unknown_word(const char *word, struct fly_error *out_error)
{
    char options[KEY_COUNT][OPTION_MAX];
    const char *known[WORDS_MAX] = {NODE_CONFIG_OPTION};
    size_t count = 1;
    int nearest;

    for (int i = 0; i < MODE_COUNT; i++)
        if (node_modes[i].word != NULL)
            known[count++] = node_modes[i].word;
    for (int i = 0; i < KEY_COUNT; i++) {
        if (node_settings[i].option.name == NULL)
            continue;
        snprintf(options[i], sizeof options[i], "--%s", node_settings[i].option.name);
        known[count++] = options[i];
    }
    nearest = word_nearest(word, known, count);
    return error_set(out_error, FLY_EUSAGE,
                     "there is no option or command '%.80s'%s%s%s; see 'flyballd --help'", word,
                     nearest >= 0 ? " (did you mean '" : "", nearest >= 0 ? known[nearest] : "",
                     nearest >= 0 ? "'?)" : "");
}

static bool take_mode(struct node_arguments *arguments, const char *word)
{
    for (int i = 0; i < MODE_COUNT; i++) {
        if (node_modes[i].word == NULL || strcmp(node_modes[i].word, word) != 0)
            continue;
        arguments->mode = (enum node_mode)i;
        return true;
    }
    return false;
}

/* Returns whether a word is this option, and the value behind its '=', or NULL. */
static bool is_option(const char *word, const char *name, const char **out_value)
{
    size_t length = strlen(name);

    if (strncmp(word, name, length) != 0 || (word[length] != '\0' && word[length] != '='))
        return false;
    *out_value = word[length] == '=' ? word + length + 1 : NULL;
    return true;
}

static int find_setting(const char *word, const char **out_value)
{
    for (int i = 0; i < KEY_COUNT && strncmp(word, "--", 2) == 0; i++)
        if (node_settings[i].option.name != NULL &&
            is_option(word + 2, node_settings[i].option.name, out_value))
            return i;
    return -1;
}

static int take_value(struct node_arguments *arguments, int key, const char *value)
{
    if (key < 0)
        arguments->config = value;
    else
        arguments->overrides[arguments->override_count++] =
            (struct config_override){(enum node_key)key, value};
    return 0;
}

int node_arguments_read(const char *const *words, size_t count, struct node_arguments *out_arguments,
                        struct fly_error *out_error)
{
    struct node_arguments read = {.mode = MODE_RUN};

    for (size_t i = 0; i < count; i++) {
        const char *value = NULL;
        int key;

        if (read.mode == MODE_RUN && take_mode(&read, words[i]))
            continue;
        key = find_setting(words[i], &value);
        if (key < 0 && !is_option(words[i], NODE_CONFIG_OPTION, &value))
            return unknown_word(words[i], out_error);
        if (value == NULL && i + 1 < count)
            value = words[++i];
        if (value == NULL || read.override_count == KEY_COUNT)
            return error_set(out_error, FLY_EUSAGE, "'%.80s' takes a value; see 'flyballd --help'", words[i]);
        take_value(&read, key, value);
    }
    *out_arguments = read;
    return 0;
}

struct config_source node_arguments_source(const struct node_arguments *arguments)
{
    return (struct config_source){.path = arguments->config != NULL ? arguments->config : NODE_CONFIG_PATH,
                                  .must_exist = arguments->config != NULL,
                                  .overrides = arguments->overrides,
                                  .override_count = arguments->override_count};
}
