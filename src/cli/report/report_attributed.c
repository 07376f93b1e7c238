/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/report_attributed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "job/past/name_index.h"

static const int64_t us_per_ms = 1000;

/* Returns the name of the process's row; "": it has none. */
static const char *name_of(enum usage_key key, const struct used_process *process)
{
    const char *const names[USAGE_KEYS] = {[USAGE_USER] = process->user,
                                           [USAGE_ACCOUNT] = "",
                                           [USAGE_JOB] = process->training_job,
                                           [USAGE_HOST] = process->node,
                                           [USAGE_GPU] = process->uuid};

    return names[key];
}

static int add_process(enum usage_key key, const struct usage *usage, const struct used_process *process,
                       struct name_index *index, struct report_attributed *attributed,
                       struct fly_error *out_error)
{
    const char *name = name_of(key, process);
    struct usage_row *row;
    size_t number;
    int code;

    if (name[0] == '\0')
        return 0;
    if (usage_has_held(usage, process->uuid, process->node, process->from_unix_ms * us_per_ms,
                       process->to_unix_ms * us_per_ms)) {
        attributed->told++;
        return 0;
    }
    if (isnan(process->energy_j)) {
        attributed->unknown++;
        return 0;
    }
    code = name_index_take(index, name, "", &number, out_error);
    if (code < 0)
        return code;
    row = &attributed->rows[number];
    if (number == attributed->count) {
        *row = (struct usage_row){.name = name, .model = key == USAGE_GPU ? usage_model_of(usage, name) : ""};
        attributed->count++;
    }
    row->sums.energy_j += process->energy_j;
    row->sums.gpu_time_s += process->time_s;
    attributed->energy_j += process->energy_j;
    attributed->half_width_j += process->half_width_j;
    return 0;
}

static int compare_rows(const void *left, const void *right)
{
    const struct usage_row *a = left, *b = right;
    int order = (a->sums.energy_j < b->sums.energy_j) - (a->sums.energy_j > b->sums.energy_j);

    return order != 0 ? order : strcmp(a->name, b->name);
}

int report_attributed_make(enum usage_key key, const struct usage *usage, const struct used *used,
                           struct report_attributed *out_attributed, struct fly_error *out_error)
{
    struct report_attributed attributed = {.rows =
                                               calloc(used->process_count + 1, sizeof attributed.rows[0])};
    struct name_index index;
    int code = 0;

    if (attributed.rows == NULL)
        return error_no_memory(out_error);
    name_index_init(&index, USAGE_ROWS_MAX);
    for (size_t i = 0; i < used->process_count && code == 0; i++)
        code = add_process(key, usage, &used->processes[i], &index, &attributed, out_error);
    name_index_deinit(&index);
    if (code < 0) {
        report_attributed_deinit(&attributed);
        return code;
    }
    qsort(attributed.rows, attributed.count, sizeof attributed.rows[0], compare_rows);
    *out_attributed = attributed;
    return 0;
}

void report_attributed_deinit(struct report_attributed *attributed)
{
    free(attributed->rows);
    *attributed = (struct report_attributed){.count = 0};
}
