/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows power limits, and whether they may be set. Sets nothing, except to restore what a killed
 * program left.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "cli/power/power_commands.h"
#include "cli/power/power_turning.h"
#include "cli/views/reading_view.h"
#include "device/device_meanings.h"
#include "knob/journal.h"
#include "knob/runtime_directory.h"

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
};

enum { ENTRY_TEXT_MAX = 256 };

/* A journal entry as it was read. */
struct entry {
    int code; /* 0, FLY_ENOTFOUND for no entry, or why it cannot be read */
    struct journal_entry entry;
    struct fly_error error;
};

/* One row. */
struct row {
    const struct device *gpu;
    struct device_reading reading;
    enum reading_state workloads_state;
    struct workloads workloads;
    struct limit_outlook outlook;
    struct entry turned, kept, turned_2, kept_2, owed; /* of the journal's files */
};

static void read_entry(const char *directory, enum journal_kind kind, const char *uuid, struct entry *out)
{
    out->code = journal_read(directory, kind, uuid, &out->entry, &out->error);
}

/* Looks for the entries in a directory; `missing` says why there is no directory. */
static void look_into(const char *directory, const struct fly_error *missing, struct row *row)
{
    const char *uuid = row->gpu->info.uuid;

    if (missing->code < 0) {
        row->turned.error = row->kept.error = *missing;
        row->turned.code = row->kept.code = missing->code;
        row->turned_2 = row->kept_2 = row->owed = row->turned;
        return;
    }
    read_entry(directory, JOURNAL_TURNED, uuid, &row->turned);
    read_entry(directory, JOURNAL_KEPT, uuid, &row->kept);
    read_entry(directory, JOURNAL_TURNED_2, uuid, &row->turned_2);
    read_entry(directory, JOURNAL_KEPT_2, uuid, &row->kept_2);
    read_entry(directory, JOURNAL_OWED, uuid, &row->owed);
}

/* Finds what the file says of the GPU with that pseudonym. */
static void find_in_facts(const struct facts *facts, struct row *row)
{
    const struct facts_device *device = facts->devices;

    while (strcmp(device->pseudonym, row->gpu->info.uuid) != 0)
        device++;
    row->outlook = (struct limit_outlook){.may = device->may_be_set, .held = FLY_EUNSUPPORTED};
    error_set(&row->outlook.lock, FLY_EUNSUPPORTED, "facts do not tell");
    row->turned.code = row->kept.code = FLY_EUNSUPPORTED;
    row->turned.error = row->kept.error = row->outlook.lock;
    row->turned_2 = row->kept_2 = row->owed = row->turned;
    if (device->why_not[0] != '\0')
        error_set(&row->outlook.why_not, FLY_EUNSUPPORTED, "%s", device->why_not);
}

static void find_out(const struct power_gpus *gpus, const char *directory, const struct fly_error *missing,
                     struct row *row)
{
    const struct facts *facts = facts_played(&gpus->list);

    device_read(row->gpu, &clock_real, QUANTITY_ALL, &row->reading);
    row->workloads_state = device_read_workloads(row->gpu, &row->workloads);
    if (facts != NULL) {
        find_in_facts(facts, row);
        return;
    }
    look_into(directory, missing, row);
    limit_outlook_find(&gpus->options, directory, missing, row->gpu, &row->outlook);
}

/* The forms of output in which a column appears. */
enum part { PART_BOTH, PART_PEOPLE, PART_PROGRAMS };

struct field {
    struct meaning column;
    enum part part;
    void (*put)(struct table *table, const struct row *row); /* NULL: the quantity, divided */
    enum quantity quantity;
    double divisor;
};

static void put_index(struct table *table, const struct row *row)
{
    table_add_integer(table, row->gpu->info.index);
}

static void put_name(struct table *table, const struct row *row)
{
    table_add_text(table, row->gpu->info.name);
}

static void put_uuid(struct table *table, const struct row *row)
{
    table_add_text(table, row->gpu->info.uuid);
}

static void put_workloads(struct table *table, const struct row *row, const struct workload_set *set)
{
    char text[WORKLOAD_TEXT_MAX];

    if (row->workloads_state == READING_OK)
        table_add_list(table, workload_list(set, text));
    else
        table_add_unavailable(table, "-", reading_state_clause(row->workloads_state));
}

static void put_supported(struct table *table, const struct row *row)
{
    put_workloads(table, row, &row->workloads.supported);
}

static void put_requested(struct table *table, const struct row *row)
{
    put_workloads(table, row, &row->workloads.requested);
}

static void put_enforced(struct table *table, const struct row *row)
{
    put_workloads(table, row, &row->workloads.enforced);
}

