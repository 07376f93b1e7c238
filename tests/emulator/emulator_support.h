/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_EMULATOR_EMULATOR_SUPPORT_H
#define FLYBALL_TESTS_EMULATOR_EMULATOR_SUPPORT_H

/* For tests that load the emulator's driver library as a program would. */
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emulator/api.h"
#include "emulator/control.h"

/* All functions of the library by name. */
static struct {
#define POINTER(result, symbol, parameters) result(*symbol) parameters;
    NVML_FUNCTIONS(POINTER)
    NVML_MORE_FUNCTIONS(POINTER)
#undef POINTER
    const char *(*flyball_emulator_version)(void);
    const char *(*flyball_emulator_complaint)(void);
    int (*flyball_emulator_sensor)(struct nvml_device *, struct flyball_emulator_sensor *);
} nvml;

static char state_path[64], script_path[80];

static inline void *handle_of_library(void)
{
    const char *directory = getenv("FLYBALL_TEST_EMULATOR");
    char path[1024];
    void *handle;

    if (directory == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", directory);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        print_error("%s\n", dlerror());
    return handle;
}

static inline int load_library(void)
{
    static const struct {
        const char *symbol;
        void **pointer;
    } symbols[] = {
#define SYMBOL(result, symbol, parameters) {#symbol, (void **)&nvml.symbol},
        NVML_FUNCTIONS(SYMBOL) NVML_MORE_FUNCTIONS(SYMBOL)
#undef SYMBOL
            {"flyball_emulator_version", (void **)&nvml.flyball_emulator_version},
        {"flyball_emulator_complaint", (void **)&nvml.flyball_emulator_complaint},
        {"flyball_emulator_sensor", (void **)&nvml.flyball_emulator_sensor},
    };
    void *handle = handle_of_library();

    for (size_t i = 0; handle != NULL && i < COUNT(symbols); i++) {
        *symbols[i].pointer = dlsym(handle, symbols[i].symbol);
        if (*symbols[i].pointer == NULL) {
            print_error("the library lacks %s\n", symbols[i].symbol);
            return -1;
        }
    }
    return handle != NULL ? 0 : -1;
}

/* Makes a machine for one test, with a fault script or NULL, where the library finds it. */
static inline struct emulator *start(const char *settings_text, const char *script)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator = NULL;
    struct fly_error error = {.code = 0};
    FILE *file = fopen(script_path, "w");

    assert_non_null(file);
    fputs(script != NULL ? script : "", file);
    fclose(file);
    unlink(state_path);
    settings.ideal = true; /* "ideal=no" is for tests of what boards do besides */
    if (emulator_settings_parse(&settings, settings_text, &error) < 0 ||
        emulator_settings_set(&settings, "faults", script_path, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        fail_msg("%s", error.text);
    return emulator;
}

static inline void stop(struct emulator *emulator)
{
    emulator_close(emulator);
    assert_int_equal(emulator_remove(state_path, NULL), 0);
    unlink(script_path);
}

static inline struct nvml_device *device(unsigned index)
{
    struct nvml_device *handle = NULL;

    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(index, &handle), NVML_SUCCESS);
    return handle;
}

/*
 * Loads the library and chooses where states are kept; returns 0, or the exit status of a test that cannot
 * run.
 */
static inline int emulator_support_begin(void)
{
    snprintf(state_path, sizeof state_path, "/tmp/flyball-test-library-%d", (int)getpid());
    snprintf(script_path, sizeof script_path, "%s.faults", state_path);
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    if (load_library() == 0)
        return 0;
    print_error("the emulator's library is looked for where FLYBALL_TEST_EMULATOR says\n");
    return 1;
}

#endif
