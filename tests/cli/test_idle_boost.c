/* SPDX-License-Identifier: Apache-2.0 */
/* Which drivers let a program run without the idle boost. */
#include "test.h"

#include "cli/measure/run_result.h"

static void test_versions(void **state)
{
    static const struct {
        const char *version;
        enum idle_boost_driver driver;
    } cases[] = {
        {"580.105", IDLE_BOOST_KNOWN},      {"580.105.08", IDLE_BOOST_KNOWN},
        {"580.126.09", IDLE_BOOST_KNOWN},   {"581.15", IDLE_BOOST_KNOWN},
        {"590.44.01", IDLE_BOOST_KNOWN},    {"580.104.99", IDLE_BOOST_TOO_OLD},
        {"580.95.05", IDLE_BOOST_TOO_OLD},  {"550.54.14", IDLE_BOOST_TOO_OLD},
        {"470.256.02", IDLE_BOOST_TOO_OLD}, {"", IDLE_BOOST_UNKNOWN},
        {"580", IDLE_BOOST_UNKNOWN},        {"580.", IDLE_BOOST_UNKNOWN},
        {"five", IDLE_BOOST_UNKNOWN},       {"580.105beta", IDLE_BOOST_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (idle_boost_of_version(cases[i].version) != cases[i].driver)
            fail_msg("'%s': %d", cases[i].version, idle_boost_of_version(cases[i].version));
    }
}

/* Only NVIDIA's driver knows it, and of those the list's own version counts. */
static void test_lists(void **state)
{
    static const struct device_backend nvml = {.name = "nvml"}, amd = {.name = "amdsmi"},
                                       rapl = {.name = "rapl"};
    static struct device_list list;
    struct idle_boost boost;

    (void)state;
    idle_boost_judge(&list, &boost);
    assert_int_equal(boost.driver, IDLE_BOOST_NO_GPU);
    list.count = 3;
    list.devices[0] = (struct device){.backend = &amd, .info = {.kind = DEVICE_GPU, .driver = "999.1"}};
    list.devices[1] = (struct device){.backend = &nvml, .info = {.kind = DEVICE_GPU, .driver = "570.86.10"}};
    list.devices[2] = (struct device){.backend = &rapl, .info = {.kind = DEVICE_CPU}};
    idle_boost_judge(&list, &boost);
    assert_int_equal(boost.driver, IDLE_BOOST_TOO_OLD);
    assert_string_equal(boost.version, "570.86.10");
    check_contains(idle_boost_text(boost.driver), "older than 580.105");
    list.devices[1].info.emulated = true;
    idle_boost_judge(&list, &boost);
    assert_int_equal(boost.driver, IDLE_BOOST_EMULATED);
    list.count = 1;
    idle_boost_judge(&list, &boost);
    assert_int_equal(boost.driver, IDLE_BOOST_NO_GPU);
    check_contains(idle_boost_text(IDLE_BOOST_KNOWN), "was not measured");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
