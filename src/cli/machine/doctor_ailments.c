/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong, and how to fix it. To add an ailment, add a row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine/doctor.h"
#include "knob/knob_defaults.h"
#include "knob/unseen.h"
#include "knob/way/daemon_permit.h"

const char *const doctor_topics[] = {"nvidia", "amd", "rapl", "system", NULL};

static bool nvidia_not_driven(const struct doctor_facts *facts)
{
    return facts->machine.nvidia_on_bus && !facts->machine.nvidia_module && !facts->machine.container &&
           !facts->nvidia_works;
}

static bool nvidia_no_library(const struct doctor_facts *facts)
{
    return facts->machine.nvidia_module && !facts->nvidia_works && !facts->nvidia_mismatch &&
           !facts->machine.container && !facts->machine.nvidia_file_denied;
}

static bool nvidia_mismatch(const struct doctor_facts *facts)
{
    return facts->nvidia_mismatch;
}

static bool nvidia_denied(const struct doctor_facts *facts)
{
    return facts->machine.nvidia_file_denied;
}

static bool nvidia_not_in_container(const struct doctor_facts *facts)
{
    return facts->machine.container && !facts->nvidia_works && !facts->machine.utility_left_out &&
           (facts->machine.nvidia_on_bus || facts->machine.nvidia_module);
}

static bool nvidia_utility(const struct doctor_facts *facts)
{
    return facts->machine.utility_left_out && !facts->nvidia_works;
}

static bool nvidia_absent(const struct doctor_facts *facts)
{
    return !facts->nvidia_works && !facts->machine.nvidia_on_bus && !facts->machine.nvidia_module;
}

static bool gpu_silent(const struct doctor_facts *facts)
{
    return facts->gpus_silent > 0;
}

static bool gpu_without_counter(const struct doctor_facts *facts)
{
    return facts->without_counter > 0;
}

static bool gpu_without_persistence(const struct doctor_facts *facts)
{
    return facts->without_persistence > 0;
}

static bool gpu_with_mig(const struct doctor_facts *facts)
{
    return facts->with_mig > 0;
}

static bool processes_denied(const struct doctor_facts *facts)
{
    return facts->processes_denied > 0;
}

static bool others_unseen(const struct doctor_facts *facts)
{
    return facts->others_unseen > 0;
}

static bool wsl(const struct doctor_facts *facts)
{
    return facts->machine.wsl;
}

static bool amd_not_driven(const struct doctor_facts *facts)
{
    return facts->machine.amd_on_bus && !facts->machine.amd_module && !facts->amd_works;
}

static bool amd_no_library(const struct doctor_facts *facts)
{
    return facts->machine.amd_module && !facts->amd_works && !facts->machine.amd_file_denied;
}

static bool amd_denied(const struct doctor_facts *facts)
{
    return facts->machine.amd_file_denied;
}

static bool rapl_denied(const struct doctor_facts *facts)
{
    return facts->machine.powercap_denied && !facts->cpu_measured;
}

static bool rapl_part_denied(const struct doctor_facts *facts)
{
    return facts->machine.powercap_denied && facts->cpu_measured && !facts->dram_measured;
}

static bool perf_denied(const struct doctor_facts *facts)
{
    return facts->machine.perf_power && !facts->cpu_measured && !facts->machine.reads_perf &&
           facts->machine.perf_paranoid > 0;
}

static bool rapl_not_loaded(const struct doctor_facts *facts)
{
    return !facts->machine.powercap && !facts->machine.perf_power && !facts->cpu_measured &&
           !facts->machine.virtual_machine && !facts->machine.container && !facts->machine.wsl;
}

static bool rapl_hidden_in_container(const struct doctor_facts *facts)
{
    return facts->machine.container && !facts->machine.powercap && !facts->machine.perf_power &&
           !facts->cpu_measured && !facts->machine.virtual_machine;
}

static bool rapl_virtual(const struct doctor_facts *facts)
{
    return !facts->machine.powercap && !facts->machine.perf_power && !facts->cpu_measured &&
           facts->machine.virtual_machine;
}

static bool cpu_could_be_estimated(const struct doctor_facts *facts)
{
    return !facts->cpu_measured && !facts->cpu_estimated;
}

static bool cpu_estimated(const struct doctor_facts *facts)
{
    return facts->cpu_estimated;
}

static bool dram_not_offered(const struct doctor_facts *facts)
{
    return facts->cpu_measured && !facts->dram_measured && !facts->machine.powercap_denied;
}

static bool gpus_chosen(const struct doctor_facts *facts)
{
    return facts->machine.cuda_visible_devices || facts->machine.hip_visible_devices ||
           facts->machine.rocr_visible_devices;
}