static void put_may(struct table *table, const struct row *row)
{
    table_add_text(table, facts_may_words[row->outlook.may]);
}

static void put_why_not(struct table *table, const struct row *row)
{
    table_add_text(table, row->outlook.why_not.code == 0 ? "" : row->outlook.why_not.text);
}

static void put_may_and_why(struct table *table, const struct row *row)
{
    if (row->outlook.why_not.code == 0)
        put_may(table, row);
    else
        table_add_unavailable(table, facts_may_words[row->outlook.may], row->outlook.why_not.text);
}

static void put_holder(struct table *table, const struct row *row)
{
    if (row->outlook.held < 0)
        table_add_unavailable(table, "-", row->outlook.lock.text);
    else
        table_add_text(table, row->outlook.held == 1 ? row->outlook.holder : "");
}

static void put_holder_or_nobody(struct table *table, const struct row *row)
{
    if (row->outlook.held == 0)
        table_add_text(table, "nobody");
    else
        put_holder(table, row);
}

/* Returns an entry's turn of a quantity, or NULL. */
static const struct turn *turn_in(const struct entry *entry, enum quantity quantity)
{
    for (size_t i = 0; entry->code == 0 && i < entry->entry.turn_count; i++) {
        if (entry->entry.turns[i].quantity == quantity)
            return &entry->entry.turns[i];
    }
    return NULL;
}

/* Returns the limit before an entry's turn. */
static int64_t previous_mw(const struct entry *entry)
{
    const struct turn *limit = turn_in(entry, QUANTITY_POWER_LIMIT);

    return limit != NULL ? limit->previous.number : 0;
}

static void put_previous(struct table *table, const struct entry *entry)
{
    if (previous_mw(entry) > 0)
        table_add_real(table, (double)previous_mw(entry) / 1e3);
    else
        table_add_unavailable(table, "-",
                              entry->code == FLY_ENOTFOUND ? "nothing stands in the journal"
                              : entry->code < 0            ? entry->error.text
                                                           : "the journal holds no limit of it");
}

static void put_turned(struct table *table, const struct row *row)
{
    put_previous(table, &row->turned);
}

static void put_kept(struct table *table, const struct row *row)
{
    put_previous(table, &row->kept);
}

static void put_owed(struct table *table, const struct row *row)
{
    put_previous(table, &row->owed);
}

/* Appends what stood before a set of profiles was requested. */
static void put_workloads_before(struct table *table, const struct entry *entry)
{
    const struct turn *turn = turn_in(entry, QUANTITY_WORKLOADS);
    char text[WORKLOAD_TEXT_MAX];

    if (turn != NULL)
        table_add_list(table, workload_list(&turn->previous.workloads, text));
    else
        table_add_unavailable(table, "-",
                              entry->code < 0 && entry->code != FLY_ENOTFOUND
                                  ? entry->error.text
                                  : "nothing stands in the journal");
}

static void put_workloads_turned(struct table *table, const struct row *row)
{
    put_workloads_before(table, &row->turned_2);
}

static void put_workloads_kept(struct table *table, const struct row *row)
{
    put_workloads_before(table, &row->kept_2);
}

static void put_turned_by(struct table *table, const struct row *row)
{
    const struct entry *entry =
        row->turned.code < 0 && row->turned_2.code == 0 ? &row->turned_2 : &row->turned;
    char text[ENTRY_TEXT_MAX];

    if (entry->code < 0) {
        put_previous(table, entry);
        return;
    }
    snprintf(text, sizeof text, "'%s', process %lld", entry->entry.program, (long long)entry->entry.pid);
    table_add_text(table, text);
}

/* Appends "400 W before" or another clause to the text. */
__attribute__((format(printf, 2, 3))) static void add_clause(char text[ENTRY_TEXT_MAX], const char *format,
                                                             ...)
{
    size_t length = strlen(text);
    va_list arguments;

    if (length > 0)
        length += (size_t)snprintf(text + length, ENTRY_TEXT_MAX - length, ", ");
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    vsnprintf(text + length, ENTRY_TEXT_MAX - length, format, arguments);
    va_end(arguments);
}

