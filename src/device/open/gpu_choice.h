/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_OPEN_GPU_CHOICE_H
#define FLYBALL_DEVICE_OPEN_GPU_CHOICE_H

#include "device/device.h"
#include "device/open/visible_list.h"

/* Some GPUs of a list, in an order: the choice is made while the list is still complete. */
struct gpu_choice {
    size_t count;
    size_t places[DEVICES_MAX]; /* indices in the list */
    bool of_instance;           /* the only GPU was chosen through one of its MIG instances */
};

bool gpu_choice_has(const struct gpu_choice *choice, size_t place);
void gpu_choice_add(struct gpu_choice *choice, size_t place);

/*
 * Returns the place of the GPU that an entry names, among some GPUs: an index counts them, a UUID
 * may be cut to its beginning, and an instance means the GPU on which it is.
 */
enum { GPU_NOWHERE = -1, GPU_AMBIGUOUS = -2 };
int gpu_choice_find(const struct device_list *list, const struct gpu_choice *among,
                    const struct visible_entry *entry);

/* Puts the chosen GPUs first, in their order, then CPUs and memory, and closes the other GPUs. */
void gpu_choice_keep(struct device_list *list, const struct gpu_choice *chosen);

/* Notes on a device that it was chosen through one of its instances. */
void gpu_choice_mark_instance(struct device_info *info);

#endif
