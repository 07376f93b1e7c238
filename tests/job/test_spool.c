/* SPDX-License-Identifier: Apache-2.0 */
/* What the spool and the post promise of a program that is killed and of a disk whose syncs take long or
 * fail. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/thread_group.h"
#include "fake_jobs.h"
#include "session_scene.h"
#include "train/post/post_private.h"

enum { TEXT_MAX = 1 << 16 };

/* ---- a disk that this test makes slow or broken ---- */

static _Atomic int syncs;           /* of files, that have begun */
static _Atomic int names;           /* syncs of directories */
static _Atomic int failing;         /* with this error */
static _Atomic bool held;           /* they do not return */
static const double soon_s = 120.0; /* no machine is so slow */

/* The library's names of parameters are its own.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    syncs++;
    while (held)
        usleep(1000);
    if (failing != 0) {
        errno = failing;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}

__attribute__((visibility("default"))) int fsync(int file)
{
    names++;
    return (int)syscall(SYS_fsync, file);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static int heal(void **state)
{
    held = false;
    failing = syncs = names = 0;
    return forget(state);
}

/* ---- what is in the only file ---- */

static void read_only_file(char out_text[TEXT_MAX])
{
    DIR *directory = opendir(spool);
    const struct dirent *entry;
    ssize_t length = -1;

    assert_int_equal(spool_files(".calls"), 1);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        int file =
            entry->d_name[0] != '.' ? openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC) : -1;

        if (file < 0)
            continue;
        length = read(file, out_text, TEXT_MAX - 1);
        close(file);
    }
    closedir(directory);
    assert_true(length >= 0);
    out_text[length] = '\0';
}

static const char *head = "{\"flyball_calls\":1,\"store\":\"store\"}\n";

static void check_file(const char *lines)
{
    static char text[TEXT_MAX];

    read_only_file(text);
    assert_int_equal(strncmp(text, head, strlen(head)), 0);
    assert_string_equal(text + strlen(head), lines);
}

static void begin_spool(struct spool *place)
{
    spool_init(place, spool, "store");
}

static void add(struct spool *place, const char *line)
{
    struct fly_error error;

    if (spool_add_lines(place, line, strlen(line), &error) < 0)
        fail_msg("%s", error.text);
}

/* ---- the spool ---- */

/* Lines are there without any sync. */
static void test_written_at_once(void **state)
{
    struct spool place;

    (void)state;
    begin_spool(&place);
    add(&place, "{\"a\":1}\n");
    check_file("{\"a\":1}\n");
    add(&place, "{\"b\":2}\n");
    check_file("{\"a\":1}\n{\"b\":2}\n");
    assert_int_equal(syncs + names, 0);
    spool_end(&place, SPOOL_LEFT);
}

