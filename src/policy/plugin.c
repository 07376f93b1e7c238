/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/plugin.h>

#include "base/sha256.h"

enum { NAME_LENGTH_MAX = 40 };

void (*plugin_before_open)(void);

#define BEGINS_WITH_HEAD(table)                                                           \
    _Static_assert(offsetof(table, abi) == offsetof(struct plugin_head, abi) &&           \
                       offsetof(table, size) == offsetof(struct plugin_head, size) &&     \
                       offsetof(table, name) == offsetof(struct plugin_head, name) &&     \
                       offsetof(table, version) == offsetof(struct plugin_head, version), \
                   "both tables begin alike")
BEGINS_WITH_HEAD(struct fly_batch_policy);
BEGINS_WITH_HEAD(struct fly_power_policy);

/* Volatile, since a signal handler reads it. */
static _Thread_local struct {
    const char *volatile path;
    const char *volatile function;
} current;

void plugin_enter(const struct plugin *plugin, const char *function)
{
    current.path = plugin->path;
    current.function = function;
}

void plugin_leave(void)
{
    current.function = NULL;
}

struct plugin_call plugin_current(void)
{
    return (struct plugin_call){current.path, current.function};
}

/* The addresses of open plug-ins; a free place has no path. */
static struct {
    _Atomic(const char *) path;
    _Atomic uintptr_t low, high;
} known[PLUGINS_KNOWN_MAX];

static void know(const struct plugin *plugin)
{
    uintptr_t low, high;

    if (!shared_object_range(&plugin->object, &low, &high))
        return;
    for (size_t i = 0; i < PLUGINS_KNOWN_MAX; i++) {
        const char *none = NULL;

        /* The place is taken first; until the plug-in is loaded it holds nothing. */
        if (!atomic_compare_exchange_strong(&known[i].path, &none, ""))
            continue;
        atomic_store(&known[i].low, low);
        atomic_store(&known[i].high, high);
        atomic_store(&known[i].path, plugin->path);
        return;
    }
}

static void forget(const struct plugin *plugin)
{
    for (size_t i = 0; i < PLUGINS_KNOWN_MAX; i++) {
        if (plugin->path == NULL || atomic_load(&known[i].path) != plugin->path)
            continue;
        atomic_store(&known[i].high, 0);
        atomic_store(&known[i].path, NULL);
    }
}

const char *plugin_at(uintptr_t address)
{
    for (size_t i = 0; i < PLUGINS_KNOWN_MAX; i++) {
        const char *path = atomic_load(&known[i].path);

        if (path != NULL && address >= atomic_load(&known[i].low) && address < atomic_load(&known[i].high))
            return path;
    }
    return NULL;
}

/* Names go into CSV and command lines unchanged. */
static bool name_fits(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+";
    size_t length = name != NULL ? strnlen(name, NAME_LENGTH_MAX + 1) : 0;

    return length >= 1 && length <= NAME_LENGTH_MAX && strchr(letters, name[0]) != NULL &&
           strspn(name, all) == length;
}

static int check_head(const struct plugin *plugin, const char *symbol, const struct plugin_head *head,
                      size_t first_size, size_t size, struct fly_error *out_error)
{
    if (head == NULL)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s' has no symbol '%s'; define that table as flyball/plugin.h shows",
                         plugin->path, symbol);
    if (head->abi != FLY_PLUGIN_ABI)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "plug-in '%.200s': '%s' has abi %u, and this program has %d; compile it again with "
                         "this version's flyball/plugin.h",
                         plugin->path, symbol, head->abi, FLY_PLUGIN_ABI);
    if (head->size < first_size || head->size > size ||
        (head->size - first_size) % sizeof(void (*)(void)) != 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "plug-in '%.200s': '%s' has size %u, and this program expects %zu; set it with "
                         "sizeof and compile it again with this version's flyball/plugin.h",
                         plugin->path, symbol, head->size, size);
    if (!name_fits(head->name))
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': bad name '%.60s' in '%s': expected 1 to %d letters, digits, '-', "
                         "'_', '.' or '+' that begin with a letter or digit",
                         plugin->path, head->name != NULL ? head->name : "", symbol, NAME_LENGTH_MAX);
    return 0;
}

static int name_content(struct plugin *plugin, struct fly_error *out_error)
{
    char text[SHA256_TEXT_MAX];
    int code = sha256_file(plugin->path, text, out_error);

    if (code < 0)
        return code;
    plugin->content = strdup(text);
    return plugin->content != NULL ? 0 : error_no_memory(out_error);
}

int plugin_open(const char *path, const char *symbol, size_t first_size, size_t size,
                struct plugin *out_plugin, const struct plugin_head **out_head, struct fly_error *out_error)
{
    struct plugin plugin = {.path = strdup(path)};
    const struct plugin_head *head = NULL;
    int code;

    if (plugin.path == NULL)
        return error_no_memory(out_error);
    if (plugin_before_open != NULL)
        plugin_before_open();
    plugin_enter(&plugin, "loading");
    code = shared_object_open(path, &plugin.object, out_error);
    plugin_leave();
    if (code == 0)
        code = name_content(&plugin, out_error);
    if (code == 0) {
        know(&plugin);
        head = shared_object_find(&plugin.object, symbol);
        /* The table's pointers may point anywhere, so reading through them may crash. */
        plugin_enter(&plugin, "its table");
        code = check_head(&plugin, symbol, head, first_size, size, out_error);
        plugin.name = code == 0 ? strdup(head->name) : NULL;
        plugin_leave();
        if (code == 0 && plugin.name == NULL)
            code = error_no_memory(out_error);
    }
    if (code < 0) {
        plugin_close(&plugin);
        return code;
    }
    *out_plugin = plugin;
    *out_head = head;
    return 0;
}

int plugin_of_table(const struct plugin_head *head, size_t first_size, size_t size, struct plugin *out_plugin,
                    struct fly_error *out_error)
{
    const char *name = head->name != NULL ? head->name : "";
    struct plugin plugin = {.path = strdup(name), .name = strdup(name)};
    int code = plugin.path != NULL && plugin.name != NULL ? 0 : error_no_memory(out_error);

    if (code == 0)
        code = check_head(&plugin, "the table", head, first_size, size, out_error);
    if (code < 0)
        plugin_close(&plugin);
    else
        *out_plugin = plugin;
    return code;
}

void plugin_close(struct plugin *plugin)
{
    if (plugin->path != NULL)
        plugin_enter(plugin, "unloading");
    shared_object_close(&plugin->object);
    plugin_leave();
    forget(plugin);
    free(plugin->name);
    free(plugin->content);
    free(plugin->path);
    *plugin = (struct plugin){.path = NULL};
}

int plugin_lacks(const struct plugin *plugin, const char *function, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "plug-in '%.200s' leaves out '%s', which is not optional; see flyball/plugin.h",
                     plugin->path, function);
}
