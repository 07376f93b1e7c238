/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "shapes/meaning.h"
#include "shapes/table_cells.h"
#include "sim/try_writer.h"

struct fly_sim_table {
    struct arena arena; /* owns the columns and all in them */
    size_t rows, count;
    struct column *columns;
};

/* A column that is being filled, or is full. */
struct column {
    struct meaning meaning; /* its texts are in static storage */
    enum fly_sim_type type;
    const char **texts;
    int64_t *wholes;
    double *reals;
    const char **unknown; /* NULL until a cell is */
};

static const size_t memory_max = (size_t)8 << 30;

static enum fly_sim_type type_of(enum meaning_type type)
{
    return type == MEANING_REAL ? FLY_SIM_REAL : type == MEANING_WHOLE ? FLY_SIM_WHOLE : FLY_SIM_TEXT;
}

static bool make_column(struct fly_sim_table *table, struct column *column, const struct meaning *meaning)
{
    size_t rows = table->rows > 0 ? table->rows : 1;

    *column = (struct column){.meaning = *meaning, .type = type_of(meaning->type)};
    switch (column->type) {
    case FLY_SIM_TEXT:
        column->texts = arena_alloc(&table->arena, rows, sizeof column->texts[0]);
        return column->texts != NULL;
    case FLY_SIM_WHOLE:
        column->wholes = arena_alloc(&table->arena, rows, sizeof column->wholes[0]);
        return column->wholes != NULL;
    case FLY_SIM_REAL:
        column->reals = arena_alloc(&table->arena, rows, sizeof column->reals[0]);
        return column->reals != NULL;
    }
    return false;
}

/* Makes a table with empty columns; NULL without memory. */
static struct fly_sim_table *make_table(const struct meaning *meanings, size_t count, size_t rows)
{
    struct fly_sim_table *table = calloc(1, sizeof *table);
    bool good = table != NULL;

    if (good) {
        arena_init(&table->arena, memory_max);
        table->rows = rows;
        table->count = count;
        table->columns = arena_alloc(&table->arena, count, sizeof table->columns[0]);
        good = table->columns != NULL;
    }
    for (size_t i = 0; i < count && good; i++)
        good = make_column(table, &table->columns[i], &meanings[i]);
    if (good)
        return table;
    fly_sim_table_free(table);
    return NULL;
}

/* Keeps a text; neighbours that are equal share it. NULL without memory. */
static const char *keep_text(struct fly_sim_table *table, const char *text, const char *before)
{
    return before != NULL && strcmp(before, text) == 0 ? before : arena_strdup(&table->arena, text);
}

static bool set_unknown(struct fly_sim_table *table, struct column *column, size_t row, const char *reason)
{
    if (column->unknown == NULL)
        column->unknown = arena_alloc(&table->arena, table->rows, sizeof column->unknown[0]);
    if (column->unknown == NULL)
        return false;
    column->unknown[row] = keep_text(table, reason, row > 0 ? column->unknown[row - 1] : NULL);
    if (column->type == FLY_SIM_REAL)
        column->reals[row] = NAN;
    return column->unknown[row] != NULL;
}

static bool set_cell(struct fly_sim_table *table, struct column *column, size_t row, const struct table *from,
                     const struct table_cell *cell)
{
    switch (cell->state) {
    case CELL_TEXT:
    case CELL_LIST:
        column->texts[row] = keep_text(table, cell->text, row > 0 ? column->texts[row - 1] : NULL);
        return column->texts[row] != NULL;
    case CELL_INTEGER:
        column->wholes[row] = cell->integer;
        return true;
    case CELL_REAL:
        column->reals[row] = cell->real;
        return true;
    case CELL_UNAVAILABLE:
        return set_unknown(table, column, row, from->reasons[cell->footnote - 1]);
    }
    return false;
}

int sim_columns_of(const struct table *from, struct fly_sim_table **out_table, struct fly_error *out_error)
{
    struct fly_sim_table *table;
    int code = table_check(from, out_error);
    bool good;

    if (code < 0)
        return code;
    table = make_table(from->columns, from->column_count, table_row_count(from));
    good = table != NULL;
    for (size_t row = 0; good && row < table->rows; row++) {
        for (size_t i = 0; good && i < table->count; i++)
            good = set_cell(table, &table->columns[i], row, from, table_cell_at(from, row, i));
    }
    if (!good) {
        fly_sim_table_free(table);
        return error_no_memory(out_error);
    }
    *out_table = table;
    return 0;
}

