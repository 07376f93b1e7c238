/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the journal back: restores what sessions left that could not restore it themselves. */
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/options/open_devices.h"
#include "cli/power/power_commands.h"
#include "cli/power/power_turning.h"
#include "device/device_meanings.h"
#include "knob/repair.h"

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
    {.name = "kept",
     .type = CLI_FLAG,
     .help = "Put back also what 'flyball power set' was asked to set to stay."},
};

static const struct meaning columns[] = {
    DEVICE_INDEX("GPU"),
    DEVICE_UUID,
    {"kept", "set to stay", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Whether it was set to stay: 'yes' or 'no'."},
    {"power_limit_before_w", "before (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
     "Power limit that stood before it was turned."},
    {"power_limit_set_w", "set (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
     "Power limit that the journal says was set."},
    {"power_limit_found_w", "found (W)", MEANING_REAL, 1, "W", MEANING_GAUGE, "Power limit that was found."},
    {"clock_ceiling_set_mhz", "ceiling (MHz)", MEANING_REAL, 0, "MHz", MEANING_GAUGE,
     "Ceiling on the GPU clock that was set."},
    {"end", "became", MEANING_TEXT, 0, NULL, MEANING_FACT, "What became of it."},
    {"workload_profiles_before", "profiles before", MEANING_LIST, 0, NULL, MEANING_FACT,
     "Workload power profiles that were requested before they were changed."},
    {"workload_profiles_set", "profiles set", MEANING_LIST, 0, NULL, MEANING_FACT,
     "Workload power profiles that the journal says were requested."},
    {"workload_profiles_found", "profiles found", MEANING_LIST, 0, NULL, MEANING_FACT,
     "Workload power profiles that were found requested."},
    {"performance_level_before", "level before", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Performance level before it was set, on AMD's GPUs."},
    {"performance_level_set", "level set", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Performance level that the journal says was set."},
    {"performance_level_found", "level found", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Performance level that was found."},
};
static const struct quantities quantities = {"a GPU that was turned", QUANTITIES(columns)};
enum { PROFILE_COLUMNS = 3, LEVEL_COLUMNS = 3 }; /* the last ones */

/*
 * What is shown for each outcome, and the exit status if something is left to do; later rows are
 * more serious.
 */
static const struct {
    const char *word;
    int status, rank;
} ends[] = {
    [REPAIR_RESTORED] = {"restored", 0, 0},
    [REPAIR_UNNEEDED] = {"unneeded", 0, 0},
    [REPAIR_FOREIGN] = {"changed by another", 0, 0},
    [REPAIR_ABSENT] = {"no such GPU", 69, 1},
    [REPAIR_OWED] = {"owed", POWER_STATUS_IN_USE, 2},
    [REPAIR_IN_USE] = {"in use", POWER_STATUS_IN_USE, 2},
    [REPAIR_CORRUPT] = {"corrupt", 65, 3},
    [REPAIR_DISBELIEVED] = {"not believed", 77, 4},
    [REPAIR_FAILED] = {"failed", 74, 5},
};
_Static_assert(sizeof ends / sizeof ends[0] == REPAIR_END_COUNT, "one row for every end");

static void add_workloads(struct table *table, const struct repair *repair, const struct workload_set *set)
{
    char text[WORKLOAD_TEXT_MAX];

    if (repair->has_workloads)
        table_add_list(table, workload_list(set, text));
    else
        table_add_unavailable(table, "-", "the journal holds no workload profiles of it");
}

static void add_level(struct table *table, const struct repair *repair, int64_t level)
{
    if (repair->has_level)
        table_add_text(table, device_level_word(level));
    else
        table_add_unavailable(table, "-", "the journal holds no performance level of it");
}

static void put_row(struct table *table, const struct power_gpus *gpus, const struct repair *repair,
                    size_t shown)
{
    size_t place = device_list_find(&gpus->list, DEVICE_GPU, repair->uuid);

    if (place < gpus->list.count)
        table_add_integer(table, gpus->list.devices[place].info.index);
    else
        table_add_unavailable(table, "-", "the GPU is not here, or may not be opened");
    table_add_text(table, repair->uuid);
    table_add_text(table, repair->kept ? "yes" : "no");
    power_gpus_add_limit(table, repair->previous_mw, "the journal holds no limit of it");
    power_gpus_add_limit(table, repair->set_mw, "the journal holds no limit of it");
    power_gpus_add_limit(table, repair->found_mw, "it was not read");
    if (repair->ceiling_mhz > 0)
        table_add_real(table, (double)repair->ceiling_mhz);
    else
        table_add_unavailable(table, "-", "the journal holds no ceiling on its clock");
    table_add_text(table, ends[repair->end].word);
    if (shown >= quantities.count - LEVEL_COLUMNS) {
        add_workloads(table, repair, &repair->workloads_before);
        add_workloads(table, repair, &repair->workloads_set);
        add_workloads(table, repair, &repair->workloads_found);
    }
    if (shown == quantities.count) {
        add_level(table, repair, repair->level_before);
        add_level(table, repair, repair->level_set);
        add_level(table, repair, repair->level_found);
    }
}

static struct power_gpus gpus_here; /* large */

/* Sorts by the order of the GPUs; those that are not here come last. */
static int by_place(const void *first, const void *second)
{
    const struct repair *left = first, *right = second;
    size_t places[] = {device_list_find(&gpus_here.list, DEVICE_GPU, left->uuid),
                       device_list_find(&gpus_here.list, DEVICE_GPU, right->uuid)};

    if (places[0] != places[1])
        return places[0] < places[1] ? -1 : 1;
    return (int)left->kept - (int)right->kept;
}

/* How many columns to show: people whose journal has no levels or profiles need no word about them. */
static size_t columns_shown(const struct cli_call *call, const struct repair *repairs, size_t count)
{
    bool levels = cli_format(call) != TABLE_FORMAT_TABLE, profiles = false;

    for (size_t i = 0; i < count; i++) {
        levels = levels || repairs[i].has_level;
        profiles = profiles || repairs[i].has_workloads;
    }
    return quantities.count - (levels ? 0 : LEVEL_COLUMNS) - (levels || profiles ? 0 : PROFILE_COLUMNS);
}

/*
 * Prints the entries of the chosen GPUs; with -i other GPUs' entries look like those of GPUs that
 * are not here.
 */
static int emit(const struct cli_call *call, const struct power_gpus *gpus, const struct repair *repairs,
                size_t count, struct fly_error *out_error)
{
    size_t shown = columns_shown(call, repairs, count);
    struct table *table = table_new("flyball.power.restore/2", columns, shown);
    bool root = geteuid() == 0;
    enum repair_end worst = REPAIR_RESTORED;
    int result, status;

    for (size_t i = 0; i < count; i++) {

        if (repairs[i].end == REPAIR_ABSENT && cli_set(call, "gpus"))
            continue;
        put_row(table, gpus, &repairs[i], shown);
        if (ends[repairs[i].end].status != 0)
            cli_warn(call, "%s", repairs[i].text);
        else
            cli_note(call, "%s", repairs[i].text);
        if (ends[repairs[i].end].rank > ends[worst].rank)
            worst = repairs[i].end;
    }
    if (cli_format(call) == TABLE_FORMAT_TABLE && table_row_count(table) == 0) {
        table_free(table);
        cli_note(call, "there is nothing to put back");
        return 0;
    }
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    status = worst == REPAIR_FAILED && !root ? fly_error_exit_status(FLY_EPERM) : ends[worst].status;
    if (worst == REPAIR_FAILED && !root)
        cli_warn(call, "this is not root, which alone may set limits with NVIDIA's driver; run 'sudo flyball "
                       "power restore'");
    if (status != 0)
        cli_exit_with(call, status);
    return result;
}

static int power_restore_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct repair repairs[JOURNAL_KIND_COUNT * DEVICES_MAX];
    int result = power_gpus_open(call, GPUS_ALL, LEFTOVERS_LEAVE, &gpus_here, out_error);
    int count;

    if (result < 0)
        return result;
    count = knob_repair(&gpus_here.options, &gpus_here.list, cli_flag(call, "kept"), repairs,
                        sizeof repairs / sizeof repairs[0], out_error);
    if (count > (int)(sizeof repairs / sizeof repairs[0]))
        count = (int)(sizeof repairs / sizeof repairs[0]);
    if (count > 0)
        qsort(repairs, (size_t)count, sizeof repairs[0], by_place);
    result = count < 0 ? power_refused(call, count, out_error)
                       : emit(call, &gpus_here, repairs, (size_t)count, out_error);
    power_gpus_close(&gpus_here);
    return result;
}

const struct cli_command cmd_power_restore = {
    .words = "power restore",
    .summary = "put back power limits that a killed program left",
    .paragraphs =
        {"Plays the journal back: before Flyball turns a knob it writes down what stood, and removes that "
         "when it has put it back. What is there still was left by a session that was killed together with "
         "its "
         "guard. It is put back where nobody holds the GPU's knobs and they stand where the session had put "
         "them; what another program changed since is left as it is, and forgotten.",
         "With --kept also what 'flyball power set' set to stay is put back. A restart of the machine resets "
         "limits by itself, and entries from before it are only removed.",
         "As root this also ends what another user's killed program left, with that user's rights: the limit "
         "goes to the driver's default, or to what root has set to stay, and the clock is freed. Where he "
         "may not "
         "turn the knob, his entry is moved aside, and nothing is turned."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .exit_status = "0 where all is put back, or another program's value stands. 65 for an entry that cannot "
                   "be read, which "
                   "is moved aside, 69 where there is no GPU, or not the one of an entry, 74 for a limit "
                   "that could not be put "
                   "back, 75 for a GPU that is held, 77 without permission, and for an entry of a user who "
                   "may not turn what it "
                   "speaks of.",
    .examples = {{"flyball power restore", "put back what killed programs left"},
                 {"flyball power restore --kept -i 0", "put back also what was set to stay, of one GPU"}},
    .outputs = {&quantities},
    .run = power_restore_run,
};
