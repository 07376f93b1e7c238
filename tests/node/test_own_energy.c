/* SPDX-License-Identifier: Apache-2.0 */
/* What of the packages' energy is the daemon's own. */
#include "test.h"

#include <math.h>

#include "node/own_energy.h"

static void test_between(void **state)
{
    static const struct {
        struct own_reading before, after;
        double energy_j;
    } rows[] = {
        {{1.0, 100.0, 50.0}, {2.0, 200.0, 150.0}, 1.0}, /* a hundredth of the processors' time */
        {{1.0, 100.0, 50.0}, {1.0, 200.0, 150.0}, 0.0},
        {{1.0, 100.0, 50.0}, {2.0, 200.0, 50.0}, 0.0},
        {{1.0, 100.0, 50.0}, {2.0, 200.0, 40.0}, 0.0},  /* a package has gone */
        {{1.0, 100.0, NAN}, {2.0, 200.0, 150.0}, 0.0},  /* the first reading */
        {{1.0, 100.0, 50.0}, {2.0, 200.0, NAN}, 0.0},   /* no meter any more */
        {{1.0, 100.0, 50.0}, {2.0, 100.0, 150.0}, 0.0}, /* no time has passed */
        {{2.0, 100.0, 50.0}, {1.0, 200.0, 150.0}, 0.0},
        {{0.0, 0.0, 0.0}, {9.0, 3.0, 60.0}, 60.0}, /* never more than all */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        double found_j = own_energy_between(&rows[i].before, &rows[i].after);

        if (fabs(found_j - rows[i].energy_j) > 1e-12)
            fail_msg("row %zu: %g J, expected %g", i, found_j, rows[i].energy_j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_between)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
