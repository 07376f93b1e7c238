/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for people: -L, -q with -d, and the table without options. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "emulator/smi/smi.h"

enum { MIB_BITS = 20, LABEL_COLUMNS = 42, INSTANCES_MAX = 7 };

/* What -d chooses from; a line without any is shown only where -d is not given. */
enum section {
    MEMORY = 1,
    UTILIZATION = 2,
    ECC = 4,
    TEMPERATURE = 8,
    POWER = 16,
    CLOCK = 32,
    COMPUTE = 64,
    PIDS = 128,
    PERFORMANCE = 256,
    SUPPORTED_CLOCKS = 512,
    EVERYTHING = 1024,
};

static const struct {
    const char *name;
    unsigned section;
} sections[] = {
    {"MEMORY", MEMORY},
    {"UTILIZATION", UTILIZATION},
    {"ECC", ECC},
    {"TEMPERATURE", TEMPERATURE},
    {"POWER", POWER},
    {"CLOCK", CLOCK},
    {"COMPUTE", COMPUTE},
    {"PIDS", PIDS},
    {"PERFORMANCE", PERFORMANCE},
    {"SUPPORTED_CLOCKS", SUPPORTED_CLOCKS},
};

/* A line of -q: a heading without a field, or a label and the field of --query-gpu behind it. */
static const struct {
    unsigned section;
    unsigned indent;
    const char *label, *field;
} lines[] = {
    {0, 4, "Product Name", "name"},
    {0, 4, "Display Mode", "display_mode"},
    {0, 4, "Display Active", "display_active"},
    {0, 4, "Persistence Mode", "persistence_mode"},
    {0, 4, "MIG Mode", NULL},
    {0, 8, "Current", "mig.mode.current"},
    {0, 8, "Pending", "mig.mode.pending"},
    {0, 4, "Driver Model", NULL},
    {0, 8, "Current", "driver_model.current"},
    {0, 8, "Pending", "driver_model.pending"},
    {0, 4, "Serial Number", "serial"},
    {0, 4, "GPU UUID", "uuid"},
    {0, 4, "VBIOS Version", "vbios_version"},
    {0, 4, "PCI", NULL},
    {0, 8, "Bus", "pci.bus"},
    {0, 8, "Device", "pci.device"},
    {0, 8, "Domain", "pci.domain"},
    {0, 8, "Device Id", "pci.device_id"},
    {0, 8, "Bus Id", "pci.bus_id"},
    {0, 8, "Sub System Id", "pci.sub_device_id"},
    {0, 4, "Fan Speed", "fan.speed"},
    {PERFORMANCE, 4, "Performance State", "pstate"},
    {PERFORMANCE, 4, "Clocks Event Reasons", NULL},
    {PERFORMANCE, 8, "Idle", "clocks_event_reasons.gpu_idle"},
    {PERFORMANCE, 8, "Applications Clocks Setting", "clocks_event_reasons.applications_clocks_setting"},
    {PERFORMANCE, 8, "SW Power Cap", "clocks_event_reasons.sw_power_cap"},
    {PERFORMANCE, 8, "HW Slowdown", "clocks_event_reasons.hw_slowdown"},
    {PERFORMANCE, 12, "HW Thermal Slowdown", "clocks_event_reasons.hw_thermal_slowdown"},
    {PERFORMANCE, 12, "HW Power Brake Slowdown", "clocks_event_reasons.hw_power_brake_slowdown"},
    {PERFORMANCE, 8, "Sync Boost", "clocks_event_reasons.sync_boost"},
    {PERFORMANCE, 8, "SW Thermal Slowdown", "clocks_event_reasons.sw_thermal_slowdown"},
    {MEMORY, 4, "FB Memory Usage", NULL},
    {MEMORY, 8, "Total", "memory.total"},
    {MEMORY, 8, "Reserved", "memory.reserved"},
    {MEMORY, 8, "Used", "memory.used"},
    {MEMORY, 8, "Free", "memory.free"},
    {COMPUTE, 4, "Compute Mode", "compute_mode"},
    {UTILIZATION, 4, "Utilization", NULL},
    {UTILIZATION, 8, "Gpu", "utilization.gpu"},
    {UTILIZATION, 8, "Memory", "utilization.memory"},
    {UTILIZATION, 8, "Encoder", "utilization.encoder"},
    {UTILIZATION, 8, "Decoder", "utilization.decoder"},
    {ECC, 4, "ECC Mode", NULL},
    {ECC, 8, "Current", "ecc.mode.current"},
    {ECC, 8, "Pending", "ecc.mode.pending"},
    {TEMPERATURE, 4, "Temperature", NULL},
    {TEMPERATURE, 8, "GPU Current Temp", "temperature.gpu"},
    {TEMPERATURE, 8, "Memory Current Temp", "temperature.memory"},
    {POWER, 4, "GPU Power Readings", NULL},
    {POWER, 8, "Power Draw", "power.draw"},
    {POWER, 8, "Average Power Draw", "power.draw.average"},
    {POWER, 8, "Instantaneous Power Draw", "power.draw.instant"},
    {POWER, 8, "Current Power Limit", "enforced.power.limit"},
    {POWER, 8, "Requested Power Limit", "power.limit"},
    {POWER, 8, "Default Power Limit", "power.default_limit"},
    {POWER, 8, "Min Power Limit", "power.min_limit"},
    {POWER, 8, "Max Power Limit", "power.max_limit"},
    {POWER, 4, "Module Power Readings", NULL},
    {POWER, 8, "Average Power Draw", "module.power.draw.average"},
    {POWER, 8, "Instantaneous Power Draw", "module.power.draw.instant"},
    {POWER, 8, "Current Power Limit", "module.enforced.power.limit"},
    {POWER, 8, "Requested Power Limit", "module.power.limit"},
    {POWER, 8, "Default Power Limit", "module.power.default_limit"},
    {POWER, 8, "Min Power Limit", "module.power.min_limit"},
    {POWER, 8, "Max Power Limit", "module.power.max_limit"},
    {CLOCK, 4, "Clocks", NULL},
    {CLOCK, 8, "Graphics", "clocks.current.graphics"},
    {CLOCK, 8, "SM", "clocks.current.sm"},
    {CLOCK, 8, "Memory", "clocks.current.memory"},
    {CLOCK, 8, "Video", "clocks.current.video"},
    {CLOCK, 4, "Applications Clocks", NULL},
    {CLOCK, 8, "Graphics", "clocks.applications.graphics"},
    {CLOCK, 8, "Memory", "clocks.applications.memory"},
    {CLOCK, 4, "Default Applications Clocks", NULL},
    {CLOCK, 8, "Graphics", "clocks.default_applications.graphics"},
    {CLOCK, 8, "Memory", "clocks.default_applications.memory"},
    {CLOCK, 4, "Max Clocks", NULL},
    {CLOCK, 8, "Graphics", "clocks.max.graphics"},
    {CLOCK, 8, "SM", "clocks.max.sm"},
    {CLOCK, 8, "Memory", "clocks.max.memory"},
};

