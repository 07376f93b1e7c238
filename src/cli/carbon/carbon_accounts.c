/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/carbon_accounts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "shapes/table.h"
#include "train/account/carbon_ledger_text.h"

enum { MEMORY_MAX = 1 << 30, NEAR_S = 3600 };

static const char suffix[] = ".jsonl";

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Reads only the first line. Returns false if it cannot be read. */
static bool read_head(const char *path, struct ledger_head *out_head)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct ledger_content content = {.slice_count = 0};
    struct arena arena;
    char line[LEDGER_LINE_MAX];
    const char *end = NULL;
    ssize_t length;
    bool known = false;

    if (file < 0)
        return false;
    length = read(file, line, sizeof line);
    if (length > 0)
        end = memchr(line, '\n', (size_t)length);
    close(file);
    if (end != NULL) {
        arena_init(&arena, MEMORY_MAX);
        known = carbon_ledger_parse(path, line, (size_t)(end - line) + 1, &arena, &content, NULL) == 0;
        arena_deinit(&arena);
    }
    if (known)
        *out_head = content.head;
    return known;
}

static bool is_file_named(const char *path, const char *name)
{
    const char *file = file_name(path);
    size_t length = strlen(name);

    return strcmp(file, name) == 0 ||
           (strncmp(file, name, length) == 0 && strcmp(file + length, suffix) == 0);
}

