/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is, in a made-up /proc and /var/log. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_tree.h"
#include "node/owner/owner.h"
#include "node/owner/owner_pod.h"
#include "node/owner/owner_words.h"

#define ID "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define POD "72f7f152-440c-66ac-9084-e0fc1d8a910c"

enum { PATH_BYTES = 256, TEXT_BYTES = 512 };

static struct owners *owners;

static int set_up(void **state)
{
    (void)state;
    fake_tree_make();
    assert_int_equal(owners_new(fake_tree_root(), &owners, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    owners_free(owners);
    fake_tree_remove();
    return 0;
}

static void put(int pid, const char *file, const char *text)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "proc/%d/%s", pid, file);
    fake_tree_put(path, text);
}

static void put_bytes(int pid, const char *file, const char *bytes, size_t length)
{
    char path[PATH_BYTES];
    FILE *stream;

    put(pid, file, "");
    snprintf(path, sizeof path, "%s/proc/%d/%s", fake_tree_root(), pid, file);
    stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

static void put_process(int pid, const char *name, char life, unsigned long long start, const char *cgroup)
{
    char text[TEXT_BYTES];

    snprintf(text, sizeof text,
             "%d (%s) %c 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %llu 1000 100 18446744073709551615\n",
             pid, name, life, start);
    put(pid, "stat", text);
    put(pid, "status",
        "Name:\tpython3\nUmask:\t0022\nState:\tR (running)\nUid:\t0\t1000\t1000\t1000\nGid:\t0\t0\t0\t0\n");
    put(pid, "cgroup", cgroup);
}

static struct owner look(int pid)
{
    struct owner owner;

    owners_look(owners, pid, &owner);
    return owner;
}

static void test_process(void **state)
{
    struct owner owner;

    (void)state;
    put_process(4711, "python3", 'R', 123456, "0::/system.slice/docker-" ID ".scope\n");
    owner = look(4711);
    assert_int_equal(owner.sight, OWNER_SEEN);
    assert_int_equal(owner.pid, 4711);
    assert_int_equal(owner.start_ticks, 123456);
    assert_string_equal(owner.command, "python3");
    assert_true(owner.uid_known);
    assert_int_equal(owner.uid, 0);
    assert_string_equal(owner.container_id, ID);
    assert_string_equal(owner.user, "");
    owners_name(owners, &owner);
    assert_string_equal(owner.user, "root");
    assert_string_equal(owner.training_job, "");
}

static void test_hostile_commands(void **state)
{
    static const struct {
        const char *name, *expected;
    } cases[] = {
        {") R 1 (", ") R 1 ("}, {"a\033[2Jb", "a?[2Jb"}, {"x\ny", "x?y"}, {"\xff\xfe", "??"}, {"", ""}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct owner owner;

        put_process(7, cases[i].name, 'S', 99, "0::/\n");
        owner = look(7);
        assert_int_equal(owner.sight, OWNER_SEEN);
        assert_int_equal(owner.start_ticks, 99);
        assert_string_equal(owner.command, cases[i].expected);
    }
}

/* What cannot be read is unknown, and keeps nothing else from being known. */
static void test_what_is_missing(void **state)
{
    struct owner owner;

    (void)state;
    put_process(10, "python3", 'R', 5, "0::/docker/" ID "\n");
    fake_tree_delete("proc/10/status");
    owner = look(10);
    assert_int_equal(owner.sight, OWNER_SEEN);
    assert_false(owner.uid_known);
    assert_true(owner.cgroup_known);
    fake_tree_delete("proc/10/cgroup");
    owner = look(10);
    assert_int_equal(owner.sight, OWNER_SEEN);
    assert_false(owner.cgroup_known);
    owners_name(owners, &owner);
    assert_string_equal(owner.user, "");
}

static void test_gone(void **state)
{
    struct owner owner = look(12);

    (void)state;
    assert_int_equal(owner.sight, OWNER_GONE);
    assert_int_equal(owner.start_ticks, 0);
    owners_name(owners, &owner);
    put_process(12, "python3", 'Z', 8, "0::/docker/" ID "\n");
    assert_int_equal(look(12).sight, OWNER_GONE);
    assert_int_equal(look(0).sight, OWNER_GONE);
    assert_int_equal(look(-1).sight, OWNER_GONE);
}

/* Neither pipes nor links are followed: nobody waits, and nothing outside is read. */
static void test_no_files(void **state)
{
    char path[PATH_BYTES];
    int before;
    struct owner owner;

    (void)state;
    put_process(13, "python3", 'R', 5, "0::/docker/" ID "\n");
    fake_tree_delete("proc/13/cgroup");
    snprintf(path, sizeof path, "%s/proc/13/cgroup", fake_tree_root());
    assert_int_equal(mkfifo(path, 0644), 0);
    fake_tree_put("elsewhere", "FLYBALL_JOB_NAME=secret");
    fake_tree_link("proc/13/environ", "../../elsewhere");
    before = fake_tree_open_files();
    owner = look(13);
    owners_name(owners, &owner);
    assert_int_equal(owner.sight, OWNER_SEEN);
    assert_false(owner.cgroup_known);
    assert_string_equal(owner.training_job, "");
    assert_int_equal(fake_tree_open_files(), before);
}

/* A later process of the same number says nothing about the first. */
static void test_number_used_again(void **state)
{
    static const char environ[] = "FLYBALL_JOB_NAME=other";
    struct owner owner;

    (void)state;
    put_process(14, "python3", 'R', 5, "0::/\n");
    owner = look(14);
    put_process(14, "python3", 'R', 6, "0::/\n");
    put_bytes(14, "environ", environ, sizeof environ);
    owners_name(owners, &owner);
    assert_string_equal(owner.training_job, "");
    owner = look(14);
    owners_name(owners, &owner);
    assert_string_equal(owner.training_job, "other");
}

static void test_words(void **state)
{
#define TEXT(text) text, sizeof text
    static const struct {
        const char *bytes;
        size_t length;
        const char *group_job, *training, *job, *step;
        bool claimed;
    } cases[] = {
        {TEXT("PATH=/bin\0FLYBALL_JOB_NAME=resnet50\0HOME=/root"), "", "resnet50", "", "", false},
        {TEXT("SLURM_JOB_ID=12\0SLURM_STEP_ID=3"), "", "", "12", "3", true},
        {TEXT("SLURM_STEP_ID=4294967291\0SLURM_JOB_ID=12"), "", "", "12", "batch", true},
        {TEXT("SLURM_JOB_ID=12\0SLURM_STEP_ID=3"), "77", "", "77", "", false},
        {TEXT("FLYBALL_JOB_NAME=a\0FLYBALL_JOB_NAME=b"), "", "a", "", "", false},
        {TEXT("XFLYBALL_JOB_NAME=a\0FLYBALL_JOB_NAMES=b\0FLYBALL_JOB_NAME"), "", "", "", "", false},
        {TEXT("FLYBALL_JOB_NAME=../../x\0SLURM_JOB_ID=1;rm"), "", "", "", "", false},
        {TEXT("SLURM_JOB_ID=111111111111111111111111111111"), "", "", "", "", false},
        {"FLYBALL_JOB_NAME=cut", 20, "", "", "", "", false},
        {TEXT("\0\0\0=\0FLYBALL_JOB_NAME=x"), "", "x", "", "", false},
    };
#undef TEXT

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        /* In pieces of any length. */
        for (size_t piece = 1; piece <= cases[i].length; piece += 3) {
            struct owner owner = {.pid = 1};
            struct owner_words words = {.owner = &owner};

            snprintf(owner.slurm_job, sizeof owner.slurm_job, "%s", cases[i].group_job);
            for (size_t at = 0; at < cases[i].length; at += piece)
                owner_words_take(&words, cases[i].bytes + at,
                                 cases[i].length - at < piece ? cases[i].length - at : piece);
            assert_string_equal(owner.training_job, cases[i].training);
            assert_string_equal(owner.slurm_job, cases[i].job);
            assert_string_equal(owner.slurm_step, cases[i].step);
            assert_int_equal(owner.slurm_claimed, cases[i].claimed);
        }
    }
}

