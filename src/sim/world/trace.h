/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_TRACE_H
#define FLYBALL_SIM_WORLD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Recorded trainings in the public trace format: one file says in which epoch each recorded run
 * reached each target, the other how long an epoch takes and what power it draws under each power
 * limit of one kind of GPU.
 *
 *     summary_train.csv        dataset,network,batch_size,optimizer,learning_rate,run,target_metric,
 *                              target_epoch
 *     summary_power_GPU.csv    dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power
 *
 * Columns are found by name; others are ignored. batch_size is a whole number from 1; power_limit
 * in W, time_per_epoch in s and average_power in W are above 0 and at most TRACE_VALUE_MAX;
 * target_epoch is from 1 to TRACE_VALUE_MAX, or `nan` or empty for a run that never reached the
 * target. Everything else, and a file without rows, is refused with file, line and column.
 */
#define TRACE_VALUE_MAX 1e12 /* keeps every sum of products of them finite */

struct train_row {
    const char *dataset, *network, *optimizer; /* interned: equal texts are equal pointers */
    uint32_t batch_size;
    double target_metric;
    double target_epoch; /* NaN: never reached */
};

struct power_row {
    const char *dataset, *network, *optimizer; /* interned together with the train rows' */
    uint32_t batch_size;
    double limit_w;
    double epoch_time_s;
    double power_w; /* mean, of one GPU */
    size_t line;    /* in its file */
};

struct trace {
    struct arena arena; /* owns all below */
    const char *gpu;
    const char *train_path;
    const char *power_path;
    struct train_row *train; /* in file order */
    size_t train_count;
    struct power_row *power; /* in file order */
    size_t power_count;
    const char **words; /* the interned texts */
    size_t word_count;
};

enum { TRACE_ROWS_MAX = 4 << 20, TRACE_WORDS_MAX = 4096 };

/*
 * Reads `directory`/summary_train.csv and `directory`/summary_power_`gpu`.csv. Errors as csv_open
 * and csv_next, and FLY_EDATA for a bad value or a power row that occurs twice. Call trace_close
 * only after success.
 */
int trace_open(struct trace *trace, const char *directory, const char *gpu, struct fly_error *out_error);

void trace_close(struct trace *trace);

/* Returns the interned text equal to `text`, or NULL if no row has it. */
const char *trace_word(const struct trace *trace, const char *text);

/* Returns whether the train file has a row with a power row's dataset, network, optimizer and batch size. */
bool trace_trained(const struct trace *trace, const struct power_row *power);

#endif
