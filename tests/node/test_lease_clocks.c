/* SPDX-License-Identifier: Apache-2.0 */
/* Floors and ceilings of clocks in the table of leases. */
#include "test.h"

#include <stdio.h>

#include "node/lease/lease_table.h"

static struct lease_table *new_table(enum lease_rule rule)
{
    struct lease_table *table = NULL;

    assert_int_equal(
        lease_table_new(&(struct lease_table_options){.gpu_count = 1, .rule = rule}, &table, NULL), 0);
    return table;
}

static int grant(struct lease_table *table, pid_t pid, const struct lease_wish *wish, const char *id)
{
    const struct lease_ask ask = {.holder = {.pid = pid, .start_ticks = 100}, .gpus = 1, .wish = *wish};
    struct lease lease;

    return lease_table_grant(table, &ask, (struct boot_time){1000}, id, &lease, NULL);
}

/* Of two leases on a clock the lower ceiling and the lower floor win, and no floor is above the ceiling. */
static void test_clocks(void **state)
{
    static const struct {
        int64_t first[2], second[2], expected[2]; /* floor and ceiling; 0: not asked for */
    } cases[] = {
        {{900, 1200}, {900, 0}, {900, 1200}}, {{900, 1200}, {1000, 1100}, {900, 1100}},
        {{900, 1200}, {0, 600}, {600, 600}},  {{900, 0}, {0, 1000}, {900, 1000}},
        {{1100, 0}, {0, 1000}, {1000, 1000}}, {{0, 1200}, {0, 1300}, {0, 1200}},
        {{700, 0}, {800, 0}, {700, 0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int memory = 0; memory < 2; memory++) {
            enum quantity floor = memory ? QUANTITY_MEMORY_CLOCK_FLOOR : QUANTITY_CLOCK_FLOOR;
            enum quantity ceiling = memory ? QUANTITY_MEMORY_CLOCK_CEILING : QUANTITY_CLOCK_CEILING;
            struct lease_table *table = new_table(LEASE_RULE_LOWER);
            struct lease_effect effect;

            for (int lease = 0; lease < 2; lease++) {
                const int64_t *asked = lease == 0 ? cases[i].first : cases[i].second;
                struct lease_wish wish = {.asked = 0};

                *lease_wish_number(&wish, floor) = asked[0];
                *lease_wish_number(&wish, ceiling) = asked[1];
                wish.asked |= asked[0] != 0 ? QUANTITY_BIT(floor) : 0;
                wish.asked |= asked[1] != 0 ? QUANTITY_BIT(ceiling) : 0;
                assert_int_equal(grant(table, lease + 1, &wish, lease == 0 ? "a" : "b"), 0);
            }
            lease_table_effect(table, 0, &effect);
            if (lease_wish_value(&effect.wish, floor) != cases[i].expected[0] ||
                lease_wish_value(&effect.wish, ceiling) != cases[i].expected[1])
                fail_msg("case %zu: %lld to %lld MHz", i, (long long)lease_wish_value(&effect.wish, floor),
                         (long long)lease_wish_value(&effect.wish, ceiling));
            lease_table_free(table);
        }
    }
}

static void test_clocks_that_cannot_be(void **state)
{
    static const struct {
        quantity_set asked;
        int64_t floor_mhz, ceiling_mhz;
        int code;
    } cases[] = {
        {LEASE_GPU_CLOCK, 900, 1200, 0},
        {LEASE_GPU_CLOCK, 1200, 1200, 0},
        {LEASE_GPU_CLOCK, 1201, 1200, FLY_EUSAGE},
        {LEASE_GPU_CLOCK, 0, 1200, FLY_EUSAGE},
        {QUANTITY_BIT(QUANTITY_CLOCK_FLOOR), 900, 0, 0},
        {QUANTITY_BIT(QUANTITY_CLOCK_FLOOR), -1, 0, FLY_EUSAGE},
        {QUANTITY_BIT(QUANTITY_CLOCK_CEILING), 900, 0, FLY_EUSAGE},
        {QUANTITY_BIT(QUANTITY_CLOCK_GPU), 900, 1200, FLY_EUSAGE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lease_table *table = new_table(LEASE_RULE_REFUSE);
        const struct lease_wish wish = {
            .asked = cases[i].asked, .floor_mhz = cases[i].floor_mhz, .ceiling_mhz = cases[i].ceiling_mhz};

        if (grant(table, 1, &wish, "a") != cases[i].code)
            fail_msg("case %zu is not %d", i, cases[i].code);
        lease_table_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_clocks_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
