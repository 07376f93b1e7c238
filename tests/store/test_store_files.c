/* SPDX-License-Identifier: Apache-2.0 */
/* Where a store's file lies, who may see it, from which version it comes, and what a change costs in it. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file/file_system.h"
#include "faulty_vfs.h"
#include "store/sqlite_link.h"
#include "store/sqlite_schema.h"

static const struct store_query everything;
static struct kept kept;
static char directory[64];

static int begin(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/flyball-files-XXXXXX");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

/* A path in the test's directory; lives until four others were asked for. */
static const char *in_directory(const char *name)
{
    static char paths[4][256];
    static size_t next;
    char *path = paths[next++ % COUNT(paths)];

    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static struct store *open_at(const char *path)
{
    struct fly_error error = {0};
    struct store *store = NULL;

    check_done(store_open(path, NULL, &store, &error), &error);
    return store;
}

static void check_mode(const char *path, unsigned mode)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, mode);
}

static void test_private_from_the_start(void **state)
{
    static const mode_t masks[] = {0, 022, 077};

    (void)state;
    for (size_t i = 0; i < COUNT(masks); i++) {
        char home[64];
        mode_t before = umask(masks[i]);
        struct store *store;

        snprintf(home, sizeof home, "state-%zu", i);
        setenv("XDG_STATE_HOME", in_directory(home), 1);
        store = open_at(NULL);
        store_fixture_add(store, "job", 0, "");
        snprintf(home, sizeof home, "state-%zu/flyball", i);
        check_mode(in_directory(home), 0700);
        check_contains(store_shown(store), in_directory(home));
        check_mode(store_shown(store), 0600);
        snprintf(home, sizeof home, "state-%zu/flyball/store.sqlite-wal", i);
        check_mode(in_directory(home), 0600);
        snprintf(home, sizeof home, "state-%zu/flyball/store.sqlite-shm", i);
        check_mode(in_directory(home), 0600);
        store_close(store);
        umask(before);
    }
    unsetenv("XDG_STATE_HOME");
}

static void test_homes(void **state)
{
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    struct store *store;

    (void)state;
    setenv("HOME", in_directory("home"), 1);
    setenv("XDG_STATE_HOME", "relative/does/not/count", 1);
    store = open_at("");
    assert_string_equal(store_shown(store), in_directory("home/.local/state/flyball/store.sqlite"));
    store_close(store);
    unsetenv("XDG_STATE_HOME");
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
}

