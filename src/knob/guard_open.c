/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "device/open/backends.h"
#include "knob/guard_private.h"

int guard_open_devices(const char *nvml_path, const char *amdsmi_path, const char *pci,
                       struct device_list *list, struct fly_error *out_error)
{
    struct device_options options = {.nvml_path = nvml_path[0] != '\0' ? nvml_path : NULL,
                                     .amdsmi_path = amdsmi_path[0] != '\0' ? amdsmi_path : NULL,
                                     .only_pci = pci[0] != '\0' ? pci : NULL};
    size_t before = list->count;
    int code = FLY_EUNSUPPORTED;

    error_set(out_error, code, "no driver is there through which something can be set; see 'flyball doctor'");
    for (size_t i = 0; device_backends[i] != NULL; i++) {
        if (options.only_pci != NULL && list->count > before)
            break; /* a GPU has one driver */
        if (device_backends[i]->set != NULL && device_backends[i]->open(&options, list, out_error) == 0)
            code = 0;
    }
    return code;
}
