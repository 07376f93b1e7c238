/* SPDX-License-Identifier: Apache-2.0 */
/* What each process kept busy: samples that the driver took a sixth of a second apart, oldest first. */
#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/process_view.h"

enum { NS_PER_US = 1000 };

/* The samples to tell, translated for the caller; several of one time and process are one. */
struct told {
    unsigned count;
    struct nvml_process_utilization samples[EMULATOR_USE_SAMPLES];
};

static unsigned long long stamp_us(const struct emulator_state *state, int64_t at_ns)
{
    return (unsigned long long)(state_date_ns(state, at_ns) / NS_PER_US);
}

/* Whether a process has a newer sample. */
static bool is_outdated(const struct emulator_accounts *accounts, uint64_t index)
{
    const struct emulator_use_sample *sample = &accounts->samples[index % EMULATOR_USE_SAMPLES];

    for (uint64_t later = index + 1; later < accounts->sample_count; later++) {
        const struct emulator_use_sample *other = &accounts->samples[later % EMULATOR_USE_SAMPLES];

        if (other->owner.pid == sample->owner.pid && other->owner.pid_space == sample->owner.pid_space &&
            other->at_ns > sample->at_ns)
            return true;
    }
    return false;
}

static void tell(struct told *told, unsigned pid, unsigned long long at_us, unsigned percent)
{
    struct nvml_process_utilization *sample = told->samples;

    for (; sample < told->samples + told->count; sample++) {
        if (sample->pid == pid && sample->timestamp_us == at_us)
            break;
    }
    if (sample == told->samples + told->count) {
        *sample = (struct nvml_process_utilization){.pid = pid, .timestamp_us = at_us};
        told->count++;
    }
    sample->sm = sample->sm + percent < 100 ? sample->sm + percent : 100;
    sample->memory = sample->sm / 2;
}

static void look(const struct call *call, unsigned long long last_us, struct told *out)
{
    const struct emulator_accounts *accounts = &call->gpu->accounts;
    bool newest = call->state->settings.process_samples == EMULATOR_SAMPLES_NEWEST;
    uint64_t index =
        accounts->sample_count > EMULATOR_USE_SAMPLES ? accounts->sample_count - EMULATOR_USE_SAMPLES : 0;

    for (out->count = 0; index < accounts->sample_count; index++) {
        const struct emulator_use_sample *sample = &accounts->samples[index % EMULATOR_USE_SAMPLES];
        unsigned long long at_us = stamp_us(call->state, sample->at_ns);
        pid_t pid;

        if (at_us <= last_us || (newest && is_outdated(accounts, index)))
            continue;
        pid = process_view(&sample->owner);
        if (pid > 0)
            tell(out, (unsigned)pid, at_us, sample->percent);
    }
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
                                    unsigned *count, unsigned long long last_us)
{
    struct told told;
    struct call call;
    int code = call_device(&call, __func__, device, count != NULL);

    if (code != NVML_SUCCESS)
        return code;
    if (call.state->settings.process_samples == EMULATOR_SAMPLES_NONE ||
        emulator_instances(&call.state->settings, call.gpu->index) > 0)
        return call_end(&call, NVML_NOT_SUPPORTED);
    gpu_use_up_to(call.gpu, call.now_ns);
    look(&call, last_us, &told);
    if (told.count == 0)
        return call_end(&call, NVML_NOT_FOUND);
    code = told.count <= *count && samples != NULL ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
    *count = told.count;
    for (unsigned i = 0; code == NVML_SUCCESS && i < told.count; i++)
        samples[i] = told.samples[i];
    return call_end(&call, code);
}
