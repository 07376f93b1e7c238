/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a store's file with the settings that make a commit durable, and keeps its statements. */
#include "store/sqlite_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "base/wait.h"
#include "store/sqlite_schema.h"

/* The pause between two tries for a lock. */
enum { PAUSE_FIRST_US = 200, PAUSE_MAX_US = 10000 };

/* How long a forked child waits for another of its threads that uses SQLite. */
static const double fork_patience_s = 0.2;

#define STATEMENT_TEXT(name, sql) sql,
const char *const sqlite_texts[SAY_COUNT] = {SQLITE_STATEMENTS(STATEMENT_TEXT)};
#undef STATEMENT_TEXT

/* What SQLite's codes mean here, and what to do; an extended code comes before its primary one. */
static const struct failure {
    int sqlite;
    int code;
    const char *cause;
    const char *remedy;
} failures[] = {
    {SQLITE_FULL, FLY_EWRITE, "the disk is full", "free some space and try again"},
    {SQLITE_READONLY_DBMOVED, FLY_EWRITE, "the file was moved while it was open", "open it again"},
    {SQLITE_READONLY, FLY_EPERM, "it may not be written",
     "ask for the right to write the file and its directory, or name another path"},
    {SQLITE_PERM, FLY_EPERM, "permission is missing", "ask for it, or name another path"},
    {SQLITE_CORRUPT, FLY_EREAD, "the file is damaged",
     "restore a copy, or save what can be read with 'sqlite3 FILE .recover'"},
    {SQLITE_NOTADB, FLY_EDATA, "it is no store of Flyball's", "name another path"},
    {SQLITE_BUSY, FLY_EBUSY, "another program holds its lock",
     "try again; 'fuser FILE' says which one it is"},
    {SQLITE_LOCKED, FLY_EBUSY, "another handle holds its lock", "try again"},
    {SQLITE_PROTOCOL, FLY_EBUSY, "other programs open and close it all the time", "try again"},
    {SQLITE_IOERR_SHMMAP, FLY_EUNSUPPORTED, "its memory cannot be shared between programs", STORE_WAYS_OUT},
    {SQLITE_IOERR_SHMOPEN, FLY_EUNSUPPORTED, "its memory cannot be shared between programs", STORE_WAYS_OUT},
    {SQLITE_IOERR_SHMSIZE, FLY_EWRITE, "no space for the memory shared between programs",
     "free some space and try again"},
    {SQLITE_IOERR_SHMLOCK, FLY_EUNSUPPORTED, "locks fail there", STORE_WAYS_OUT},
    {SQLITE_IOERR_LOCK, FLY_EUNSUPPORTED, "locks fail there", STORE_WAYS_OUT},
    {SQLITE_IOERR_NOMEM, FLY_ENOMEM, "memory is exhausted", "free some"},
    {SQLITE_IOERR_READ, FLY_EREAD, "reading failed", "see the kernel's log for the disk"},
    {SQLITE_IOERR_SHORT_READ, FLY_EREAD, "the file is cut short", "restore a copy"},
    {SQLITE_IOERR_CORRUPTFS, FLY_EREAD, "the file system is damaged", "check it, or restore a copy"},
    {SQLITE_IOERR, FLY_EWRITE, "input or output failed", "see the kernel's log for the disk"},
    {SQLITE_CANTOPEN, FLY_EPERM, "it cannot be opened",
     "ask for the right to write the file and its directory, or name another path"},
    {SQLITE_NOMEM, FLY_ENOMEM, "memory is exhausted", "free some"},
    {SQLITE_TOOBIG, FLY_ELIMIT, "a row is too long", "write less"},
};

