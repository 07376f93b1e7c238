/* SPDX-License-Identifier: Apache-2.0 */
#include "train/session.h"

int fly_session_carbon(const struct fly_session *session, struct fly_carbon_report *out_report)
{
    (void)session;
    return out_report->size < sizeof *out_report ? FLY_EUSAGE : FLY_ESTATE;
}
