/* SPDX-License-Identifier: Apache-2.0 */
#include "bare_inserts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bare_body[] = "{\"attempt\": 1, \"epoch\": 12, \"metric\": 0.9375, \"energy_j\": 18250.5, "
                         "\"time_s\": 61.25, \"gpus\": 1, \"limit_w\": 250}";

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bare inserts: %s\n", text);
    exit(1);
}

void bare_open(struct bare *bare, const char *address)
{
    static const struct postgres_question table = {
        .sql = "CREATE TABLE IF NOT EXISTS bare (number bigserial PRIMARY KEY, body text)"};
    struct fly_error error;
    char path[4096];

    memset(bare, 0, sizeof *bare);
    if (strncmp(address, "postgres", strlen("postgres")) == 0) {
        if (postgres_link_open(address, 10.0, &bare->link, &error) < 0 ||
            postgres_link_ask(bare->link, &table, "made", NULL, &error) < 0)
            die(error.text);
        return;
    }
    snprintf(path, sizeof path, "%s.bare", address);
    if (sqlite3_open(path, &bare->db) != SQLITE_OK || sqlite3_busy_timeout(bare->db, 60000) != SQLITE_OK ||
        sqlite3_exec(bare->db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "CREATE TABLE IF NOT EXISTS bare (number INTEGER PRIMARY KEY, body TEXT)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(bare->db, "INSERT INTO bare (body) VALUES (?1)", -1, &bare->insert, NULL) !=
            SQLITE_OK)
        die(sqlite3_errmsg(bare->db));
}

void bare_insert(struct bare *bare)
{
    struct fly_error error;

    if (bare->link != NULL) {
        struct postgres_question insert = {.sql = "INSERT INTO bare (body) VALUES ($1)"};

        postgres_bind_text(&insert, bare_body);
        if (postgres_link_ask(bare->link, &insert, "written", NULL, &error) < 0)
            die(error.text);
        return;
    }
    sqlite3_bind_text(bare->insert, 1, bare_body, -1, SQLITE_STATIC);
    if (sqlite3_step(bare->insert) != SQLITE_DONE)
        die(sqlite3_errmsg(bare->db));
    sqlite3_reset(bare->insert);
}

void bare_close(struct bare *bare)
{
    if (bare->link != NULL)
        postgres_link_close(bare->link);
    sqlite3_finalize(bare->insert);
    sqlite3_close(bare->db);
}
