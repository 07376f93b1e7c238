/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { SHIFT_MAX = 20 };

static bool begins_with(const char *text, const char *word, const char **out_rest)
{
    size_t length = strlen(word);

    *out_rest = text + length;
    return strncmp(text, word, length) == 0;
}

/* Opens the same workloads on another GPU. */
static int bring_gpu(struct sim_transfer *set, const struct sim_transfer_wish *wish,
                     const struct sim_set *targets, struct fly_error *out_error)
{
    const char *gpu = wish->from;
    int code = wish->open(wish->context, gpu, &set->sources, out_error);

    set->opened = code == 0;
    for (size_t i = 0; i < targets->count && code == 0; i++) {
        size_t at = 0;

        while (at < set->sources.count &&
               strcmp(set->sources.items[at].job.name, targets->items[i].job.name) != 0)
            at++;
        if (at == set->sources.count)
            code = error_set(out_error, FLY_ENOTFOUND, "job '%.100s' is not in the traces of GPU '%.60s'",
                             targets->items[i].job.name, gpu);
        else
            set->items[i] = (struct transfer){.source = &set->sources.items[at], .kind = PAST_HARDWARE};
    }
    return code;
}

static int bring_job(struct sim_transfer *set, const struct sim_transfer_wish *wish,
                     const struct sim_set *targets, const char **out_expected, struct fly_error *out_error)
{
    const struct job_description *job = NULL;
    int code = wish->open(wish->context, NULL, &set->sources, out_error);

    set->opened = code == 0;
    if (code == 0)
        job = job_list_find(&set->sources.list, wish->from);
    if (code == 0 && job == NULL) {
        *out_expected = "a GPU or a job of the traces, eta=WEIGHT or shift=OCTAVES";
        return FLY_EUSAGE;
    }
    if (code == 0)
        code = sim_set_add(&set->sources, job, out_error);
    for (size_t i = 0; i < targets->count && code == 0; i++)
        set->items[i] = (struct transfer){.source = &set->sources.items[0], .kind = PAST_JOB};
    return code;
}

static int bring_eta(struct sim_transfer *set, const char *text, const struct sim_set *targets,
                     const char **out_expected, struct fly_error *out_error)
{
    char *end;
    double eta = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(eta >= 0.0 && eta <= 1.0)) {
        *out_expected = "eta= with a number from 0 to 1";
        return FLY_EUSAGE;
    }
    set->copies = malloc(targets->count * sizeof set->copies[0]);
    if (set->copies == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < targets->count; i++) {
        set->copies[i] = targets->items[i];
        set->copies[i].spec.eta = eta;
        set->copies[i].spec.objective = NULL;
        set->items[i] = (struct transfer){.source = &set->copies[i], .objective_only = true};
    }
    return 0;
}

static int bring_shifted(struct sim_transfer *set, const char *text, const struct sim_set *targets,
                         const char **out_expected)
{
    char *end;
    long octaves = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || octaves < -SHIFT_MAX || octaves > SHIFT_MAX) {
        *out_expected = "shift= with a whole number of octaves";
        return FLY_EUSAGE;
    }
    for (size_t i = 0; i < targets->count; i++)
        set->items[i] =
            (struct transfer){.source = &targets->items[i], .kind = PAST_JOB, .octaves = (int)octaves};
    return 0;
}

/* Returns whether the traces have a file of that GPU. */
static bool has_gpu(const char *traces, const char *gpu)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/summary_power_%s.csv", traces, gpu);
    file = fopen(path, "re");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

int sim_transfer_open(struct sim_transfer *set, const struct sim_transfer_wish *wish,
                      const struct sim_set *targets, const char **out_expected, struct fly_error *out_error)
{
    const char *from = wish->from, *rest;
    int code;

    set->opened = false;
    set->copies = NULL;
    set->items = NULL;
    if (from == NULL)
        return 0;
    set->items = calloc(targets->count, sizeof set->items[0]);
    if (set->items == NULL)
        return error_no_memory(out_error);
    if (begins_with(from, "eta=", &rest))
        code = bring_eta(set, rest, targets, out_expected, out_error);
    else if (begins_with(from, "shift=", &rest))
        code = bring_shifted(set, rest, targets, out_expected);
    else if (has_gpu(wish->traces, from))
        code = bring_gpu(set, wish, targets, out_error);
    else
        code = bring_job(set, wish, targets, out_expected, out_error);
    for (size_t i = 0; i < set->sources.count && set->opened; i++) {
        set->sources.items[i].spec.objective = targets->items[0].spec.objective;
        set->sources.items[i].spec.eta = targets->items[0].spec.eta;
    }
    for (size_t i = 0; i < targets->count; i++)
        set->items[i].recurrences = wish->recurrences;
    if (code < 0)
        sim_transfer_close(set);
    return code;
}

void sim_transfer_close(struct sim_transfer *set)
{
    if (set->opened)
        sim_set_close(&set->sources);
    free(set->copies);
    free(set->items);
}
