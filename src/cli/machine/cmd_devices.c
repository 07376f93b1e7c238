/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the devices of this machine. A table of fields says what is shown. People get it in two
 * tables that fit a terminal: what a device is, and what it reads. Programs get all fields in one
 * row.
 */
#include "cli/machine/machine_commands.h"
#include "cli/options/open_devices.h"

#include "base/buffer.h"
#include "base/error.h"
#include "cli/views/reading_view.h"
#include "device/device_meanings.h"

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
};

/* One row: a device and its current reading. */
struct row {
    const struct device *device;
    struct device_reading reading;
};

/* The tables for people in which a field appears; a module's only where a device has one. */
enum part { PART_BOTH, PART_WHAT, PART_SAYS, PART_MODULE, PART_PROGRAMS };

struct field {
    struct meaning column;
    enum part part;
    void (*put)(struct table *table, const struct row *row); /* NULL: the quantity, divided */
    enum quantity quantity;
    double divisor;
};

/* Adds a text that may be unknown. */
static void put_text(struct table *table, const char *text)
{
    if (text[0] == '\0')
        table_add_unavailable(table, "-", "the driver does not say");
    else
        table_add_text(table, text);
}

static void put_kind(struct table *table, const struct row *row)
{
    table_add_text(table, device_kind_name(row->device->info.kind));
}

static void put_index(struct table *table, const struct row *row)
{
    table_add_integer(table, row->device->info.index);
}

static void put_name(struct table *table, const struct row *row)
{
    put_text(table, row->device->info.name);
}

static void put_uuid(struct table *table, const struct row *row)
{
    put_text(table, row->device->info.uuid);
}

static void put_pci(struct table *table, const struct row *row)
{
    if (row->device->info.kind != DEVICE_GPU && row->device->info.pci[0] == '\0')
        table_add_unavailable(table, "-", "the device is none of the PCI bus");
    else
        put_text(table, row->device->info.pci);
}

static void put_driver(struct table *table, const struct row *row)
{
    put_text(table, row->device->info.driver);
}

static void put_backend(struct table *table, const struct row *row)
{
    table_add_text(table, row->device->backend->name);
}

static void put_label(struct table *table, const struct row *row)
{
    char label[DEVICE_LABEL_MAX];

    table_add_text(table, device_label(&row->device->info, label));
}

static void put_counter(struct table *table, const struct row *row)
{
    bool answers = row->reading.values[QUANTITY_ENERGY].state == READING_OK;

    table_add_text(table, !answers ? "no" : row->device->info.estimated ? "estimate" : "yes");
}

static void put_power(struct table *table, const struct row *row)
{
    table_add_reading(table, reading_power(&row->reading), 1e3);
}

static void put_limit(struct table *table, const struct row *row)
{
    table_add_reading(table, reading_limit(&row->reading), 1e3);
}

static void put_memory(struct table *table, const struct row *row)
{
    const struct device_info *info = &row->device->info;

    if (info->memory_bytes > 0)
        table_add_integer(table, (int64_t)info->memory_bytes);
    else
        table_add_unavailable(table, "-",
                              info->kind != DEVICE_GPU ? "the device is no GPU"
                              : info->mig              ? "MIG shares it"
                                                       : "the driver does not say");
}

static void put_note(struct table *table, const struct row *row)
{
    table_add_text(table, row->device->info.note);
}

static const struct field fields[] = {
    {DEVICE_KIND, PART_BOTH, .put = put_kind},
    {DEVICE_INDEX("index"), PART_BOTH, .put = put_index},
    {DEVICE_NAME, PART_WHAT, .put = put_name},
    {DEVICE_UUID, PART_WHAT, .put = put_uuid},
    {DEVICE_PCI, PART_WHAT, .put = put_pci},
    {DEVICE_DRIVER, PART_WHAT, .put = put_driver},
    {DEVICE_LABEL, PART_WHAT, .put = put_label},
    {DEVICE_BACKEND, PART_PROGRAMS, .put = put_backend},
    {DEVICE_POWER, PART_SAYS, .put = put_power},
    {DEVICE_LIMIT, PART_SAYS, .put = put_limit},
    {DEVICE_LIMIT_MIN, PART_SAYS, NULL, QUANTITY_POWER_LIMIT_MIN, 1e3},
    {DEVICE_LIMIT_MAX, PART_SAYS, NULL, QUANTITY_POWER_LIMIT_MAX, 1e3},
    {DEVICE_LIMIT_DEFAULT, PART_PROGRAMS, NULL, QUANTITY_POWER_LIMIT_DEFAULT, 1e3},
    {DEVICE_ENERGY_COUNTED, PART_SAYS, .put = put_counter},
    {DEVICE_ENERGY_COUNTER, PART_PROGRAMS, NULL, QUANTITY_ENERGY, 1e6},
    {DEVICE_POWER_MODULE, PART_MODULE, NULL, QUANTITY_POWER_MODULE, 1e3},
    {DEVICE_ENERGY_MODULE, PART_PROGRAMS, NULL, QUANTITY_ENERGY_MODULE, 1e6},
    {DEVICE_TEMPERATURE, PART_SAYS, NULL, QUANTITY_TEMPERATURE, 1},
    {DEVICE_UTILIZATION, PART_SAYS, NULL, QUANTITY_UTILIZATION, 1},
    {DEVICE_CLOCK, PART_SAYS, NULL, QUANTITY_CLOCK_GPU, 1},
    {DEVICE_CLOCK_MAX, PART_PROGRAMS, NULL, QUANTITY_CLOCK_GPU_MAX, 1},
    {DEVICE_CLOCK_MEMORY, PART_PROGRAMS, NULL, QUANTITY_CLOCK_MEMORY, 1},
    {DEVICE_PERSISTENCE, PART_PROGRAMS, NULL, QUANTITY_PERSISTENCE, 1},
    {DEVICE_MIG, PART_PROGRAMS, NULL, QUANTITY_MIG, 1},
    {DEVICE_MEMORY, PART_PROGRAMS, .put = put_memory},
    {DEVICE_NOTE, PART_PROGRAMS, .put = put_note},
};
static const struct quantities quantities = {"a device", QUANTITIES_IN(fields, column)};
enum { FIELDS = sizeof fields / sizeof fields[0], ABSENT_MAX = 1024 };

