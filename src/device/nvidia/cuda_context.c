/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvidia/cuda_context.h"

#include <string.h>

#include "base/error.h"

enum {
    CUDA_ATTRIBUTE_PROCESSORS = 16,
    CUDA_WAIT_ASLEEP = 4, /* flag of a context: waiting takes no processor time */
};

#define CUDA_ROW(slot, symbol, parameters) {offsetof(struct cuda_calls, slot), symbol},
static const struct {
    size_t offset;
    const char *symbol;
} rows[] = {CUDA_CALLS(CUDA_ROW)};

int cuda_failed(const char *symbol, int code, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EREAD, "'%s' of the CUDA driver failed with %d; see the kernel's log",
                     symbol, code);
}

static int load_library(struct cuda_context *context, const char *path, struct fly_error *out_error)
{
    struct fly_error why = {0};
    int code;

    if (path != NULL)
        code = shared_object_open(path, &context->object, &why);
    else
        code = shared_object_open_library("libcuda.so.1", &context->object, &why);
    if (code < 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "no CUDA driver: %.300s", why.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const void *found = shared_object_find(&context->object, rows[i].symbol);

        if (found == NULL)
            return error_set(out_error, FLY_EUNSUPPORTED, "the CUDA driver lacks '%s'; update it",
                             rows[i].symbol);
        memcpy((char *)&context->call + rows[i].offset, &found, sizeof found);
    }
    return 0;
}

static int open_device(struct cuda_context *context, const char *pci, struct fly_error *out_error)
{
    int code = context->call.init(0);

    if (code != 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "'cuInit' of the CUDA driver failed with %d", code);
    code = context->call.device_by_pci(&context->device, pci);
    /* The domain has eight digits here, and four in the driver's older spelling. */
    if (code != 0 && strncmp(pci, "0000", 4) == 0)
        code = context->call.device_by_pci(&context->device, pci + 4);
    if (code != 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "CUDA knows no GPU at '%s' (code %d)", pci, code);
    code = context->call.attribute(&context->processors, CUDA_ATTRIBUTE_PROCESSORS, context->device);
    if (code != 0 || context->processors <= 0)
        return cuda_failed("cuDeviceGetAttribute", code, out_error);
    code = context->call.set_flags(context->device, CUDA_WAIT_ASLEEP);
    if (code != 0)
        return cuda_failed("cuDevicePrimaryCtxSetFlags", code, out_error);
    code = context->call.retain(&context->context, context->device);
    if (code != 0) {
        context->context = NULL;
        return cuda_failed("cuDevicePrimaryCtxRetain", code, out_error);
    }
    code = context->call.set_current(context->context);
    return code == 0 ? 0 : cuda_failed("cuCtxSetCurrent", code, out_error);
}

int cuda_context_open(const char *library_path, const char *pci, struct cuda_context *out_context,
                      struct fly_error *out_error)
{
    int code;

    memset(out_context, 0, sizeof *out_context);
    code = load_library(out_context, library_path, out_error);
    return code == 0 ? open_device(out_context, pci, out_error) : code;
}

void cuda_context_close(struct cuda_context *context)
{
    if (context->context != NULL)
        context->call.release(context->device);
    context->context = NULL;
    shared_object_close(&context->object);
}