int sqlite_link_failed(const struct sqlite_link *link, const char *doing, struct fly_error *out_error)
{
    int extended = link->db == NULL ? SQLITE_NOMEM : sqlite3_extended_errcode(link->db);
    int cause = link->db == NULL ? 0 : sqlite3_system_errno(link->db);

    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        const struct failure *failure = &failures[i];

        if (failure->sqlite != extended && failure->sqlite != (extended & 0xFF))
            continue;
        return error_set(out_error, failure->code, "the store '%.200s' cannot be %s: %s%s%s; %s",
                         link->file.path, doing, failure->cause, cause > 0 ? ": " : "",
                         cause > 0 ? strerror(cause) : "", failure->remedy);
    }
    return error_set(out_error, FLY_EINTERNAL, "the store '%.200s' cannot be %s: %s (SQLite %d)",
                     link->file.path, doing, sqlite3_errmsg(link->db), extended);
}

/*
 * Waits for a lock: briefly at first, later ten milliseconds, with jitter so that programs do not
 * run in step.
 */
static int wait_for_lock(void *state, int tries)
{
    struct sqlite_link *link = state;
    unsigned pause_us = tries >= 6 ? PAUSE_MAX_US : (unsigned)PAUSE_FIRST_US << tries;

    if (tries == 0)
        link->waiting_since = mono_now();
    else if (mono_elapsed_s(link->waiting_since, mono_now()) >= link->wait_s)
        return 0;
    link->jitter = link->jitter * 1664525u + 1013904223u;
    mono_sleep_s(1e-6 * (pause_us / 2 + (link->jitter >> 16) % (pause_us / 2)));
    return 1;
}

static int take_number(void *state, int count, char **values, char **names)
{
    (void)names;
    if (count == 1 && values[0] != NULL)
        *(int *)state = (int)strtol(values[0], NULL, 10);
    return 0;
}

/* Runs SQL for which SQLite itself does not wait, and tries again until the time is up. */
static int run_text(struct sqlite_link *link, const char *sql, int *out_number)
{
    struct mono_time since = mono_now();
    int code;

    do {
        code = sqlite3_exec(link->db, sql, out_number == NULL ? NULL : take_number, out_number, NULL);
        if (code == SQLITE_BUSY && mono_elapsed_s(since, mono_now()) < link->wait_s)
            mono_sleep_s(1e-6 * PAUSE_MAX_US / 2);
        else
            break;
    } while (true);
    return code;
}

static int ask_number(struct sqlite_link *link, const char *sql, int *out_number, struct fly_error *out_error)
{
    return run_text(link, sql, out_number) == SQLITE_OK ? 0 : sqlite_link_failed(link, "read", out_error);
}

/* Reads the version from the header, within a transaction; leaves another program's database untouched. */
static int read_version(struct sqlite_link *link, int *out_version, struct fly_error *out_error)
{
    int owner = 0, version = 0, tables = 0;
    int code = ask_number(link, "PRAGMA application_id", &owner, out_error);

    if (code == 0)
        code = ask_number(link, "PRAGMA user_version", &version, out_error);
    if (code == 0)
        code = ask_number(link, "SELECT count(*) FROM sqlite_schema", &tables, out_error);
    if (code < 0)
        return code;
    if (owner != SQLITE_APPLICATION_ID && (owner != 0 || version != 0 || tables != 0))
        return error_set(out_error, FLY_EDATA,
                         "the file '%.200s' is another program's database; name another path for the store",
                         link->file.path);
    if (version > (int)sqlite_migration_count)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the store '%.200s' was written by a newer Flyball (schema %d; this one knows %zu); "
                         "update this one",
                         link->file.path, version, sqlite_migration_count);
    *out_version = version;
    return 0;
}

/* Reads the version at one moment: another program may be making the file. */
static int look_at_version(struct sqlite_link *link, int *out_version, struct fly_error *out_error)
{
    int code = run_text(link, "BEGIN", NULL) == SQLITE_OK ? read_version(link, out_version, out_error)
                                                          : sqlite_link_failed(link, "opened", out_error);

    sqlite_link_undo(link);
    return code;
}