/* Appends "400 W before", "a ceiling of 1200 MHz on its clock", "profiles MAX_Q before". */
static void describe_entry(const struct entry *entry, char text[ENTRY_TEXT_MAX])
{
    const struct turn *ceiling = turn_in(entry, QUANTITY_CLOCK_CEILING);
    const struct turn *workloads = turn_in(entry, QUANTITY_WORKLOADS);
    const struct turn *level = turn_in(entry, QUANTITY_PERFORMANCE_LEVEL);
    char limit[POWER_LIMIT_TEXT_MAX], names[WORKLOAD_TEXT_MAX];

    if (turn_in(entry, QUANTITY_POWER_LIMIT) != NULL)
        add_clause(text, "%s before", power_limit_text(previous_mw(entry), limit));
    if (ceiling != NULL)
        add_clause(text, "a ceiling of %lld MHz on its clock", (long long)ceiling->ours.number);
    if (workloads != NULL)
        add_clause(text, "profiles %.100s before", workload_text(&workloads->previous.workloads, names));
    if (level != NULL)
        add_clause(text, "level %s before", device_level_word(level->previous.number));
}

static void put_level(struct table *table, const struct row *row)
{
    int64_t level;
    enum reading_state state = device_read_level(row->gpu, &level);

    if (state == READING_OK)
        table_add_text(table, device_level_word(level));
    else
        table_add_unavailable(table, "-", reading_state_clause(state));
}

static void put_journal(struct table *table, const struct row *row)
{
    bool is_turned = row->turned.code != FLY_ENOTFOUND || row->turned_2.code != FLY_ENOTFOUND;
    const struct entry *first = is_turned ? &row->turned : &row->kept;
    const struct entry *second = is_turned ? &row->turned_2 : &row->kept_2;
    char text[ENTRY_TEXT_MAX] = "";

    if (first->code < 0 && first->code != FLY_ENOTFOUND) {
        table_add_unavailable(table, "-", first->error.text);
    } else if (second->code < 0 && second->code != FLY_ENOTFOUND) {
        table_add_unavailable(table, "-", second->error.text);
    } else if (first->code == FLY_ENOTFOUND && second->code == FLY_ENOTFOUND && row->owed.code < 0) {
        table_add_text(table, "none");
    } else {
        bool is_there = first->code == 0 || second->code == 0;

        describe_entry(first, text);
        describe_entry(second, text);
        if (is_there && text[0] == '\0')
            add_clause(text, "persistence mode off before");
        if (is_there && !is_turned)
            add_clause(text, "set to stay");
        describe_entry(&row->owed, text);
        if (row->owed.code == 0)
            add_clause(text, "owed");
        table_add_text(table, text);
    }
}

static const struct field fields[] = {
    {DEVICE_INDEX("GPU"), PART_BOTH, .put = put_index},
    {DEVICE_NAME, PART_PROGRAMS, .put = put_name},
    {DEVICE_UUID, PART_PROGRAMS, .put = put_uuid},
    {DEVICE_LIMIT, PART_BOTH, NULL, QUANTITY_POWER_LIMIT, 1e3},
    {DEVICE_LIMIT_ENFORCED, PART_BOTH, NULL, QUANTITY_POWER_LIMIT_ENFORCED, 1e3},
    {DEVICE_LIMIT_DEFAULT, PART_BOTH, NULL, QUANTITY_POWER_LIMIT_DEFAULT, 1e3},
    {DEVICE_LIMIT_MIN, PART_BOTH, NULL, QUANTITY_POWER_LIMIT_MIN, 1e3},
    {DEVICE_LIMIT_MAX, PART_BOTH, NULL, QUANTITY_POWER_LIMIT_MAX, 1e3},
    {DEVICE_PERSISTENCE, PART_PROGRAMS, NULL, QUANTITY_PERSISTENCE, 1},
    {DEVICE_WORKLOADS_SUPPORTED, PART_PROGRAMS, .put = put_supported},
    {DEVICE_WORKLOADS_REQUESTED, PART_PROGRAMS, .put = put_requested},
    {DEVICE_WORKLOADS_ENFORCED, PART_PROGRAMS, .put = put_enforced},
    {DEVICE_PERFORMANCE_LEVEL, PART_PROGRAMS, .put = put_level},
    {TABLE_SHOWN("may be set", MEANING_TEXT, 0), PART_PEOPLE, .put = put_may_and_why},
    {{"may_be_set", "may be set", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "Whether this user may set the limit here: yes, likely, unlikely or no."},
     PART_PROGRAMS,
     .put = put_may},
    {{"why_not", "why not", MEANING_TEXT, 0, NULL, MEANING_FACT, "Why not."},
     PART_PROGRAMS,
     .put = put_why_not},
    {TABLE_SHOWN("held by", MEANING_TEXT, 0), PART_PEOPLE, .put = put_holder_or_nobody},
    {{"held_by", "held by", MEANING_TEXT, 0, NULL, MEANING_FACT, "Program that holds the GPU's knobs."},
     PART_PROGRAMS,
     .put = put_holder},
    {TABLE_SHOWN("journal", MEANING_TEXT, 0), PART_PEOPLE, .put = put_journal},
    {{"journal_turned_from_w", "turned from (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Limit that stood before a program turned it."},
     PART_PROGRAMS,
     .put = put_turned},
    {{"journal_turned_by", "turned by", MEANING_TEXT, 0, NULL, MEANING_FACT, "That program."},
     PART_PROGRAMS,
     .put = put_turned_by},
    {{"journal_kept_from_w", "kept from (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Limit that stood before one was set to stay."},
     PART_PROGRAMS,
     .put = put_kept},
    {{"journal_owed_w", "owed (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Limit that is owed: it stood before, and could not be set when it was to be put back."},
     PART_PROGRAMS,
     .put = put_owed},
    {{"journal_profiles_turned_from", "profiles turned from", MEANING_LIST, 0, NULL, MEANING_FACT,
      "Workload power profiles that were requested before a program changed them."},
     PART_PROGRAMS,
     .put = put_workloads_turned},
    {{"journal_profiles_kept_from", "profiles kept from", MEANING_LIST, 0, NULL, MEANING_FACT,
      "Those that were requested before some were set to stay."},
     PART_PROGRAMS,
     .put = put_workloads_kept},
};
static const struct quantities quantities = {"a GPU", QUANTITIES_IN(fields, column)};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static void put_row(struct table *table, const struct row *row, const struct field *const *shown,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (shown[i]->put != NULL)
            shown[i]->put(table, row);
        else
            table_add_reading(table, &row->reading.values[shown[i]->quantity], shown[i]->divisor);
    }
}

