/* SPDX-License-Identifier: Apache-2.0 */
/* The processes at work on GPUs: found, named, and shown as `nvidia-smi pmon` shows them. */
#include <string.h>

#include "emulator/smi/smi.h"

enum { SAMPLES_MAX = 1024 };

/* A list of the driver; none where it fails. */
static unsigned ask(int (*list)(struct nvml_device *, unsigned *, struct nvml_process *),
                    const struct smi_gpu *gpu, struct nvml_process found[SMI_PROCESSES_MAX])
{
    unsigned count = SMI_PROCESSES_MAX;

    return list != NULL && list(gpu->device, &count, found) == NVML_SUCCESS ? count : 0;
}

static struct smi_process *find(struct smi_process *processes, unsigned count,
                                const struct nvml_process *wanted)
{
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].of.pid == wanted->pid && processes[i].of.gpu_instance == wanted->gpu_instance)
            return &processes[i];
    }
    return NULL;
}

unsigned smi_processes(const struct smi_gpu *gpu, struct smi_process out_processes[SMI_PROCESSES_MAX])
{
    struct nvml_process found[SMI_PROCESSES_MAX];
    unsigned count = ask(gpu->library->nvmlDeviceGetComputeRunningProcesses_v3, gpu, found), others;

    for (unsigned i = 0; i < count; i++)
        out_processes[i] = (struct smi_process){.of = found[i], .computes = true};
    others = ask(gpu->library->nvmlDeviceGetMPSComputeRunningProcesses_v3, gpu, found);
    for (unsigned i = 0; i < others; i++) {
        struct smi_process *client = find(out_processes, count, &found[i]);

        if (client != NULL)
            client->is_client = true;
    }
    others = ask(gpu->library->nvmlDeviceGetGraphicsRunningProcesses_v3, gpu, found);
    for (unsigned i = 0; i < others; i++) {
        struct smi_process *known = find(out_processes, count, &found[i]);

        if (known == NULL && count < SMI_PROCESSES_MAX) {
            known = &out_processes[count++];
            *known = (struct smi_process){.of = found[i]};
        }
        if (known != NULL)
            known->renders = true;
    }
    return count;
}

const char *smi_process_type(const struct smi_process *process)
{
    if (process->is_client)
        return "M+C";
    if (process->renders)
        return process->computes ? "C+G" : "G";
    return "C";
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

/* How busy a process kept the GPU at last, in percent; false when that is not known. */
static bool find_share(const struct smi_gpu *gpu, unsigned pid, struct nvml_process_utilization *out_share)
{
    struct nvml_process_utilization shares[SAMPLES_MAX];
    unsigned count = SAMPLES_MAX;
    bool found = false;

    if (gpu->library->nvmlDeviceGetProcessUtilization == NULL ||
        gpu->library->nvmlDeviceGetProcessUtilization(gpu->device, shares, &count, 0) != NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (shares[i].pid != pid || (found && shares[i].timestamp_us < out_share->timestamp_us))
            continue;
        *out_share = shares[i];
        found = true;
    }
    return found;
}

static void put_process(const struct smi_call *call, const struct smi_gpu *gpu,
                        const struct smi_process *process)
{
    unsigned pid = process->of.pid;
    struct nvml_process_utilization share;
    char name[SMI_TEXT_MAX];
    const char *file;

    smi_process_name(call->library, pid, name);
    file = strrchr(name, '/');
    fprintf(call->out, "%5u %10u %5s", gpu->index, pid, smi_process_type(process));
    if (find_share(gpu, pid, &share))
        fprintf(call->out, " %6u %6u %6u %6u", share.sm, share.memory, share.encoder, share.decoder);
    else
        fprintf(call->out, " %6s %6s %6s %6s", "-", "-", "-", "-");
    fprintf(call->out, " %6s %6s    %s\n", "-", "-", file != NULL ? file + 1 : name);
}

int smi_monitor_processes(const struct smi_call *call)
{
    struct smi_process processes[SMI_PROCESSES_MAX];

    if (call->header)
        fputs("# gpu         pid  type     sm    mem    enc    dec    jpg    ofa    command \n"
              "# Idx           #   C/G      %      %      %      %      %      %    name \n",
              call->out);
    for (unsigned i = 0; i < call->gpu_count; i++) {
        unsigned count = smi_processes(&call->gpus[i], processes);

        for (unsigned process = 0; process < count; process++)
            put_process(call, &call->gpus[i], &processes[process]);
        if (count == 0)
            fprintf(call->out, "%5u %10s %5s %6s %6s %6s %6s %6s %6s    %s\n", call->gpus[i].index, "-", "-",
                    "-", "-", "-", "-", "-", "-", "-");
    }
    return SMI_DONE;
}
