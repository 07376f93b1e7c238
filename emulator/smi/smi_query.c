/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in CSV: --query-gpu, --query-supported-clocks, --query-compute-apps. */
#include <string.h>
#include <unistd.h>

#include "emulator/smi/smi.h"

enum { COLUMNS_MAX = 128, CLOCKS_MAX = 256, MIB_BITS = 20 };

/* A column of the two queries that have several lines for a GPU. */
struct column {
    const char *name, *other, *unit;
    int own; /* place among the query's own values; OF_GPU: a field of --query-gpu, asked there */
};
enum { OF_GPU = -1, OWN_MAX = 3 };

static int invalid_field(const struct smi_call *call, const char *name)
{
    fprintf(call->out, "Field \"%s\" is not a valid field to query.\n\n", name);
    return SMI_INVALID;
}

/* Takes the next name off a list; spaces around it do not count. */
static const char *next_name(const char *list, char out_name[SMI_TEXT_MAX])
{
    size_t length = strcspn(list, ",");
    const char *rest = list[length] == ',' ? list + length + 1 : NULL;

    while (length > 0 && *list == ' ') {
        list++;
        length--;
    }
    while (length > 0 && list[length - 1] == ' ')
        length--;
    snprintf(out_name, SMI_TEXT_MAX, "%.*s", (int)length, list);
    return rest;
}

static void put_name(const struct smi_call *call, const char *name, const char *unit, bool first)
{
    fprintf(call->out, "%s%s%s%s%s", first ? "" : ", ", name, unit != NULL ? " [" : "",
            unit != NULL ? unit : "", unit != NULL ? "]" : "");
}

/* A value that is missing has no unit. */
static void put_value(const struct smi_call *call, const char *text, const char *unit, bool first)
{
    bool with_unit = unit != NULL && call->units && text[0] != '[';

    fprintf(call->out, "%s%s%s%s", first ? "" : ", ", text, with_unit ? " " : "", with_unit ? unit : "");
}

static int find_fields(const struct smi_call *call, const char *list,
                       const struct smi_field *out_fields[COLUMNS_MAX], unsigned *out_count)
{
    char name[SMI_TEXT_MAX];

    *out_count = 0;
    while (list != NULL && *out_count < COLUMNS_MAX) {
        list = next_name(list, name);
        out_fields[*out_count] = smi_field_find(name);
        if (out_fields[*out_count] == NULL)
            return invalid_field(call, name);
        ++*out_count;
    }
    return SMI_DONE;
}

int smi_query_gpu(const struct smi_call *call, const char *fields)
{
    const struct smi_field *row[COLUMNS_MAX];
    unsigned count;
    int code = find_fields(call, fields, row, &count);
    char text[SMI_TEXT_MAX];

    if (code != SMI_DONE)
        return code;
    for (unsigned i = 0; call->header && i < count; i++)
        put_name(call, row[i]->name, row[i]->unit, i == 0);
    if (call->header)
        fputc('\n', call->out);
    for (unsigned gpu = 0; gpu < call->gpu_count; gpu++) {
        for (unsigned i = 0; i < count; i++) {
            smi_field_read(&call->gpus[gpu], row[i], text);
            put_value(call, text, row[i]->unit, i == 0);
        }
        fputc('\n', call->out);
    }
    return SMI_DONE;
}

/* The columns of a query, by name, from its own and those that it shares with --query-gpu. */
static int find_columns(const struct smi_call *call, const char *list, const struct column *columns,
                        const struct column *out_columns[COLUMNS_MAX], unsigned *out_count)
{
    char name[SMI_TEXT_MAX];

    *out_count = 0;
    while (list != NULL && *out_count < COLUMNS_MAX) {
        const struct column *column = columns;

        list = next_name(list, name);
        while (column->name != NULL && strcmp(column->name, name) != 0 &&
               (column->other == NULL || strcmp(column->other, name) != 0))
            column++;
        if (column->name == NULL)
            return invalid_field(call, name);
        out_columns[(*out_count)++] = column;
    }
    if (call->header) {
        for (unsigned i = 0; i < *out_count; i++)
            put_name(call, out_columns[i]->name, out_columns[i]->unit, i == 0);
        fputc('\n', call->out);
    }
    return SMI_DONE;
}

