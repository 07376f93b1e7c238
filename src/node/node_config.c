/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/frame/config_file.h"
#include "node/rights_rules.h"

enum { ORIGIN_MAX = 4096 };

struct config {
    struct cli_value values[KEY_COUNT];
    char *texts[KEY_COUNT];   /* owned: the values point into them; NULL for a default */
    char *origins[KEY_COUNT]; /* owned; NULL for a default */
    size_t lines[KEY_COUNT];  /* of the file; 0: not set there */
    struct rules rules;
};

struct config_reading {
    struct config *config;
    const char *path;
};

static int set_value(struct config *config, enum node_key key, enum cli_source source, const char *origin,
                     const char *text, struct fly_error *out_error)
{
    struct cli_value *value = &config->values[key];
    char *kept = strdup(text), *from = strdup(origin);
    int code;

    free(config->texts[key]);
    free(config->origins[key]);
    config->texts[key] = kept;
    config->origins[key] = from;
    if (kept == NULL || from == NULL)
        return error_no_memory(out_error);
    value_deinit(value);
    code = value_set(value, &node_settings[key].option, source, from, kept, NULL, out_error);
    if (code == FLY_EUSAGE) /* the frame's text names another program's help */
        *strstr(out_error->text, "; see") = '\0';
    return code;
}

static int unknown_key(const struct config_reading *reading, const struct config_entry *entry,
                       const char *key, struct fly_error *out_error)
{
    const char *nearest = node_setting_nearest(key);

    if (strcmp(key, "lease.commands") == 0)
        return error_set(out_error, FLY_ECONFIG,
                         "%s:%zu: 'lease.commands' is not supported: flyballd turns knobs through the driver "
                         "itself, as root; remove the line",
                         reading->path, entry->line);
    return error_set(out_error, FLY_ECONFIG,
                     "%s:%zu: there is no key '%.100s'%s%s%s; correct it, or see flyballd(8)", reading->path,
                     entry->line, key, nearest != NULL ? " (did you mean '" : "",
                     nearest != NULL ? nearest : "", nearest != NULL ? "'?)" : "");
}

/* Returns whether a section is one of the table's. */
static bool is_section(const char *section)
{
    size_t length = strlen(section);

    for (int i = 0; i < KEY_COUNT; i++)
        if (strncmp(node_settings[i].option.key, section, length) == 0 &&
            node_settings[i].option.key[length] == '.')
            return true;
    return false;
}

static int take_setting(const struct config_reading *reading, const struct config_entry *entry,
                        struct fly_error *out_error)
{
    char key[CONFIG_KEY_MAX], origin[ORIGIN_MAX];
    int index;

    snprintf(key, sizeof key, "%s%s%s", entry->section, entry->section[0] != '\0' ? "." : "", entry->name);
    index = node_setting_find(key);
    if (index < 0)
        return unknown_key(reading, entry, key, out_error);
    if (reading->config->lines[index] > 0)
        return error_set(out_error, FLY_ECONFIG, "%s:%zu: '%s' is set in line %zu already; keep one",
                         reading->path, entry->line, key, reading->config->lines[index]);
    reading->config->lines[index] = entry->line;
    snprintf(origin, sizeof origin, "%s:%zu", reading->path, entry->line);
    return set_value(reading->config, (enum node_key)index, CLI_FILE, origin, entry->value, out_error);
}

static int take_entry(void *data, const struct config_entry *entry, struct fly_error *out_error)
{
    const struct config_reading *reading = data;

    if (rules_is_section(entry->section))
        return rules_take(&reading->config->rules, reading->path, entry, out_error);
    if (entry->name != NULL)
        return take_setting(reading, entry, out_error);
    if (entry->section[0] == '\0' || is_section(entry->section))
        return 0;
    return error_set(out_error, FLY_ECONFIG,
                     "%s:%zu: there is no section '%.100s'; expected [server], [watch], [attribution], "
                     "[devices], [lease], "
                     "[rights], [log] or [rule NAME]",
                     reading->path, entry->line, entry->section);
}

