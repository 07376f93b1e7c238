/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers what the ailments ask about. Files are looked at, never written; nothing of a device is set. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/machine/doctor.h"

enum { PATH_SIZE = 512, LINE_SIZE = 4096, PROCESSES_MAX = 64 };
enum { CAP_BIT_DAC_OVERRIDE = 1, CAP_BIT_DAC_READ_SEARCH = 2, CAP_BIT_SYS_ADMIN = 21, CAP_BIT_PERFMON = 38 };

static const char *under(const char *root, const char *path, char full[PATH_SIZE])
{
    snprintf(full, PATH_SIZE, "%s%s", strcmp(root, "/") == 0 ? "" : root, path);
    return full;
}

static bool there(const char *root, const char *path)
{
    char full[PATH_SIZE];

    return access(under(root, path, full), F_OK) == 0;
}

static bool denied(const char *root, const char *path, int mode)
{
    char full[PATH_SIZE];

    return there(root, path) && access(under(root, path, full), mode) < 0 && errno == EACCES;
}

/* The first line of a file; "" without one. Returns `line`. */
static char *first_line(const char *path, char line[LINE_SIZE])
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (file == NULL)
        return line;
    if (fgets(line, LINE_SIZE, file) == NULL)
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static char *line_under(const char *root, const char *path, char line[LINE_SIZE])
{
    char full[PATH_SIZE];

    return first_line(under(root, path, full), line);
}

/* Whether a line of a file holds a word. */
static bool file_has(const char *root, const char *path, const char *word)
{
    char full[PATH_SIZE];
    char line[LINE_SIZE];
    FILE *file = fopen(under(root, path, full), "re");
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strcasestr(line, word) != NULL;
    if (file != NULL)
        fclose(file);
    return found;
}

/* Calls back with the path of every entry of a directory. */
static void each_entry(const char *root, const char *path, void (*take)(const char *entry, void *data),
                       void *data)
{
    char full[PATH_SIZE];
    char entry_path[2 * PATH_SIZE];
    DIR *directory = opendir(under(root, path, full));
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(entry_path, sizeof entry_path, "%s/%s", full, entry->d_name);
        take(entry_path, data);
    }
    if (directory != NULL)
        closedir(directory);
}

/* A display controller or accelerator of a vendor that is looked for. */
static void take_pci(const char *entry, void *data)
{
    struct doctor_facts *facts = data;
    char path[2 * PATH_SIZE + 16];
    char vendor[LINE_SIZE], kind[LINE_SIZE];

    snprintf(path, sizeof path, "%s/vendor", entry);
    first_line(path, vendor);
    snprintf(path, sizeof path, "%s/class", entry);
    first_line(path, kind);
    if (strncmp(kind, "0x03", 4) != 0 && strncmp(kind, "0x12", 4) != 0)
        return;
    facts->nvidia_on_bus |= strcmp(vendor, "0x10de") == 0;
    facts->amd_on_bus |= strcmp(vendor, "0x1002") == 0;
}

static void take_powercap(const char *entry, void *data)
{
    struct doctor_facts *facts = data;
    char path[2 * PATH_SIZE + 16];

    snprintf(path, sizeof path, "%s/energy_uj", entry);
    if (access(path, F_OK) < 0)
        return;
    facts->powercap = true;
    facts->powercap_denied |= access(path, R_OK) < 0;
}

static bool has_capability(unsigned long long set, int bit)
{
    return (set >> bit & 1) != 0;
}

static void look_at_user(const char *root, struct doctor_facts *facts)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[LINE_SIZE];
    unsigned long long set = 0;
    uint64_t paranoid;

    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0)
            set = strtoull(line + 7, NULL, 16);
    }
    if (status != NULL)
        fclose(status);
    facts->root = geteuid() == 0;
    facts->reads_all_files =
        has_capability(set, CAP_BIT_DAC_OVERRIDE) || has_capability(set, CAP_BIT_DAC_READ_SEARCH);
    facts->reads_perf = has_capability(set, CAP_BIT_PERFMON) || has_capability(set, CAP_BIT_SYS_ADMIN);
    facts->perf_paranoid = PARANOID_UNKNOWN;
    line_under(root, "/proc/sys/kernel/perf_event_paranoid", line);
    if (line[0] == '-')
        facts->perf_paranoid = -1;
    else if (number_parse_u64(line, 10, &paranoid))
        facts->perf_paranoid = (int)paranoid;
}

