/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, in words. */
#include "meter/selftest/selftest_finding.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const outcome_words[] = {[SELFTEST_AS_EXPECTED] = "as_expected",
                                            [SELFTEST_DIFFERS] = "differs",
                                            [SELFTEST_NOT_KNOWN] = "not_known"};
_Static_assert(sizeof outcome_words / sizeof outcome_words[0] == SELFTEST_OUTCOME_COUNT,
               "one word for every outcome");

const char *selftest_outcome_word(enum selftest_outcome outcome)
{
    return outcome_words[outcome];
}

void selftest_say(struct selftest_finding *finding, enum selftest_outcome outcome, const char *format, ...)
{
    va_list arguments;

    finding->outcome = outcome;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}
