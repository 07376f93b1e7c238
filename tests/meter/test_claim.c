/* SPDX-License-Identifier: Apache-2.0 */
/* Each device is counted once: by ranks at the same time, by nested wrappers, and after a kill. */
#include "meter/claim.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char place[64]; /* stands for the directory of the user's session */

static int make_place(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "/tmp/flyball-claim-XXXXXX");
    return mkdtemp(place) == NULL;
}

/* How many files are in the directory of locks; removes them and the directories. */
static int count_files(void)
{
    char path[512];
    char file[1024];
    DIR *directory;
    struct dirent *entry;
    int count = 0;

    snprintf(path, sizeof path, "%s/flyball", place);
    directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
        count++;
    }
    if (directory != NULL)
        closedir(directory);
    rmdir(path);
    return count;
}

static int remove_place(void **state)
{
    (void)state;
    count_files();
    return rmdir(place);
}

static void make_list(struct device_list *list, const char *const *uuids)
{
    memset(list, 0, sizeof *list);
    for (; uuids[list->count] != NULL; list->count++)
        snprintf(list->devices[list->count].info.uuid, DEVICE_TEXT_MAX, "%s", uuids[list->count]);
}

static const char *const two[] = {"GPU-a", "GPU-b", NULL};
static const char *const three[] = {"GPU-a", "GPU-b", "GPU-c", NULL};

/* The options of process `pid` of a job with a scheduler's name, or without. */
static struct claim_options options_of(struct identity *identity, const char *job, int pid)
{
    *identity = (struct identity){.rank = -1, .node = "n1"};
    snprintf(identity->job, sizeof identity->job, "%s", job);
    return (struct claim_options){.identity = identity,
                                  .runtime_directory = place,
                                  .fallback = "/nowhere",
                                  .uid = getuid(),
                                  .pid = pid,
                                  .start_unix_s = 1000};
}

static void test_one_of_two_counts(void **state)
{
    static struct device_list list;
    static struct claims first, second, other_job, third;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-1", 11);

    (void)state;
    make_list(&list, two);
    claims_take(&options, &list, &first);
    assert_true(first.devices[0].counted && first.devices[1].counted);
    assert_string_equal(first.fault, "");
    options.pid = 12;
    claims_take(&options, &list, &second);
    assert_false(second.devices[0].counted || second.devices[1].counted);
    assert_string_equal(second.devices[1].by, "process 11 on n1");
    options = options_of(&identity, "slurm-2", 13);
    claims_take(&options, &list, &other_job);
    assert_true(other_job.devices[0].counted);
    claims_release(&second);
    claims_release(&other_job);
    claims_release(&first);
    options = options_of(&identity, "slurm-1", 14);
    claims_take(&options, &list, &third);
    assert_true(third.devices[0].counted);
    claims_release(&third);
    assert_int_equal(count_files(), 0);
}

static bool is_there(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/flyball/%s", place, name);
    return access(path, F_OK) == 0;
}

/* A file as a run leaves it that is killed, `age_s` ago. */
static void leave_file(const char *name, const char *text, int age_s)
{
    const time_t then = time(NULL) - age_s;
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/flyball/%s", place, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(utimes(path, (struct timeval[]){{then, 0}, {then, 0}}), 0);
}

