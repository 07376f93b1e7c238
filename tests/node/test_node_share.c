/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a GPU, whose rows add up to what was counted. */
#include "test.h"

#include <stdlib.h>

#include "node/share/share_ledger.h"

enum { ROWS = 64, J = 1000000 };

/* ---- a ledger ---- */

struct ground {
    struct ledger ledger;
    struct ledger_row rows[ROWS];
    struct ledger_look look;
    struct ledger_seen seen[256];
};

static struct ground *ground_new(size_t maximum)
{
    struct ground *made = calloc(1, sizeof *made);

    assert_non_null(made);
    ledger_init(&made->ledger, made->rows, maximum);
    made->look = (struct ledger_look){.at = {1}, .listed = true, .seen = made->seen, .utilization = NAN};
    return made;
}

static void add_seen(struct ground *ground, uint64_t process, double use)
{
    ground->seen[ground->look.count++] = (struct ledger_seen){
        .process = process, .use = use, .age_s = INFINITY, .memory_bytes = 1000 + process};
}

/* The sum of all rows, computed anew. */
static int64_t ledger_sum(const struct ledger *ledger)
{
    int64_t sum_uj = ledger->idle.energy_uj + ledger->unobserved.energy_uj + ledger->others.energy_uj;

    for (size_t i = 0; i < ledger->count; i++)
        sum_uj += ledger->rows[i].energy_uj;
    for (size_t i = 0; i < ledger->set_count; i++)
        sum_uj += ledger->sets[i].row.energy_uj;
    return sum_uj;
}

/* A look after some time, in which that much was drawn; then nobody is seen any more. */
static void look(struct ground *ground, double after_s, double energy_j)
{
    ground->look.at = mono_after_s(ground->look.at, after_s);
    ground->look.unix_ms += (int64_t)(after_s * 1e3);
    ground->look.energy_uj += (int64_t)llround(energy_j * J);
    ledger_take(&ground->ledger, &ground->look);
    assert_int_equal(ground->ledger.energy_uj, ground->look.energy_uj);
    assert_int_equal(ledger_sum(&ground->ledger), ground->look.energy_uj);
    ground->look.count = 0;
}

static double energy_of(struct ground *ground, uint64_t process)
{
    const struct ledger_row *row = ledger_find(&ground->ledger, process);

    return row == NULL ? -1.0 : (double)row->energy_uj / J;
}

static void test_life(void **state)
{
    struct ground *ground = ground_new(ROWS);
    struct ledger *ledger = &ground->ledger;
    (void)state;

    look(ground, 1, 500); /* counted before anybody looked */
    check_double((double)ledger->unobserved.energy_uj / J, 500);
    for (int i = 0; i < 5; i++)
        look(ground, 1, 60);
    check_double((double)ledger->idle.energy_uj / J, 300);
    check_double(ledger->floor_w, 60);
    add_seen(ground, 7, 90);
    look(ground, 1, 160); /* it came in the middle, as far as anybody knows: 30 J of the floor are idle */
    check_double(energy_of(ground, 7), 130);
    assert_int_equal(ledger_find(ledger, 7)->ended_unix_ms, 0);
    check_double((double)ledger_find(ledger, 7)->memory_bytes, 1007);
    add_seen(ground, 7, 90);
    look(ground, 1, 300);
    check_double(energy_of(ground, 7), 430);
    look(ground, 1, 160);
    check_double(energy_of(ground, 7), 560);
    check_double(ledger_find(ledger, 7)->time_s, 2);
    assert_int_equal(ledger_find(ledger, 7)->ended_unix_ms, ground->look.unix_ms);
    assert_true(ledger_find(ledger, 7)->half_width_uj >= 60 * J);
    /* The daemon, or the watch, missed something. */
    ground->look.unobserved_uj += 40 * J;
    look(ground, 1, 100);
    check_double((double)ledger->unobserved.energy_uj / J, 540);
    check_double((double)ledger->idle.energy_uj / J, 420);
    free(ground);
}