static int read_file(const struct config_source *source, struct config *config, struct fly_error *out_error)
{
    struct config_reading reading = {config, source->path};
    const char *refusal;
    struct buffer text;
    bool exists;
    int code;

    buffer_init(&text, CONFIG_FILE_MAX);
    code = config_file_read(source->path, &text, &exists, &refusal, out_error);
    if (code == 0 && refusal != NULL)
        code = error_set(out_error, FLY_EPERM,
                         "the configuration '%s' is not read: %s; it says who may control GPUs, so root "
                         "must own it and nobody else may write it",
                         source->path, refusal);
    else if (code == 0 && !exists && source->must_exist)
        code = error_set(out_error, FLY_ECONFIG, "there is no configuration '%s'; correct --config",
                         source->path);
    if (code == 0 && exists && text.length > 0)
        code = config_text_parse(source->path, text.data, text.length, take_entry, &reading, out_error);
    buffer_deinit(&text);
    return code;
}

static int set_defaults(struct config *config, struct fly_error *out_error)
{
    int code = 0;

    for (int i = 0; i < KEY_COUNT && code == 0; i++) {
        const struct cli_option *option = &node_settings[i].option;

        value_init(&config->values[i]);
        if (option->default_text != NULL)
            code = value_set(&config->values[i], option, CLI_DEFAULT, "default", option->default_text, NULL,
                             out_error);
    }
    return code;
}

static int set_overrides(const struct config_source *source, struct config *config,
                         struct fly_error *out_error)
{
    char origin[CONFIG_KEY_MAX];
    int code = 0;

    for (size_t i = 0; i < source->override_count && code == 0; i++) {
        const struct config_override *override = &source->overrides[i];

        snprintf(origin, sizeof origin, "--%s", node_settings[override->key].option.name);
        code = set_value(config, override->key, CLI_OPTION, origin, override->text, out_error);
    }
    return code;
}

/* What the table's types do not see. */
static int check_whole(const struct config *config, struct fly_error *out_error)
{
    const char *mode = config_text(config, KEY_SOCKET_MODE);
    char *end;
    unsigned long bits = strtoul(mode, &end, 8);

    if (*end != '\0' || bits > 0777)
        return error_set(out_error, FLY_ECONFIG,
                         "%s: bad value '%.80s' of 'server.socket_mode': expected an octal number such as "
                         "0660; correct it",
                         config_origin(config, KEY_SOCKET_MODE), mode);
    if ((config_text(config, KEY_TLS_CERTIFICATE) != NULL) != (config_text(config, KEY_TLS_KEY) != NULL))
        return error_set(out_error, FLY_ECONFIG,
                         "TLS takes both 'server.tls_certificate' and 'server.tls_key'; set both, or none");
    return 0;
}

int config_load(const struct config_source *source, struct config **out_config, struct fly_error *out_error)
{
    struct config *config = calloc(1, sizeof *config);
    int code;

    if (config == NULL)
        return error_no_memory(out_error);
    code = set_defaults(config, out_error);
    if (code == 0)
        code = read_file(source, config, out_error);
    if (code == 0)
        code = rules_end(&config->rules, out_error);
    if (code == 0)
        code = set_overrides(source, config, out_error);
    if (code == 0)
        code = check_whole(config, out_error);
    if (code < 0) {
        config_free(config);
        return code;
    }
    *out_config = config;
    return 0;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (int i = 0; i < KEY_COUNT; i++) {
        value_deinit(&config->values[i]);
        free(config->texts[i]);
        free(config->origins[i]);
    }
    free(config);
}

const char *config_text(const struct config *config, enum node_key key)
{
    return config->values[key].text;
}

const struct cli_list *config_list(const struct config *config, enum node_key key)
{
    return &config->values[key].list;
}

double config_real(const struct config *config, enum node_key key)
{
    return config->values[key].real;
}

int64_t config_integer(const struct config *config, enum node_key key)
{
    return config->values[key].integer;
}

bool config_flag(const struct config *config, enum node_key key)
{
    return config->values[key].flag;
}

int config_choice(const struct config *config, enum node_key key)
{
    return config->values[key].choice;
}

const char *config_origin(const struct config *config, enum node_key key)
{
    return config->values[key].origin;
}

const struct rights_rule *config_rules(const struct config *config, size_t *out_count)
{
    *out_count = config->rules.count;
    return config->rules.rows;
}

static bool same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

void config_compare(const struct config *before, const struct config *after,
                    void (*differs)(void *state, const char *key), void *state)
{
    for (int i = 0; i < KEY_COUNT; i++)
        if (!node_settings[i].reloads && !same(before->values[i].text, after->values[i].text))
            differs(state, node_settings[i].option.key);
}
