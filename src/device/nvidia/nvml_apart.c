/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvidia/nvml_apart.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread/thread_group.h"

/* A GPU while a thread opens it. */
struct opening {
    struct nvml_library *library;
    unsigned index;
    struct nvml_state *state;
    struct device_info info;
};

/* By the driver's number: how many threads were left behind that open it. */
static atomic_int hanging[DEVICES_MAX];

static void open_now(void *of)
{
    struct opening *opening = of;

    opening->state = nvml_gpu_open(opening->library, opening->index, &opening->info);
}

static void drop(void *of)
{
    struct opening *opening = of;

    atomic_fetch_sub(&hanging[opening->index], 1);
    nvml_library_release(opening->library);
    free(opening->state);
    free(opening);
}

/* Begins to open a GPU; NULL: it hangs already, or there is no thread for it. */
static struct apart *begin(struct nvml_library *library, unsigned index, struct opening **out_opening)
{
    struct opening *opening = atomic_load(&hanging[index]) > 0 ? NULL : calloc(1, sizeof *opening);
    struct apart *apart = NULL;

    *out_opening = opening;
    if (opening == NULL)
        return NULL;
    opening->library = library;
    opening->index = index;
    library->users++;
    apart = apart_begin(open_now, drop, opening);
    if (apart == NULL) {
        library->users--;
        free(opening);
    }
    return apart;
}

/* Takes what the thread has made, or leaves it behind; returns the state, or NULL. */
static struct nvml_state *finish(struct apart *apart, struct opening *opening, unsigned index,
                                 struct mono_time until, struct device_info *out_info)
{
    struct nvml_state *state;

    if (!apart_finish(apart, until)) {
        atomic_fetch_add(&hanging[index], 1); /* and one less when it lets go, which may be before this */
        return NULL;
    }
    state = opening->state;
    *out_info = opening->info;
    nvml_library_release(opening->library); /* the caller has it open, too */
    free(opening);
    return state;
}

int nvml_apart_open(struct nvml_library *library, unsigned count, double patience_s,
                    struct nvml_apart *out_apart, struct fly_error *out_error)
{
    struct mono_time until = mono_after_s(mono_now(), patience_s);
    struct apart *aparts[DEVICES_MAX];
    struct opening *openings[DEVICES_MAX];
    bool whole = true;

    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    out_apart->count = count;
    for (unsigned i = 0; i < count; i++)
        aparts[i] = begin(library, i, &openings[i]);
    for (unsigned i = 0; i < count; i++) {
        struct device_info *info = &out_apart->infos[i];
        struct nvml_state *state = aparts[i] != NULL ? finish(aparts[i], openings[i], i, until, info) : NULL;

        if (state == NULL)
            state = nvml_gpu_silent(library, i, info);
        out_apart->states[i] = state;
        if (state == NULL)
            whole = false;
    }
    if (whole)
        return 0;
    nvml_apart_deinit(out_apart);
    return error_no_memory(out_error);
}

void nvml_apart_deinit(struct nvml_apart *apart)
{
    for (unsigned i = 0; i < apart->count; i++) {
        free(apart->states[i]);
        apart->states[i] = NULL;
    }
    apart->count = 0;
}