static void look_at_machine(const char *root, struct doctor_facts *facts)
{
    const char *capabilities = getenv("NVIDIA_DRIVER_CAPABILITIES");
    const char *const variables[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};

    facts->container = there(root, "/.dockerenv") || there(root, "/run/.containerenv") ||
                       getenv("APPTAINER_CONTAINER") != NULL || getenv("SINGULARITY_CONTAINER") != NULL ||
                       getenv("KUBERNETES_SERVICE_HOST") != NULL;
    facts->wsl = file_has(root, "/proc/version", "microsoft") || there(root, "/dev/dxg");
    facts->virtual_machine = file_has(root, "/proc/cpuinfo", " hypervisor");
    facts->utility_left_out = capabilities != NULL && capabilities[0] != '\0' &&
                              strstr(capabilities, "utility") == NULL && strstr(capabilities, "all") == NULL;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        facts->visible_set |= getenv(variables[i]) != NULL;
}

/* "... Kernel Module  550.54.14  Thu ..." has the version behind those words. */
static void look_at_kernel_driver(const char *root, struct doctor_facts *facts)
{
    char line[LINE_SIZE];
    const char *at = strstr(line_under(root, "/proc/driver/nvidia/version", line), "Kernel Module");
    size_t length;

    facts->nvidia_module = there(root, "/proc/driver/nvidia/version") || there(root, "/sys/module/nvidia");
    if (at == NULL)
        return;
    at += strcspn(at, "0123456789");
    length = strspn(at, "0123456789.");
    snprintf(facts->kernel_driver, sizeof facts->kernel_driver, "%.*s",
             (int)(length < DEVICE_TEXT_MAX ? length : 0), at);
}

static void look_at_drivers(const char *root, const struct device_list *list, struct doctor_facts *facts)
{
    each_entry(root, "/sys/bus/pci/devices", take_pci, facts);
    each_entry(root, "/sys/class/powercap", take_powercap, facts);
    look_at_kernel_driver(root, facts);
    facts->nvidia_file_denied = denied(root, "/dev/nvidiactl", R_OK | W_OK);
    facts->amd_module = there(root, "/sys/module/amdgpu");
    facts->amd_file_denied = denied(root, "/dev/kfd", R_OK | W_OK);
    facts->perf_power = there(root, "/sys/bus/event_source/devices/power/events/energy-pkg");
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];

        if (strcmp(report->backend->name, "nvml") == 0) {
            facts->nvidia_works = report->error.code == 0;
            facts->nvidia_mismatch = strstr(report->error.text, "updated while it ran") != NULL;
        }
        if (strcmp(report->backend->name, "amdsmi") == 0)
            facts->amd_works = report->error.code == 0;
    }
}

static void look_at_gpu(const struct device *device, const struct reading *values, bool answers,
                        struct doctor_facts *facts)
{
    struct device_process processes[PROCESSES_MAX];
    size_t count;

    facts->gpus++;
    facts->gpus_silent += !answers;
    facts->without_counter += answers && values[QUANTITY_ENERGY].state != READING_OK;
    facts->without_persistence +=
        values[QUANTITY_PERSISTENCE].state == READING_OK && values[QUANTITY_PERSISTENCE].value == 0;
    facts->with_mig += device->info.mig;
    if (device->backend->processes != NULL)
        facts->processes_denied +=
            device->backend->processes(device, processes, PROCESSES_MAX, &count) == FLY_EPERM;
}

static void look_at_device(const struct device *device, struct doctor_facts *facts)
{
    struct device_reading reading;
    bool answers = device_answers(device, &clock_real);

    device_read(device, &clock_real, QUANTITY_ALL, &reading);
    facts->anything |= answers;
    facts->emulated |= device->info.emulated;
    if (device->info.kind == DEVICE_GPU)
        look_at_gpu(device, reading.values, answers, facts);
    if (device->info.kind == DEVICE_CPU && answers && device->info.estimated)
        facts->cpu_estimated = true;
    if (device->info.kind == DEVICE_CPU && answers && !device->info.estimated)
        facts->cpu_measured = true;
    if (device->info.kind == DEVICE_DRAM && answers)
        facts->dram_measured = true;
}

void doctor_look(const struct device_list *list, const char *root, struct doctor_facts *out_facts)
{
    *out_facts = (struct doctor_facts){.root = false};
    look_at_user(root, out_facts);
    look_at_machine(root, out_facts);
    look_at_drivers(root, list, out_facts);
    for (size_t i = 0; i < list->count; i++)
        look_at_device(&list->devices[i], out_facts);
}