static void test_leftovers_are_swept(void **state)
{
    static const struct {
        const char *name, *text;
        int age_s;
        bool stays;
    } cases[] = {
        {"slurm-9.GPU.GPU-a.lock", "process 9 on n1", 0, false},
        {"run-7-1000.CPU.0.lock", "process 7 on n1", 100000, false},
        {"run-8-1000.DRAM.0.lock", "", 60, false},
        {"run-6-1000.GPU.GPU-b.lock", "", 0, true},                  /* somebody may be about to lock it */
        {"slurm-1.GPU.GPU-c.lock", "process 8 on n1", 100000, true}, /* of our own job */
        {"notes.lock", "mine", 100000, true},
        {"slurm-9.GPU.GPU-a", "mine", 100000, true},
    };
    static struct device_list list;
    static struct claims living, ours;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-2", 11);

    (void)state;
    make_list(&list, two);
    claims_take(&options, &list, &living);
    for (size_t i = 0; i < COUNT(cases); i++)
        leave_file(cases[i].name, cases[i].text, cases[i].age_s);
    options = options_of(&identity, "slurm-1", 12);
    claims_take(&options, &list, &ours);
    assert_true(ours.devices[0].counted && ours.devices[1].counted);
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (is_there(cases[i].name) != cases[i].stays)
            fail_msg("'%s' is there: %d", cases[i].name, is_there(cases[i].name));
    }
    assert_true(is_there("slurm-2.GPU.GPU-a.lock") && is_there("slurm-1.GPU.GPU-a.lock"));
    claims_release(&ours);
    claims_release(&living);
    assert_int_equal(count_files(), 4);
}

/* The same text for a GPU and a CPU names two devices. */
static void test_kinds_are_apart(void **state)
{
    static const char *const same[] = {"0", "0", NULL};
    static struct device_list list;
    static struct claims claims;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-1", 11);

    (void)state;
    make_list(&list, same);
    list.devices[1].info.kind = DEVICE_CPU;
    claims_take(&options, &list, &claims);
    assert_true(claims.devices[0].counted && claims.devices[1].counted);
    claims_release(&claims);
}

/* Without a scheduler the wrapper around names the job; a wrapper beside is a job of its own. */
static void test_nested(void **state)
{
    static struct device_list outer_list, inner_list;
    static struct claims outer, inner, innermost, beside;
    static char value[CLAIM_VARIABLE_MAX], deeper[CLAIM_VARIABLE_MAX];
    struct identity identity;
    struct claim_options options = options_of(&identity, "", 21);

    (void)state;
    make_list(&outer_list, two);
    make_list(&inner_list, three);
    claims_take(&options, &outer_list, &outer);
    assert_true(outer.devices[0].counted);
    options.pid = 22;
    options.inherited = claims_variable(&outer, &outer_list, value);
    claims_take(&options, &inner_list, &inner);
    assert_string_equal(inner.job, outer.job);
    assert_false(inner.devices[0].counted || inner.devices[1].counted);
    assert_true(inner.devices[2].counted);
    options.pid = 23;
    options.inherited = claims_variable(&inner, &inner_list, deeper);
    claims_take(&options, &inner_list, &innermost);
    for (int i = 0; i < 3; i++)
        assert_false(innermost.devices[i].counted);
    assert_string_equal(innermost.devices[0].by, "process 21 on n1");
    assert_string_equal(innermost.devices[2].by, "process 22 on n1");
    options.pid = 24;
    options.inherited = NULL;
    claims_take(&options, &inner_list, &beside);
    assert_true(beside.devices[0].counted);
    claims_release(&innermost);
    claims_release(&inner);
    claims_release(&outer);
    claims_release(&beside);
    assert_int_equal(count_files(), 0);
}

/* A launcher's name for the job gives way to the wrapper around it; a scheduler's does not. */
static void test_launcher_inside(void **state)
{
    static struct device_list list;
    static struct claims outer, rank;
    static char value[CLAIM_VARIABLE_MAX];
    struct identity identity;
    struct claim_options options = options_of(&identity, "", 25);

    (void)state;
    make_list(&list, two);
    claims_take(&options, &list, &outer);
    claims_variable(&outer, &list, value);
    options = options_of(&identity, "pmix-1", 26);
    options.inherited = value;
    identity.job_of_launcher = true;
    claims_take(&options, &list, &rank);
    assert_string_equal(rank.job, outer.job);
    assert_false(rank.devices[0].counted);
    claims_release(&rank);
    identity.job_of_launcher = false;
    claims_take(&options, &list, &rank);
    assert_string_equal(rank.job, "pmix-1");
    assert_true(rank.devices[0].counted);
    claims_release(&rank);
    claims_release(&outer);
}