static bool emulated(const struct doctor_facts *facts)
{
    return facts->emulated;
}

static bool container(const struct doctor_facts *facts)
{
    return facts->machine.container;
}

const struct ailment doctor_ailments[] = {
    {"nvidia", SEVERITY_PROBLEM, nvidia_not_driven,
     "an NVIDIA GPU is plugged in, but the kernel's driver is not loaded",
     "sudo modprobe nvidia   (not installed: sudo apt-get install nvidia-driver)"},
    {"nvidia", SEVERITY_PROBLEM, nvidia_no_library,
     "the kernel's driver is loaded, but its management library cannot be used",
     "sudo apt-get install libnvidia-ml1   (or name the library with --nvml FILE)"},
    {"nvidia", SEVERITY_PROBLEM, nvidia_mismatch,
     "the library is of another version than the driver in the kernel, which was updated while it ran",
     "sudo reboot   (or: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia)"},
    {"nvidia", SEVERITY_PROBLEM, nvidia_denied, "/dev/nvidiactl may not be opened by this user",
     "ls -l /dev/nvidia*; sudo usermod -a -G \"$(stat -c %G /dev/nvidiactl)\" \"$USER\"   (then log in "
     "again)"},
    {"nvidia", SEVERITY_PROBLEM, nvidia_not_in_container,
     "this is a container that was started without the machine's GPUs",
     "docker run --gpus all ...   (Podman: --device nvidia.com/gpu=all; Slurm: srun --gres=gpu:1)"},
    {"nvidia", SEVERITY_PROBLEM, nvidia_utility,
     "this container was given GPUs without the management library (NVIDIA_DRIVER_CAPABILITIES lacks "
     "utility)",
     "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."},
    {"nvidia", SEVERITY_NOTE, nvidia_absent, "this machine has no NVIDIA GPU", NULL},
    {"nvidia", SEVERITY_PROBLEM, gpu_silent, "a GPU is there, of which neither energy nor power can be read",
     "nvidia-smi -q -d POWER   (a GPU that fell off the bus comes back with: sudo reboot)"},
    {"nvidia", SEVERITY_NOTE, gpu_without_counter,
     "a GPU does not count energy; its power is sampled and summed", NULL},
    {"nvidia", SEVERITY_NOTE, gpu_without_persistence,
     "persistence mode is off: when nobody uses a GPU its driver unloads, its counter starts anew, and "
     "opening "
     "it takes seconds",
     "sudo nvidia-smi -pm 1"},
    {"nvidia", SEVERITY_NOTE, gpu_with_mig,
     "a GPU is divided by MIG; its energy is known for the whole only, so share it among those who use it",
     NULL},
    {"nvidia", SEVERITY_NOTE, processes_denied, "the processes on a GPU cannot be seen",
     "docker run --pid=host ...   (outside of containers: sudo)"},
    {"amd", SEVERITY_PROBLEM, amd_not_driven,
     "an AMD GPU is plugged in, but the kernel's driver is not loaded", "sudo modprobe amdgpu"},
    {"amd", SEVERITY_PROBLEM, amd_no_library, "the kernel's driver is loaded, but AMD SMI cannot be used",
     "sudo apt-get install amd-smi-lib   (of ROCm's repository; or name the library with --amdsmi FILE)"},
    {"amd", SEVERITY_PROBLEM, amd_denied, "/dev/kfd may not be opened by this user",
     "sudo usermod -a -G render,video \"$USER\"   (then log in again)"},
    {"rapl", SEVERITY_PROBLEM, rapl_denied,
     "the CPU counts its energy, but the counters may not be read by this user (CVE-2020-8694)",
     "sudo chmod -R a+r /sys/class/powercap/intel-rapl/   (until the next boot, for every user)"},
    {"rapl", SEVERITY_PROBLEM, rapl_denied, "to allow it at every boot",
     "echo 'SUBSYSTEM==\"powercap\", ACTION==\"add\", RUN+=\"/bin/chmod a+r /sys%p/energy_uj\"' | sudo tee "
     "/etc/udev/rules.d/70-powercap.rules"},
    {"rapl", SEVERITY_PROBLEM, rapl_denied, "to allow it to this program alone",
     "sudo setcap cap_dac_read_search=ep \"$(command -v flyball)\""},
    {"rapl", SEVERITY_PROBLEM, perf_denied,
     "the kernel has perf events of energy, but perf_event_paranoid keeps this user from them",
     "sudo sysctl kernel.perf_event_paranoid=0   (or: sudo setcap cap_perfmon=ep \"$(command -v flyball)\")"},
    {"rapl", SEVERITY_NOTE, rapl_part_denied,
     "some counters may not be read by this user, those of memory among them",
     "sudo chmod -R a+r /sys/class/powercap/intel-rapl/   (until the next boot, for every user)"},
    {"rapl", SEVERITY_PROBLEM, rapl_not_loaded, "the kernel shows no energy counters of the CPU",
     "sudo modprobe intel_rapl_msr   (also for AMD's CPUs; perf events: sudo modprobe rapl)"},
    {"rapl", SEVERITY_NOTE, rapl_hidden_in_container,
     "this container does not show the CPU's energy counters",
     "docker run -v /sys/class/powercap:/sys/class/powercap:ro -v "
     "/sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro ..."},
    {"rapl", SEVERITY_NOTE, rapl_virtual,
     "this is a virtual machine, which shows no energy counters of the CPU; measure on its host", NULL},
    {"rapl", SEVERITY_NOTE, cpu_could_be_estimated,
     "no CPU sensor can be read, and no power is stated to estimate the CPU's energy from",
     "flyball run --cpu-tdp WATTS -- ...   (or 'cpu_tdp_w = WATTS' in the section [device] of flyball.ini)"},
    {"rapl", SEVERITY_NOTE, cpu_estimated,
     "the CPU's energy is an estimate from its use and the stated power", NULL},
    {"rapl", SEVERITY_NOTE, dram_not_offered,
     "this CPU does not count the energy of memory apart, as many do not", NULL},
    {"system", SEVERITY_NOTE, gpus_chosen,
     "a variable such as CUDA_VISIBLE_DEVICES chooses GPUs; 'flyball run' measures those alone",
     "flyball run -i all -- ..."},
    {"system", SEVERITY_NOTE, wsl,
     "this is the Windows Subsystem for Linux: its driver offers few figures, and no limits can be set",
     NULL},
    {"system", SEVERITY_NOTE, container,
     "this is a container: the CPU's figures are the whole machine's, and locks that count devices once are "
     "shared with the machine only where XDG_RUNTIME_DIR or /tmp is",
     NULL},
    {"system", SEVERITY_NOTE, others_unseen,
     "a GPU is only measured: its memory is in use, or it is busy, by no process that is seen in this "
     "container, or neither can be read",
     "docker run --pid=host ...   (where the GPU is the container's alone: export FLYBALL_CONTAINED=1)"},
    {"system", SEVERITY_NOTE, emulated, "some devices are emulated; nothing they say was measured", NULL},
    {.topic = NULL},
};

