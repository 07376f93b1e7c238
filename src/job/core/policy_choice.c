/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/policy_choice.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"
#include "job/core/definition.h"
#include "policy/batch_policies.h"
#include "policy/law/law_mixture.h"

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

enum { POLICIES_MAX = 16, LIST_MAX = 128 };

const struct batch_policy *job_policy_auto(const struct fly_job_definition *definition)
{
    return definition->batch_count <= LAW_BATCHES_MAX ? &batch_policy_bayes : &batch_policy_zeus;
}

const struct batch_policy *job_policy_find(const char *name, const struct batch_policy *const *plugins)
{
    for (; plugins != NULL && *plugins != NULL; plugins++) {
        if (strcmp((*plugins)->name, name) == 0)
            return *plugins;
    }
    return batch_policy_find(name);
}

int job_policy_takes(const struct batch_policy *policy, const struct fly_job_definition *definition,
                     struct fly_error *out_error)
{
    if (policy != &batch_policy_bayes || definition->batch_count <= LAW_BATCHES_MAX)
        return 0;
    return error_set(
        out_error, FLY_EUSAGE,
        "job '%.100s': the policy 'bayes' chooses among at most %d batch sizes, and the job has %zu; "
        "name fewer, or choose the policy 'zeus'",
        definition->name, LAW_BATCHES_MAX, definition->batch_count);
}

int job_policy_heeds(const struct batch_policy *policy, const struct fly_job_definition *definition,
                     struct fly_error *out_error)
{
    bool likes = definition->like != NULL && definition->like[0] != '\0';

    if (definition->window > 0 && !policy->heeds_window)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%.100s': window: the policy '%.100s' counts every result; choose the policy "
                         "'zeus', or leave it out",
                         definition->name, policy->name);
    if (likes && !policy->heeds_past)
        return error_set(
            out_error, FLY_EUSAGE,
            "job '%.100s' is to learn from the job '%.100s', and the policy '%.100s' learns from "
            "no other job; choose the policy 'bayes', or leave that out",
            definition->name, definition->like, policy->name);
    return 0;
}

/* Lists "auto, bayes, default, grid"; returns how many. */
static size_t list_names(const char *names[POLICIES_MAX], char text[LIST_MAX])
{
    size_t count = 0, length = (size_t)snprintf(text, LIST_MAX, "%s", JOB_POLICY_AUTO);

    names[count++] = JOB_POLICY_AUTO;
    for (size_t i = 0; batch_policies[i] != NULL && count < POLICIES_MAX; i++) {
        if (batch_policies[i] == &batch_policy_fixed)
            continue;
        names[count++] = batch_policies[i]->name;
        length += (size_t)snprintf(text + length, LIST_MAX - length, ", %s", batch_policies[i]->name);
    }
    return count;
}

int job_policy_check(const char *job, const char *policy, const struct batch_policy *const *plugins,
                     struct fly_error *out_error)
{
    const char *names[POLICIES_MAX];
    char text[LIST_MAX];
    size_t count = list_names(names, text);
    int nearest;

    if (strcmp(policy, JOB_POLICY_AUTO) == 0 || job_policy_find(policy, plugins) != NULL)
        return 0;
    if (policy_plugins_is_path(policy))
        return error_set(
            out_error, FLY_EUSAGE,
            "job '%.100s': policy '%.128s' is a path, and no client's path is loaded; name the plug-in's "
            "file in %s where the log is kept and its name as the policy, or choose one of %s",
            job, policy, POLICY_PLUGINS_VARIABLE, text);
    nearest = word_nearest(policy, names, count);
    return error_set(out_error, FLY_EUSAGE,
                     "job '%.100s': no policy '%.128s' is known here; choose one of %s%s%s%s", job, policy,
                     text, nearest >= 0 ? " (did you mean '" : "", nearest >= 0 ? names[nearest] : "",
                     nearest >= 0 ? "'?)" : "");
}
