/* SPDX-License-Identifier: Apache-2.0 */
/* A long log costs no more than a short one: SQLite answers each read of it through the index meant for it.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/sqlite_link.h"
#include "store/store.h"

enum { PATH_BYTES = 128, PLAN_BYTES = 512 };

#define STATEMENT_TEXT(name, sql) [name] = (sql),
static const char *const texts[] = {SQLITE_STATEMENTS(STATEMENT_TEXT)};
#undef STATEMENT_TEXT

/* What SQLite is going to do, its steps one after the other. */
static void explain(sqlite3 *database, const char *sql, char plan[PLAN_BYTES])
{
    sqlite3_stmt *statement;
    char text[PLAN_BYTES * 2];

    snprintf(text, sizeof text, "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
    plan[0] = '\0';
    while (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(plan + strlen(plan), PLAN_BYTES - strlen(plan), "%s; ",
                 (const char *)sqlite3_column_text(statement, 3));
    sqlite3_finalize(statement);
}

static void test_plans(void **state)
{
    static const struct {
        enum sqlite_statement statement;
        const char *plan;
    } rows[] = {
        {SAY_READ, "(job=? AND number>?); "},
        {SAY_READ_TRIAL, "event_of_trial (job=? AND trial>? AND trial<?); "},
        {SAY_READ_KEY, "event_with_key (job=? AND key=?); "},
        {SAY_FIND_JOB, "(name=?); "},
        {SAY_GET_SNAPSHOT, "(job=? AND version=?); "},
    };
    char directory[] = "/tmp/flyball-plans-XXXXXX", path[PATH_BYTES], plan[PLAN_BYTES];
    static const char *const endings[] = {"", "-wal", "-shm"};
    struct store *store;
    struct fly_error error;
    sqlite3 *database;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/store.sqlite", directory);
    if (store_open(path, NULL, &store, &error) < 0)
        fail_msg("%s", error.text);
    store_close(store);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        explain(database, texts[rows[i].statement], plan);
        check_contains(plan, "SEARCH");
        check_contains(plan, rows[i].plan);
        assert_null(strstr(plan, "TEMP B-TREE"));
    }
    sqlite3_close(database);
    for (size_t i = 0; i < COUNT(endings); i++) {
        snprintf(path, sizeof path, "%s/store.sqlite%s", directory, endings[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