static void put_labelled(FILE *out, unsigned indent, const char *label, const char *value, const char *unit)
{
    fprintf(out, "%*s%-*s: %s%s%s\n", (int)indent, "", LABEL_COLUMNS - (int)indent, label, value,
            unit != NULL ? " " : "", unit != NULL ? unit : "");
}

static void read_named(const struct smi_gpu *gpu, const char *name, char out_text[SMI_TEXT_MAX])
{
    smi_field_read(gpu, smi_field_find(name), out_text);
}

/* Reports spell what is missing without brackets, and temperatures with a unit. */
static void put_field(const struct smi_call *call, const struct smi_gpu *gpu, unsigned indent,
                      const char *label, const char *name)
{
    const struct smi_field *field = smi_field_find(name);
    const char *unit = strncmp(name, "temperature.", 12) == 0 ? "C" : field->unit;
    char text[SMI_TEXT_MAX];

    if (smi_field_read(gpu, field, text) == NVML_SUCCESS) {
        put_labelled(call->out, indent, label, text, unit);
        return;
    }
    text[strlen(text) - 1] = '\0';
    put_labelled(call->out, indent, label, text + 1, NULL);
}

static void put_supported_clocks(const struct smi_call *call, const struct smi_gpu *gpu)
{
    unsigned memories[8], clocks[256];
    unsigned memory_count = 8;

    fprintf(call->out, "    Supported Clocks\n");
    if (gpu->library->nvmlDeviceGetSupportedMemoryClocks == NULL ||
        gpu->library->nvmlDeviceGetSupportedGraphicsClocks == NULL ||
        gpu->library->nvmlDeviceGetSupportedMemoryClocks(gpu->device, &memory_count, memories) !=
            NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < memory_count; i++) {
        unsigned count = sizeof clocks / sizeof clocks[0];
        char text[16];

        snprintf(text, sizeof text, "%u", memories[i]);
        put_labelled(call->out, 8, "Memory", text, "MHz");
        if (gpu->library->nvmlDeviceGetSupportedGraphicsClocks(gpu->device, memories[i], &count, clocks) !=
            NVML_SUCCESS)
            continue;
        for (unsigned clock = 0; clock < count; clock++) {
            snprintf(text, sizeof text, "%u", clocks[clock]);
            put_labelled(call->out, 12, "Graphics", text, "MHz");
        }
    }
}

