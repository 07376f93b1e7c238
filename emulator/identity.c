/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/identity.h"

#include <inttypes.h>
#include <stdio.h>

#include "emulator/gpu.h"

void identity_model(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "Emulated %s (Flyball)", gpu_board(gpu)->title);
}

void identity_uuid(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "GPU-f1eba11%x-%04x-4000-8000-%012" PRIx64, gpu->index & 0xf, gpu->index,
             gpu->machine);
}

void identity_instance_uuid(const struct emulated_gpu *gpu, unsigned instance, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "MIG-f1eba11%x-%04x-5000-800%x-%012" PRIx64, gpu->index & 0xf,
             gpu->index, instance & 0xf, gpu->machine);
}

/* All instances are of the smallest kind: an eighth of the memory. */
void identity_instance_name(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "Emulated %s (Flyball) MIG 1g.%ugb", gpu_board(gpu)->title,
             (unsigned)(gpu_board(gpu)->memory_bytes >> 33));
}

void identity_serial(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "FLYBALL%06u", gpu->index);
}

unsigned identity_bus(const struct emulated_gpu *gpu)
{
    return 7 + 8 * gpu->index;
}

void identity_bus_id(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "00000000:%02X:00.0", identity_bus(gpu));
}

void identity_legacy_bus_id(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX])
{
    snprintf(out_text, IDENTITY_MAX, "0000:%02X:00.0", identity_bus(gpu));
}

unsigned identity_instance_id(unsigned instance)
{
    return instance + EMULATOR_INSTANCES_MAX;
}
