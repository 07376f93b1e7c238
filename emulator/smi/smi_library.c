/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's library: loaded, and asked which GPUs there are. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/number.h"
#include "base/shared_object.h"
#include "emulator/smi/smi.h"

enum { PATH_BYTES = 1024 };

/* Loads the library beside this program. */
static int open_own(struct shared_object *out_object, struct fly_error *out_error)
{
    char path[PATH_BYTES + 32];
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    char *slash;

    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL)
        return -1;
    snprintf(slash, sizeof path - (size_t)(slash - path), "/libnvidia-ml.so.1");
    return shared_object_open(path, out_object, out_error);
}

static bool is_emulator(const struct shared_object *object)
{
    return shared_object_find(object, NVML_EMULATOR_SYMBOL) != NULL;
}

/*
 * The library that other programs here find, as long as it is the emulator's: it may be a copy that lacks
 * functions. Otherwise the one beside this program.
 */
static int open_object(struct shared_object *out_object, struct fly_error *out_error)
{
    int code = shared_object_open_library("libnvidia-ml.so.1", out_object, out_error);

    if (code == 0 && is_emulator(out_object))
        return 0;
    if (code == 0)
        shared_object_close(out_object);
    code = open_own(out_object, out_error);
    return code == 0 && !is_emulator(out_object) ? -1 : code;
}

static void find_all(const struct shared_object *object, struct smi_library *out)
{
    const void *found;

#define FIND(result, symbol, parameters)         \
    found = shared_object_find(object, #symbol); \
    memcpy(&out->symbol, &found, sizeof found);
    NVML_FUNCTIONS(FIND)
    NVML_MORE_FUNCTIONS(FIND)
#undef FIND
}

static int no_driver(FILE *out)
{
    fputs("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
          "latest NVIDIA driver is installed and running.\n\n",
          out);
    return SMI_NO_DRIVER;
}

static int find_gpu(struct smi_call *call, unsigned index)
{
    struct smi_gpu *gpu = &call->gpus[index];
    struct nvml_pci_info pci = {.domain = 0};
    int code = call->library->nvmlDeviceGetHandleByIndex_v2(index, &gpu->device);

    if (code == NVML_SUCCESS && call->library->nvmlDeviceGetPciInfo_v3 != NULL)
        code = call->library->nvmlDeviceGetPciInfo_v3(gpu->device, &pci);
    if (code != NVML_SUCCESS) {
        fprintf(call->out, "Unable to determine the device handle for GPU%u: %s\n", index,
                call->library->nvmlErrorString(code));
        return code == NVML_GPU_IS_LOST ? SMI_LOST : SMI_OTHER;
    }
    gpu->library = call->library;
    gpu->index = index;
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", pci.bus_id);
    return SMI_DONE;
}

int smi_library_open(struct smi_call *call)
{
    static struct smi_library library;
    struct shared_object object;
    struct fly_error error;
    int code;

    if (open_object(&object, &error) < 0)
        return no_driver(call->out);
    find_all(&object, &library);
    if (library.nvmlInit_v2 == NULL || library.nvmlDeviceGetCount_v2 == NULL ||
        library.nvmlDeviceGetHandleByIndex_v2 == NULL || library.nvmlErrorString == NULL)
        return no_driver(call->out);
    code = library.nvmlInit_v2();
    if (code != NVML_SUCCESS) {
        fprintf(call->out, "Failed to initialize NVML: %s\n", library.nvmlErrorString(code));
        return code == NVML_DRIVER_NOT_LOADED ? SMI_NO_DRIVER : SMI_OTHER;
    }
    call->library = &library;
    if (library.nvmlDeviceGetCount_v2(&call->system_count) != NVML_SUCCESS)
        return SMI_OTHER;
    for (call->gpu_count = 0; call->gpu_count < call->system_count && call->gpu_count < SMI_GPUS_MAX;
         call->gpu_count++) {
        code = find_gpu(call, call->gpu_count);
        if (code != SMI_DONE)
            return code;
    }
    if (call->gpu_count > 0)
        return SMI_DONE;
    fputs("No devices were found\n", call->out);
    return SMI_NOT_FOUND;
}

static bool is_named(const struct smi_gpu *gpu, const char *name)
{
    char uuid[NVML_UUID_BYTES] = "";
    uint64_t index;

    if (number_parse_u64(name, SMI_GPUS_MAX, &index))
        return index == gpu->index;
    if (gpu->library->nvmlDeviceGetUUID != NULL)
        gpu->library->nvmlDeviceGetUUID(gpu->device, uuid, sizeof uuid);
    /* A bus's domain may be written with four digits. */
    return strcasecmp(name, uuid) == 0 || strcasecmp(name, gpu->bus_id) == 0 ||
           strcasecmp(name, gpu->bus_id + 4) == 0;
}

static int select_one(const struct smi_call *all, const char *name, struct smi_call *call)
{
    for (unsigned i = 0; i < all->gpu_count; i++) {
        if (is_named(&all->gpus[i], name)) {
            call->gpus[call->gpu_count++] = all->gpus[i];
            return SMI_DONE;
        }
    }
    fprintf(call->out, "No devices were found\n");
    return SMI_NOT_FOUND;
}

int smi_select(struct smi_call *call, const char *list)
{
    struct smi_call all = *call;
    int code = SMI_DONE;

    call->gpu_count = 0;
    while (code == SMI_DONE && list != NULL && call->gpu_count < SMI_GPUS_MAX) {
        char name[SMI_TEXT_MAX];
        const char *comma = strchr(list, ',');

        snprintf(name, sizeof name, "%.*s", (int)strcspn(list, ","), list);
        code = select_one(&all, name, call);
        list = comma != NULL ? comma + 1 : NULL;
    }
    return code;
}
