/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what prevents setting knobs here. Says only that somebody holds or uses a GPU, not who. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/machine/facts_parts.h"
#include "cli/options/knob_options.h"
#include "cli/options/limit_outlook.h"

static bool any_offers(const struct facts_maker *maker, const struct site *site, enum way way)
{
    bool offers = false;

    for (size_t i = 0; i < maker->list->count; i++)
        offers = offers || (maker->list->devices[i].info.kind == DEVICE_GPU &&
                            site_offers(site, way, &maker->list->devices[i]));
    return offers;
}

static const char *trouble_of(const struct facts_maker *maker, const struct site *site, enum way way)
{
    const char *place = site->daemon;

    if (way == WAY_DRIVER)
        return maker->facts->machine.root ? NULL : "this is not root";
    if (place[0] == '\0')
        return "there is none";
    if (place[0] != '/')
        return NULL;
    if (access(place, F_OK) < 0)
        return "there is no socket";
    return access(place, R_OK | W_OK) < 0 ? fly_error_sentence(FLY_EPERM) : NULL;
}

static void find_ways(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;
    struct site site;

    site_init(NULL, &site);
    facts->ways = facts_room(maker, WAY_COUNT, sizeof *facts->ways);
    for (int way = 0; facts->ways != NULL && way < WAY_COUNT; way++)
        facts->ways[facts->way_count++] =
            (struct facts_way){.name = way_name((enum way)way),
                               .found = any_offers(maker, &site, (enum way)way),
                               .named = way == WAY_DAEMON && site.named,
                               .why_not = facts_keep(maker, trouble_of(maker, &site, (enum way)way))};
}

static enum facts_directory directory_word(const char *path)
{
    const char *named = getenv(KNOB_RUNTIME_VARIABLE);

    if (named != NULL && named[0] != '\0')
        return DIRECTORY_NAMED;
    return strncmp(path, "/run/", strlen("/run/")) == 0 ? DIRECTORY_RUN : DIRECTORY_TMP;
}

/* Returns a sentence of its own where the usual one would name others. */
static const char *why_not(struct facts_maker *maker, const struct limit_outlook *outlook)
{
    if (outlook->may == MAY_LIKELY)
        return "not through the driver, since this is not root, but in another way";
    if (outlook->why_not.code == FLY_ESTATE)
        return "somebody uses it or holds its knobs, or MIG or MPS shares it";
    return outlook->why_not.code < 0 ? facts_keep(maker, outlook->why_not.text) : NULL;
}

static void find_outlooks(struct facts_maker *maker, const struct knob_options *options,
                          const char *directory, const struct fly_error *missing)
{
    for (size_t i = 0; i < maker->facts->device_count; i++) {
        struct facts_device *device = &maker->facts->devices[i];
        struct limit_outlook outlook;

        if (device->kind != DEVICE_GPU)
            continue;
        limit_outlook_find(options, directory, missing, &maker->list->devices[i], &outlook);
        device->may_be_set = outlook.may;
        device->why_not = why_not(maker, &outlook);
    }
}

void facts_find_knobs(struct facts_maker *maker)
{
    struct facts_machine *machine = &maker->facts->machine;
    char readonly_path[CLI_READONLY_MAX], directory[RUNTIME_PATH_MAX] = "";
    struct knob_options options = cli_knob_options(maker->call, "flyball record", readonly_path);
    struct fly_error missing = {.code = 0};
    bool there = runtime_directory_look(NULL, directory);

    machine->operators_lock = access(options.readonly_path, F_OK) == 0;
    machine->knob_files = there ? directory_word(directory) : DIRECTORY_NONE;
    machine->knob_files_writable = there && access(directory, W_OK) == 0;
    if (!there)
        error_set(&missing, FLY_ENOTFOUND, "there is no directory for locks yet");
    find_ways(maker);
    find_outlooks(maker, &options, directory, &missing);
}
