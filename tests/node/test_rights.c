/* SPDX-License-Identifier: Apache-2.0 */
/* Who may read and control, and between which limits. */
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "node/lease/rights.h"

enum { R = RIGHTS_READ, C = RIGHTS_CONTROL, O = RIGHTS_OVERRULE };

static const struct rights_gpu gpu = {.uuid = "GPU-8f3a",
                                      .pci = "00000000:07:00.0",
                                      .index = 1,
                                      .minor = 4,
                                      .lowest_mw = 100000,
                                      .highest_mw = 400000};
static const gid_t groups[] = {20, 44};
static const int has_it[] = {0, 4}, has_another[] = {3};

static const struct rights_peer root = {.local = true, .same_namespaces = true},
                                root_inside = {.local = true},
                                user = {.local = true,
                                        .same_namespaces = true,
                                        .uid = 1000,
                                        .gids = groups,
                                        .gid_count = 2},
                                user_inside = {.local = true, .uid = 1000, .gids = groups, .gid_count = 2},
                                with_gpu = {.local = true, .uid = 1000, .minors = has_it, .minor_count = 2},
                                with_other = {.local = true, .minors = has_another, .minor_count = 1},
                                remote = {.same_namespaces = true},
                                remote_with_gpu = {.minors = has_it, .minor_count = 2},
                                reader = {.has_token = true, .token = "dash", .token_scopes = R},
                                controller = {.has_token = true, .token = "ci", .token_scopes = R | C};

static void test_without_rules(void **state)
{
    static const struct {
        const char *what;
        const struct rights_peer *peer;
        bool read, control, overrule;
    } cases[] = {
        {"root", &root, true, true, true},
        {"root of a container", &root_inside, true, false, false},
        {"a user", &user, true, false, false},
        {"a user with the GPU", &with_gpu, true, true, false},
        {"root of a container with another GPU", &with_other, true, false, false},
        {"over TCP", &remote, false, false, false},
        {"over TCP a device file", &remote_with_gpu, false, false, false},
        {"over TCP a token to read", &reader, true, false, false},
        {"over TCP a token to control", &controller, true, true, false},
    };
    struct node_rights rights = {.proof = true};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rights_decision decision;

        rights_decide(&rights, cases[i].peer, &gpu, &decision);
        if (decision.may_read != cases[i].read || decision.may_control != cases[i].control ||
            decision.may_overrule != cases[i].overrule)
            fail_msg("%s: read %d, control %d, overrule %d, '%s'", cases[i].what, decision.may_read,
                     decision.may_control, decision.may_overrule, decision.why);
        assert_int_equal(decision.code, cases[i].control ? 0 : FLY_EPERM);
        assert_int_equal(decision.why[0] != '\0', !cases[i].control);
    }
}

static void test_switches(void **state)
{
    struct node_rights rights = {.proof = false, .closed = true, .open = true};
    struct rights_gpu unknown = gpu;
    struct rights_decision decision;

    (void)state;
    rights_decide(&rights, &with_gpu, &gpu, &decision);
    assert_false(decision.may_control || decision.may_read);
    rights_decide(&rights, &remote, &gpu, &decision);
    assert_true(decision.may_read && !decision.may_control);
    rights.proof = true;
    rights_decide(&rights, &with_gpu, &gpu, &decision);
    assert_true(decision.may_read && decision.may_control);
    unknown.minor = -1;
    rights_decide(&rights, &with_gpu, &unknown, &decision);
    assert_false(decision.may_control);
    rights.readonly = true;
    rights.readonly_path = "/x/readonly";
    rights_decide(&rights, &root, &gpu, &decision);
    assert_true(decision.may_read && !decision.may_control && !decision.may_overrule);
    check_contains(decision.why, "/x/readonly");
    rights.readonly = false;
    rights.contained = true;
    rights_decide(&rights, &controller, &gpu, &decision);
    assert_false(decision.may_control);
    check_contains(decision.why, "does not see");
}

