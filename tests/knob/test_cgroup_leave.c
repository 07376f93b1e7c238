/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's way out of its job's control groups, in made-up hierarchies; cli_cgroups.py has true ones. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "knob/cgroup_leave.h"

enum { ROOT_BYTES = 64, PATH_BYTES = 256 };

static char root[ROOT_BYTES];

static void put(const char *name, const char *text)
{
    char path[PATH_BYTES];
    FILE *file;

    snprintf(path, sizeof path, "%s/%.120s", root, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The pid in a group's file; 0: none. */
static long inside(const char *group)
{
    char path[PATH_BYTES], text[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s/%.120s/cgroup.procs", root, group);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    (void)!fgets(text, sizeof text, file);
    fclose(file);
    return strtol(text, NULL, 10);
}

static void make(const char *directory)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", root, directory);
    assert_int_equal(mkdir(path, 0755), 0);
}

static const char *const groups[] = {"v2",     "v2/user",    "v2/user/job", "v2/user/job/step",
                                     "memory", "memory/job", "cpu",         "cpu/job"};

static int set_up(void **state)
{
    char name[PATH_BYTES];

    (void)state;
    snprintf(root, sizeof root, "/tmp/flyball-test-cgroup-XXXXXX");
    assert_non_null(mkdtemp(root));
    make("self");
    for (size_t i = 0; i < COUNT(groups); i++) {
        make(groups[i]);
        snprintf(name, sizeof name, "%s/cgroup.procs", groups[i]);
        put(name, "");
    }
    return 0;
}

static int tear_down(void **state)
{
    char command[PATH_BYTES];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

/* A mount of a hierarchy, of which `part` is to be seen. */
static void mount_all(const char *part)
{
    char text[4 * PATH_BYTES];

    snprintf(text, sizeof text,
             "23 1 0:21 / / rw - ext4 /dev/vda rw\n"
             "40 23 0:38 %s %s/v2 rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n"
             "41 23 0:39 / %s/memory rw - cgroup cgroup rw,memory\n"
             "42 23 0:40 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
             "a line that is none\n",
             part, root, root, root);
    put("self/mountinfo", text);
}

static void close_group(const char *group)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/%.120s/cgroup.procs", root, group);
    assert_int_equal(unlink(path), 0);
}

static void test_as_far_up_as_it_may(void **state)
{
    (void)state;
    mount_all("/");
    put("self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/user/job/step\n");
    assert_int_equal(cgroup_leave(root), 3);
    assert_int_equal(inside("v2"), getpid());
    assert_int_equal(inside("memory"), getpid());
    assert_int_equal(inside("cpu"), getpid());
    assert_int_equal(inside("v2/user"), 0);

    /* Not the top, as for a user: the first below that is open. */
    put("v2/cgroup.procs", "");
    close_group("v2");
    close_group("v2/user");
    assert_int_equal(cgroup_leave(root), 3);
    assert_int_equal(inside("v2/user/job"), getpid());
    /* Its own group is no way up. */
    close_group("v2/user/job");
    assert_int_equal(cgroup_leave(root), 2);
    assert_int_equal(inside("v2/user/job/step"), 0);
}

static void test_nowhere_to_go(void **state)
{
    static const char *const texts[] = {
        "",    "0::/\n",      "4:memory:/\n",     "0::/../elsewhere\n",      "0::", "4\n", "0:\n",
        ":\n", "4::memory\n", "7:freezer:/job\n", "0::/user/flyball-guard\n"};

    (void)state;
    mount_all("/");
    for (size_t i = 0; i < COUNT(texts); i++) {
        put("self/cgroup", texts[i]);
        assert_int_equal(cgroup_leave(root), 0);
    }
    assert_int_equal(cgroup_leave("/nowhere"), 0);
}

/* A container sees a part of the hierarchy. */
static void test_a_part(void **state)
{
    (void)state;
    mount_all("/machine/container");
    put("self/cgroup", "0::/machine/container/user/job\n");
    assert_int_equal(cgroup_leave(root), 1);
    assert_int_equal(inside("v2"), getpid());
    put("v2/cgroup.procs", "");
    put("self/cgroup", "0::/machine/container\n");
    assert_int_equal(cgroup_leave(root), 0);
    put("self/cgroup", "0::/machine/containers/user\n");
    assert_int_equal(cgroup_leave(root), 0);
    assert_int_equal(inside("v2"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_as_far_up_as_it_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nowhere_to_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_part, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
