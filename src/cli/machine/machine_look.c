/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at files, permissions and variables; never writes, and asks no device. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/machine/machine_look.h"

enum { PATH_SIZE = 512, LINE_SIZE = 4096 };
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

/* Reads the first line of a file; "" if there is none. Returns `line`. */
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

/* Returns whether a line of a file contains a word. */
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

/* Calls `take` with the path of every entry of a directory. */
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

/* Takes a display controller or accelerator of one of the vendors in question. */
static void take_pci(const char *entry, void *data)
{
    struct facts_machine *machine = data;
    char path[2 * PATH_SIZE + 16];
    char vendor[LINE_SIZE], kind[LINE_SIZE];

    snprintf(path, sizeof path, "%s/vendor", entry);
    first_line(path, vendor);
    snprintf(path, sizeof path, "%s/class", entry);
    first_line(path, kind);
    if (strncmp(kind, "0x03", 4) != 0 && strncmp(kind, "0x12", 4) != 0)
        return;
    machine->nvidia_on_bus |= strcmp(vendor, "0x10de") == 0;
    machine->amd_on_bus |= strcmp(vendor, "0x1002") == 0;
}

static void take_powercap(const char *entry, void *data)
{
    struct facts_machine *machine = data;
    char path[2 * PATH_SIZE + 16];

    snprintf(path, sizeof path, "%s/energy_uj", entry);
    if (access(path, F_OK) < 0)
        return;
    machine->powercap = true;
    machine->powercap_denied |= access(path, R_OK) < 0;
}

static bool has_capability(unsigned long long set, int bit)
{
    return (set >> bit & 1) != 0;
}

static void look_at_user(const char *root, struct facts_machine *machine)
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
    machine->root = geteuid() == 0;
    machine->reads_all_files =
        has_capability(set, CAP_BIT_DAC_OVERRIDE) || has_capability(set, CAP_BIT_DAC_READ_SEARCH);
    machine->reads_perf = has_capability(set, CAP_BIT_PERFMON) || has_capability(set, CAP_BIT_SYS_ADMIN);
    machine->perf_paranoid = NAN;
    line_under(root, "/proc/sys/kernel/perf_event_paranoid", line);
    if (line[0] == '-')
        machine->perf_paranoid = -1;
    else if (number_parse_u64(line, 10, &paranoid))
        machine->perf_paranoid = (double)paranoid;
}

static void look_at_machine(const char *root, struct facts_machine *machine)
{
    const char *capabilities = getenv("NVIDIA_DRIVER_CAPABILITIES");

    machine->container = there(root, "/.dockerenv") || there(root, "/run/.containerenv") ||
                         getenv("APPTAINER_CONTAINER") != NULL || getenv("SINGULARITY_CONTAINER") != NULL ||
                         getenv("KUBERNETES_SERVICE_HOST") != NULL;
    machine->wsl = file_has(root, "/proc/version", "microsoft") || there(root, "/dev/dxg");
    machine->virtual_machine = file_has(root, "/proc/cpuinfo", " hypervisor");
    machine->utility_left_out = capabilities != NULL && capabilities[0] != '\0' &&
                                strstr(capabilities, "utility") == NULL &&
                                strstr(capabilities, "all") == NULL;
    machine->cuda_visible_devices = getenv("CUDA_VISIBLE_DEVICES") != NULL;
    machine->hip_visible_devices = getenv("HIP_VISIBLE_DEVICES") != NULL;
    machine->rocr_visible_devices = getenv("ROCR_VISIBLE_DEVICES") != NULL;
}

/* "... Kernel Module  550.54.14  Thu ..." has the version behind those words. */
static void look_at_kernel_driver(const char *root, char version[DEVICE_TEXT_MAX],
                                  struct facts_machine *machine)
{
    char line[LINE_SIZE];
    const char *at = strstr(line_under(root, "/proc/driver/nvidia/version", line), "Kernel Module");
    size_t length;

    machine->nvidia_module = there(root, "/proc/driver/nvidia/version") || there(root, "/sys/module/nvidia");
    if (at == NULL)
        return;
    at += strcspn(at, "0123456789");
    length = strspn(at, "0123456789.");
    snprintf(version, DEVICE_TEXT_MAX, "%.*s", (int)(length < DEVICE_TEXT_MAX ? length : 0), at);
    machine->nvidia_kernel_driver = version;
}

static void look_at_drivers(const char *root, struct facts_machine *machine)
{
    each_entry(root, "/sys/bus/pci/devices", take_pci, machine);
    each_entry(root, "/sys/class/powercap", take_powercap, machine);
    machine->nvidia_file_denied = denied(root, "/dev/nvidiactl", R_OK | W_OK);
    machine->amd_module = there(root, "/sys/module/amdgpu");
    machine->amd_file_denied = denied(root, "/dev/kfd", R_OK | W_OK);
    machine->perf_power = there(root, "/sys/bus/event_source/devices/power/events/energy-pkg");
}

/* With version 2 beside version 1, version 2 is mounted at unified. */
static enum facts_cgroups find_cgroups(const char *root)
{
    if (there(root, "/sys/fs/cgroup/cgroup.controllers"))
        return CGROUPS_2;
    if (there(root, "/sys/fs/cgroup/unified/cgroup.procs"))
        return CGROUPS_BOTH;
    return there(root, "/sys/fs/cgroup/memory") || there(root, "/sys/fs/cgroup/cpu") ? CGROUPS_1
                                                                                     : CGROUPS_NONE;
}

static void look_at_kernel(const char *root, struct machine_texts *texts, struct facts_machine *machine)
{
    struct utsname name;

    if (uname(&name) == 0) {
        snprintf(texts->kernel, sizeof texts->kernel, "%.*s", DEVICE_TEXT_MAX - 1, name.release);
        snprintf(texts->architecture, sizeof texts->architecture, "%.*s", DEVICE_TEXT_MAX - 1, name.machine);
        machine->kernel = texts->kernel;
        machine->architecture = texts->architecture;
    }
    machine->cgroups = find_cgroups(root);
    look_at_kernel_driver(root, texts->nvidia_kernel_driver, machine);
}

void machine_look(const char *root, struct machine_texts *texts, struct facts_machine *out_machine)
{
    *out_machine = (struct facts_machine){.root = false};
    look_at_user(root, out_machine);
    look_at_machine(root, out_machine);
    look_at_drivers(root, out_machine);
    look_at_kernel(root, texts, out_machine);
}
