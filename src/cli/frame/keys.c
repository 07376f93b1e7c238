/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/frame/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

static void keys_add(struct key_table *keys, const struct cli_option *option)
{
    if (option->key != NULL && keys->count < KEYS_MAX && keys_find(keys, option->key) < 0)
        keys->options[keys->count++] = option;
}

void keys_collect(const struct cli_program *program, struct key_table *out_keys)
{
    out_keys->count = 0;
    for (size_t i = 0; i < cli_common_option_count; i++)
        keys_add(out_keys, &cli_common_options[i]);
    for (size_t i = 0; program->commands[i] != NULL; i++) {
        for (size_t j = 0; j < program->commands[i]->option_count; j++)
            keys_add(out_keys, &program->commands[i]->options[j]);
    }
}

int keys_find(const struct key_table *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->options[i]->key, key) == 0)
            return (int)i;
    }
    return -1;
}

int keys_find_variable(const struct key_table *keys, const char *variable)
{
    char name[KEY_VARIABLE_MAX];

    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(key_variable(keys->options[i]->key, name), variable) == 0)
            return (int)i;
    }
    return -1;
}

const char *keys_nearest(const struct key_table *keys, const char *key)
{
    const char *known[KEYS_MAX];
    int nearest;

    for (size_t i = 0; i < keys->count; i++)
        known[i] = keys->options[i]->key;
    nearest = word_nearest(key, known, keys->count);
    return nearest < 0 ? NULL : known[nearest];
}

char *key_variable(const char *key, char *variable)
{
    snprintf(variable, KEY_VARIABLE_MAX, "FLYBALL_%s", key);
    for (char *letter = variable; *letter != '\0'; letter++)
        *letter = isalnum((unsigned char)*letter) ? (char)toupper((unsigned char)*letter) : '_';
    return variable;
}