static void test_long_environment(void **state)
{
    static char bytes[100000];
    static const char end[] = "FLYBALL_JOB_NAME=at-the-end";
    struct owner owner;

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    bytes[50000] = '\0';
    memcpy(bytes + sizeof bytes - sizeof end, end, sizeof end);
    bytes[sizeof bytes - sizeof end - 1] = '\0';
    put_process(15, "python3", 'R', 5, "0::/\n");
    put_bytes(15, "environ", bytes, sizeof bytes);
    owner = look(15);
    owners_name(owners, &owner);
    assert_string_equal(owner.training_job, "at-the-end");
}

static void test_users(void **state)
{
    static const struct {
        const char *text;
        bool known;
        uid_t uid;
    } cases[] = {{"Name:\tx\nUid:\t1000\t0\t0\t0\n", true, 1000},
                 {"Name:\tx\nUid:\t4294967294\t0\t0\t0\n", true, 4294967294U},
                 {"Name:\tx\nUid:\t42949672950\t0\n", false, 7},
                 {"Name:\tUid:\t5\n", false, 7},
                 {"Uid:\n", false, 7},
                 {"\nUid:\t\n", false, 7},
                 {"", false, 7}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uid_t uid = 7;

        assert_int_equal(owner_status_uid(cases[i].text, &uid), cases[i].known);
        assert_int_equal(uid, cases[i].uid);
    }
}

