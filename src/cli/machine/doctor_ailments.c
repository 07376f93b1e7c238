/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong, and how to fix it. To add an ailment, add a row. */
#include <stdlib.h>

#include "cli/machine/doctor.h"

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
