/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/user_directory.h"

static void put(const char *name, const char *value)
{
    if (value == NULL)
        unsetenv(name);
    else
        setenv(name, value, 1);
}

static void test_places(void **state)
{
    static const struct {
        enum user_directory kind;
        const char *base, *home, *path;
    } cases[] = {
        {USER_STATE, NULL, "/home/a", "/home/a/.local/state/flyball/spool"},
        {USER_STATE, "/var/s", "/home/a", "/var/s/flyball/spool"},
        {USER_STATE, "relative", "/home/a", "/home/a/.local/state/flyball/spool"},
        {USER_STATE, "", "/home/a", "/home/a/.local/state/flyball/spool"},
        {USER_STATE, "/var/s", NULL, "/var/s/flyball/spool"},
        {USER_CACHE, NULL, "/home/a", "/home/a/.cache/flyball/spool"},
        {USER_CACHE, "/var/c", NULL, "/var/c/flyball/spool"},
    };
    struct fly_error error;
    char path[64];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        put(cases[i].kind == USER_STATE ? "XDG_STATE_HOME" : "XDG_CACHE_HOME", cases[i].base);
        put("HOME", cases[i].home);
        assert_int_equal(user_directory_find(cases[i].kind, "spool", "a test", path, sizeof path, &error), 0);
        assert_string_equal(path, cases[i].path);
    }
    put("XDG_STATE_HOME", "/a/directory/whose/name/is/longer/than/the/room/that/there/is/for/it");
    assert_int_equal(user_directory_find(USER_STATE, "spool", "a test", path, sizeof path, &error),
                     FLY_ELIMIT);
    check_contains(error.text, "XDG_STATE_HOME");
    put("XDG_STATE_HOME", NULL);
    put("HOME", "not absolute"); /* the system knows better, where it knows this user at all */
    if (user_directory_find(USER_STATE, "spool", "a test", path, sizeof path, &error) == 0)
        assert_int_equal(path[0], '/');
    else
        check_contains(error.text, "no home directory for a test; set HOME or XDG_STATE_HOME");
}

static void test_making(void **state)
{
    char top[] = "/tmp/flyball-directory-XXXXXX", path[64], below[80];
    struct stat status;

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/a/b", top);
    assert_int_equal(user_directory_make_above(path, 0700), 0);
    assert_int_equal(stat(path, &status), -1);
    assert_int_equal(user_directory_make(path), 0);
    assert_int_equal(user_directory_make(path), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    snprintf(below, sizeof below, "%s/file", path);
    close(open(below, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(user_directory_make(below), ENOTDIR);
    snprintf(below, sizeof below, "%s/file/c", path);
    assert_int_equal(user_directory_make(below), ENOTDIR);
    snprintf(below, sizeof below, "%s/file", path);
    unlink(below);
    rmdir(path);
    snprintf(path, sizeof path, "%s/a", top);
    rmdir(path);
    rmdir(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_making),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
