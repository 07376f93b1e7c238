/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases: each rule by hand, and what always holds by random operations. */
#include "test.h"

#include <stdio.h>

#include "node/lease/lease_table.h"

enum { LIMIT = QUANTITY_BIT(QUANTITY_POWER_LIMIT), CLOCK = QUANTITY_BIT(QUANTITY_CLOCK_CEILING) };
enum { LEVEL = QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL), GPUS = 4, ROUNDS = 400, STEPS = 200 };

static const struct boot_time never = {0};

static struct lease_table *new_table(enum lease_rule rule)
{
    struct lease_table *table = NULL;

    assert_int_equal(
        lease_table_new(&(struct lease_table_options){.gpu_count = GPUS, .rule = rule}, &table, NULL), 0);
    return table;
}

static struct lease_ask ask_for(pid_t pid, uint64_t gpus, int64_t limit_mw)
{
    return (struct lease_ask){.holder = {.pid = pid, .start_ticks = 100, .uid = 1000},
                              .gpus = gpus,
                              .wish = {.asked = LIMIT, .limit_mw = limit_mw}};
}

static int grant(struct lease_table *table, const struct lease_ask *ask, const char *id)
{
    struct lease lease;

    return lease_table_grant(table, ask, (struct boot_time){1000}, id, &lease, NULL);
}

static int64_t limit_of(const struct lease_table *table, size_t gpu)
{
    struct lease_effect effect;

    lease_table_effect(table, gpu, &effect);
    return (effect.wish.asked & LIMIT) != 0 ? effect.wish.limit_mw : 0;
}

static bool has_connection(const struct lease *lease, const void *connection)
{
    return lease->ask.holder.connection == *(const uint64_t *)connection;
}

static bool has_process(const struct lease *lease, const void *state)
{
    const struct lease_holder *holder = state;

    return lease->ask.holder.pid == holder->pid && lease->ask.holder.start_ticks == holder->start_ticks;
}

static bool has_run_out(const struct lease *lease, const void *now)
{
    return lease->ask.expiry.ns != 0 && lease->ask.expiry.ns <= ((const struct boot_time *)now)->ns;
}

static bool has_gpu(const struct lease *lease, const void *gpu)
{
    return (lease->ask.gpus >> *(const size_t *)gpu & 1) != 0;
}

static size_t end_connection(struct lease_table *table, uint64_t connection, struct lease *out_ended,
                             size_t maximum)
{
    return connection == 0 ? 0 : lease_table_end_if(table, has_connection, &connection, out_ended, maximum);
}

static size_t end_process(struct lease_table *table, pid_t pid, uint64_t start_ticks, struct lease *out_ended,
                          size_t maximum)
{
    const struct lease_holder holder = {.pid = pid, .start_ticks = start_ticks};

    return pid == 0 ? 0 : lease_table_end_if(table, has_process, &holder, out_ended, maximum);
}

static size_t end_late(struct lease_table *table, struct boot_time now, struct lease *out_ended,
                       size_t maximum)
{
    return lease_table_end_if(table, has_run_out, &now, out_ended, maximum);
}

static size_t end_gpu(struct lease_table *table, size_t gpu, struct lease *out_ended, size_t maximum)
{
    return gpu >= LEASE_GPUS_MAX ? 0 : lease_table_end_if(table, has_gpu, &gpu, out_ended, maximum);
}

static void test_later_is_refused(void **state)
{
    struct lease_table *table = new_table(LEASE_RULE_REFUSE);
    struct lease_ask first = ask_for(1, 3, 200000), second = ask_for(2, 6, 150000);
    struct lease lease;
    struct fly_error error;

    (void)state;
    assert_int_equal(grant(table, &first, "a"), 0);
    assert_int_equal(lease_table_grant(table, &second, never, "b", &lease, &error), FLY_ECONFLICT);
    check_contains(error.text, "GPU 1 is leased already by process 1 of user 1000");
    assert_int_equal(limit_of(table, 1), 200000);
    assert_int_equal(limit_of(table, 2), 0);
    second.gpus = 4;
    assert_int_equal(grant(table, &second, "b"), 0);
    assert_int_equal(lease_table_end(table, "a", &lease, NULL), 0);
    assert_string_equal(lease.id, "a");
    assert_int_equal(limit_of(table, 0), 0);
    assert_int_equal(lease_table_end(table, "a", &lease, NULL), FLY_ENOTFOUND);
    lease_table_free(table);
}