static void test_busy_without_a_process(void **state)
{
    struct ground *ground = ground_new(ROWS);
    (void)state;

    look(ground, 1, 0);
    ground->look.utilization = 0;
    for (int i = 0; i < 4; i++)
        look(ground, 1, 60);
    add_seen(ground, 1, 90);
    ground->look.utilization = 0.9;
    look(ground, 1, 300);
    look(ground, 1, 200); /* it has gone */
    look(ground, 1, 100); /* the driver's utilisation is of a while ago: it becomes idle */
    check_double((double)ground->ledger.unobserved.energy_uj / J, 0);
    look(ground, 1, 100);
    look(ground, 1, 100);
    check_double((double)ground->ledger.unobserved.energy_uj / J, 200);
    add_seen(ground, LEDGER_INVISIBLE, NAN);
    look(ground, 1, 100);
    check_double((double)ground->ledger.unobserved.energy_uj / J, 200 + 70);
    assert_int_equal(ground->ledger.count, 1);
    ground->look.utilization = NAN; /* not told: then the power says it */
    look(ground, 1, 60);
    for (int i = 0; i < 3; i++)
        look(ground, 1, 300);
    check_double((double)ground->ledger.unobserved.energy_uj / J, 200 + 70 + 30 + 300 + 300);
    check_double(ground->ledger.floor_w, 60);
    free(ground);
}

static void test_no_list(void **state)
{
    struct ground *ground = ground_new(ROWS);
    (void)state;

    look(ground, 1, 0);
    add_seen(ground, 1, 90);
    look(ground, 1, 100);
    ground->look.listed = false;
    ground->look.utilization = 0.5;
    look(ground, 1, 100);
    check_double((double)ground->ledger.unobserved.energy_uj / J, 100);
    ground->look.utilization = 0;
    look(ground, 1, 50);
    check_double((double)ground->ledger.idle.energy_uj / J, 50 + 50); /* half of the first interval */
    ground->look.listed = true;
    look(ground, 1, 50); /* nobody knows who was there when it began */
    check_double((double)ground->ledger.unobserved.energy_uj / J, 150);
    assert_true(ledger_find(&ground->ledger, 1)->ended_unix_ms > 0);
    free(ground);
}

static void test_shared(void **state)
{
    struct ground *ground = ground_new(ROWS);
    struct ledger *ledger = &ground->ledger;
    (void)state;

    look(ground, 1, 0);
    for (int i = 0; i < 3; i++) {
        add_seen(ground, 4, NAN);
        add_seen(ground, 3, NAN);
        look(ground, 1, 100);
    }
    assert_int_equal(ledger->set_count, 2);
    assert_int_equal(ledger->sets[1].count, 2);
    assert_int_equal(ledger->sets[1].processes[0], 3);
    check_double((double)ledger->sets[1].row.energy_uj / J, 300);
    check_double(energy_of(ground, 3), 0);
    check_double(ledger_find(ledger, 3)->shared_s, 2.5);
    assert_true(isnan(ledger_find(ledger, 3)->power_w));
    /* The server of MPS does no work of its own: one client beside it is alone. */
    for (int i = 0; i < 3; i++) {
        add_seen(ground, 3, NAN);
        add_seen(ground, 9, 5);
        ground->seen[0].together = ground->seen[1].passive = true;
        look(ground, 1, 100);
    }
    check_double((double)ledger->sets[1].row.energy_uj / J, 400); /* 4 had been there when the first began */
    check_double(energy_of(ground, 3), 200);
    check_double(energy_of(ground, 9), 0);
    ledger_fold(ledger, 3);
    assert_int_equal(ledger->set_count, 2);
    ledger_fold(ledger, 4);
    assert_int_equal(ledger->set_count, 1);
    check_double((double)ledger->sets[0].row.energy_uj / J, 400);
    check_double((double)ledger->others.energy_uj / J, 200);
    assert_int_equal(ledger_sum(ledger), ledger->energy_uj);
    free(ground);
}

/* More than there is room for: nothing is lost. */
static void test_too_many(void **state)
{
    struct ground *ground = ground_new(3);
    (void)state;

    look(ground, 1, 0);
    for (int i = 0; i < 3; i++) {
        for (uint64_t process = 1; process <= 255; process++)
            add_seen(ground, process, 10);
        look(ground, 1, 255);
    }
    assert_int_equal(ground->ledger.count, 3);
    check_close(energy_of(ground, 1), 3, 0.02);
    check_close((double)ground->ledger.others.energy_uj / J, 3 * 252, 0.02);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++)
            add_seen(ground, LEDGER_OTHERS, 10);
        look(ground, 1, 100);
    }
    free(ground);
}