const char *doctor_topic_of(const struct device *device)
{
    if (device->info.kind != DEVICE_GPU)
        return "rapl";
    return device->backend->name[0] == 'a' ? "amd" : "nvidia";
}

/* Whether this user may set power limits: by the driver, or because a daemon does it for him. */

static const char
    start_it[] = "sudo systemctl enable --now flyballd.service",
    allow_it[] = "printf '[rule %s]\\nfor = user:%s\\nallow = control\\n' \"$USER\" \"$USER\" | sudo tee "
                 "-a /etc/flyball/flyballd.ini && sudo systemctl reload flyballd.service";

static void take_permit(const struct daemon_permit *permit, struct doctor_daemon *daemon)
{
    daemon->answers |= permit->word != DAEMON_ABSENT;
    daemon->lets += permit->word == DAEMON_LETS;
    daemon->refuses += permit->word == DAEMON_REFUSES;
    daemon->unasked += permit->word == DAEMON_OTHER || permit->word == DAEMON_UNWELL;
    if (permit->why[0] != '\0' && (daemon->why[0] == '\0' || daemon->refuses == 1))
        snprintf(daemon->why, sizeof daemon->why, "%.*s", DOCTOR_WHY_MAX - 1, permit->why);
}

void doctor_ask_daemon(const struct device_list *list, const struct site *site, struct doctor_facts *facts)
{
    facts->daemon = (struct doctor_daemon){.place = site->daemon, .sought = true};
    for (size_t i = 0; i < list->count && !facts->machine.root; i++) {
        struct daemon_permit permit;

        if (list->devices[i].info.kind != DEVICE_GPU)
            continue;
        daemon_permit_ask(site, &list->devices[i], &permit);
        take_permit(&permit, &facts->daemon);
        if (permit.word == DAEMON_ABSENT)
            break; /* nobody is there for the others either */
    }
}

