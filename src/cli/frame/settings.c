/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers are read from the weakest to the strongest, each replacing values of those before; the
 * system's file comes first, so that its locks are known to all others.
 */
#include "cli/frame/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/words.h"
#include "cli/frame/config_file.h"
#include "cli/frame/value.h"

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
        const struct cli_option *option;

        for (size_t j = 0; (option = command_own_option(program->commands[i], j)) != NULL; j++)
            keys_add(out_keys, option);
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

enum { VARIABLES_MAX = KEYS_MAX + 32 };

static const char variable_prefix[] = "FLYBALL_";

#define PREFIX_LENGTH (sizeof variable_prefix - 1)

static const char lock_section[] = "lock";

struct loader {
    const struct cli_program *program;
    struct key_table keys;
    struct settings *settings;
    struct buffer *warnings;
    const char *path;            /* of the file being read */
    bool may_lock;               /* it is the system's */
    bool is_local;               /* it is the working directory's */
    size_t set_lines[KEYS_MAX];  /* where the file set each key, 0 for nowhere */
    size_t lock_lines[KEYS_MAX]; /* where it locked each */
};

void settings_init(const struct cli_program *program, struct settings *out_settings)
{
    struct key_table keys;

    keys_collect(program, &keys);
    *out_settings = (struct settings){.count = keys.count};
    for (size_t i = 0; i < keys.count; i++)
        out_settings->rows[i].option = keys.options[i];
}

static void setting_clear(struct setting *setting)
{
    free(setting->text);
    free(setting->origin);
    setting->text = NULL;
    setting->origin = NULL;
}

void settings_deinit(struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        setting_clear(&settings->rows[i]);
        free(settings->rows[i].lock);
    }
    settings->count = 0;
}

const struct setting *settings_find(const struct settings *settings, const char *key)
{
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->rows[i].option->key, key) == 0)
            return &settings->rows[i];
    }
    return NULL;
}

/* Checks that the text fits the key; keeps nothing. */
static int check(const struct cli_option *option, enum cli_source source, const char *origin,
                 const char *text, struct fly_error *out_error)
{
    struct cli_value value;
    int result;

    value_init(&value);
    result = value_set(&value, option, source, origin, text, NULL, out_error);
    value_deinit(&value);
    return result;
}

/* Lets a layer set a key. A lock that exists by now comes from a weaker layer and cannot be overridden. */
static int assign(struct loader *loader, int key, enum cli_source source, const char *origin,
                  const char *text, struct fly_error *out_error)
{
    struct setting *setting = &loader->settings->rows[key];

    if (setting->lock != NULL && !loader->may_lock) {
        buffer_printf(loader->warnings, "'%s' of '%s' is ignored: '%s' locks the key\n", origin,
                      setting->option->key, setting->lock);
        return 0;
    }
    if (check(setting->option, source, origin, text, out_error) < 0)
        return FLY_ECONFIG;
    setting_clear(setting);
    setting->source = source;
    setting->text = strdup(text);
    setting->origin = strdup(origin);
    return setting->text == NULL || setting->origin == NULL ? error_no_memory(out_error) : 0;
}

/* Writes the key of an entry, "sim.traces", to `out_key`. */
static void entry_key(const struct config_entry *entry, struct buffer *out_key)
{
    buffer_printf(out_key, "%s%s%s", entry->section, entry->section[0] != '\0' ? "." : "", entry->name);
}

static int unknown_key(const struct loader *loader, const char *origin, const char *key,
                       struct fly_error *out_error)
{
    const char *nearest = keys_nearest(&loader->keys, key);

    if (nearest == NULL)
        return error_set(out_error, FLY_ECONFIG, "%s: unknown key '%s'; 'flyball config show' lists all",
                         origin, key);
    return error_set(out_error, FLY_ECONFIG, "%s: unknown key '%s'; did you mean '%s'?", origin, key,
                     nearest);
}

static int take_lock(struct loader *loader, int key, const char *origin, const struct config_entry *entry,
                     struct fly_error *out_error)
{
    struct setting *setting = &loader->settings->rows[key];
    bool locked;

    if (!loader->may_lock)
        return error_set(out_error, FLY_ECONFIG,
                         "%s: section '[lock]' counts in the system's file only; remove it", origin);
    if (!value_parse_flag(entry->value, &locked))
        return error_set(out_error, FLY_ECONFIG,
                         "%s: bad value '%.80s' of '[lock] %s': expected yes or no; correct that line",
                         origin, entry->value, entry->name);
    if (!locked)
        return 0;
    setting->lock = strdup(origin);
    return setting->lock == NULL ? error_no_memory(out_error) : 0;
}

/* Refuses a key that occurs twice in a file: one of the lines would have no effect. */
static int take_once(size_t *lines, int key, const char *origin, const struct config_entry *entry,
                     struct fly_error *out_error)
{
    if (lines[key] != 0)
        return error_set(out_error, FLY_ECONFIG, "%s: key '%s' stands in line %zu already; remove one",
                         origin, entry->name, lines[key]);
    lines[key] = entry->line;
    return 0;
}

/* Warns that a sensitive key is ignored here. */
static void refuse_sensitive(struct loader *loader, const char *origin, const char *key)
{
    char variable[KEY_VARIABLE_MAX];

    buffer_printf(
        loader->warnings,
        "'%s' is ignored: '%s' does not count in the working directory's file, which anybody may have "
        "brought there; set it in your own file ('man flyball.ini'), as %s or as an option\n",
        origin, key, key_variable(key, variable));
}

