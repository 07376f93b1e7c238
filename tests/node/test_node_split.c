/* SPDX-License-Identifier: Apache-2.0 */
/* How the energy that a GPU drew in an interval is split among who was on it. */
#include "test.h"

#include <stdlib.h>

#include "node/share/share_split.h"

enum { J = 1000000 };

static int64_t total_of(const struct share_part *parts, size_t count, const struct share_part *rest)
{
    int64_t sum_uj = rest->energy_uj;

    for (size_t i = 0; i < count; i++)
        sum_uj += parts[i].energy_uj;
    return sum_uj;
}

/* In joules; the parts as the formula in share_split.h has them. */
static const struct split_case {
    const char *name;
    double energy_j, duration_s, floor_w;
    bool open, apart;
    size_t count;
    struct share_member members[3];
    double parts_j[3], rest_j;
} splits[] = {
/* clang-format off */
#define STAYED(percent) {.least = 1, .most = 1, .use = (percent)}
#define TOGETHER(percent) {.least = 1, .most = 1, .use = (percent), .together = true}
#define CAME(part, percent) {.most = (part), .use = (percent)}
#define WENT(percent) {.most = 1, .use = (percent), .went = true}
    {"alone", 100, 1, 60, false, true, 1, {STAYED(80)}, {100}, 0},
    {"alone, use unknown, through MPS", 100, 1, 60, false, true, 1, {TOGETHER(NAN)}, {100}, 0},
    {"two by use, the floor evenly", 160, 1, 60, false, true, 2, {STAYED(75), STAYED(25)}, {30 + 100 * 75.25 / 100.5, 30 + 100 * 25.25 / 100.5}, 0},
    {"two without a floor", 160, 1, NAN, false, true, 2, {STAYED(75), STAYED(25)}, {160 * 75.25 / 100.5, 160 * 25.25 / 100.5}, 0},
    {"nobody busy", 80, 1, 60, false, true, 2, {STAYED(0), STAYED(0)}, {40, 40}, 0},
    {"less than the floor", 40, 1, 60, false, true, 2, {STAYED(90), STAYED(0)}, {20, 20}, 0},
    {"one came", 100, 1, 60, true, true, 1, {CAME(1, 50)}, {70}, 30},
    {"one was started halfway", 100, 1, 60, true, true, 1, {CAME(0.5, 50)}, {55}, 45},
    {"one came, floor unknown", 100, 1, NAN, true, true, 1, {CAME(1, 50)}, {50}, 50},
    {"one after the other", 100, 1, 60, false, true, 2, {WENT(NAN), CAME(1, NAN)}, {50, 50}, 0},
    {"two came", 100, 1, 60, true, false, 2, {CAME(1, NAN), CAME(1, NAN)}, {0, 0}, 100},
    {"use unknown", 100, 1, 60, false, false, 2, {STAYED(50), STAYED(NAN)}, {0, 0}, 100},
    {"MPS", 100, 1, 60, false, false, 3, {TOGETHER(50), TOGETHER(50), STAYED(2)}, {0, 0, 0}, 100},
    {"one joins another", 160, 1, 60, false, true, 2, {STAYED(50), CAME(1, 50)}, {90, 70}, 0},
    /* clang-format on */
};

static void test_splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(splits); i++) {
        const struct split_case *row = &splits[i];
        const struct share_interval interval = {.energy_uj = (int64_t)(row->energy_j * J),
                                                .duration_s = row->duration_s,
                                                .floor_w = row->floor_w,
                                                .sample_s = 0.2,
                                                .open = row->open,
                                                .count = row->count,
                                                .members = row->members};
        struct share_part parts[3], rest;
        bool apart = share_split(&interval, parts, &rest);

        if (apart != row->apart || total_of(parts, row->count, &rest) != interval.energy_uj)
            fail_msg("%s: apart %d, sum %lld", row->name, apart,
                     (long long)total_of(parts, row->count, &rest));
        for (size_t k = 0; k < row->count; k++) {
            if (llabs(parts[k].energy_uj - (int64_t)(row->parts_j[k] * J)) > 1)
                fail_msg("%s: member %zu has %g J, expected %g", row->name, k, (double)parts[k].energy_uj / J,
                         row->parts_j[k]);
        }
        if (llabs(rest.energy_uj - (int64_t)(row->rest_j * J)) > 1)
            fail_msg("%s: the rest has %g J, expected %g", row->name, (double)rest.energy_uj / J,
                     row->rest_j);
    }
}

/* Any numbers at all: the sum is exact, and nothing is below 0. */
static void test_split_is_exact(void **state)
{
    uint64_t random = 7;
    (void)state;

    for (int round = 0; round < 20000; round++) {
        struct share_member members[12];
        struct share_part parts[12], rest;
        struct share_interval interval = {
            .energy_uj = (int64_t)(test_uniform(&random) * pow(10, test_below(&random, 16))),
            .duration_s = test_uniform(&random) * 3,
            .floor_w = test_below(&random, 4) == 0 ? NAN : test_uniform(&random) * 500,
            .lag_s = 0.1,
            .gain = 0.05,
            .sample_s = 0.2,
            .open = test_below(&random, 2) == 0,
            .count = 1 + test_below(&random, 12),
            .members = members};

        for (size_t i = 0; i < interval.count; i++) {
            bool edge = test_below(&random, 3) == 0;

            members[i] =
                (struct share_member){.least = edge ? 0 : 1, .most = edge ? test_uniform(&random) : 1};
            members[i].use = test_below(&random, 3) == 0 ? 0 : test_uniform(&random) * 100;
        }
        assert_true(share_split(&interval, parts, &rest));
        if (total_of(parts, interval.count, &rest) != interval.energy_uj)
            fail_msg("round %d: %lld is not %lld", round, (long long)total_of(parts, interval.count, &rest),
                     (long long)interval.energy_uj);
        assert_true(rest.energy_uj >= 0 && rest.half_width_uj >= 0.0);
        for (size_t i = 0; i < interval.count; i++)
            assert_true(parts[i].energy_uj >= 0 && parts[i].half_width_uj >= 0.0 &&
                        isfinite(parts[i].half_width_uj));
    }
}

/* While the idle power is unknown, bounds hold what the parts are at any idle power. */
static void test_unknown_idle_power(void **state)
{
    static const double uses[][3] = {{90, 5, 0}, {50, 50, 50}, {100, 0, 0}, {1, 2, 97}};

    (void)state;
    for (size_t i = 0; i < COUNT(uses); i++) {
        struct share_member members[3] = {STAYED(uses[i][0]), STAYED(uses[i][1]), STAYED(uses[i][2])};
        struct share_interval interval = {.energy_uj = 350 * J,
                                          .duration_s = 1,
                                          .floor_w = NAN,
                                          .sample_s = 0.2,
                                          .count = 3,
                                          .members = members};
        struct share_part unknown[3], known[3], rest;

        assert_true(share_split(&interval, unknown, &rest));
        for (interval.floor_w = 0; interval.floor_w <= 350; interval.floor_w += 10) {
            assert_true(share_split(&interval, known, &rest));
            for (size_t k = 0; k < 3; k++)
                if (fabs((double)(known[k].energy_uj - unknown[k].energy_uj)) >
                    unknown[k].half_width_uj + 1.0)
                    fail_msg("use of %g %%, idle at %g W: %g J, not %g J to within %g J", uses[i][k],
                             interval.floor_w, (double)known[k].energy_uj / J,
                             (double)unknown[k].energy_uj / J, unknown[k].half_width_uj / J);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_splits), cmocka_unit_test(test_split_is_exact),
                                       cmocka_unit_test(test_unknown_idle_power)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
