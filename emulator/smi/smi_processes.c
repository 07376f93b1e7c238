/* SPDX-License-Identifier: Apache-2.0 */
/* The processes at work on GPUs: found, named, and shown as `nvidia-smi pmon` shows them. */
#include <string.h>

#include "emulator/smi/smi.h"

unsigned smi_processes(const struct smi_gpu *gpu, struct nvml_process out_processes[SMI_PROCESSES_MAX])
{
    unsigned count = SMI_PROCESSES_MAX;

    if (gpu->library->nvmlDeviceGetComputeRunningProcesses_v3 == NULL ||
        gpu->library->nvmlDeviceGetComputeRunningProcesses_v3(gpu->device, &count, out_processes) !=
            NVML_SUCCESS)
        return 0;
    return count;
}

void smi_process_name(const struct smi_library *library, unsigned pid, char out_text[SMI_TEXT_MAX])
{
    char name[4 * SMI_TEXT_MAX];

    if (library->nvmlSystemGetProcessName == NULL ||
        library->nvmlSystemGetProcessName(pid, name, sizeof name) != NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "-");
    else
        snprintf(out_text, SMI_TEXT_MAX, "%.*s", SMI_TEXT_MAX - 1, name);
}

/* How busy a process keeps the GPU, in percent; false when that is not known. */
static bool find_share(const struct smi_gpu *gpu, unsigned pid, struct nvml_process_utilization *out_share)
{
    struct nvml_process_utilization shares[SMI_PROCESSES_MAX];
    unsigned count = SMI_PROCESSES_MAX;

    if (gpu->library->nvmlDeviceGetProcessUtilization == NULL ||
        gpu->library->nvmlDeviceGetProcessUtilization(gpu->device, shares, &count, 0) != NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (shares[i].pid == pid) {
            *out_share = shares[i];
            return true;
        }
    }
    return false;
}

static void put_process(const struct smi_call *call, const struct smi_gpu *gpu, unsigned pid)
{
    struct nvml_process_utilization share;
    char name[SMI_TEXT_MAX];
    const char *file;

    smi_process_name(call->library, pid, name);
    file = strrchr(name, '/');
    fprintf(call->out, "%5u %10u %5s", gpu->index, pid, "C");
    if (find_share(gpu, pid, &share))
        fprintf(call->out, " %6u %6u %6u %6u", share.sm, share.memory, share.encoder, share.decoder);
    else
        fprintf(call->out, " %6s %6s %6s %6s", "-", "-", "-", "-");
    fprintf(call->out, " %6s %6s    %s\n", "-", "-", file != NULL ? file + 1 : name);
}

int smi_monitor_processes(const struct smi_call *call)
{
    struct nvml_process processes[SMI_PROCESSES_MAX];

    if (call->header)
        fputs("# gpu         pid  type     sm    mem    enc    dec    jpg    ofa    command \n"
              "# Idx           #   C/G      %      %      %      %      %      %    name \n",
              call->out);
    for (unsigned i = 0; i < call->gpu_count; i++) {
        unsigned count = smi_processes(&call->gpus[i], processes);

        for (unsigned process = 0; process < count; process++)
            put_process(call, &call->gpus[i], processes[process].pid);
        if (count == 0)
            fprintf(call->out, "%5u %10s %5s %6s %6s %6s %6s %6s %6s    %s\n", call->gpus[i].index, "-", "-",
                    "-", "-", "-", "-", "-", "-", "-");
    }
    return SMI_DONE;
}
