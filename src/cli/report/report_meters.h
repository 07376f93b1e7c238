/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_METERS_H
#define FLYBALL_CLI_REPORT_REPORT_METERS_H

#include "job/past/usage_balance.h"
#include "meter/tally/recorded.h"
#include "meter/tally/run_reports.h"
#include "meter/tally/used.h"

/*
 * What the meters counted within a period, from recordings, from reports of `flyball run
 * --output`, and from flyballd's record of who used the GPUs. Each GPU counts once at each moment, as
 * meter/tally/tally.h defines it.
 *
 *     report_meters_init(&meters, since_unix_s, until_unix_s);
 *     report_meters_read(&meters, "node1=/var/lib/flyball", out_error);    for each that is named
 *     report_meters_sum(&meters, usage, out_error);
 *     ... meters.gpus[i].energy_j ...
 *     report_meters_deinit(&meters);
 */
struct report_meters {
    double since_unix_s, until_unix_s;
    struct run_reports reports;
    struct recorded recorded;
    struct used used;
    size_t files;             /* recordings */
    struct usage_meter *gpus; /* owned; filled by report_meters_sum with the GPUs that have a figure */
    size_t count;
    size_t without_figure; /* GPUs */
    size_t others;         /* processors and memory, which no job's energy includes */
    double others_j;
    struct name_index places; /* UUIDs whose node is on record; */
    const char **nodes;       /* owned: that node for each */
    size_t node_capacity;
};

void report_meters_init(struct report_meters *meters, double since_unix_s, double until_unix_s);
void report_meters_deinit(struct report_meters *meters);

/*
 * Reads a file, or all *.jsonl and *.json in a directory; of flyballd's directory, its record of who used
 * the GPUs alone. `HOST=PATH` says on which host a
 * recording was made. FLY_ENOTFOUND if there is nothing.
 */
int report_meters_read(struct report_meters *meters, const char *named, struct fly_error *out_error);

/* Sums up. A GPU whose node is not on record is placed where the usage saw it. */
int report_meters_sum(struct report_meters *meters, const struct usage *usage, struct fly_error *out_error);

#endif