/* ---- tries ---- */

/* What tries have in common; the columns of it come first. Only groups have TRY_GROUP. */
enum try_text { TRY_GPU, TRY_GROUP, TRY_DATASET, TRY_POLICY, TRY_TEXT_COUNT };

static const struct meaning try_texts[TRY_TEXT_COUNT] = {
    [TRY_GPU] = {"gpu", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "GPU that the traces are of."},
    [TRY_GROUP] = {"group", "group", MEANING_TEXT, 0, NULL, MEANING_FACT, "Group of submissions."},
    [TRY_DATASET] = {"dataset", "dataset", MEANING_TEXT, 0, NULL, MEANING_FACT, "Dataset of the job."},
    [TRY_POLICY] = {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chose the try."},
};

enum try_figure {
    TRY_SEED,
    TRY_RECURRENCE,
    TRY_NUMBER,
    TRY_BATCH_SIZE,
    TRY_LIMIT,
    TRY_REACHED,
    TRY_ENERGY,
    TRY_TIME,
    TRY_COST,
    TRY_FIGURE_COUNT
};

static const struct meaning try_figures[TRY_FIGURE_COUNT] = {
    [TRY_SEED] = {"seed", "seed", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Seed of the history."},
    [TRY_RECURRENCE] = {"recurrence", "recurrence", MEANING_WHOLE, 0, NULL, MEANING_FACT,
                        "Recurrence, from 0."},
    [TRY_NUMBER] = {"try", "try", MEANING_WHOLE, 0, NULL, MEANING_FACT,
                    "Number of the try through the whole run, from 0."},
    [TRY_BATCH_SIZE] = {"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size."},
    [TRY_LIMIT] = {"power_limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit."},
    [TRY_REACHED] = {"reached", "reached", MEANING_WHOLE, 0, NULL, MEANING_FACT,
                     "1 if the try reached the target, else 0."},
    [TRY_ENERGY] = {"energy_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of the try."},
    [TRY_TIME] = {"time_s", "time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER, "Time of the try."},
    [TRY_COST] = {"cost_j", "score", MEANING_REAL, 0, "J", MEANING_COUNTER, "Score of the try."},
};

/* Of which unit a try is; texts NULL have no column. */
struct try_place {
    const char *texts[TRY_TEXT_COUNT];
    uint32_t seed;
};

/* Finds that of a unit's number; `plan` is what the campaign ran. */
typedef void find_place(const void *plan, uint64_t unit, struct try_place *out_place);

static void find_in_campaign(const void *data, uint64_t unit, struct try_place *out_place)
{
    const struct campaign_plan *plan = data;
    const struct workload *workload = &plan->workloads[unit / plan->seed_count / plan->policy_count];

    *out_place = (struct try_place){
        .texts = {[TRY_GPU] = workload->gpu,
                  [TRY_DATASET] = workload->job.dataset,
                  [TRY_POLICY] = plan->policies[unit / plan->seed_count % plan->policy_count].name},
        .seed = plan->seeds[unit % plan->seed_count],
    };
}

static void find_in_groups(const void *data, uint64_t unit, struct try_place *out_place)
{
    const struct group_plan *plan = data;
    size_t group = unit / plan->seed_count / plan->policy_count;
    const struct workload *workload = &plan->workloads[plan->group_workloads[group]];

    *out_place = (struct try_place){
        .texts = {[TRY_GPU] = workload->gpu,
                  [TRY_GROUP] = plan->file->groups[group].name,
                  [TRY_DATASET] = workload->job.dataset,
                  [TRY_POLICY] = plan->policies[unit / plan->seed_count % plan->policy_count].name},
        .seed = group_seed(plan, group, unit % plan->seed_count),
    };
}

size_t sim_columns_tries_bytes(void)
{
    return (size_t)SIM_TRIES_MAX * sizeof(struct try_kept);
}

int sim_columns_keep(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    struct buffer *kept = context;

    buffer_append(kept, bytes, count);
    if (kept->error == FLY_ELIMIT)
        return error_set(out_error, FLY_ELIMIT, "more than %d tries; ask for fewer seeds or recurrences",
                         SIM_TRIES_MAX);
    return kept->error < 0 ? error_no_memory(out_error) : 0;
}

/* Fills in a row; texts that repeat are kept once. */
static bool set_try(struct fly_sim_table *table, size_t row, const struct try_place *place,
                    const struct try_record *record)
{
    struct column *column = table->columns;

    for (int i = 0; i < TRY_TEXT_COUNT; i++) {
        if (place->texts[i] == NULL)
            continue;
        column->texts[row] = keep_text(table, place->texts[i], row > 0 ? column->texts[row - 1] : NULL);
        if (column->texts[row] == NULL)
            return false;
        column++;
    }
    column[TRY_SEED].wholes[row] = place->seed;
    column[TRY_RECURRENCE].wholes[row] = (int64_t)record->recurrence;
    column[TRY_NUMBER].wholes[row] = (int64_t)record->number;
    column[TRY_BATCH_SIZE].wholes[row] = record->batch_size;
    column[TRY_LIMIT].reals[row] = record->power_limit_w;
    column[TRY_REACHED].wholes[row] = record->reached;
    column[TRY_ENERGY].reals[row] = record->energy_j;
    column[TRY_TIME].reals[row] = record->time_s;
    column[TRY_COST].reals[row] = record->cost_j;
    return true;
}

/* NULL without memory. */
static struct fly_sim_table *make_tries(bool grouped, size_t rows)
{
    struct meaning meanings[TRY_TEXT_COUNT + TRY_FIGURE_COUNT];
    size_t count = 0;

    for (int i = 0; i < TRY_TEXT_COUNT; i++) {
        if (i != TRY_GROUP || grouped)
            meanings[count++] = try_texts[i];
    }
    memcpy(&meanings[count], try_figures, sizeof try_figures);
    return make_table(meanings, count + TRY_FIGURE_COUNT, rows);
}

static int fill_tries(const struct buffer *kept, find_place *find, const void *plan,
                      struct fly_sim_table **out_table, struct fly_error *out_error)
{
    size_t rows = kept->length / sizeof(struct try_kept);
    struct fly_sim_table *table = make_tries(find == find_in_groups, rows);
    bool good = table != NULL;

    for (size_t row = 0; good && row < rows; row++) {
        struct try_kept one;
        struct try_place place;

        memcpy(&one, kept->data + row * sizeof one, sizeof one);
        find(plan, one.unit, &place);
        good = set_try(table, row, &place, &one.record);
    }
    if (!good) {
        fly_sim_table_free(table);
        return error_no_memory(out_error);
    }
    *out_table = table;
    return 0;
}

int sim_columns_of_tries(const struct campaign_plan *plan, const struct buffer *kept,
                         struct fly_sim_table **out_table, struct fly_error *out_error)
{
    return fill_tries(kept, find_in_campaign, plan, out_table, out_error);
}

int sim_columns_of_group_tries(const struct group_plan *plan, const struct buffer *kept,
                               struct fly_sim_table **out_table, struct fly_error *out_error)
{
    return fill_tries(kept, find_in_groups, plan, out_table, out_error);
}

/* ---- the table's face ---- */

size_t fly_sim_table_rows(const struct fly_sim_table *table)
{
    return table != NULL ? table->rows : 0;
}

int fly_sim_table_column(const struct fly_sim_table *table, size_t place, struct fly_sim_column *out_column)
{
    const struct column *column;

    if (out_column->size < sizeof *out_column)
        return FLY_EUSAGE;
    if (table == NULL || place >= table->count)
        return FLY_ENOTFOUND;
    column = &table->columns[place];
    *out_column = (struct fly_sim_column){
        .size = out_column->size,
        .key = column->meaning.key,
        .unit = column->meaning.unit,
        .help = column->meaning.help,
        .type = column->type,
        .texts = column->texts,
        .wholes = column->wholes,
        .reals = column->reals,
        .unknown = column->unknown,
    };
    return 0;
}

void fly_sim_table_free(struct fly_sim_table *table)
{
    if (table == NULL)
        return;
    arena_deinit(&table->arena);
    free(table);
}
