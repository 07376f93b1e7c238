/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of the grid at the edges of what is known. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "grid/grid_account.h"
#include "grid/providers.h"
#include "model/grid_series.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

/* Half-hours from :20 on, of which many are absent, and some hours of forecasts; of one day nothing at all.
 */
static void make_gaps(struct grid_answer *answer, int64_t from_s, int64_t to_s, uint64_t *seed)
{
    const struct grid_kind kind = {.quantity = GRID_CARBON, .provider = "test"};
    int64_t lost_s = from_s + 16 * DAY_S;

    grid_series_init(&answer->actual, &kind, 10000);
    grid_series_init(&answer->published, &kind, 10000);
    for (int64_t start_s = from_s; start_s < to_s; start_s += HOUR_S / 2) {
        const struct grid_period actual = {start_s + 1200, start_s + 3000, 50 + 400 * test_uniform(seed),
                                           GRID_MEASURED, 0};
        const struct grid_period published = {start_s, start_s + HOUR_S, 50 + 400 * test_uniform(seed),
                                              GRID_FORECAST, 0};

        if (start_s >= lost_s && start_s < lost_s + DAY_S)
            continue;
        if (test_below(seed, 10) < 6)
            assert_int_equal(grid_series_add(&answer->actual, &actual, NULL), 0);
        if (test_below(seed, 10) < 4)
            assert_int_equal(grid_series_add(&answer->published, &published, NULL), 0);
    }
    assert_int_equal(grid_series_settle(&answer->actual, NULL), 0);
    assert_int_equal(grid_series_settle(&answer->published, NULL), 0);
}

/* The share of the energy that has a figure of that quality; NaN if no energy is known. */
static double share_of(const struct grid_account *account, enum grid_quality quality)
{
    return account->all_j > 0.0 ? account->energy_j[quality] / account->all_j : NAN;
}

/* The same figures come out whatever stretch of time is asked for. */
static void test_figures_do_not_depend_on_the_stretch(void **state)
{
    struct grid_answer answer = {.remark = ""};
    struct grid_filler all;
    int64_t from_s = INT64_C(1700000000) / HOUR_S * HOUR_S, to_s = from_s + 18 * DAY_S;
    uint64_t seed = 17;

    (void)state;
    make_gaps(&answer, from_s, to_s, &seed);
    assert_int_equal(grid_filler_init(&all, &answer, NAN, from_s - HOUR_S, to_s + HOUR_S, NULL), 0);
    for (int round = 0; round < 200; round++) {
        int64_t start_s = from_s + 15 * DAY_S + test_below(&seed, 3 * DAY_S - 6 * HOUR_S);
        int64_t end_s = start_s + 1 + test_below(&seed, 6 * HOUR_S);
        struct grid_filler part;

        assert_int_equal(grid_filler_init(&part, &answer, NAN, start_s, end_s, NULL), 0);
        for (int64_t at_s = start_s; at_s < end_s; at_s += 97) {
            const struct grid_period *a = grid_series_at(&all.filled, at_s);
            const struct grid_period *b = grid_series_at(&part.filled, at_s);

            assert_non_null(b);
            assert_int_equal(a == NULL ? GRID_UNKNOWN : a->quality, b->quality);
            if (b->quality != GRID_UNKNOWN)
                check_double(b->value, a->value);
        }
        grid_filler_deinit(&part);
    }
    grid_filler_deinit(&all);
    grid_answer_deinit(&answer);
}

static void read_csv(const char *text, struct grid_answer *out_answer)
{
    char path[] = "/tmp/flyball-test-account-XXXXXX";
    int file = mkstemp(path);
    struct grid_request request = {.quantity = GRID_CARBON};
    struct fly_error error;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    if (grid_read(path, &request, out_answer, &error) < 0)
        fail_msg("%s", error.text);
    unlink(path);
}