static const char *settable_by_daemon(const struct doctor_daemon *daemon, char text[DOCTOR_SETTABLE_MAX])
{
    size_t asked = daemon->lets + daemon->refuses + daemon->unasked;

    if (daemon->refuses == 0 && daemon->lets == asked) {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits could be set: the driver lets root alone, and flyballd at '%.200s' does it for "
            "this user (nothing was set to find out)",
            daemon->place);
        return NULL;
    }
    if (daemon->lets + daemon->refuses == 0) {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits need root; the daemon at '%.200s' would be asked to set them, and does not say "
            "beforehand whether it will%s%s",
            daemon->place, daemon->why[0] != '\0' ? ": " : "", daemon->why);
        return NULL;
    }
    snprintf(text, DOCTOR_SETTABLE_MAX,
             "power limits need root; flyballd at '%.200s' sets them for this user on %zu of %zu GPUs: %s",
             daemon->place, daemon->lets, asked, daemon->why);
    return allow_it;
}

const char *doctor_settable(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX])
{
    const struct doctor_daemon *daemon = &facts->daemon;

    if (facts->gpus == 0)
        snprintf(text, DOCTOR_SETTABLE_MAX, "there is no GPU whose power limit could be set");
    else if (facts->machine.wsl)
        snprintf(text, DOCTOR_SETTABLE_MAX, "power limits cannot be set under WSL");
    else if (facts->machine.root)
        snprintf(text, DOCTOR_SETTABLE_MAX,
                 "power limits could be set: you are root (nothing was set to find out)");
    else if (daemon->answers)
        return settable_by_daemon(daemon, text);
    else if (!daemon->sought)
        snprintf(text, DOCTOR_SETTABLE_MAX,
                 "power limits need root, as 'sudo nvidia-smi -i 0 -pl WATTS' does (nothing was set to find "
                 "out)");
    else {
        snprintf(
            text, DOCTOR_SETTABLE_MAX,
            "power limits need root, as 'sudo nvidia-smi -i 0 -pl WATTS' does, or flyballd, which sets them "
            "for users and does not run here (nothing was set to find out)%s%s",
            daemon->why[0] != '\0' ? ": " : "", daemon->why);
        return start_it;
    }
    return NULL;
}

enum { FIRST_WORD_MAX = 128 };

static const char *measured(const struct doctor_facts *facts, char text[FIRST_WORD_MAX])
{
    if (facts->gpus > 0 && facts->gpus_silent == 0)
        return "yes";
    if (facts->gpus > facts->gpus_silent) {
        snprintf(text, FIRST_WORD_MAX, "%zu of %zu GPUs", facts->gpus - facts->gpus_silent, facts->gpus);
        return text;
    }
    if (!facts->anything)
        return "no";
    return facts->gpus > 0 ? "no GPU, but other devices" : "yes, but there is no GPU here";
}

static const char *set(const struct doctor_facts *facts, char text[FIRST_WORD_MAX])
{
    const struct doctor_daemon *daemon = &facts->daemon;
    size_t asked = daemon->lets + daemon->refuses + daemon->unasked;

    if (facts->gpus == 0)
        return "no, there is no GPU here";
    if (facts->machine.wsl)
        return "no, not under WSL";
    if (facts->machine.root)
        return "yes, as root";
    if (!daemon->sought)
        return "with root's rights or flyballd";
    if (!daemon->answers)
        return "no. Ask root for flyballd";
    if (daemon->lets + daemon->refuses == 0)
        return "not known; the daemon does not say beforehand";
    if (daemon->lets == asked)
        return "yes, through flyballd";
    snprintf(text, FIRST_WORD_MAX, "on %zu of %zu GPUs. Ask root for a rule of flyballd", daemon->lets,
             asked);
    return text;
}

void doctor_first(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX])
{
    char which[FIRST_WORD_MAX], where[FIRST_WORD_MAX];

    snprintf(text, DOCTOR_SETTABLE_MAX, "Can measure: %s. Can set limits: %s.", measured(facts, which),
             set(facts, where));
}

/* Gathers the facts that the ailments use; sets nothing on a device. */

enum { PROCESSES_MAX = 64 };

static void look_at_reports(const struct device_list *list, struct doctor_facts *facts)
{
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
    facts->processes_denied +=
        device_processes(device, DEVICE_PROCESSES_COMPUTING, processes, PROCESSES_MAX, &count) == FLY_EPERM;
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

void doctor_look(const struct device_list *list, const struct facts_machine *machine,
                 struct doctor_facts *out_facts)
{
    *out_facts = (struct doctor_facts){.machine = *machine};
    look_at_reports(list, out_facts);
    for (size_t i = 0; i < list->count; i++)
        look_at_device(&list->devices[i], out_facts);
}

void doctor_look_outside(const struct device_list *list, struct doctor_facts *facts)
{
    struct turnable_options others = knob_others(&(struct knob_options){.program = NULL});

    others.begins = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];

        if (device->info.kind == DEVICE_GPU)
            facts->others_unseen += unseen_check(&others, device, NULL) < 0;
    }
}
