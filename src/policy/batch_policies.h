/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_BATCH_POLICIES_H
#define FLYBALL_POLICY_BATCH_POLICIES_H

#include "policy/batch_policy.h"

/* All batch-size policies, ended by NULL. */
extern const struct batch_policy *const batch_policies[];

/* Returns the policy of that name, or NULL. */
const struct batch_policy *batch_policy_find(const char *name);

#endif
