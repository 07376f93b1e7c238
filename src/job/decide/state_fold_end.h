/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_STATE_FOLD_END_H
#define FLYBALL_JOB_DECIDE_STATE_FOLD_END_H

#include "job/decide/state_folding.h"

/* Folds the events with which a trial ends. */
int fold_ended(struct folding *folding);
int fold_closed(struct folding *folding);

#endif
