/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/error.h"
#include "cli/frame/call_private.h"
#include "cli/frame/frame_commands.h"
#include "store/store_address.h"

static const struct cli_option options[] = {
    {.name = "origin", .type = CLI_FLAG, .help = "Also print where each value stands, and what locks it."},
};

/* The last two columns are shown only with --origin. */
static const struct meaning columns[] = {
    {"key", "key", MEANING_TEXT, 0, NULL, MEANING_FACT, "Key of the setting, as it stands in a file."},
    {"value", "value", MEANING_TEXT, 0, NULL, MEANING_FACT, "What holds now."},
    {"source", "source", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Where the value comes from: a default, a file, a variable or the command line."},
    {"origin", "origin", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "The file and line, or the variable, that the value stands in."},
    {"lock", "lock", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "The file that locks the key, so that nothing after it may set it, or 'none'."},
};
static const struct quantities quantities = {"a setting", QUANTITIES(columns)};
enum { COLUMNS_ALL = sizeof columns / sizeof columns[0], COLUMNS_SHORT = COLUMNS_ALL - 2 };

static const char *const source_names[] = {
    [CLI_UNSET] = "unset",       [CLI_DEFAULT] = "default", [CLI_FILE] = "file",
    [CLI_VARIABLE] = "variable", [CLI_OPTION] = "option",
};
_Static_assert(sizeof source_names / sizeof source_names[0] == CLI_OPTION + 1, "one name for every source");

struct row {
    const char *text; /* NULL: unset */
    const char *origin;
    enum cli_source source;
};

/* Returns the value of a key in this call: a common option on this very command line wins. */
static struct row row_of(const struct cli_call *call, const struct setting *setting)
{
    const char *name = setting->option->name;
    int index = command_option_index(call->command, name, strlen(name));

    if (index >= 0 && command_option(call->command, (size_t)index) == setting->option)
        return (struct row){cli_text(call, name), cli_origin(call, name), cli_source(call, name)};
    if (setting->text != NULL)
        return (struct row){setting->text, setting->origin, setting->source};
    if (setting->option->default_text != NULL)
        return (struct row){setting->option->default_text, "default", CLI_DEFAULT};
    return (struct row){NULL, "unset", CLI_UNSET};
}

/* True for the store's address in each of its forms, and for other addresses if they are URLs. */
static bool may_hold_secret(const char *key, const char *text)
{
    return strcmp(key, "store") == 0 || (strstr(text, "://") != NULL && strlen(text) <= STORE_ADDRESS_MAX);
}

static void add_row(struct table *table, const struct cli_call *call, const struct setting *setting)
{
    struct row row = row_of(call, setting);
    char masked[STORE_ADDRESS_MAX + 1];

    /* The file itself shows it only to its owner; this output goes into logs and fault reports. */
    if (row.text != NULL && may_hold_secret(setting->option->key, row.text)) {
        store_address_mask(row.text, masked);
        row.text = masked;
    }
    table_add_text(table, setting->option->key);
    if (row.text != NULL)
        table_add_text(table, row.text);
    else
        table_add_unavailable(table, "unset", "nothing sets the key, and it has no default");
    table_add_text(table, source_names[row.source]);
    if (!cli_flag(call, "origin"))
        return;
    table_add_text(table, row.origin);
    table_add_text(table, setting->lock != NULL ? setting->lock : "none");
}

static int config_show_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct table *table =
        table_new("flyball.config.show/1", columns, cli_flag(call, "origin") ? COLUMNS_ALL : COLUMNS_SHORT);
    int result;

    for (size_t i = 0; i < call->settings->count; i++)
        add_row(table, call, &call->settings->rows[i]);
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    return result;
}

const struct cli_command cmd_config_show = {
    .words = "config show",
    .summary = "list the configuration keys and their values",
    .paragraphs =
        {"Prints every configuration key, its value, and whether that is the default or was set by a "
         "file, a variable or an option. A key without a value is unset."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball config show", "list all keys"},
                 {"flyball config show --origin", "say also which file and line set each"},
                 {"flyball config show --format json", "list them for a program"}},
    .outputs = {&quantities},
    .run = config_show_run,
};
