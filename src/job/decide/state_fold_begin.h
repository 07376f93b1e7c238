/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLD_BEGIN_H
#define FLYBALL_JOB_DECIDE_STATE_FOLD_BEGIN_H

#include "job/decide/state_folding.h"

/* Folds the events with which a trial begins. */
int fold_proposed(struct folding *folding);
int fold_attempt(struct folding *folding);
int fold_profiled(struct folding *folding);
int fold_profiled_part(struct folding *folding);

#endif
