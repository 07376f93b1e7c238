/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the interval of a saving covers the truth, of jobs that stand on standard input:
 *
 *     J <runs> <true saving>
 *     <kind, as enum saving_kind> <delivered, 0 or 1> <amount> <step>
 *     ...
 *
 * Prints how many jobs there were, of how many a saving was stated, and how many of these it covered.
 * scripts/soak feeds it with what the simulator decided over recorded runs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "job/past/saving_estimate.h"

enum { RUNS_MAX = 100000 };

static const double slack = 1e-9;

static void fail(const char *what)
{
    fprintf(stderr, "saving_reader: %s\n", what);
    exit(1);
}

/* The next number of the input. */
static double next(void)
{
    char word[64], *end;
    double value;

    if (scanf("%63s", word) != 1)
        fail("the input ends within a job");
    value = strtod(word, &end);
    if (*end != '\0')
        fail("expected a number");
    return value;
}

int main(void)
{
    static struct saving_sample samples[RUNS_MAX];
    unsigned jobs = 0, stated = 0, covered = 0;
    char begin[2];

    while (scanf(" %1[J]", begin) == 1) {
        size_t count = (size_t)next();
        double truth = next();
        enum saving_doubt doubt;
        struct fly_job_range saving;

        if (count > RUNS_MAX)
            fail("too many runs");
        for (size_t i = 0; i < count; i++) {
            samples[i].kind = (enum saving_kind)next();
            samples[i].delivered = next() != 0.0;
            samples[i].amount = next();
            samples[i].step = next();
        }
        saving = saving_estimate(samples, count, &doubt);
        jobs++;
        stated += doubt == SAVING_STATED;
        covered += doubt == SAVING_STATED && saving.low <= truth + slack && truth <= saving.high + slack;
    }
    printf("%u %u %u\n", jobs, stated, covered);
    return 0;
}
