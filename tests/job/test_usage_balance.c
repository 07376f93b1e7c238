/* SPDX-License-Identifier: Apache-2.0 */
/* What remains of the meters' sum beside what is attributed. */
#include "test.h"

#include "job/past/usage_balance.h"

static void test_balance(void **state)
{
    static const struct usage_row rows[] = {
        {"GPU-a", "Test GPU", {.energy_j = 100, .gpu_time_s = 10}},
        {"GPU-b", "Test GPU", {.energy_j = 30, .gpu_time_s = 10}},
        {"", "Test GPU", {.energy_j = 5, .gpu_time_s = 1}},
        {"", "Other GPU", {.energy_j = 2, .gpu_time_s = 1}},
    };
    static const struct usage_meter meters[] = {{"GPU-c", "node2", "", 40, 100},
                                                {"GPU-a", "node1", "Test GPU", 160, 100}};
    static const struct {
        const char *name;
        size_t meters;
        double energy_j, gpu_time_s;
    } by_gpu[] = {{"", 0, -7, -2}, {"GPU-a", 1, 60, 90}, {"GPU-b", 0, -30, -10}, {"GPU-c", 1, 40, 100}};
    struct usage_balance balance;
    struct fly_error error;
    double sum = 137;

    (void)state;
    assert_int_equal(usage_balance_make(USAGE_GPU, rows, 4, meters, 2, &balance, &error), 0);
    assert_int_equal(balance.count, COUNT(by_gpu));
    for (size_t i = 0; i < balance.count; i++) {
        assert_string_equal(balance.remainders[i].name, by_gpu[i].name);
        assert_int_equal(balance.remainders[i].meters, by_gpu[i].meters);
        check_double(balance.remainders[i].energy_j, by_gpu[i].energy_j);
        check_double(balance.remainders[i].gpu_time_s, by_gpu[i].gpu_time_s);
        sum += balance.remainders[i].energy_j;
    }
    check_double(sum, balance.metered_j);
    check_double(balance.metered_j, 200);
    usage_balance_deinit(&balance);
    assert_int_equal(usage_balance_make(USAGE_USER, rows, 4, meters, 2, &balance, &error), 0);
    assert_int_equal(balance.count, 1);
    check_double(balance.remainders[0].energy_j, 63);
    assert_int_equal(balance.remainders[0].meters, 2);
    usage_balance_deinit(&balance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_balance)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