static void test_lower_wins(void **state)
{
    struct lease_table *table = new_table(LEASE_RULE_LOWER);
    struct lease_ask high = ask_for(1, 1, 300000), low = ask_for(2, 1, 200000), other = ask_for(3, 1, 250000);
    struct lease_effect effect;
    struct lease lease;

    (void)state;
    high.wish.asked |= LEVEL;
    high.wish.level = DEVICE_LEVEL_LOW;
    other.wish.asked |= LEVEL | CLOCK;
    other.wish.level = DEVICE_LEVEL_HIGH;
    other.wish.ceiling_mhz = 1200;
    assert_int_equal(grant(table, &high, "a"), 0);
    assert_int_equal(grant(table, &low, "b"), 0);
    assert_int_equal(limit_of(table, 0), 200000);
    assert_int_equal(grant(table, &other, "c"), FLY_ECONFLICT);
    other.wish.level = DEVICE_LEVEL_LOW;
    assert_int_equal(grant(table, &other, "c"), 0);
    assert_int_equal(lease_table_end(table, "b", &lease, NULL), 0);
    lease_table_effect(table, 0, &effect);
    assert_int_equal(effect.leases, 2);
    assert_int_equal(effect.wish.limit_mw, 250000);
    assert_int_equal(effect.wish.ceiling_mhz, 1200);
    assert_int_equal(effect.wish.level, DEVICE_LEVEL_LOW);
    other.wish.level = DEVICE_LEVEL_HIGH;
    assert_int_equal(lease_table_change(table, "c", &other.wish, never, &lease, NULL), FLY_ECONFLICT);
    lease_table_free(table);
}