/* What a variable is worth to a process that cannot see the locks, on this node or elsewhere, or is garbage.
 */
static void test_variable(void **state)
{
    static const struct {
        const char *inherited;
        const char *job; /* of the scheduler */
        bool counted;    /* the device GPU-a, here */
        const char *by;
    } cases[] = {
        {"j1;n1;outer;9:9;GPU.GPU-a", "", false, "outer"},
        {"j1;n1;outer;9:9;GPU.GPU-b", "", true, ""},
        {"j1;n1;outer;9:9;GPU.GPU-b,GPU.GPU-a", "j1", false, "outer"},
        {"j1;n1;outer;9:9;GPU.GPU-a", "j2", true, ""}, /* a job submitted from inside another */
        {"j1;n2;outer;9:9;GPU.GPU-a", "", true, ""},   /* on another node */
        {"j1;n2;far;9:9;GPU.GPU-a|j1;n1;near;9:9;GPU.GPU-a", "", false, "near"},
        {"j1;n1;outer;9:9;GPU.GPU-ab", "", true, ""},
        {"j1;n1;outer;9:9;CPU.GPU-a", "", true, ""},
        {"j1;n1;;9:9;GPU.GPU-a", "", false, "another process"},
        {"j1;n1;\033[31m;9:9;GPU.GPU-a", "", false, "?[31m"},
        {"", "", true, ""},
        {";;;;", "", true, ""},
        {"||||", "", true, ""},
        {"j1;n1;outer;9:9", "", true, ""},
        {"j1;n1;outer;9:9;GPU.GPU-a;more", "", true, ""},
        {"../../etc/x;n1;outer;9:9;GPU.GPU-a", "", true, ""},
        {"garbage|j1;n1;outer;9:9;GPU.GPU-a", "", false, "outer"},
    };
    static struct device_list list;
    static struct claims claims;
    struct identity identity;

    (void)state;
    make_list(&list, two);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct claim_options options = options_of(&identity, cases[i].job, 31);

        options.inherited = cases[i].inherited;
        claims_take(&options, &list, &claims);
        if (claims.devices[0].counted != cases[i].counted || strcmp(claims.devices[0].by, cases[i].by) != 0)
            fail_msg("'%s' for job '%s': counted %d by '%s', expected %d by '%s'", cases[i].inherited,
                     cases[i].job, claims.devices[0].counted, claims.devices[0].by, cases[i].counted,
                     cases[i].by);
        assert_null(strchr(claims.job, '/'));
        claims_release(&claims);
    }
}

/* A wrapper that is gone counts nothing, though its variable lives on in what it started. */
static void test_variable_of_one_that_is_gone(void **state)
{
    static struct device_list list;
    static struct claims gone, late;
    static char value[CLAIM_VARIABLE_MAX];
    struct identity identity;
    struct claim_options options = options_of(&identity, "", 41);

    (void)state;
    make_list(&list, two);
    claims_take(&options, &list, &gone);
    claims_variable(&gone, &list, value);
    claims_release(&gone);
    options.pid = 42;
    options.inherited = value;
    claims_take(&options, &list, &late);
    assert_true(late.devices[0].counted);
    claims_release(&late);
}

