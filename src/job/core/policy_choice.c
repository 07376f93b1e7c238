/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/policy_choice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"
#include "job/core/definition.h"
#include "job/core/policy_plugins.h"
#include "policy/batch_policies.h"
#include "policy/law/law_mixture.h"

enum { POLICIES_MAX = 16, LIST_MAX = 128 };

const struct batch_policy *job_policy_auto(const struct job_definition *definition)
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

int job_policy_takes(const struct batch_policy *policy, const struct job_definition *definition,
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

int job_policy_heeds(const struct batch_policy *policy, const struct job_definition *definition,
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