static void test_bounds(void **state)
{
    static const struct {
        struct lease_bounds own, gpu;
        int64_t asked_mw, expected_mw;
    } cases[] = {
        {{0, 0}, {0, 0}, 200000, 200000},           {{0, 0}, {150000, 250000}, 100000, 150000},
        {{0, 0}, {150000, 250000}, 300000, 250000}, {{180000, 0}, {150000, 0}, 100000, 180000},
        {{0, 220000}, {0, 250000}, 300000, 220000}, {{0, 300000}, {0, 250000}, 400000, 250000},
        {{300000, 0}, {0, 250000}, 100000, 250000}, {{300000, 200000}, {0, 0}, 100000, 200000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lease_table *table = new_table(LEASE_RULE_REFUSE);
        struct lease_ask ask = ask_for(1, 1, cases[i].asked_mw);

        ask.bounds = cases[i].own;
        assert_int_equal(grant(table, &ask, "a"), 0);
        lease_table_bound(table, 0, &cases[i].gpu);
        assert_int_equal(limit_of(table, 0), cases[i].expected_mw);
        lease_table_free(table);
    }
}

static void test_ends(void **state)
{
    struct lease_table *table = new_table(LEASE_RULE_LOWER);
    struct lease_ask ask = ask_for(1, 1, 200000);
    struct lease ended[4], lease;

    (void)state;
    ask.holder.connection = 7;
    ask.expiry.ns = 5000;
    assert_int_equal(grant(table, &ask, "a"), 0);
    ask.holder.pid = 2;
    assert_int_equal(grant(table, &ask, "b"), 0);
    ask.holder.pid = 0;
    ask.holder.connection = 0;
    ask.expiry = never;
    assert_int_equal(grant(table, &ask, "c"), 0);
    assert_int_equal(end_connection(table, 0, ended, 4), 0);
    assert_int_equal(end_process(table, 0, 100, ended, 4), 0);
    assert_int_equal(end_process(table, 2, 101, ended, 4), 0);
    assert_int_equal(end_process(table, 2, 100, ended, 4), 1);
    assert_string_equal(ended[0].id, "b");
    assert_int_equal(end_late(table, (struct boot_time){4999}, ended, 4), 0);
    assert_int_equal(
        lease_table_renew(table, "a", (struct boot_time){9000}, (struct boot_time){4999}, &lease, NULL), 0);
    assert_int_equal(end_late(table, (struct boot_time){5000}, ended, 4), 0);
    assert_int_equal(
        lease_table_renew(table, "a", (struct boot_time){99000}, (struct boot_time){9000}, &lease, NULL),
        FLY_ENOTFOUND);
    assert_int_equal(end_late(table, (struct boot_time){9000}, ended, 4), 1);
    assert_int_equal(end_gpu(table, 1, ended, 4), 0);
    assert_int_equal(end_gpu(table, 0, ended, 4), 1);
    assert_string_equal(ended[0].id, "c");
    assert_int_equal(lease_table_list(table, NULL, 0), 0);
    lease_table_free(table);
}

static void test_refusals(void **state)
{
    struct lease_table *table = NULL;
    struct lease lease;
    struct lease_ask ask = ask_for(1, 1, 200000);

    (void)state;
    assert_int_equal(lease_table_new(&(struct lease_table_options){.gpu_count = 65}, &table, NULL),
                     FLY_ELIMIT);
    assert_int_equal(lease_table_new(
                         &(struct lease_table_options){
                             .gpu_count = GPUS, .maximum = 3, .per_user = 2, .rule = LEASE_RULE_LOWER},
                         &table, NULL),
                     0);
    ask.gpus = 0;
    assert_int_equal(grant(table, &ask, "a"), FLY_EUSAGE);
    ask.gpus = 1 << GPUS;
    assert_int_equal(grant(table, &ask, "a"), FLY_EUSAGE);
    ask.gpus = 1;
    ask.wish.limit_mw = 0;
    assert_int_equal(grant(table, &ask, "a"), FLY_EUSAGE);
    ask.wish = (struct lease_wish){.asked = 0};
    assert_int_equal(grant(table, &ask, "a"), FLY_EUSAGE);
    ask.wish = (struct lease_wish){.asked = QUANTITY_BIT(QUANTITY_ENERGY)};
    assert_int_equal(grant(table, &ask, "a"), FLY_EUSAGE);
    ask.wish = (struct lease_wish){.asked = CLOCK, .ceiling_mhz = 900};
    ask.expiry.ns = 999;
    assert_int_equal(grant(table, &ask, "a"), FLY_ESTATE);
    ask.expiry.ns = 0;
    assert_int_equal(grant(table, &ask, ""), FLY_ESTATE);
    assert_int_equal(grant(table, &ask, "a"), 0);
    assert_int_equal(grant(table, &ask, "a"), FLY_ESTATE);
    assert_int_equal(grant(table, &ask, "b"), 0);
    assert_int_equal(grant(table, &ask, "c"), FLY_ELIMIT);
    ask.holder.uid = 1001;
    assert_int_equal(grant(table, &ask, "c"), 0);
    ask.holder.uid = 1002;
    assert_int_equal(grant(table, &ask, "d"), FLY_ELIMIT);
    ask.wish.ceiling_mhz = -1;
    assert_int_equal(lease_table_change(table, "a", &ask.wish, never, &lease, NULL), FLY_EUSAGE);
    assert_int_equal(lease_table_find(table, "a", &lease, NULL), 0);
    assert_int_equal(lease.ask.wish.ceiling_mhz, 900);
    lease_table_free(table);
}

static void test_words(void **state)
{
    struct lease_holder holder = {.uid = LEASE_NOBODY, .token = "ci\x1b[2J"}, same = holder;
    char text[LEASE_HOLDER_TEXT_MAX];

    (void)state;
    assert_string_equal(lease_holder_text(&holder, text), "a client with the token 'ci?[2J'");
    assert_true(lease_holder_is(&holder, &same));
    same.connection = 3;
    assert_false(lease_holder_is(&holder, &same));
}

/* A second table in a plain form, for what the first must always come to. */
struct shadow {
    bool lives;
    char id[16];
    struct lease_ask ask;
};

struct world {
    struct lease_table *table;
    enum lease_rule rule;
    struct lease_bounds bounds[GPUS];
    struct shadow leases[STEPS];
    size_t made;
    struct boot_time now;
    uint64_t random;
};

static int64_t between(uint64_t *random, int64_t least, int64_t most)
{
    return least + test_below(random, (uint32_t)(most - least + 1));
}

static struct lease_wish some_wish(uint64_t *random)
{
    struct lease_wish wish = {.asked = LIMIT, .limit_mw = between(random, 1, 500) * 1000};

    if (test_below(random, 3) == 0)
        wish.asked |= CLOCK;
    if (test_below(random, 4) == 0)
        wish.asked |= LEVEL;
    wish.ceiling_mhz = between(random, 200, 2000);
    wish.level = between(random, 0, 2);
    return wish;
}

static void try_grant(struct world *world)
{
    struct shadow *next = &world->leases[world->made++];
    struct lease lease;

    *next = (struct shadow){.ask = {.gpus = 1 + test_below(&world->random, (1 << GPUS) - 1)}};
    next->ask.holder = (struct lease_holder){.pid = (pid_t)between(&world->random, 0, 4),
                                             .start_ticks = test_below(&world->random, 2),
                                             .connection = test_below(&world->random, 4),
                                             .uid = 1000 + test_below(&world->random, 3)};
    next->ask.wish = some_wish(&world->random);
    next->ask.bounds.floor_mw = between(&world->random, 0, 2) * 100000;
    next->ask.bounds.ceiling_mw = between(&world->random, 0, 3) * 120000;
    if (test_below(&world->random, 2) == 0)
        next->ask.expiry.ns = world->now.ns + between(&world->random, 1, 50);
    snprintf(next->id, sizeof next->id, "id%zu", world->made);
    next->lives = lease_table_grant(world->table, &next->ask, world->now, next->id, &lease, NULL) == 0;
}

static struct shadow *some_lease(struct world *world)
{
    return &world->leases[test_below(&world->random, (uint32_t)world->made)];
}

static void try_change(struct world *world)
{
    struct shadow *some = some_lease(world);
    struct lease_wish wish = some_wish(&world->random);
    struct lease lease;
    int code = lease_table_change(world->table, some->id, &wish, world->now, &lease, NULL);

    assert_true(some->lives || code == FLY_ENOTFOUND);
    if (code == 0)
        some->ask.wish = wish;
}

static void try_renew(struct world *world)
{
    struct shadow *some = some_lease(world);
    struct boot_time expiry = {world->now.ns + between(&world->random, 1, 50)};
    struct lease lease;
    int code = lease_table_renew(world->table, some->id, expiry, world->now, &lease, NULL);

    assert_true(some->lives || code == FLY_ENOTFOUND);
    if (code == 0)
        some->ask.expiry = expiry;
}

static void end_some(struct world *world, int by)
{
    struct shadow *some = some_lease(world);
    struct lease_holder holder = some->ask.holder;
    struct lease ended[STEPS];
    size_t count = 0;

    if (by == 0)
        count = lease_table_end(world->table, some->id, ended, NULL) == 0;
    else if (by == 1)
        count = end_connection(world->table, holder.connection, ended, STEPS);
    else if (by == 2)
        count = end_process(world->table, holder.pid, holder.start_ticks, ended, STEPS);
    else if (by == 3)
        count = end_late(world->table, world->now, ended, STEPS);
    else
        lease_table_bound(world->table, 0, &world->bounds[0]);
    for (size_t i = 0; i < world->made; i++) {
        struct shadow *each = &world->leases[i];
        const struct lease_holder *theirs = &each->ask.holder;
        bool is_over = by == 0   ? each == some
                       : by == 1 ? holder.connection != 0 && theirs->connection == holder.connection
                       : by == 2 ? holder.pid != 0 && theirs->pid == holder.pid &&
                                       theirs->start_ticks == holder.start_ticks
                       : by == 3 ? each->ask.expiry.ns != 0 && each->ask.expiry.ns <= world->now.ns
                                 : false;

        if (each->lives && is_over) {
            each->lives = false;
            assert_true(count-- > 0);
        }
    }
    assert_int_equal(count, 0);
}

/* Nothing leased after its end; within the bounds; the lower wins, in whatever order they came. */
static void check_gpu(const struct world *world, size_t gpu)
{
    struct lease_effect effect;
    struct lease_wish least = {.limit_mw = INT64_MAX, .ceiling_mhz = INT64_MAX};
    size_t count = 0;

    lease_table_effect(world->table, gpu, &effect);
    for (size_t i = world->made; i > 0; i--) {
        const struct lease_ask *ask = &world->leases[i - 1].ask;
        int64_t limit_mw = lease_bounds_clip(&ask->bounds, ask->wish.limit_mw);

        if (!world->leases[i - 1].lives || (ask->gpus >> gpu & 1) == 0)
            continue;
        count++;
        least.asked |= ask->wish.asked;
        least.limit_mw = limit_mw < least.limit_mw ? limit_mw : least.limit_mw;
        if ((ask->wish.asked & CLOCK) != 0 && ask->wish.ceiling_mhz < least.ceiling_mhz)
            least.ceiling_mhz = ask->wish.ceiling_mhz;
        if ((ask->wish.asked & LEVEL) != 0)
            assert_int_equal(effect.wish.level, ask->wish.level);
    }
    assert_int_equal(effect.leases, count);
    assert_int_equal(effect.wish.asked, least.asked);
    assert_true(count <= 1 || world->rule == LEASE_RULE_LOWER);
    if (count == 0)
        return;
    assert_int_equal(effect.wish.limit_mw, lease_bounds_clip(&world->bounds[gpu], least.limit_mw));
    assert_true(effect.wish.limit_mw >= world->bounds[gpu].floor_mw);
    assert_true(world->bounds[gpu].ceiling_mw == 0 || effect.wish.limit_mw <= world->bounds[gpu].ceiling_mw);
    if ((least.asked & CLOCK) != 0)
        assert_int_equal(effect.wish.ceiling_mhz, least.ceiling_mhz);
}

static void test_random_operations(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        static struct world world;

        world = (struct world){.random = round, .rule = (enum lease_rule)(round % LEASE_RULE_COUNT)};
        world.now.ns = 1;
        world.table = new_table(world.rule);
        for (size_t gpu = 0; gpu < GPUS; gpu++) {
            world.bounds[gpu].floor_mw = between(&world.random, 0, 2) * 80000;
            if (gpu % 2 == 0)
                world.bounds[gpu].ceiling_mw = 200000 + between(&world.random, 0, 2) * 50000;
            lease_table_bound(world.table, gpu, &world.bounds[gpu]);
        }
        try_grant(&world);
        while (world.made < STEPS) {
            world.now.ns += test_below(&world.random, 3);
            switch (test_below(&world.random, 8)) {
            case 0:
                try_change(&world);
                break;
            case 1:
                try_renew(&world);
                break;
            case 2:
            case 3:
                end_some(&world, (int)test_below(&world.random, 5));
                break;
            default:
                try_grant(&world);
            }
            for (size_t gpu = 0; gpu < GPUS; gpu++)
                check_gpu(&world, gpu);
        }
        lease_table_free(world.table);
    }
}