/* Takes the missing steps in one transaction; another program may have taken them meanwhile. */
static int migrate(struct sqlite_link *link, struct fly_error *out_error)
{
    char header[128];
    int version = 0, code = sqlite_link_say(link, SAY_BEGIN, "made", out_error);

    if (code < 0)
        return code;
    code = read_version(link, &version, out_error);
    for (size_t i = (size_t)version; code == 0 && i < sqlite_migration_count; i++) {
        if (sqlite3_exec(link->db, sqlite_migrations[i].sql, NULL, NULL, NULL) != SQLITE_OK)
            code = sqlite_link_failed(link, "brought up to date", out_error);
    }
    snprintf(header, sizeof header, "PRAGMA application_id = %d; PRAGMA user_version = %zu",
             SQLITE_APPLICATION_ID, sqlite_migration_count);
    if (code == 0 && sqlite3_exec(link->db, header, NULL, NULL, NULL) != SQLITE_OK)
        code = sqlite_link_failed(link, "made", out_error);
    if (code == 0)
        code = sqlite_link_say(link, SAY_COMMIT, "made", out_error);
    if (code < 0)
        sqlite_link_undo(link);
    return code;
}

/* Sets the write-ahead log and a sync at every commit, before the first transaction. */
static int set_up(struct sqlite_link *link, struct fly_error *out_error)
{
    static const char settings[] = "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;"
                                   "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;"
                                   "PRAGMA temp_store = MEMORY";
    int wal = 0, version = 0, code = look_at_version(link, &version, out_error);

    if (code == 0 && version == 0 && link->existing)
        code = sqlite_file_missing(link->file.path, out_error);
    if (code < 0)
        return code;
    if (run_text(link, "PRAGMA journal_mode = WAL", NULL) != SQLITE_OK)
        return sqlite_link_failed(link, "opened", out_error);
    code = ask_number(link, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal, out_error);
    if (code < 0)
        return code;
    if (wal == 0)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the store '%.200s' cannot be opened: memory cannot be shared between programs there; %s",
            link->file.path, STORE_WAYS_OUT);
    if (run_text(link, settings, NULL) != SQLITE_OK)
        return sqlite_link_failed(link, "opened", out_error);
    return version == (int)sqlite_migration_count ? 0 : migrate(link, out_error);
}

/* Returns whether the lock is free within a moment: another thread may use SQLite right now. */
static bool is_free(sqlite3_mutex *lock)
{
    struct mono_time since = mono_now();

    while (sqlite3_mutex_try(lock) != SQLITE_OK) {
        if (mono_elapsed_s(since, mono_now()) > fork_patience_s)
            return false;
        mono_sleep_s(1e-6 * PAUSE_FIRST_US);
    }
    sqlite3_mutex_leave(lock);
    return true;
}

/*
 * SQLite's stat and fstat in a forked child. What the parent had open gets a device's number that no device
 * has, so that SQLite does not find it in its list of open files, with the parent's locks.
 */
static int set_apart(int result, struct stat *out)
{
    if (result == 0 && sqlite_file_of_parent(out->st_dev, out->st_ino))
        out->st_dev ^= (dev_t)(fork_generation() << 44);
    return result;
}

static int stat_apart(const char *path, struct stat *out)
{
    return set_apart(stat(path, out), out);
}

static int fstat_apart(int file, struct stat *out)
{
    return set_apart(fstat(file, out), out);
}

/*
 * In a forked child: SQLite holds locks of the whole process while it waits for a disk, and a thread of the
 * parent that waited as the child was forked never gives them back here.
 */
