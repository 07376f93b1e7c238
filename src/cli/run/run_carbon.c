/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_carbon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/thread_group.h"
#include "train/carbon/carbon_governor.h"
#include "train/carbon/carbon_head.h"

/* How long the end of a run waits for the disk with the account and the grid's figures. */
static const double statement_most_s = 2.0;

static void put_off(struct run_carbon *carbon, const char *text)
{
    if (carbon->off[0] == '\0')
        snprintf(carbon->off, sizeof carbon->off, "%s", text);
}

/* Counts the GPUs that are counted here. If others count all of them, `out_by` says who. */
static uint32_t count_gpus(const struct run_carbon_place *place, const char **out_by)
{
    uint32_t counted = 0;

    *out_by = NULL;
    for (size_t i = 0; i < place->list->count; i++) {
        const struct claim *claim = &place->claims->devices[i];

        if (place->list->devices[i].info.kind != DEVICE_GPU)
            continue;
        if (i >= place->claims->count || claim->counted)
            counted++;
        else
            *out_by = claim->by;
    }
    return counted;
}

/* Fills in the account's heading. */
static int fill_head(const struct run_carbon *carbon, const struct run_carbon_place *place, uint32_t gpus,
                     struct ledger_head *out_head, struct fly_error *out_error)
{
    const char *run = getenv("FLYBALL_RUN_ID");
    const struct carbon_governor_options options = {
        .carbon = carbon->options,
        .max_slowdown = carbon->max_slowdown,
        .job = place->job,
        .run = run != NULL && run[0] != '\0' ? run : place->claims->job,
        .program = "flyball run",
        .gpus = gpus,
        .rank = place->identity->rank > 0 ? (uint32_t)place->identity->rank : 0,
    };

    return carbon_governor_head(&options, out_head, out_error);
}

void run_carbon_begin(struct run_carbon *carbon, const struct run_carbon_place *place)
{
    struct carbon_keeper_options options = {.meter = place->meter, .rests = place->rests};
    struct fly_error error;
    const char *by;
    uint32_t gpus;

    if (!carbon->wanted)
        return;
    gpus = count_gpus(place, &by);
    if (place->meter == NULL)
        put_off(carbon, "nothing is measured");
    else if (gpus == 0 && by != NULL)
        snprintf(carbon->off, sizeof carbon->off, "these GPUs are counted by %s", by);
    else if (fill_head(carbon, place, gpus, &options.head, &error) < 0 ||
             carbon_keeper_open(&options, &carbon->keeper, &error) < 0)
        put_off(carbon, error.text);
}

void run_carbon_start(struct run_carbon *carbon)
{
    if (carbon->keeper != NULL)
        carbon_keeper_go(carbon->keeper);
}

void run_carbon_note(struct run_carbon *carbon)
{
    if (carbon->keeper != NULL)
        carbon_keeper_rest(carbon->keeper);
}

static void read_statement(void *of)
{
    struct run_statement *statement = of;
    const char *const path = statement->path;
    const struct statement_wish wish = {.paths = &path, .path_count = 1, .cached_only = true};

    statement->code = statement_view_open(&statement->view, &wish, &statement->error);
}

static void free_statement(void *of)
{
    struct run_statement *statement = of;

    statement_view_close(&statement->view);
    free(statement);
}

/* Computes the statement from what the cache has for that time; does not wait for the network. */
static void state(struct run_carbon *carbon)
{
    struct run_statement *statement = calloc(1, sizeof *statement);
    const char *why = "there is no memory for the statement";

    if (statement != NULL)
        memcpy(statement->path, carbon->kept.path, sizeof statement->path);
    if (statement != NULL && !apart_run(read_statement, free_statement, statement, statement_most_s)) {
        statement = NULL;
        why = "the disk does not answer; 'flyball carbon report' reads it later";
    }
    carbon->statement = statement;
    carbon->stated = statement != NULL && statement->code == 0;
    if (!carbon->stated)
        snprintf(carbon->unstated, sizeof carbon->unstated, "%s",
                 statement != NULL ? statement->error.text : why);
}

void run_carbon_end(struct run_carbon *carbon)
{
    if (carbon->keeper == NULL)
        return;
    carbon_keeper_close(carbon->keeper, &carbon->kept);
    carbon->keeper = NULL;
    if (carbon->kept.path[0] == '\0')
        put_off(carbon, carbon->kept.text);
    else
        state(carbon);
}

void run_carbon_free(struct run_carbon *carbon)
{
    if (carbon->statement != NULL)
        free_statement(carbon->statement);
    carbon->statement = NULL;
    carbon->stated = false;
}