/* The same leases in another order come to the same, where the lower wins. */
static void test_order_does_not_matter(void **state)
{
    enum { LEASES = 6 };

    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct lease_table *forth = new_table(LEASE_RULE_LOWER), *back = new_table(LEASE_RULE_LOWER);
        struct lease_ask asks[LEASES];
        uint64_t random = seed;

        for (int i = 0; i < LEASES; i++) {
            asks[i] = ask_for(i + 1, 1 + test_below(&random, 15), between(&random, 50, 400) * 1000);
            asks[i].bounds.floor_mw = between(&random, 0, 1) * 100000;
        }
        for (int i = 0; i < LEASES; i++) {
            char id[2][8];

            snprintf(id[0], sizeof id[0], "%d", i);
            snprintf(id[1], sizeof id[1], "%d", LEASES - 1 - i);
            assert_int_equal(grant(forth, &asks[i], id[0]), 0);
            assert_int_equal(grant(back, &asks[LEASES - 1 - i], id[1]), 0);
        }
        for (size_t gpu = 0; gpu < GPUS; gpu++)
            assert_int_equal(limit_of(forth, gpu), limit_of(back, gpu));
        lease_table_free(forth);
        lease_table_free(back);
    }
}

/* Whose lease is whose: root of a container has the uid of the machine's root, and none of its leases. */
static void test_own(void **state)
{
    static const struct {
        struct lease_holder one, other;
        bool may;
    } cases[] = {
        {{.uid = 7, .pid = 1}, {.uid = 7}, true},
        {{.uid = 7}, {.uid = 8}, false},
        {{.uid = 7, .token = "a"}, {.uid = 7}, false},
        {{.uid = LEASE_NOBODY, .token = "a"}, {.uid = LEASE_NOBODY, .token = "a"}, true},
        {{.uid = LEASE_NOBODY}, {.uid = LEASE_NOBODY}, false},
        {{.uid = 0}, {.uid = 0, .elsewhere = 40}, false},
        {{.uid = 0, .elsewhere = 40}, {.uid = 0}, false},
        {{.uid = 0, .elsewhere = 40}, {.uid = 0, .elsewhere = 41}, false},
        {{.uid = 0, .elsewhere = 40}, {.uid = 0, .elsewhere = 40}, true},
        {{.uid = 0, .elsewhere = -1}, {.uid = 0, .elsewhere = -1}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (lease_holder_may(&cases[i].one, &cases[i].other) != cases[i].may)
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_later_is_refused),
        cmocka_unit_test(test_lower_wins),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_order_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