static void test_rules(void **state)
{
    static const struct {
        struct rights_rule rule;
        const struct rights_peer *peer;
        bool read, control, overrule;
    } cases[] = {
        {{RIGHTS_USER, 1000, "", "*", C, {0, 0}, {0, 0}}, &user, true, true, false},
        {{RIGHTS_USER, 1000, "", "*", C, {0, 0}, {0, 0}}, &user_inside, false, false, false},
        {{RIGHTS_USER, 1000, "", "*", R, {0, 0}, {0, 0}}, &user, true, false, false},
        {{RIGHTS_USER, 1001, "", "*", C, {0, 0}, {0, 0}}, &user, false, false, false},
        {{RIGHTS_USER, 0, "", "*", C, {0, 0}, {0, 0}}, &root_inside, false, false, false},
        {{RIGHTS_USER, 0, "", "*", C, {0, 0}, {0, 0}}, &remote, false, false, false},
        {{RIGHTS_USER, 1000, "", "0", C, {0, 0}, {0, 0}}, &user, false, false, false},
        {{RIGHTS_USER, 1000, "", "1", C | O, {0, 0}, {0, 0}}, &user, true, true, true},
        {{RIGHTS_USER, 1000, "", "gpu-8F3A", C, {0, 0}, {0, 0}}, &user, true, true, false},
        {{RIGHTS_USER, 1000, "", "0000:07:00.0", C, {0, 0}, {0, 0}}, &user, true, true, false},
        {{RIGHTS_USER, 1000, "", "0001:07:00.0", C, {0, 0}, {0, 0}}, &user, false, false, false},
        {{RIGHTS_USER, 1000, "", "", C, {0, 0}, {0, 0}}, &user, false, false, false},
        {{RIGHTS_GROUP, 44, "", "*", C, {0, 0}, {0, 0}}, &user, true, true, false},
        {{RIGHTS_GROUP, 45, "", "*", C, {0, 0}, {0, 0}}, &user, false, false, false},
        {{RIGHTS_GROUP, 44, "", "*", C, {0, 0}, {0, 0}}, &user_inside, false, false, false},
        {{RIGHTS_ANYONE, 0, "", "*", R | C, {0, 0}, {0, 0}}, &user, true, false, false},
        {{RIGHTS_ANYONE, 0, "", "*", R | C, {0, 0}, {0, 0}}, &remote, false, false, false},
        {{RIGHTS_TOKEN, 0, "*", "*", C | O, {0, 0}, {0, 0}}, &reader, true, false, false},
        {{RIGHTS_TOKEN, 0, "ci", "*", O, {0, 0}, {0, 0}}, &controller, true, true, true},
        {{RIGHTS_TOKEN, 0, "dash", "*", O, {0, 0}, {0, 0}}, &controller, true, true, false},
        {{RIGHTS_TOKEN, 0, "*", "*", C, {0, 0}, {0, 0}}, &user, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct node_rights rights = {.rules = &cases[i].rule, .rule_count = 1, .closed = true};
        struct rights_decision decision;

        rights_decide(&rights, cases[i].peer, &gpu, &decision);
        if (decision.may_read != cases[i].read || decision.may_control != cases[i].control ||
            decision.may_overrule != cases[i].overrule)
            fail_msg("rule %zu: read %d, control %d, overrule %d, '%s'", i, decision.may_read,
                     decision.may_control, decision.may_overrule, decision.why);
    }
}

static void test_bounds(void **state)
{
    static const struct rights_rule rules[] = {
        {RIGHTS_ANYONE, 0, "", "*", 0, {150, 0}, {0, 0.9}},
        {RIGHTS_USER, 1000, "", "*", C, {0, 0.5}, {350, 0.8}},
        {RIGHTS_USER, 1001, "", "*", C, {390, 0}, {100, 0}},
        {RIGHTS_ANYONE, 0, "", "3", 0, {399, 0}, {1, 0}},
    };
    struct node_rights rights = {.rules = rules, .rule_count = COUNT(rules)};
    struct rights_gpu unknown = gpu;
    struct rights_decision decision;
    struct lease_bounds bounds;

    (void)state;
    rights_decide(&rights, &user, &gpu, &decision);
    assert_int_equal(decision.bounds.floor_mw, 200000);
    assert_int_equal(decision.bounds.ceiling_mw, 320000);
    rights_decide(&rights, &root, &gpu, &decision);
    assert_int_equal(decision.bounds.floor_mw, 150000);
    assert_int_equal(decision.bounds.ceiling_mw, 360000);
    rights_bounds(&rights, &gpu, &bounds);
    assert_int_equal(bounds.floor_mw, 150000);
    assert_int_equal(bounds.ceiling_mw, 360000);
    unknown.highest_mw = 0;
    rights_bounds(&rights, &unknown, &bounds);
    assert_int_equal(bounds.floor_mw, 150000);
    assert_int_equal(bounds.ceiling_mw, 0);
}

static void test_readonly_file(void **state)
{
    char path[64];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "/tmp/flyball-test-rights-%d", (int)getpid());
    assert_false(rights_is_readonly(path));
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_true(rights_is_readonly(path));
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_rules), cmocka_unit_test(test_switches),
        cmocka_unit_test(test_rules),         cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_readonly_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
