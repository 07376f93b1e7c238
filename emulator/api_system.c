/* SPDX-License-Identifier: Apache-2.0 */
/* The library's life, its versions, and how devices are found. */
#include <stdio.h>
#include <string.h>

#include "emulator/api.h"
#include "emulator/call.h"
#include "emulator/identity.h"

enum { CUDA_VERSION = 12040 };

int nvmlInit(void)
{
    return call_library_open(__func__);
}

int nvmlInit_v2(void)
{
    return call_library_open(__func__);
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return call_library_open(__func__);
}

int nvmlShutdown(void)
{
    return call_library_close(__func__);
}

const char *nvmlErrorString(int code)
{
#define RETURN_MEANING(name, number, meaning) {number, meaning " (emulator)"},
    static const struct {
        int code;
        const char *meaning;
    } meanings[] = {NVML_RETURNS(RETURN_MEANING)};
#undef RETURN_MEANING

    if (code == NVML_DRIVER_NOT_LOADED && call_library_complaint()[0] != '\0')
        return call_library_complaint();
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].code == code)
            return meanings[i].meaning;
    }
    return "a code that NVML does not have (emulator)";
}

const char *flyball_emulator_version(void)
{
    return EMULATOR_VERSION;
}

const char *flyball_emulator_complaint(void)
{
    return call_library_complaint();
}

static int system_text(const char *function, char *out, unsigned bytes, const char *text)
{
    struct call call;
    int code = call_system(&call, function, -1, out != NULL);

    return call_end(&call, code == NVML_SUCCESS ? call_text(out, bytes, "%s", text) : code);
}

int nvmlSystemGetDriverVersion(char *version, unsigned bytes)
{
    return system_text(__func__, version, bytes, EMULATOR_VERSION);
}

int nvmlSystemGetNVMLVersion(char *version, unsigned bytes)
{
    return system_text(__func__, version, bytes, "12." EMULATOR_VERSION);
}

static int cuda_version(const char *function, int *version)
{
    struct call call;
    int code = call_system(&call, function, -1, version != NULL);

    if (code == NVML_SUCCESS)
        *version = CUDA_VERSION;
    return call_end(&call, code);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(__func__, version);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(__func__, version);
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned bytes)
{
    char path[64], text[256] = "";
    struct call call;
    int code = call_system(&call, __func__, -1, name != NULL && bytes > 0);
    FILE *file;

    if (code != NVML_SUCCESS)
        return code;
    call_end(&call, code);
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return NVML_NOT_FOUND;
    if (fread(text, 1, sizeof text - 1, file) == 0)
        text[0] = '\0';
    fclose(file);
    return call_text(name, bytes, "%s", text);
}

static int count(const char *function, unsigned *out_count)
{
    struct call call;
    int code = call_system(&call, function, -1, out_count != NULL);

    if (code == NVML_SUCCESS)
        *out_count = call.state->gpu_count;
    return call_end(&call, code);
}

int nvmlDeviceGetCount(unsigned *out_count)
{
    return count(__func__, out_count);
}

int nvmlDeviceGetCount_v2(unsigned *out_count)
{
    return count(__func__, out_count);
}

/* There are no rack units. */
int nvmlUnitGetCount(unsigned *out_count)
{
    struct call call;
    int code = call_system(&call, __func__, -1, out_count != NULL);

    if (code == NVML_SUCCESS)
        *out_count = 0;
    return call_end(&call, code);
}

static int by_index(const char *function, unsigned index, struct nvml_device **out)
{
    struct call call;
    int code =
        call_system(&call, function, index < EMULATOR_GPUS_MAX ? (int)index : EMULATOR_GPUS_MAX, out != NULL);

    if (code == NVML_SUCCESS)
        *out = call_handle(index);
    return call_end(&call, code);
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **out)
{
    return by_index(__func__, index, out);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **out)
{
    return by_index(__func__, index, out);
}

/* Finds the GPU whose identity, as written by `write`, is the text. */
static int by_text(const char *function, const char *text, struct nvml_device **out,
                   void (*write)(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]))
{
    struct call call;
    int code = call_system(&call, function, -1, text != NULL && out != NULL);
    char identity[IDENTITY_MAX];

    if (code != NVML_SUCCESS)
        return code;
    code = NVML_NOT_FOUND;
    for (unsigned i = 0; i < call.state->gpu_count && code != NVML_SUCCESS; i++) {
        write(&call.state->gpus[i], identity);
        if (strcasecmp(identity, text) != 0)
            continue;
        *out = call_handle(i);
        code = NVML_SUCCESS;
    }
    return call_end(&call, code);
}

/* Finds the instance with that UUID: NVML_SUCCESS or NVML_NOT_FOUND. */
static int find_instance(const struct emulator_state *state, const char *uuid, struct nvml_device **out)
{
    char identity[IDENTITY_MAX];

    for (unsigned gpu = 0; gpu < state->gpu_count; gpu++) {
        for (unsigned instance = 0; instance < emulator_instances(&state->settings, gpu); instance++) {
            identity_instance_uuid(&state->gpus[gpu], instance, identity);
            if (strcasecmp(identity, uuid) != 0)
                continue;
            *out = call_instance_handle(gpu, instance);
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out)
{
    struct call call;
    int code;

    if (uuid == NULL || strncasecmp(uuid, "MIG-", 4) != 0)
        return by_text(__func__, uuid, out, identity_uuid);
    code = call_system(&call, __func__, -1, out != NULL);
    return call_end(&call, code == NVML_SUCCESS ? find_instance(call.state, uuid, out) : code);
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **out)
{
    return by_text(__func__, bus_id, out, identity_legacy_bus_id);
}

/* Accepts a domain of four digits or eight. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **out)
{
    bool is_short = bus_id != NULL && strlen(bus_id) < sizeof "00000000:00:00.0" - 1;

    return by_text(__func__, bus_id, out, is_short ? identity_legacy_bus_id : identity_bus_id);
}
