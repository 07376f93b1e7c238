/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the library, its functions, and the reason if it does not work. */
#include "device/nvidia/nvml_library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* As drivers install it; only development packages have the name without a version. */
static const char *const library_names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so"};

enum { NAMES_MAX = 3 };

struct call_row {
    size_t offset; /* of the slot in struct nvml_calls */
    bool required;
    const char *names[NAMES_MAX]; /* ended by NULL */
};

#define CALL_ROW(slot, required, type, ...) {offsetof(struct nvml_calls, slot), required, {__VA_ARGS__}},
static const struct call_row call_rows[] = {NVML_CALLS(CALL_ROW)};

/* Why the library cannot be initialised, and what to do. Any other code gives FLY_EREAD. */
static const struct init_failure {
    int code;
    int error;
    const char *remedy;
} init_failures[] = {
    {NVML_DRIVER_NOT_LOADED, FLY_EUNSUPPORTED,
     "load it with 'modprobe nvidia'; in a container, start that with its GPUs"},
    {NVML_LIB_RM_VERSION_MISMATCH, FLY_EUNSUPPORTED,
     "the driver was updated while it ran: reboot, or unload the kernel driver and load it again"},
    {NVML_LIBRARY_NOT_FOUND, FLY_EUNSUPPORTED, "install the driver's libraries completely"},
    {NVML_NO_PERMISSION, FLY_EPERM, "ask for access to /dev/nvidiactl and /dev/nvidia0, ..."},
    {NVML_GPU_NOT_FOUND, FLY_EUNSUPPORTED, "see 'lspci -d 10de:' for what is plugged in"},
    {NVML_MEMORY, FLY_ENOMEM, "free some"},
};

const char *nvml_meaning(int code)
{
#define MEANING(name, number, meaning) \
    case number:                       \
        return meaning;
    switch (code) {
        NVML_RETURNS(MEANING)
    }
#undef MEANING
    return "the driver reports a code unheard of";
}

/* Loads the file that was named, or the first of the names that the loader finds. */
static int load(const char *path, struct shared_object *out_object, struct fly_error *out_error)
{
    struct fly_error why = {0};
    int code = FLY_ENOTFOUND;

    if (path != NULL)
        return shared_object_open(path, out_object, out_error);
    for (size_t i = 0; i < sizeof library_names / sizeof library_names[0] && code < 0; i++)
        code = shared_object_open_library(library_names[i], out_object, i == 0 ? &why : NULL);
    if (code == 0)
        return 0;
    return error_set(out_error, FLY_EUNSUPPORTED,
                     "no NVIDIA driver: %.300s; install NVIDIA's driver, or say where its library is",
                     why.text);
}

static const void *find(const struct shared_object *object, const struct call_row *row)
{
    const void *found = NULL;

    for (int i = 0; i < NAMES_MAX && row->names[i] != NULL && found == NULL; i++)
        found = shared_object_find(object, row->names[i]);
    return found;
}

static void fill(struct nvml_library *library, const struct call_row *row, const void *found)
{
    memcpy((char *)&library->call + row->offset, &found, sizeof found);
}

static int find_calls(struct nvml_library *library, const char *name, struct fly_error *out_error)
{
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = find(&library->object, &call_rows[i]);

        if (found == NULL && call_rows[i].required)
            return error_set(
                out_error, FLY_EUNSUPPORTED,
                "library '%.200s' lacks the function '%s'; it is no NVIDIA management library, or "
                "one too old",
                name, call_rows[i].names[0]);
        fill(library, &call_rows[i], found);
    }
    return 0;
}

/* What the library says itself if it is an emulator's; "" otherwise. */
static const char *complaint_of(const struct nvml_library *library)
{
    const void *found = shared_object_find(&library->object, NVML_EMULATOR_COMPLAINT_SYMBOL);
    nvml_emulator_text_function *complaint;

    memcpy(&complaint, &found, sizeof complaint);
    return complaint != NULL ? complaint() : "";
}

static int initialise(const struct nvml_library *library, const char *name, struct fly_error *out_error)
{
    int code = library->call.init();
    const char *complaint;

    if (code == NVML_SUCCESS || code == NVML_ALREADY_INITIALIZED)
        return 0;
    complaint = complaint_of(library);
    if (complaint[0] != '\0')
        return error_set(out_error, FLY_ESTATE, "there are no emulated GPUs: %s", complaint);
    for (size_t i = 0; i < sizeof init_failures / sizeof init_failures[0]; i++) {
        if (init_failures[i].code == code)
            return error_set(out_error, init_failures[i].error, "library '%.200s' cannot be used: %s; %s",
                             name, nvml_meaning(code), init_failures[i].remedy);
    }
    return error_set(
        out_error, FLY_EREAD,
        "library '%.200s' cannot be used: %s (NVML %d); see what 'nvidia-smi' and the kernel's log "
        "say",
        name, nvml_meaning(code), code);
}

/*
 * Drivers 535.43 to 535.86 added a member of eight bytes to the processes of _v3 without a new
 * version; those of _v2 never changed.
 */
static void avoid_long_processes(struct nvml_library *library)
{
#define SECOND(slot, symbol)                                             \
    {                                                                    \
        .offset = offsetof(struct nvml_calls, slot), .names = { symbol } \
    }
    static const struct call_row seconds[] = {SECOND(processes, "nvmlDeviceGetComputeRunningProcesses_v2"),
                                              SECOND(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v2"),
                                              SECOND(mps, "nvmlDeviceGetMPSComputeRunningProcesses_v2")};
#undef SECOND
    char *dot;
    unsigned long major = strtoul(library->driver, &dot, 10),
                  minor = *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;

    if (major != 535 || minor < 43 || minor >= 98)
        return;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        fill(library, &seconds[i], find(&library->object, &seconds[i]));
}

int nvml_library_open(const char *path, struct nvml_library **out_library, struct fly_error *out_error)
{
    const char *name = path != NULL ? path : library_names[0];
    struct nvml_library *library = calloc(1, sizeof *library);
    int code;

    if (library == NULL)
        return error_no_memory(out_error);
    code = load(path, &library->object, out_error);
    if (code == 0)
        code = find_calls(library, name, out_error);
    if (code == 0)
        code = initialise(library, name, out_error);
    if (code < 0) {
        shared_object_close(&library->object);
        free(library);
        return code;
    }
    library->users = 1;
    library->owner = getpid();
    library->emulated = shared_object_find(&library->object, NVML_EMULATOR_SYMBOL) != NULL;
    if (library->call.driver_version == NULL ||
        library->call.driver_version(library->driver, sizeof library->driver) != NVML_SUCCESS)
        library->driver[0] = '\0';
    library->driver[sizeof library->driver - 1] = '\0';
    avoid_long_processes(library);
    *out_library = library;
    return 0;
}

void nvml_library_release(struct nvml_library *library)
{
    if (--library->users > 0)
        return;
    /* If the library cannot release its state, it must stay loaded, because that state is in use. */
    if (library->owner == getpid() && library->call.shutdown() == NVML_SUCCESS)
        shared_object_close(&library->object);
    free(library);
}