static int check_fork(const struct sqlite_link *link, struct fly_error *out_error)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    if (fork_generation() == 0)
        return 0;
    for (int which = SQLITE_MUTEX_STATIC_MAIN; which <= SQLITE_MUTEX_STATIC_VFS3; which++) {
        sqlite3_mutex *lock = sqlite3_mutex_alloc(which);

        if (lock != NULL && !is_free(lock))
            return error_set(out_error, FLY_ESTATE,
                             "the store '%.200s' cannot be opened: SQLite was waiting for a disk when this "
                             "process was forked; exec a program first, or fork before stores are opened",
                             link->file.path);
    }
    vfs->xSetSystemCall(vfs, "stat", (sqlite3_syscall_ptr)stat_apart);
    vfs->xSetSystemCall(vfs, "fstat", (sqlite3_syscall_ptr)fstat_apart);
    return 0;
}

static int connect_file(struct sqlite_link *link, struct fly_error *out_error)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int code;

    if (sqlite3_threadsafe() == 0 || sqlite3_libversion_number() < 3037000)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "SQLite %s is too old, or was built without threads; install 3.37 or newer",
                         sqlite3_libversion());
    code = check_fork(link, out_error);
    if (code < 0)
        return code;
    if (sqlite3_open_v2(link->file.path, &link->db, flags, NULL) != SQLITE_OK)
        return sqlite_link_failed(link, "opened", out_error);
    code = sqlite_file_hold(&link->file, out_error);
    if (code < 0)
        return code;
    sqlite3_busy_handler(link->db, wait_for_lock, link);
    if (sqlite3_db_readonly(link->db, "main") == 1)
        return error_set(out_error, FLY_EPERM,
                         "the store '%.200s' may not be written; ask for the right to write the file and its "
                         "directory, or name another path",
                         link->file.path);
    return set_up(link, out_error);
}

int sqlite_link_open(const char *path, const struct store_options *options, struct sqlite_link **out_link,
                     struct fly_error *out_error)
{
    struct sqlite_link *link = calloc(1, sizeof *link);
    int code;

    if (link == NULL)
        return error_no_memory(out_error);
    link->wait_s = options->wait_s;
    link->existing = options->existing;
    link->jitter = (uint32_t)getpid() ^ (uint32_t)mono_now().ns;
    code = sqlite_file_take(path, options->existing, options->file_system, &link->file, out_error);
    if (code < 0) {
        free(link);
        return code;
    }
    code = connect_file(link, out_error);
    if (code < 0) {
        sqlite_link_close(link);
        return code;
    }
    *out_link = link;
    return 0;
}

void sqlite_link_close(struct sqlite_link *link)
{
    for (int i = 0; i < SAY_COUNT; i++)
        sqlite3_finalize(link->statements[i]);
    sqlite3_close(link->db);
    sqlite_file_release(&link->file);
    free(link);
}

sqlite3_stmt *sqlite_link_statement(struct sqlite_link *link, enum sqlite_statement which,
                                    struct fly_error *out_error)
{
    sqlite3_stmt **slot = &link->statements[which];

    if (*slot == NULL && sqlite3_prepare_v3(link->db, sqlite_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                            slot, NULL) != SQLITE_OK)
        sqlite_link_failed(link, "read", out_error);
    return *slot;
}

int sqlite_link_run(struct sqlite_link *link, sqlite3_stmt *statement, const char *doing,
                    struct fly_error *out_error)
{
    int code = sqlite3_step(statement) == SQLITE_DONE ? 0 : sqlite_link_failed(link, doing, out_error);

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code;
}

int sqlite_link_say(struct sqlite_link *link, enum sqlite_statement which, const char *doing,
                    struct fly_error *out_error)
{
    sqlite3_stmt *statement = sqlite_link_statement(link, which, out_error);

    return statement != NULL ? sqlite_link_run(link, statement, doing, out_error)
                             : sqlite_link_failed(link, doing, NULL);
}

void sqlite_link_undo(struct sqlite_link *link)
{
    if (link->db != NULL && sqlite3_get_autocommit(link->db) == 0)
        sqlite_link_say(link, SAY_ROLL_BACK, "rolled back", NULL);
}
