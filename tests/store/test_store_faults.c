/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a file when the disk is full, fails, lies or is slow: named errors, nothing half done. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "faulty_vfs.h"
#include "store/sqlite_link.h"

static const struct store_query everything;
static struct kept kept;
static char directory[64], path[128];

static int begin(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/flyball-faults-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/store.sqlite", directory);
    return 0;
}

static void clean(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[160];

    for (size_t i = 0; i < COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

static int end(void **state)
{
    (void)state;
    faulty_vfs_remove();
    clean();
    return rmdir(directory);
}

static struct store *open_here(void)
{
    struct fly_error error = {0};
    struct store *store = NULL;

    check_done(store_open(path, NULL, &store, &error), &error);
    return store;
}

static int run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open(path, &db);

    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        print_error("%s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
    return code;
}

/* A change of two events; its outcome. */
static int try_change(struct store *store, int round, struct fly_error *error)
{
    struct store_change *change = NULL;
    char key[32], body[3000];
    int code = store_change_begin(store, "job", STORE_MAKE_JOB, &change, error);

    memset(body, 'b', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    for (int part = 0; part < 2 && code == 0; part++) {
        const struct store_event event = {.kind = "part", .trial = 1, .key = key, .body = body};

        snprintf(key, sizeof key, "%d/%d", round, part);
        code = store_change_append(change, &event, NULL, error);
    }
    if (code == 0)
        return store_change_commit(change, error);
    store_change_rollback(change);
    return code;
}

/* Whole changes only, without gaps, those that were acknowledged among them. */
static void check_log(const bool *acknowledged, const bool *unsure, int rounds)
{
    struct store *store = open_here();
    size_t next = 0;

    store_fixture_read(store, "job", &everything, &kept);
    assert_int_equal(kept.count % 2, 0);
    for (int round = 0; round < rounds; round++) {
        char key[32];
        bool there;

        snprintf(key, sizeof key, "%d/0", round);
        there = next < kept.count && strcmp(kept.events[next].key, key) == 0;
        assert_true(there == acknowledged[round] || unsure[round]);
        if (!there)
            continue;
        snprintf(key, sizeof key, "%d/1", round);
        assert_string_equal(kept.events[next + 1].key, key);
        assert_int_equal(kept.events[next + 1].number, next + 2);
        next += 2;
    }
    assert_int_equal(next, kept.count);
    store_close(store);
    assert_int_equal(run_sql("PRAGMA integrity_check"), SQLITE_OK);
}

static void test_disk_fails_at_every_step(void **state)
{
    static const struct {
        enum faulty_operation operation;
        int sqlite, code, in_commit;
    } cases[] = {
        {FAULTY_WRITE, SQLITE_FULL, FLY_EWRITE, FLY_EWRITE},
        {FAULTY_WRITE, SQLITE_IOERR_WRITE, FLY_EWRITE, FLY_EWRITE},
        {FAULTY_SYNC, SQLITE_IOERR_FSYNC, FLY_EWRITE, FLY_EUNSURE},
        {FAULTY_READ, SQLITE_IOERR_READ, FLY_EREAD, FLY_EREAD},
        {FAULTY_MAP, SQLITE_IOERR_SHMMAP, FLY_EUNSUPPORTED, FLY_EUNSUPPORTED},
    };
    enum { ROUNDS = 24 };

    (void)state;
    faulty_vfs_install();
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool acknowledged[ROUNDS + 1] = {false}, unsure[ROUNDS + 1] = {false};
        int failures = 0;

        clean();
        for (int round = 0; round < ROUNDS; round++) {
            struct store *store = open_here();
            struct fly_error error = {0};
            int code;

            if (round > 0)
                store_fixture_count(store, "job");
            faulty_vfs_fail(cases[i].operation, (unsigned long)round % 8 + 1, cases[i].sqlite);
            code = try_change(store, round, &error);
            faulty_vfs_heal();
            acknowledged[round] = code == 0;
            unsure[round] = code == FLY_EUNSURE;
            failures += code < 0;
            if (code < 0 && code != cases[i].code && code != cases[i].in_commit)
                check_done(code, &error);
            if (code < 0)
                check_contains(error.text, path);
            /* The handle goes on once the disk does. */
            if (round % 3 == 0 && code < 0) {
                code = try_change(store, round, &error);
                if (code == FLY_ESTATE)
                    assert_true(unsure[round]);
                else
                    check_done(code, &error);
                acknowledged[round] = true;
            }
            store_close(store);
        }
        if (cases[i].operation == FAULTY_WRITE || cases[i].operation == FAULTY_SYNC)
            assert_true(failures >= 3);
        check_log(acknowledged, unsure, ROUNDS);
    }
    faulty_vfs_remove();
}

static void test_disk_fails_while_it_is_opened(void **state)
{
    static const struct {
        enum faulty_operation operation;
        int sqlite;
    } cases[] = {{FAULTY_WRITE, SQLITE_FULL},
                 {FAULTY_SYNC, SQLITE_IOERR_FSYNC},
                 {FAULTY_MAP, SQLITE_IOERR_SHMMAP},
                 {FAULTY_READ, SQLITE_IOERR_READ},
                 {FAULTY_LOCK, SQLITE_IOERR_LOCK}};

    (void)state;
    faulty_vfs_install();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int failures = 0;

        clean();
        for (unsigned long when = 1; when < 60; when++) {
            struct fly_error error = {0};
            struct store *store = NULL;
            int code;

            faulty_vfs_fail(cases[i].operation, when, cases[i].sqlite);
            code = store_open(path, NULL, &store, &error);
            faulty_vfs_heal();
            assert_true(code == 0 || code == FLY_EWRITE || code == FLY_EREAD || code == FLY_EUNSUPPORTED);
            failures += code < 0;
            store_close(store);
            if (code == 0)
                break;
        }
        assert_true(failures > 0);
        store_close(open_here());
    }
    faulty_vfs_remove();
}

static void test_memory_that_cannot_be_shared(void **state)
{
    struct fly_error error = {0};
    struct store *store = NULL;

    (void)state;
    clean();
    faulty_vfs_install();
    faulty_vfs_fail(FAULTY_MAP, 1, SQLITE_IOERR_SHMMAP);
    check_refused(store_open(path, NULL, &store, &error), FLY_EUNSUPPORTED, &error, "postgresql://");
    check_contains(error.text, "local disk");
    check_contains(error.text, "flyball serve");
    faulty_vfs_remove();
}

/* Overwrites the middle of the file with what is no page. */
static void damage(long from, size_t bytes)
{
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    fseek(file, from, SEEK_SET);
    for (size_t i = 0; i < bytes; i++)
        fputc(0xA5, file);
    fclose(file);
}

static void test_damaged(void **state)
{
    enum { PAGE = 4096 };
    struct fly_error error = {0};
    struct store *store;
    struct stat status;
    int code;

    (void)state;
    clean();
    store = open_here();
    for (int i = 0; i < 20; i++)
        check_done(try_change(store, i, &error), &error);
    store_close(store);
    assert_int_equal(stat(path, &status), 0);
    damage(PAGE, (size_t)status.st_size - PAGE);
    code = store_open(path, NULL, &store, &error);
    if (code == 0) {
        memset(&kept, 0, sizeof kept);
        code = store_read(store, "job", &everything, store_fixture_keep, &kept, &error);
        store_close(store);
    }
    check_refused(code, FLY_EREAD, &error, "damaged");
    check_contains(error.text, ".recover");
    damage(0, PAGE);
    check_refused(store_open(path, NULL, &store, &error), FLY_EDATA, &error, "no store");
}

static void test_of_others(void **state)
{
    static const struct {
        const char *sql;
        int code;
        const char *part;
    } cases[] = {
        {"CREATE TABLE job (x)", FLY_EDATA, "another program's"},
        {"PRAGMA application_id = 5", FLY_EDATA, "another program's"},
        {"PRAGMA user_version = 3", FLY_EDATA, "another program's"},
        {"PRAGMA application_id = 1179408706; PRAGMA user_version = 99", FLY_EUNSUPPORTED, "schema 99"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {0};
        struct store *store = NULL;
        struct stat before, after;

        clean();
        assert_int_equal(run_sql(cases[i].sql), SQLITE_OK);
        assert_int_equal(stat(path, &before), 0);
        check_refused(store_open(path, NULL, &store, &error), cases[i].code, &error, cases[i].part);
        assert_null(store);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(before.st_size, after.st_size);
        assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
                    before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    }
}

static void test_locked_while_it_is_opened(void **state)
{
    const struct store_options hasty = {.wait_s = 0.1};
    struct fly_error error = {0};
    struct store *store = NULL;
    sqlite3 *db = NULL;

    (void)state;
    clean();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    check_refused(store_open(path, &hasty, &store, &error), FLY_EBUSY, &error, "fuser");
    sqlite3_close(db);
    store_close(open_here());
}

static void test_removed_while_it_is_open(void **state)
{
    struct fly_error error = {0};
    struct store *store;

    (void)state;
    clean();
    store = open_here();
    check_done(try_change(store, 0, &error), &error);
    clean();
    check_refused(try_change(store, 1, &error), FLY_EWRITE, &error, "removed or replaced");
    store_close(store);
    store = open_here();
    check_done(try_change(store, 0, &error), &error);
    store_close(store);
}

/* In a child that may not be root: whether opening is refused for want of permission. */
static int refused_as_user(const char *where)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct fly_error error = {0};
        struct store *store = NULL;
        int code;

        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(9);
        code = store_open(where, NULL, &store, &error);
        if (code != FLY_EPERM)
            fprintf(stderr, "# %d: %s\n", code, error.text);
        _exit(code == FLY_EPERM ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status;
}

static void test_not_permitted(void **state)
{
    struct fly_error error = {0};
    struct store *store;

    (void)state;
    clean();
    store = open_here();
    check_done(try_change(store, 0, &error), &error);
    store_close(store);
    assert_int_equal(chmod(directory, 0755), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(refused_as_user(path), 0);
    assert_int_equal(chmod(path, 0600), 0);
    clean();
    if (geteuid() != 0)
        assert_int_equal(chmod(directory, 0555), 0);
    assert_int_equal(refused_as_user(path), 0);
    assert_int_equal(chmod(directory, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disk_fails_at_every_step),
        cmocka_unit_test(test_disk_fails_while_it_is_opened),
        cmocka_unit_test(test_memory_that_cannot_be_shared),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_of_others),
        cmocka_unit_test(test_locked_while_it_is_opened),
        cmocka_unit_test(test_removed_while_it_is_open),
        cmocka_unit_test(test_not_permitted),
    };

    return cmocka_run_group_tests_name("store faults", tests, begin, end);
}
