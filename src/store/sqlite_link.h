/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_SQLITE_LINK_H
#define FLYBALL_STORE_SQLITE_LINK_H

#include <stdbool.h>

#include <sqlite3.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "store/sqlite_file.h"
#include "store/store.h"

/*
 * One connection to a store's file: it is opened and closed here, its statements are prepared
 * once each, and its failures are translated.
 *
 *     X(name, SQL)
 */
#define SQLITE_STATEMENTS(X)                                                                                \
    X(SAY_BEGIN, "BEGIN IMMEDIATE")                                                                         \
    X(SAY_COMMIT, "COMMIT")                                                                                 \
    X(SAY_ROLL_BACK, "ROLLBACK")                                                                            \
    X(SAY_PART, "SAVEPOINT part")                                                                           \
    X(SAY_KEEP_PART, "RELEASE part")                                                                        \
    X(SAY_UNDO_PART, "ROLLBACK TO part")                                                                    \
    X(SAY_FIND_JOB, "SELECT name, id, head, made_us, changed_us FROM job WHERE name = ?1")                  \
    X(SAY_LIST_JOBS, "SELECT name, id, head, made_us, changed_us FROM job ORDER BY name")                   \
    X(SAY_MAKE_JOB, "INSERT INTO job (name, head, made_us, changed_us) VALUES (?1, 0, 0, 0)")               \
    X(SAY_READ, "SELECT number, time_us, kind, trial, key, body FROM event"                                 \
                " WHERE job = ?1 AND number > ?2 ORDER BY number LIMIT ?3")                                 \
    X(SAY_READ_TRIAL,                                                                                       \
      "SELECT number, time_us, kind, trial, key, body FROM event" /* For "trial = ?4" the planner takes the \
                                                                     job's whole log. */                    \
      " WHERE job = ?1 AND number > ?2 AND trial BETWEEN ?4 AND ?4"                                         \
      " AND trial > 0 ORDER BY trial, number LIMIT ?3")                                                     \
    X(SAY_READ_KEY, "SELECT number, time_us, kind, trial, key, body FROM event"                             \
                    " WHERE job = ?1 AND +number > ?2 AND (?4 = 0 OR +trial = ?4)"                          \
                    " AND key = ?5 AND key <> '' LIMIT ?3")                                                 \
    X(SAY_APPEND, "INSERT INTO event (job, number, time_us, kind, trial, key, body)"                        \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                   \
    X(SAY_MOVE_HEAD, "UPDATE job SET head = ?2, changed_us = ?3,"                                           \
                     " made_us = CASE head WHEN 0 THEN ?3 ELSE made_us END WHERE id = ?1")                  \
    X(SAY_GET_SNAPSHOT, "SELECT number, bytes FROM snapshot WHERE job = ?1 AND version = ?2")               \
    X(SAY_PUT_SNAPSHOT, "INSERT OR REPLACE INTO snapshot (job, version, number, bytes)"                     \
                        " VALUES (?1, ?2, ?3, ?4)")                                                         \
    X(SAY_DELETE_SNAPSHOTS, "DELETE FROM snapshot WHERE job = ?1")                                          \
    X(SAY_DELETE_EVENTS, "DELETE FROM event WHERE job = ?1")                                                \
    X(SAY_DELETE_JOB, "DELETE FROM job WHERE id = ?1")

#define SQLITE_STATEMENT_NAME(name, sql) name,
enum sqlite_statement { SQLITE_STATEMENTS(SQLITE_STATEMENT_NAME) SAY_COUNT };
#undef SQLITE_STATEMENT_NAME

extern const char *const sqlite_texts[SAY_COUNT];

struct sqlite_link {
    sqlite3 *db;
    sqlite3_stmt *statements[SAY_COUNT]; /* NULL until first used */
    struct sqlite_file file;
    double wait_s;
    struct mono_time waiting_since;
    uint32_t jitter;
    bool existing;   /* make nothing */
    bool grouped;    /* changes are parts of one transaction (store_group_begin) */
    bool group_lost; /* SQLite or Flyball had to undo the whole group */
};

/* Opens, makes and migrates the store; `out_link` is owned. */
int sqlite_link_open(const char *path, const struct store_options *options, struct sqlite_link **out_link,
                     struct fly_error *out_error);
void sqlite_link_close(struct sqlite_link *link);

/* Returns the statement, ready to be bound, or NULL with `out_error` filled. */
sqlite3_stmt *sqlite_link_statement(struct sqlite_link *link, enum sqlite_statement which,
                                    struct fly_error *out_error);

/* Runs a statement without rows, and resets it; `doing` is a word for the error text ("written"). */
int sqlite_link_run(struct sqlite_link *link, sqlite3_stmt *statement, const char *doing,
                    struct fly_error *out_error);

/* Does the same for a statement without parameters. */
int sqlite_link_say(struct sqlite_link *link, enum sqlite_statement which, const char *doing,
                    struct fly_error *out_error);

/* Undoes an open transaction, if there is one. */
void sqlite_link_undo(struct sqlite_link *link);

/* Fills `out_error` with what the last call's failure means; returns its code. */
int sqlite_link_failed(const struct sqlite_link *link, const char *doing, struct fly_error *out_error);

#endif
