/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_FINDING_H
#define FLYBALL_METER_SELFTEST_SELFTEST_FINDING_H

/* What a self-test found about one thing that a board claims. */
enum selftest_outcome { SELFTEST_AS_EXPECTED, SELFTEST_DIFFERS, SELFTEST_NOT_KNOWN, SELFTEST_OUTCOME_COUNT };

enum { SELFTEST_FINDINGS_MAX = 16, SELFTEST_TEXT_MAX = 400 };
struct selftest_finding {
    const char *check; /* "counter_against_integral" */
    enum selftest_outcome outcome;
    char text[SELFTEST_TEXT_MAX];
};

/* Returns "as_expected", "differs" or "not_known". */
const char *selftest_outcome_word(enum selftest_outcome outcome);

/* Fills in the outcome and its sentence. */
__attribute__((format(printf, 3, 4))) void selftest_say(struct selftest_finding *finding,
                                                        enum selftest_outcome outcome, const char *format,
                                                        ...);

#endif