static void test_pod_names(void **state)
{
    static const struct {
        const char *directory, *log, *pod, *pod_namespace, *container;
    } cases[] = {
        {"team-a_train-0_" POD, "train-0_team-a_pytorch-" ID ".log", "train-0", "team-a", "pytorch"},
        {"team-a_train.v2_" POD, NULL, "train.v2", "team-a", ""},
        {"team-a_train_0_" POD, NULL, "", "", ""},
        {"team-a_train-0_" POD "x", NULL, "", "", ""},
        {"Team_train-0_" POD, NULL, "", "", ""},
        {"_train-0_" POD, NULL, "", "", ""},
        {"a\033[2J_train-0_" POD, NULL, "", "", ""},
        {".", "train-0_team-a_side-car-" ID ".log", "train-0", "team-a", "side-car"},
        {".", "train-0_team-a_pytorch-" ID ".log.1", "", "", ""},
        {".", "train-0_team-a_-" ID ".log", "", "", ""},
        {".", "train-0_team-a_PyTorch-" ID ".log", "", "", ""},
        {".", "nothing", "", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct owner_pod pod = {.uid = POD, .id = ID};

        assert_int_equal(owner_pod_directory(cases[i].directory, &pod),
                         cases[i].log == NULL ? cases[i].pod[0] != '\0' : cases[i].directory[0] != '.');
        if (cases[i].log != NULL)
            assert_int_equal(owner_pod_log(cases[i].log, &pod), cases[i].pod[0] != '\0');
        assert_string_equal(pod.pod, cases[i].pod);
        assert_string_equal(pod.pod_namespace, cases[i].pod_namespace);
        assert_string_equal(pod.container, cases[i].container);
    }
}

static const char pod_group[] = "0::/kubepods/burstable/pod" POD "/" ID "\n";

static struct owner look_and_name(int pid)
{
    struct owner owner = look(pid);

    owners_name(owners, &owner);
    return owner;
}

static void test_pods(void **state)
{
    struct owner owner;

    (void)state;
    put_process(20, "python3", 'R', 5, pod_group);
    /* Nothing is known yet; the uid stays. */
    owner = look_and_name(20);
    assert_string_equal(owner.pod_uid, POD);
    assert_string_equal(owner.pod, "");
    owners_free(owners);
    assert_int_equal(owners_new(fake_tree_root(), &owners, NULL), 0);
    /* A single container needs no link. */
    fake_tree_put("var/log/pods/team-a_train-0_" POD "/pytorch/0.log", "");
    fake_tree_put("var/log/pods/team-b_other_fd41c180-5ddf-4baa-94f8-68d01c999136/x/0.log", "");
    owner = look_and_name(20);
    assert_string_equal(owner.pod, "train-0");
    assert_string_equal(owner.pod_namespace, "team-a");
    assert_string_equal(owner.container, "pytorch");
    /* It is kept, also when the kubelet has removed it. */
    fake_tree_delete("var/log/pods/team-a_train-0_" POD "/pytorch/0.log");
    owner = look_and_name(20);
    assert_string_equal(owner.container, "pytorch");
}

static void test_pods_of_two_containers(void **state)
{
    struct owner owner;

    (void)state;
    put_process(21, "python3", 'R', 5, pod_group);
    fake_tree_put("var/log/pods/team-a_train-0_" POD "/pytorch/0.log", "");
    fake_tree_put("var/log/pods/team-a_train-0_" POD "/side-car/0.log", "");
    owner = look_and_name(21);
    assert_string_equal(owner.pod, "train-0");
    assert_string_equal(owner.container, "");
    owners_free(owners);
    assert_int_equal(owners_new(fake_tree_root(), &owners, NULL), 0);
    fake_tree_link("var/log/containers/train-0_team-a_side-car-" ID ".log", "nowhere");
    owner = look_and_name(21);
    assert_string_equal(owner.container, "side-car");
}

/* Outside the machine's pid namespace a number may be anybody's, even one that is there. */
static void test_not_visible(void **state)
{
    struct owners *here;
    struct owner owner;

    (void)state;
    assert_int_equal(owners_new(NULL, &here, NULL), 0);
    owners_look(here, getpid(), &owner);
    assert_int_equal(owner.sight, owner_sees_all() ? OWNER_SEEN : OWNER_NOT_VISIBLE);
    assert_int_equal(owner.pid, getpid());
    if (owner.sight == OWNER_NOT_VISIBLE) {
        assert_string_equal(owner.command, "");
        assert_int_equal(owner.start_ticks, 0);
    }
    owners_name(here, &owner);
    owners_free(here);
}

/* The real /proc, as a root of its own. */
static void test_this_process(void **state)
{
    struct owner owner;

    (void)state;
    fake_tree_link("proc", "/proc");
    setenv("FLYBALL_JOB_NAME", "too-late", 1); /* the environment is that of the start */
    owner = look_and_name(getpid());
    assert_int_equal(owner.sight, OWNER_SEEN);
    assert_int_equal(owner.uid, getuid());
    assert_true(owner.start_ticks > 0);
    assert_true(owner.command[0] != '\0');
    assert_true(strcmp(owner.training_job, "too-late") != 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_process),
        TEST(test_hostile_commands),
        TEST(test_what_is_missing),
        TEST(test_gone),
        TEST(test_no_files),
        TEST(test_number_used_again),
        cmocka_unit_test(test_words),
        TEST(test_long_environment),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_pod_names),
        TEST(test_pods),
        TEST(test_pods_of_two_containers),
        TEST(test_not_visible),
        TEST(test_this_process),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
