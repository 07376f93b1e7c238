/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the library, its version, its functions, and the reason if it does not work. */
#include "device/amd/amdsmi_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* The last two are places where ROCm's packages install it and the loader does not search. */
static const char *const library_names[] = {"libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                                            "/opt/rocm/lib/libamd_smi.so"};

static const struct amdsmi_layout layouts[] = {AMDSMI_LAYOUTS};

static const struct call_row {
    size_t offset; /* of the slot in struct amdsmi_calls */
    bool required;
    const char *symbol;
} call_rows[] = {
#define CALL_ROW(slot, required, symbol) {offsetof(struct amdsmi_calls, slot), required, #symbol},
    AMDSMI_CALLS(CALL_ROW)
#undef CALL_ROW
};

static const struct status_row {
    amdsmi_status status;
    enum reading_state state;
    const char *meaning;
} status_rows[] = {
#define STATUS_ROW(name, code, state, meaning) {code, READING_##state, meaning},
    AMDSMI_STATUSES(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *find_status(amdsmi_status status)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++) {
        if (status_rows[i].status == status)
            return &status_rows[i];
    }
    return NULL;
}

const char *amdsmi_meaning(amdsmi_status status)
{
    const struct status_row *row = find_status(status);

    return row != NULL ? row->meaning : "the library reports a code unheard of";
}

struct reading amdsmi_failed_reading(amdsmi_status status)
{
    const struct status_row *row = find_status(status);

    return (struct reading){.state = row != NULL ? row->state : READING_FAILED, .code = (int)status};
}

void amdsmi_library_lock(struct amdsmi_library *library)
{
    pthread_mutex_lock(&library->lock);
}

void amdsmi_library_unlock(struct amdsmi_library *library)
{
    pthread_mutex_unlock(&library->lock);
}

/* Loads the file that was named, or the first of the names that the loader finds. */
static int load(const char *path, struct shared_object *out_object, struct fly_error *out_error)
{
    int code = FLY_ENOTFOUND;

    if (path != NULL)
        return shared_object_open(path, out_object, out_error);
    for (size_t i = 0; i < sizeof library_names / sizeof library_names[0] && code < 0; i++)
        code = shared_object_open_library(library_names[i], out_object, NULL);
    if (code == 0)
        return 0;
    return error_set(
        out_error, FLY_EUNSUPPORTED,
        "no AMD SMI library: '%s' is not installed, nor versions 25 and 24; for AMD GPUs install "
        "ROCm's package amd-smi-lib, or say where the library is",
        library_names[0]);
}

static int find_calls(struct amdsmi_library *library, const char *name, struct fly_error *out_error)
{
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = shared_object_find(&library->object, call_rows[i].symbol);

        if (found == NULL && call_rows[i].required)
            return error_set(
                out_error, FLY_EUNSUPPORTED,
                "library '%.200s' lacks the function '%s'; it is no AMD SMI library, or one too old", name,
                call_rows[i].symbol);
        memcpy((char *)&library->call + call_rows[i].offset, &found, sizeof found);
    }
    return 0;
}

static int initialise(const struct amdsmi_library *library, const char *name, struct fly_error *out_error)
{
    amdsmi_status status = library->call.init(AMDSMI_INIT_GPUS);

    if (status == AMDSMI_SUCCESS)
        return 0;
    if (status == AMDSMI_NO_PERMISSION)
        return error_set(out_error, FLY_EPERM,
                         "library '%.200s' cannot be used: permission is missing; become a member with 'sudo "
                         "usermod -a -G render,video $USER' and log in again",
                         name);
    return error_set(out_error, status == AMDSMI_DRIVER_NOT_LOADED ? FLY_EUNSUPPORTED : FLY_EREAD,
                     "library '%.200s' cannot be used: %s (AMD SMI %u); load the driver with 'sudo modprobe "
                     "amdgpu', and see what 'amd-smi' and the kernel's log say",
                     name, amdsmi_meaning(status), status);
}

/* Finds the layouts of the library's version; structs of unknown versions are not guessed. */
static int find_layout(struct amdsmi_library *library, const char *name, struct fly_error *out_error)
{
    struct amdsmi_space space = {{0}};
    struct amdsmi_version version;
    amdsmi_status status = library->call.version(space.bytes);

    if (status != AMDSMI_SUCCESS)
        return error_set(out_error, FLY_EREAD,
                         "library '%.200s' does not tell its version: %s (AMD SMI %u); install another", name,
                         amdsmi_meaning(status), status);
    memcpy(&version, space.bytes, sizeof version);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].version == version.numbers[0]) {
            library->layout = &layouts[i];
            return 0;
        }
    }
    return error_set(out_error, FLY_EUNSUPPORTED,
                     "library '%.200s' is version %u of AMD SMI; 24 to 26 are known, so install one of these "
                     "or a newer Flyball",
                     name, version.numbers[0]);
}

int amdsmi_library_open(const char *path, struct amdsmi_library **out_library, struct fly_error *out_error)
{
    const char *name = path != NULL ? path : "libamd_smi";
    struct amdsmi_library *library = calloc(1, sizeof *library);
    int code;

    if (library == NULL)
        return error_no_memory(out_error);
    library->users = 1;
    library->owner = getpid();
    pthread_mutex_init(&library->lock, NULL);
    code = load(path, &library->object, out_error);
    if (code == 0)
        code = find_calls(library, name, out_error);
    if (code == 0)
        code = initialise(library, name, out_error);
    if (code < 0)
        library->call.shut_down = NULL;
    else
        code = find_layout(library, name, out_error);
    if (code < 0)
        amdsmi_library_release(library);
    else
        *out_library = library;
    return code;
}

void amdsmi_library_release(struct amdsmi_library *library)
{
    if (--library->users > 0)
        return;
    if (library->owner == getpid()) {
        if (library->call.shut_down != NULL)
            library->call.shut_down();
        shared_object_close(&library->object);
        pthread_mutex_destroy(&library->lock);
    }
    free(library);
}
