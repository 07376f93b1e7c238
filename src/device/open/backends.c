/* SPDX-License-Identifier: Apache-2.0 */
/* All back ends, and the list of the devices that they find. */
#include "device/open/backends.h"

#include <string.h>

const struct device_backend *const device_backends[] = {
    &device_backend_nvml,      &device_backend_amdsmi,       &device_backend_rapl_powercap,
    &device_backend_rapl_perf, &device_backend_cpu_estimate, NULL,
};

/* Opens one back end; if it offers nothing, that is reported, and is no error of the list. */
static int open_backend(const struct device_backend *backend, const struct device_options *options,
                        struct device_list *list, struct fly_error *out_error)
{
    struct backend_report *report = &list->reports[list->report_count];
    int code;

    *report = (struct backend_report){.backend = backend};
    code = backend->open(options, list, &report->error);
    report->error.code = code;
    list->report_count++;
    if (code != FLY_ENOMEM && code != FLY_ELIMIT)
        return 0;
    if (out_error != NULL)
        *out_error = report->error;
    return code;
}

/* Counts at the end, since a back end may replace another's devices. */
static void count_found(struct device_list *list)
{
    for (size_t i = 0; i < list->report_count; i++) {
        for (size_t j = 0; j < list->count; j++)
            list->reports[i].found += list->devices[j].backend == list->reports[i].backend;
    }
}

static bool kind_answers(const struct device_list *list, enum device_kind kind, const struct clock *clock)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == kind && device_answers(&list->devices[i], clock))
            return true;
    }
    return false;
}

int device_list_open(const struct device_options *options, struct device_list *out_list,
                     struct fly_error *out_error)
{
    int code = 0;

    memset(out_list, 0, sizeof *out_list);
    if (options->replay_path != NULL) {
        code = device_backend_replay.open(options, out_list, out_error);
        if (out_list->report_count == 0)
            out_list->reports[out_list->report_count++] =
                (struct backend_report){.backend = &device_backend_replay};
    }
    for (size_t i = 0; options->replay_path == NULL && code == 0 && device_backends[i] != NULL; i++) {
        const struct device_backend *backend = device_backends[i];

        if (!backend->fallback || !kind_answers(out_list, backend->kind, device_clock(options)))
            code = open_backend(backend, options, out_list, out_error);
    }
    count_found(out_list);
    if (code < 0)
        device_list_close(out_list);
    return code;
}