/* Finds a path; if the name is no file's, that of the newest run or job of that name. */
static const char *find_path(char **paths, size_t count, const char *name)
{
    struct ledger_head head;

    for (size_t i = 0; i < count; i++) {
        if (name == NULL || is_file_named(paths[i], name))
            return paths[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (read_head(paths[i], &head) && (strcmp(head.run, name) == 0 || strcmp(head.job, name) == 0))
            return paths[i];
    }
    return NULL;
}

struct rank {
    uint32_t rank;
    char *path;
};

static int compare_ranks(const void *left, const void *right)
{
    const struct rank *a = left, *b = right;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Returns whether it is another rank of the same run, which began at about the same time. */
static bool belongs(const struct ledger_head *head, const struct ledger_head *other, const struct rank *ranks,
                    size_t count)
{
    if (head->run[0] == '\0' || strcmp(head->run, other->run) != 0 || strcmp(head->job, other->job) != 0 ||
        strcmp(head->program, other->program) != 0 || llabs(head->start_s - other->start_s) > NEAR_S)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (ranks[i].rank == other->rank)
            return false;
    }
    return true;
}

static int join_ranks(char **paths, size_t count, const char *path, struct arena *arena,
                      struct carbon_accounts *out_accounts, struct fly_error *out_error)
{
    struct rank *ranks = arena_alloc(arena, ACCOUNT_RANKS_MAX, sizeof ranks[0]);
    struct ledger_head head, other;
    size_t found = 1;

    out_accounts->paths = arena_alloc(arena, ACCOUNT_RANKS_MAX, sizeof out_accounts->paths[0]);
    if (ranks == NULL || out_accounts->paths == NULL)
        return error_no_memory(out_error);
    ranks[0].path = arena_strdup(arena, path);
    if (ranks[0].path == NULL)
        return error_no_memory(out_error);
    if (read_head(path, &head)) {
        ranks[0].rank = head.rank;
        for (size_t i = 0; i < count && found < ACCOUNT_RANKS_MAX; i++) {
            if (strcmp(paths[i], path) == 0 || !read_head(paths[i], &other) ||
                !belongs(&head, &other, ranks, found))
                continue;
            ranks[found++] = (struct rank){other.rank, paths[i]};
        }
    }
    qsort(ranks, found, sizeof ranks[0], compare_ranks);
    for (size_t i = 0; i < found; i++)
        out_accounts->paths[i] = ranks[i].path;
    out_accounts->count = found;
    return 0;
}

int carbon_accounts_find(const char *directory, const char *name, struct arena *arena,
                         struct carbon_accounts *out_accounts, struct fly_error *out_error)
{
    char **paths = NULL;
    const char *path;
    size_t count = 0;
    int code;

    if (name != NULL && (strchr(name, '/') != NULL || access(name, F_OK) == 0))
        return join_ranks(NULL, 0, name, arena, out_accounts, out_error);
    code = carbon_ledger_list(directory, arena, &paths, &count, out_error);
    if (code < 0)
        return code;
    path = find_path(paths, count, name);
    if (path == NULL && name == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "there is no account of energy yet; 'flyball run --carbon SOURCE' keeps one");
    if (path == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "no account of energy is called '%.200s', and no run or job of one is; see 'flyball "
                         "carbon report --list'",
                         name);
    return join_ranks(paths, count, path, arena, out_accounts, out_error);
}

static const struct meaning columns[] = {
    {"account", "account", MEANING_TEXT, 0, NULL, MEANING_FACT, "File of the account."},
    {"start", "start", MEANING_DATE, 0, NULL, MEANING_FACT, "When it begins."},
    {"time_s", "time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER, "Time that its slices cover."},
    {"gpu_energy_j", "GPUs (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of the GPUs in them."},
    {"program", "program", MEANING_TEXT, 0, NULL, MEANING_FACT, "Program that ran."},
    {"run", "run", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the run."},
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the job."},
    {"rank", "rank", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Rank of the process in the run."},
    {"source", "source", MEANING_TEXT, 0, NULL, MEANING_FACT, "Source of the grid's carbon intensities."},
    {"price", "price", MEANING_TEXT, 0, NULL, MEANING_FACT, "Source of its prices."},
    {"host", "host", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine that it ran on."},
    {"gpus", "GPUs", MEANING_WHOLE, 0, NULL, MEANING_FACT, "GPUs whose energy is in it."},
    {"slices", "slices", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Slices of the account."},
};
const struct quantities carbon_accounts_quantities = {"an account of energy", QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0], PEOPLE_COUNT = 10 };

static void add_text(struct table *table, const char *text, const char *missing)
{
    if (text[0] != '\0')
        table_add_text(table, text);
    else
        table_add_unavailable(table, "-", missing);
}

static void add_content(struct table *table, const struct ledger_content *content, size_t shown)
{
    const struct ledger_head *head = &content->head;
    double time_s = 0.0, energy_j = 0.0;
    char time[ISO_TIME_TEXT_MAX];

    for (size_t i = 0; i < content->slice_count; i++) {
        time_s += content->slices[i].end_s - content->slices[i].start_s;
        energy_j += content->slices[i].gpu_j;
    }
    table_add_text(table, iso_time_format(head->start_s, time));
    table_add_real(table, time_s);
    table_add_known(table, energy_j, "the energy of a part of it is not known");
    add_text(table, head->program, "nobody said");
    add_text(table, head->run, "nobody said");
    add_text(table, head->job, "nobody said");
    table_add_integer(table, head->rank);
    add_text(table, head->sources[CARBON_INTENSITY], "there is none");
    add_text(table, head->sources[CARBON_PRICE], "there is none");
    if (shown <= PEOPLE_COUNT)
        return;
    add_text(table, head->host, "nobody said");
    table_add_integer(table, head->gpus);
    table_add_integer(table, (int64_t)content->slice_count);
}

int carbon_accounts_emit(const struct cli_call *call, const char *directory, struct fly_error *out_error)
{
    size_t shown = cli_format(call) == TABLE_FORMAT_TABLE ? (size_t)PEOPLE_COUNT : (size_t)COLUMN_COUNT;
    struct table *table;
    struct arena arena;
    char **paths = NULL;
    size_t count = 0;
    int code;

    arena_init(&arena, MEMORY_MAX);
    code = carbon_ledger_list(directory, &arena, &paths, &count, out_error);
    table = table_new("flyball.carbon.accounts/1", columns, shown);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct fly_error error = {.text = ""};
        struct ledger_content content;
        struct arena one;

        arena_init(&one, MEMORY_MAX);
        table_add_text(table, file_name(paths[i]));
        if (carbon_ledger_read(paths[i], &one, &content, &error) == 0) {
            add_content(table, &content, shown);
        } else {
            for (size_t column = 1; column < shown; column++)
                table_add_unavailable(table, "?", error.text);
        }
        arena_deinit(&one);
    }
    if (code == 0 && count == 0 && cli_format(call) == TABLE_FORMAT_TABLE)
        cli_note(call, "there is no account of energy yet; 'flyball run --carbon SOURCE' keeps one");
    else if (code == 0)
        code = cli_emit_table(call, table, out_error);
    table_free(table);
    arena_deinit(&arena);
    return code;
}
