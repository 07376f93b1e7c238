/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_TEXT_H
#define FLYBALL_TRAIN_ACCOUNT_CARBON_LEDGER_TEXT_H

#include "base/buffer.h"
#include "train/account/carbon_ledger.h"

/*
 * Writes the lines of an account of energy (carbon_ledger.h), each with its newline:
 *
 *     {"flyball_carbon":1,"run":"night","job":"","host":"n17",...}
 *     {"slice":{"start_s":1764000000,"end_s":1764000300,"gpu_j":90000,"host_j":null,...}}
 *     {"profile":[[300,280.5,0.31],[250,241,0.33]]}
 *
 * Numbers read back as the same double; unknown ones are null. Returns FLY_EUSAGE for what an account cannot
 * hold: a length that is not above 0, energy below 0.
 */
enum { LEDGER_LINE_MAX = 1 << 16 };

int ledger_write_head(const struct ledger_head *head, struct buffer *out, struct fly_error *out_error);
int ledger_write_slice(const struct energy_slice *slice, struct buffer *out, struct fly_error *out_error);
int ledger_write_profile(const struct fly_power_point *points, size_t count, struct buffer *out,
                         struct fly_error *out_error);

#endif