/* Shows people a GPU's profiles; most GPUs have none. */
static void say_workloads(const struct cli_call *call, const struct device *gpu)
{
    char requested[WORKLOAD_TEXT_MAX], enforced[WORKLOAD_TEXT_MAX], supported[WORKLOAD_TEXT_MAX];
    struct workloads workloads;

    if (device_read_workloads(gpu, &workloads) == READING_OK)
        fprintf(cli_out(call), "GPU %u: workload profiles requested: %s; enforced: %s; offered: %s\n",
                gpu->info.index, workload_text(&workloads.requested, requested),
                workload_text(&workloads.enforced, enforced), workload_text(&workloads.supported, supported));
}

static int power_get_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct power_gpus gpus; /* large */
    enum part left_out = cli_format(call) == TABLE_FORMAT_TABLE ? PART_PROGRAMS : PART_PEOPLE;
    const struct field *shown[FIELDS];
    struct meaning columns[FIELDS];
    char directory[RUNTIME_PATH_MAX] = "";
    struct fly_error missing = {.code = 0};
    struct table *table;
    size_t count = 0;
    int result = power_gpus_open_or_facts(call, &gpus, out_error);

    if (result < 0)
        return result;
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].part == left_out)
            continue;
        shown[count] = &fields[i];
        columns[count++] = fields[i].column;
    }
    if (facts_played(&gpus.list) == NULL)
        runtime_directory_find(NULL, directory, &missing);
    table = table_new("flyball.power.get/2", columns, count);
    for (size_t i = 0; i < gpus.count; i++) {
        struct row row = {.gpu = gpus.devices[i]};

        find_out(&gpus, directory, &missing, &row);
        put_row(table, &row, shown, count);
    }
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    for (size_t i = 0; i < gpus.count && result == 0 && left_out == PART_PROGRAMS; i++)
        say_workloads(call, gpus.devices[i]);
    power_gpus_close(&gpus);
    return result;
}

const struct cli_command cmd_power_get = {
    .words = "power get",
    .summary = "show the power limits of GPUs, and whether they may be set",
    .paragraphs =
        {"Shows for every GPU the power limit as it was set, the one that the driver enforces, its default "
         "and "
         "its range; whether this user may set it here, and if not why; which program holds the GPU's knobs; "
         "and "
         "what stood before where the journal holds something to put back. For boards that have workload "
         "power profiles (NVIDIA's since Blackwell) it names those that are requested, those that the driver "
         "enforces, and those that the board offers. Nothing is set, except that what "
         "a killed program left is put back first, where this user may.",
         "Whether the driver would really let a limit be set is known only by setting it: without root the "
         "answer is 'unlikely', or 'likely' where a daemon sets limits for users, which "
         "is named."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options_or_facts},
    .examples = {{"flyball power get", "show all GPUs"},
                 {"flyball power get -i 0 --format json", "tell a program about one"}},
    .outputs = {&quantities},
    .run = power_get_run,
};
