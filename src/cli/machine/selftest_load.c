/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine/selftest_load.h"

#include <stdio.h>
#include <string.h>

/* Returns why our own load may not run on the device, or NULL. */
static const char *obstacle(const struct selftest_load_options *options, const struct device_info *info,
                            const char *backend)
{
    if (!options->wanted)
        return "no load was asked for";
    if (info->kind != DEVICE_GPU || strcmp(backend, "nvml") != 0)
        return "only NVIDIA GPUs are loaded";
    /* The machine's CUDA driver might know a real GPU at the same place on the bus. */
    if (info->emulated && options->library_path == NULL)
        return "an emulated GPU is loaded only through a library that --cuda names";
    return info->pci[0] == '\0' ? "the GPU's place on the bus is not known" : NULL;
}

static void start(const struct selftest_load_options *options, const struct device *device,
                  struct selftest_load *load)
{
    struct cuda_load_options cuda = {.library_path = options->library_path,
                                     .pci = device->info.pci,
                                     .duration_max_s = options->duration_max_s};
    const char *why = obstacle(options, &device->info, device->backend->name);
    struct fly_error error = {0};

    if (why == NULL && cuda_load_start(&cuda, &load->load, &error) == 0)
        load->started = true;
    else
        snprintf(load->text, sizeof load->text, "%s", why != NULL ? why : error.text);
}

void selftest_loads_start(const struct selftest_load_options *options, const struct device_list *devices,
                          struct selftest_load *loads)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (options->chosen == NULL || options->chosen[i])
            start(options, &devices->devices[i], &loads[i]);
    }
}

void selftest_loads_stop(const struct device_list *devices, struct selftest_load *loads)
{
    for (size_t i = 0; i < devices->count; i++) {
        struct fly_error error = {0};

        if (loads[i].load.child > 0 && cuda_load_stop(&loads[i].load, &error) < 0)
            snprintf(loads[i].text, sizeof loads[i].text, "%s", error.text);
    }
}