static void put_processes(const struct smi_call *call, const struct smi_gpu *gpu)
{
    struct smi_process processes[SMI_PROCESSES_MAX];
    unsigned count = smi_processes(gpu, processes);

    if (count == 0) {
        put_labelled(call->out, 4, "Processes", "None", NULL);
        return;
    }
    fprintf(call->out, "    Processes\n");
    for (unsigned i = 0; i < count; i++) {
        char text[SMI_TEXT_MAX];

        snprintf(text, sizeof text, "%u", processes[i].of.pid);
        put_labelled(call->out, 8, "Process ID", text, NULL);
        put_labelled(call->out, 12, "Type", smi_process_type(&processes[i]), NULL);
        smi_process_name(call->library, processes[i].of.pid, text);
        put_labelled(call->out, 12, "Name", text, NULL);
        snprintf(text, sizeof text, "%llu", processes[i].of.memory_bytes >> MIB_BITS);
        put_labelled(call->out, 12, "Used GPU Memory", text, "MiB");
    }
}

static int find_sections(const struct smi_call *call, const char *list, unsigned *out_sections)
{
    *out_sections = list == NULL ? EVERYTHING : 0;
    while (list != NULL) {
        size_t length = strcspn(list, ",");
        unsigned found = 0;

        for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
            if (strlen(sections[i].name) == length && strncasecmp(sections[i].name, list, length) == 0)
                found = sections[i].section;
        }
        if (found == 0) {
            fprintf(call->out, "Option -d has an unknown section: '%.*s' is not emulated.\n", (int)length,
                    list);
            return SMI_INVALID;
        }
        *out_sections |= found;
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
    return SMI_DONE;
}