/* ---- properties ---- */

static double energies(const struct ledger *ledger)
{
    double sum = 0;

    for (size_t i = 0; i < ledger->count; i++)
        sum += (double)ledger->rows[i].energy_uj * (double)(ledger->rows[i].process % 97 + 1);
    return sum;
}

static void shuffle(struct ledger_seen *seen, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = test_below(random, (uint32_t)i);
        struct ledger_seen kept = seen[i - 1];

        seen[i - 1] = seen[other];
        seen[other] = kept;
    }
}

static void check_rises(const struct ledger_row *before, const struct ledger_row *after)
{
    assert_true(after->energy_uj >= before->energy_uj && after->half_width_uj >= before->half_width_uj);
    assert_true(after->time_s >= before->time_s && after->shared_s >= before->shared_s);
}

/* A random look: who, with which use, in which order. */
static void make_look(struct ground *ground, uint64_t *random)
{
    uint32_t count = test_below(random, 8);

    ground->look.listed = test_below(random, 20) > 0;
    ground->look.utilization = test_below(random, 3) == 0 ? NAN : test_uniform(random);
    ground->look.unobserved_uj += test_below(random, 10) == 0 ? test_below(random, 3 * J) : 0;
    ground->look.gain = 0.05;
    for (uint32_t i = 0; i < count; i++) {
        add_seen(ground, test_below(random, 12),
                 test_below(random, 5) == 0 ? NAN : (double)test_below(random, 101));
        ground->seen[i].together = test_below(random, 8) == 0;
        ground->seen[i].passive = test_below(random, 8) == 0;
        ground->seen[i].age_s = test_uniform(random) * 2;
    }
}

static void test_properties(void **state)
{
    struct ground *one = ground_new(8), *other = ground_new(8), *before = ground_new(8);
    uint64_t random = 11;
    (void)state;

    for (int round = 0; round < 5000; round++) {
        double after_s = test_uniform(&random), energy_j = test_uniform(&random) * 400;

        make_look(one, &random);
        *before = *one;
        other->look = one->look;
        memcpy(other->seen, one->seen, sizeof one->seen);
        other->look.seen = other->seen;
        other->look.at = one->look.at;
        shuffle(other->seen, other->look.count, &random);
        look(one, after_s, energy_j);
        look(other, after_s, energy_j);
        /* The order in which the driver lists processes makes no difference. */
        check_double(energies(&one->ledger), energies(&other->ledger));
        assert_int_equal(one->ledger.idle.energy_uj, other->ledger.idle.energy_uj);
        check_rises(&before->ledger.idle, &one->ledger.idle);
        check_rises(&before->ledger.unobserved, &one->ledger.unobserved);
        check_rises(&before->ledger.others, &one->ledger.others);
        for (size_t i = 0; i < before->ledger.count; i++)
            check_rises(&before->rows[i], &one->rows[i]);
        if (test_below(&random, 50) == 0) {
            uint64_t process = 1 + test_below(&random, 11);

            ledger_fold(&one->ledger, process);
            ledger_fold(&other->ledger, process);
            assert_int_equal(ledger_sum(&one->ledger), one->ledger.energy_uj);
        }
    }
    free(before);
    free(other);
    free(one);
}

/* A ledger that goes on from what another one had, at any moment, has the same sum. */
static void test_resume(void **state)
{
    struct ground *one = ground_new(8), *after = ground_new(8);
    uint64_t random = 5;
    int64_t before_uj;
    (void)state;

    for (int round = 0; round < 200; round++) {
        make_look(one, &random);
        look(one, test_uniform(&random), test_uniform(&random) * 400);
    }
    for (size_t i = 0; i < one->ledger.count; i++)
        ledger_resume_process(&after->ledger, &one->rows[i]);
    for (size_t i = 0; i < one->ledger.set_count; i++)
        ledger_resume_set(&after->ledger, &one->ledger.sets[i]);
    ledger_resume_row(&after->ledger, &after->ledger.idle, &one->ledger.idle);
    ledger_resume_row(&after->ledger, &after->ledger.others, &one->ledger.others);
    ledger_resume_row(&after->ledger, &after->ledger.unobserved, &one->ledger.unobserved);
    assert_int_equal(after->ledger.energy_uj, one->ledger.energy_uj);
    assert_int_equal(ledger_sum(&after->ledger), ledger_sum(&one->ledger));
    before_uj = after->ledger.unobserved.energy_uj;
    after->look.energy_uj = one->look.energy_uj;
    look(after, 1, 100); /* drawn while no daemon was there */
    assert_int_equal(after->ledger.unobserved.energy_uj - before_uj, 100 * J);
    free(after);
    free(one);
}

