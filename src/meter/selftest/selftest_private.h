/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_PRIVATE_H
#define FLYBALL_METER_SELFTEST_SELFTEST_PRIVATE_H

#include "meter/selftest/selftest.h"

/* Fills in the outcome and its sentence. */
__attribute__((format(printf, 3, 4))) void selftest_say(struct selftest_finding *finding,
                                                        enum selftest_outcome outcome, const char *format,
                                                        ...);

/* Of limits that were turned; at most `maximum`, returns how many. */
size_t selftest_turning_findings(const struct selftest_result *result, struct selftest_finding *findings,
                                 size_t maximum);

#endif
