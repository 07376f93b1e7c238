/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_MADE_GROUPS_H
#define FLYBALL_SIM_WORLD_MADE_GROUPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Made-up groups of overlapping submissions for tests of scale, in the format
 * of group_file.h. Nothing in them was measured.
 *
 * Group g takes its dataset in turn from `datasets`. Its number of submissions
 * is geometric with mean submissions / groups, at least 1 (the last group takes
 * the rest). Its typical run time is log-normal, 3600 s * exp(z); each
 * submission runs typical * exp(0.3 z) and has the runtime_ratio exp(0.3 z).
 * The time between two starts is exponential with the mean 1.5 * typical, so
 * about half of the submissions start while another runs.
 */
struct made_groups {
    const char *const *datasets;
    size_t dataset_count;
    uint64_t groups;
    uint64_t submissions;
    uint32_t seed;
};

/* Writes the file; equal figures give equal bytes. Errors stay in the stream. */
void made_groups_write(FILE *stream, const struct made_groups *made);

#endif
