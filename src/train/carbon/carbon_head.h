/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_HEAD_H
#define FLYBALL_TRAIN_CARBON_CARBON_HEAD_H

#include "train/carbon/carbon_governor.h"

/*
 * Makes the head of the account from the options, with defaults filled in. Returns FLY_EUSAGE for options out
 * of range.
 */
int carbon_governor_head(const struct carbon_governor_options *options, struct ledger_head *out_head,
                         struct fly_error *out_error);

#endif
