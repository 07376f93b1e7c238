/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPU it is, and how it is connected. */
#include <stdio.h>

#include "emulator/getter.h"
#include "emulator/identity.h"

enum { BRAND_TESLA = 2 };

static int text(const char *function, const struct nvml_device *device, char *out, unsigned bytes,
                void (*write)(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]))
{
    struct call call;
    int code = call_device(&call, function, device, out != NULL);
    char identity[IDENTITY_MAX];

    if (code != NVML_SUCCESS)
        return code;
    write(call.gpu, identity);
    return call_end(&call, call_text(out, bytes, "%s", identity));
}

/* An instance has these two of its own. */
int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned bytes)
{
    struct call call;
    int code = call_instance(&call, __func__, device, name != NULL);
    char identity[IDENTITY_MAX];

    if (code != NVML_SUCCESS)
        return code;
    (call.instance < 0 ? identity_model : identity_instance_name)(call.gpu, identity);
    return call_end(&call, call_text(name, bytes, "%s", identity));
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned bytes)
{
    struct call call;
    int code = call_instance(&call, __func__, device, uuid != NULL);
    char identity[IDENTITY_MAX];

    if (code != NVML_SUCCESS)
        return code;
    if (call.instance < 0)
        identity_uuid(call.gpu, identity);
    else
        identity_instance_uuid(call.gpu, (unsigned)call.instance, identity);
    return call_end(&call, call_text(uuid, bytes, "%s", identity));
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *serial, unsigned bytes)
{
    return text(__func__, device, serial, bytes, identity_serial);
}

/* There is no firmware and no board; the version tells whose they would be. */
static void write_version(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    (void)gpu;
    snprintf(out_text, IDENTITY_MAX, "%s", EMULATOR_VERSION);
}

int nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, unsigned bytes)
{
    return text(__func__, device, version, bytes, write_version);
}

int nvmlDeviceGetBoardPartNumber(struct nvml_device *device, char *number, unsigned bytes)
{
    return text(__func__, device, number, bytes, write_version);
}

static int get_index(const struct call *call, unsigned *out_value)
{
    *out_value = call->gpu->index;
    return NVML_SUCCESS;
}

static int get_architecture(const struct call *call, unsigned *out_value)
{
    *out_value = gpu_board(call->gpu)->architecture;
    return NVML_SUCCESS;
}

static int get_brand(const struct call *call, unsigned *out_value)
{
    (void)call;
    *out_value = BRAND_TESLA;
    return NVML_SUCCESS;
}

static int get_generation(const struct call *call, unsigned *out_value)
{
    *out_value = gpu_board(call->gpu)->pcie_generation;
    return NVML_SUCCESS;
}

static int get_width(const struct call *call, unsigned *out_value)
{
    *out_value = gpu_board(call->gpu)->pcie_width;
    return NVML_SUCCESS;
}

static int get_cores(const struct call *call, unsigned *out_value)
{
    const struct emulated_board *board = gpu_board(call->gpu);
    bool is_small = board->capability_major < 9 && board->capability_minor == 0; /* GV100 and GA100 */

    *out_value = board->multiprocessors * (is_small ? 64 : 128);
    return NVML_SUCCESS;
}

/* clang-format off */
GETTER(nvmlDeviceGetIndex, get_index)
GETTER(nvmlDeviceGetMinorNumber, get_index)
GETTER(nvmlDeviceGetBoardId, get_index)
GETTER(nvmlDeviceGetMultiGpuBoard, getter_zero)
GETTER(nvmlDeviceGetArchitecture, get_architecture)
GETTER(nvmlDeviceGetBrand, get_brand)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, get_generation)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, get_generation)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, get_width)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, get_width)
GETTER(nvmlDeviceGetNumGpuCores, get_cores)
GETTER(nvmlDeviceGetDisplayActive, getter_zero)
GETTER(nvmlDeviceGetDisplayMode, getter_zero)
/* clang-format on */

static void fill_v2(const struct emulated_gpu *gpu, struct nvml_pci_info_v2 *pci)
{
    char bus_id[IDENTITY_MAX];

    identity_legacy_bus_id(gpu, bus_id);
    *pci = (struct nvml_pci_info_v2){.bus = identity_bus(gpu),
                                     .device_id = gpu_board(gpu)->pci_device_id,
                                     .subsystem_id = gpu_board(gpu)->pci_device_id};
    snprintf(pci->bus_id, sizeof pci->bus_id, "%.*s", (int)sizeof pci->bus_id - 1, bus_id);
}

static int pci_info_v2(const char *function, const struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
    struct call call;
    int code = call_device(&call, function, device, pci != NULL);

    if (code == NVML_SUCCESS)
        fill_v2(call.gpu, pci);
    return call_end(&call, code);
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
    return pci_info_v2(__func__, device, pci);
}

int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
    return pci_info_v2(__func__, device, pci);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
    struct call call;
    int code = call_device(&call, __func__, device, pci != NULL);
    char bus_id[IDENTITY_MAX], legacy[IDENTITY_MAX];

    if (code != NVML_SUCCESS)
        return code;
    identity_bus_id(call.gpu, bus_id);
    identity_legacy_bus_id(call.gpu, legacy);
    *pci = (struct nvml_pci_info){.bus = identity_bus(call.gpu),
                                  .device_id = gpu_board(call.gpu)->pci_device_id,
                                  .subsystem_id = gpu_board(call.gpu)->pci_device_id};
    snprintf(pci->bus_id, sizeof pci->bus_id, "%.*s", (int)sizeof pci->bus_id - 1, bus_id);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%.*s", (int)sizeof pci->bus_id_legacy - 1,
             legacy);
    return call_end(&call, code);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
    struct call call;
    int code = call_device(&call, __func__, device, major != NULL && minor != NULL);

    if (code == NVML_SUCCESS) {
        *major = (int)gpu_board(call.gpu)->capability_major;
        *minor = (int)gpu_board(call.gpu)->capability_minor;
    }
    return call_end(&call, code);
}