/* ---- against a truth ---- */

enum { PROCESSES = 20, TICKS_OF_A_LOOK = 50 };
static const double tick_s = 0.01, campaign_s = 600, idle_w = 60;

struct truth {
    double from_s, until_s, use, energy_j;
    bool with_others;
};

/* Between looks, the truth goes on in small steps: the floor evenly, the rest by use. */
static double step_truth(struct truth *truths, double now_s)
{
    double use = 0, busy = 0;
    size_t there = 0;

    for (int i = 0; i < PROCESSES; i++) {
        if (now_s < truths[i].from_s || now_s >= truths[i].until_s)
            continue;
        there++;
        use += truths[i].use;
    }
    busy = use > 100 ? 1 : use / 100;
    for (int i = 0; i < PROCESSES; i++) {
        if (now_s < truths[i].from_s || now_s >= truths[i].until_s)
            continue;
        truths[i].energy_j += (idle_w / (double)there + 340 * busy * truths[i].use / use) * tick_s;
        truths[i].with_others = truths[i].with_others || there > 1;
    }
    return (idle_w + 340 * busy) * tick_s;
}

static void see_truth(struct ground *ground, const struct truth *truths, double now_s)
{
    for (int i = 0; i < PROCESSES; i++) {
        if (now_s < truths[i].from_s || now_s >= truths[i].until_s)
            continue;
        add_seen(ground, (uint64_t)i + 1, floor(truths[i].use));
        ground->seen[ground->look.count - 1].age_s = now_s - truths[i].from_s + 0.005;
    }
}

static void check_truth(struct ground *ground, const struct truth *truth, int i, double most)
{
    const struct ledger_row *row = ledger_find(&ground->ledger, (uint64_t)i + 1);
    double energy_j, half_j;

    assert_non_null(row);
    energy_j = (double)row->energy_uj / J;
    half_j = ledger_half_width_uj(row) / J;
    if (fabs(energy_j - truth->energy_j) > half_j)
        fail_msg("process %d: %g J +- %g, but it drew %g", i, energy_j, half_j, truth->energy_j);
    if (half_j > most * energy_j)
        fail_msg("process %d: half width %g of %g J is more than %g", i, half_j, energy_j, most);
}

static void run_campaign(uint64_t seed, bool alone)
{
    struct ground *ground = ground_new(ROWS);
    struct truth truths[PROCESSES] = {{0}};
    double energy_j = 0;

    for (int i = 0; i < PROCESSES; i++) {
        truths[i].from_s = 5 + (alone ? (double)i * 29 : test_uniform(&seed) * 500);
        truths[i].until_s = truths[i].from_s + (alone ? 20 : 30 + test_uniform(&seed) * 90);
        truths[i].use = 20 + test_uniform(&seed) * 75;
    }
    ground->look.lag_s = 0.15;
    ground->look.gain = 0.05;
    look(ground, tick_s, 0);
    for (int tick = 0; tick < (int)(campaign_s / tick_s); tick++) {
        energy_j += step_truth(truths, tick * tick_s);
        if (tick % TICKS_OF_A_LOOK != TICKS_OF_A_LOOK - 1)
            continue;
        see_truth(ground, truths, tick * tick_s);
        look(ground, TICKS_OF_A_LOOK * tick_s, energy_j);
        energy_j = 0;
    }
    for (int i = 0; i < PROCESSES; i++)
        check_truth(ground, &truths[i], i, truths[i].with_others ? 0.25 : 0.10);
    assert_true(ground->ledger.unobserved.energy_uj == 0);
    free(ground);
}

static void test_campaigns(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_campaign(seed, true);
        run_campaign(seed, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_life),     cmocka_unit_test(test_busy_without_a_process),
        cmocka_unit_test(test_no_list),  cmocka_unit_test(test_shared),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_properties),
        cmocka_unit_test(test_resume),   cmocka_unit_test(test_campaigns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
