/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_IDENTITY_H
#define FLYBALL_EMULATOR_IDENTITY_H

#include "emulator/state.h"

/*
 * The names of an emulated GPU. The UUID begins with "GPU-f1eba11" and ends with what distinguishes one
 * emulator from another.
 */
enum { IDENTITY_MAX = 96 };

void identity_model(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);
void identity_uuid(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);
/* Of a MIG instance: "MIG-f1eba11...", and a name with its profile. */
void identity_instance_uuid(const struct emulated_gpu *gpu, unsigned instance, char out_text[IDENTITY_MAX]);
void identity_instance_name(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);

/* The driver's number of the GPU instance; its compute instance is number 0. */
unsigned identity_instance_id(unsigned instance);

void identity_serial(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);

/* "00000000:07:00.0" and "0000:07:00.0". */
void identity_bus_id(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);
void identity_legacy_bus_id(const struct emulated_gpu *gpu, char out_text[IDENTITY_MAX]);

/* The number of its bus. */
unsigned identity_bus(const struct emulated_gpu *gpu);

#endif
