/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_SELECTION_H
#define FLYBALL_DEVICE_OPEN_SELECTION_H

#include "device/device.h"

/*
 * Decides which of a node's GPUs a program sees, by the rules of the driver that runs it:
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER for NVIDIA, ROCR_VISIBLE_DEVICES and then
 * HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES) for AMD.
 */

/* The variables as text; NULL if one is not set (which differs from empty). */
struct visibility {
    const char *cuda_visible_devices;
    const char *cuda_device_order;
    const char *rocr_visible_devices;
    const char *hip_visible_devices;
};

/* Reads the variables from the process's environment. */
struct visibility visibility_of_environment(void);

/*
 * Keeps the GPUs that `visible` shows, in its order, and closes the others; CPUs and memory stay.
 * The place in the list is the number that a program uses for its device; the index stays the
 * number that the node's tools use. `out_note` (may be NULL) receives what a user should know: an
 * entry that hides the rest, or an order that is unknown; "" for nothing. Never fails: an entry
 * that names no GPU hides GPUs, as it does for the program.
 *
 * The rules are those of NVIDIA's programming guide: a variable that is not set shows all GPUs,
 * an empty one none. Entries are indices, UUIDs or unique beginnings of UUIDs; any other entry
 * hides itself and what follows. Where the guide is silent: only the leading digits of an index
 * count ("1gpu" is 1), a GPU named twice hides all (CUDA) or what follows (ROCm), and indices,
 * UUIDs and instances cannot be mixed. An entry for a MIG instance shows its whole GPU, alone,
 * since a program gets one instance at most. A program does not see a GPU that it may not open.
 *
 * CUDA counts unequal GPUs from the fastest on unless CUDA_DEVICE_ORDER is PCI_BUS_ID. The speed
 * is not known here: indices count in the order of the bus in both cases, and the note says so if
 * it could matter.
 */
enum { SELECTION_NOTE_MAX = 256 };
void device_select_visible(struct device_list *list, const struct visibility *visible,
                           char out_note[SELECTION_NOTE_MAX]);

/*
 * Keeps the GPUs that the user named, "0,2", "GPU-8f3a", "all" or "none". Indices count in the
 * order of the list before; each GPU keeps its index. FLY_ENOTFOUND for a GPU that does not
 * exist, with those that do; FLY_EUSAGE for a list that cannot be read, names a GPU twice, or has
 * a UUID that fits several. The list is unchanged on failure.
 */
int device_select_named(struct device_list *list, const char *gpus, struct fly_error *out_error);

#endif
