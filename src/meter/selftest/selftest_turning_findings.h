/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_TURNING_FINDINGS_H
#define FLYBALL_METER_SELFTEST_SELFTEST_TURNING_FINDINGS_H

#include "meter/selftest/selftest.h"

/* Says what the figures of the tested limits mean; returns the number of findings, at most `maximum`. */
size_t selftest_turning_findings(const struct selftest_result *result, struct selftest_finding *findings,
                                 size_t maximum);

#endif