static void put_line(const struct smi_call *call, const struct smi_gpu *gpu, const struct column *const *row,
                     unsigned count, const char *const own[OWN_MAX])
{
    char text[SMI_TEXT_MAX];

    for (unsigned i = 0; i < count; i++) {
        if (row[i]->own == OF_GPU)
            smi_field_read(gpu, smi_field_find(row[i]->other != NULL ? row[i]->other : row[i]->name), text);
        else
            snprintf(text, sizeof text, "%s", own[row[i]->own]);
        put_value(call, text, row[i]->unit, i == 0);
    }
    fputc('\n', call->out);
}

static const struct column clock_columns[] = {
    {"memory", "mem", "MHz", 0},        {"graphics", "gr", "MHz", 1},
    {"timestamp", NULL, NULL, OF_GPU},  {"gpu_name", "name", NULL, OF_GPU},
    {"gpu_bus_id", NULL, NULL, OF_GPU}, {"gpu_serial", NULL, NULL, OF_GPU},
    {"gpu_uuid", NULL, NULL, OF_GPU},   {.name = NULL},
};

static void put_clocks(const struct smi_call *call, const struct smi_gpu *gpu,
                       const struct column *const *row, unsigned count, unsigned memory_mhz)
{
    unsigned clocks[CLOCKS_MAX];
    unsigned found = CLOCKS_MAX;
    char memory[16], graphics[16];
    const char *own[OWN_MAX] = {memory, graphics, ""};

    if (gpu->library->nvmlDeviceGetSupportedGraphicsClocks == NULL ||
        gpu->library->nvmlDeviceGetSupportedGraphicsClocks(gpu->device, memory_mhz, &found, clocks) !=
            NVML_SUCCESS)
        return;
    snprintf(memory, sizeof memory, "%u", memory_mhz);
    for (unsigned i = 0; i < found; i++) {
        snprintf(graphics, sizeof graphics, "%u", clocks[i]);
        put_line(call, gpu, row, count, own);
    }
}

int smi_query_clocks(const struct smi_call *call, const char *fields)
{
    const struct column *row[COLUMNS_MAX];
    unsigned count, memories[CLOCKS_MAX];
    int code = find_columns(call, fields, clock_columns, row, &count);

    for (unsigned i = 0; code == SMI_DONE && i < call->gpu_count; i++) {
        const struct smi_gpu *gpu = &call->gpus[i];
        unsigned found = CLOCKS_MAX;

        if (gpu->library->nvmlDeviceGetSupportedMemoryClocks == NULL ||
            gpu->library->nvmlDeviceGetSupportedMemoryClocks(gpu->device, &found, memories) != NVML_SUCCESS)
            continue;
        for (unsigned memory = 0; memory < found; memory++)
            put_clocks(call, gpu, row, count, memories[memory]);
    }
    return code;
}

static const struct column process_columns[] = {
    {"pid", NULL, NULL, 0},
    {"process_name", "name", NULL, 1},
    {"used_gpu_memory", "used_memory", "MiB", 2},
    {"timestamp", NULL, NULL, OF_GPU},
    {"gpu_name", NULL, NULL, OF_GPU},
    {"gpu_bus_id", NULL, NULL, OF_GPU},
    {"gpu_serial", NULL, NULL, OF_GPU},
    {"gpu_uuid", NULL, NULL, OF_GPU},
    {.name = NULL},
};

int smi_query_processes(const struct smi_call *call, const char *fields)
{
    const struct column *row[COLUMNS_MAX];
    struct smi_process processes[SMI_PROCESSES_MAX];
    unsigned count;
    int code = find_columns(call, fields, process_columns, row, &count);
    char pid[16], name[SMI_TEXT_MAX], memory[32];
    const char *own[OWN_MAX] = {pid, name, memory};

    for (unsigned i = 0; code == SMI_DONE && i < call->gpu_count; i++) {
        unsigned found = smi_processes(&call->gpus[i], processes);

        for (unsigned process = 0; process < found; process++) {
            if (!processes[process].computes)
                continue;
            snprintf(pid, sizeof pid, "%u", processes[process].of.pid);
            smi_process_name(call->library, processes[process].of.pid, name);
            if (processes[process].of.memory_bytes == NVML_MEMORY_UNKNOWN)
                snprintf(memory, sizeof memory, "%s", smi_unavailable(NVML_NOT_SUPPORTED));
            else
                snprintf(memory, sizeof memory, "%llu", processes[process].of.memory_bytes >> MIB_BITS);
            put_line(call, &call->gpus[i], row, count, own);
        }
    }
    return code;
}
