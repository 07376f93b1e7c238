/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies a live job may have. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "job/job.h"
#include "job/state.h"

enum { POLICIES_MAX = 16, LIST_MAX = 128 };

const struct batch_policy *job_policy_find(const char *name, const struct batch_policy *const *plugins)
{
    for (; plugins != NULL && *plugins != NULL; plugins++) {
        if (strcmp((*plugins)->name, name) == 0)
            return *plugins;
    }
    return batch_policy_find(name);
}

/* A name with a slash, or one that ends in ".so", is a path, as for 'flyball sim job'. */
static bool is_path(const char *name)
{
    size_t length = strlen(name);

    return strchr(name, '/') != NULL || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

/* "default, grid, zeus"; their number. */
static size_t list_names(const char *names[POLICIES_MAX], char text[LIST_MAX])
{
    size_t count = 0, length = 0;

    for (size_t i = 0; batch_policies[i] != NULL && count < POLICIES_MAX; i++) {
        if (batch_policies[i] == &batch_policy_fixed)
            continue;
        names[count++] = batch_policies[i]->name;
        length += (size_t)snprintf(text + length, LIST_MAX - length, "%s%s", count > 1 ? ", " : "",
                                   batch_policies[i]->name);
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

    if (job_policy_find(policy, plugins) != NULL)
        return 0;
    if (is_path(policy))
        return error_set(out_error, FLY_EUSAGE,
                         "job '%.100s': policy '%.128s' is a path, and live jobs load no plug-in; try it "
                         "with 'flyball sim "
                         "job', and choose one of %s here",
                         job, policy, text);
    nearest = word_nearest(policy, names, count);
    return error_set(out_error, FLY_EUSAGE,
                     "job '%.100s': no policy '%.128s' is known here; choose one of %s%s%s%s", job, policy,
                     text, nearest >= 0 ? " (did you mean '" : "", nearest >= 0 ? names[nearest] : "",
                     nearest >= 0 ? "'?)" : "");
}
