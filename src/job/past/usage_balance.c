/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/usage_balance.h"

#include <stdlib.h>
#include <string.h>

void usage_balance_deinit(struct usage_balance *balance)
{
    free(balance->remainders);
    name_index_deinit(&balance->names);
    balance->remainders = NULL;
    balance->count = 0;
}

/* The remainder with that name, made if it is new; there must be room. */
static int find(struct usage_balance *balance, const char *name, const char *model,
                struct usage_remainder **out_remainder, struct fly_error *out_error)
{
    size_t number;
    int code = name_index_take(&balance->names, name, "", &number, out_error);

    if (code < 0)
        return code;
    if (number == balance->count)
        balance->remainders[balance->count++] =
            (struct usage_remainder){.name = balance->names.entries[number].name, .model = model};
    *out_remainder = &balance->remainders[number];
    return 0;
}

static int take_row(struct usage_balance *balance, enum usage_key key, const struct usage_row *row,
                    struct fly_error *out_error)
{
    bool named = key == USAGE_HOST || key == USAGE_GPU;
    const char *model = row->name[0] != '\0' ? row->model : "";
    struct usage_remainder *remainder;
    int code = find(balance, named ? row->name : "", named ? model : "", &remainder, out_error);

    if (code < 0)
        return code;
    remainder->energy_j -= row->sums.energy_j;
    remainder->gpu_time_s -= row->sums.gpu_time_s;
    return 0;
}

static int take_meter(struct usage_balance *balance, enum usage_key key, const struct usage_meter *meter,
                      struct fly_error *out_error)
{
    const char *name = key == USAGE_HOST ? meter->host : key == USAGE_GPU ? meter->uuid : "";
    struct usage_remainder *remainder;
    int code = find(balance, name, key == USAGE_GPU ? meter->model : "", &remainder, out_error);

    if (code < 0)
        return code;
    remainder->meters++;
    remainder->metered_j += meter->energy_j;
    remainder->metered_s += meter->time_s;
    remainder->energy_j += meter->energy_j;
    remainder->gpu_time_s += meter->time_s;
    balance->metered_j += meter->energy_j;
    balance->metered_s += meter->time_s;
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct usage_remainder *a = left, *b = right;

    return strcmp(a->name, b->name);
}

int usage_balance_make(enum usage_key key, const struct usage_row *rows, size_t row_count,
                       const struct usage_meter *meters, size_t meter_count,
                       struct usage_balance *out_balance, struct fly_error *out_error)
{
    struct usage_balance balance = {.remainders =
                                        calloc(row_count + meter_count + 1, sizeof balance.remainders[0])};
    int code = 0;

    name_index_init(&balance.names, USAGE_ROWS_MAX);
    if (balance.remainders == NULL)
        code = error_no_memory(out_error);
    for (size_t i = 0; i < row_count && code == 0; i++)
        code = take_row(&balance, key, &rows[i], out_error);
    for (size_t i = 0; i < meter_count && code == 0; i++)
        code = take_meter(&balance, key, &meters[i], out_error);
    if (code < 0) {
        usage_balance_deinit(&balance);
        return code;
    }
    qsort(balance.remainders, balance.count, sizeof balance.remainders[0], compare);
    *out_balance = balance;
    return 0;
}
