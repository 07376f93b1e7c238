/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_TURNING_FINDINGS_H
#define FLYBALL_METER_SELFTEST_SELFTEST_TURNING_FINDINGS_H

#include "meter/selftest/selftest.h"

/* Of limits that were turned; at most `maximum`, returns how many. */
size_t selftest_turning_findings(const struct selftest_result *result, struct selftest_finding *findings,
                                 size_t maximum);

#endif
