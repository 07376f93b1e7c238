/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLD_BROUGHT_H
#define FLYBALL_JOB_DECIDE_STATE_FOLD_BROUGHT_H

#include "job/decide/state_folding.h"

/* As state_folding.h says. */
int fold_brought(struct folding *folding);

#endif