/* Nights in which clocks are set: local times with their offsets are the same as UTC. */
static void test_nights_of_23_and_25_hours(void **state)
{
    static const struct {
        const char *local, *utc;
    } nights[] = {
        {"timestamp,g_per_kwh\n2026-10-25T01:00:00+02:00,100\n2026-10-25T02:00:00+02:00,200\n"
         "2026-10-25T02:00:00+01:00,400\n2026-10-25T03:00:00+01:00,800\n",
         "timestamp,g_per_kwh\n2026-10-24T23:00Z,100\n2026-10-25T00:00Z,200\n2026-10-25T01:00Z,400\n"
         "2026-10-25T02:00Z,800\n"},
        {"timestamp,g_per_kwh\n2026-03-29T00:00:00+01:00,100\n2026-03-29T01:00:00+01:00,200\n"
         "2026-03-29T03:00:00+02:00,400\n2026-03-29T04:00:00+02:00,800\n",
         "timestamp,g_per_kwh\n2026-03-28T23:00Z,100\n2026-03-29T00:00Z,200\n2026-03-29T01:00Z,400\n"
         "2026-03-29T02:00Z,800\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(nights); i++) {
        struct grid_answer answers[2];
        struct grid_account accounts[2];

        read_csv(nights[i].local, &answers[0]);
        read_csv(nights[i].utc, &answers[1]);
        for (size_t way = 0; way < 2; way++) {
            const struct grid_series *series = &answers[way].actual;
            struct grid_account_sum sum = {0};
            struct grid_filler filler;
            int64_t from_s = series->periods[0].start_s;

            assert_int_equal(grid_filler_init(&filler, &answers[way], NAN, from_s, from_s + 4 * HOUR_S, NULL),
                             0);
            for (int64_t at_s = 0; at_s < 4 * HOUR_S; at_s += 300)
                grid_account_add(&sum, &filler, (double)(from_s + at_s), (double)(from_s + at_s + 300),
                                 3.6e6 / 12);
            accounts[way] = grid_account_read(&sum);
            grid_filler_deinit(&filler);
            grid_answer_deinit(&answers[way]);
        }
        check_close(accounts[0].amount, 1500, 1e-14);
        check_double(accounts[0].amount, accounts[1].amount);
        check_double(share_of(&accounts[0], GRID_MEASURED), 1);
    }
}

/* A slice: where, what it used, and what the account has to say. */
static void test_what_is_not_known_is_no_zero(void **state)
{
    static const struct {
        const char *what;
        double start_s, end_s, energy_j, yearly_mean;
        bool has_answer;
        double amount, energy_known_j;
        enum grid_quality quality;
        double unmeasured_s;
    } cases[] = {
        {"actual", 0, 300, 3.6e6, NAN, true, 100, 3.6e6, GRID_MEASURED, 0},
        {"no energy used", 0, 300, 0, NAN, true, 0, 0, GRID_MEASURED, 0},
        {"energy not known", 0, 300, NAN, NAN, true, NAN, 0, GRID_UNKNOWN, 300},
        {"energy below 0", 0, 300, -5, NAN, true, NAN, 0, GRID_UNKNOWN, 300},
        {"before all figures", -900, -600, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"before all figures, a mean", -900, -600, 3.6e6, 70, true, 70, 3.6e6, GRID_FALL_BACK, 0},
        {"the last value", 7200, 9000, 3.6e6, NAN, true, 100, 3.6e6, GRID_FALL_BACK, 0},
        {"months later", 1e7, 1e7 + 300, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"no source", 0, 300, 3.6e6, NAN, false, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"no source, a mean", 0, 300, 3.6e6, 250, false, 250, 3.6e6, GRID_FALL_BACK, 0},
        {"no time", 100, 100, 3.6e6, NAN, true, 100, 3.6e6, GRID_MEASURED, 0},
        {"no moment", NAN, NAN, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"no time that can be", 0, INFINITY, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"beyond all clocks", 1e300, 2e300, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
        {"beyond what was filled", 2e7, 2e7 + 1, 3.6e6, NAN, true, NAN, 3.6e6, GRID_UNKNOWN, 0},
    };
    struct grid_answer answer;

    (void)state;
    read_csv("timestamp,g_per_kwh\n1970-01-01T00:00Z,100\n1970-01-01T01:00Z,100\n", &answer);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct grid_account_sum sum = {0};
        struct grid_account account;
        struct grid_filler filler;

        assert_int_equal(grid_filler_init(&filler, cases[i].has_answer ? &answer : NULL, cases[i].yearly_mean,
                                          -HOUR_S, 10000300, NULL),
                         0);
        grid_account_add(&sum, &filler, cases[i].start_s, cases[i].end_s, cases[i].energy_j);
        account = grid_account_read(&sum);
        if (isnan(account.amount) != isnan(cases[i].amount) ||
            fabs(account.amount - cases[i].amount) > 1e-12 || account.all_j != cases[i].energy_known_j ||
            account.energy_j[cases[i].quality] != cases[i].energy_known_j ||
            account.unmeasured_s != cases[i].unmeasured_s)
            fail_msg("%s: %g g of %g J, %g J as expected, %g s unmeasured", cases[i].what, account.amount,
                     account.all_j, account.energy_j[cases[i].quality], account.unmeasured_s);
        grid_filler_deinit(&filler);
    }
    grid_answer_deinit(&answer);
}

static void test_negative_prices_are_earned(void **state)
{
    const struct grid_kind kind = {.quantity = GRID_PRICE, .currency = "EUR"};
    const struct grid_period periods[] = {{0, 300, -0.2, GRID_MEASURED, 0}, {300, 600, 0, GRID_MEASURED, 0}};
    struct grid_answer answer = {.remark = ""};
    struct grid_account_sum sum = {0};
    struct grid_filler filler;

    (void)state;
    grid_series_init(&answer.actual, &kind, 10);
    grid_series_init(&answer.published, &kind, 10);
    for (size_t i = 0; i < COUNT(periods); i++)
        assert_int_equal(grid_series_add(&answer.actual, &periods[i], NULL), 0);
    assert_int_equal(grid_series_settle(&answer.actual, NULL), 0);
    assert_int_equal(grid_filler_init(&filler, &answer, NAN, 0, 600, NULL), 0);
    assert_true(grid_kind_equal(&filler.filled.kind, &kind));
    grid_account_add(&sum, &filler, 0, 600, 3.6e6);
    check_close(grid_account_read(&sum).amount, -0.1, 1e-15);
    check_double(grid_account_read(&sum).energy_j[GRID_MEASURED], 3.6e6);
    grid_filler_deinit(&filler);
    grid_answer_deinit(&answer);
}

/* A place that has forecasts alone, as regions of Great Britain. */
static void test_forecasts_alone(void **state)
{
    const struct grid_kind kind = {.quantity = GRID_CARBON};
    const struct grid_period period = {0, 1800, 100, GRID_FORECAST, 0};
    struct grid_answer answer = {.remark = ""};
    struct grid_account_sum sum = {0};
    struct grid_account account;
    struct grid_filler filler;

    (void)state;
    grid_series_init(&answer.actual, &kind, 10);
    grid_series_init(&answer.published, &kind, 10);
    assert_int_equal(grid_series_add(&answer.published, &period, NULL), 0);
    assert_int_equal(grid_series_settle(&answer.published, NULL), 0);
    assert_int_equal(grid_filler_init(&filler, &answer, NAN, -600, 2400, NULL), 0);
    grid_account_add(&sum, &filler, -600, 2400, 3.6e6);
    account = grid_account_read(&sum);
    check_close(account.amount, 60, 1e-15);
    check_close(share_of(&account, GRID_FORECAST), 0.6, 1e-15);
    check_close(share_of(&account, GRID_UNKNOWN), 0.4, 1e-15);
    grid_filler_deinit(&filler);
    grid_answer_deinit(&answer);
}

/* A year of steps of a second: rounding does not add up. */
static void test_many_small_slices(void **state)
{
    struct grid_request request = {.quantity = GRID_CARBON};
    struct grid_answer answer;
    struct grid_account_sum sum = {0};
    struct grid_account account;
    struct grid_filler filler;

    (void)state;
    assert_int_equal(grid_read("constant:360", &request, &answer, NULL), 0);
    assert_int_equal(grid_filler_init(&filler, &answer, NAN, 1700000000, 1703000000, NULL), 0);
    for (int i = 0; i < 3000000; i++)
        grid_account_add(&sum, &filler, 1700000000.0 + i, 1700000001.0 + i, 0.1);
    account = grid_account_read(&sum);
    check_close(account.all_j, 300000, 1e-15);
    check_close(account.amount, 30, 1e-14);
    check_double(account.time_s, 3000000);
    check_double(share_of(&account, GRID_FALL_BACK), 1);
    grid_filler_deinit(&filler);
    grid_answer_deinit(&answer);
}

static void test_nothing_to_account_for(void **state)
{
    const struct grid_account_sum sum = {0};
    struct grid_account account = grid_account_read(&sum);
    struct grid_filler filler;
    struct fly_error error;

    (void)state;
    assert_true(isnan(account.amount));
    assert_true(isnan(share_of(&account, GRID_MEASURED)));
    assert_int_equal(grid_filler_init(&filler, NULL, NAN, 5, 5, &error), FLY_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_do_not_depend_on_the_stretch),
        cmocka_unit_test(test_nights_of_23_and_25_hours),
        cmocka_unit_test(test_what_is_not_known_is_no_zero),
        cmocka_unit_test(test_negative_prices_are_earned),
        cmocka_unit_test(test_forecasts_alone),
        cmocka_unit_test(test_many_small_slices),
        cmocka_unit_test(test_nothing_to_account_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
