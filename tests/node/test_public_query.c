/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the public daemon's routes: what is read, and what clients look for in errors. */
#include <stdio.h>
#include <string.h>

#include "compat/zeus/node/public_query.h"
#include "http/target.h"
#include "test.h"

#define NEEDED (PUBLIC_BIT(PUBLIC_GPU_IDS) | PUBLIC_BIT(PUBLIC_BLOCK) | PUBLIC_BIT(PUBLIC_POWER_LIMIT_MW))

static int ask(const char *target, unsigned needed, unsigned optional, struct public_query *out_query,
               struct fly_error *out_error)
{
    static char text[1024];
    struct serve_request request = {.query_count = 0};

    snprintf(text, sizeof text, "%s", target);
    assert_int_equal(serve_target_parse(text, &request, NULL), 0);
    return public_query_read(&request, needed, optional, out_query, out_error);
}

static void test_ids(void **state)
{
    static const struct {
        const char *target;
        int count; /* -1: refused */
        uint32_t ids[4];
    } rows[] = {
        {"/x", 0, {0}},
        {"/x?gpu_ids=0", 1, {0}},
        {"/x?gpu_ids=2,0,1", 3, {0, 1, 2}},
        {"/x?gpu_ids=1,1,1", 1, {1}},
        {"/x?gpu_ids=%203%20,+0+", 2, {0, 3}},
        {"/x?gpu_ids=4294967295", 1, {UINT32_MAX}},
        {"/x?gpu_ids=4294967296", -1, {0}},
        {"/x?gpu_ids=", -1, {0}},
        {"/x?gpu_ids", -1, {0}},
        {"/x?gpu_ids=,", -1, {0}},
        {"/x?gpu_ids=0,", -1, {0}},
        {"/x?gpu_ids=,0", -1, {0}},
        {"/x?gpu_ids=0,,1", -1, {0}},
        {"/x?gpu_ids=%20", -1, {0}},
        {"/x?gpu_ids=0%201", -1, {0}},
        {"/x?gpu_ids=-1", -1, {0}},
        {"/x?gpu_ids=%2B1", -1, {0}},
        {"/x?gpu_ids=0x1", -1, {0}},
        {"/x?gpu_ids=1.0", -1, {0}},
        {"/x?gpu_ids=all", -1, {0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct public_query query;
        int code = ask(rows[i].target, 0, PUBLIC_BIT(PUBLIC_GPU_IDS), &query, NULL);

        if (code != (rows[i].count < 0 ? FLY_EUSAGE : 0))
            fail_msg("%s: %d", rows[i].target, code);
        if (code < 0)
            continue;
        assert_int_equal(query.id_count, rows[i].count);
        assert_memory_equal(query.ids, rows[i].ids, (size_t)rows[i].count * sizeof rows[i].ids[0]);
    }
}

static void test_many_ids(void **state)
{
    struct public_query query;

    (void)state;
    for (int count = PUBLIC_IDS_MAX; count <= PUBLIC_IDS_MAX + 1; count++) {
        char target[512] = "/x?gpu_ids=";

        for (int i = 0; i < count; i++)
            snprintf(target + strlen(target), sizeof target - strlen(target), "%s%d", i > 0 ? "," : "",
                     count - i);
        assert_int_equal(ask(target, PUBLIC_BIT(PUBLIC_GPU_IDS), 0, &query, NULL),
                         count == PUBLIC_IDS_MAX ? 0 : FLY_EUSAGE);
    }
    assert_int_equal(query.id_count, PUBLIC_IDS_MAX);
    assert_int_equal(query.ids[0], 1);
}

static void test_errors(void **state)
{
    static const struct {
        const char *target, *words; /* NULL: it is good */
    } rows[] = {
        {"/x?gpu_ids=0&block=true&power_limit_mw=1", NULL},
        {"/x?power_limit_mw=0&block=false&gpu_ids=0", NULL},
        {"/x?gpu_ids=0&block=true", "missing field 'power_limit_mw'"},
        {"/x?gpu_ids=0&power_limit_mw=1", "missing field 'block'"},
        {"/x?block=true&power_limit_mw=1", "missing field 'gpu_ids'"},
        {"/x", "missing field 'gpu_ids'"},
        {"/x?gpu_ids=0&block=true&power_limit_w=1", "unknown field 'power_limit_w'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=1&min_clock_mhz=1", "unknown field 'min_clock_mhz'"},
        {"/x?GPU_IDS=0&block=true&power_limit_mw=1", "unknown field 'GPU_IDS'"},
        {"/x?gpu_ids=0&block=True&power_limit_mw=1", "invalid 'block'"},
        {"/x?gpu_ids=0&block=1&power_limit_mw=1", "invalid 'block'"},
        {"/x?gpu_ids=0&block=&power_limit_mw=1", "invalid 'block'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=", "invalid 'power_limit_mw'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=1.5", "invalid 'power_limit_mw'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=+1", "invalid 'power_limit_mw'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=4294967296", "invalid 'power_limit_mw'"},
        {"/x?gpu_ids=0&block=true&power_limit_mw=000000000000000000000000000000001",
         "invalid 'power_limit_mw'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct public_query query;
        struct fly_error error = {.text = ""};
        int code = ask(rows[i].target, NEEDED, 0, &query, &error);

        if (code != (rows[i].words != NULL ? FLY_EUSAGE : 0) ||
            (rows[i].words != NULL && strstr(error.text, rows[i].words) == NULL))
            fail_msg("%s: %d %s", rows[i].target, code, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_many_ids),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