static int take_key(struct loader *loader, const char *key, const char *origin,
                    const struct config_entry *entry, struct fly_error *out_error)
{
    bool lock = strcmp(entry->section, lock_section) == 0;
    int index = keys_find(&loader->keys, lock ? entry->name : key);

    if (index < 0)
        return unknown_key(loader, origin, lock ? entry->name : key, out_error);
    if (take_once(lock ? loader->lock_lines : loader->set_lines, index, origin, entry, out_error) < 0)
        return FLY_ECONFIG;
    if (lock)
        return take_lock(loader, index, origin, entry, out_error);
    if (loader->is_local && loader->keys.options[index]->sensitive) {
        refuse_sensitive(loader, origin, loader->keys.options[index]->key);
        return 0;
    }
    return assign(loader, index, CLI_FILE, origin, entry->value, out_error);
}

static int take_entry(void *data, const struct config_entry *entry, struct fly_error *out_error)
{
    struct loader *loader = data;
    struct buffer key;
    struct buffer origin;
    int result;

    if (entry->name == NULL)
        return 0;
    buffer_init(&key, VALUE_TEXT_MAX);
    buffer_init(&origin, 2 * VALUE_TEXT_MAX);
    entry_key(entry, &key);
    buffer_printf(&origin, "%s:%zu", loader->path, entry->line);
    if (key.error < 0 || origin.error < 0)
        result = error_no_memory(out_error);
    else
        result = take_key(loader, key.data, origin.data, entry, out_error);
    buffer_deinit(&key);
    buffer_deinit(&origin);
    return result;
}

static int load_file(struct loader *loader, const char *path, struct fly_error *out_error)
{
    struct buffer text;
    const char *refusal = NULL;
    bool exists = false;
    int result;

    if (path == NULL)
        return 0;
    loader->path = path;
    memset(loader->set_lines, 0, sizeof loader->set_lines);
    memset(loader->lock_lines, 0, sizeof loader->lock_lines);
    buffer_init(&text, CONFIG_FILE_MAX);
    result = config_file_read(path, &text, &exists, &refusal, out_error);
    if (refusal != NULL)
        buffer_printf(loader->warnings, "'%s' is not read: %s; mend that, or remove the file\n", path,
                      refusal);
    if (result == 0 && exists)
        result = config_text_parse(path, text.data, text.length, take_entry, loader, out_error);
    buffer_deinit(&text);
    return result;
}

/*
 * Warns of a variable that nothing reads: probably a key's with a typing error. Names are
 * compared without the prefix, which would make them all look alike.
 */
static void check_variable_name(const struct loader *loader, const char *name)
{
    char variables[KEYS_MAX][KEY_VARIABLE_MAX];
    const char *known[VARIABLES_MAX];
    size_t count = loader->keys.count;
    int nearest;

    for (size_t i = 0; i < count; i++)
        known[i] = key_variable(loader->keys.options[i]->key, variables[i]) + PREFIX_LENGTH;
    for (const struct cli_variable *variable = loader->program->variables;
         variable->name != NULL && count < VARIABLES_MAX; variable++)
        known[count++] = variable->name + PREFIX_LENGTH;
    if (word_index(name + PREFIX_LENGTH, known, count) >= 0)
        return;
    nearest = word_nearest(name + PREFIX_LENGTH, known, count);
    buffer_printf(loader->warnings, "unknown variable '%.80s' has no effect", name);
    if (nearest >= 0)
        buffer_printf(loader->warnings, "; did you mean '%s%s'?", variable_prefix, known[nearest]);
    buffer_puts(loader->warnings, "\n");
}

static int load_variable(struct loader *loader, const char *assignment, struct fly_error *out_error)
{
    const char *value = strchr(assignment, '=');
    char *name;
    int key;
    int result = 0;

    if (value == NULL || strncmp(assignment, variable_prefix, PREFIX_LENGTH) != 0)
        return 0;
    name = strndup(assignment, (size_t)(value - assignment));
    if (name == NULL)
        return error_no_memory(out_error);
    key = keys_find_variable(&loader->keys, name);
    if (key < 0)
        check_variable_name(loader, name);
    else if (value[1] != '\0')
        result = assign(loader, key, CLI_VARIABLE, name, value + 1, out_error);
    free(name);
    return result;
}

/* Returns whether both paths lead to the same existing file. */
static bool same_file(const char *one, const char *other)
{
    struct stat first, second;

    return one != NULL && other != NULL && stat(one, &first) == 0 && stat(other, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* A home or a working directory that this user may not enter, such as root's after `su`, has no file for him.
 */
static bool can_be_seen(const char *path)
{
    struct stat status;

    return path != NULL && lstat(path, &status) == 0;
}

static int load_local(struct loader *loader, const struct settings_paths *paths, struct fly_error *out_error)
{
    int result;

    if (!can_be_seen(paths->local) || same_file(paths->local, paths->user) ||
        same_file(paths->local, paths->system))
        return 0;
    loader->is_local = true;
    result = load_file(loader, paths->local, out_error);
    loader->is_local = false;
    return result;
}

int settings_load(const struct cli_program *program, const struct settings_paths *paths,
                  const char *const *environment, struct settings *out_settings, struct buffer *warnings,
                  struct fly_error *out_error)
{
    struct loader loader = {
        .program = program, .settings = out_settings, .warnings = warnings, .may_lock = true};
    int result;

    settings_init(program, out_settings);
    keys_collect(program, &loader.keys);
    result = load_file(&loader, paths->system, out_error);
    loader.may_lock = false;
    if (result == 0 && can_be_seen(paths->user))
        result = load_file(&loader, paths->user, out_error);
    if (result == 0)
        result = load_local(&loader, paths, out_error);
    for (size_t i = 0; result == 0 && environment != NULL && environment[i] != NULL; i++)
        result = load_variable(&loader, environment[i], out_error);
    return result;
}
