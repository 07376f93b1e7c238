/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all batch-size policies. */
#include "policy/batch_policies.h"

#include <string.h>

const struct batch_policy *const batch_policies[] = {
    &batch_policy_bayes,
    &batch_policy_default,
    &batch_policy_fixed,
    &batch_policy_grid,
    &batch_policy_zeus,
    &batch_policy_zeus_server,
    NULL,
};

const struct batch_policy *batch_policy_find(const char *name)
{
    for (const struct batch_policy *const *policy = batch_policies; *policy != NULL; policy++) {
        if (strcmp((*policy)->name, name) == 0)
            return *policy;
    }
    return NULL;
}