static bool has_module(const struct device_list *list)
{
    struct device_reading reading;

    for (size_t i = 0; i < list->count; i++) {
        device_read(&list->devices[i], &clock_real, QUANTITY_BIT(QUANTITY_POWER_MODULE), &reading);
        if (reading.values[QUANTITY_POWER_MODULE].state == READING_OK)
            return true;
    }
    return false;
}

/* The fields of one part; returns how many. */
static size_t find_fields(const struct device_list *list, enum part part,
                          const struct field *out_fields[FIELDS])
{
    bool module = part == PART_SAYS && has_module(list);
    size_t count = 0;

    for (size_t i = 0; i < FIELDS; i++) {
        if (part == PART_PROGRAMS || fields[i].part == part || fields[i].part == PART_BOTH ||
            (module && fields[i].part == PART_MODULE))
            out_fields[count++] = &fields[i];
    }
    return count;
}

static void put_row(struct table *table, const struct row *row, const struct field *const *chosen,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (chosen[i]->put != NULL)
            chosen[i]->put(table, row);
        else
            table_add_reading(table, &row->reading.values[chosen[i]->quantity], chosen[i]->divisor);
    }
}

/* Prints the table of one part, or of everything. */
static int emit(const struct cli_call *call, const struct device_list *list, enum part part,
                struct fly_error *out_error)
{
    const struct field *chosen[FIELDS];
    struct meaning columns[FIELDS];
    size_t count = find_fields(list, part, chosen);
    struct table *table;
    int result;

    for (size_t i = 0; i < count; i++)
        columns[i] = chosen[i]->column;
    table = table_new("flyball.devices/1", columns, count);
    for (size_t i = 0; i < list->count; i++) {
        struct row row = {.device = &list->devices[i]};

        device_read(row.device, &clock_real, QUANTITY_ALL, &row.reading);
        put_row(table, &row, chosen, count);
    }
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    return result;
}

static int emit_all(const struct cli_call *call, const struct device_list *list, struct fly_error *out_error)
{
    int result;

    if (cli_format(call) != TABLE_FORMAT_TABLE)
        return emit(call, list, PART_PROGRAMS, out_error);
    if (list->count == 0)
        return cli_emit_text(call, "no device whose energy can be known\n", out_error);
    result = emit(call, list, PART_WHAT, out_error);
    if (result == 0)
        result = cli_emit_text(call, "\n", out_error);
    if (result == 0)
        result = emit(call, list, PART_SAYS, out_error);
    return result;
}

/* Prints whole sentences on what is broken or denied, and only the names of what is absent. */
static void note_backends(const struct cli_call *call, const struct device_list *list)
{
    struct buffer absent;

    buffer_init(&absent, ABSENT_MAX);
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];

        if (report->error.code == FLY_EUNSUPPORTED || (report->error.code == 0 && report->found == 0))
            buffer_printf(&absent, "%s%s", absent.length > 0 ? ", " : "", report->backend->name);
        else if (report->error.code < 0)
            cli_note(call, "%s: %s", report->backend->title, report->error.text);
    }
    if (absent.length > 0)
        cli_note(call, "nothing through %s; 'flyball doctor' says why, and what works without", absent.data);
    buffer_deinit(&absent);
}

static int devices_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    int result = cli_open_devices_or_facts(call, &list, out_error);

    if (result < 0)
        return result;
    result = emit_all(call, &list, out_error);
    for (size_t i = 0; result == 0 && i < list.count; i++) {
        const struct device_info *info = &list.devices[i].info;

        if (info->note[0] != '\0')
            cli_note(call, "%s %u: %s", device_kind_name(info->kind), info->index, info->note);
    }
    note_backends(call, &list);
    device_list_close(&list);
    return result;
}

const struct cli_command cmd_devices = {
    .words = "devices",
    .summary = "list the GPUs, CPUs and memory whose energy can be known",
    .paragraphs =
        {"Lists every device of this machine whose energy can be known: what it is, and what it says now. "
         "A figure that a device does not offer is marked, and the reason stands below the table; it is null "
         "in JSON, with the reason beside it, and an empty field in CSV.",
         "The column 'is' names what is not a plain sensor: an emulated device, an estimate from use and a "
         "stated power, a GPU that is divided into MIG instances, "
         "which is measured as a whole. The column 'counter' says whether the device counts its energy "
         "itself; without that, power is sampled and summed.",
         "Notes on standard error name the drivers that found nothing; 'flyball doctor' says why, with the "
         "command that would change it."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options_or_facts},
    .examples = {{"flyball devices", "list all devices"},
                 {"flyball devices -i 0,2 --format json", "tell a program about two GPUs"}},
    .outputs = {&quantities},
    .run = devices_run,
};
