/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/policy_plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "policy/batch_policies.h"

bool policy_plugins_is_path(const char *policy)
{
    size_t length = strlen(policy);

    return strchr(policy, '/') != NULL || (length > 3 && strcmp(policy + length - 3, ".so") == 0);
}

static bool is_taken(const struct policy_plugins *plugins, const char *name)
{
    for (size_t i = 0; i < plugins->count; i++) {
        if (strcmp(plugins->list[i]->name, name) == 0)
            return true;
    }
    return batch_policy_find(name) != NULL;
}

/* Whether the file is loaded: a file that is named twice is loaded once. */
static bool is_open(const struct policy_plugins *plugins, const char *path)
{
    for (size_t i = 0; i < plugins->count; i++) {
        if (strcmp(plugins->opened[i].plugin.path, path) == 0)
            return true;
    }
    return false;
}

static int open_one(struct policy_plugins *plugins, const char *path, struct fly_error *out_error)
{
    struct plugin_batch_policy *plugin = &plugins->opened[plugins->count];
    int code;

    if (path[0] == '\0' || is_open(plugins, path))
        return 0;
    if (plugins->count == POLICY_PLUGINS_MAX)
        return error_set(out_error, FLY_ELIMIT, POLICY_PLUGINS_VARIABLE ": more than %d plug-ins; name fewer",
                         POLICY_PLUGINS_MAX);
    code = plugin_batch_policy_open(path, plugin, out_error);
    if (code < 0)
        return code;
    if (is_taken(plugins, plugin->policy.name)) {
        code = error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s' has the name '%.60s', and so has another policy; change it", path,
                         plugin->policy.name);
        plugin_batch_policy_close(plugin);
        return code;
    }
    plugins->list[plugins->count++] = &plugin->policy;
    return 0;
}

int policy_plugins_open(struct policy_plugins *out_plugins, struct fly_error *out_error)
{
    const char *at = getenv(POLICY_PLUGINS_VARIABLE);
    int code = 0;

    *out_plugins = (struct policy_plugins){.count = 0};
    while (code == 0 && at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%.*s", (int)length, at) >= (int)sizeof path)
            code = error_set(out_error, FLY_ELIMIT, POLICY_PLUGINS_VARIABLE ": '%.40s...' is too long", path);
        else
            code = open_one(out_plugins, path, out_error);
        at += length + (at[length] == ':');
    }
    if (code < 0)
        policy_plugins_close(out_plugins);
    return code;
}

void policy_plugins_close(struct policy_plugins *plugins)
{
    while (plugins->count > 0)
        plugin_batch_policy_close(&plugins->opened[--plugins->count]);
    plugins->list[0] = NULL;
}

int policy_plugins_add(const char *path, struct policy_plugins *out_plugins, const char **out_name,
                       struct fly_error *out_error)
{
    const char *before = getenv(POLICY_PLUGINS_VARIABLE);
    char *whole = realpath(path, NULL), *all = NULL;
    int code = 0;

    if (whole == NULL)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_ENOTFOUND,
                         "plug-in '%.200s' cannot be read: %s; correct its path", path, strerror(errno));
    if (strchr(whole, ':') != NULL)
        code = error_set(out_error, FLY_EUSAGE, "plug-in '%.200s' has a colon in its path; move it", whole);
    else if (asprintf(&all, "%s%s%s", whole, before != NULL && before[0] != '\0' ? ":" : "",
                      before != NULL ? before : "") < 0 ||
             setenv(POLICY_PLUGINS_VARIABLE, all, 1) < 0)
        code = error_no_memory(out_error);
    if (code == 0)
        code = policy_plugins_open(out_plugins, out_error);
    if (code == 0)
        *out_name = out_plugins->list[0]->name;
    free(all);
    free(whole);
    return code;
}