/* Takes claims in a process of its own, says so, and holds them until it is killed. */
static pid_t hold_in_child(const struct device_list *list, int pid)
{
    int ready[2];
    char byte;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        static struct claims claims;
        struct identity identity;
        struct claim_options options = options_of(&identity, "slurm-9", pid);

        claims_take(&options, list, &claims);
        if (write(ready[1], claims.devices[0].counted ? "y" : "n", 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    return child;
}

static void test_killed(void **state)
{
    static struct device_list list;
    static struct claims claims;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-9", 52);
    pid_t child;

    (void)state;
    make_list(&list, two);
    child = hold_in_child(&list, 51);
    claims_take(&options, &list, &claims);
    assert_false(claims.devices[0].counted);
    assert_string_equal(claims.devices[0].by, "process 51 on n1");
    claims_release(&claims);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    claims_take(&options, &list, &claims);
    assert_true(claims.devices[0].counted && claims.devices[1].counted);
    claims_release(&claims);
    assert_int_equal(count_files(), 0);
}

enum { RACERS = 16, ROUNDS = 50 };

/* Counts rounds in which this process got the device; the others release at the same moments. */
static void race(const struct device_list *list, int results, int pid)
{
    static struct claims claims;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-r", pid);
    int clashes = 0;
    char path[1024];

    for (int round = 0; round < ROUNDS; round++) {
        claims_take(&options, list, &claims);
        if (claims.devices[0].counted) {
            /* Nobody else may be in here: a second one would find the file. */
            int mark;

            snprintf(path, sizeof path, "%s/inside", place);
            mark = mkdir(path, S_IRWXU);
            clashes += mark < 0;
            usleep(100);
            if (mark == 0)
                rmdir(path);
        }
        claims_release(&claims);
    }
    if (write(results, &clashes, sizeof clashes) != sizeof clashes)
        abort();
}

static void test_race(void **state)
{
    static struct device_list list;
    int results[2];

    (void)state;
    make_list(&list, two);
    assert_int_equal(pipe(results), 0);
    for (int i = 0; i < RACERS; i++) {
        if (fork() == 0) {
            race(&list, results[1], 60 + i);
            _exit(0);
        }
    }
    for (int i = 0; i < RACERS; i++) {
        int clashes;

        assert_int_equal(read(results[0], &clashes, sizeof clashes), sizeof clashes);
        assert_int_equal(clashes, 0);
        wait(NULL);
    }
    close(results[0]);
    close(results[1]);
    assert_int_equal(count_files(), 0);
}

/* Without a directory that is ours alone everything is counted, with a word of warning. */
static void test_no_directory(void **state)
{
    static struct device_list list;
    static struct claims claims;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-1", 11);
    char path[512];

    (void)state;
    make_list(&list, two);
    options.runtime_directory = "/nowhere/at/all";
    claims_take(&options, &list, &claims);
    assert_true(claims.devices[0].counted);
    check_contains(claims.fault, "/nowhere/flyball-");
    claims_release(&claims);
    options.runtime_directory = "relative";
    options.fallback = place;
    claims_take(&options, &list, &claims);
    assert_string_equal(claims.fault, "");
    check_contains(claims.directory, place);
    claims_release(&claims);
    snprintf(path, sizeof path, "%s", claims.directory);
    assert_int_equal(chmod(path, 0777), 0); /* anyone could put locks there */
    claims_take(&options, &list, &claims);
    check_contains(claims.fault, "no directory for locks");
    claims_release(&claims);
    rmdir(path);
}

static void test_name_is_taken(void **state) /* by a directory that another user made or may write */
{
    static struct device_list list;
    static struct claims claims, others;
    struct identity identity;
    struct claim_options options = options_of(&identity, "slurm-1", 11);
    char taken[512], last[512];

    (void)state;
    make_list(&list, two);
    snprintf(taken, sizeof taken, "%s/flyball-%lld", place, (long long)options.uid);
    snprintf(last, sizeof last, "%s/claims-n1", place);
    assert_int_equal(mkdir(taken, 0755) | chmod(taken, 0777), 0);
    options.runtime_directory = NULL;
    options.fallback = place;
    options.last = last;
    claims_take(&options, &list, &claims);
    assert_string_equal(claims.directory, last);
    claims_take(&options, &list, &others);
    assert_false(others.devices[0].counted);
    claims_release(&others);
    claims_release(&claims);
    rmdir(last);
    rmdir(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_two_counts),
        cmocka_unit_test(test_leftovers_are_swept),
        cmocka_unit_test(test_kinds_are_apart),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_launcher_inside),
        cmocka_unit_test(test_variable),
        cmocka_unit_test(test_variable_of_one_that_is_gone),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_no_directory),
        cmocka_unit_test(test_name_is_taken),
    };

    return cmocka_run_group_tests_name("claim", tests, make_place, remove_place);
}