static void test_places(void **state)
{
    static const struct {
        const char *name;
        int code;
        const char *part;
    } cases[] = {
        {"missing/store.sqlite", FLY_ENOTFOUND, "make its directory"},
        {"pipe", FLY_EDATA, "no ordinary file"},
        {"folder", FLY_EDATA, "no ordinary file"},
        {"folder/", FLY_EUSAGE, "is a directory"},
        {"dangling", FLY_ENOTFOUND, "dangling"},
        {"plain/store.sqlite", FLY_ENOTFOUND, "make its directory"},
    };
    struct store *store;

    (void)state;
    assert_int_equal(mkfifo(in_directory("pipe"), 0600), 0);
    assert_int_equal(mkdir(in_directory("folder"), 0700), 0);
    assert_int_equal(symlink("nowhere", in_directory("dangling")), 0);
    close(open(in_directory("plain"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {0};

        check_refused(store_open(in_directory(cases[i].name), NULL, &store, &error), cases[i].code, &error,
                      cases[i].part);
    }
    /* A link is followed, so that two names are one store. */
    store = open_at(in_directory("real.sqlite"));
    store_fixture_add(store, "job", 0, "");
    store_close(store);
    assert_int_equal(symlink("real.sqlite", in_directory("link.sqlite")), 0);
    store = open_at(in_directory("link.sqlite"));
    assert_string_equal(store_shown(store), in_directory("real.sqlite"));
    assert_int_equal(store_fixture_count(store, "job"), 1);
    store_close(store);
}

static long made_up_type;

static int made_up_statfs(const char *path, struct statfs *out_status)
{
    (void)path;
    memset(out_status, 0, sizeof *out_status);
    out_status->f_type = made_up_type;
    return 0;
}

static void test_network_file_systems(void **state)
{
    static const struct {
        long type;
        const char *fuse; /* what the list of mounts says */
        const char *name; /* NULL: local */
    } cases[] = {
        {0x6969, NULL, "NFS"},
        {0x0BD00BD0, NULL, "Lustre"},
        {0x47504653, NULL, "GPFS"},
        {(long)0xFF534D42, NULL, "CIFS"},
        {(int)0xFE534D42, NULL, "SMB2"},
        {0x65735546, "fuse.sshfs", "fuse.sshfs"},
        {0x65735546, "fuse.unheard-of", "fuse.unheard-of"},
        {0x65735546, "virtiofs", "virtiofs"},
        {0x65735546, "", "FUSE"},
        {0x65735546, "fuse.fuse-overlayfs", NULL},
        {0x65735546, "fuseblk", NULL},
        {0xEF53, NULL, NULL},     /* ext4 */
        {0x58465342, NULL, NULL}, /* XFS */
        {0x01021994, NULL, NULL}, /* tmpfs */
        {0x794C7630, NULL, NULL}, /* overlay */
    };
    char *mounts = strdup(in_directory("mountinfo"));
    const struct file_system_source source = {made_up_statfs, mounts};
    const struct store_options options = {.file_system = &source};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_error error = {0};
        struct store *store = NULL;
        FILE *file = fopen(mounts, "w");
        int code;

        assert_non_null(file);
        fprintf(file, "22 1 8:1 / /var rw - ext4 /dev/sda1 rw\n");
        if (cases[i].fuse != NULL && cases[i].fuse[0] != '\0')
            fprintf(file, "99 22 0:50 / %s rw,nosuid shared:7 - %s host:/x rw\n", directory, cases[i].fuse);
        fclose(file);
        made_up_type = cases[i].type;
        unlink(in_directory("net.sqlite"));
        code = store_open(in_directory("net.sqlite"), &options, &store, &error);
        if (cases[i].name == NULL) {
            check_done(code, &error);
        } else {
            check_refused(code, FLY_EUNSUPPORTED, &error, cases[i].name);
            check_contains(error.text, "local disk");
            check_contains(error.text, "flyball serve");
            check_contains(error.text, "postgresql://");
            assert_int_equal(access(in_directory("net.sqlite"), F_OK), -1);
        }
        store_close(store);
    }
    free(mounts);
}

/* Parent and child write at once, over a store that was open before the fork: no change is lost. */
static void test_opened_by_a_fork(void **state)
{
    enum { EACH = 40 };
    char *path = strdup(in_directory("forked.sqlite")), *other = strdup(in_directory("forked-other.sqlite"));
    struct store *store = open_at(path);
    int status = -1;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        struct fly_error error = {0};
        struct store *mine = NULL;
        int wrong = store_open(path, NULL, &mine, &error) != 0;

        for (int i = 0; i < EACH && wrong == 0; i++)
            store_fixture_add(mine, "job", 0, "");
        store_close(mine);
        wrong += store_open(other, NULL, &mine, &error) != 0;
        store_close(mine);
        _exit(wrong);
    }
    for (int i = 0; i < EACH; i++)
        store_fixture_add(store, "job", 0, "");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(store_fixture_count(store, "job"), 2 * EACH);
    store_close(store);
    child = fork();
    if (child == 0) {
        struct fly_error error = {0};
        struct store *mine = NULL;

        _exit(store_open(path, NULL, &mine, &error) != 0 ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free(path);
    free(other);
}

static void test_many_make_one_file(void **state)
{
    enum { PROGRAMS = 8 };
    char *path = strdup(in_directory("fresh.sqlite"));
    const struct store_options patient = {.wait_s = 90.0};
    pid_t children[PROGRAMS];
    struct store *store;

    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct fly_error error = {0};
            struct store_change *change;
            const struct store_event event = {.kind = "made", .key = "", .body = "{}"};
            int code = store_open(path, &patient, &store, &error);

            if (code == 0)
                code = store_change_begin(store, "job", STORE_MAKE_JOB, &change, &error);
            if (code == 0)
                code = store_change_append(change, &event, NULL, &error);
            if (code == 0)
                code = store_change_commit(change, &error);
            if (code < 0)
                fprintf(stderr, "# %s\n", error.text);
            _exit(code < 0 ? 1 : 0);
        }
    }
    for (int i = 0; i < PROGRAMS; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    store = open_at(path);
    assert_int_equal(store_fixture_count(store, "job"), PROGRAMS);
    store_close(store);
    free(path);
}

static char *read_text(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* Names of all tables, columns and indexes, as SQLite has them, in `out`. */
static void describe(const char *path, char *out, size_t size)
{
    static const char sql[] =
        "SELECT m.type, m.name, ifnull(c.name, ''), ifnull(c.type, ''), ifnull(c.\"notnull\", 0), "
        "ifnull(c.pk, 0) FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) c "
        "ORDER BY 1, 2, 3";
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    size_t used = 0;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    out[0] = '\0';
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < 6; i++)
            used += (size_t)snprintf(out + used, size - used, "%s|",
                                     (const char *)sqlite3_column_text(statement, i));
        used += (size_t)snprintf(out + used, size - used, "\n");
        assert_true(used < size);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void test_from_every_released_version(void **state)
{
    static char fresh[8192], migrated[8192];
    struct store *store = open_at(in_directory("schema.sqlite"));

    (void)state;
    store_close(store);
    describe(in_directory("schema.sqlite"), fresh, sizeof fresh);
    for (size_t version = 1; version <= sqlite_migration_count; version++) {
        char name[64];
        sqlite3 *db = NULL;

        assert_int_equal(sqlite_migrations[version - 1].version, version);
        snprintf(name, sizeof name, "from-%zu.sqlite", version);
        assert_int_equal(sqlite3_open(in_directory(name), &db), SQLITE_OK);
        snprintf(name, sizeof name, "tests/store/sqlite_%zu.sql", version);
        assert_int_equal(sqlite3_exec(db, read_text(name), NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        snprintf(name, sizeof name, "from-%zu.sqlite", version);
        store = open_at(in_directory(name));
        store_fixture_read(store, "digits", &everything, &kept);
        assert_int_equal(kept.count, 3);
        assert_string_equal(kept.events[1].key, "p/1");
        assert_string_equal(kept.events[2].body, "{\"outcome\": \"reached\"}");
        assert_int_equal(kept.events[0].time_us, 1700000000000001);
        assert_int_equal(store_fixture_add(store, "digits", 2, "p/2"), 4);
        store_close(store);
        describe(in_directory(name), migrated, sizeof migrated);
        assert_string_equal(migrated, fresh);
    }
}

static void test_plans_use_indexes(void **state)
{
    struct store *store = open_at(in_directory("plans.sqlite"));
    sqlite3 *db = NULL;

    (void)state;
    store_close(store);
    assert_int_equal(sqlite3_open(in_directory("plans.sqlite"), &db), SQLITE_OK);
    for (int i = 0; i < SAY_COUNT; i++) {
        char sql[1000];
        sqlite3_stmt *statement = NULL;

        if (i == SAY_BEGIN || i == SAY_COMMIT || i == SAY_ROLL_BACK)
            continue;
        snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", sqlite_texts[i]);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        while (sqlite3_step(statement) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(statement, 3);

            if (strstr(step, "TEMP B-TREE") != NULL || (strstr(step, "SCAN") != NULL && i != SAY_LIST_JOBS))
                fail_msg("%s: %s", sqlite_texts[i], step);
        }
        sqlite3_finalize(statement);
    }
    sqlite3_close(db);
}

/* Appends `count` events, a thousand to a change, keys counted on from `from`. */
static void fill(struct store *store, int from, int count)
{
    struct fly_error error = {0};
    char key[32];

    for (int done = 0; done < count;) {
        struct store_change *change = store_fixture_change(store, "long");

        for (int i = 0; i < 1000 && done < count; i++, done++) {
            snprintf(key, sizeof key, "key %d", from + done);
            store_fixture_append(change, "made", (uint64_t)from + (uint64_t)done, key,
                                 "{\"some\": \"content of an event\"}");
        }
        check_done(store_change_commit(change, &error), &error);
    }
}

/* Bytes read and written, on average, by a change that looks for a key and appends one event. */
static double cost_of_change(struct store *store, int from)
{
    enum { CHANGES = 40 };
    unsigned long before = faulty_vfs_bytes(FAULTY_READ) + faulty_vfs_bytes(FAULTY_WRITE);

    for (int i = 0; i < CHANGES; i++) {
        struct store_change *change = store_fixture_change(store, "long");
        struct fly_error error = {0};
        char key[32];

        snprintf(key, sizeof key, "key %d", from / 2 + i);
        kept.count = 0;
        check_done(
            store_change_read(change, &(struct store_query){.key = key}, store_fixture_keep, &kept, &error),
            &error);
        snprintf(key, sizeof key, "key %d", from + i);
        store_fixture_append(change, "made", (uint64_t)from + (uint64_t)i, key, "{}");
        check_done(store_change_commit(change, &error), &error);
    }
    return (double)(faulty_vfs_bytes(FAULTY_READ) + faulty_vfs_bytes(FAULTY_WRITE) - before) / CHANGES;
}

static void test_cost_does_not_grow(void **state)
{
    enum { SHORT = 1000, LONG = 60000 };
    struct store *store;
    double of_short, of_long;

    (void)state;
    faulty_vfs_install();
    store = open_at(in_directory("cost.sqlite"));
    fill(store, 0, SHORT);
    store_close(store);
    store = open_at(in_directory("cost.sqlite"));
    of_short = cost_of_change(store, SHORT);
    fill(store, SHORT + 1000, LONG);
    store_close(store);
    store = open_at(in_directory("cost.sqlite"));
    of_long = cost_of_change(store, LONG + 2000);
    store_close(store);
    faulty_vfs_remove();
    print_message("# a change moves %.0f bytes after %d events, %.0f after %d\n", of_short, SHORT, of_long,
                  LONG);
    /* A level or two of the indexes, and no more. */
    assert_true(of_long < 2.0 * of_short);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private_from_the_start),
        cmocka_unit_test(test_homes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_network_file_systems),
        cmocka_unit_test(test_opened_by_a_fork),
        cmocka_unit_test(test_many_make_one_file),
        cmocka_unit_test(test_from_every_released_version),
        cmocka_unit_test(test_plans_use_indexes),
        cmocka_unit_test(test_cost_does_not_grow),
    };

    return cmocka_run_group_tests_name("store files", tests, begin, end);
}
