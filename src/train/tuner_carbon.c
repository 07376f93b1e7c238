/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner.h"

int fly_tuner_carbon(const struct fly_tuner *tuner, struct fly_carbon_report *out_report)
{
    (void)tuner;
    return out_report->size < sizeof *out_report ? FLY_EUSAGE : FLY_ESTATE;
}