static void put_cuda_version(const struct smi_call *call, char out_text[SMI_TEXT_MAX])
{
    int version = 0;

    if (call->library->nvmlSystemGetCudaDriverVersion_v2 != NULL &&
        call->library->nvmlSystemGetCudaDriverVersion_v2(&version) == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%d.%d", version / 1000, version % 1000 / 10);
    else
        snprintf(out_text, SMI_TEXT_MAX, "N/A");
}

static void put_report_head(const struct smi_call *call)
{
    time_t now = time(NULL);
    struct tm local;
    char text[SMI_TEXT_MAX];

    fprintf(call->out, "\n==============NVSMI LOG==============\n\n");
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &local);
    put_labelled(call->out, 0, "Timestamp", text, NULL);
    read_named(&call->gpus[0], "driver_version", text);
    put_labelled(call->out, 0, "Driver Version", text, NULL);
    put_cuda_version(call, text);
    put_labelled(call->out, 0, "CUDA Version", text, NULL);
    snprintf(text, sizeof text, "%u", call->system_count);
    fputc('\n', call->out);
    put_labelled(call->out, 0, "Attached GPUs", text, NULL);
}

int smi_report(const struct smi_call *call, const char *list)
{
    unsigned wanted;
    int code = find_sections(call, list, &wanted);

    if (code != SMI_DONE)
        return code;
    put_report_head(call);
    for (unsigned i = 0; i < call->gpu_count; i++) {
        const struct smi_gpu *gpu = &call->gpus[i];

        fprintf(call->out, "GPU %s\n", gpu->bus_id);
        for (size_t line = 0; line < sizeof lines / sizeof lines[0]; line++) {
            if (wanted != EVERYTHING && (wanted & lines[line].section) == 0)
                continue;
            if (lines[line].field == NULL)
                fprintf(call->out, "%*s%s\n", (int)lines[line].indent, "", lines[line].label);
            else
                put_field(call, gpu, lines[line].indent, lines[line].label, lines[line].field);
        }
        if ((wanted & SUPPORTED_CLOCKS) != 0)
            put_supported_clocks(call, gpu);
        if ((wanted & (PIDS | EVERYTHING)) != 0)
            put_processes(call, gpu);
        fputc('\n', call->out);
    }
    return SMI_DONE;
}

/* The instances of a divided GPU, below its line of -L. */
static void list_instances(const struct smi_call *call, const struct smi_gpu *gpu)
{
    struct nvml_device *instance;
    char name[SMI_TEXT_MAX], uuid[SMI_TEXT_MAX];

    for (unsigned i = 0; i < INSTANCES_MAX; i++) {
        const char *profile;

        if (call->library->nvmlDeviceGetMigDeviceHandleByIndex == NULL ||
            call->library->nvmlDeviceGetMigDeviceHandleByIndex(gpu->device, i, &instance) != NVML_SUCCESS ||
            call->library->nvmlDeviceGetName(instance, name, sizeof name) != NVML_SUCCESS ||
            call->library->nvmlDeviceGetUUID(instance, uuid, sizeof uuid) != NVML_SUCCESS)
            return;
        profile = strstr(name, "MIG ");
        fprintf(call->out, "  %-14s  Device %2u: (UUID: %s)\n", profile != NULL ? profile : name, i, uuid);
    }
}

int smi_list(const struct smi_call *call)
{
    for (unsigned i = 0; i < call->gpu_count; i++) {
        char name[SMI_TEXT_MAX], uuid[SMI_TEXT_MAX];

        read_named(&call->gpus[i], "name", name);
        read_named(&call->gpus[i], "uuid", uuid);
        fprintf(call->out, "GPU %u: %s (UUID: %s)\n", call->gpus[i].index, name, uuid);
        list_instances(call, &call->gpus[i]);
    }
    return SMI_DONE;
}

/* A value for the table: cut to its column, and N/A without brackets. */
static const char *cell(const struct smi_gpu *gpu, const char *name, char out_text[SMI_TEXT_MAX])
{
    read_named(gpu, name, out_text);
    return out_text[0] == '[' ? "N/A" : out_text;
}

/* "300W", of "300.00". */
static const char *whole(const struct smi_gpu *gpu, const char *name, const char *unit,
                         char out_text[SMI_TEXT_MAX])
{
    char text[SMI_TEXT_MAX];
    const char *value = cell(gpu, name, text);

    snprintf(out_text, SMI_TEXT_MAX, "%.*s%s", (int)strcspn(value, "."), value,
             strcmp(value, "N/A") == 0 ? "" : unit);
    return out_text;
}

