/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When trials held which GPUs, for whoever has other figures of the same GPUs and must not count anything
 * twice. Memory grows with the GPUs, not with the trials.
 */
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "job/past/usage_private.h"

enum { WORD_BITS = 64 };

int usage_hold(struct usage *usage, struct usage_trial *trial, const char *uuid, const char *host,
               struct fly_error *out_error)
{
    struct held *held;
    size_t *numbers;
    size_t number, count = usage->held_names.count;
    int code = name_index_take(&usage->held_names, uuid, uuid[0] == '\0' ? host : "", &number, out_error);

    if (code < 0)
        return code;
    held = array_grow(usage->held, number, &usage->held_capacity, sizeof held[0]);
    if (held == NULL)
        return error_no_memory(out_error);
    usage->held = held;
    if (number == count)
        usage->held[number] = (struct held){{0}};
    numbers = array_grow(trial->held, trial->held_count, &trial->held_capacity, sizeof numbers[0]);
    if (numbers == NULL)
        return error_no_memory(out_error);
    trial->held = numbers;
    trial->held[trial->held_count++] = number;
    return 0;
}

/* Returns the part of the period in which a moment lies; the first or the last one for others. */
static size_t moment_of(const struct usage_options *options, int64_t time_us)
{
    int64_t ends_us = options->ends_us != 0 ? options->ends_us : options->until_us;
    double part = (double)(time_us - options->since_us) / (double)(ends_us - options->since_us);

    if (!(part > 0.0))
        return 0;
    return part < 1.0 ? (size_t)(part * USAGE_MOMENTS) : USAGE_MOMENTS - 1;
}

void usage_note_held(struct usage *usage, const struct usage_trial *trial, const struct usage_piece *piece)
{
    size_t first = moment_of(&usage->options, piece->from_us);
    size_t last = moment_of(&usage->options, piece->to_us);

    for (size_t i = 0; i < trial->held_count; i++)
        for (size_t at = first; at <= last; at++)
            usage->held[trial->held[i]].moments[at / WORD_BITS] |= (uint64_t)1 << (at % WORD_BITS);
}

static bool was_held(const struct usage *usage, size_t number, int64_t from_us, int64_t to_us)
{
    size_t last = moment_of(&usage->options, to_us);

    for (size_t at = moment_of(&usage->options, from_us); at <= last; at++)
        if ((usage->held[number].moments[at / WORD_BITS] >> (at % WORD_BITS) & 1) != 0)
            return true;
    return false;
}

bool usage_has_held(const struct usage *usage, const char *uuid, const char *host, int64_t from_us,
                    int64_t to_us)
{
    bool held = false;

    for (size_t i = 0; i < usage->held_names.count && !held; i++) {
        const struct name_entry *entry = &usage->held_names.entries[i];
        bool same = entry->name[0] != '\0'
                        ? strcmp(entry->name, uuid) == 0
                        : host[0] == '\0' || entry->detail[0] == '\0' || strcmp(entry->detail, host) == 0;

        held = same && was_held(usage, i, from_us, to_us);
    }
    return held;
}