/* A file that is too full for a line has it not at all; a new one is not left without its line. */
static void test_no_room(void **state)
{
    const struct rlimit none = {.rlim_cur = strlen(head) + 10, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    struct spool place;
    struct fly_error error = {.text = ""};

    (void)state;
    begin_spool(&place);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(spool_add_lines(&place, "{\"long\":12345}\n", 15, &error), FLY_EWRITE);
    check_contains(error.text, "make room, or name another place with FLYBALL_SPOOL");
    assert_int_equal(spool_files(".calls"), 0);
    add(&place, "{\"a\":1}\n");
    assert_int_equal(spool_add_lines(&place, "{\"b\":2}\n", 8, &error), FLY_EWRITE);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    check_file("{\"a\":1}\n");
    spool_end(&place, SPOOL_LEFT);
}

static void test_synced(void **state)
{
    struct spool place;
    struct fly_error error = {.text = ""};

    (void)state;
    begin_spool(&place);
    add(&place, "{\"a\":1}\n");
    assert_int_equal(spool_sync(&place, &error), 0);
    assert_int_equal(syncs, 1);
    assert_int_equal(names, 1);
    failing = EIO;
    assert_int_equal(spool_sync(&place, &error), FLY_EWRITE);
    check_contains(error.text, "cannot be kept safe from a crash of the machine: Input/output error");
    spool_end(&place, SPOOL_DELIVERED);
    assert_int_equal(spool_sync(&place, &error), 0);
}

/* ---- the post, in virtual time ---- */

static struct mono_time now;

static struct mono_time virtual_now(void *state)
{
    (void)state;
    return now;
}

static const struct clock clock_virtual = {.name = "virtual", .now = virtual_now};

struct desk {
    struct fake_jobs fake;
    struct jobs jobs;
    struct post *post;
};

/* A post whose log does not answer. */
static void desk_open(struct desk *desk, const struct clock *clock)
{
    struct post_options options = {.clock = clock, .directory = spool, .store = "store", .wait_s = 1.0};
    struct fly_error error;

    fake_jobs_init(&desk->fake);
    desk->jobs = fake_jobs_handle(&desk->fake);
    options.jobs = &desk->jobs;
    fake_jobs_fail(&desk->fake, FAKE_END, FLY_EUNREACHABLE, 1, 0);
    if (post_new(&options, &desk->post, &error) < 0)
        fail_msg("%s", error.text);
}

static uint64_t send(struct desk *desk, uint64_t trial)
{
    const struct spool_entry entry = {.kind = SPOOL_END,
                                      .end = {.job = "job",
                                              .trial = trial,
                                              .attempt = 1,
                                              .outcome = TRIAL_CRASHED,
                                              .energy_j = NAN,
                                              .time_s = NAN,
                                              .text = "",
                                              .reference_per_kwh = NAN}};

    return post_send(desk->post, &entry, POST_RARELY);
}

/* That the only file has exactly these ends, once and in order. */
static void check_ends(uint64_t from, uint64_t to)
{
    static char text[TEXT_MAX];
    const char *at = text;

    read_only_file(text);
    for (uint64_t trial = from; trial <= to; trial++) {
        char word[32];

        snprintf(word, sizeof word, "\"trial\":%llu}", (unsigned long long)trial);
        at = strstr(at, word);
        if (at == NULL)
            fail_msg("no %s in its place in %s", word, text);
        at++;
    }
    assert_null(strstr(at, "\"trial\""));
}

/* While there is something unsynced, a sync comes each five seconds; and one at the end. */
static void test_rarely_synced(void **state)
{
    static const struct {
        double after_s;
        int syncs;
    } table[] = {{0.0, 0}, {4.9, 0}, {0.2, 1}, {0.1, 1}, {4.0, 1}, {1.0, 2}, {60.0, 2}};
    struct desk desk;

    (void)state;
    desk_open(&desk, &clock_virtual);
    for (size_t i = 0; i < COUNT(table); i++) {
        now = mono_after_s(now, table[i].after_s);
        (void)send(&desk, i + 1);
        assert_int_equal(post_look(desk.post).kept, i + 1);
        assert_int_equal(post_look(desk.post).waiting, 0);
        check_ends(1, i + 1);
        assert_int_equal(syncs, table[i].syncs);
    }
    (void)send(&desk, COUNT(table) + 1);
    assert_int_equal(syncs, 2);
    post_close(desk.post, 0.5, NULL);
    assert_int_equal(syncs, 3);
    check_ends(1, COUNT(table) + 1);
}

/* What the log takes meanwhile needs no sync. */
static void test_delivered_unsynced(void **state)
{
    struct desk desk;

    (void)state;
    desk_open(&desk, &clock_virtual);
    (void)send(&desk, 1);
    memset(desk.fake.faults, 0, sizeof desk.fake.faults);
    now = mono_after_s(now, 3600.0);
    (void)send(&desk, 2);
    assert_int_equal(desk.fake.end_count, 2);
    post_close(desk.post, 0.5, NULL);
    assert_int_equal(syncs, 0);
    assert_int_equal(spool_files(".calls"), 0);
}

/* A failed sync is told. The letters go to a new file, since the old one's state is not known. */
static void test_failed_sync(void **state)
{
    struct desk desk;
    struct post_status status;
    char before[TEXT_MAX];

    (void)state;
    desk_open(&desk, &clock_virtual);
    for (uint64_t i = 1; i <= 3; i++)
        (void)send(&desk, i);
    failing = EIO;
    now = mono_after_s(now, 6.0);
    (void)send(&desk, 4);
    status = post_look(desk.post);
    check_contains(status.text, "crash of the machine: Input/output error");
    snprintf(before, sizeof before, "%s", desk.post->spool.path);
    (void)send(&desk, 5);
    assert_string_not_equal(before, desk.post->spool.path);
    assert_int_equal(post_look(desk.post).kept, 5);
    check_ends(1, 5);
    check_contains(post_look(desk.post).text, "Input/output error");
    assert_int_equal(syncs, 1);
    failing = 0;
    now = mono_after_s(now, 31.0);
    (void)send(&desk, 6);
    assert_int_equal(syncs, 2);
    assert_null(strstr(post_look(desk.post).text, "Input/output error"));
    failing = ENOSPC;
    (void)send(&desk, 7);
    post_close(desk.post, 0.5, &status);
    check_contains(status.text, "crash of the machine: No space left on device");
    assert_int_equal(status.kept, 7);
    check_ends(1, 7);
}

/* ---- the post, with threads ---- */

static bool is_kept(struct desk *desk, uint64_t count)
{
    return post_look(desk->post).kept == count;
}

static bool is_syncing(struct desk *desk, uint64_t count)
{
    (void)desk;
    return (uint64_t)syncs >= count;
}

static void wait_for(bool (*done)(struct desk *desk, uint64_t count), struct desk *desk, uint64_t count)
{
    struct mono_time end = mono_after_s(mono_now(), soon_s);

    while (!done(desk, count) && mono_now().ns < end.ns)
        usleep(1000);
    assert_true(done(desk, count));
}

/* A sync that does not return holds up no letter, nor the end; a letter on its way is counted. */
static void test_letters_during_sync(void **state)
{
    struct desk desk;

    (void)state;
    desk_open(&desk, &clock_real);
    desk.post->sync_s = 0.0;
    held = true;
    (void)send(&desk, 1);
    wait_for(is_syncing, &desk, 1);
    for (uint64_t i = 2; i <= 6; i++)
        (void)send(&desk, i);
    wait_for(is_kept, &desk, 6);
    assert_int_equal(post_look(desk.post).waiting, 0);
    check_ends(1, 6);
    assert_int_equal(syncs, 1);
    post_close(desk.post, 0.1, NULL);
    assert_true(left_threads_any());
    held = false;
    for (struct mono_time end = mono_after_s(mono_now(), soon_s);
         left_threads_any() && mono_now().ns < end.ns;)
        usleep(1000);
    assert_false(left_threads_any());
    assert_in_range(syncs, 2, 3);
    check_ends(1, 6);
}

/* With threads too, letters are written anew after a failed sync, and synced at the end. */
static void test_failed_sync_threaded(void **state)
{
    struct desk desk;
    struct post_status status;

    (void)state;
    desk_open(&desk, &clock_real);
    desk.post->sync_s = 0.0;
    failing = EIO;
    (void)send(&desk, 1);
    wait_for(is_syncing, &desk, 1);
    (void)send(&desk, 2);
    wait_for(is_kept, &desk, 2);
    failing = 0;
    post_close(desk.post, soon_s, &status);
    assert_false(left_threads_any());
    assert_int_equal(status.kept, 2);
    assert_null(strstr(status.text, "Input/output error"));
    check_ends(1, 2);
}

/* What is kept outlives a program that is killed while the disk is busy. */
static void test_killed(void **state)
{
    struct spool place;
    int result;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        struct desk desk;

        desk_open(&desk, &clock_real);
        held = true;
        for (uint64_t i = 1; i <= 3; i++)
            (void)send(&desk, i);
        while (!is_kept(&desk, 3))
            usleep(1000);
        raise(SIGKILL);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    begin_spool(&place);
    assert_int_equal(spool_count_left(&place), 3);
    check_ends(1, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_written_at_once, heal),
        cmocka_unit_test_teardown(test_no_room, heal),
        cmocka_unit_test_teardown(test_synced, heal),
        cmocka_unit_test_teardown(test_rarely_synced, heal),
        cmocka_unit_test_teardown(test_delivered_unsynced, heal),
        cmocka_unit_test_teardown(test_failed_sync, heal),
        cmocka_unit_test_teardown(test_letters_during_sync, heal),
        cmocka_unit_test_teardown(test_failed_sync_threaded, heal),
        cmocka_unit_test_teardown(test_killed, heal),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