static void put_row(const struct smi_call *call, const struct smi_gpu *gpu)
{
    char texts[9][SMI_TEXT_MAX];
    bool is_persistent = strcmp(cell(gpu, "persistence_mode", texts[0]), "Enabled") == 0;

    fprintf(call->out, "|%4u  %-27.27s %5s  | %-17s%3s | %20s |\n", gpu->index, cell(gpu, "name", texts[0]),
            is_persistent ? "On" : "Off", gpu->bus_id, "Off",
            cell(gpu, "ecc.errors.uncorrected.volatile.total", texts[1]));
    fprintf(call->out, "| %-4s %4s    %-3s%15s / %-5s | %8s / %-9s | %7s %12s |\n",
            whole(gpu, "fan.speed", "%", texts[0]), whole(gpu, "temperature.gpu", "C", texts[1]),
            cell(gpu, "pstate", texts[2]), whole(gpu, "power.draw", "W", texts[3]),
            whole(gpu, "power.limit", "W", texts[4]), whole(gpu, "memory.used", "MiB", texts[5]),
            whole(gpu, "memory.total", "MiB", texts[6]), whole(gpu, "utilization.gpu", "%", texts[7]),
            cell(gpu, "compute_mode", texts[8]));
    fprintf(call->out, "| %39s | %20s | %20s |\n", "", "", cell(gpu, "mig.mode.current", texts[0]));
    fputs("+-----------------------------------------+----------------------+----------------------+\n",
          call->out);
}

static void put_process_rows(const struct smi_call *call)
{
    struct smi_process processes[SMI_PROCESSES_MAX];
    unsigned shown = 0;

    fputs("\n+---------------------------------------------------------------------------------------+\n"
          "| Processes:                                                                            |\n"
          "|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |\n"
          "|        ID   ID                                                             Usage      |\n"
          "|=======================================================================================|\n",
          call->out);
    for (unsigned i = 0; i < call->gpu_count; i++) {
        unsigned count = smi_processes(&call->gpus[i], processes);

        for (unsigned process = 0; process < count; process++, shown++) {
            char name[SMI_TEXT_MAX];

            smi_process_name(call->library, processes[process].of.pid, name);
            fprintf(call->out, "|  %3u   N/A  N/A %10u %6s   %-36.36s %10lluMiB |\n", call->gpus[i].index,
                    processes[process].of.pid, smi_process_type(&processes[process]), name,
                    processes[process].of.memory_bytes >> MIB_BITS);
        }
    }
    if (shown == 0)
        fprintf(call->out, "|  %-84s |\n", "No running processes found");
    fputs("+---------------------------------------------------------------------------------------+\n",
          call->out);
}

int smi_summary(const struct smi_call *call)
{
    time_t now = time(NULL);
    struct tm local;
    char driver[SMI_TEXT_MAX], cuda[SMI_TEXT_MAX];

    localtime_r(&now, &local);
    strftime(driver, sizeof driver, "%a %b %e %H:%M:%S %Y", &local);
    fprintf(call->out, "%s\n", driver);
    read_named(&call->gpus[0], "driver_version", driver);
    put_cuda_version(call, cuda);
    fputs("+---------------------------------------------------------------------------------------+\n",
          call->out);
    fprintf(call->out, "| NVIDIA-SMI %-11sDriver Version: %-25.25sCUDA Version: %-9s|\n", "(emulated)",
            driver, cuda);
    fputs("|-----------------------------------------+----------------------+----------------------+\n"
          "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
          "| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |\n"
          "|                                         |                      |               MIG M. |\n"
          "|=========================================+======================+======================|\n",
          call->out);
    for (unsigned i = 0; i < call->gpu_count; i++)
        put_row(call, &call->gpus[i]);
    put_process_rows(call);
    return SMI_DONE;
}
